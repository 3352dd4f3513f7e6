//! Where repetitions lie in the calls of modules: layers of one forward pass, or several passes.

use rustc_hash::{FxHashMap, FxHashSet};
use vramscope_snapshot::{Action, FrameId, Snapshot, StackId};
use vramscope_trace::Trace;
use vramscope_trace::slicing::{Budget, strides};

/// The fewest calls of modules in a repetition that are several forward passes.
const MIN_CALLS: u32 = 4;

/// The call stacks of allocations in a range of events.
async fn stacks(
    snapshot: &Snapshot,
    trace: &Trace,
    events: std::ops::Range<u32>,
    budget: &mut Budget,
) -> Vec<StackId> {
    let (all, start) = (&snapshot.events, trace.device.events.start);
    let mut stacks = Vec::new();
    for part in strides((events.end - events.start) as usize) {
        budget.charge(2 * part.len() as u64).await;
        let rows = part.map(|event| start + events.start + event as u32);
        let allocs = rows.filter(|&row| all.action(row) == Action::ALLOC);
        stacks.extend(allocs.map(|row| all.stack(row)).filter(|&stack| stack != StackId::EMPTY));
    }
    stacks
}

/// Whether a frame is a module's call of its forward function, or that function.
fn is_call(snapshot: &Snapshot, frame: FrameId) -> bool {
    matches!(&*snapshot.text(snapshot.frame(frame).name), "_call_impl" | "forward")
}

/// Whether all repetitions lie in one forward pass: one line of one module's forward function
/// allocates everything between them, and other lines of that function allocate once, before or
/// after them. `begins` are the slots before the first event of each repetition.
pub(super) async fn is_one_pass(
    snapshot: &Snapshot,
    trace: &Trace,
    begins: &[u32],
    budget: &mut Budget,
) -> bool {
    let (Some(&first), Some(&last)) = (begins.first(), begins.last()) else { return false };
    // The common frames, the outermost first.
    let mut common: Option<Vec<FrameId>> = None;
    let within = stacks(snapshot, trace, first..last, budget).await;
    let mut known: FxHashSet<StackId> = FxHashSet::default();
    for &stack in within.iter().filter(|&&stack| known.insert(stack)) {
        let frames = snapshot.stacks.frames(stack);
        budget.charge(frames.len() as u64).await;
        let common = common.get_or_insert_with(|| frames.iter().rev().copied().collect());
        let same = common.iter().zip(frames.iter().rev()).take_while(|(a, b)| a == b).count();
        common.truncate(same);
    }
    let Some(common) = common else { return false };
    // Forward functions among them that call further modules.
    let name = |frame: FrameId| snapshot.frame(frame).name;
    let is_forward = |&at: &usize| {
        let is_called = at > 0 && is_call(snapshot, common[at - 1]);
        let is_python = vramscope_trace::is_python(&snapshot.text(snapshot.frame(common[at]).file));
        is_python
            && (is_called || is_call(snapshot, common[at]))
            && &*snapshot.text(name(common[at])) != "_call_impl"
    };
    let events = trace.device.events.len() as u32;
    let mut outside = stacks(snapshot, trace, 0..first, budget).await;
    outside.extend(stacks(snapshot, trace, last..events, budget).await);
    let mut counts: FxHashMap<StackId, u32> = FxHashMap::default();
    for stack in outside {
        *counts.entry(stack).or_default() += 1;
    }
    // A call stack that allocates once shows that its function is called once.
    counts.retain(|_, count| *count == 1);
    let is_other_line = |stack: StackId, at: usize| {
        let mut frames = snapshot.stacks.frames(stack).iter().rev().copied();
        let is_below = common[..at].iter().all(|&frame| frames.next() == Some(frame));
        let is_line = |frame: FrameId| {
            let (own, other) = (snapshot.frame(frame), snapshot.frame(common[at]));
            frame != common[at] && (own.name, own.file) == (other.name, other.file)
        };
        is_below && frames.next().is_some_and(is_line)
    };
    for at in (0..common.len()).filter(is_forward) {
        budget.charge((counts.len() * (at + 1)) as u64).await;
        if counts.keys().any(|&stack| is_other_line(stack, at)) {
            return true;
        }
    }
    false
}

/// Whether each repetition has several forward passes: at least half of the repetitions call
/// modules that often from code outside of modules that allocates in between.
pub(super) async fn has_passes(
    snapshot: &Snapshot,
    trace: &Trace,
    begins: &[u32],
    budget: &mut Budget,
) -> bool {
    let mut known: FxHashMap<StackId, bool> = FxHashMap::default();
    let mut with_passes = 0;
    for ends in begins.windows(2) {
        let (mut calls, mut was_module) = (0, false);
        for stack in stacks(snapshot, trace, ends[0]..ends[1], budget).await {
            let is_module = *known.entry(stack).or_insert_with(|| {
                let mut frames = snapshot.stacks.frames(stack).iter();
                frames.any(|&frame| is_call(snapshot, frame))
            });
            calls += u32::from(is_module && !was_module);
            was_module = is_module;
        }
        with_passes += usize::from(calls >= MIN_CALLS);
    }
    with_passes * 2 > begins.len().saturating_sub(1)
}
