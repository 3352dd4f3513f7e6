//! What findings about the allocator say about recordings of known programs.

use std::path::Path;
use vramscope_inference::{Facts, Growth};
use vramscope_report::export::{ExportFormat, export};
use vramscope_report::findings::{FindingEntry, FindingRecord, of_device};
use vramscope_report::peak::{BandKind, peak};
use vramscope_report::phases::step_words;
use vramscope_report::steps::floors;
use vramscope_report::what_if::Outcome;
use vramscope_report::{Covers, FileReader, Lever, LoadedFile, now, plain};
use vramscope_units::Bytes;

/// A file of `test_data`.
fn load(path: &str) -> LoadedFile {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data").join(path);
    let bytes = std::fs::read(&path).expect("a file of test_data");
    let mut reader = FileReader::new("file", bytes.len() as u64);
    bytes.chunks(1 << 16).try_for_each(|chunk| reader.feed(chunk)).expect("a snapshot");
    reader.finish().expect("a snapshot")
}

/// The recorded peak of `reserved_bytes`.
fn recorded_peak(path: &str) -> u64 {
    let file = load(path);
    u64::try_from(file.entries[0].traces[0].reserved_band.peak).expect("a size")
}

/// The findings about the allocator in a file of `test_data`, with what its model says or without.
fn entries_of(path: &str, is_simulated: bool) -> Vec<FindingEntry> {
    let file = load(path);
    if is_simulated {
        file.entries[0].simulate(0);
    }
    let kinds = ["oom", "reserved", "stranded_pool", "pending_free", "churn", "no_grad"];
    let mut found = of_device(file.target(0, 0).expect("a device"));
    found.retain(|finding| kinds.contains(&finding.record.kind.name()));
    found
}

fn findings_of(path: &str, is_simulated: bool) -> impl Iterator<Item = FindingRecord> {
    entries_of(path, is_simulated).into_iter().map(|entry| entry.record)
}

fn simulated_of_kind(path: &str, kind: &str) -> FindingEntry {
    let mut found = entries_of(path, true).into_iter();
    let found = found.find(|finding| finding.record.kind.name() == kind);
    found.unwrap_or_else(|| panic!("{path} has no {kind}"))
}

fn of_kind(path: &str, kind: &str) -> FindingRecord {
    let found = findings_of(path, false).find(|finding| finding.kind.name() == kind);
    found.unwrap_or_else(|| panic!("{path} has no {kind}"))
}

#[test]
fn every_finding_says_what_and_what_to_do() {
    let mut count = 0;
    for path in [
        "recorded/gpt_leak.pickle.gz",
        "recorded/gpt_max_split.pickle.gz",
        "recorded/late_max_split_26.pickle.gz",
        "recorded/oom_expandable.pickle.gz",
        "recorded/t26/gpt_small.pickle.gz",
        "recorded/t26/oom_observer.pickle.gz",
        "recorded/t26/streams.pickle.gz",
        "findings/c17_state_only_crumbs.pickle.gz",
        "findings/s1_pool_strand.pickle.gz",
        "findings/varlen_tight_roundup.pickle.gz",
    ] {
        let both = findings_of(path, false).chain(findings_of(path, true));
        for FindingRecord { id, title, text, action, .. } in both {
            assert!(!title.is_empty() && !title.ends_with('.'), "{path} {id}: {title}");
            for sentences in [&text, &action] {
                let is_tidy = sentences.ends_with('.')
                    && ["  ", " .", "..", " ,", " ()"].iter().all(|odd| !sentences.contains(odd));
                assert!(is_tidy, "{path} {id}: {sentences}");
            }
            count += 1;
        }
    }
    assert!(count >= 30, "only {count} findings");
}

