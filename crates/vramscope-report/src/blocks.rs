//! `vramscope blocks`: every block of the window, sorted.

use super::{FrameRecord, Target, frames, site};
use serde::Serialize;
use std::cmp::Reverse;
use vramscope_analysis::{Category, lifetime};
use vramscope_units::EventIndex;

/// What blocks are sorted by, largest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// Requested bytes.
    Size,
    /// How long they lived within the window.
    Lifetime,
    /// The product of the two.
    ByteSeconds,
}

/// `vramscope.blocks/1`.
#[derive(Debug, Serialize)]
pub struct Blocks<'a> {
    /// The name and version of this form.
    pub schema: &'static str,
    /// The file.
    pub path: &'a str,
    /// The device.
    pub device: u32,
    /// How many blocks there are in all.
    pub total: usize,
    /// `us` (microseconds), or `events` where there is no clock: the unit of `lifetime`.
    pub lifetime_unit: &'static str,
    /// Sorted, and cut at `--limit`.
    pub blocks: Vec<BlockRecord<'a>>,
}

/// One block's life.
#[derive(Debug, Serialize)]
pub struct BlockRecord<'a> {
    /// `0x...`.
    pub address: String,
    /// How many earlier blocks of the window had this address.
    pub reuse: u32,
    /// Requested bytes.
    pub bytes: u64,
    /// Bytes carved out for it.
    pub block_bytes: u64,
    /// What it is.
    pub category: Category,
    /// How sure that is, from 0 to 1.
    pub confidence: f32,
    /// The event that allocated it; null when that was before the window or is lost.
    pub alloc_event: Option<u32>,
    /// The event that asked for its free; null when there is none.
    pub free_requested_event: Option<u32>,
    /// The event that completed it; null when there is none.
    pub free_completed_event: Option<u32>,
    /// How long it lived within the window, in `lifetime_unit`.
    pub lifetime: u64,
    /// Whether it was there before the window.
    pub preexisting: bool,
    /// Whether it is live at the end.
    pub live_at_end: bool,
    /// The stream's handle.
    pub stream: i64,
    /// Whether `frames` are those of its free.
    pub of_free: bool,
    /// The call site that names the stack: its innermost frame that is the user's own.
    pub site: String,
    /// Innermost first.
    pub frames: Vec<FrameRecord<'a>>,
}

/// A device's blocks.
pub fn blocks(target: Target<'_>, sort: Sort, limit: Option<usize>) -> Blocks<'_> {
    let trace = target.trace();
    let mut order: Vec<u32> = (0..trace.blocks.len() as u32).collect();
    order.sort_by_cached_key(|&i| {
        let block = &trace.blocks[i as usize];
        let weight = match sort {
            Sort::Size => u128::from(block.bytes.0),
            Sort::Lifetime => u128::from(lifetime(trace, block)),
            Sort::ByteSeconds => u128::from(block.bytes.0) * u128::from(lifetime(trace, block)),
        };
        (Reverse(weight), i)
    });
    order.truncate(limit.unwrap_or(usize::MAX));
    Blocks {
        schema: "vramscope.blocks/1",
        path: target.path,
        device: target.device(),
        total: trace.blocks.len(),
        lifetime_unit: if trace.clock.is_some() { "us" } else { "events" },
        blocks: order.into_iter().map(|i| record(target, i)).collect(),
    }
}

/// The record of the block at `index`.
pub fn record(target: Target<'_>, index: u32) -> BlockRecord<'_> {
    let stack = target.trace().blocks[index as usize].stack;
    BlockRecord { frames: frames(target.snapshot(), stack), ..record_without_frames(target, index) }
}

/// [`record`] without frames, whose lookup costs more than all other fields.
pub fn record_without_frames(target: Target<'_>, index: u32) -> BlockRecord<'_> {
    let (trace, snapshot) = (target.trace(), target.snapshot());
    let block = &trace.blocks[index as usize];
    let guess = target.entry.categories(target.index).get(index);
    let number = |event: Option<EventIndex>| event.map(|EventIndex(e)| e);
    BlockRecord {
        address: block.address.plain(),
        reuse: block.reuse(),
        bytes: block.bytes.0,
        block_bytes: target.entry.carving(target.index).sizes[index as usize].0,
        category: guess.category,
        confidence: guess.confidence,
        alloc_event: number(block.alloc_event()),
        free_requested_event: number(block.free_requested()),
        free_completed_event: number(block.free_completed()),
        lifetime: lifetime(trace, block),
        preexisting: block.is_preexisting(),
        live_at_end: block.leaves == trace.slots(),
        stream: snapshot.stream(block.stream),
        of_free: block.has_stack_of_free(),
        site: site(target.entry, block.stack),
        frames: Vec::new(),
    }
}
