//! Frames of a call stack that a finding names.

use super::Evidence;
use crate::claims::Part;
use vramscope_snapshot::{Frame, FrameId, StackId};
use vramscope_trace::{Block, is_python};
use vramscope_units::EventIndex;

/// Call stacks that together have this share of the bytes, in percent, give their common frames.
const MAIN_PERCENT: u64 = 80;

impl Evidence<'_> {
    /// The frames of the program that the largest parts share, the outermost first.
    pub(crate) fn common_frames(&self, parts: &[Part]) -> Vec<FrameId> {
        let total: u64 = parts.iter().map(|part| part.bytes.0).sum();
        let mut common: Option<Vec<FrameId>> = None;
        let mut bytes = 0;
        for part in parts {
            let frames = self.snapshot.stacks.frames(part.stack).iter().rev().copied();
            let frames: Vec<FrameId> = frames.filter(|&frame| self.is_program(frame)).collect();
            // Threads of C++ have no frames of the program.
            if frames.is_empty() {
                continue;
            }
            let shared = common.get_or_insert_with(|| frames.clone());
            let same = shared.iter().zip(&frames).take_while(|(a, b)| a == b).count();
            shared.truncate(same);
            bytes += part.bytes.0;
            if bytes * 100 >= total * MAIN_PERCENT {
                break;
            }
        }
        common.unwrap_or_default()
    }

    /// The frames of the program that all these stacks share, the outermost first. Stacks without
    /// such frames do not count.
    pub(crate) fn shared_frames(&self, stacks: impl Iterator<Item = StackId>) -> Vec<FrameId> {
        let mut shared: Option<Vec<FrameId>> = None;
        for stack in stacks {
            let frames = self.snapshot.stacks.frames(stack).iter().rev().copied();
            let frames: Vec<FrameId> = frames.filter(|&frame| self.is_program(frame)).collect();
            match &mut shared {
                _ if frames.is_empty() => {}
                None => shared = Some(frames),
                Some(shared) => {
                    let same = shared.iter().zip(&frames).take_while(|(a, b)| a == b).count();
                    shared.truncate(same);
                }
            }
        }
        shared.unwrap_or_default()
    }

    /// The frame of the program that frees a block, if the free has a call stack of its own.
    pub(crate) fn own_free_frame(&self, block: &Block, free: EventIndex) -> Option<Frame> {
        let stack = self.stack_of_event(free);
        if stack == block.stack {
            return None;
        }
        self.program_frame(stack).map(|frame| self.snapshot.frame(frame))
    }

    /// The call stack of an event.
    pub(crate) fn stack_of_event(&self, event: EventIndex) -> StackId {
        self.snapshot.events.stack(self.trace.device.events.start + event.0)
    }

    /// The innermost frame outside of PyTorch.
    pub(crate) fn program_frame(&self, stack: StackId) -> Option<FrameId> {
        self.snapshot.stacks.frames(stack).iter().copied().find(|&f| self.is_program(f))
    }

    /// The innermost frame of Python code.
    pub(crate) fn innermost_python(&self, stack: StackId) -> Option<FrameId> {
        let file = |f: FrameId| self.snapshot.text(self.snapshot.frame(f).file);
        let is_code = |f: &FrameId| is_python(&file(*f)) || file(*f).starts_with('<');
        self.snapshot.stacks.frames(stack).iter().copied().find(is_code)
    }

    /// The frame of the program that calls the outermost module. The program's innermost frame if
    /// no module is called.
    pub(crate) fn calling_frame(&self, stack: StackId) -> Option<FrameId> {
        self.outside_of_modules(stack).iter().copied().find(|&f| self.is_program(f))
    }

    /// The innermost frame of the program that all of these stacks have outside of modules.
    pub(crate) fn common_caller(
        &self,
        stacks: impl IntoIterator<Item = StackId>,
    ) -> Option<FrameId> {
        let mut stacks = stacks.into_iter().map(|stack| self.outside_of_modules(stack));
        let mut common = stacks.next()?;
        for frames in stacks {
            let equal = common.iter().rev().zip(frames.iter().rev()).take_while(|(a, b)| a == b);
            common = &common[common.len() - equal.count()..];
        }
        common.iter().copied().find(|&f| self.is_program(f))
    }

    /// The frames that call the outermost module, innermost first; all if no module is called.
    fn outside_of_modules(&self, stack: StackId) -> &[FrameId] {
        let frames = self.snapshot.stacks.frames(stack);
        let name = |f: FrameId| self.snapshot.text(self.snapshot.frame(f).name);
        let outermost = frames.iter().rposition(|&f| name(f) == "_call_impl");
        &frames[outermost.map_or(0, |at| at + 1)..]
    }

    /// Whether a module runs.
    pub(crate) fn runs_module(&self, stack: StackId) -> bool {
        self.snapshot.stack(stack).any(|frame| self.snapshot.text(frame.name) == "_call_impl")
    }
}
