//! What the Python frames of each call stack say, read once.

use vramscope_snapshot::{FrameId, Snapshot, StackId};
use vramscope_trace::is_python;
use vramscope_trace::slicing::{Budget, strides};

/// What a frame is, as a set of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kind(u8);

impl Kind {
    /// Of an installed package or of Python's own library.
    pub(crate) const LIBRARY: Self = Self(1);
    /// The call of a module.
    pub(crate) const MODULE_CALL: Self = Self(1 << 1);
    /// A linear layer.
    pub(crate) const LINEAR: Self = Self(1 << 2);
    /// An embedding.
    pub(crate) const EMBEDDING: Self = Self(1 << 3);
    /// A softmax.
    pub(crate) const SOFTMAX: Self = Self(1 << 4);
    /// Cross entropy.
    pub(crate) const CROSS_ENTROPY: Self = Self(1 << 5);

    /// Of PyTorch itself.
    pub(crate) const TORCH: Self = Self(1 << 6);

    /// A convolution.
    pub(crate) const CONVOLUTION: Self = Self(1 << 7);

    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// A place in a file: the number of a file and a line. Frames of one place can differ in their
/// function.
pub(crate) type Place = u32;

/// The call stacks of a snapshot, reduced to Python.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    kinds: Vec<Kind>,
    places: Vec<Place>,
    functions: Vec<u32>,
    frames: Vec<FrameId>,
    /// Where the frames of each stack begin, and where the last ends.
    begins: Vec<u32>,
}

const COST_PER_FRAME: u64 = 16;

impl Stacks {
    pub(crate) async fn new(snapshot: &Snapshot, budget: &mut Budget) -> Self {
        let mut stacks = Self { begins: vec![0], ..Self::default() };
        let mut places = rustc_hash::FxHashMap::default();
        let mut is_code = Vec::with_capacity(snapshot.frames.len());
        for part in strides(snapshot.frames.len()) {
            budget.charge(part.len() as u64 * COST_PER_FRAME).await;
            for id in part {
                let frame = snapshot.frame(FrameId(id as u32));
                let (name, file) = (snapshot.text(frame.name), snapshot.text(frame.file));
                is_code.push(is_python(&file) || file.starts_with('<'));
                stacks.kinds.push(kind(&name, &file));
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

    pub(crate) fn kind(&self, frame: FrameId) -> Kind {
        self.kinds[frame.0 as usize]
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
        frames.iter().copied().filter(|&frame| !self.kind(frame).has(Kind::LIBRARY))
    }
}

fn kind(name: &str, file: &str) -> Kind {
    let library = ["/site-packages/", "/dist-packages/", "/lib/python"];
    let mut kind = 0;
    let mut add = |bit: Kind, is_so: bool| kind |= if is_so { bit.0 } else { 0 };
    add(Kind::LIBRARY, library.iter().any(|part| file.contains(part)));
    add(Kind::TORCH, file.contains("/torch/"));
    add(Kind::MODULE_CALL, file.ends_with("torch/nn/modules/module.py"));
    add(Kind::LINEAR, file.ends_with("linear.py"));
    add(Kind::EMBEDDING, file.ends_with("sparse.py"));
    add(Kind::SOFTMAX, name.contains("softmax"));
    add(Kind::CROSS_ENTROPY, name.contains("cross_entropy"));
    add(Kind::CONVOLUTION, file.ends_with("/conv.py"));
    Kind(kind)
}
