//! Autograd graphs that no backward pass uses: evaluation and inference without `no_grad`.
//!
//! A forward pass with autograd keeps its inner results until backward, or until the program drops
//! the last output. Without autograd, an inner result lives no longer than its layer. So a graph
//! shows when it dies: one burst of frees, with results of many layers of one pass.

use crate::category::{Category, Phase, PhaseSpan};
use crate::claims::found::{Common, Found, parts};
use crate::claims::kinds::{Basis, FindingKind};
use crate::claims::scene::{Claim, Scene, Spot, SpotWhat, Words};
use crate::claims::words::{capitalized, counted};
use crate::evidence::marks::{Mark, Marks};
use crate::evidence::{Cut, saving};
use crate::evidence::{Evidence, Materiality};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::RangeInclusive;
use vramscope_snapshot::{Frame, FrameId, StackId};
use vramscope_trace::group_by_key;
use vramscope_trace::slicing::Budget;
use vramscope_trace::{Block, Origin};
use vramscope_units::{Bytes, EventIndex, grouped};

/// What is worth a finding.
const MATTERS: Materiality = Materiality::percent(2);

/// The fewest call stacks that have several blocks in one graph. A cache of keys and values has
/// two, with each layer's output three.
const MIN_LAYER_STACKS: usize = 4;

/// The fewest call stacks of a graph of unlike layers.
const MIN_STACKS: usize = 8;

/// The smallest share of what modules allocate during a pass that a graph keeps, in percent.
const MIN_KEPT_PERCENT: u64 = 40;

/// The largest share of a graph's bytes that a later backward pass may free, in percent.
const MAX_USED_PERCENT: u64 = 10;

/// Graphs that a program builds and drops without a backward pass, or keeps after one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoGrad {
    /// Graphs that were dropped in the window.
    pub graphs: usize,
    /// Bytes of the largest graph.
    pub largest: Bytes,
    /// Bytes at the peak of graphs whose pass is over by then.
    pub of_earlier: Bytes,
    /// What drops the graph that costs most, if frees have call stacks of their own.
    pub dropped_at: Option<Frame>,
    /// The line that calls the backward pass which keeps the graph that costs most; `None` if no
    /// backward pass uses it.
    pub kept_by: Option<Frame>,
    /// The event that drops it.
    pub until: Option<EventIndex>,
    /// The frame of the program that calls the passes of the graph that costs most.
    pub called_at: Option<Frame>,
    /// The peak of `requested_bytes` without the graphs: an estimate, which no text states.
    pub peak_without: Bytes,
    /// Whether the window trains as well.
    pub trains: bool,
    /// Whether the recording ends while the only graph is live. A backward pass may follow.
    pub is_open: bool,
}

/// Blocks that are freed together, that stay to the end, or that are from before the window.
struct Graph {
    /// Indices into the trace's blocks, in the order of their allocs.
    blocks: Vec<u32>,
    /// The slot after the last alloc; 0 before the window. Of a graph that a backward pass keeps,
    /// the slot after that pass.
    end: u32,
    /// The backward pass that keeps it.
    kept_by: Option<PhaseSpan>,
}

/// A block of a burst of frees.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Freed {
    block: u32,
    /// Whether a module allocated it.
    is_inner: bool,
}

