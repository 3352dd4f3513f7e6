//! Tables of which few rows are read: embeddings whose gradients and moments are dense, each as
//! large as the table.

use crate::category::Category;
use crate::claims::found::{Common, Found, parts};
use crate::claims::kinds::{Basis, FindingKind};
use crate::claims::scene::{Claim, Scene, Spot, SpotWhat, Words};
use crate::claims::words::capitalized;
use crate::evidence::marks::{Mark, Marks};
use crate::evidence::passes::Pass;
use crate::evidence::{Cut, Evidence, Materiality, saving};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ops::Range;
use vramscope_snapshot::{Frame, StackId};
use vramscope_trace::slicing::{Budget, strides};
use vramscope_units::Bytes;

/// The smallest share of the peak that gradients and moments of tables hold.
const WORTH: Materiality = Materiality::percent(30);

/// The smallest part of the peak that one table can matter by.
const TABLE: Materiality = Materiality::percent(5);

/// A table is at least this many times as large as the rows that a step reads of it.
const MIN_TIMES_READ: u64 = 10;

/// Moments of Adam for each parameter.
const MOMENTS: usize = 2;

/// Dense gradients and moments of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// Bytes of the tables.
    pub tables: Bytes,
    /// Gradients and moments of them that are live at the peak of `requested_bytes`.
    pub at_peak: Bytes,
    /// Bytes of the largest table.
    pub largest: Bytes,
    /// Bytes of the rows that a step reads of it, at most.
    pub read: Bytes,
    /// The line that looks rows up; `None` if no call stack has it.
    pub looked_up_at: Option<Frame>,
    /// Whether an optimizer keeps moments of the tables.
    pub has_moments: bool,
    /// How much lower the peak of `requested_bytes` is without the dense gradients.
    pub saving: Bytes,
}

/// The finding about tables, if their gradients and moments hold a large share of the peak.
pub(super) async fn tables(
    cx: Evidence<'_>,
    marks: &Marks,
    budget: &mut Budget,
) -> Option<Found<Table>> {
    let peak = cx.peak_slot();
    budget.charge(8 * cx.trace.blocks.len() as u64).await;
    let trained = cx.passes.all.iter().filter(|pass| pass.backward.is_some());
    // With gradients that are set to zero in place only the first pass makes them.
    let pass = trained.max_by_key(|pass| gradients(cx, pass).len())?;
    let lookups = lookups(cx, marks, pass);
    let &(largest_read, stack) = lookups.iter().max()?;
    let gradients = gradients(cx, pass);
    let (mut parameters, mut states) =
        (FxHashMap::<u64, usize>::default(), FxHashMap::<u64, usize>::default());
    for part in strides(cx.trace.blocks.len()) {
        budget.charge(part.len() as u64).await;
        for (index, block) in (part.start as u32..).zip(&cx.trace.blocks[part]) {
            let count = match cx.categories.get(index).category {
                Category::Parameter => parameters.entry(block.bytes.0),
                Category::OptimizerState => states.entry(block.bytes.0),
                _ => continue,
            };
            *count.or_default() += 1;
        }
    }
    // Forward reads tables first, so backward makes their gradients last.
    let last = &gradients[gradients.len().saturating_sub(lookups.len())..];
    let count = |all: &[u64], bytes| all.iter().filter(|&&of| of == bytes).count();
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    for &bytes in last.iter().filter(|&&bytes| TABLE.is_met(bytes, cx.peak())) {
        *counts.entry(bytes).or_default() += 1;
    }
    let of = |all: &FxHashMap<u64, usize>, bytes: u64| all.get(&bytes).copied().unwrap_or(0);
    // A second gradient of the size is that of a head: each row has one. So has a table that is
    // the head as well.
    counts.retain(|&bytes, &mut of_size| {
        count(&gradients, bytes) == of_size
            && of(&parameters, bytes) == of_size
            && (states.is_empty() || of(&states, bytes) >= MOMENTS * of_size)
            && bytes >= largest_read * MIN_TIMES_READ
    });
    let largest = counts.keys().copied().next_back()?;
    let (mut live, mut cuts) = (Vec::new(), Vec::new());
    for part in strides(cx.trace.blocks.len()) {
        budget.charge(2 * part.len() as u64).await;
        for (index, block) in (part.start as u32..).zip(&cx.trace.blocks[part]) {
            let category = cx.categories.get(index).category;
            let is_gradient = category == Category::Gradient;
            if !counts.contains_key(&block.bytes.0)
                || !(is_gradient || category == Category::OptimizerState)
            {
                continue;
            }
            if block.is_live_at(peak) {
                live.push(index);
            }
            if is_gradient {
                cuts.push(Cut { from: block.enters, to: block.leaves, bytes: block.bytes.0 });
            }
        }
    }
    let block = |index: &u32| &cx.trace.blocks[*index as usize];
    let at_peak: u64 = live.iter().map(|index| block(index).bytes.0).sum();
    let saved = saving(cx, &cuts, budget).await.bytes.min(at_peak);
    if !WORTH.is_met(at_peak, cx.peak()) || !TABLE.is_met(saved, cx.peak()) {
        return None;
    }
    let facts = Table {
        tables: Bytes(counts.iter().map(|(bytes, &count)| bytes * count as u64).sum()),
        at_peak: Bytes(at_peak),
        largest: Bytes(largest),
        read: Bytes(largest_read),
        looked_up_at: cx.program_frame(stack).map(|frame| cx.snapshot.frame(frame)),
        has_moments: !states.is_empty(),
        saving: Bytes(saved),
    };
    let events = live.iter().filter_map(|index| block(index).alloc_event()).map(|e| e.0).collect();
    Some(
        Common {
            basis: Basis::Estimate,
            blocks: live.len() as u32,
            parts: parts(live.iter().map(|index| (block(index).stack, block(index).bytes.0))),
            ..cx.found(FindingKind::Table, largest, at_peak, saved, events)
        }
        .with(facts),
    )
}

