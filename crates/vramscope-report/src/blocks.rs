//! `vramscope blocks`: all blocks of the window, sorted.

mod sort;

pub use sort::{BlockSort, SortKeys};

use super::backward::{self, BackwardRecord, BackwardTable};
use super::sidecar::TensorRecord;
use super::{BlockPlaces, StackTable, Target, block_site, stack};
use crate::Derived;
use crate::columns::{Column, Rows};
use crate::holders::{self, Holder};
use crate::notes::notes;
use crate::shapes::{BlockShapes, ShapeTable};
use crate::text::{block_reference, pool_text};
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::cmp::Reverse;
use vramscope_inference::Category;
use vramscope_snapshot::StackId;
use vramscope_trace::slicing::now;
use vramscope_trace::{Block, Trace, lifetime};
use vramscope_units::{Addr, Bytes, EventIndex, EventSpan, Micros};

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

/// A time within the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline, untagged))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(type = "Quantity"))]
pub enum Lifetime {
    /// In microseconds.
    Time(Micros),
    /// In events, for a trace without a clock.
    Events(EventSpan),
}

impl Lifetime {
    /// The lifetime of a block.
    pub fn of(trace: &Trace, block: &Block) -> Self {
        let lifetime = lifetime(trace, block);
        match trace.clock {
            Some(_) => Self::Time(Micros(i64::try_from(lifetime).unwrap_or(i64::MAX))),
            None => Self::Events(EventSpan(lifetime)),
        }
    }

    /// The number, in its unit.
    pub fn raw(self) -> u64 {
        match self {
            Self::Time(Micros(time)) => time.unsigned_abs(),
            Self::Events(EventSpan(events)) => events,
        }
    }
}

impl Serialize for Lifetime {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Time(time) => time.serialize(to),
            Self::Events(events) => events.serialize(to),
        }
    }
}

/// One block over its lifetime.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct BlockRecord<'a> {
    /// The address: `0x...`.
    pub address: Addr,
    /// The number of earlier blocks of the window at this address.
    pub reuse: u32,
    /// Requested bytes.
    pub bytes: Bytes,
    /// The block size: bytes that the allocator carved out of a segment.
    pub block_bytes: Bytes,
    /// The category.
    pub category: Category,
    /// Two categories that are equally likely, where `category` is `unknown` for that reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub candidates: Option<[Category; 2]>,
    /// The event that allocated the block; null if it was before the window or is lost.
    pub alloc_event: Option<EventIndex>,
    /// The event that requested the free; null if there is none.
    pub free_requested_event: Option<EventIndex>,
    /// The event that completed the free; null if there is none.
    pub free_completed_event: Option<EventIndex>,
    /// Lifetime within the window, in `lifetime_unit`.
    pub lifetime: Lifetime,
    /// True if the block was live before the window.
    pub preexisting: bool,
    /// True if the block is live at the end of the window.
    pub live_at_end: bool,
    /// The stream's handle; 0 is the default stream.
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub stream: i64,
    /// The memory pool: `[0, 0]` is the default pool; null if the file does not record pools.
    #[cfg_attr(feature = "typescript", ts(type = "[number, number] | null"))]
    pub pool: Option<[u64; 2]>,
    /// `small` (requests up to 1 MiB) or `large`: the kind of segment that the block lies in.
    pub segment_type: &'static str,
    /// True if `stack` is the stack of the free, not of the alloc.
    pub of_free: bool,
    /// The call site: the stack's innermost frame in the user's own code.
    pub site: Cow<'a, str>,
    /// The index of its place in the report's `backward`; absent unless backward allocated the
    /// block in a thread without Python.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub backward: Option<u32>,
    /// The text of `_set_memory_metadata` at the alloc; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub user_metadata: Option<Cow<'a, str>>,
    /// The texts of `_annotate_tensor`, in order; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<Vec<String>>"))]
    pub annotations: Vec<Cow<'a, str>>,
    /// The tensor in the block at the end of a step; absent unless the file beside the snapshot
    /// names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub tensor: Option<Cow<'a, TensorRecord>>,
    /// What holds the block at the end: the shortest chain of references. Absent unless the file
    /// beside the snapshot tells it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<Vec<Holder>>"))]
    pub holders: Vec<Holder>,
    /// The index of the shape in the report's `shapes`; absent if nothing tells the shape.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub shape: Option<u32>,
    /// The index of the call stack in the report's `stacks`.
    pub stack: u32,
}