/// The finding about graphs without a backward pass, if they are a part of the peak.
pub(super) async fn no_grad(
    cx: Evidence<'_>,
    marks: &Marks,
    growing: &[StackId],
    budget: &mut Budget,
) -> Option<Found<NoGrad>> {
    let graphs = graphs(cx, marks, growing, budget).await;
    let peak = cx.peak_slot();
    let block = |i: u32| &cx.trace.blocks[i as usize];
    let at_peak = |graph: &Graph| -> u64 {
        let live = graph.blocks.iter().map(|&i| block(i)).filter(|b| b.is_live_at(peak));
        live.map(|b| b.bytes.0).sum()
    };
    let bytes: u64 = graphs.iter().map(at_peak).sum();
    let end = cx.trace.slots();
    if !MATTERS.is_met(bytes, cx.peak()) {
        return None;
    }
    let mut cuts = Vec::new();
    for graph in &graphs {
        budget.charge(4 * graph.blocks.len() as u64).await;
        cuts.extend(cuts_of(cx, graph));
    }
    let saving = saving(cx, &cuts, budget).await;
    let current = graphs.iter().filter(|g| at_peak(g) > 0).map(|graph| graph.end).max()?;
    let earlier = |graph: &&Graph| graph.end < current || graph.end == 0;
    let of_earlier = graphs.iter().filter(earlier).map(at_peak).sum();
    let main = graphs.iter().filter(|g| at_peak(g) > 0).max_by_key(|g| (earlier(g), at_peak(g)))?;
    let size = |graph: &Graph| -> u64 { graph.blocks.iter().map(|&i| block(i).bytes.0).sum() };
    let is_open = graphs.iter().all(|g| g.blocks.iter().all(|&i| block(i).leaves == end));
    let free = main.blocks.iter().find_map(|&i| block(i).free_requested());
    let live: Vec<&Block> = graphs
        .iter()
        .flat_map(|graph| graph.blocks.iter().map(|&i| block(i)))
        .filter(|b| b.is_live_at(peak))
        .collect();
    let facts = NoGrad {
        graphs: graphs.len(),
        largest: Bytes(graphs.iter().map(size).max().unwrap_or(0)),
        of_earlier: Bytes(of_earlier),
        dropped_at: main.blocks.iter().find_map(|&i| dropped_at(cx, block(i))),
        until: free,
        called_at: called_at(cx, main),
        kept_by: main.kept_by.and_then(|backward| backward_at(cx, backward)),
        peak_without: Bytes(saving.peak),
        trains: cx.trains(),
        is_open,
    };
    // One pass may be an exception: the next may go backward.
    let is_once = graphs.len() == 1 && main.end > 0;
    let cost = if is_once { 0 } else { saving.bytes };
    let mut by_size = parts(live.iter().map(|b| (b.stack, b.bytes.0)));
    by_size.truncate(MAX_PARTS);
    let largest = by_size.first().map_or(StackId::EMPTY, |part| part.stack);
    let events = live.iter().filter_map(|b| b.alloc_event()).map(|e| e.0).collect();
    Some(
        Common {
            step: cx.step_at(peak.saturating_sub(1)),
            phase: peak.checked_sub(1).and_then(|event| cx.phase_at(event)),
            basis: Basis::Estimate,
            blocks: live.len() as u32,
            parts: by_size,
            ..cx.found(FindingKind::NoGrad, cx.hash(largest), bytes, cost, events)
        }
        .with(facts),
    )
}

/// The most call stacks of the finding.
const MAX_PARTS: usize = 50;

/// The frame of the program that calls the passes of a graph.
fn called_at(cx: Evidence<'_>, graph: &Graph) -> Option<Frame> {
    let blocks = graph.blocks.iter().map(|&i| &cx.trace.blocks[i as usize]);
    let stacks = blocks.filter(|block| !block.has_stack_of_free()).map(|block| block.stack);
    let mut stacks: Vec<StackId> = stacks.collect();
    let mut known = FxHashSet::default();
    stacks.retain(|&stack| known.insert(stack));
    let name = |frame: FrameId| cx.snapshot.text(cx.snapshot.frame(frame).name);
    // A script without functions would name its last line only.
    let common = cx.common_caller(stacks.iter().copied()).filter(|&f| name(f) != "<module>");
    let frame = common.or_else(|| cx.calling_frame(*stacks.first()?))?;
    Some(cx.snapshot.frame(frame))
}

/// The frame of the program that frees a block, if the free has a call stack of its own.
fn dropped_at(cx: Evidence<'_>, block: &Block) -> Option<Frame> {
    if block.has_stack_of_free() {
        return cx.program_frame(block.stack).map(|frame| cx.snapshot.frame(frame));
    }
    cx.own_free_frame(block, block.free_requested()?)
}

