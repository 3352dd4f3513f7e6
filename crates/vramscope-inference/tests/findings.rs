//! Findings on recordings of known programs: known faults are found, once and with their line.
//! Healthy runs have no finding above low severity.

use crate::{Device, load, test_data};
use serde_json::Value;
use std::path::{Path, PathBuf};
use vramscope_inference::{
    Basis, Facts, Finding, FindingKind, GrowthKind, HeldTooLong, Phase, Severity, StepSource,
};
use vramscope_snapshot::Snapshot;
use vramscope_units::Bytes;

/// What the recorded programs do, by file name.
fn expected() -> Value {
    serde_json::from_slice(&crate::bytes_of("findings/expect.json")).expect("JSON")
}

fn recorded(name: &str) -> Device {
    Device::new(load(format!("recorded/{name}")))
}

fn with_fault(name: &str) -> Device {
    Device::new(load(format!("findings/{name}.pickle.gz")))
}

/// All frames of a finding's call stacks: `file.py:31`.
fn lines(snapshot: &Snapshot, finding: &Finding) -> Vec<String> {
    let frames = finding.parts.iter().flat_map(|part| snapshot.stack(part.stack));
    frames
        .map(|f| {
            let file = snapshot.text(f.file);
            let name = file.rsplit('/').next().unwrap_or_default();
            format!("{name}:{}", f.line)
        })
        .collect()
}

fn is_loud(finding: &Finding) -> bool {
    finding.severity != Severity::Low
}

#[test]
fn faults_are_found_once_with_their_line() {
    for (name, expected) in expected().as_object().expect("an object") {
        let Some(kind) = expected["kind"].as_str() else { continue };
        let device = with_fault(name);
        let found = device.findings();
        let of_kind: Vec<&Finding> = found.iter().filter(|f| f.kind().name() == kind).collect();
        let [finding] = of_kind.as_slice() else { panic!("{name}: one {kind}, not {found:#?}") };
        // A hook and a list keep tensors that other lines allocate.
        let allocated_elsewhere = ["leak_hooks", "leak_grad_history"].contains(&name.as_str());
        if let (Some(wanted), false) = (expected["lines"].as_array(), allocated_elsewhere) {
            let lines = lines(&device.snapshot, finding);
            assert!(
                wanted.iter().any(|line| lines.contains(&line.as_str().expect("text").to_owned())),
                "{name}: {wanted:?} is not in {lines:?}"
            );
        }
        if kind == "growth" {
            assert!(is_loud(finding), "{name}: {finding:?}");
        }
    }
}

/// The programs know how many bytes a step leaks.
#[test]
fn growth_per_step_is_that_of_the_program() {
    for (name, expected) in expected().as_object().expect("an object") {
        let Some(bytes) = expected["bytes_per_step"].as_u64() else { continue };
        let device = with_fault(name);
        let growth = device.of_kind(FindingKind::Growth);
        let steps = device.steps.as_ref().expect("steps").whole() as u64;
        let per_step = growth[0].bytes / steps;
        // Steps differ, and growth by replacement counts from the first steady step.
        assert!(
            per_step * 2 >= bytes && per_step <= bytes * 2,
            "{name}: {per_step} bytes a step instead of {bytes}"
        );
    }
}

#[test]
fn growth_finds_logits_kept_in_every_step() {
    let device = recorded("gpt_leak.pickle.gz");
    let growth = device.of_kind(FindingKind::Growth);
    let [leak] = growth.as_slice() else { panic!("one leak, not {growth:?}") };
    assert_eq!(lines(&device.snapshot, leak)[0], "p_gpt.py:31");
    // Twelve steps, and eight sequences in each.
    assert_eq!(leak.bytes, 12 * kept_logits(8));
    assert_eq!((leak.events.len(), leak.blocks), (12, 12));
    let Facts::Growth(growth) = &leak.facts else { panic!("{leak:?}") };
    let per_step = Bytes(kept_logits(8));
    assert_eq!(growth.per_step, (per_step, per_step));
    assert_eq!((growth.kind, growth.every, growth.steps), (GrowthKind::Kept, 1, 12));
    assert_eq!((growth.total, growth.sites), (Bytes(12 * kept_logits(8)), 1));
}

/// Bytes of the logits that the leaking programs keep: 32 tokens per sequence, 50,304 entries of
/// the vocabulary (GPT-2's, padded), 4 bytes per entry.
///
/// These factors and the sequences per batch are inferred from the recorded sizes. The programs'
/// own numbers are not in the recordings.
fn kept_logits(sequences: u64) -> u64 {
    sequences * 32 * 50_304 * 4
}

