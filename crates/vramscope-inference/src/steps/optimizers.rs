//! Steps from the ranges that every `torch.optim.Optimizer` records.
//!
//! A program can have several optimizers: one for each part of the model, which step together, or
//! one for each of two losses, which take turns.

use super::{slot_at, sorted};
use crate::category::{Phase, PhaseSpan};
use rustc_hash::{FxHashMap, FxHashSet};
use vramscope_snapshot::{Action, Snapshot, StackId, Stage, StrId};
use vramscope_trace::slicing::{Budget, strides};
use vramscope_trace::{Trace, group_by_key};

/// The most updates of optimizers that take turns.
const MAX_TURNS: usize = 8;

/// Updates with no forward and backward pass between them.
struct Update {
    /// The slot after the last one.
    end: u32,
    /// The optimizers' names in alphabetical order.
    names: Vec<String>,
    /// The call stack of the last call of `backward`; empty if it is not known.
    backward: StackId,
}

/// The slots at which steps begin and end; empty without such ranges.
pub(super) async fn steps(
    snapshot: &Snapshot,
    trace: &Trace,
    phases: &[PhaseSpan],
    budget: &mut Budget,
) -> Vec<u32> {
    let mut ends: Vec<(u32, String)> = Vec::new();
    // Ends of ranges that allocate.
    let mut working: FxHashSet<u32> = FxHashSet::default();
    let mut starts: FxHashMap<StrId, u32> = FxHashMap::default();
    for mark in &snapshot.annotations {
        let name = snapshot.text(mark.name);
        let slot = mark.time.and_then(|time| slot_at(trace, time));
        let (true, Some(slot)) = (name.starts_with("Optimizer.step#"), slot) else { continue };
        if mark.stage == Stage::Start {
            starts.insert(mark.name, slot);
            continue;
        }
        let start = starts.get(&mark.name).copied().unwrap_or(slot).min(slot);
        let changes = trace.changes_in(start + 1..slot + 1);
        budget.charge(changes.len() as u64).await;
        if changes.iter().any(|change| change.enters()) {
            working.insert(slot);
        }
        ends.push((slot, name.into_owned()));
    }
    if ends.is_empty() {
        return Vec::new();
    }
    ends.sort_by_key(|end| end.0);
    let calls = Calls::find(snapshot, trace, budget).await;
    budget.charge(8 * (phases.len() + ends.len()) as u64).await;
    add_skipped(&mut ends, phases, &calls.of_scaler);
    let mut updates = together(ends, phases, |end| working.contains(&end));
    for update in &mut updates {
        update.backward = calls.backward_before(update.end);
    }
    let chosen = in_turn(&updates).unwrap_or_else(|| most_frequent(&updates));
    // The first step begins with the window, since nothing separates it from model construction.
    sorted([vec![0], chosen].concat())
}

/// Calls of PyTorch whose allocations have call stacks.
struct Calls {
    /// Slots after allocations of `backward` on the program's thread, with the call stacks.
    of_backward: Vec<(u32, StackId)>,
    /// Slots after allocations of `GradScaler` between backward and update.
    of_scaler: Vec<u32>,
}

/// The call that a stack shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    Backward,
    Scaler,
    Other,
}

impl Calls {
    async fn find(snapshot: &Snapshot, trace: &Trace, budget: &mut Budget) -> Self {
        let (events, start) = (&snapshot.events, trace.device.events.start);
        let mut calls = Self { of_backward: Vec::new(), of_scaler: Vec::new() };
        let mut known: FxHashMap<StackId, Call> = FxHashMap::default();
        for part in strides(trace.device.events.len()) {
            budget.charge(3 * part.len() as u64).await;
            for event in part.map(|event| event as u32) {
                let stack = events.stack(start + event);
                if events.action(start + event) != Action::ALLOC || stack == StackId::EMPTY {
                    continue;
                }
                match *known.entry(stack).or_insert_with(|| call(snapshot, stack)) {
                    Call::Backward => calls.of_backward.push((event + 1, stack)),
                    Call::Scaler => calls.of_scaler.push(event + 1),
                    Call::Other => {}
                }
            }
        }
        calls
    }

