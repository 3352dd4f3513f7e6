//! `vramscope diff`: the difference between two snapshots, or between the ranks of two runs.
//!
//! Fields named `a` are before the change, fields named `b` after it.

mod cause;
mod flame;
pub mod markdown;
mod program;
mod rows;
mod stacks;

pub use cause::{SettingDiff, TokensDiff};
pub use flame::{DiffFlame, DiffNode, TreeOrder};
pub use program::{FoundChanges, ProgramChanges, SideProgram, found_changes, program_changes};
pub use rows::{DiffRow, DiffValues, RecordingRow, amount};
pub use stacks::{Matched, StackDiff, stacks};

use crate::check::{Check, Expression};
use crate::peak::BandKind;
use crate::side::{Side, SideFinding};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use vramscope_inference::Category;
use vramscope_trace::Exactness;
use vramscope_units::{Change, Count, CountChange, PeakEvent, SignedBytes, grouped};

/// `vramscope.diff/1`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Diff {
    /// The schema's name and version.
    pub schema: &'static str,
    /// The file or folder A, before the change.
    pub a: String,
    /// The file or folder B, after the change.
    pub b: String,
    /// The band at whose peaks categories and call stacks are compared.
    pub band: BandKind,
    /// The `--fail-on` expressions with their results.
    pub checks: Vec<Check>,
    /// One pair for two files; one pair per rank for two folders.
    pub pairs: Vec<Pair>,
    /// Files of A without a counterpart.
    pub only_a: Vec<String>,
    /// Files of B without a counterpart.
    pub only_b: Vec<String>,
    /// Files of searched folders that are no snapshots.
    pub skipped_files: usize,
}

/// The difference between two devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Pair {
    /// The rank, if it is equal in both paths; else null.
    pub rank: Option<u32>,
    /// The device of A.
    pub a: SideSource,
    /// The device of B.
    pub b: SideSource,
    /// Why the memory differs, in sentences; empty if settings and inputs do not explain it.
    pub causes: Vec<String>,
    /// What changed in the program, and whether that did what was predicted from A. Null if nothing
    /// changed, if the change has no name, and for folders.
    #[cfg_attr(feature = "typescript", ts(type = "null"))]
    pub changes: Option<ProgramChanges>,
    /// The allocator settings that differ. Empty if a file has none (before PyTorch 2.3).
    pub settings: Vec<SettingDiff>,
    /// Whole training steps.
    pub steps: CountDiff,
    /// The data that a step reads; null if it is not known in both sides.
    pub tokens: Option<TokensDiff>,
    /// Bytes requested by the program.
    pub requested_bytes: BandDiff,
    /// Block sizes of blocks that are not yet free.
    pub active_bytes: BandDiff,
    /// Block sizes of blocks whose free was not yet requested. The peak is
    /// `torch.cuda.max_memory_allocated()`.
    pub allocated_bytes: BandDiff,
    /// Bytes that the allocator reserved from the driver.
    pub reserved_bytes: BandDiff,
    /// Blocks that are live at the band's peak (segments, for `reserved_bytes`).
    pub blocks: CountDiff,
    /// Out-of-memory events.
    pub ooms: CountDiff,
    /// The number of findings, and the findings that are in one side only.
    pub findings: FindingsDiff,
    /// Live memory at the peak by category, the largest change first; empty for `reserved_bytes`.
    pub categories: Vec<CategoryDiff>,
    /// Live memory at the peak by call stack, the largest change first. The stacks add up to the
    /// peaks. Null except for the pair whose peak changes most.
    #[cfg_attr(feature = "typescript", ts(type = "null"))]
    pub stacks: Option<Vec<StackDiff>>,
    /// The number of stacks left out by `--limit`.
    pub stacks_left_out: usize,
    /// All call stacks as a tree, depth first from the root; null where `stacks` is null.
    #[cfg_attr(feature = "typescript", ts(type = "null"))]
    pub tree: Option<Vec<DiffNode>>,
}

/// The source of a side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct SideSource {
    /// The file's path.
    pub path: String,
    /// The device's ordinal.
    pub device: u32,
    /// The event of the band's peak; -1 is the state before the window.
    pub event: PeakEvent,
}