#[test]
fn a_failed_allocation_is_told_with_its_place_and_numbers() {
    let oom = of_kind("recorded/t26/oom_observer.pickle.gz", "oom");
    assert_eq!(
        oom.title,
        "Out of memory in backward of step 2 at gpt.py:44 forward: 393 MiB asked, 328 MiB free in \
         pieces of at most 196 MiB"
    );
    let place = oom.place.as_ref().expect("a line");
    assert_eq!(place.site, "gpt.py:44 forward");
    assert_eq!(place.note, "in its backward (LogSoftmaxBackward0)");
    assert_eq!(place.what, "3 blocks of this size are live");
    assert_eq!(
        oom.why,
        "the inputs of this step (16.00 KiB) are 2.0 x those of step 1, the largest before"
    );
    for words in [
        "It has the size of the tensors of gpt.py:43 forward and gpt.py:44 forward.",
        "PyTorch can have 5.51 GiB on this device",
        "in pieces of at most 196.5 MiB, and the driver lacks 326.0 MiB for a new segment",
        "returned 11 free segments (22.00 MiB)",
        "2.0 x those of step 1",
    ] {
        assert!(oom.text.contains(words), "{words:?} is not in {}", oom.text);
    }
    assert!(oom.action.contains("326.0 MiB"), "{}", oom.action);
    // The request comes first. Each call site has its bytes.
    assert!(oom.children.len() > 3, "{:?}", oom.children);
}

/// No setting gives free memory of a private pool to the default pool.
#[test]
fn a_stranded_pool_gets_no_advice_about_settings() {
    let oom = of_kind("findings/s1_pool_strand.pickle.gz", "oom");
    let words = "8.79 GiB are free in pool (0, 1) only, which cannot serve the request.";
    assert!(oom.text.contains(words), "{}", oom.text);
    assert!(oom.action.starts_with("Delete pool (0, 1) before this point"), "{}", oom.action);
    assert!(!oom.action.contains("expandable_segments"), "{}", oom.action);
}

#[test]
fn reserved_memory_names_the_setting_that_costs_it() {
    let reserved = of_kind("recorded/gpt_max_split.pickle.gz", "reserved");
    assert!(reserved.text.contains("max_split_size_mb:128 keeps 6 segments"), "{}", reserved.text);
    assert_eq!(reserved.action, "Remove max_split_size_mb:128 or raise it.");
    let state = of_kind("findings/c17_state_only_crumbs.pickle.gz", "reserved");
    assert_eq!(
        state.title,
        "Reserved 19.5 GiB for 12.9 GiB in use at the end: most of the rest is cached"
    );
    assert!(state.text.starts_with("19.53 GiB were reserved when the snapshot was taken."));
}

#[test]
fn a_failed_allocation_in_a_library_names_its_line_too() {
    let oom = of_kind("findings/g04_eval_concat.pickle.gz", "oom");
    let place = oom.place.expect("a call stack");
    assert_eq!(place.site, "train.py:90 main");
    assert_eq!(place.note, "in trainer_pt_utils.py:98 torch_pad_and_concatenate");
    // In backward the note is about the forward line, and a line of the program needs none.
    let own = of_kind("recorded/t26/oom_observer.pickle.gz", "oom").place.expect("a call stack");
    assert!(!own.note.contains("in p_oom"), "{}", own.note);
}

#[test]
fn a_failed_allocation_is_told_what_is_missing() {
    let FindingEntry { record: oom, title, .. } =
        simulated_of_kind("recorded/t26/oom_observer.pickle.gz", "oom");
    let short: Vec<(&str, Option<u64>)> = oom
        .simulated
        .iter()
        .map(|one| (one.change.as_str(), one.short_by.map(|bytes| bytes.0)))
        .collect();
    assert_eq!(short, [("as recorded", Some(326 << 20))], "changes are fixes");
    let sentence = "326.0 MiB are missing as configured (simulated).";
    assert!(oom.text.contains(sentence), "{}", oom.text);
    assert_eq!(
        plain(&title),
        "Out of memory in backward of step 2 at gpt.py:44 forward: 326 MiB short"
    );
    let line = "at LogSoftmaxBackward0 (backward of gpt.py:44 forward).";
    assert!(oom.text.contains(line), "{}", oom.text);
    assert!(oom.action.starts_with("It fits with"), "{}", oom.action);
    // The whole step needs more than the request that failed.
    let expandable = oom.fixes.iter().find(|fix| fix.conf.is_some()).expect("a setting");
    assert_eq!((expandable.outcome, expandable.recipe.as_str()), (Some(Outcome::Short), ""));
    let batch = oom.fixes.iter().find(|fix| fix.recipe == "batch:0.5").expect("the earlier batch");
    assert_eq!((batch.outcome, batch.covers), (Some(Outcome::Fits), Covers::Steps));
}

#[test]
fn a_setting_that_serves_the_request_is_the_action() {
    let oom = simulated_of_kind("what_if/varlen_tight_default.pickle.gz", "oom").record;
    assert!(oom.text.contains("57.00 MiB are missing as configured (simulated)."), "{}", oom.text);
    let action = "It fits with one of these: expandable_segments:True (needs 1.69 GiB).";
    assert_eq!(oom.action, action, "the run survived, and the file has all of it");
}