    fn backward_before(&self, slot: u32) -> StackId {
        let after = self.of_backward.partition_point(|call| call.0 <= slot);
        after.checked_sub(1).map_or(StackId::EMPTY, |last| self.of_backward[last].1)
    }
}

fn call(snapshot: &Snapshot, stack: StackId) -> Call {
    for &frame in snapshot.stacks.frames(stack) {
        let frame = snapshot.frame(frame);
        let file = snapshot.text(frame.file).replace('\\', "/");
        match &*snapshot.text(frame.name) {
            "backward" if file.ends_with("torch/_tensor.py") => return Call::Backward,
            "unscale_" | "_unscale_grads_" if file.ends_with("/amp/grad_scaler.py") => {
                return Call::Scaler;
            }
            _ => {}
        }
    }
    Call::Other
}

/// Adds the iterations whose update a `GradScaler` skipped, since it found no finite gradients: it
/// unscales gradients after a backward pass, and no optimizer steps before the next forward pass.
fn add_skipped(ends: &mut Vec<(u32, String)>, phases: &[PhaseSpan], of_scaler: &[u32]) {
    let mut skipped: Vec<(u32, String)> = Vec::new();
    let passes = phases.iter().filter(|span| span.phase == Phase::Forward);
    let mut begin = 0;
    for end in passes.map(|span| span.begin).chain([u32::MAX]) {
        let within = |slot: u32| begin < slot && slot <= end;
        let unscaled = of_scaler.iter().rev().copied().find(|&slot| within(slot));
        let next = ends.partition_point(|mark| mark.0 <= begin);
        let steps = ends.get(next).is_some_and(|mark| within(mark.0));
        if let (Some(slot), false) = (unscaled, steps) {
            let name = ends[next.min(ends.len() - 1)].1.clone();
            skipped.push((slot, name));
        }
        begin = end;
    }
    ends.extend(skipped);
    ends.sort_by_key(|end| end.0);
}

/// Joins updates with no forward and backward pass between them: parts of the model with an
/// optimizer each. Without forward passes in the window nothing is joined. An update gets longer by
/// a backward pass, or by a range that allocates: `is_working` says so of its end.
fn together(
    ends: Vec<(u32, String)>,
    phases: &[PhaseSpan],
    is_working: impl Fn(u32) -> bool,
) -> Vec<Update> {
    let has_forward = phases.iter().any(|span| span.phase == Phase::Forward);
    let mut updates: Vec<Update> = Vec::new();
    let mut next = 0;
    for (end, name) in ends {
        let (is_new, has_backward) = match updates.last() {
            Some(last) if has_forward => is_apart(phases, &mut next, last.end, end),
            _ => (true, false),
        };
        match updates.last_mut() {
            Some(last) if !is_new => {
                if is_working(end) || has_backward {
                    last.end = end;
                }
                if let Err(at) = last.names.binary_search(&name) {
                    last.names.insert(at, name);
                }
            }
            _ => updates.push(Update { end, names: vec![name], backward: StackId::EMPTY }),
        }
    }
    updates
}

/// Whether a forward pass, or other code and then a backward pass, lies between two slots; and
/// whether a backward pass does. `next` is the first span that can end after `from`.
fn is_apart(phases: &[PhaseSpan], next: &mut usize, from: u32, to: u32) -> (bool, bool) {
    while phases.get(*next).is_some_and(|span| span.end <= from) {
        *next += 1;
    }
    let (mut has_other, mut has_backward) = (false, false);
    for span in phases[*next..].iter().take_while(|span| span.begin < to) {
        match span.phase {
            Phase::Forward => return (true, has_backward),
            Phase::Other => has_other = true,
            Phase::Backward if has_other => return (true, true),
            Phase::Backward => has_backward = true,
            _ => {}
        }
    }
    (false, has_backward)
}

