//! `vramscope diff`: two snapshots, or the ranks of two runs, beside each other.

use crate::FrameRecord;
use crate::check::Check;
use crate::peak::BandKind;
use crate::side::{Side, SideFinding};
use serde::Serialize;
use std::cmp::Reverse;
use vramscope_analysis::{Category, HeldBy, NamedFrame, match_stacks};
use vramscope_units::grouped;

/// `vramscope.diff/1`.
#[derive(Debug, Serialize)]
pub struct Diff {
    /// The name and version of this form.
    pub schema: &'static str,
    /// The file or folder before.
    pub a: String,
    /// The file or folder after.
    pub b: String,
    /// The band at whose peaks categories and call stacks are compared.
    pub band: BandKind,
    /// What `--fail-on` asks.
    pub checks: Vec<Check>,
    /// One for two files; one a rank for two folders.
    pub pairs: Vec<Pair>,
    /// Files of `a` that have no counterpart.
    pub only_a: Vec<String>,
    /// Files of `b` that have none.
    pub only_b: Vec<String>,
}

/// Two devices beside each other.
#[derive(Debug, Serialize)]
pub struct Pair {
    /// The rank that both names tell.
    pub rank: Option<u32>,
    /// The one before.
    pub a: Place,
    /// The one after.
    pub b: Place,
    /// What programs asked for.
    pub requested_bytes: BandDiff,
    /// Block sizes of what was not yet free.
    pub active_bytes: BandDiff,
    /// Block sizes of what the program had not asked to free; its peak is
    /// `torch.cuda.max_memory_allocated()`.
    pub allocated_bytes: BandDiff,
    /// What the allocator took from the device.
    pub reserved_bytes: BandDiff,
    /// Blocks that are live at the band's peak (segments, for `reserved_bytes`).
    pub blocks: Change,
    /// Out-of-memory events.
    pub ooms: Change,
    /// How many findings each has, and which came and went.
    pub findings: FindingsDiff,
    /// What is live at the peak by category, the largest change first; empty for `reserved_bytes`.
    pub categories: Vec<CategoryDiff>,
    /// The same by call stack, the largest change first. They add up to the peaks. Null but for the
    /// pair whose peak changes most.
    pub stacks: Option<Vec<StackDiff>>,
    /// Stacks that `--top` left out.
    pub stacks_left_out: usize,
}

/// Where a side comes from.
#[derive(Clone, Debug, Serialize)]
pub struct Place {
    /// The file.
    pub path: String,
    /// The device.
    pub device: u32,
    /// The event of the band's peak; -1 is the state before the window.
    pub event: i64,
}

/// A number before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Before.
    pub a: i64,
    /// After.
    pub b: i64,
    /// `b` - `a`.
    pub change: i64,
}

impl Change {
    /// From one to the other.
    pub fn new(a: i64, b: i64) -> Self {
        Self { a, b, change: b.saturating_sub(a) }
    }

    fn bytes(a: u64, b: u64) -> Self {
        let signed = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        Self::new(signed(a), signed(b))
    }

    /// `+2.3 %`; `x 12` from ten times as much on; `new` where there was nothing, `0.0 %` where
    /// nothing changed.
    pub fn percent(self) -> String {
        match self.a {
            _ if self.change == 0 => "0.0 %".to_owned(),
            0 => "new".to_owned(),
            a if a > 0 && self.b / 10 >= a => format!("x {}", grouped((self.b / a).unsigned_abs())),
            a => format!("{:+.1} %", self.change as f64 * 100.0 / a.abs() as f64),
        }
    }
}

/// A band before and after.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct BandDiff {
    /// Before the first event.
    pub start: Change,
    /// The largest value.
    pub peak: Change,
    /// After the last event.
    pub end: Change,
    /// `exact`, or `estimate` where one of the two is.
    pub exactness: &'static str,
}

/// Findings before and after.
#[derive(Debug, Serialize)]
pub struct FindingsDiff {
    /// How many there are.
    #[serde(flatten)]
    pub count: Change,
    /// Those of `b` that `a` does not have: of the same kind, about the same function or setting.
    pub new: Vec<SideFinding>,
    /// Those of `a` that `b` does not have.
    pub gone: Vec<SideFinding>,
}

/// A category before and after.
#[derive(Clone, Debug, Serialize)]
pub struct CategoryDiff {
    /// Its name.
    pub category: Category,
    /// Bytes.
    #[serde(flatten)]
    pub bytes: Change,
    /// Blocks.
    pub blocks: Change,
}

