//! Memory optimizations that a recording has already, with proof in a sentence.

use crate::derived::Derived;
use crate::target::Target;
use crate::text::{label_of, place_of};
use serde::Serialize;
pub use vramscope_inference::Enabled;
use vramscope_inference::{
    Features, Optimization, ProofWords, Recipe, recorded_settings, settings_text,
    split_outside_brackets,
};
use vramscope_snapshot::FrameId;
use vramscope_trace::slicing::Budget;
use vramscope_units::Bytes;

/// A memory optimization, and whether the recording has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OptimizationRecord {
    /// The name: that of the change that `what-if --apply` takes, or of a setting.
    pub name: String,
    /// `on`, `off` or `partly`.
    pub state: Enabled,
    /// What proves it, in a sentence.
    pub proof: String,
}

/// The optimizations that the recording of a device tells about, those that are on first.
pub async fn optimizations(target: Target<'_>, budget: &mut Budget) -> Vec<OptimizationRecord> {
    let Some(features) = features(target, budget).await else { return Vec::new() };
    let record = |of: &Optimization| OptimizationRecord {
        name: of.change.listed().to_owned(),
        state: of.state,
        proof: proof(target, of, &features.optimizers),
    };
    let mut all: Vec<OptimizationRecord> = features.optimizations.iter().map(record).collect();
    all.extend(settings(target));
    all.sort_by_key(|of| match of.state {
        Enabled::On => 0,
        Enabled::Partly => 1,
        Enabled::Off => 2,
    });
    all
}

/// The features of a device's run; `None` for host memory, and without history.
pub(crate) async fn features(target: Target<'_>, budget: &mut Budget) -> Option<Features> {
    let needs = [
        Derived::Carving,
        Derived::Tensors,
        Derived::Categories,
        Derived::Steps,
        Derived::Passes,
        Derived::Dims,
    ];
    for what in needs {
        target.entry.derive(what, target.index, budget).await;
    }
    let dims = target.entry.known_dims(target.index);
    Features::find(target.entry.evidence(target.index), dims, budget).await
}

/// What proves that the recording has the change of a recipe; `None` unless it has.
pub(crate) fn proof_of(target: Target<'_>, features: &Features, recipe: &Recipe) -> Option<String> {
    let is_of = |of: &&Optimization| {
        of.change.listed() == recipe.change.form || of.change.listed() == recipe.change.name()
    };
    // Parts of a batch have parts.
    let of = features.optimizations.iter().find(is_of).filter(|of| !of.change.is_smaller_batch)?;
    (of.state == Enabled::On).then(|| proof(target, of, &features.optimizers))
}

/// The proof of an optimization in a sentence.
fn proof(target: Target<'_>, of: &Optimization, optimizers: &[String]) -> String {
    let snapshot = target.snapshot();
    let line = |frame: Option<FrameId>| place_of(snapshot, snapshot.frame(frame?));
    let by = of.proof.by.map(|frame| label_of(snapshot, snapshot.frame(frame)));
    of.proof_text(&ProofWords {
        at: line(of.proof.site).map_or_else(String::new, |place| format!(" at {place}")),
        by: by.map_or_else(String::new, |label| format!(" ({label})")),
        other: line(of.proof.other),
        count: of.proof.count,
        of: of.proof.of,
        bytes: Bytes(of.proof.bytes),
        at_once: of.proof.at_once,
        optimizer: match optimizers {
            [one] => one.clone(),
            _ => "the optimizer".to_owned(),
        },
    })
}

/// Settings of the allocator that save memory, if the file has settings.
fn settings(target: Target<'_>) -> Vec<OptimizationRecord> {
    let snapshot = target.snapshot();
    let settings = recorded_settings(snapshot, &target.trace().device);
    let is_written = snapshot.settings.iter().any(|(key, _)| key == "expandable_segments");
    let record =
        |name: &str, state, proof| OptimizationRecord { name: name.to_owned(), state, proof };
    let mut all = Vec::new();
    if settings.expandable_segments {
        let proof = "The allocator has expandable_segments:True.".to_owned();
        all.push(record("expandable_segments:True", Enabled::On, proof));
    } else if is_written {
        let proof = "The allocator has expandable_segments:False.".to_owned();
        all.push(record("expandable_segments:True", Enabled::Off, proof));
    }
    let others = settings_text(&settings);
    for item in split_outside_brackets(&others) {
        let name = item.split(':').next().unwrap_or_default();
        if !item.is_empty() && name != "expandable_segments" {
            all.push(record(name, Enabled::On, format!("The allocator has {item}.")));
        }
    }
    all
}
