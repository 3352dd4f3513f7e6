//! Conclusions from a trace. They may err, and each has a basis.
//!
//! vramscope-trace says what a file shows. This crate says what it means: categories, steps,
//! phases, shapes, findings, and what other settings would do. Nothing here formats text for users,
//! draws, or reads a clock or a file. Long analyses run in slices: see
//! [`vramscope_trace::slicing`].

mod backward_site;
mod category;
mod compare;
mod evidence;
mod findings;
mod ledger;
mod rank_matrix;
mod recipes;
mod shapes;
mod step_floors;
mod step_phases;
mod steps;
mod uses;
mod what_if;

pub use backward_site::{Allocation, BackwardBasis, BackwardSite, backward_site, backward_sites};
pub use category::{
    Categories, Category, CopyKind, Guess, Phase, PhaseSpan, Rule, RuleError, Rules, own_name,
};
pub use compare::{HeldBy, NamedFrame, match_stacks};
pub use evidence::passes::{Pass, PassBasis, PassKind, Passes, Span};
pub use findings::{
    Aftermath, AlgorithmSearch, Basis, BlindSpot, Climb, Context, CostlySetting, Creep, Cycle,
    DeadAtPeak, Dominant, DominantCause, Evidence, Facts, Finding, FindingId, FindingKind,
    GradientsHeld, GraphPools, Growth, GrowthKind, HeldTooLong, LargerStep, MemoryUse, NoFindingId,
    NoGrad, OomStory, OutOfReach, Overrun, Part, PeakCause, PendingFrees, Pinned, PinnedCause,
    PoolGrowth, RankFacts, RankSkew, RankStack, ReservedPeak, Returned, SegmentChurn, Severity,
    SkewCause, SkewSite, StrandedPool, Verdict, blind_spots, findings, rank_runs, rank_skew,
    slot_of_reserved_peak,
};
pub use ledger::{
    CacheGroup, Capture, GraphPool, Ledger, LedgerSum, MostAtOnce, OneMore, OnePool, ToldBy,
    WorkspaceOfStream,
};
pub use rank_matrix::{
    ALIKE_PARTS, EXCEPTION_SITES, MatrixColumn, MatrixRow, RankCluster, RankMatrix, RankOutlier,
    median, rank_matrix,
};
pub use recipes::{
    Applied, Arena, AutocastChange, ChangedAnswer, ChangedRun, Changes, Checkpointed, Declined,
    EditAt, Editable, Enabled, Features, Frozen, NewOptimizer, Optimization, OptimizationKind,
    OptimizationProof, Outcome, Recipe, RecipeError, Rest, When, ended_by_failure,
};
pub use shapes::{Dims, NoShapes, Shape, Shapes, Widths};
pub use step_floors::{Slope, StepFloor, slope, step_floors};
pub use step_phases::{
    CategoryBytes, NextPhase, NextStep, PhasePeak, StepPart, StepPhase, StepPhases,
};
pub use steps::{Repetition, StepSource, Steps};
pub use uses::{FAR_OPERATIONS, Floor, Moment, NextUse, NoUses, UseGroup, UseTrace, Uses};
pub use what_if::{
    Beside, Calibration, Capacity, HOST_SETTING_KEYS, HostChange, HostScenario, HostWhatIf,
    MeasuredMemory, Question, Release, SETTING_KEYS, Scenario, Search, SettingCause, SettingError,
    SimulatedBasis, WhatIf, host_settings_text, parse_settings, recorded_settings, recorded_text,
    settings_text, split_outside_brackets, unmodeled_settings,
};