/// The graphs of a window that no backward pass uses.
async fn graphs(
    cx: Evidence<'_>,
    marks: &Marks,
    growing: &[StackId],
    budget: &mut Budget,
) -> Vec<Graph> {
    let trace = cx.trace;
    // Sums of what modules allocate, for the share that a graph keeps.
    let mut inner = Inner { slots: Vec::new(), sums: vec![0], used: Vec::new() };
    let mut freed: Vec<(usize, Freed)> = Vec::new();
    let mut stays: Vec<Freed> = Vec::new();
    let mut before = Graph { blocks: Vec::new(), end: 0, kept_by: None };
    let weights = cx.parameters_by_size(budget).await;
    let mut has_own_stacks = false;
    let visit = |i, block: &Block| {
        let mark = marks.of(block.stack);
        if block.origin() == Origin::PreexistingFreed {
            if mark.has(Mark::RELEASE) && !mark.has(Mark::ENGINE) {
                before.blocks.push(i);
            }
            return;
        }
        if block.origin() != Origin::Alloc {
            return;
        }
        // Autocast frees its copies of the weights at once.
        let is_cast =
            mark.has(Mark::CACHED_CAST) || weights.contains_key(&block.bytes.0.saturating_mul(2));
        let is_inner = mark.has(Mark::MODULE) && !is_cast;
        if is_inner {
            inner.slots.push(block.enters);
            inner.sums.push(inner.sums.last().copied().unwrap_or(0) + block.bytes.0);
        }
        let is_result = matches!(
            cx.categories.get(i).category,
            Category::Activation | Category::Temporary | Category::Unknown | Category::Input
        );
        if is_cast || !is_result || growing.contains(&block.stack) {
            return;
        }
        let Some(free) = block.free_requested() else {
            stays.extend(is_inner.then_some(Freed { block: i, is_inner }));
            return;
        };
        let of_free = cx.stack_of_event(free);
        let is_own = of_free != block.stack && of_free != StackId::EMPTY;
        has_own_stacks |= is_own;
        let is_used = || {
            is_own && marks.of(of_free).has(Mark::ENGINE)
                || cx.phase_at(free.0) == Some(Phase::Backward)
        };
        if is_inner && is_used() {
            inner.used.push(i);
        }
        let is_dropped = match marks.of(of_free) {
            mark if is_own => !mark.has(Mark::ENGINE) && !mark.has(Mark::OPTIMIZER),
            _ => of_free == block.stack || !has_own_stacks,
        };
        if is_dropped {
            // Frees between two allocs are one burst.
            let burst = trace.blocks.partition_point(|b| b.enters <= free.0);
            freed.push((burst, Freed { block: i, is_inner }));
        }
    };
    trace.each_block(4, budget, visit).await;
    let mut found = Vec::new();
    if before.blocks.len() >= MIN_STACKS {
        found.push(before);
    }
    for (_, blocks) in group_by_key(freed) {
        budget.charge(8 * blocks.len() as u64).await;
        found.extend(graph(cx, blocks, &inner));
    }
    // The last pass of the window still has its graph.
    let known: FxHashSet<StackId> =
        found.iter().flat_map(|g| &g.blocks).map(|&i| trace.blocks[i as usize].stack).collect();
    if known.is_empty() {
        let may_be_open = !cx.trains() && trace.ooms.is_empty();
        found.extend(graph(cx, stays, &inner).filter(|_| may_be_open));
    } else {
        // The recording may end in a training pass, whose results live, too.
        let stack = |i: u32| trace.blocks[i as usize].stack;
        let used: FxHashSet<StackId> = inner.used.iter().map(|&i| stack(i)).collect();
        let is_known = |stack| known.contains(&stack) && !used.contains(&stack);
        stays.retain(|freed| is_known(stack(freed.block)));
        found.extend(graph(cx, stays, &inner));
    }
    found
}

/// What modules allocate: the slots, and the sums of bytes before each.
struct Inner {
    slots: Vec<u32>,
    sums: Vec<u64>,
    /// Results that a backward pass frees: indices into the trace's blocks, in the order of allocs.
    used: Vec<u32>,
}

impl Inner {
    /// Bytes that modules allocate before a slot.
    fn before(&self, slot: u32) -> u64 {
        self.sums[self.slots.partition_point(|&s| s < slot)]
    }

    /// Bytes of results that are allocated in a range of slots and that a backward pass frees after
    /// an event.
    fn used_later(&self, blocks: &[Block], slots: RangeInclusive<u32>, event: u32) -> u64 {
        let block = |&i: &u32| &blocks[i as usize];
        let from = self.used.partition_point(|i| block(i).enters < *slots.start());
        let made = self.used[from..].iter().map(block).take_while(|b| slots.contains(&b.enters));
        let later = made.filter(|b| b.free_requested().is_some_and(|free| free.0 > event));
        later.map(|block| block.bytes.0).sum()
    }
}

