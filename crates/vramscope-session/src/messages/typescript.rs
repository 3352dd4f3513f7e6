//! Generates the TypeScript types of the protocol.
//!
//! `cargo xtask types` runs `UPDATE_GENERATED=1 cargo test -p vramscope-session typescript`, which
//! writes the file. Without the variable the test fails if the committed file is stale.

use super::views::*;
use super::*;
use std::fmt::Write as _;
use ts_rs::TS;
use vramscope_inference::{
    Basis, Category, FindingId, FindingKind, Phase, Severity, SimulatedBasis, StepPhase,
};
use vramscope_report::blocks::{BlockRecord, Lifetime};
use vramscope_report::card::{
    Card, CardFinding, FreeMemory, KindBytes, NamedStack, Names, SiteBytes, StackBytes, StepBytes,
};
use vramscope_report::diagnose::{Diagnosis, Headline, MemorySummary, PeakSummary};
use vramscope_report::diff::{
    BandDiff, BytesDiff, CategoryDiff, CountDiff, DiffRow, DiffValues, FindingsDiff, Pair,
    RecordingRow, SettingDiff, SideSource, TokensDiff,
};
use vramscope_report::dry::{DryOutcome, DrySummary, ReadLine};
use vramscope_report::events::EventRecord;
use vramscope_report::findings::{BlindSpotRecord, FindingChild, FindingPlace, FindingRecord};
use vramscope_report::holders::{Holder, HolderKind};
use vramscope_report::lines::HoldingLine;
use vramscope_report::peak::BandKind;
use vramscope_report::serving::CacheShare;
use vramscope_report::side::{Align, SideFinding};
use vramscope_report::summary::{BandSummary, ErrorKind, OomSummary};
use vramscope_report::what_if::{EditRecord, Outcome, WrongItem};
use vramscope_report::{
    CategoryShare, Cost, Covers, Lasts, Lever, LeverBasis, LeverPlace, Look, ProgramRecord,
    Simulated, TensorRecord,
};
use vramscope_trace::Exactness;
use vramscope_units::{
    Addr, Blocks, Bytes, Change, Count, CountChange, EventIndex, Events, Iteration, Micros,
    PeakEvent, SignedBytes,
};

