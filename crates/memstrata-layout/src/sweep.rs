//! The state of the stack at one moment, moved along the trace.

use crate::sumtree::SumTree;
use memstrata_analysis::{Change, Trace};

/// Live bytes by block at one state of a trace.
pub(crate) struct Sweep {
    pub(crate) tree: SumTree,
    state: u32,
}

impl Sweep {
    pub(crate) fn new(trace: &Trace) -> Self {
        let mut sweep = Self { tree: SumTree::new(trace.blocks.len()), state: 0 };
        sweep.jump(trace, 0);
        sweep
    }

    /// Go to a state: step by step when it is near, at once when it is far.
    pub(crate) fn seek(&mut self, trace: &Trace, state: u32) {
        // A step costs a climb to the root for every change; a jump costs a look at every block.
        let depth = usize::BITS - trace.blocks.len().leading_zeros();
        let near = trace.blocks.len() as u32 / depth.max(1);
        if state.abs_diff(self.state) > near {
            self.jump(trace, state);
            return;
        }
        if state >= self.state {
            for &change in trace.changes_in(self.state + 1..state + 1) {
                self.apply(trace, change, change.enters());
            }
        } else {
            for &change in trace.changes_in(state + 1..self.state + 1).iter().rev() {
                self.apply(trace, change, !change.enters());
            }
        }
        self.state = state;
    }

    fn apply(&mut self, trace: &Trace, change: Change, live: bool) {
        let bytes = if live { trace.blocks[change.block() as usize].bytes.0 } else { 0 };
        self.tree.set(change.block(), bytes);
    }

    fn jump(&mut self, trace: &Trace, state: u32) {
        let live = trace.blocks.iter().map(|b| if b.enters <= state && state < b.leaves { b.bytes.0 } else { 0 });
        self.tree.fill(live);
        self.state = state;
    }
}
