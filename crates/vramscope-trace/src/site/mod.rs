//! Call sites: the user's frame of each stack, and hashes of frames and stacks that are equal in
//! every rank and on every machine.

mod frames;
mod helpers;
mod operation;

use frames::is_interceptor;
pub use frames::{is_distinctive, is_framework_file, is_framework_frame, is_generated_file};
pub use frames::{is_package_file, is_python};
use helpers::Helpers;
pub use operation::{node, operator, short_operation};

use rustc_hash::FxHashMap;
use vramscope_snapshot::{Frame, FrameId, Snapshot, StackId, StrId};
use xxhash_rust::xxh3::xxh3_64;

/// The call site of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// The innermost frame of the best kind that the stack has. `None` for an empty stack, and for
    /// one with no other frames than every stack has.
    pub frame: Option<Frame>,
    /// Hash of the frame's function, file and line. Equal call sites have equal hashes in every
    /// snapshot.
    pub site_hash: u64,
    /// Hash of the functions, files and lines of the whole stack. Frames of generated code count
    /// only if the model's line is not known: they differ between machines.
    pub stack_hash: u64,
    /// The best kind of its frames. `None` for an empty stack.
    kind: Option<FrameKind>,
}

/// The code that a frame belongs to, from the least to the most useful as a call site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum FrameKind {
    /// Code that captures the stack, allocates, or starts a thread.
    InEveryStack,
    /// The program's code through which PyTorch passes each operation. The operation, and what
    /// calls it, is outside of it.
    Interceptor,
    /// Compiled code without a known operation.
    Compiled,
    /// An operator that only makes an uninitialized tensor.
    EmptyOperator,
    /// An operator.
    Operator,
    /// A node of the autograd graph. The threads of backward have no Python frames.
    Node,
    /// PyTorch's Python code, and Python's library.
    Python,
    /// Code that `torch.compile` generated.
    Generated,
    /// A package's wrapper around a function of someone else.
    Wrapper,
    /// The program, and packages with modules, trainers and models.
    User,
}

impl FrameKind {
    fn of(name: &str, file: &str) -> Self {
        let operator = || match operation::operator(name) {
            Some(name) if operation::is_empty_operator(name) => Self::EmptyOperator,
            Some(_) => Self::Operator,
            None => Self::Compiled,
        };
        match file {
            _ if !is_framework_file(file) && is_interceptor(name) => Self::Interceptor,
            _ if !is_framework_file(file) && is_framework_frame(name, file) => Self::Wrapper,
            _ if !is_framework_file(file) => Self::User,
            _ if is_generated_file(file) => Self::Generated,
            _ if is_python(file) => Self::Python,
            _ if operation::node(name).is_some() => Self::Node,
            _ if frames::is_in_every_stack(name) => Self::InEveryStack,
            _ => operator(),
        }
    }
}

/// The sites of all stacks of a snapshot, by [`StackId`].
#[derive(Clone, Debug)]
pub struct Sites {
    sites: Vec<Site>,
    /// [`Sites::same_line`] of the stacks that differ from it.
    same_line: FxHashMap<StackId, StackId>,
}

