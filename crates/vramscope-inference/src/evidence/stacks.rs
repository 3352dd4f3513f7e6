//! The Python frames of each call stack, read once.

use super::marks::{Mark, Marks};
use vramscope_snapshot::{FrameId, Snapshot, StackId};
use vramscope_trace::is_python;
use vramscope_trace::slicing::{Budget, strides};

/// A place in a file: the number of a file and a line. Frames of one place can differ in their
/// function.
pub(crate) type Place = u32;

/// The call stacks of a snapshot, reduced to Python.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    /// The marks of frames and stacks.
    pub(crate) marks: Marks,
    places: Vec<Place>,
    functions: Vec<u32>,
    frames: Vec<FrameId>,
    /// Where the frames of each stack begin, and where the last ends.
    begins: Vec<u32>,
}

const COST_PER_FRAME: u64 = 16;

impl Stacks {
    pub(crate) async fn new(snapshot: &Snapshot, budget: &mut Budget) -> Self {
        let marks = Marks::new(snapshot, budget).await;
        let mut stacks = Self { marks, begins: vec![0], ..Self::default() };
        let mut places = rustc_hash::FxHashMap::default();
        let mut is_code = Vec::with_capacity(snapshot.frames.len());
        for part in strides(snapshot.frames.len()) {
            budget.charge(part.len() as u64 * COST_PER_FRAME).await;
            for id in part {
                let frame = snapshot.frame(FrameId(id as u32));
                let file = snapshot.text(frame.file);
                is_code.push(is_python(&file) || file.starts_with('<'));
                let next = places.len() as Place;
                stacks.places.push(*places.entry((frame.file, frame.line)).or_insert(next));
                stacks.functions.push(frame.name.0);
            }
        }
        for part in strides(snapshot.stacks.len()) {
            for id in part {
                let frames = snapshot.stacks.frames(StackId(id as u32));
                budget.charge(frames.len() as u64).await;
                stacks.frames.extend(frames.iter().filter(|f| is_code[f.0 as usize]));
                stacks.begins.push(stacks.frames.len() as u32);
            }
        }
        stacks
    }

    /// The Python frames of a stack, innermost first.
    pub(crate) fn of(&self, stack: StackId) -> &[FrameId] {
        let at = stack.0 as usize;
        match self.begins.get(at..at + 2) {
            Some(&[begin, end]) => &self.frames[begin as usize..end as usize],
            _ => &[],
        }
    }

    pub(crate) fn mark(&self, frame: FrameId) -> Mark {
        self.marks.of_frame(frame)
    }

    /// Whether one of frames has a mark.
    pub(crate) fn any(&self, frames: &[FrameId], mark: Mark) -> bool {
        frames.iter().any(|&frame| self.mark(frame).has(mark))
    }

    pub(crate) fn place(&self, frame: FrameId) -> Place {
        self.places[frame.0 as usize]
    }

    /// A number of the function's name.
    pub(crate) fn function(&self, frame: FrameId) -> u32 {
        self.functions[frame.0 as usize]
    }

    /// A frame at a place.
    pub(crate) fn frame_at(&self, place: Place) -> Option<FrameId> {
        self.places.iter().position(|&p| p == place).map(|at| FrameId(at as u32))
    }

    /// The frames of the program itself, innermost first.
    pub(crate) fn own<'s>(
        &'s self,
        frames: &'s [FrameId],
    ) -> impl Iterator<Item = FrameId> + use<'s> {
        frames.iter().copied().filter(|&frame| !self.mark(frame).has(Mark::LIBRARY))
    }
}