/// Declares a value in A and in B, by the units of the value and its change.
macro_rules! differences {
    ($($(#[$doc:meta])* $name:ident: $value:ident, $change:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
            #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
            #[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
            pub struct $name {
                /// The value in A.
                pub a: $value,
                /// The value in B.
                pub b: $value,
                /// `b` - `a`.
                pub change: $change,
            }

            impl $name {
                /// The change from `a` to `b`.
                pub fn new(a: i64, b: i64) -> Self {
                    Self { a: $value(a), b: $value(b), change: $change(b.saturating_sub(a)) }
                }

                fn of(a: u64, b: u64) -> Self {
                    let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
                    Self::new(signed(a), signed(b))
                }

                /// The sum of two changes.
                fn plus(self, other: Self) -> Self {
                    Self::new(
                        self.a.0.saturating_add(other.a.0),
                        self.b.0.saturating_add(other.b.0),
                    )
                }

                /// The change relative to A, as `percent` writes it.
                pub fn percent(self) -> String {
                    percent(self.a.0, self.b.0)
                }
            }
        )*
    };
}

differences! {
    /// Bytes in A and in B.
    BytesDiff: SignedBytes, Change;
    /// A count in A and in B.
    CountDiff: Count, CountChange;
}

/// The change from `a` to `b` relative to `a`: `+2.3 %`, or `x 12` from a factor of ten on. `new`
/// if `a` is zero and `b` is not, `0.0 %` if both are equal.
pub(crate) fn percent(a: i64, b: i64) -> String {
    match a {
        _ if a == b => "0.0 %".to_owned(),
        0 => "new".to_owned(),
        a if a > 0 && b / 10 >= a => format!("x {}", grouped((b / a).unsigned_abs())),
        a => format!("{:+.1} %", b.saturating_sub(a) as f64 * 100.0 / a.abs() as f64),
    }
}

/// A band in A and in B.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct BandDiff {
    /// Before the first event.
    pub start: BytesDiff,
    /// The largest value.
    pub peak: BytesDiff,
    /// After the last event.
    pub end: BytesDiff,
    /// `estimate` if either side is an estimate.
    pub exactness: Exactness,
}

/// Findings in A and in B.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct FindingsDiff {
    /// The number of findings.
    #[serde(flatten)]
    pub count: CountDiff,
    /// Findings of B without a match in A. Findings match by kind, and by function or setting.
    pub new: Vec<SideFinding>,
    /// Findings of A without a match in B.
    pub gone: Vec<SideFinding>,
}

/// A category in A and in B.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct CategoryDiff {
    /// The category.
    pub category: Category,
    /// Bytes.
    #[serde(flatten)]
    pub bytes: BytesDiff,
    /// Blocks.
    pub blocks: CountDiff,
}

/// A side, and the name of its file within the given folder.
pub type NamedSide = (String, Side);

impl Diff {
    /// Compares A with B.
    ///
    /// A single side of A and of B form a pair. Otherwise sides with equal names form pairs, then
    /// sides with equal ranks. The pair whose peak changes most gets its call stacks, at most
    /// `top`. The expressions are checked on every pair.
    pub fn new(
        (a, in_a): (String, Vec<NamedSide>),
        (b, in_b): (String, Vec<NamedSide>),
        band: BandKind,
        top: Option<usize>,
        expressions: &[Expression],
    ) -> Self {
        let (matched, only_a, only_b) = counterparts(&in_a, &in_b);
        let sides: Vec<(&Side, &Side)> =
            matched.iter().map(|&(i, j)| (&in_a[i].1, &in_b[j].1)).collect();
        let mut pairs: Vec<Pair> = sides.iter().map(|(a, b)| Pair::new(a, b)).collect();
        if let Some(at) = largest_change(&pairs, band) {
            let mut all = stacks(sides[at].0, sides[at].1);
            pairs[at].tree = Some(DiffFlame::new(&all, TreeOrder::default()).nodes());
            let shown = top.unwrap_or(all.len()).min(all.len());
            pairs[at].stacks_left_out = all.len() - shown;
            all.truncate(shown);
            pairs[at].stacks = Some(all);
        }
        let checks = expressions.iter().map(|e| e.check(&pairs, &sides)).collect();
        let paths = |sides: &[NamedSide], of: &[usize]| {
            of.iter().map(|&i| sides[i].1.path.clone()).collect()
        };
        let (only_a, only_b) = (paths(&in_a, &only_a), paths(&in_b, &only_b));
        Self {
            schema: "vramscope.diff/1",
            a,
            b,
            band,
            checks,
            pairs,
            only_a,
            only_b,
            skipped_files: 0,
        }
    }

    /// The pair whose peak changes most. It is the pair with call stacks.
    pub fn largest(&self) -> Option<&Pair> {
        largest_change(&self.pairs, self.band).map(|at| &self.pairs[at])
    }
}

/// Indices of the sides that form pairs, by rank, then of sides of A and of B without a
/// counterpart.
fn counterparts(a: &[NamedSide], b: &[NamedSide]) -> (Vec<(usize, usize)>, Vec<usize>, Vec<usize>) {
    if let ([_], [_]) = (a, b) {
        return (vec![(0, 0)], Vec::new(), Vec::new());
    }
    let mut matched: Vec<(usize, usize)> = Vec::new();
    let (mut left_a, mut left_b): (Vec<usize>, Vec<usize>) =
        ((0..a.len()).collect(), (0..b.len()).collect());
    let by_name = |a: &NamedSide, b: &NamedSide| a.0 == b.0;
    let by_rank = |a: &NamedSide, b: &NamedSide| a.1.rank.is_some() && a.1.rank == b.1.rank;
    for matches in [&by_name as &dyn Fn(&NamedSide, &NamedSide) -> bool, &by_rank] {
        left_a.retain(|&i| {
            let at = left_b.iter().position(|&j| matches(&a[i], &b[j]));
            matched.extend(at.map(|at| (i, left_b.remove(at))));
            at.is_none()
        });
    }
    matched.sort_by(|x, y| (a[x.0].1.rank, x.0).cmp(&(a[y.0].1.rank, y.0)));
    (matched, left_a, left_b)
}

