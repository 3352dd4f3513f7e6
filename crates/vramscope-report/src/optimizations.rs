//! Memory optimizations that a recording has already, with proof in a sentence.

use crate::derived::Derived;
use crate::target::Target;
use crate::text::{label_of, place_of};
use serde::Serialize;
pub use vramscope_inference::Enabled;
use vramscope_inference::{
    Features, Optimization, OptimizationKind, OptimizationProof, recorded_settings, settings_text,
    split_outside_brackets,
};
use vramscope_snapshot::FrameId;
use vramscope_trace::slicing::Budget;
use vramscope_units::{Bytes, grouped};

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
        name: of.kind.name().to_owned(),
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
pub(crate) fn proof_of(target: Target<'_>, features: &Features, recipe: &str) -> Option<String> {
    use OptimizationKind::{Checkpoint, ChunkedLoss, Shard};
    let is_of = |of: &&Optimization| {
        let name = of.kind.name();
        // `checkpoint` stands for `checkpoint:all`, `shard` for `shard:8`.
        let is_any = matches!(of.kind, Checkpoint | ChunkedLoss | Shard);
        recipe == name || (is_any && recipe.split(':').next() == Some(name))
    };
    let of = features.optimizations.iter().find(is_of)?;
    (of.state == Enabled::On).then(|| proof(target, of, &features.optimizers))
}

/// The words for frames of a snapshot.
struct Words<'a> {
    target: Target<'a>,
    proof: OptimizationProof,
}

impl Words<'_> {
    /// ` at models.py:63`; empty if the line is not known.
    fn at(&self, frame: Option<FrameId>) -> String {
        self.line(frame).map_or(String::new(), |place| format!(" at {place}"))
    }

    fn line(&self, frame: Option<FrameId>) -> Option<String> {
        let snapshot = self.target.snapshot();
        place_of(snapshot, snapshot.frame(frame?))
    }

    /// ` (checkpoint.py:1555 recompute_fn)`; empty if the function is not known.
    fn by(&self) -> String {
        let snapshot = self.target.snapshot();
        let label = |frame| label_of(snapshot, snapshot.frame(frame));
        self.proof.by.map_or(String::new(), |frame| format!(" ({})", label(frame)))
    }

    fn count(&self) -> String {
        grouped(self.proof.count.into())
    }

    /// `1 cast`, `12 casts`.
    fn counted(&self, what: &str) -> String {
        plural(self.proof.count, what)
    }
}

/// `1 pass`, `12 passes`.
fn plural(count: u32, what: &str) -> String {
    let words = match count {
        1 => what.to_owned(),
        _ if what.ends_with('s') => format!("{what}es"),
        _ if what.ends_with('y') => format!("{}ies", &what[..what.len() - 1]),
        _ => format!("{what}s"),
    };
    format!("{} {words}", grouped(count.into()))
}

