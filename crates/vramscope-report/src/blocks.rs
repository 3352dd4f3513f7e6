//! `vramscope blocks`: all blocks of the window, sorted.

use super::backward::{self, BackwardRecord, BackwardTable};
use super::sidecar::TensorRecord;
use super::{BlockPlaces, StackTable, Target, block_site};
use crate::Derived;
use crate::notes::notes;
use crate::shapes::{BlockShapes, ShapeTable};
use serde::Serialize;
use std::borrow::Cow;
use std::cmp::Reverse;
use vramscope_analysis::slicing::{Budget, run_to_completion};
use vramscope_analysis::{Category, Guess, lifetime};
use vramscope_units::EventIndex;

/// The sort key of blocks, largest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// Requested bytes.
    Size,
    /// Lifetime within the window.
    Lifetime,
    /// Requested bytes times lifetime.
    ByteSeconds,
}

/// `vramscope.blocks/1`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Blocks<'a> {
    /// The schema's name and version.
    pub schema: &'static str,
    /// The file's path.
    pub path: &'a str,
    /// The device's ordinal.
    pub device: u32,
    /// The number of all blocks, before `--limit`.
    pub total: usize,
    /// The unit of `lifetime`: `us` (microseconds), or `events` without a clock.
    pub lifetime_unit: &'static str,
    /// The sorted blocks, at most `--limit`.
    pub blocks: Vec<BlockRecord<'a>>,
    /// The number of blocks left out by `--limit`.
    pub omitted: usize,
    /// The places in backward of `blocks`.
    pub backward: BackwardTable,
    /// The shapes of `blocks`, as recorded or as far as sizes tell.
    pub shapes: ShapeTable,
    /// The call stacks of `blocks`, innermost frame first.
    pub stacks: StackTable<'a>,
}

/// One block over its lifetime.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlockRecord<'a> {
    /// The address: `0x...`.
    pub address: String,
    /// The number of earlier blocks of the window at this address.
    pub reuse: u32,
    /// Requested bytes.
    pub bytes: u64,
    /// The block size: bytes that the allocator carved out of a segment.
    pub block_bytes: u64,
    /// The category.
    pub category: Category,
    /// Confidence in the category, from 0 to 1.
    pub confidence: f32,
    /// Two categories that are equally likely, where `category` is `unknown` for that reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidates: Option<[Category; 2]>,
    /// The event that allocated the block; null if it was before the window or is lost.
    pub alloc_event: Option<u32>,
    /// The event that requested the free; null if there is none.
    pub free_requested_event: Option<u32>,
    /// The event that completed the free; null if there is none.
    pub free_completed_event: Option<u32>,
    /// Lifetime within the window, in `lifetime_unit`.
    pub lifetime: u64,
    /// True if the block was live before the window.
    pub preexisting: bool,
    /// True if the block is live at the end of the window.
    pub live_at_end: bool,
    /// The stream's handle; 0 is the default stream.
    pub stream: i64,
    /// The memory pool: `[0, 0]` is the default pool; null if the file does not record pools.
    pub pool: Option<[u64; 2]>,
    /// `small` (requests up to 1 MiB) or `large`: the kind of segment that the block lies in.
    pub segment_type: &'static str,
    /// True if `stack` is the stack of the free, not of the alloc.
    pub of_free: bool,
    /// The call site: the stack's innermost frame in the user's own code.
    pub site: String,
    /// The index of its place in the report's `backward`; absent unless backward allocated the
    /// block in a thread without Python.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backward: Option<u32>,
    /// The text of `_set_memory_metadata` at the alloc; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_metadata: Option<Cow<'a, str>>,
    /// The texts of `_annotate_tensor`, in order; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub annotations: Vec<Cow<'a, str>>,
    /// The tensor in the block at the end of a step; absent unless the file beside the snapshot
    /// names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tensor: Option<&'a TensorRecord>,
    /// The index of the shape in the report's `shapes`; absent if nothing tells the shape.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<u32>,
    /// The index of the call stack in the report's `stacks`.
    pub stack: u32,
}