impl Sites {
    /// Finds the site of every stack of a snapshot.
    pub fn new(snapshot: &Snapshot) -> Self {
        let mut buffer = Vec::new();
        // Frames share a few thousand pairs of function and file, so the kind of a pair is cached.
        let mut kinds: FxHashMap<(StrId, StrId), FrameKind> = FxHashMap::default();
        let mut frames: Vec<(u64, FrameKind)> = Vec::with_capacity(snapshot.frames.len());
        for id in 0..snapshot.frames.len() as u32 {
            let frame = snapshot.frame(FrameId(id));
            let kind = *kinds.entry((frame.name, frame.file)).or_insert_with(|| {
                FrameKind::of(&snapshot.text(frame.name), &snapshot.text(frame.file))
            });
            frames.push((hash_frame(snapshot, frame, &mut buffer), kind));
        }
        let helpers = Helpers::find(snapshot, &frames);
        let has_interceptors = frames.iter().any(|&(_, kind)| kind == FrameKind::Interceptor);
        let has_generated_code = frames.iter().any(|&(_, kind)| kind == FrameKind::Generated);
        // The first stack of each model's line.
        let mut first: FxHashMap<u64, StackId> = FxHashMap::default();
        let mut same_line = FxHashMap::default();
        let mut sites = Vec::with_capacity(snapshot.stacks.len());
        for id in (0..snapshot.stacks.len() as u32).map(StackId) {
            let ids = snapshot.stacks.frames(id);
            let of = |f: &FrameId| frames[f.0 as usize];
            // Of equals the innermost one.
            let mut best = ids.iter().rev().max_by_key(|id| of(id).1);
            if has_interceptors && best.is_some_and(|f| of(f).1 < FrameKind::User) {
                let at = ids.iter().rposition(|id| of(id).1 == FrameKind::Interceptor);
                let outside = &ids[at.map_or(0, |at| at + 1)..];
                best = outside.iter().rev().max_by_key(|id| of(id).1).or(best);
            }
            let caller = best.and_then(|best| helpers.caller(ids, *best, of));
            best = caller.as_ref().or(best);
            let kind = best.map(|f| of(f).1);
            best = best.filter(|_| kind > Some(FrameKind::InEveryStack));
            let is_generated = |id: &&FrameId| of(id).1 == FrameKind::Generated;
            let is_compiled = has_generated_code
                && best.is_some_and(|f| of(f).1 > FrameKind::Generated)
                && ids.iter().any(|id| is_generated(&id));
            let counted = ids.iter().filter(|id| !is_compiled || !is_generated(id));
            let stack_hash = hash_stack(counted.map(|id| of(id).0), &mut buffer);
            sites.push(Site {
                frame: best.map(|&f| snapshot.frame(f)),
                site_hash: best.map_or(0, |f| of(f).0),
                stack_hash,
                kind,
            });
            if is_compiled {
                let representative = *first.entry(stack_hash).or_insert(id);
                if representative != id {
                    same_line.insert(id, representative);
                }
            }
        }
        Self { sites, same_line }
    }

    /// Whether a stack is one of autograd's: it has frames of autograd, and no Python.
    pub fn is_autograd(&self, snapshot: &Snapshot, stack: StackId) -> bool {
        let frames = snapshot.stacks.frames(stack).iter();
        self.is_compiled_only(stack)
            && frames
                .map(|&id| snapshot.frame(id).name)
                .any(|name| snapshot.text(name).starts_with("torch::autograd::"))
    }

    /// Whether a stack has frames, and no Python among them.
    pub fn is_compiled_only(&self, stack: StackId) -> bool {
        self.sites[stack.0 as usize].kind.is_some_and(|kind| kind < FrameKind::Python)
    }

    /// The first stack that differs from this one at most in frames of generated code, if the
    /// model's line is known. `torch.compile` gives each operation of a line a line of its own.
    pub fn same_line(&self, stack: StackId) -> StackId {
        self.same_line.get(&stack).copied().unwrap_or(stack)
    }

    /// The hash of a frame. Equals [`Site::site_hash`] of a site at that frame.
    pub fn hash_of(snapshot: &Snapshot, frame: Frame) -> u64 {
        hash_frame(snapshot, frame, &mut Vec::new())
    }

    /// The site of a stack.
    pub fn get(&self, stack: StackId) -> Site {
        self.sites[stack.0 as usize]
    }
}

/// The hash of a stack from the hashes of its frames. `buffer` is scratch space.
fn hash_stack(frames: impl Iterator<Item = u64>, buffer: &mut Vec<u8>) -> u64 {
    buffer.clear();
    frames.for_each(|hash| buffer.extend_from_slice(&hash.to_le_bytes()));
    xxh3_64(buffer)
}

/// The hash of a name from the program. Equal in every rank and on every machine.
pub fn name_hash(name: &str) -> u64 {
    xxh3_64(name.as_bytes())
}

/// Hashes a frame's function, file and line. `buffer` is scratch space.
fn hash_frame(snapshot: &Snapshot, frame: Frame, buffer: &mut Vec<u8>) -> u64 {
    let (name, file) = (snapshot.strings.bytes(frame.name), snapshot.strings.bytes(frame.file));
    // Zero bytes separate name and file. The line has a fixed width and byte order on every target.
    buffer.clear();
    for part in [name, b"\0", file, b"\0", &frame.line.to_le_bytes()] {
        buffer.extend_from_slice(part);
    }
    xxh3_64(buffer)
}

#[cfg(test)]
mod tests;
