//! Conclusions from a trace. They may err, and each has a basis.
//!
//! vramscope-trace says what a file shows. This crate says what it means: categories, steps,
//! phases, shapes, what other settings would do, and claims about them. A claim has its own words;
//! nothing else here formats text for users. Nothing draws, or reads a clock or a file. Long
//! analyses run in slices: see [`vramscope_trace::slicing`].

#![warn(clippy::too_many_lines)]

mod backward_site;
mod category;
mod claims;
mod compare;
mod evidence;
mod ledger;
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
pub use claims::changes::{
    CHANGES, Change, Changes, Cost, EditAt, Features, Offer, Optimization, ProofWords, Recipe,
    RecipeError, Value,
};
pub use claims::findings::{
    Aftermath, Ahead, AlgorithmSearch, BlindSpot, Buckets, CacheTwice, Climb, Context,
    CostlySetting, Creep, Cycle, DeadAtPeak, Facts, Finding, Frozen, Gathered, GradientsCall,
    GradientsHeld, GraphPools, Grows, Growth, GrowthKind, HeldTooLong, Idle, LargerPass, Loaded,
    NoGrad, OnePiece, OomStory, OutOfReach, Overrun, PeakCause, PendingFrees, Pinned, PinnedCause,
    PoolGrowth, RankSkew, Repeated, ReservedPeak, Returned, SegmentChurn, SkewCause, SkewSite,
    StrandedPool, Table, Untrained, Verdict, blind_spots, findings, rank_skew, rank_why,
    rank_words,
};
pub use claims::words::{capitalized, category_label, category_noun, place_words};
pub use claims::{
    About, Basis, ChangeKind, Claim, Common, Covers, EditRecord, Exhibit, FindingId, FindingKind,
    Found, Lasts, Lever, LeverBasis, LeverPlace, Look, NoFindingId, Part, Parts, PeakPart, Phrase,
    Predicted, Scene, Sentence, Severity, Simulated, Spot, SpotWhat, Words, at_or_with, is_detail,
    is_known_part, known_parts, lower_first, peak_parts, plain, site_filter,
};
pub use compare::{HeldBy, NamedFrame, match_stacks};
pub use evidence::passes::{Earlier, Pass, PassBasis, PassKind, Passes, Span};
pub use evidence::proof::{Enabled, Proof as OptimizationProof};
pub use evidence::ranks::{
    ALIKE_PARTS, CallSite, MatrixColumn, MatrixRow, RankCluster, RankFacts, RankMatrix,
    RankOutlier, RankStack, median, rank_matrix, rank_runs,
};
pub use evidence::{Evidence, Materiality, MemoryUse, slot_of_reserved_peak};
pub use ledger::{
    CacheGroup, Capture, GraphPool, Ledger, LedgerSum, MostAtOnce, OneMore, OnePool, Serving,
    ToldBy, WorkspaceOfStream,
};
pub use recipes::{
    Applied, Arena, ChangedAnswer, ChangedRun, Completion, Declined, Editable, Machine, Outcome,
    Rest, ended_by_failure,
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