/// A call stack before and after.
#[derive(Clone, Debug, Serialize)]
pub struct StackDiff {
    /// Bytes.
    #[serde(flatten)]
    pub bytes: Change,
    /// Blocks.
    pub blocks: Change,
    /// What most of its bytes are, in `b` where it is there; null for `reserved_bytes`.
    pub category: Option<Category>,
    /// `same` frames; `moved`: the same but for lines or folders; `only_a`; `only_b`.
    pub matched: &'static str,
    /// Whether it is the stack of the free: the blocks were allocated before the window.
    pub of_free: bool,
    /// The call site that names it, as in `b` where it is there.
    pub site: String,
    /// As in `b` where it is there; innermost first.
    pub frames: Vec<FrameRecord<'static>>,
}

/// A side, and what its file is called within the folder that was given.
pub type Named = (String, Side);

impl Diff {
    /// Of what was given as `a` and as `b`: one of each belong together whatever they are called;
    /// else those with the same name, then those of the same rank. The stacks are those of the pair
    /// whose peak changes most, at most `top` of them.
    pub fn new(
        (a, in_a): (String, Vec<Named>),
        (b, in_b): (String, Vec<Named>),
        band: BandKind,
        top: Option<usize>,
    ) -> Self {
        let (matched, only_a, only_b) = counterparts(&in_a, &in_b);
        let sides: Vec<(&Side, &Side)> =
            matched.iter().map(|&(i, j)| (&in_a[i].1, &in_b[j].1)).collect();
        let mut pairs: Vec<Pair> = sides.iter().map(|(a, b)| Pair::new(a, b)).collect();
        if let Some(at) = largest(&pairs, band) {
            let mut all = stacks(sides[at].0, sides[at].1);
            let shown = top.unwrap_or(all.len()).min(all.len());
            pairs[at].stacks_left_out = all.len() - shown;
            all.truncate(shown);
            pairs[at].stacks = Some(all);
        }
        let paths =
            |sides: &[Named], of: &[usize]| of.iter().map(|&i| sides[i].1.path.clone()).collect();
        let (only_a, only_b) = (paths(&in_a, &only_a), paths(&in_b, &only_b));
        Self { schema: "vramscope.diff/1", a, b, band, checks: Vec::new(), pairs, only_a, only_b }
    }

    /// The pair whose peak changes most: the one with stacks.
    pub fn largest(&self) -> Option<&Pair> {
        largest(&self.pairs, self.band).map(|at| &self.pairs[at])
    }
}

/// Places of what belongs together, by rank, and of what has no counterpart.
fn counterparts(a: &[Named], b: &[Named]) -> (Vec<(usize, usize)>, Vec<usize>, Vec<usize>) {
    if let ([_], [_]) = (a, b) {
        return (vec![(0, 0)], Vec::new(), Vec::new());
    }
    let mut matched: Vec<(usize, usize)> = Vec::new();
    let (mut left_a, mut left_b): (Vec<usize>, Vec<usize>) =
        ((0..a.len()).collect(), (0..b.len()).collect());
    let by_name = |a: &Named, b: &Named| a.0 == b.0;
    let by_rank = |a: &Named, b: &Named| a.1.rank.is_some() && a.1.rank == b.1.rank;
    for same in [&by_name as &dyn Fn(&Named, &Named) -> bool, &by_rank] {
        left_a.retain(|&i| {
            let at = left_b.iter().position(|&j| same(&a[i], &b[j]));
            matched.extend(at.map(|at| (i, left_b.remove(at))));
            at.is_none()
        });
    }
    matched.sort_unstable_by(|x, y| (a[x.0].1.rank, x.0).cmp(&(a[y.0].1.rank, y.0)));
    (matched, left_a, left_b)
}

/// Of equals the first.
fn largest(pairs: &[Pair], band: BandKind) -> Option<usize> {
    (0..pairs.len()).rev().max_by_key(|&i| pairs[i].band(band).peak.change.unsigned_abs())
}

impl Pair {
    /// Without its stacks.
    pub fn new(a: &Side, b: &Side) -> Self {
        let place =
            |side: &Side| Place { path: side.path.clone(), device: side.device, event: side.event };
        let band = |kind: BandKind| {
            let (a, b) = (a.figures(kind), b.figures(kind));
            BandDiff {
                start: Change::new(a.start, b.start),
                peak: Change::new(a.peak, b.peak),
                end: Change::new(a.end, b.end),
                exactness: if a.exact && b.exact { "exact" } else { "estimate" },
            }
        };
        Self {
            rank: a.rank.filter(|_| a.rank == b.rank),
            a: place(a),
            b: place(b),
            requested_bytes: band(BandKind::Requested),
            active_bytes: band(BandKind::Active),
            allocated_bytes: band(BandKind::Allocated),
            reserved_bytes: band(BandKind::Reserved),
            blocks: Change::new(a.blocks.into(), b.blocks.into()),
            ooms: Change::new(a.ooms.into(), b.ooms.into()),
            findings: FindingsDiff {
                count: Change::bytes(a.findings.len() as u64, b.findings.len() as u64),
                new: without(&b.findings, &a.findings),
                gone: without(&a.findings, &b.findings),
            },
            categories: categories(a, b),
            stacks: None,
            stacks_left_out: 0,
        }
    }

