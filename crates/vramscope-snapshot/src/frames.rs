//! Interned call stacks and frames.
//!
//! Snapshots repeat the same frames and stacks in most events. Frames are interned by name, file
//! and line; stacks by their sequence of frames.

use crate::ids::{FrameId, StackId};
use hashbrown::HashTable;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::Hasher as _;
use vramscope_pickle::{StrId, insert_new};

/// Limit of the notes of a frame. PyTorch writes four keys.
const MAX_FRAME_NOTES: usize = 64;
/// Bytes of a frame's notes, with PyTorch's four keys.
const NOTES_BYTES: usize = 80;

/// Distinct frames, by name, file and line.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    rows: Vec<Frame>,
    table: HashTable<u32>,
    /// Notes that `augment_with_fx_traces` added: keys and texts.
    notes: FxHashMap<FrameId, Vec<(StrId, StrId)>>,
}

/// A frame of a call stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The function's name.
    pub name: StrId,
    /// The file's path. C++ frames often have `??` or an empty string.
    pub file: StrId,
    /// The line number; 0 if unknown.
    pub line: u32,
}

fn hash_of(value: impl std::hash::Hash) -> u64 {
    let mut hasher = FxHasher::default();
    value.hash(&mut hasher);
    hasher.finish()
}

impl Frames {
    pub(crate) fn intern(&mut self, frame: Frame) -> FrameId {
        let rows = &self.rows;
        let hash = hash_of(frame);
        if let Some(&id) = self.table.find(hash, |&id| rows[id as usize] == frame) {
            return FrameId(id);
        }
        let id = self.rows.len() as u32;
        self.rows.push(frame);
        let rows = &self.rows;
        insert_new(&mut self.table, hash, id, &|&id| hash_of(rows[id as usize]));
        FrameId(id)
    }

    pub(crate) fn note(&mut self, frame: FrameId, key: StrId, text: StrId) {
        let notes = self.notes.entry(frame).or_default();
        if notes.len() < MAX_FRAME_NOTES && !notes.contains(&(key, text)) {
            // In PyTorch's order of keys, however the file orders frames that differ in notes only.
            notes.insert(notes.partition_point(|note| note.0 <= key), (key, text));
        }
    }

    /// The frame with this id.
    pub fn get(&self, id: FrameId) -> Frame {
        self.rows[id.0 as usize]
    }

    /// The number of distinct frames.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no frames.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Bytes of memory that the table holds.
    pub fn memory(&self) -> usize {
        self.rows.capacity() * size_of::<Frame>()
            + self.table.allocation_size()
            + self.notes.capacity() * NOTES_BYTES
    }

    /// The notes that `augment_with_fx_traces` added to a frame: keys (`fx_node_op` ...) and texts.
    pub fn notes(&self, id: FrameId) -> impl Iterator<Item = (StrId, StrId)> {
        self.notes.get(&id).into_iter().flatten().copied()
    }
}

/// Distinct stacks: sequences of frames, innermost first.
#[derive(Clone, Debug)]
pub struct Stacks {
    frames: Vec<FrameId>,
    ends: Vec<u32>,
    table: HashTable<u32>,
}

impl Default for Stacks {
    fn default() -> Self {
        // Stack 0 is the empty one, which needs no lookup.
        Self { frames: Vec::new(), ends: vec![0], table: HashTable::new() }
    }
}

impl Stacks {
    pub(crate) fn intern(&mut self, frames: &[FrameId]) -> StackId {
        if frames.is_empty() {
            return StackId::EMPTY;
        }
        let hash = stack_hash(frames);
        let (all, ends) = (&self.frames, &self.ends);
        if let Some(&id) = self.table.find(hash, |&id| slice(all, ends, id) == frames) {
            return StackId(id);
        }
        let id = self.ends.len() as u32;
        self.frames.extend_from_slice(frames);
        self.ends.push(self.frames.len() as u32);
        let (all, ends) = (&self.frames, &self.ends);
        insert_new(&mut self.table, hash, id, &|&id| stack_hash(slice(all, ends, id)));
        StackId(id)
    }

    /// The frames of a stack, innermost first.
    pub fn frames(&self, id: StackId) -> &[FrameId] {
        slice(&self.frames, &self.ends, id.0)
    }

    /// The number of distinct stacks, the empty one included.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Bytes of memory that the table holds.
    pub fn memory(&self) -> usize {
        (self.frames.capacity() + self.ends.capacity()) * 4 + self.table.allocation_size()
    }

    /// Always false: the empty stack always exists.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

fn slice<'a>(frames: &'a [FrameId], ends: &[u32], id: u32) -> &'a [FrameId] {
    match id as usize {
        0 => &[],
        id => &frames[ends[id - 1] as usize..ends[id] as usize],
    }
}

fn stack_hash(frames: &[FrameId]) -> u64 {
    let mut hasher = FxHasher::default();
    for frame in frames {
        hasher.write_u32(frame.0);
    }
    hasher.finish()
}