#[test]
fn growth_is_found_without_named_ranges() {
    let mut snapshot = load("recorded/gpt_leak.pickle.gz");
    snapshot.annotations.clear();
    let device = Device::new(snapshot);
    let steps = device.steps.as_ref().expect("steps");
    assert_eq!((steps.source, steps.whole()), (StepSource::OptimizerUpdate, 12));
    let growth = device.of_kind(FindingKind::Growth);
    assert_eq!(growth.iter().map(|f| f.bytes).collect::<Vec<_>>(), [12 * kept_logits(8)]);
}

#[test]
fn growth_is_found_in_the_leaking_rank_only() {
    let leaking = recorded("ranks_fsdp/rank3_memory_snapshot.pickle.gz");
    let growth = leaking.of_kind(FindingKind::Growth);
    let [leak] = growth.as_slice() else { panic!("one leak, not {growth:?}") };
    assert_eq!(lines(&leaking.snapshot, leak)[0], "p_fsdp.py:27");
    // Six steps, with batches of 11, 8, 9, 10, 11 and 8 sequences.
    assert_eq!(leak.bytes, [11, 8, 9, 10, 11, 8].map(kept_logits).iter().sum::<u64>());
    let Facts::Growth(growth) = &leak.facts else { panic!("{leak:?}") };
    assert_eq!((growth.every, growth.steps), (1, 6));
    assert_eq!(growth.per_step, (Bytes(kept_logits(8)), Bytes(kept_logits(11))));
    let healthy = recorded("ranks_fsdp/rank2_memory_snapshot.pickle.gz");
    assert_eq!(healthy.of_kind(FindingKind::Growth), []);
}

#[test]
fn kept_graphs_are_one_finding() {
    let device = with_fault("leak_val_nograd");
    let found = device.of_kind(FindingKind::Growth);
    let Facts::Growth(growth) = &found[0].facts else { panic!("{found:?}") };
    let at = growth.at.expect("a common frame");
    // The line that runs validation, not one of the model's lines.
    assert_eq!(at.line, 24);
    let (kept, all) = growth.activations.expect("activations");
    assert!(growth.sites >= 8 && kept < all && kept.0 > 30_000_000, "{growth:?}");
}

#[test]
fn a_leak_of_optimizers_is_more_than_one_set_of_states() {
    let device = with_fault("leak_opt_again");
    let found = device.of_kind(FindingKind::Growth);
    let Facts::Growth(growth) = &found[0].facts else { panic!("{found:?}") };
    assert!(growth.is_model_state && growth.every == 2, "{growth:?}");
}

#[test]
fn missing_zero_grad_holds_all_gradients_at_the_peak() {
    let device = with_fault("resnet50_nozero");
    let held = device.of_kind(FindingKind::GradientsHeld);
    let [held] = held.as_slice() else { panic!("one finding, not {held:?}") };
    // The gradients of ResNet-50's 25,557,032 parameters, in fp32.
    let bytes = Bytes(25_557_032 * 4);
    let Facts::GradientsHeld(facts) = held.facts else { panic!("{held:?}") };
    assert_eq!((facts.through_forward, facts.at_peak), (bytes, bytes));
    assert_eq!((facts.passes, facts.of_passes), (4, 4));
    // Backward's first allocations peak, when it has made no gradients yet.
    assert!(facts.saving <= bytes && facts.saving.0 > bytes.0 / 2, "{facts:?}");
    assert_eq!((held.phase, held.basis), (Some(Phase::Backward), Basis::Estimate));
}

#[test]
fn a_variable_holds_its_old_value_while_the_new_one_is_computed() {
    for name in ["t20/linear_seed_all.pickle.gz", "t26/linear_seed_python.pickle"] {
        let device = recorded(name);
        let held = device.of_kind(FindingKind::HeldTooLong);
        let [held] = held.as_slice() else { panic!("{name}: one finding, not {held:?}") };
        // An output of 5,000 x 50,000 floats.
        assert_eq!((held.bytes, held.blocks), (5_000 * 50_000 * 4, 1));
        assert!(lines(&device.snapshot, held).contains(&"p_linear.py:9".to_owned()), "{name}");
        let Facts::HeldTooLong(HeldTooLong::Variable { results: 2, .. }) = held.facts else {
            panic!("{name}: {held:?}")
        };
    }
}