fn declarations() -> String {
    let config = ts_rs::Config::default();
    let mut out = String::from(
        "// Generated from crates/vramscope-session by `cargo xtask types`. Do not edit.\n\n",
    );
    for (name, value) in [
        ("PROTOCOL", PROTOCOL),
        ("TILE_COLUMNS", TILE_COLUMNS),
        ("TILE_ROWS", TILE_ROWS),
        ("MERGED", MERGED),
        ("NO_BLOCK", NO_BLOCK),
        ("ROW_UNITS", ROW_UNITS),
        ("SIMULATED_HEIGHT", SIMULATED_HEIGHT),
        ("COUNTER_HEIGHT", COUNTER_HEIGHT),
        ("PINNED_HEIGHT", PINNED_HEIGHT),
        ("MAX_PARTS", MAX_PARTS),
        ("MAX_ROWS", MAX_ROWS),
    ] {
        writeln!(out, "export const {name} = {value};").expect("writing to a string");
    }
    for (name, [width, height]) in [
        ("SPARK", SPARK),
        ("MINIMAP", MINIMAP),
        ("COMPARED", COMPARED),
        ("PLOT", PLOT),
        ("FOLDED", FOLDED),
        ("SERIES", SERIES),
    ] {
        writeln!(out, "export const {name} = [{width}, {height}] as const;")
            .expect("writing to a string");
    }
    let categories = Category::ALL.map(Category::name);
    writeln!(out, "export const CATEGORIES = {categories:?} as const;")
        .expect("writing to a string");
    // In JSON, the first letter of a variant is lowercase.
    let kinds = Query::replaced()
        .iter()
        .map(|kind| kind[..1].to_lowercase() + &kind[1..])
        .collect::<Vec<_>>();
    writeln!(out, "export const REPLACED = {kinds:?} as const;").expect("writing to a string");
    macro_rules! types {
        ($($t:ty),* $(,)?) => {
            $(write!(out, "\nexport {}\n", <$t>::decl(&config)).expect("writing to a string");)*
        };
    }
    types!(
        Quantity,
        Bytes,
        SignedBytes,
        Micros,
        EventIndex,
        PeakEvent,
        Events,
        Iteration,
        Addr,
        Lifetime,
        Phrase,
        AxisKind,
        Axis,
        AxisBreak,
        TileKey,
        DeviceRef,
        Request,
        Response,
        Progress,
        Provisional,
        ErrorKind,
        Failure,
        TooLarge,
        PartChoice,
        Loaded,
        Part,
        DeviceSummary,
        WarningRow,
        Hit,
        BlockDetail,
        Span,
        DetailRow,
        StackDetail,
        FrameRow,
        RunRequest,
        FileEntry,
        RunResponse,
        PlannedRow,
        ColorBy,
        Bands,
        GroupBy,
        Side,
        GroupLabel,
        BlockRun,
        FlameWeight,
        MarkedRange,
        FlameSpec,
        SegmentSort,
        SegmentSpec,
        MapSpec,
        Layer,
        Query,
        EventFilter,
        BlockTable,
        BlockSort,
        Table,
        TextForm,
        ExportFormat,
        Looked,
        Answer,
        ProgramRecord,
        ListQuery,
        RankList,
        ShownRank,
        Fleet,
        FleetCluster,
        FleetBar,
        FleetTick,
        FleetIteration,
        ReadIndex,
        IndexedFile,
        MatrixQuery,
        MatrixAnswer,
        Matrix,
        MatrixRow,
        MatrixColumn,
        MatrixCluster,
        MatrixCell,
        FileCard,
        Card,
        BandSummary,
        Exactness,
        FreeMemory,
        CategoryShare,
        SiteBytes,
        StackBytes,
        OomSummary,
        CardFinding,
        KindBytes,
        StepBytes,
        Names,
        NamedStack,
        CategoryRow,
        FindingKind,
        Severity,
        Category,
        Phase,
        Basis,
        SimulatedBasis,
        FindingId,
        Blocks,
        Simulated,
        Outcome,
        Cost,
        Covers,
        Lasts,
        Lever,
        LeverBasis,
        LeverPlace,
        Look,
        FindingChild,
        FindingPlace,
        FindingRecord,
        FindingView,
        FindingRow,
        Diagnosis,
        Headline,
        MemorySummary,
        PeakSummary,
        CacheShare,
        HoldingLine,
        DrySummary,
        DryOutcome,
        ReadLine,
        BlindSpotRecord,
        Summary,
        SummaryView,
        SummaryPlot,
        PlotArea,
        PlotStep,
        PlotMark,
        LargestLine,
        Levers,
        AsRecorded,
        LeverItem,
        OtherChanges,
        LeverSetting,
        MemoryBar,
        BarPart,
        BarMark,
        FindingGroup,
        FindingMember,
        Minimap,
        Mark,
        MarkKind,
        Tracks,
        TrackItem,
        Phases,
        StepItem,
        PhaseItem,
        Legend,
        LegendEntry,
        Ramp,
        CounterLine,
        PinnedLine,
        Moments,
        Limit,
        FailedRequest,
        StateAt,
        Marker,
        StackShareRow,
        DetailCard,
        EventPage,
        EventRow,
        EventView,
        EventRecord<'static>,
        BlockPage,
        BlockRow,
        BlockView,
        BlockRecord<'static>,
        TensorRecord,
        SearchResult,
        GroupCard,
        StepBar,
        NextBlock,
        SegmentsInfo,
        SegmentRow,
        SegmentGroup,
        SegmentUse,
        SegmentUses,
        MapInfo,
        FoldedSteps,
        FoldedStep,
        PeakLens,
        LensPeak,
        LensEvent,
        TreemapCell,
        StateChanges,
        ChangeRow,
        MapGroup,
        MapPin,
        FlameInfo,
        FlameStep,
        FlameBox,
        FlameNode,
        CodeSpec,
        CodeSort,
        CodePage,
        SourceSpec,
        SourceRow,
        SourcePage,
        CodeRow,
        Holder,
        HolderKind,
        HolderTable,
        HolderLine,
        DropLine,
        ModuleSpec,
        ModulePage,
        ModuleRow,
        ShapeSum,
        Sandwich,
        SettingsCard,
        SettingRow,
        WrongItem,
        GraphsCard,
        CaptureRow,
        ReservedPart,
        ReservedUse,
        StepPhase,
        EditRecord,
        Change,
        Count,
        CountChange,
        ScenarioCard,
        SimulatedCurve,
        RunCard,
        RunQuery,
        RankSort,
        Overview,
        OverviewRow,
        CategoryBar,
        BandKind,
        Align,
        CompareQuery,
        CompareAnswer,
        Comparison,
        ComparedTree,
        ComparedFlame,
        ComparedNode,
        ComparedTile,
        ComparisonView,
        Pair,
        SideSource,
        SettingDiff,
        TokensDiff,
        BytesDiff,
        CountDiff,
        BandDiff,
        FindingsDiff,
        SideFinding,
        CategoryDiff,
        DiffRow,
        DiffValues,
        RecordingRow,
        ComparedGroup,
        Difference,
        ComparedCurves,
        PlaceMark,
        ComparedStacks,
        ComparedStack,
    );
    out
}

#[test]
fn typescript_types_are_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/viewer/src/generated/protocol.ts");
    let expected = declarations();
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        std::fs::write(path, &expected).expect("the generated file can be written");
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        found == expected,
        "web/viewer/src/generated/protocol.ts is stale: run `cargo xtask types`"
    );
}
