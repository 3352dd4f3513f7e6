//! Failed requests that like passes precede: what the lines held before, and what makes it fit.

use std::path::Path;
use vramscope_inference::{Covers, FindingKind, Outcome, Rest};
use vramscope_report::diagnose::{Diagnosis, Listing, at_peak, diagnose};
use vramscope_report::lines::HoldingLine;
use vramscope_report::{FileReader, Lever, LoadedFile};
use vramscope_units::Bytes;

fn load(name: &str) -> LoadedFile {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data/cases").join(name);
    let read = |path: &Path| std::fs::read(path).expect("a file of test_data");
    let bytes = read(&path.with_extension("pickle.gz"));
    let mut reader = FileReader::new(name, bytes.len() as u64);
    reader.feed(&bytes).expect("a snapshot");
    let mut file = reader.finish().expect("a snapshot");
    let sidecar = path.with_extension("vramscope.json");
    if sidecar.exists() {
        file.entries[0].set_sidecar(&read(&sidecar));
    }
    file
}

fn diagnosed(file: &LoadedFile) -> Diagnosis {
    let target = file.target(0, 0).expect("a device");
    target.entry.simulate(target.index);
    diagnose(vec![at_peak(target)], Listing::Main(5), 0)
}

fn fixes(diagnosis: &Diagnosis) -> &[Lever] {
    &diagnosis.findings.first().expect("a failure").record.fixes
}

/// One image with 2,100 boxes, where earlier ones had up to 700: the line asks for ten times as
/// much. Its function keeps nothing for backward, so it can work in parts.
#[test]
fn a_request_that_grows_with_its_input_is_compared_with_the_step_before() {
    let file = load("case15");
    let diagnosis = diagnosed(&file);
    let memory = diagnosis.memory.as_ref().expect("memory at the failure");
    let line = &memory.lines[0];
    assert_eq!(line.site, "prog.py:5");
    let before = line.before_bytes.expect("a step before");
    assert!(line.bytes.0 > 9 * before.0, "{line:?}");
    assert_eq!(line.text.as_deref(), Some(&*format!("was {before} in step 5, held by \"lt\"")));
    let fix = fixes(&diagnosis).first().expect("a fix");
    assert_eq!((fix.recipe.as_str(), fix.outcome), ("in_parts:4", Some(Outcome::Fits)));
    assert_eq!(fix.covers, Covers::Step);
    let editable = file.target(0, 0).and_then(|target| target.entry.editable(0)).expect("a run");
    assert_eq!(editable.rest, Rest::Like);
}

/// The third rollout of a scorer has prompts of 1,536 tokens, the second had 1,024.
#[test]
fn a_failed_request_is_completed_by_the_like_one_before() {
    let file = load("case05");
    let diagnosis = diagnosed(&file);
    let lines = &diagnosis.memory.as_ref().expect("memory at the failure").lines;
    let is_conversion = |line: &&HoldingLine| line.does.as_deref() == Some("conversion");
    let converted = lines.iter().find(is_conversion).expect("a conversion");
    assert_eq!(converted.site, "prog.py:10");
    let ratio = converted.bytes.0 as f64 / converted.before_bytes.expect("known").0 as f64;
    assert!((1.3..1.6).contains(&ratio), "{converted:?}");
    let editable = file.target(0, 0).and_then(|target| target.entry.editable(0)).expect("a run");
    assert_eq!(editable.rest, Rest::Like);
    assert!(fixes(&diagnosis).iter().any(Lever::fits));
}

/// Attention maps of each token are appended to a list that nothing clears.
#[test]
fn a_list_that_only_grows_can_be_dropped() {
    let file = load("case03");
    let diagnosis = diagnosed(&file);
    let dropping = |fix: &&Lever| fix.text.starts_with("Drop local \"sink\"");
    let fix = fixes(&diagnosis).iter().find(dropping).expect("a fix");
    assert!(fix.fits());
    assert!(fix.recipe.is_empty(), "{fix:?}");
    // Each of 66 maps has 20.5 MiB.
    assert!(fix.saving_bytes.0 > 1_000 << 20, "{fix:?}");
}

/// Hooks keep the inputs of the layers of each evaluation pass (`scripts/reports/opacus_eval.py`):
/// 65,536 x 1,024 numbers of 4 bytes, and twice 65,536 x 256. No change but another batch is known,
/// and with that memory is full again.
#[test]
fn a_run_that_grows_from_pass_to_pass_says_when_it_is_full_again() {
    let diagnosis = diagnosed(&load("opacus_eval"));
    let record = &diagnosis.findings.first().expect("a failure").record;
    let kept = Bytes((65_536 * 1024 + 2 * 65_536 * 256) * 4);
    let grows = format!("; each pass leaves {} more, 3 in a row", kept.brief());
    assert!(record.title.ends_with(&grows), "{}", record.title);
    let (short, fit): (Vec<&Lever>, Vec<&Lever>) =
        record.fixes.iter().partition(|fix| fix.is_short());
    assert!(!fit.is_empty() && short.iter().all(|fix| fix.lasts.is_none()), "{short:?}");
    for fix in fit {
        let lasts = fix.lasts.as_ref().expect("it grows on");
        assert!(lasts.steps > 0 && lasts.called.starts_with("pass"), "{fix:?}");
    }
    let growth = diagnosis.findings.iter().find(|of| of.record.kind == FindingKind::Growth);
    assert!(growth.expect("growth").record.title.contains(" per pass, "));
}

/// A validation keeps the graphs of its forces, as `create_graph=True` does
/// (`scripts/reports/schnetpack_trainer.py`). All parameters have 0.7 MiB.
#[test]
fn what_is_larger_than_all_parameters_is_no_gradient() {
    let diagnosis = diagnosed(&load("schnetpack_trainer"));
    let peak = diagnosis.peak.as_ref().expect("a peak");
    let gradients = peak.categories.get("gradient").copied().unwrap_or_default();
    assert!(gradients.0 < 2 << 20, "{gradients}");
    let mut records = diagnosis.findings.iter().map(|entry| &entry.record);
    let is_small = |bytes: Bytes| bytes.0 < 2 << 20;
    assert!(records.all(|one| one.kind != FindingKind::GradientsHeld || is_small(one.bytes)));
}

/// A second model of the same class is loaded by the same line and never trained
/// (`scripts/reports/dpo_precompute.py`).
#[test]
fn parameters_without_gradients_are_told_beside_others_of_their_line() {
    let diagnosis = diagnosed(&load("dpo_precompute"));
    let lines = &diagnosis.peak.as_ref().expect("a peak").lines;
    let line = lines.iter().find(|line| line.site == "dpo_precompute.py:51").expect("a line");
    // Both models have the same parameters.
    let untrained = Bytes(line.bytes.0 / 2);
    let text = format!("{untrained} of it without gradients");
    assert_eq!(line.text.as_deref(), Some(text.as_str()));
}