/// The ends of the steps of optimizers that take turns in one order. Of these the one counts that
/// steps most often, or of equals the last one.
fn in_turn(updates: &[Update]) -> Option<Vec<u32>> {
    let key = |update: &Update| (update.names.clone(), update.backward);
    let keys: Vec<_> = updates.iter().map(key).collect();
    let repeats = |turns: &usize| keys.iter().zip(&keys[*turns..]).all(|(now, later)| now == later);
    let turns = (1..=MAX_TURNS.min(keys.len() / 2)).find(repeats)?;
    let count = |of: &usize| keys[..turns].iter().filter(|key| **key == keys[*of]).count();
    let chosen = (0..turns).max_by_key(count)?;
    let own = updates.iter().zip(&keys).filter(|(_, key)| **key == keys[chosen]);
    Some(own.map(|(update, _)| update.end).collect())
}

/// The ends of the steps of the optimizers that step most often.
fn most_frequent(updates: &[Update]) -> Vec<u32> {
    let by_name = updates.iter().map(|update| (update.names.clone(), update.end)).collect();
    let by_name = group_by_key(by_name).into_iter().map(|(_, ends)| ends);
    by_name.rev().max_by_key(Vec::len).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ends of the steps of updates, each with a letter for its optimizer.
    fn of_turns(letters: &str) -> Option<Vec<u32>> {
        let update = |(end, letter): (u32, char)| Update {
            end,
            names: vec![letter.to_string()],
            backward: StackId::EMPTY,
        };
        in_turn(&(0..).zip(letters.chars()).map(update).collect::<Vec<_>>())
    }

    #[test]
    fn optimizers_that_take_turns_make_one_step() {
        assert_eq!(of_turns("aaaa"), Some(vec![0, 1, 2, 3]));
        assert_eq!(of_turns("ababab"), Some(vec![1, 3, 5]), "the last of equals");
        assert_eq!(of_turns("aabaabaab"), Some(vec![0, 1, 3, 4, 6, 7]), "the most frequent");
        assert_eq!(of_turns("aaaabb"), None);
    }

    fn spans(letters: &str) -> Vec<PhaseSpan> {
        let span = |(i, letter): (u32, char)| PhaseSpan {
            begin: 10 * i,
            end: 10 * i + 10,
            phase: match letter {
                'f' => Phase::Forward,
                'b' => Phase::Backward,
                'o' => Phase::Optimizer,
                _ => Phase::Other,
            },
        };
        (0..).zip(letters.chars()).map(span).collect()
    }

    #[test]
    fn updates_without_a_forward_pass_between_them_are_one() {
        let ends = |slots: &[u32]| slots.iter().map(|&slot| (slot, "a".to_owned())).collect();
        let joined = |phases: &str, slots: &[u32]| -> Vec<u32> {
            together(ends(slots), &spans(phases), |_| true)
                .iter()
                .map(|update| update.end)
                .collect()
        };
        // The hooks of parameters step in backward.
        assert_eq!(joined("fbobofbobo", &[28, 48, 78, 98]), [48, 98]);
        assert_eq!(joined("fbouofbo", &[22, 28, 48, 78]), [48, 78], "two devices");
        // Forward passes of functions show no phase of their own.
        assert_eq!(joined("fboubouboufbo", &[28, 58, 88, 128]), [28, 58, 88, 128]);
        assert_eq!(joined("ooo", &[5, 15, 25]), [5, 15, 25], "no forward pass");
    }

    #[test]
    fn skipped_updates_of_a_scaler_end_steps() {
        let phases = spans("fbofbofbo");
        let mut ends = vec![(28, "a".to_owned()), (88, "a".to_owned())];
        add_skipped(&mut ends, &phases, &[22, 52, 54, 82]);
        let slots: Vec<u32> = ends.iter().map(|end| end.0).collect();
        assert_eq!(slots, [28, 54, 88]);
    }
}
