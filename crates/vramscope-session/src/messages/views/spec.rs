//! The scheduling of each query: its class, its cancellation and its requirements, in one table.

use super::Query;
use vramscope_report::Derived::{
    self, Carving, Categories, Context, Dims, Findings, LargestFree, Modules, Pools, Simulated,
    Steps, Uses, WhatIf,
};

/// The priority of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryClass {
    /// Answered before tiles, as long as it takes few slices.
    Short,
    /// Answered after tiles, because it takes many slices.
    Long,
}

/// The scheduling of a query.
#[derive(Clone, Copy, Debug)]
pub struct QuerySpec {
    /// The priority.
    pub class: QueryClass,
    /// True if a newer query of this kind cancels older ones. Canceled queries are not answered.
    pub replaces: bool,
    /// Derived data that the answer needs.
    pub needs: &'static [Derived],
}

macro_rules! specs {
    ($($query:ident: $class:ident, $replaces:ident, [$($need:ident),*];)*) => {
        impl Query {
            /// The scheduling of this query.
            pub fn spec(&self) -> QuerySpec {
                match self {
                    $(Self::$query { .. } => QuerySpec {
                        class: QueryClass::$class,
                        replaces: specs!(@$replaces),
                        needs: &[$($need),*],
                    },)*
                }
            }

            /// Kinds of queries that newer ones cancel. The page must not wait for their answers.
            #[cfg(test)]
            pub(crate) fn replaced() -> Vec<&'static str> {
                [$((stringify!($query), specs!(@$replaces))),*]
                    .into_iter()
                    .filter_map(|(query, replaces)| replaces.then_some(query))
                    .collect()
            }
        }
    };
    (@replaces) => { true };
    (@queues) => { false };
}

specs! {
    Card:           Long,  queues,   [Carving, Categories, Findings];
    Summary:        Long,  queues,   [Carving, Categories, Steps, Findings];
    SimulatedSummary: Long, queues,  [Carving, Categories, Steps, Simulated, WhatIf];
    SummaryPlot:    Long,  queues,   [Carving, Categories, Steps, Findings];
    Levers:         Long,  replaces, [Carving, Categories, Steps, Simulated, WhatIf];
    LeverSettings:  Long,  replaces, [WhatIf];
    Minimap:        Long,  queues,   [Carving, Categories, Pools, Findings];
    Tracks:         Short, replaces, [];
    Phases:         Long,  replaces, [Categories, Steps];
    FoldedSteps:    Long,  replaces, [Categories, Steps];
    Legend:         Short, replaces, [Carving, Categories];
    ReservedLine:   Short, replaces, [];
    DeadLine:       Short, replaces, [Uses];
    FreeLines:      Short, replaces, [LargestFree];
    Moments:        Long,  replaces, [Categories, Steps];
    PinnedLine:     Long,  replaces, [Categories, Steps];
    Limit:          Short, replaces, [];
    Peak:           Long,  queues,   [Carving, Categories, Pools, Context, Dims];
    PeakLens:       Long,  replaces, [Carving, Categories, Steps];
    StateAt:        Short, replaces, [Carving, Categories, Pools];
    EventAt:        Short, queues,   [];
    Markers:        Short, replaces, [];
    Range:          Short, replaces, [];
    Changes:        Short, replaces, [Carving, Categories];
    Events:         Short, replaces, [];
    Blocks:         Short, replaces, [Carving, Categories, Dims];
    Export:         Long,  queues,   [Carving, Categories, Dims];
    Record:         Long,  queues,   [Carving, Categories, Dims];
    Convert:        Long,  queues,   [Carving, Categories, Steps, LargestFree];
    Report:         Long,  queues,   [Carving, Categories, Steps, Findings, Simulated];
    Markdown:       Long,  queues,   [Carving, Categories, Steps, Simulated, WhatIf];
    Next:           Short, queues,   [Carving, Categories, Steps, Context];
    Hit:            Short, replaces, [];
    GroupLabels:    Long,  replaces, [Carving, Categories, Steps];
    GroupTerms:     Long,  queues,   [Categories];
    BlockRun:       Long,  replaces, [Categories];
    StepRange:      Long,  replaces, [Categories, Steps];
    Names:          Short, replaces, [];
    Search:         Short, replaces, [Carving, Categories, Steps];
    Group:          Short, replaces, [Carving, Categories, Steps];
    Segments:       Short, replaces, [Carving];
    SegmentRows:    Short, replaces, [Carving];
    SegmentUses:    Short, replaces, [Carving];
    Segment:        Short, queues,   [Carving, Categories];
    SegmentOf:      Short, queues,   [Carving];
    Map:            Short, replaces, [Carving, Categories];
    Flame:          Short, queues,   [Carving];
    FlameBoxes:     Short, replaces, [Carving];
    FlameNode:      Short, queues,   [Carving];
    Modules:        Long,  replaces, [Categories, Steps, Modules, Dims];
    Holders:        Short, replaces, [Categories];
    Code:           Short, replaces, [Carving, Categories, Steps];
    Source:         Short, replaces, [Categories, Steps];
    Sandwich:       Short, replaces, [Carving, Categories, Steps];
    Frame:          Short, queues,   [Categories];
    Side:           Long,  queues,   [Carving, Categories, Steps, Findings];
    Settings:       Long,  queues,   [Carving, Categories, Steps, Dims];
    Reserved:       Long,  replaces, [WhatIf];
    Scenario:       Short, replaces, [WhatIf];
    SimulatedCurve: Short, replaces, [WhatIf];
    Picture:        Long,  queues,   [Carving, Pools];
}