/// The program was recorded again under `torch.no_grad()`.
#[test]
fn the_peak_without_graphs_of_an_evaluation_is_replayed() {
    let found = simulated_of_kind("twins/gpt_eval.pickle.gz", "no_grad").record;
    let [fix] = &found.fixes[..] else { panic!("one change, not {:?}", found.fixes) };
    assert_eq!((&*fix.recipe, fix.outcome), ("eval:no_grad", None));
    let active_peak = |path: &str| {
        let file = load(path);
        peak(file.target(0, 0).expect("a device"), BandKind::Active, Some(1)).total
    };
    let before = active_peak("twins/gpt_eval.pickle.gz");
    let measured = before - active_peak("twins/gpt_eval_eval_no_grad.pickle.gz");
    let error = fix.lowers.0.abs_diff(measured);
    assert!(error * 1_000 < measured, "{} for {measured}", fix.lowers.0);
    assert!(!found.text.contains("about"), "the estimate gives way: {}", found.text);
}

/// The run had reserved more before it failed than when it failed.
#[test]
fn a_limit_allows_what_was_ever_reserved() {
    let path = "findings/real_oom_gpt_flash.pickle.gz";
    let oom = of_kind(path, "oom");
    let least = Bytes(recorded_peak(path));
    assert!(oom.text.contains(&format!(" of at least {least} and less than ")), "{}", oom.text);
    assert!(oom.why.contains(&format!("allows at least {least} and less")), "{}", oom.why);
}

/// Expandable segments serve the request: the pool has them, too. What follows is not in the file.
#[test]
fn a_setting_that_does_not_help_is_not_the_action() {
    let oom = simulated_of_kind("findings/s1_pool_strand.pickle.gz", "oom").record;
    assert!(oom.action.starts_with("Delete pool (0, 1) before this point"), "{}", oom.action);
    assert!(!oom.action.contains("expandable_segments"), "{}", oom.action);
    assert!(oom.fixes.iter().all(Lever::is_short), "{:?}", oom.fixes);
}

/// Recordings of the same programs with other settings have these peaks.
#[test]
fn other_settings_reserve_what_their_own_recording_shows() {
    for (path, twin) in [
        ("varlen_roomy_default", "varlen_roomy_expandable"),
        ("multiscale_roomy_default", "multiscale_roomy_expandable"),
    ] {
        let reserved = simulated_of_kind(&format!("what_if/{path}.pickle.gz"), "reserved").record;
        let expandable =
            reserved.simulated.iter().find(|one| one.conf == "expandable_segments:True");
        let peak = expandable.expect("a replay with expandable segments").reserved_peak;
        assert_eq!(peak.0, recorded_peak(&format!("what_if/{twin}.pickle.gz")), "{path}");
    }
}

/// The action follows from what the program did, not from the largest category alone.
#[test]
fn a_failed_allocation_gets_the_action_of_its_program() {
    for (file, action) in [
        ("oom_graph_capture", "Let the graphs share one pool"),
        ("oom_other_process", "Find what else took 280.0 MiB on this device (nvidia-smi)"),
        ("oom_ckpt_save", "Make the copies on the CPU: f_oom.py:52"),
        ("g04_eval_concat", "Move each result to the CPU before train.py:90"),
    ] {
        let oom = simulated_of_kind(&format!("findings/{file}.pickle.gz"), "oom").record;
        assert!(oom.action.starts_with(action), "{file}: {}", oom.action);
    }
}

/// A limit lies between what PyTorch had and what it asked for.
#[test]
fn a_limit_of_the_process_has_a_size() {
    let oom = of_kind("findings/real_conv3d_1970.pickle.gz", "oom");
    let limit = "set_per_process_memory_fraction of at least 1.84 GiB and less than 1.95 GiB";
    assert!(oom.text.contains(limit), "{}", oom.text);
    assert!(oom.text.contains("36 allocations failed before it in this step"), "{}", oom.text);
}

/// Recordings of `test_data`.
fn recordings() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data");
    let mut paths = Vec::new();
    for folder in ["findings", "what_if", "recorded", "recorded/t26", "recorded/misc"] {
        let listed = std::fs::read_dir(root.join(folder)).expect("a folder");
        let names = listed.map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into()).collect();
        names.retain(|name| name.contains(".pickle") && !name.contains("json"));
        names.sort();
        paths.extend(names.into_iter().map(|name| format!("{folder}/{name}")));
    }
    paths
}

