//! What tells that a capture begins: call stacks of PyTorch's own code.

use crate::evidence::Evidence;
use vramscope_snapshot::StackId;
use vramscope_trace::segment_event;
use vramscope_trace::slicing::{Budget, strides};

/// What shows that an allocation is the first of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToldBy {
    /// It is the first in its pool.
    Pool,
    /// A call stack: `torch.cuda.graph` begins (`torch/cuda/graphs.py`), or a function of
    /// `cudagraph_trees.py` runs that comes before the recording.
    Stack,
    /// Allocations outside of the pool come before it.
    Others,
    /// The call stacks of the capture before it repeat, with other sizes.
    Repetition,
}

/// What a call stack says of an allocation in a pool of graphs. Functions of
/// `torch/_inductor/cudagraph_trees.py`, by which they are told, are there from PyTorch 2.1 to
/// 2.15.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Teller {
    /// Nothing.
    Nothing,
    /// `CUDAGraphTreeManager.run_eager`: a first run, which is not captured.
    WarmUp,
    /// `CUDAGraphNode._allocate_and_copy_recording_inputs`: comes before a capture.
    Inputs,
    /// `CUDAGraphNode._record`: the capture.
    Recording,
}

/// The teller of an allocation whose stack says nothing.
pub(super) const TELLS_NOTHING: Teller = Teller::Nothing;

impl Teller {
    pub(super) fn is_warm_up(self) -> bool {
        self == Self::WarmUp
    }
}

/// What all call stacks of a window say.
pub(super) struct Tellers {
    /// By stack.
    of_stacks: Vec<Teller>,
    /// Slots after events in which `torch.cuda.graph` returns cached memory, before it captures.
    begins: Vec<u32>,
}

impl Tellers {
    pub(super) async fn of(cx: Evidence<'_>, budget: &mut Budget) -> Self {
        let stacks = &cx.snapshot.stacks;
        let mut of_stacks = Vec::with_capacity(stacks.len());
        let mut is_graph = Vec::with_capacity(stacks.len());
        for part in strides(stacks.len()) {
            for stack in part.map(|index| StackId(index as u32)) {
                let frames = cx.snapshot.stack(stack);
                budget.charge(1 + frames.len() as u64 / 4).await;
                let (mut teller, mut enters) = (Teller::Nothing, false);
                for frame in frames {
                    let file = cx.snapshot.text(frame.file);
                    if file.ends_with("cudagraph_trees.py") {
                        match &*cx.snapshot.text(frame.name) {
                            "run_eager" => teller = Teller::WarmUp,
                            "_allocate_and_copy_recording_inputs" => teller = Teller::Inputs,
                            "_record" => teller = Teller::Recording,
                            _ => {}
                        }
                    }
                    enters |= file.ends_with("torch/cuda/graphs.py")
                        && matches!(&*cx.snapshot.text(frame.name), "__enter__" | "capture_begin");
                }
                of_stacks.push(teller);
                is_graph.push(enters);
            }
        }
        let rows = &cx.trace.device.events;
        let mut begins = Vec::new();
        for part in strides(rows.len()) {
            budget.charge(part.len() as u64).await;
            for event in part.map(|event| event as u32) {
                let row = rows.start + event;
                let events = &cx.snapshot.events;
                let gives = segment_event(events.action(row)).is_some_and(|(grows, _)| !grows);
                if gives && is_graph.get(events.stack(row).0 as usize) == Some(&true) {
                    begins.push(event + 1);
                }
            }
        }
        Self { of_stacks, begins }
    }

    pub(super) fn of_stack(&self, stack: StackId) -> Teller {
        self.of_stacks.get(stack.0 as usize).copied().unwrap_or(TELLS_NOTHING)
    }

    /// Whether a capture begins between two allocations, which have a slot and a teller each.
    pub(super) fn begins(&self, before: (u32, Teller), next: (u32, Teller)) -> bool {
        let from = self.begins.partition_point(|&slot| slot <= before.0);
        let is_entered = self.begins.get(from).is_some_and(|&slot| slot < next.0);
        let is_other = before.1 != next.1 && before.1 != TELLS_NOTHING && next.1 != TELLS_NOTHING;
        is_entered || (is_other && (before.1, next.1) != (Teller::Inputs, Teller::Recording))
    }
}