/// The graph that one burst of frees drops, if it is one.
fn graph(cx: Evidence<'_>, mut freed: Vec<Freed>, inner: &Inner) -> Option<Graph> {
    let block = |i: u32| &cx.trace.blocks[i as usize];
    freed.sort_unstable();
    let free = block(freed.last()?.block).free_requested().map_or(u32::MAX, |free| free.0);
    // A result of the step before may be dropped with the graph.
    let backward = last_backward(cx.categories.phases(), free);
    let after_backward = backward.map_or(0, |span| span.end);
    let is_later = |freed: &Freed| block(freed.block).enters >= after_backward;
    let kept_by = backward.filter(|_| !freed.iter().any(|freed| freed.is_inner && is_later(freed)));
    match kept_by {
        // All of it was there when that pass ran.
        Some(span) => freed.retain(|freed| block(freed.block).enters < span.begin),
        None => freed.retain(is_later),
    }
    let mut counts: FxHashMap<StackId, usize> = FxHashMap::default();
    for freed in freed.iter().filter(|freed| freed.is_inner) {
        *counts.entry(block(freed.block).stack).or_default() += 1;
    }
    let layers = counts.values().filter(|&&count| count > 1).count();
    if layers < MIN_LAYER_STACKS && counts.len() < MIN_STACKS {
        return None;
    }
    let first = block(freed.iter().find(|freed| freed.is_inner)?.block).enters;
    // What the program allocates before the pass is its input.
    freed.retain(|freed| block(freed.block).enters >= first);
    let last = block(freed.iter().rfind(|freed| freed.is_inner)?.block).enters;
    // A failed allocation ends the pass, and drops its results.
    let fails = cx.trace.ooms.iter().any(|oom| (first..free).contains(&oom.event.0));
    if fails {
        return None;
    }
    let allocated = inner.before(last + 1) - inner.before(first);
    let kept = freed.iter().filter(|freed| freed.is_inner).map(|f| block(f.block).bytes.0);
    let kept: u64 = kept.sum();
    // A program may drop a list of features and still run backward through their pass.
    let used = inner.used_later(&cx.trace.blocks, first..=last, free);
    if used.saturating_mul(100) > kept.saturating_mul(MAX_USED_PERCENT) {
        return None;
    }
    let is_kept = kept.saturating_mul(100) >= allocated.saturating_mul(MIN_KEPT_PERCENT);
    // The first backward pass after the graph is the one that uses it. Without its call, a variable
    // may hold the results.
    let kept_by = match kept_by {
        Some(_) => {
            let phases = cx.categories.phases();
            let later = &phases[phases.partition_point(|span| span.begin < last)..];
            let first = later.iter().find(|span| span.phase == Phase::Backward)?;
            backward_at(cx, *first)?;
            Some(*first)
        }
        None => None,
    };
    let end = match kept_by {
        Some(span) => span.end + 1,
        None => block(freed.last()?.block).enters + 1,
    };
    let blocks = freed.iter().map(|freed| freed.block).collect();
    is_kept.then_some(Graph { blocks, end, kept_by })
}

/// The last backward pass that begins before an event.
fn last_backward(phases: &[PhaseSpan], event: u32) -> Option<PhaseSpan> {
    let before = &phases[..phases.partition_point(|span| span.begin < event)];
    before.iter().rfind(|span| span.phase == Phase::Backward).copied()
}

/// The line of the program that calls a backward pass: the gradient of the loss is made there.
fn backward_at(cx: Evidence<'_>, backward: PhaseSpan) -> Option<Frame> {
    let blocks = &cx.trace.blocks;
    let at = |event: u32| blocks.partition_point(|block| block.enters <= event);
    let name = |frame: Frame| cx.snapshot.text(frame.name);
    let mut made = blocks[at(backward.begin)..at(backward.end)].iter();
    let of_loss = made.find(|b| cx.snapshot.stack(b.stack).any(|f| name(f) == "_make_grads"))?;
    Some(cx.snapshot.frame(cx.program_frame(of_loss.stack)?))
}

/// When the blocks of a graph would die without autograd: a layer's result when the next layer
/// makes its own, the last layer's when the pass ends.
fn cuts_of(cx: Evidence<'_>, graph: &Graph) -> Vec<Cut> {
    let mut next: FxHashMap<StackId, u32> = FxHashMap::default();
    let mut cuts = Vec::with_capacity(graph.blocks.len());
    for &i in graph.blocks.iter().rev() {
        let block = &cx.trace.blocks[i as usize];
        let from = match block.origin() {
            Origin::Alloc if graph.kept_by.is_some() => graph.end,
            Origin::Alloc => next.insert(block.stack, block.enters).unwrap_or(graph.end),
            _ => 0,
        };
        cuts.push(Cut { from, to: block.leaves, bytes: block.bytes.0 });
    }
    cuts
}