/// A leak grows in the report on steps as fast as its finding says.
#[test]
fn a_leak_has_one_rate() {
    let mut leaks = 0;
    for path in recordings() {
        let file = load(&path);
        let Some(entry) = file.entries.first().filter(|entry| !entry.traces.is_empty()) else {
            continue;
        };
        let target = file.target(0, entry.traces[0].device.device).expect("a device");
        let growths: Vec<&Growth> = (entry.findings(target.index).iter())
            .filter_map(|finding| match &finding.facts {
                // Of passes within a step the report on steps has no rate.
                Facts::Growth(growth) if growth.words == step_words(target) => Some(growth),
                _ => None,
            })
            .collect();
        if growths.is_empty() {
            continue;
        }
        leaks += 1;
        let report = now(async |budget| floors(target, budget).await);
        let rate = report.slope.expect("a slope").bytes_per_step;
        let sum = |of: fn(&Growth) -> u64| growths.iter().map(|growth| of(growth)).sum::<u64>();
        let least = sum(|growth| growth.per_step.0.0 / growth.every as u64);
        let most = sum(|growth| growth.per_step.1.0.div_ceil(growth.every as u64));
        assert!((least..=most).contains(&rate), "{path}: {rate} is not in {least}..={most}");
        let word = growths[0].words[0];
        let words = format!("+{} a {word} from {word} 1 to ", Bytes(rate));
        assert!(report.text[0].starts_with(&words), "{path}: {:?}", report.text);
    }
    assert!(leaks >= 10, "only {leaks} leaks were compared");
}

/// The tracks of an export for Perfetto use the word of the report on steps.
#[test]
fn an_export_for_perfetto_names_requests() {
    for (path, word, other) in [
        ("findings/kv_session.pickle.gz", "request", "step"),
        ("recorded/gpt_leak.pickle.gz", "step", "request"),
    ] {
        let file = load(path);
        let target = file.target(0, file.entries[0].traces[0].device.device).expect("a device");
        let mut out = Vec::new();
        let written =
            now(async |budget| export(target, ExportFormat::Perfetto, &mut out, budget).await);
        written.expect("a vector takes all");
        let json = String::from_utf8(out).expect("text");
        for number in 0..3 {
            assert!(json.contains(&format!("\"{word} {number}\"")), "{path} {word} {number}");
        }
        assert!(json.contains(&format!("\"{word}s\"")), "{path}: the name of the track");
        assert!(!json.contains(&format!("\"{other} 0\"")), "{path}: {other}");
    }
}

/// A request is no step, and a moment of a forward pass has its layer.
#[test]
fn the_text_of_a_peak_names_requests_and_layers() {
    for (path, words) in [
        ("findings/kv_session.pickle.gz", "(generation, request 13)"),
        ("findings/g38_fails_in_layer_6_of_12.pickle.gz", "(forward, layer 7 of 12, step 2)"),
        ("recorded/gpt_leak.pickle.gz", "(backward, step 11)"),
    ] {
        let file = load(path);
        let device = file.entries[0].traces[0].device.device;
        let peak = peak(file.target(0, device).expect("a device"), BandKind::Requested, Some(1));
        assert!(peak.peaks[0].text[0].contains(words), "{path}: {:?}", peak.peaks[0].text);
    }
}

/// No finding advises what another of the same answer says does not help.
#[test]
fn findings_of_one_answer_do_not_contradict_each_other() {
    let useless = "expandable_segments:True does not help";
    let mut files = 0;
    for path in recordings() {
        let file = load(&path);
        let Some(entry) = file.entries.first().filter(|entry| !entry.traces.is_empty()) else {
            continue;
        };
        entry.simulate(0);
        let device = entry.traces[0].device.device;
        let all = of_device(file.target(0, device).expect("a device"));
        files += 1;
        let refused = all.iter().any(|finding| finding.record.text.contains(useless));
        let advised: Vec<&str> = all
            .iter()
            .map(|finding| finding.record.action.as_str())
            .filter(|action| action.contains("expandable_segments:True"))
            .collect();
        assert!(!refused || advised.is_empty(), "{path}: {advised:?}");
    }
    assert!(files > 60, "only {files} recordings were checked");
}
