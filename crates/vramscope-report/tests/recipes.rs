//! Compares what a change of the program is said to do with the changed program, really run.
//!
//! `test_data/recipes/manifest.json` has the peaks that PyTorch measured of each changed program.

use serde_json::Value;
use std::path::{Path, PathBuf};
use vramscope_inference::Recipe;
use vramscope_report::findings::of_device;
use vramscope_report::what_if::{Configuration, Options, Outcome, ScenarioRecord, what_if};
use vramscope_report::{FileReader, LoadedFile};
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
            let said = answer(&file, recipe, None);
            all += 1;
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
        let target = file.target(0, 0).expect("a device");
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
                Outcome::Fits => Some(true),
                Outcome::Short => Some(false),
                Outcome::FitsBarely | Outcome::Unknown => None,
            };
            assert_eq!(said.fits, fits, "{} {fix:?} {said:?}", path.display());
            if fix.outcome == Outcome::Short {
                let most = said.short_by.expect("bytes");
                assert!(fix.short_by.is_some_and(|short| short <= most), "{fix:?} {said:?}");
            }
            compared += 1;
        }
    }
    assert!(compared > 30, "{compared}");
}