fn proof(target: Target<'_>, of: &Optimization, optimizers: &[String]) -> String {
    use Enabled::{Off, On, Partly};
    use OptimizationKind as Kind;
    let words = Words { target, proof: of.proof };
    let (at, by, bytes) = (words.at(of.proof.site), words.by(), Bytes(of.proof.bytes));
    let parts = grouped(of.proof.of.into());
    let named = match optimizers {
        [one] => one.clone(),
        _ => "the optimizer".to_owned(),
    };
    let text = match (of.kind, of.state) {
        (Kind::Checkpoint, Off) if of.proof.count > 0 && of.proof.site.is_some() => format!(
            "checkpoint is called for {}{at}, and backward computes nothing again",
            words.counted("block")
        ),
        (Kind::Checkpoint, Off) => {
            format!("no block of the model is computed again in {}", words.counted("backward pass"))
        }
        (Kind::Checkpoint, _) => {
            let other = words.line(of.proof.other);
            let rest = other.filter(|_| of.state == Partly);
            let rest = rest.map_or(String::new(), |line| format!(", the others run at {line}"));
            format!(
                "{} of {parts} blocks run under checkpoint{at}, backward computes {bytes} again\
                 {by}{rest}",
                words.count()
            )
        }
        (Kind::OffloadActivations, _) => {
            format!("{} with {bytes} come back from the host in a step{by}", words.counted("block"))
        }
        (Kind::ChunkedLoss, On) if of.proof.bytes == 0 => format!("a kernel makes no logits{by}"),
        (Kind::ChunkedLoss, On) => {
            format!("{} a pass{at}, the largest block has {bytes}{by}", words.counted("part"))
        }
        (Kind::ChunkedLoss, Partly) => {
            format!("{} a pass{at}, and all wait for backward", words.counted("part"))
        }
        (Kind::ChunkedLoss, Off) => format!("logits of a whole pass{at}: {bytes}"),
        (Kind::UpcastOff, On) => format!("logits{at} stay in 16 bits: {bytes}"),
        (Kind::UpcastOff, _) => format!("logits are copied to 32 bits{at}: {bytes}"),
        (Kind::FlashAttention, On) => format!("no map of attention is kept{by}"),
        (Kind::FlashAttention, _) => {
            format!("{} kept for backward{at}: {bytes}", words.counted("map"))
        }
        (Kind::Accumulate, _) => {
            let steps = plural(of.proof.of, "step");
            let passes = words.counted("backward pass");
            format!("{passes} before the optimizer in each of {steps}")
        }
        (Kind::Autocast, On) => {
            let casts = words.counted("cast");
            format!("{casts} of weights to 16 bits in a pass{at}: {bytes}{by}")
        }
        (Kind::Autocast, _) => {
            let passes = words.counted("forward pass");
            format!("no weight is cast to 16 bits in {passes}")
        }
        (Kind::AutocastCacheOff, On) => {
            format!("{} without use in backward die after their use{at}", words.counted("cast"))
        }
        (Kind::AutocastCacheOff, _) => {
            let casts = words.counted("cast");
            format!("{casts} without use in backward live to the end of the pass{at}: {bytes}")
        }
        (Kind::ParametersBf16, On) => {
            format!("{} with {bytes} have 2 bytes an element", words.counted("parameter"))
        }
        (Kind::ParametersBf16, _) => {
            format!("{} with {bytes} have 4 bytes an element", words.counted("parameter"))
        }
        (Kind::ForeachOff, On) => {
            format!("{named} updates one parameter after the other{at}{by}")
        }
        (Kind::FusedOptimizer, On) => {
            format!(
                "{named} makes no temporaries, and keeps {} on the device{at}{by}",
                words.counted("step counter")
            )
        }
        (Kind::ForeachOff | Kind::FusedOptimizer, _) => {
            format!("{} of {named} in a step{at}{by}", words.counted("temporary"))
        }
        (Kind::EightBitOptimizer, On) => {
            format!("{} of {named}{at} have 1 byte an element: {bytes}", words.counted("state"))
        }
        (Kind::NoStates, On) => {
            format!("{named} keeps no states for {}", words.counted("gradient"))
        }
        (Kind::EightBitOptimizer | Kind::NoStates, _) => {
            format!("{} of {named}{at}: {bytes}", words.counted("state"))
        }
        (Kind::OptimizerInBackward, On) => {
            format!("{named} runs {} times within one backward pass{at}{by}", words.count())
        }
        (Kind::OptimizerInBackward, _) => {
            format!("{} with {bytes} wait for the optimizer", words.counted("gradient"))
        }
        (Kind::ZeroGradEarly, On) => {
            let gradients = words.counted("gradient");
            format!("{gradients} with {bytes} are freed before the next forward pass")
        }
        (Kind::ZeroGradEarly, _) if of.proof.of == 1 => {
            format!("{} with {bytes} are never freed", words.counted("gradient"))
        }
        (Kind::ZeroGradEarly, _) => {
            format!("{} with {bytes} live in the next forward pass", words.counted("gradient"))
        }
        (Kind::EvaluationNoGrad, On) => {
            format!("an evaluation makes {bytes}{at}, and keeps none of it for backward")
        }
        (Kind::EvaluationNoGrad, _) => format!("an evaluation keeps a graph of {bytes}{at}"),
        (Kind::Shard, _) => {
            format!(
                "{} of gathered parameters in a step, up to {bytes}{by}",
                words.counted("block")
            )
        }
    };
    format!("{}.", capitalized(&text))
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
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
