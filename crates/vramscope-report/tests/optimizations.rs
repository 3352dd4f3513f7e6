//! Memory optimizations that a recording has, and changes between two recordings of a program.
//!
//! `test_data/twins/manifest.json` has the change that was made in each program, and the peaks that
//! PyTorch measured with it.

use serde_json::Value;
use std::path::{Path, PathBuf};
use vramscope_report::diff::{ProgramChanges, SideProgram, found_changes, program_changes};
use vramscope_report::optimizations::{Enabled, optimizations};
use vramscope_report::peak::BandKind;
use vramscope_report::side::Side;
use vramscope_report::{FileReader, LoadedFile};
use vramscope_trace::slicing::now;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data/twins")
}

fn load(file: &str) -> LoadedFile {
    let bytes = std::fs::read(folder().join(file)).expect("a file of test_data");
    let mut reader = FileReader::new("file", bytes.len() as u64);
    bytes.chunks(1 << 16).try_for_each(|chunk| reader.feed(chunk)).expect("a snapshot");
    reader.finish().expect("a snapshot")
}

fn pairs() -> Vec<Value> {
    let text = std::fs::read_to_string(folder().join("manifest.json")).expect("a manifest");
    let manifest: Value = serde_json::from_str(&text).expect("JSON");
    manifest["pairs"].as_array().expect("a list").clone()
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

/// Whether a recording has an optimization, with the proof.
fn state(file: &str, name: &str) -> Option<(Enabled, String)> {
    let file = load(file);
    let target = file.target(0, 0).expect("a device");
    let all = now(async |budget| optimizations(target, budget).await);
    all.into_iter().find(|of| of.name == name).map(|of| (of.state, of.proof))
}

/// The changes from one recording to another.
fn changes(a: &str, b: &str) -> Option<ProgramChanges> {
    let (a, b) = (load(a), load(b));
    let (a, b) = (a.target(0, 0).expect("a device"), b.target(0, 0).expect("a device"));
    now(async |budget| {
        let before = SideProgram::of(a, budget).await?;
        let after = SideProgram::of(b, budget).await?;
        let side = Side::new(b, BandKind::Active, budget).await;
        let found = found_changes(&before, &after)?;
        Some(program_changes(a, &found, [&before, &after], &side, budget).await)
    })
}

#[test]
fn a_changed_program_has_its_optimization_and_the_unchanged_one_has_not() {
    use Enabled::{Off, On, Partly};
    let known = [
        ("checkpoint:half", "checkpoint", Off, Partly),
        ("optimizer:8bit", "optimizer:8bit", Off, On),
        ("chunked_loss:8", "chunked_loss", Off, On),
        ("zero_grad:late", "zero_grad:early", On, Off),
        ("optimizer_in_backward", "optimizer_in_backward", Off, On),
        ("eval:no_grad", "eval:no_grad", Off, On),
        ("foreach:off", "foreach:off", Off, On),
        ("", "expandable_segments:True", Off, On),
    ];
    let mut seen = 0;
    for pair in pairs() {
        let recipe = text(&pair, "recipe");
        let Some((_, name, before, after)) = known.iter().find(|of| of.0 == recipe) else {
            continue;
        };
        let states = ["base", "file"].map(|key| state(text(&pair, key), name));
        let states = states.map(|state| state.map(|state| state.0));
        assert_eq!(states, [Some(*before), Some(*after)], "{}", text(&pair, "file"));
        seen += 1;
    }
    assert_eq!(seen, known.len());
}

#[test]
fn proof_has_a_line_and_a_number() {
    let proof = state("gpt_flash_checkpoint_half.pickle.gz", "checkpoint").expect("a state").1;
    for part in ["3 of 6 blocks", "models.py:63", "recompute_fn", "models.py:65"] {
        assert!(proof.contains(part), "{part}: {proof}");
    }
    let proof = state("gpt_flash_chunked_loss_8.pickle.gz", "chunked_loss").expect("a state").1;
    assert!(proof.starts_with("8 parts a pass at train.py:"), "{proof}");
}

#[test]
fn a_comparison_names_the_change_and_what_was_predicted() {
    for pair in pairs() {
        let file = text(&pair, "file");
        let found = changes(text(&pair, "base"), file).unwrap_or_else(|| panic!("{file}: nothing"));
        let recipes: Vec<&str> =
            Some(text(&pair, "recipe")).filter(|r| !r.is_empty()).into_iter().collect();
        assert_eq!(found.recipes, recipes, "{file}");
        assert_eq!(found.conf, text(&pair, "settings"), "{file}");
        assert_eq!(Some(found.active_peak.0), pair["active"].as_u64(), "{file}");
        assert_eq!(Some(found.reserved_peak.0), pair["reserved"].as_u64(), "{file}");
        let error = found.active_percent.expect("a prediction");
        assert_eq!(found.error_percent.is_none(), recipes.is_empty(), "{file}");
        assert!(error.abs() <= found.error_percent.unwrap_or(0.5), "{file}: {error}");
        assert!(found.texts().len() <= 3, "{:?}", found.texts());
    }
}

#[test]
fn nothing_changed_between_a_recording_and_itself() {
    for file in ["gpt_flash.pickle.gz", "gpt_eval.pickle.gz"] {
        assert_eq!(changes(file, file), None, "{file}");
    }
    assert_eq!(changes("gpt_flash.pickle.gz", "gpt_eval.pickle.gz"), None, "two models");
}

#[test]
fn an_optimization_that_is_missing_is_named_without_a_prediction() {
    let found = changes("gpt_flash_optimizer_8bit.pickle.gz", "gpt_flash.pickle.gz");
    let found = found.expect("changes");
    assert_eq!(found.undone, ["optimizer:8bit"]);
    assert_eq!(found.predicted_active_peak, None);
    // A checkpointed evaluation keeps as little with a graph as without.
    let found = changes("gpt_eval_eval_no_grad.pickle.gz", "gpt_eval_checkpoint_all.pickle.gz");
    let found = found.expect("changes");
    let why = "the second recording does not tell whether it has eval:no_grad";
    assert_eq!(found.declined.as_deref(), Some(why), "{found:?}");
    // Gradients that die in backward once looked like those of frozen parameters.
    let found = changes("gpt_flash_optimizer_in_backward.pickle.gz", "gpt_flash.pickle.gz");
    let found = found.expect("changes");
    assert!(found.undone.iter().any(|name| name == "optimizer_in_backward"), "{found:?}");
    assert_eq!(found.recipes, Vec::<String>::new());
}