impl BlockRecord<'_> {
    /// The record with texts of its own.
    pub fn into_owned(self) -> BlockRecord<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        BlockRecord {
            site: owned(self.site),
            user_metadata: self.user_metadata.map(owned),
            annotations: self.annotations.into_iter().map(owned).collect(),
            tensor: self.tensor.map(|tensor| Cow::Owned(tensor.into_owned())),
            address: self.address,
            reuse: self.reuse,
            bytes: self.bytes,
            block_bytes: self.block_bytes,
            category: self.category,
            candidates: self.candidates,
            alloc_event: self.alloc_event,
            free_requested_event: self.free_requested_event,
            free_completed_event: self.free_completed_event,
            lifetime: self.lifetime,
            preexisting: self.preexisting,
            live_at_end: self.live_at_end,
            stream: self.stream,
            pool: self.pool,
            segment_type: self.segment_type,
            of_free: self.of_free,
            backward: self.backward,
            holders: self.holders,
            shape: self.shape,
            stack: self.stack,
        }
    }
}

/// The blocks of a device.
pub fn blocks(target: Target<'_>, sort: BlockSort, limit: Option<usize>) -> Blocks<'_> {
    of_blocks(target, (0..target.trace().blocks.len() as u32).collect(), sort, limit)
}

/// These blocks of a device.
pub fn of_blocks(
    target: Target<'_>,
    mut order: Vec<u32>,
    sort: BlockSort,
    limit: Option<usize>,
) -> Blocks<'_> {
    let (trace, total) = (target.trace(), order.len());
    let keys = now(async |budget| SortKeys::new(target, sort, budget).await);
    order.sort_by_cached_key(|&i| (Reverse(keys.wide(i)), i));
    order.truncate(limit.unwrap_or(usize::MAX));
    let of_backward =
        now(async |budget| backward::of_blocks(target, order.iter().copied(), budget).await);
    let (mut stacks, places) =
        (StackTable::default(), now(async |budget| BlockPlaces::new(target, budget).await));
    let mut backward = BackwardTable::default();
    now(async |budget| target.entry.derive(Derived::Dims, target.index, budget).await);
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

/// The record of the block at `index`, without its place in backward and its shape. `stack` is the
/// index of its call stack in the report.
pub fn record<'a>(
    places: &BlockPlaces<'_>,
    target: Target<'a>,
    index: u32,
    stack: u32,
) -> BlockRecord<'a> {
    let site = block_site(target, &target.trace().blocks[index as usize]);
    with_site(places, target, index, site.into(), stack)
}

/// [`record`] with a call site that is known.
fn with_site<'a>(
    places: &BlockPlaces<'_>,
    target: Target<'a>,
    index: u32,
    site: Cow<'a, str>,
    stack: u32,
) -> BlockRecord<'a> {
    let (trace, entry) = (target.trace(), target.entry);
    let block = &trace.blocks[index as usize];
    let (guess, notes) = (entry.categories(target.index).get(index), notes(target, index));
    BlockRecord {
        address: block.address,
        reuse: block.reuse(),
        bytes: block.bytes,
        block_bytes: entry.carving(target.index).sizes[index as usize],
        category: guess.category,
        candidates: guess.candidates,
        alloc_event: block.alloc_event(),
        free_requested_event: block.free_requested(),
        free_completed_event: block.free_completed(),
        lifetime: Lifetime::of(trace, block),
        preexisting: block.is_preexisting(),
        live_at_end: block.leaves == trace.slots(),
        stream: target.snapshot().stream(block.stream),
        pool: places.pool(index),
        segment_type: places.segment_type(index),
        of_free: block.has_stack_of_free(),
        site,
        backward: None,
        user_metadata: notes.metadata,
        annotations: notes.annotations,
        tensor: entry.tensor(target.index, index).map(Cow::Borrowed),
        holders: holders::of_block(target, index).into_iter().collect(),
        shape: None,
        stack,
    }
}

/// Rows of the table of blocks.
pub struct BlockRows;

/// A row of the table of blocks.
pub struct BlockRow<'a> {
    /// The device.
    pub target: Target<'a>,
    /// The index of the block in the trace.
    pub index: u32,
    /// The block.
    pub record: BlockRecord<'a>,
}

impl Rows for BlockRows {
    type Row<'a> = BlockRow<'a>;
}