/// The blocks of a device.
pub fn blocks(target: Target<'_>, sort: Sort, limit: Option<usize>) -> Blocks<'_> {
    of_blocks(target, (0..target.trace().blocks.len() as u32).collect(), sort, limit)
}

/// These blocks of a device.
pub fn of_blocks(
    target: Target<'_>,
    mut order: Vec<u32>,
    sort: Sort,
    limit: Option<usize>,
) -> Blocks<'_> {
    let (trace, total) = (target.trace(), order.len());
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
    let budget = &mut Budget::unlimited();
    let of_backward = backward::of_blocks(target, order.iter().copied(), budget);
    let of_backward = run_to_completion(of_backward);
    let (mut stacks, places) = (StackTable::default(), BlockPlaces::new(target));
    let mut backward = BackwardTable::default();
    run_to_completion(target.entry.derive(Derived::Dims, target.index, budget));
    let mut known = BlockShapes::new(target);
    let mut shapes = ShapeTable::default();
    let row = |(&i, place): (&u32, Option<BackwardRecord>)| {
        let stack = stacks.add(target.snapshot(), trace.blocks[i as usize].stack);
        let backward = place.map(|place| backward.add(place));
        let shape = known.of(i).map(|shape| shapes.add(shape));
        BlockRecord { backward, shape, ..record(&places, target, i, stack) }
    };
    let rows: Vec<BlockRecord<'_>> = order.iter().zip(of_backward).map(row).collect();
    Blocks {
        schema: "vramscope.blocks/1",
        path: target.path,
        device: target.device(),
        total,
        lifetime_unit: if trace.clock.is_some() { "us" } else { "events" },
        omitted: total - rows.len(),
        blocks: rows,
        backward,
        shapes,
        stacks,
    }
}

/// What is known of a block, without texts that take time to make.
#[derive(Clone, Copy, Debug)]
pub struct BlockFacts {
    /// See [`BlockRecord::reuse`].
    pub reuse: u32,
    /// See [`BlockRecord::bytes`].
    pub bytes: u64,
    /// See [`BlockRecord::block_bytes`].
    pub block_bytes: u64,
    /// Its category.
    pub guess: Guess,
    /// See [`BlockRecord::alloc_event`].
    pub alloc_event: Option<u32>,
    /// See [`BlockRecord::free_requested_event`].
    pub free_requested_event: Option<u32>,
    /// See [`BlockRecord::free_completed_event`].
    pub free_completed_event: Option<u32>,
    /// See [`BlockRecord::lifetime`].
    pub lifetime: u64,
    /// See [`BlockRecord::preexisting`].
    pub preexisting: bool,
    /// See [`BlockRecord::live_at_end`].
    pub live_at_end: bool,
    /// See [`BlockRecord::stream`].
    pub stream: i64,
    /// See [`BlockRecord::pool`].
    pub pool: Option<[u64; 2]>,
    /// See [`BlockRecord::segment_type`].
    pub segment_type: &'static str,
    /// See [`BlockRecord::of_free`].
    pub of_free: bool,
}

/// What is known of the block at `index`.
pub fn facts(places: &BlockPlaces<'_>, target: Target<'_>, index: u32) -> BlockFacts {
    let trace = target.trace();
    let block = &trace.blocks[index as usize];
    let number = |event: Option<EventIndex>| event.map(|EventIndex(e)| e);
    BlockFacts {
        reuse: block.reuse(),
        bytes: block.bytes.0,
        block_bytes: target.entry.carving(target.index).sizes[index as usize].0,
        guess: target.entry.categories(target.index).get(index),
        alloc_event: number(block.alloc_event()),
        free_requested_event: number(block.free_requested()),
        free_completed_event: number(block.free_completed()),
        lifetime: lifetime(trace, block),
        preexisting: block.is_preexisting(),
        live_at_end: block.leaves == trace.slots(),
        stream: target.snapshot().stream(block.stream),
        pool: places.pool(index),
        segment_type: places.segment_type(index),
        of_free: block.has_stack_of_free(),
    }
}

/// The record of the block at `index`, without its place in backward and its shape. `stack` is the
/// index of its call stack in the report.
pub fn record<'a>(
    places: &BlockPlaces<'_>,
    target: Target<'a>,
    index: u32,
    stack: u32,
) -> BlockRecord<'a> {
    let block = &target.trace().blocks[index as usize];
    let (facts, notes) = (facts(places, target, index), notes(target, index));
    BlockRecord {
        address: block.address.plain(),
        reuse: facts.reuse,
        bytes: facts.bytes,
        block_bytes: facts.block_bytes,
        category: facts.guess.category,
        confidence: facts.guess.confidence,
        candidates: facts.guess.candidates,
        alloc_event: facts.alloc_event,
        free_requested_event: facts.free_requested_event,
        free_completed_event: facts.free_completed_event,
        lifetime: facts.lifetime,
        preexisting: facts.preexisting,
        live_at_end: facts.live_at_end,
        stream: facts.stream,
        pool: facts.pool,
        segment_type: facts.segment_type,
        of_free: facts.of_free,
        site: block_site(target, block),
        backward: None,
        user_metadata: notes.metadata,
        annotations: notes.annotations,
        tensor: target.entry.tensor(target.index, index),
        shape: None,
        stack,
    }
}