    /// One of its bands.
    pub fn band(&self, band: BandKind) -> &BandDiff {
        match band {
            BandKind::Requested => &self.requested_bytes,
            BandKind::Active => &self.active_bytes,
            BandKind::Allocated => &self.allocated_bytes,
            BandKind::Reserved => &self.reserved_bytes,
        }
    }

    /// What to call it: `rank 3`, or the path of `b`.
    pub fn name(&self) -> String {
        self.rank.map_or_else(|| self.b.path.clone(), |rank| format!("rank {rank}"))
    }
}

/// Those that the others do not have, each of which stands for one.
fn without(findings: &[SideFinding], others: &[SideFinding]) -> Vec<SideFinding> {
    let mut others: Vec<&SideFinding> = others.iter().collect();
    let is_new = |finding: &&SideFinding| {
        let same =
            others.iter().position(|o| (&o.kind, &o.about) == (&finding.kind, &finding.about));
        same.map(|at| others.swap_remove(at)).is_none()
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
            bytes: Change::bytes(a.0, b.0),
            blocks: Change::new(a.1.into(), b.1.into()),
        }
    };
    let mut rows: Vec<CategoryDiff> = b.categories.iter().chain(only_a).map(row).collect();
    rows.sort_by_key(|r| (Reverse(r.bytes.change.unsigned_abs()), Reverse(r.bytes.b)));
    rows
}

/// What two sides hold at their peaks by call stack, the largest change first.
pub fn stacks(a: &Side, b: &Side) -> Vec<StackDiff> {
    let frames = |side: &Side| -> Vec<Vec<FrameRecord<'static>>> {
        let owned = FrameRecord::into_owned;
        side.stacks.iter().map(|s| side.frames_of(s).into_iter().map(owned).collect()).collect()
    };
    let (frames_a, frames_b) = (frames(a), frames(b));
    let matched = match_stacks(&held(a, &frames_a), &held(b, &frames_b));
    let row = |(i, j): (Option<usize>, Option<usize>)| {
        let (in_a, in_b) = (i.map(|i| &a.stacks[i]), j.map(|j| &b.stacks[j]));
        let shown = in_b.or(in_a)?;
        let shown_frames = j.map(|j| &frames_b[j]).or(i.map(|i| &frames_a[i]))?;
        Some(StackDiff {
            bytes: Change::bytes(in_a.map_or(0, |s| s.bytes), in_b.map_or(0, |s| s.bytes)),
            blocks: Change::new(
                in_a.map_or(0, |s| s.blocks.into()),
                in_b.map_or(0, |s| s.blocks.into()),
            ),
            category: shown.category,
            matched: match (i, j) {
                (Some(i), Some(j)) if frames_a[i] == frames_b[j] => "same",
                (Some(_), Some(_)) => "moved",
                (_, None) => "only_a",
                (None, _) => "only_b",
            },
            of_free: shown.of_free,
            site: shown.site.clone(),
            frames: shown_frames.clone(),
        })
    };
    let mut rows: Vec<StackDiff> = matched.into_iter().filter_map(row).collect();
    let size =
        |r: &StackDiff| (Reverse(r.bytes.change.unsigned_abs()), Reverse(r.bytes.b.max(r.bytes.a)));
    rows.sort_by(|x, y| {
        size(x)
            .cmp(&size(y))
            .then_with(|| x.site.cmp(&y.site))
            .then_with(|| x.frames.cmp(&y.frames))
    });
    rows
}

fn held<'a>(side: &Side, frames: &'a [Vec<FrameRecord<'static>>]) -> Vec<HeldBy<'a>> {
    let named =
        |f: &'a FrameRecord<'static>| NamedFrame { name: &f.name, file: &f.file, line: f.line };
    let stacks = side.stacks.iter().zip(frames);
    stacks
        .map(|(stack, frames)| HeldBy {
            bytes: stack.bytes,
            is_of_free: stack.of_free,
            frames: frames.iter().map(named).collect(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_of_what_was_before() {
        let told = |a, b| Change::new(a, b).percent();
        assert_eq!(
            [told(0, 0), told(7, 7), told(0, 5), told(5, 0)],
            ["0.0 %", "0.0 %", "new", "-100.0 %"]
        );
        assert_eq!(
            [told(1000, 1023), told(200, 100), told(-100, -50)],
            ["+2.3 %", "-50.0 %", "+50.0 %"]
        );
        assert_eq!([told(10, 99), told(10, 100), told(3, 9_999)], ["+890.0 %", "x 10", "x 3,333"]);
        assert_eq!(Change::new(i64::MIN, i64::MAX).change, i64::MAX);
    }
}