impl Claim for NoGrad {
    fn words(&self, scene: &Scene<'_>) -> Words {
        let label = |frame| scene.label(frame);
        let bytes = scene.bytes();
        let (dropped, called) = (self.dropped_at.map(label), self.called_at.map(label));
        let site = called.clone().or(dropped.clone()).unwrap_or_else(|| scene.main_site());
        let until = self.until.map(|event| format!(" (until {event})")).unwrap_or_default();
        let drops = match &dropped {
            Some(dropped) => format!(", where {dropped} drops them"),
            None => String::new(),
        };
        let earlier = match self.of_earlier.0 {
            0 => String::new(),
            _ => format!(
                " {} of it are of the pass before, which its output keeps{drops}{until}.",
                self.of_earlier
            ),
        };
        let graphs = match self.graphs {
            1 => "1 forward pass keeps its autograd graph, and no backward pass uses it".to_owned(),
            count => format!(
                "{} forward passes keep their autograd graphs, and no backward pass uses them",
                grouped(count as u64)
            ),
        };
        if let Some(frame) = self.kept_by {
            let at = label(frame);
            return Words {
                title: scene.titled(
                    "Autograd graph kept after backward()",
                    self.spot(scene).as_ref(),
                    bytes,
                ),
                text: format!(
                    "backward() at {at} keeps the graph that it uses (retain_graph=True): {} hold \
                     {bytes} at the peak, until the last name of the loss is gone.",
                    counted(scene.finding.blocks as usize, "inner result"),
                ),
                action: format!(
                    "Call backward() without retain_graph=True ({at}), and give what a second \
                     backward needs no way through the first: detach() it, or add the losses up."
                ),
            };
        }
        let evaluation = if self.trains { "evaluation" } else { "inference" };
        let (graphs, run) = if self.is_open {
            let graphs = "The forward pass keeps its autograd graph to the end of the recording";
            (graphs.to_owned(), "If no backward pass follows, run")
        } else {
            (graphs, "Run")
        };
        Words {
            title: scene
                .titled(
                    &if self.is_open {
                        "Forward pass with its autograd graph".to_owned()
                    } else {
                        format!("{} without no_grad", capitalized(evaluation))
                    },
                    self.spot(scene).as_ref(),
                    bytes,
                )
                .text(" of autograd graphs"),
            text: format!(
                "{graphs}. {} hold {bytes} at the peak.{earlier} Under \
                 torch.no_grad() an inner result lives no longer than its layer.",
                counted(scene.finding.blocks as usize, "inner result"),
            ),
            action: format!(
                "{run} {evaluation} ({site}) under torch.no_grad() or torch.inference_mode(). Keep \
                 .detach() or .item() of its outputs."
            ),
        }
    }

    fn why(&self, _: &Scene<'_>) -> String {
        if self.kept_by.is_some() {
            return "retain_graph=True keeps it until the last name of the loss is gone".to_owned();
        }
        "an output keeps the graph of its pass until the program drops it".to_owned()
    }

    fn saving(&self, scene: &Scene<'_>) -> Option<Bytes> {
        self.kept_by.map(|_| Bytes(scene.cx.peak().saturating_sub(self.peak_without.0)))
    }

    fn spot(&self, scene: &Scene<'_>) -> Option<Spot> {
        let own = || scene.frame_of(scene.finding.stack()?);
        Some(Spot {
            frame: self.kept_by.or(self.called_at).or(self.dropped_at).or_else(own)?,
            note: String::new(),
            what: SpotWhat::Text(counted(scene.finding.blocks as usize, "inner result")),
        })
    }
}

#[cfg(test)]
crate::claims::cases::cases! {
    NoGrad,
    fires: [
        "twins/gpt_eval.pickle.gz",
        "findings/c11_inductor.pickle.gz",
        "causes/retain_graph.pickle.gz"
    ],
    silent: ["twins/gpt_eval_eval_no_grad.pickle.gz", "findings/non_eval.pickle.gz"]
}