#[test]
fn copies_by_two_lines_are_low() {
    let device = with_fault("s7_two_copies");
    let held = device.of_kind(FindingKind::HeldTooLong);
    assert_eq!(held[0].facts, {
        Facts::HeldTooLong(HeldTooLong::Copies { each: Bytes(2_143_289_344), lines: 2 })
    });
    assert_eq!(held[0].severity, Severity::Low);
}

/// Layers repeat within a step. They are no steps, and what they keep until the optimizer runs is
/// no leak (24 layers with one named step; 12 layers without a name).
#[test]
fn layers_are_no_steps() {
    for (name, source) in [
        ("s2_one_step_24_layers", StepSource::OptimizerStep),
        ("s2_one_step_no_annotation", StepSource::OptimizerUpdate),
    ] {
        let device = with_fault(name);
        let steps = device.steps.as_ref().expect("a step");
        assert_eq!((steps.source, steps.whole()), (source, 1), "{name}");
        assert_eq!(device.of_kind(FindingKind::Growth), [], "{name}");
    }
}

/// Kinds that a recording may have above low severity: what its program does.
fn allowed(path: &Path, expected: &Value) -> Vec<String> {
    let name = path.file_name().expect("a name").to_string_lossy();
    let stem = name.split('.').next().unwrap_or_default();
    let program = &expected[stem];
    let mut allowed: Vec<String> = ["kind", "allow"]
        .iter()
        .flat_map(|key| match &program[*key] {
            Value::Array(kinds) => kinds.clone(),
            Value::Null => Vec::new(),
            kind => vec![kind.clone()],
        })
        .map(|kind| kind.as_str().expect("text").to_owned())
        .collect();
    let also: &[&str] = match stem {
        "gpt_leak" | "rank3_memory_snapshot" | "prefetch_queue" => &["growth"],
        "linear_seed_python" | "linear_seed_all" | "logits_till_next" => &["held_too_long"],
        "oom_observer" | "oom_expandable" => &["oom", "churn"],
        "streams" => &["pending_free"],
        "gpt_max_split" => &["churn"],
        _ => &[],
    };
    allowed.extend(also.iter().map(|kind| (*kind).to_owned()));
    // More reserved than needed is a fact, whatever its severity.
    allowed.push("reserved".to_owned());
    allowed
}

#[test]
fn healthy_recordings_have_no_loud_finding() {
    let expected = expected();
    let mut count = 0;
    let folders = [
        "recorded",
        "recorded/t20",
        "recorded/t26",
        "recorded/t29",
        "recorded/misc",
        "recorded/ranks_fsdp",
        "truth",
        "findings",
    ];
    for folder in folders {
        let mut paths: Vec<PathBuf> = std::fs::read_dir(test_data().join(folder))
            .expect("the folder is there")
            .map(|e| e.expect("it can be listed").path())
            .filter(|p| p.extension().is_some_and(|e| e == "pickle" || e == "gz"))
            .collect();
        paths.sort();
        for path in paths {
            let allowed = allowed(&path, &expected);
            for is_named in [true, false] {
                let mut snapshot = load(&path);
                if snapshot.devices.is_empty() {
                    continue;
                }
                if !is_named {
                    snapshot.annotations.clear();
                }
                let found = Device::new(snapshot).findings();
                let is_wrong =
                    |f: &&Finding| is_loud(f) && !allowed.contains(&f.kind().name().to_owned());
                let wrong: Vec<&Finding> = found.iter().filter(is_wrong).collect();
                assert!(wrong.is_empty(), "{} named {is_named}: {wrong:#?}", path.display());
                count += 1;
            }
        }
    }
    assert!(count > 120, "only {count} recordings were checked");
}

/// A server that keeps the cache of each request has its peak of 70 MiB again after 74 more. A
/// cache that grows with each token of one request would need 1,700.
#[test]
fn growth_of_repetitions_matters_by_its_rate() {
    for (path, severity, rate) in [
        ("findings/kv_session.pickle.gz", Severity::Medium, 995_328),
        ("truth/inf_catcache.pickle.gz", Severity::Low, 65_536),
    ] {
        let found = Device::new(load(path)).of_kind(FindingKind::Growth);
        let [finding] = found.as_slice() else { panic!("{path}: one finding, not {found:?}") };
        let Facts::Growth(growth) = &finding.facts else { panic!("{finding:?}") };
        assert_eq!((finding.severity, growth.rate), (severity, Bytes(rate)), "{path}");
    }
}
