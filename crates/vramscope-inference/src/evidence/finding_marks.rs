//! What the frames of each call stack say about the operation that allocates or frees.

use super::Evidence;
use vramscope_snapshot::{FrameId, StackId};
use vramscope_trace::is_python;
use vramscope_trace::slicing::{Budget, strides};

/// What a call stack shows, as a set of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark(u16);

impl Mark {
    /// A module runs.
    pub(crate) const MODULE: Self = Self(1);
    /// An optimizer updates many parameters in one operation.
    pub(crate) const FOREACH: Self = Self(1 << 1);
    /// Autocast converts a tensor, and keeps it if it is a weight.
    pub(crate) const CACHED_CAST: Self = Self(1 << 2);
    /// Autocast ends, and drops the weights that it keeps.
    pub(crate) const AUTOCAST_EXIT: Self = Self(1 << 3);
    /// Cross entropy, or a part of it.
    pub(crate) const CROSS_ENTROPY: Self = Self(1 << 4);
    /// A softmax outside of cross entropy.
    pub(crate) const SOFTMAX: Self = Self(1 << 5);
    /// A node of the autograd graph drops what it saved.
    pub(crate) const RELEASE: Self = Self(1 << 6);
    /// The autograd engine runs a graph.
    pub(crate) const ENGINE: Self = Self(1 << 7);
    /// Code of an optimizer.
    pub(crate) const OPTIMIZER: Self = Self(1 << 8);

    /// Whether any bit of `other` is set.
    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    fn add(&mut self, other: Self, is_so: bool) {
        if is_so {
            self.0 |= other.0;
        }
    }
}

/// Cost of reading a frame, in units of [`Budget`].
const COST_PER_FRAME: u64 = 20;

/// The marks of all call stacks.
#[derive(Debug, Default)]
pub(crate) struct Marks(Vec<Mark>);

impl Marks {
    pub(crate) async fn new(cx: Evidence<'_>, budget: &mut Budget) -> Self {
        let mut of_frames = Vec::with_capacity(cx.snapshot.frames.len());
        for part in strides(cx.snapshot.frames.len()) {
            budget.charge(part.len() as u64 * COST_PER_FRAME).await;
            of_frames.extend(part.map(|id| of_frame(cx, FrameId(id as u32))));
        }
        let mut marks = Vec::with_capacity(cx.snapshot.stacks.len());
        for part in strides(cx.snapshot.stacks.len()) {
            for id in part {
                let frames = cx.snapshot.stacks.frames(StackId(id as u32));
                budget.charge(frames.len() as u64).await;
                marks.push(Mark(frames.iter().fold(0, |all, f| all | of_frames[f.0 as usize].0)));
            }
        }
        Self(marks)
    }

    /// The marks of a call stack.
    pub(crate) fn of(&self, stack: StackId) -> Mark {
        self.0.get(stack.0 as usize).copied().unwrap_or_default()
    }
}

fn of_frame(cx: Evidence<'_>, id: FrameId) -> Mark {
    let frame = cx.snapshot.frame(id);
    let (name, file) = (cx.snapshot.text(frame.name), cx.snapshot.text(frame.file));
    let (name, file) = (&*name, &*file);
    let is_code = is_python(file);
    let is_torch = file.contains("torch");
    let mut mark = Mark::default();
    mark.add(Mark::MODULE, is_code && (name == "_call_impl" || name == "forward"));
    mark.add(Mark::FOREACH, name.starts_with("_multi_tensor_") || name.contains("_foreach_"));
    mark.add(Mark::CACHED_CAST, name.contains("at::autocast::cached_cast"));
    let is_autocast = is_code && file.ends_with("autocast_mode.py");
    mark.add(Mark::AUTOCAST_EXIT, is_autocast && name == "__exit__");
    mark.add(Mark::AUTOCAST_EXIT, name.contains("at::autocast::clear_cache"));
    let is_loss = ["log_softmax", "cross_entropy", "nll_loss"].iter().any(|n| name.contains(n));
    mark.add(Mark::CROSS_ENTROPY, is_loss);
    let is_softmax = if is_code {
        is_torch && name == "softmax"
    } else {
        name.contains("softmax") && !name.contains("log_softmax")
    };
    mark.add(Mark::SOFTMAX, is_softmax);
    let release = ["release_variables", "SavedVariable", "autograd::deleteNode"];
    mark.add(Mark::RELEASE, !is_code && release.iter().any(|n| name.contains(n)));
    mark.add(Mark::ENGINE, !is_code && name.contains("torch::autograd::Engine::"));
    mark.add(Mark::OPTIMIZER, is_code && file.contains("/optim/"));
    mark
}