/// The index of the pair whose peak changes most; the first one of equals.
fn largest_change(pairs: &[Pair], band: BandKind) -> Option<usize> {
    (0..pairs.len()).rev().max_by_key(|&i| pairs[i].band(band).peak.change.0.unsigned_abs())
}

impl Pair {
    /// Compares two sides, without call stacks.
    pub fn new(a: &Side, b: &Side) -> Self {
        let source = |side: &Side| SideSource {
            path: side.path.clone(),
            device: side.device,
            event: PeakEvent(side.event),
        };
        let band = |kind: BandKind| {
            let (a, b) = (a.figures(kind), b.figures(kind));
            BandDiff {
                start: BytesDiff::new(a.start, b.start),
                peak: BytesDiff::new(a.peak, b.peak),
                end: BytesDiff::new(a.end, b.end),
                exactness: if a.exact && b.exact { Exactness::Exact } else { Exactness::Estimate },
            }
        };
        let mut pair = Self {
            rank: a.rank.filter(|_| a.rank == b.rank),
            a: source(a),
            b: source(b),
            causes: Vec::new(),
            changes: None,
            settings: cause::settings(a, b),
            steps: CountDiff::new(a.steps.into(), b.steps.into()),
            tokens: cause::tokens(a, b),
            requested_bytes: band(BandKind::Requested),
            active_bytes: band(BandKind::Active),
            allocated_bytes: band(BandKind::Allocated),
            reserved_bytes: band(BandKind::Reserved),
            blocks: CountDiff::new(a.blocks.into(), b.blocks.into()),
            ooms: CountDiff::new(a.ooms.into(), b.ooms.into()),
            findings: FindingsDiff {
                count: CountDiff::of(a.findings.len() as u64, b.findings.len() as u64),
                new: without(&b.findings, &a.findings),
                gone: without(&a.findings, &b.findings),
            },
            categories: categories(a, b),
            stacks: None,
            stacks_left_out: 0,
            tree: None,
        };
        pair.causes = cause::causes(&pair);
        pair
    }

    /// A band of the pair.
    pub fn band(&self, band: BandKind) -> &BandDiff {
        match band {
            BandKind::Requested => &self.requested_bytes,
            BandKind::Active => &self.active_bytes,
            BandKind::Allocated => &self.allocated_bytes,
            BandKind::Reserved => &self.reserved_bytes,
        }
    }

    /// The name for texts: `rank 3`, or the path of B if the rank is unknown.
    pub fn name(&self) -> String {
        self.rank.map_or_else(|| self.b.path.clone(), |rank| format!("rank {rank}"))
    }
}

/// The findings without a match in `others`. Each finding of `others` matches at most once.
fn without(findings: &[SideFinding], others: &[SideFinding]) -> Vec<SideFinding> {
    let mut others: Vec<&SideFinding> = others.iter().collect();
    let is_new = |finding: &&SideFinding| {
        let key = |of: &SideFinding| (of.record.kind, of.about.clone());
        let wanted = key(finding);
        let matching = others.iter().position(|other| key(other) == wanted);
        matching.map(|at| others.swap_remove(at)).is_none()
    };
    findings.iter().filter(is_new).cloned().collect()
}

fn categories(a: &Side, b: &Side) -> Vec<CategoryDiff> {
    let of = |side: &Side, category: Category| {
        side.categories
            .iter()
            .find(|c| c.0 == category)
            .map_or((0, 0), |&(_, bytes, blocks)| (bytes, blocks))
    };
    let only_a = a.categories.iter().filter(|c| b.categories.iter().all(|other| other.0 != c.0));
    let row = |&(category, ..): &(Category, u64, u32)| {
        let (a, b) = (of(a, category), of(b, category));
        CategoryDiff {
            category,
            bytes: BytesDiff::of(a.0, b.0),
            blocks: CountDiff::new(a.1.into(), b.1.into()),
        }
    };
    let mut rows: Vec<CategoryDiff> = b.categories.iter().chain(only_a).map(row).collect();
    rows.sort_by_key(|r| (Reverse(r.bytes.change.0.unsigned_abs()), Reverse(r.bytes.b)));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_is_relative_to_a() {
        assert_eq!(
            [percent(0, 0), percent(7, 7), percent(0, 5), percent(5, 0)],
            ["0.0 %", "0.0 %", "new", "-100.0 %"]
        );
        assert_eq!(
            [percent(1000, 1023), percent(200, 100), percent(-100, -50)],
            ["+2.3 %", "-50.0 %", "+50.0 %"]
        );
        assert_eq!(
            [percent(10, 99), percent(10, 100), percent(3, 9_999)],
            ["+890.0 %", "x 10", "x 3,333"]
        );
        assert_eq!(BytesDiff::new(i64::MIN, i64::MAX).change, Change(i64::MAX));
    }
}
