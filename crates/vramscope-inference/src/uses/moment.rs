//! What becomes of the live blocks of a moment of the traced step.

use super::record::{READ, RESULT, WRITE};
use super::{Life, Use, Used, Uses};
use serde::{Deserialize, Serialize};
use vramscope_trace::Trace;
use vramscope_units::named;

/// A use that is more operations later is far.
pub const FAR_OPERATIONS: u32 = 50;

named! {
    /// What becomes of a block after a moment of the traced step.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    #[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
    #[serde(rename_all = "snake_case")]
    pub enum UseGroup {
        /// No operation uses it again, and it stays allocated.
        Dead = "dead",
        /// Its next use is more than 50 operations later.
        Far = "far",
        /// The next operation that uses it writes all of it, and does not read it.
        Overwritten = "overwritten",
        /// It is used within 50 operations.
        Soon = "soon",
        /// The operation that runs uses it.
        Now = "now",
        /// It lives on after the step, and whether the next step reads it is not known.
        Kept = "kept",
        /// No operation was seen to use it: compiled code, CUDA graphs and kernels that PyTorch's
        /// dispatcher does not call may.
        NotSeen = "not_seen",
    }
}

/// A block that is live at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextUse {
    /// The block's index.
    pub block: u32,
    /// What becomes of it.
    pub group: UseGroup,
    /// Operations until its next use; `None` without one.
    pub operations: Option<u32>,
    /// Microseconds until its next use; `None` without one in the step.
    pub micros: Option<u64>,
    /// Operations from its allocation to its first use, if the moment is between them: it could be
    /// allocated later. Only for blocks that are made from nothing, as `torch.zeros` does.
    pub early: Option<u32>,
}

/// A moment of the traced step.
#[derive(Clone, Debug, Default)]
pub struct Moment {
    /// The blocks that are live, by index.
    pub blocks: Vec<NextUse>,
}

/// An operation of an allocation between these begins and ends before the moment.
struct At {
    slot: u32,
    /// The first operation that begins later.
    next: u32,
    /// Operations that run.
    running: Vec<u32>,
}

impl Uses {
    /// The live blocks of a slot; `None` outside of the traced step.
    pub fn moment(&self, trace: &Trace, slot: u32) -> Option<Moment> {
        if slot < self.slots.start || slot > self.slots.end {
            return None;
        }
        let next = self.operations.partition_point(|one| one.first < slot) as u32;
        // Threads of backward overlap a little.
        let from = next.saturating_sub(64);
        let running = (from..next).filter(|&at| self.operations[at as usize].last >= slot);
        let at = At { slot, next, running: running.collect() };
        let live = self.blocks.iter().filter(|used| {
            let block = &trace.blocks[used.block as usize];
            block.is_live_at(slot)
        });
        Some(Moment { blocks: live.map(|used| self.next_use(trace, used, &at)).collect() })
    }

    fn next_use(&self, trace: &Trace, used: &Used, at: &At) -> NextUse {
        let uses = self.of(used);
        let group = |group, operations, micros| NextUse {
            block: used.block,
            group,
            operations,
            micros,
            early: self.early(uses, at.next),
        };
        if uses.iter().any(|one| at.running.contains(&one.operation)) {
            return group(UseGroup::Now, Some(0), Some(0));
        }
        if uses.is_empty() && self.is_inside_running(trace, used, at) {
            return group(UseGroup::Now, None, None);
        }
        if used.dead_from.is_some_and(|dead| dead <= at.slot) {
            return group(UseGroup::Dead, None, None);
        }
        let later = uses.partition_point(|one| one.operation < at.next);
        if let Some(next) = uses.get(later) {
            let distance = next.operation - at.next + 1;
            let micros = self.micros(at, next.operation);
            if next.how & (READ | WRITE) == WRITE && next.how & RESULT == 0 {
                return group(UseGroup::Overwritten, Some(distance), micros);
            }
            let far = distance > FAR_OPERATIONS;
            let of = if far { UseGroup::Far } else { UseGroup::Soon };
            return group(of, Some(distance), micros);
        }
        match (used.life, uses.first()) {
            // The next step does what this one did.
            (Life::Stays, Some(first)) => {
                let distance = self.operations.len() as u32 - at.next + first.operation + 1;
                let far = distance > FAR_OPERATIONS;
                let of = if far { UseGroup::Far } else { UseGroup::Soon };
                group(of, Some(distance), None)
            }
            (Life::Outlives, Some(_)) => group(UseGroup::Kept, None, None),
            _ => group(UseGroup::NotSeen, None, None),
        }
    }

    /// Whether a block without a use is a temporary of an operation that runs.
    fn is_inside_running(&self, trace: &Trace, used: &Used, at: &At) -> bool {
        let block = &trace.blocks[used.block as usize];
        at.running.iter().any(|&number| {
            let operation = &self.operations[number as usize];
            operation.first < block.enters && block.leaves <= operation.last + 1
        })
    }

    fn micros(&self, at: &At, operation: u32) -> Option<u64> {
        let now = at.running.last().copied().or_else(|| at.next.checked_sub(1))?;
        let [from, to] = [now, operation].map(|of| self.operations[of as usize].begin_us);
        u64::try_from(to.saturating_sub(from)).ok()
    }

    /// See [`NextUse::early`].
    fn early(&self, uses: &[Use], next: u32) -> Option<u32> {
        let first = uses.first().filter(|one| one.how == WRITE | RESULT)?;
        if self.operations[first.operation as usize].has_inputs {
            return None;
        }
        let read = uses.iter().find(|one| one.how & READ > 0)?.operation;
        (read >= next && read - first.operation > FAR_OPERATIONS).then_some(read - first.operation)
    }
}
