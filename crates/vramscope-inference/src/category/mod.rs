//! The category of each block (parameter, gradient, activation, and so on), guessed without access
//! to the model.
//!
//! The sources, strongest first:
//!
//! 1. The user's rules over stack frames.
//! 2. The built-in rules over stack frames.
//! 3. The life of the block relative to the phases of training. A block that a forward pass
//!    allocates and backward frees is an activation. A block that backward allocates and the
//!    optimizer still sees is a gradient. A block that the optimizer allocates and never frees is
//!    optimizer state.
//! 4. The number of gradients and optimizer states of a size, which is the number of parameters of
//!    that size. It separates parameters from buffers where one `__init__` allocates both. It is
//!    the only evidence for blocks from before the recording.

mod before;
mod copies;
mod counts;
mod evaluation;
mod event_set;
mod graph;
mod groups;
mod kept_graphs;
mod life;
mod lineage;
mod outputs;
mod own_name;
mod phases;
mod rules;
mod sizes;
mod spans;
mod stacks;
mod updates;
mod window;
mod workspace;

pub use own_name::own_name;
pub use rules::{Rule, RuleError, Rules};
pub use spans::{Phase, PhaseSpan};

use serde::{Deserialize, Serialize};
use vramscope_snapshot::Snapshot;
use vramscope_trace::Trace;
use vramscope_trace::slicing::{Boxed, Budget};
use vramscope_units::named;

named! {
    /// The purpose of a block.
    #[derive(
        Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
    )]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    #[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
    #[serde(rename_all = "snake_case")]
    pub enum Category {
        /// A trained or frozen weight of a model.
        Parameter = "parameter",
        /// A parameter's gradient, from the backward pass to the optimizer.
        Gradient = "gradient",
        /// A tensor that an optimizer keeps between steps.
        OptimizerState = "optimizer_state",
        /// A module's tensor that is not trained: running statistics, masks.
        Buffer = "buffer",
        /// Data that the program feeds to the model.
        Input = "input",
        /// Allocated by a forward pass, and kept for backward.
        Activation = "activation",
        /// Freed before the phase that allocated it is over.
        Temporary = "temporary",
        /// A library's scratch memory: cuBLAS, cuDNN.
        Workspace = "workspace",
        /// Buffers of collectives: gathered parameters, gradients before they are reduced.
        Communication = "communication",
        /// Keys and values of earlier tokens, or another store that inference keeps between forward
        /// passes.
        Cache = "cache",
        /// No evidence, or equal evidence for two categories.
        #[default]
        Unknown = "unknown",
    }
}

impl Category {
    /// All categories in the order of bars and bands: from what stays to what comes and goes.
    pub const STACKED: [Self; 11] = [
        Self::Parameter,
        Self::Buffer,
        Self::OptimizerState,
        Self::Cache,
        Self::Workspace,
        Self::Input,
        Self::Gradient,
        Self::Activation,
        Self::Communication,
        Self::Temporary,
        Self::Unknown,
    ];

    /// The category with a [`Category::name`].
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|c| c.name() == name)
    }
}

/// Why a block has its category, weakest reason first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Basis {
    /// None, or only that its line makes many tensors.
    #[default]
    Line,
    /// Call stacks, sizes and lives.
    Life,
    /// The user's rule or the file states it.
    Stated,
}

/// A category, and what it rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Guess {
    /// The category.
    pub category: Category,
    /// Two categories that are equally likely. Only where `category` is unknown.
    pub candidates: Option<[Category; 2]>,
    basis: Basis,
}

impl Guess {
    /// A guess of one category.
    pub const fn new(category: Category) -> Self {
        Self { category, candidates: None, basis: Basis::Life }
    }

    /// A category that the user's rule or the file states.
    const fn stated(category: Category) -> Self {
        Self { category, candidates: None, basis: Basis::Stated }
    }

    /// Two categories that are equally likely.
    pub const fn either(first: Category, second: Category) -> Self {
        Self { category: Category::Unknown, candidates: Some([first, second]), basis: Basis::Line }
    }
}

/// Why the program has a copy of weights or of an optimizer's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyKind {
    /// `autocast` keeps the weights in 16 bits until its end.
    Autocast,
    /// One line copies all tensors of a model or of an optimizer, for example for a checkpoint.
    Checkpoint,
}

/// The categories of one device's blocks.
#[derive(Clone, Debug)]
pub struct Categories {
    guesses: Vec<Guess>,
    /// Blocks that are copies, ascending.
    copies: Vec<(u32, CopyKind)>,
    phases: Vec<PhaseSpan>,
}

impl Categories {
    /// Guesses the category of every block of a trace. Takes time linear in events and frames, plus
    /// sorting block sizes.
    #[inline(never)]
    pub fn new<'a>(
        snapshot: &'a Snapshot,
        trace: &'a Trace,
        rules: &'a Rules,
        budget: &'a mut Budget,
    ) -> Boxed<'a, Self> {
        Box::pin(async move {
            let stacks = stacks::hints(snapshot, trace, rules, budget).await;
            let phases = phases::Phases::new(snapshot, trace, &stacks, budget).await;
            let window = window::Window { snapshot, trace, stacks: &stacks, phases: &phases };
            let verdicts = life::verdicts(window, budget).await;
            let lineage = lineage::lineage(window, budget).await;
            let (guesses, copies) = sizes::resolve(window, &verdicts, &lineage, budget).await;
            Self { guesses, copies, phases: phases.spans }
        })
    }

    /// Sets the category of a block whose tensor the program recorded. It wins over what is
    /// inferred, but not over a user's rule.
    pub fn record(&mut self, block: u32, category: Category) {
        let guess = self.guesses.get_mut(block as usize);
        if let Some(guess) = guess.filter(|guess| guess.basis < Basis::Stated) {
            *guess = Guess::stated(category);
        }
    }

    /// The phases of training in the window, in order. They touch each other and cover every event
    /// of the window. Empty if no event shows a phase.
    pub fn phases(&self) -> &[PhaseSpan] {
        &self.phases
    }

    /// What a block is a copy for. The block has the category of what it copies. `None` if it is no
    /// copy.
    pub fn copy(&self, block: u32) -> Option<CopyKind> {
        let at = self.copies.binary_search_by_key(&block, |copy| copy.0).ok()?;
        Some(self.copies[at].1)
    }

    /// The guess for a block of [`Trace::blocks`].
    pub fn get(&self, block: u32) -> Guess {
        self.guesses[block as usize]
    }
}

#[cfg(test)]
mod kinds;
#[cfg(test)]
mod programs;
#[cfg(test)]
mod tests;
