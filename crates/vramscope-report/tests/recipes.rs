//! Compares what a change of the program is said to do with the changed program, really run.
//!
//! `test_data/recipes/manifest.json` has the peaks that PyTorch measured of each changed program.

use serde_json::Value;
use std::path::{Path, PathBuf};
use vramscope_inference::{Recipe, Rest};
use vramscope_report::diagnose::{Listing, diagnose, with_levers};
use vramscope_report::findings::of_device;
use vramscope_report::what_if::{
    Configuration, EditRecord, Options, Outcome, ScenarioRecord, edit_text, what_if,
};
use vramscope_report::{FileReader, Lever, LeverBasis, LoadedFile, PlanRecord};
use vramscope_trace::slicing::now;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data/recipes")
}

fn manifest() -> Value {
    let text = std::fs::read_to_string(folder().join("manifest.json")).expect("a manifest");
    serde_json::from_str(&text).expect("JSON")
}

fn load(file: &str) -> LoadedFile {
    let bytes = std::fs::read(folder().join(file)).expect("a file of test_data");
    let mut reader = FileReader::new("file", bytes.len() as u64);
    bytes.chunks(1 << 16).try_for_each(|chunk| reader.feed(chunk)).expect("a snapshot");
    reader.finish().expect("a snapshot")
}

/// The answer about one change.
fn answer(file: &LoadedFile, recipes: &str, memory: Option<u64>) -> ScenarioRecord {
    let recipes = Recipe::parse_list(recipes).expect("recipes");
    let options = Options { recipes, pytorch_memory: memory, ..Options::default() };
    let target = file.target(0, 0).expect("a device");
    let mut report = now(async |budget| what_if(target, &options, None, budget).await);
    report.scenarios.remove(0)
}

fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value[name].as_array().expect("a list")
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

