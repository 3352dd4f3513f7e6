//! What each block is for: parameter, gradient, activation, and so on, guessed without the model.
//!
//! Three sources, strongest first: a user's rules over frames; the stacks, through the built-in
//! rules; and the block's life against the phases of training. What a forward pass makes and
//! backward frees is an activation, what backward makes and the optimizer still sees is a gradient,
//! what the optimizer makes and never frees is its state. How often a size is among gradients and
//! optimizer states says how many parameters have it: that tells buffers from parameters where both
//! are made by the same `__init__`, and is all there is for blocks from before the recording.

mod life;
mod phases;
mod rules;
mod sizes;
mod stacks;

pub use rules::{Rule, RuleError, Rules};

use crate::slicing::{Budget, run_to_completion};
use crate::trace::Trace;
use serde::{Deserialize, Serialize};
use vramscope_snapshot::Snapshot;

/// What a block is for.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// A trained (or frozen) weight of a model.
    Parameter,
    /// A parameter's gradient, from the backward pass to the optimizer.
    Gradient,
    /// What an optimizer keeps between steps.
    OptimizerState,
    /// A module's tensor that is not trained: running statistics, masks.
    Buffer,
    /// What the program feeds to the model.
    Input,
    /// Made by a forward pass, kept for backward.
    Activation,
    /// Gone before the phase that made it is over.
    Temporary,
    /// A library's scratch memory: cuBLAS, cuDNN.
    Workspace,
    /// Buffers of collectives: gathered parameters, gradients before they are reduced.
    Communication,
    /// Nothing tells.
    #[default]
    Unknown,
}

impl Category {
    /// All of them, in the order in which they are listed.
    pub const ALL: [Self; 10] = [
        Self::Parameter,
        Self::Gradient,
        Self::OptimizerState,
        Self::Buffer,
        Self::Input,
        Self::Activation,
        Self::Temporary,
        Self::Workspace,
        Self::Communication,
        Self::Unknown,
    ];

    /// The name that the program and the page use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Parameter => "parameter",
            Self::Gradient => "gradient",
            Self::OptimizerState => "optimizer_state",
            Self::Buffer => "buffer",
            Self::Input => "input",
            Self::Activation => "activation",
            Self::Temporary => "temporary",
            Self::Workspace => "workspace",
            Self::Communication => "communication",
            Self::Unknown => "unknown",
        }
    }

    /// The category of a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|c| c.name() == name)
    }
}

/// A category, and how sure it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Guess {
    /// What the block is for.
    pub category: Category,
    /// 0 (nothing tells) to 1 (said by the user or by a profile). An ordering, not a probability.
    pub confidence: f32,
}

/// The categories of one device's blocks.
#[derive(Clone, Debug)]
pub struct Categories {
    guesses: Vec<Guess>,
}

impl Categories {
    /// Guess for every block of a trace. Linear in events and frames; sizes are sorted.
    pub fn new(snapshot: &Snapshot, trace: &Trace, rules: &Rules) -> Self {
        run_to_completion(Self::sliced(snapshot, trace, rules, &mut Budget::unlimited()))
    }

    /// The same in slices.
    pub async fn sliced(
        snapshot: &Snapshot,
        trace: &Trace,
        rules: &Rules,
        budget: &mut Budget,
    ) -> Self {
        let says = stacks::read(snapshot, rules, budget).await;
        let phases = phases::Phases::new(snapshot, trace, &says, budget).await;
        let verdicts = life::verdicts(snapshot, trace, &says, &phases, budget).await;
        Self { guesses: sizes::settle(trace, &says, &phases, &verdicts, budget).await }
    }

    /// The guess for a block of [`Trace::blocks`].
    pub fn get(&self, block: u32) -> Guess {
        self.guesses[block as usize]
    }
}

#[cfg(test)]
mod tests;