impl<'a> BlockRow<'a> {
    /// The row of the block at `index`.
    pub fn new(places: &BlockPlaces<'_>, target: Target<'a>, index: u32) -> Self {
        let stack = target.trace().blocks[index as usize].stack.0;
        Self { target, index, record: record(places, target, index, stack) }
    }

    /// [`BlockRow::new`] with a call site that is known.
    pub fn with_site(
        places: &BlockPlaces<'_>,
        target: Target<'a>,
        index: u32,
        site: Cow<'a, str>,
    ) -> Self {
        let stack = target.trace().blocks[index as usize].stack.0;
        Self { target, index, record: with_site(places, target, index, site, stack) }
    }

    fn block(&self) -> &'a Block {
        &self.target.trace().blocks[self.index as usize]
    }
}

/// The columns of the table of blocks, in order.
pub fn columns() -> Vec<Column<BlockRows>> {
    type Of = Column<BlockRows>;
    vec![
        Of::new("device", "Device", |row| row.target.device()).only_in_csv(),
        Of::text("reference", "Id of the block", |row| {
            block_reference(row.target.trace(), row.block()).into()
        })
        .only_in_csv(),
        Of::new("address", "Address", |row| row.record.address),
        Of::new("reuse", "Earlier blocks of the window at this address", |row| row.record.reuse),
        Of::new("requested_bytes", "Requested bytes", |row| row.record.bytes),
        Of::new("block_bytes", "Bytes that the allocator carved out of a segment", |row| {
            row.record.block_bytes
        }),
        Of::text("category", "What it holds", |row| row.record.category.name().into()),
        Of::new(
            "alloc_event",
            "Event that allocated it; null if it was before the window",
            |row| row.record.alloc_event,
        ),
        Of::new("free_requested_event", "Event that requested the free", |row| {
            row.record.free_requested_event
        }),
        Of::new("free_completed_event", "Event that completed the free", |row| {
            row.record.free_completed_event
        }),
        Of::new("lifetime", "Life within the window", |row| row.record.lifetime.raw()),
        Of::new("preexisting", "Whether it was live before the window", |row| {
            row.record.preexisting
        }),
        Of::new("live_at_end", "Whether it is live at the end of the window", |row| {
            row.record.live_at_end
        }),
        Of::new("stream", "Stream; 0 is the default stream", |row| row.record.stream),
        Of::maybe_text("pool", "Memory pool; `(0, 0)` is the default pool", |row| {
            row.record.pool.map(|pool| pool_text(pool).into())
        }),
        Of::text("segment_type", "`small` or `large`", |row| row.record.segment_type.into()),
        Of::new("stack_of_free", "Whether the stack is that of the free", |row| row.record.of_free),
        Of::text(
            "site",
            "Call site with its line: the innermost frame in the user's own code",
            |row| row.record.site.as_ref().into(),
        ),
        Of::new("stack", "Call stack; null if there is none", |row| {
            stack(StackId(row.record.stack))
        })
        .not_in_csv(),
        Of::maybe_text(
            "user_metadata",
            "Text of `_set_memory_metadata` at the allocation",
            |row| row.record.user_metadata.as_deref().map(Into::into),
        )
        .not_in_csv(),
        Of::maybe_text("annotations", "Texts of `_annotate_tensor`", |row| {
            let texts = &row.record.annotations;
            (!texts.is_empty()).then(|| texts.join("; ").into())
        })
        .not_in_csv(),
        Of::maybe_text(
            "tensor_kind",
            "Kind of the tensor in it, from the file beside the snapshot",
            |row| row.record.tensor.as_ref().map(|tensor| tensor.kind.as_str().into()),
        )
        .not_in_csv(),
        Of::maybe_text("tensor_name", "Name of that tensor", |row| {
            row.record.tensor.as_ref().map(|tensor| tensor.name.as_str().into())
        })
        .not_in_csv(),
        Of::maybe_text("tensor_shape", "Shape of that tensor", |row| {
            row.record.tensor.as_ref().map(|tensor| tensor.shape_text().into())
        })
        .not_in_csv(),
        Of::maybe_text("tensor_dtype", "Type of that tensor's elements", |row| {
            row.record.tensor.as_ref().map(|tensor| tensor.dtype.as_str().into())
        })
        .not_in_csv(),
        Of::maybe_text("holders", "What holds it at the end, from the same file", |row| {
            let texts: Vec<String> = row.record.holders.iter().map(Holder::line).collect();
            (!texts.is_empty()).then(|| texts.join("; ").into())
        })
        .not_in_csv(),
    ]
}