#[test]
fn peaks_of_changed_programs_are_predicted() {
    let manifest = manifest();
    let (mut answered, mut near, mut all) = (0, 0, 0);
    let mut wrong = Vec::new();
    for program in list(&manifest, "programs") {
        let file = load(text(program, "base"));
        for pair in list(program, "pairs") {
            let recipe = text(pair, "recipe");
            let mut said = answer(&file, recipe, None);
            all += 1;
            // A change that the program has already leaves the peak as it is.
            let has_it = |why: &String| {
                why.contains("has it already") || why.ends_with("nothing would change")
            };
            if said.declined.as_ref().is_some_and(has_it) {
                said = answer(&file, "", None);
            }
            if said.declined.is_some() {
                if pair["within"].is_number() {
                    wrong.push(format!("{} {recipe} is declined", text(program, "base")));
                }
                continue;
            }
            let truth = pair["active"].as_u64().expect("bytes");
            let error = 100.0 * (said.active_peak.0 as f64 / truth as f64 - 1.0).abs();
            answered += 1;
            near += u32::from(error <= 5.0);
            if error > pair["within"].as_f64().unwrap_or(f64::INFINITY) {
                wrong.push(format!("{} {recipe}: {error:.1} %", text(program, "base")));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(answered * 100 >= all * 85, "{answered} of {all} answered");
    assert!(near * 100 >= answered * 90, "{near} of {answered} within 5 %");
}

#[test]
fn what_is_said_to_fit_after_a_failure_fits() {
    let manifest = manifest();
    let mut wrong = Vec::new();
    let (mut right, mut all) = (0, 0);
    for case in list(&manifest, "oom") {
        let file = load(text(case, "base"));
        let memory = case["pytorch_memory"].as_u64();
        for change in list(case, "changes") {
            let said = answer(&file, text(change, "recipe"), memory);
            let said = said.fits.filter(|_| said.declined.is_none());
            let truth = change["fits"].as_bool();
            all += 1;
            right += u32::from(said.is_some() && said == truth);
            if said.is_some() && said != truth && change["known"].is_null() {
                wrong.push(format!("{} {}: {said:?}", text(case, "case"), text(change, "recipe")));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    // Most others are too near to the memory to tell.
    assert!(right * 100 >= all * 65, "{right} of {all} right");
}

/// Lines of `scripts/twins`, where the programs that were recorded do it.
#[test]
fn an_edit_names_the_line_of_the_program() {
    for (program, recipe, place, part) in [
        ("moe", "checkpoint:all", "models.py:29", "checkpoint(block, x, use_reentrant=False)"),
        ("moe", "chunked_loss:16", "models.py:36", "hidden.chunk(16), target.chunk(16)"),
        ("moe", "optimizer:8bit", "train.py:163", "AdamW8bit"),
        ("vit", "zero_grad:early", "train.py:163", "optimizer.step()\noptimizer.zero_grad("),
        ("moe", "accumulate:4", "train.py:150", "loss = model(x, y) / 4"),
        ("moe", "batch:0.75", "train.py:150", "int(batch_size * 0.75)"),
        ("moe", "params:bf16", "train.py:93", "model.to(torch.bfloat16)"),
        ("moe", "del:train.py:150", "train.py:150", "del "),
        ("vit", "eval:no_grad", "train.py:170", "with torch.no_grad():"),
        ("vit", "attention:flash", "models.py:68", "F.scaled_dot_product_attention("),
        ("vit", "offload_activations", "train.py:150", "save_on_cpu(pin_memory=True)"),
    ] {
        let file = load(&format!("{program}.pickle.gz"));
        let said = answer(&file, recipe, None);
        let [edit] = &said.edits[..] else { panic!("{recipe}: {said:?}") };
        assert_eq!(edit.place.as_deref(), Some(place), "{recipe}");
        assert!(edit.snippet.contains(part), "{}", edit.snippet);
    }
}

#[test]
fn several_changes_are_several_edits_of_at_most_six_lines() {
    let file = load("moe.pickle.gz");
    let every = "chunked_loss:8,foreach:off,zero_grad:late,optimizer_in_backward,\
                 offload_activations,freeze:embedding";
    let edits = answer(&file, every, None).edits;
    let of: Vec<&str> = edits.iter().map(|edit| edit.recipe.as_str()).collect();
    assert_eq!(of.join(","), every);
    let is_short = |edit: &EditRecord| edit_text(edit).lines().count() <= 6;
    assert!(edits.iter().all(is_short), "{edits:?}");
}

#[test]
fn an_edit_without_a_stack_of_it_has_no_line() {
    // It failed in its first forward pass, so no stack shows the optimizer.
    let said = answer(&load("oom_vit_2.pickle.gz"), "checkpoint:all,optimizer:8bit", None);
    let places: Vec<_> = said.edits.iter().map(|edit| edit.place.as_deref()).collect();
    assert_eq!(places, [Some("models.py:29"), None]);
    // What was not asked for, and what was declined, has no edit.
    assert!(answer(&load("moe.pickle.gz"), "upcast:off", None).edits.is_empty());
}

/// The run fails in the training pass after an evaluation that keeps its graph. Without that graph
/// it goes through.
#[test]
fn an_evaluation_before_the_failed_pass_is_part_of_the_run() {
    let file = load("oom_vit.pickle.gz");
    let said = answer(&file, "eval:no_grad", None);
    assert_eq!((said.fits, said.rest), (Some(true), Some(Rest::Repeated)));
    assert_eq!(answer(&file, "foreach:off", None).fits, Some(false));
    file.entries[0].simulate(0);
    let findings = of_device(file.target(0, 0).expect("a device"));
    let fix = findings.iter().find_map(|finding| finding.record.fixes.first());
    assert_eq!(fix.map(|fix| fix.recipe.as_str()), Some("eval:no_grad"));
}

/// The first backward pass failed after it had made gradients. Their parameters need states, too,
/// so none of the changes that were really made is enough (`fits` of the manifest).
#[test]
fn a_late_failure_in_the_first_backward_pass_needs_all_states() {
    let file = load("oom_seq2seq_2.pickle.gz");
    for recipes in ["checkpoint:all,chunked_loss:8", "offload_activations", "batch:0.5"] {
        let said = answer(&file, recipes, None);
        assert_eq!(said.rest, Some(Rest::Backward));
        assert_ne!(said.fits, Some(true), "{recipes}");
    }
}

/// Every `*.pickle.gz` below a folder, in order.
fn recordings(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut paths: Vec<PathBuf> =
        folder.read_dir().expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            recordings(&path, found);
        } else if path.to_string_lossy().ends_with(".pickle.gz") {
            found.push(path);
        }
    }
}

/// The fixes of findings and `what-if` replay one run.
#[test]
fn a_fix_and_what_if_say_the_same() {
    let data = folder().join("..");
    let mut paths = Vec::new();
    for name in ["recipes", "recorded", "findings", "what_if"] {
        recordings(&data.join(name), &mut paths);
    }
    let mut compared = 0;
    for path in paths {
        let file = load(path.to_str().expect("a path"));
        // Some recordings have pinned memory alone.
        let Some(target) = file.target(0, 0) else { continue };
        if target.trace().ooms.is_empty() {
            continue;
        }
        file.entries[0].simulate(0);
        for fix in of_device(target).into_iter().flat_map(|finding| finding.record.fixes) {
            let recipes = Recipe::parse_list(&fix.recipe).expect("recipes");
            let settings = fix.conf.as_deref().map(|conf| Configuration::new(conf, true));
            let configurations = settings.into_iter().map(|one| one.expect("settings")).collect();
            let options = Options { recipes, configurations, ..Options::default() };
            let report = now(async |budget| what_if(target, &options, None, budget).await);
            let said = &report.scenarios[0];
            let fits = match fix.outcome {
                Some(Outcome::Fits) | None => Some(true),
                Some(Outcome::Short) => Some(false),
                Some(Outcome::FitsBarely | Outcome::Unknown) => None,
            };
            assert_eq!(said.fits, fits, "{} {fix:?} {said:?}", path.display());
            if fix.is_short() {
                let most = said.short_by.expect("bytes");
                assert!(fix.short_by.is_some_and(|short| short <= most), "{fix:?} {said:?}");
            }
            compared += 1;
        }
    }
    assert!(compared > 30, "{compared}");
}

/// The list of levers and `what-if` have one number for one change.
#[test]
fn a_lever_and_what_if_need_the_same() {
    let mut paths = Vec::new();
    for name in ["recipes", "recorded", "what_if"] {
        recordings(&folder().join("..").join(name), &mut paths);
    }
    let mut compared = 0;
    for path in paths {
        let file = load(path.to_str().expect("a path"));
        let Some(target) = file.target(0, 0) else { continue };
        file.entries[0].simulate(0);
        let diagnosis = diagnose(vec![with_levers(target)], Listing::Main(5), 0);
        for lever in diagnosis.levers.iter().filter(|one| one.basis == LeverBasis::Replayed) {
            let recipes = Recipe::parse_list(&lever.recipe).expect("recipes");
            let settings = lever.conf.as_deref().map(|conf| Configuration::new(conf, true));
            let configurations = settings.into_iter().map(|one| one.expect("settings")).collect();
            let options = Options { recipes, configurations, ..Options::default() };
            let report = now(async |budget| what_if(target, &options, None, budget).await);
            let needs = report.scenarios[0].least_device_memory;
            assert_eq!(needs, Some(lever.needs_bytes), "{} {lever:?}", path.display());
            compared += 1;
        }
    }
    assert!(compared > 50, "{compared}");
}

/// The plan for a device on which PyTorch can have `memory` bytes.
fn plan(file: &LoadedFile, memory: u64) -> PlanRecord {
    let options =
        Options { plan: Some(memory), pytorch_memory: Some(memory), ..Options::default() };
    let target = file.target(0, 0).expect("a device");
    let report = now(async |budget| what_if(target, &options, None, budget).await);
    report.plan.expect("a plan")
}

/// What `what-if` says about a set of changes, with these recipes more.
fn said_of(file: &LoadedFile, lever: &Lever, recipes: Vec<Recipe>, memory: u64) -> Option<Outcome> {
    let settings = lever.conf.as_deref().map(|conf| Configuration::new(conf, true));
    let options = Options {
        configurations: settings.into_iter().map(|one| one.expect("settings")).collect(),
        recipes,
        pytorch_memory: Some(memory),
        ..Options::default()
    };
    let target = file.target(0, 0).expect("a device");
    let report = now(async |budget| what_if(target, &options, None, budget).await);
    report.scenarios[0].outcome
}

#[test]
fn a_plan_fits_and_has_no_needless_part() {
    let manifest = manifest();
    let (mut sets, mut of_several) = (0, 0);
    for program in list(&manifest, "programs") {
        let file = load(text(program, "base"));
        let needs = answer(&file, "batch:1", None).reserved_peak.0;
        for percent in [60, 80, 120] {
            let memory = needs / 100 * percent;
            let plan = plan(&file, memory);
            if percent > 100 {
                assert_eq!(plan.unchanged, Outcome::Fits);
                assert!(plan.sets.is_empty() && plan.largest_batch.is_some_and(|k| k >= 1.0));
                continue;
            }
            assert_eq!(plan.unchanged, Outcome::Short);
            assert!(plan.largest_batch.is_none_or(|k| k < 1.0), "{plan:?}");
            let mut costs: Vec<_> = plan.sets.iter().map(|set| set.lever.cost).collect();
            costs.dedup();
            assert_eq!(costs.len(), plan.sets.len(), "one of each cost: {plan:?}");
            for set in &plan.sets {
                let recipes = Recipe::parse_list(&set.lever.recipe).expect("recipes");
                let of = |recipes: Vec<Recipe>| said_of(&file, &set.lever, recipes, memory);
                assert_eq!(of(recipes.clone()), Some(Outcome::Fits), "{set:?}");
                assert!(set.lever.needs_bytes.0 <= memory, "{set:?}");
                for left_out in 0..recipes.len() {
                    let mut fewer = recipes.clone();
                    fewer.remove(left_out);
                    assert_ne!(of(fewer), Some(Outcome::Fits), "{set:?} without {left_out}");
                }
                let with = |factor: f64| [&recipes[..], &[Recipe::batch(factor)]].concat();
                if let Some(factor) = set.largest_batch.filter(|&factor| factor < 4.0) {
                    assert_eq!(of(with(factor)), Some(Outcome::Fits), "{set:?}");
                    assert_ne!(of(with(factor * 1.1)), Some(Outcome::Fits), "{set:?}");
                }
                sets += 1;
                of_several += usize::from(recipes.len() > 1);
            }
        }
    }
    assert!(sets > 15 && of_several > 2, "{sets} sets, {of_several} of several changes");
}

/// In the step of a GAN a later backward pass uses what an earlier one leaves. A pool of graphs
/// keeps what it has.
#[test]
fn what_a_backward_pass_or_a_pool_of_graphs_needs_is_no_evaluation() {
    for name in ["gan_step", "g15_graph_per_shape"] {
        let file = load(&format!("../findings/{name}.pickle.gz"));
        let said = answer(&file, "eval:no_grad", None);
        assert_eq!(said.declined.as_deref(), Some("no evaluation keeps a graph"), "{name}");
    }
}

/// A completion with which the recorded run goes through lacks what made it fail.
#[test]
fn a_completion_that_does_not_fail_predicts_nothing() {
    let file = load("../findings/g04_eval_concat.pickle.gz");
    let said = answer(&file, "batch:0.5", None);
    assert_eq!(said.declined.as_deref(), Some("the rest of the failed step is not in the file"));
}

/// A limit below what was reserved before the window.
#[test]
fn a_late_recording_does_not_fit_below_its_first_state() {
    let file = load("../recorded/gpt_late.pickle.gz");
    let run = |memory| answer(&file, "", Some(memory));
    let most = run(64 << 30);
    assert_eq!(most.fits, Some(true));
    let little = run(100 << 20);
    assert_eq!(little.fits, Some(false), "{little:?}");
    let least = little.least_device_memory.expect("asked for").0;
    assert!(least >= most.active_peak.0, "{least} for {}", most.active_peak);
    assert_eq!((run(least).fits, run(least - (2 << 20)).fits), (Some(true), Some(false)));
}

/// The search for the largest batch keeps a margin. A run that fits does so with its own batch.
#[test]
fn a_plan_agrees_with_the_replay_of_the_recording() {
    for name in ["t29/two_devices", "gpt_amp", "gpt_leak"] {
        let file = load(&format!("../recorded/{name}.pickle.gz"));
        let least = plan(&file, 64 << 30).needs_bytes.0;
        let [fits, short] = [least, least - (2 << 20)].map(|memory| plan(&file, memory));
        assert_eq!((fits.unchanged, short.unchanged), (Outcome::Fits, Outcome::Short), "{name}");
        assert!(fits.largest_batch.is_none_or(|factor| factor >= 1.0), "{name}: {fits:?}");
        assert!(short.largest_batch.is_none_or(|factor| factor < 1.0), "{name}: {short:?}");
    }
}

#[test]
fn what_is_reserved_under_a_limit_is_in_its_range() {
    let mut limited = 0;
    for program in list(&manifest(), "programs") {
        let file = load(text(program, "base"));
        let free = answer(&file, "checkpoint:all", None).reserved_peak.0;
        for percent in [90, 95, 98] {
            let said = answer(&file, "checkpoint:all", Some(free / 100 * percent));
            let [low, high] = said.reserved_range;
            assert!((low..=high).contains(&said.reserved_peak), "{said:?}");
            limited += usize::from(said.reserved_peak.0 < free);
        }
    }
    assert!(limited > 2, "{limited}");
}

/// The usual scenarios of a run that went through end with its levers; the peaks are those that
/// were measured.
#[test]
fn the_levers_of_a_healthy_run_are_told() {
    let manifest = manifest();
    let mut measured = 0;
    for program in list(&manifest, "programs") {
        let file = load(text(program, "base"));
        let target = file.target(0, 0).expect("a device");
        let options = Options::default();
        let report = now(async |budget| what_if(target, &options, None, budget).await);
        let scenarios = report.scenarios;
        let own = scenarios[0].active_peak;
        let levers: Vec<&ScenarioRecord> =
            scenarios.iter().filter(|scenario| !scenario.recipes.is_empty()).collect();
        assert!((1..=5).contains(&levers.len()), "{} {scenarios:?}", text(program, "base"));
        for saving in levers {
            assert!(saving.active_peak.0 * 100 <= own.0 * 99, "{saving:?}");
            assert!(saving.curve.is_empty(), "only what was asked for has a curve");
            let pairs = list(program, "pairs").iter();
            let truth = pairs.filter(|pair| text(pair, "recipe") == saving.recipes[0]);
            for pair in truth {
                let bytes = pair["active"].as_u64().expect("bytes");
                assert!(saving.active_peak.0.abs_diff(bytes) * 100 <= bytes * 6, "{saving:?}");
                measured += 1;
            }
        }
    }
    assert!(measured > 3, "{measured}");
}

#[test]
fn a_leak_is_told_with_the_run_without_it() {
    let file = load("../recorded/gpt_leak.pickle.gz");
    file.entries[0].simulate(0);
    let found = of_device(file.target(0, 0).expect("a device"));
    let leak = &found[0].record;
    let fix = &leak.fixes[0];
    assert_eq!(fix.recipe, "del:p_gpt.py:31");
    let [with, without] = ["batch:1", &fix.recipe].map(|recipe| answer(&file, recipe, None));
    // The saving is told by the sizes of blocks, without what the allocator does not split.
    let saving = with.active_peak.0 - without.active_peak.0;
    assert!(saving.abs_diff(fix.lowers.0) * 20 < saving, "{saving} {fix:?}");
    // The blocks that the finding counts in the end.
    assert!(fix.lowers <= leak.bytes && fix.lowers.0 * 2 > leak.bytes.0, "{fix:?}");
    let sentence = format!("Without it the peak is {} lower.", fix.lowers);
    assert!(leak.text.ends_with(&sentence), "{}", leak.text);
}

#[test]
fn a_failure_without_the_rest_of_its_step_needs_at_least_what_the_file_has() {
    let file = load("../findings/g33_oom_on_device_1.pickle.gz");
    let said: Vec<String> = (0_u32..)
        .map_while(|index| file.target(0, index))
        .flat_map(|target| {
            target.entry.simulate(target.index);
            of_device(target)
        })
        .map(|finding| finding.record.action)
        .filter(|action| action.contains("The rest of the step is not in the file"))
        .collect();
    let [action] = &said[..] else { panic!("{said:?}") };
    assert!(action.contains("the run needs at least 24.00 GiB."), "{action}");
}