/// Bytes of the rows that each lookup of a pass reads, and its call stack. A bag of rows has only
/// their sum.
fn lookups(cx: Evidence<'_>, marks: &Marks, pass: &Pass) -> Vec<(u64, StackId)> {
    let made = made(cx, pass.begin, pass.end).map(|index| &cx.trace.blocks[index]);
    let is_bag = |stack| {
        let mut frames = cx.snapshot.stack(stack);
        frames.any(|frame| cx.snapshot.text(frame.name).contains("embedding_bag"))
    };
    let looks_up = |stack: StackId| marks.of(stack).has(Mark::EMBEDDING) && !is_bag(stack);
    made.filter(|block| looks_up(block.stack)).map(|block| (block.bytes.0, block.stack)).collect()
}

/// The gradients that a backward pass makes, by birth, in bytes.
fn gradients(cx: Evidence<'_>, pass: &Pass) -> Vec<u64> {
    let Some(backward) = pass.backward else { return Vec::new() };
    let made = made(cx, backward.begin, backward.end);
    let is_gradient =
        |&index: &usize| cx.categories.get(index as u32).category == Category::Gradient;
    made.filter(is_gradient).map(|index| cx.trace.blocks[index].bytes.0).collect()
}

/// The blocks that are made between two events.
fn made(cx: Evidence<'_>, begin: f64, end: f64) -> Range<usize> {
    let born =
        |event: f64| cx.trace.blocks.partition_point(|block| f64::from(block.enters) - 1.0 < event);
    born(begin)..born(end)
}

impl Claim for Table {
    fn words(&self, scene: &Scene<'_>) -> Words {
        let Self { tables, at_peak, largest, read, saving, .. } = self;
        let (what, optimizer) = if self.has_moments {
            ("gradients and moments", "SparseAdam")
        } else {
            ("gradients", "SGD")
        };
        Words {
            title: scene.titled(
                &format!("Dense {what} of embedding tables"),
                self.spot(scene).as_ref(),
                *at_peak,
            ),
            text: format!(
                "{} of the embedding tables ({tables}) hold {at_peak} at the \
                 peak: each is as large as its table. A step reads rows of {read} at most; the \
                 largest table has {largest}. With sparse gradients the peak is at least \
                 {saving} lower.",
                capitalized(what)
            ),
            action: format!(
                "Use nn.Embedding(..., sparse=True) with torch.optim.{optimizer}. Or keep on the \
                 device only the rows that are used."
            ),
        }
    }

    fn why(&self, _scene: &Scene<'_>) -> String {
        format!(
            "a step reads {} of {} at most; with sparse gradients the peak is {} lower",
            self.read, self.largest, self.saving
        )
    }

    fn spot(&self, scene: &Scene<'_>) -> Option<Spot> {
        let what = SpotWhat::Text(scene.blocks_text());
        match (scene.own_spot(), self.looked_up_at) {
            (Some(own), _) => Some(Spot { what, ..own }),
            (None, frame) => {
                Some(Spot { frame: frame?, note: "which reads rows".to_owned(), what })
            }
        }
    }

    fn saving(&self, _scene: &Scene<'_>) -> Option<Bytes> {
        Some(self.saving)
    }
}

#[cfg(test)]
crate::claims::cases::cases! {
    Table,
    fires: ["causes/sparse_table.pickle.gz"],
    silent: ["causes/sparse_table_cured.pickle.gz"]
}
