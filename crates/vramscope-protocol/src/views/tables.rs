//! Tables: filters, orders, export formats, and pages of rows.

use super::FlameWeight;
use crate::{DetailRow, Quantity};
use serde::{Deserialize, Serialize};

/// A filter of events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct EventFilter {
    /// Names of actions, such as `alloc`; empty for all actions.
    pub actions: Vec<String>,
    /// A search as in [`Query::Search`](super::Query::Search); empty for no filter.
    pub text: String,
}

/// The filter and order of the block table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct BlockTable {
    /// A search as in [`Query::Search`](super::Query::Search); empty for no filter.
    pub text: String,
    /// A category; empty for all categories.
    pub category: String,
    /// An event, to keep only blocks that are live after it; -1 is the state before the window.
    #[cfg_attr(test, ts(type = "number | null"))]
    pub live_at: Option<i64>,
    /// The column to sort by.
    pub sort: BlockSort,
    /// True for the largest or last first.
    pub descending: bool,
}

/// A column of the block table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub enum BlockSort {
    /// Requested bytes.
    #[default]
    Size,
    /// Block size: bytes that the allocator carved out of a segment.
    BlockSize,
    /// The category's name.
    Category,
    /// The event of the alloc. Blocks from before the window come first.
    Allocated,
    /// The event that completed the free. Blocks that are live at the end come last.
    Freed,
    /// Lifetime within the window in microseconds (in events without a clock).
    Lifetime,
    /// Requested bytes times lifetime.
    ByteSeconds,
    /// The address.
    Address,
    /// The stream.
    Stream,
    /// The call site.
    Site,
}

/// A table to export.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Table {
    /// Blocks.
    Blocks {
        /// The filter and the order.
        table: BlockTable,
    },
    /// Events.
    Events {
        /// The filter.
        filter: EventFilter,
    },
    /// Findings.
    Findings {},
    /// Segments after an event.
    Segments {
        /// The event after which the state holds; -1 is the state before the window.
        #[cfg_attr(test, ts(type = "number"))]
        event: i64,
    },
}

/// The text format of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub enum TextForm {
    /// CSV (RFC 4180) with a head line.
    Csv,
    /// JSON as the command line prints it with `--format json`, without schema and path.
    Json,
}

/// A format of another tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ExportFormat {
    /// Folded stacks, one per line.
    Folded {
        /// The weight of a block.
        weight: FlameWeight,
        /// The event after which `Cursor` counts; -1 is the state before the window.
        #[cfg_attr(test, ts(type = "number"))]
        event: i64,
    },
    /// A profile for speedscope.
    Speedscope {
        /// The weight of a block.
        weight: FlameWeight,
        /// The event after which `Cursor` counts; -1 is the state before the window.
        #[cfg_attr(test, ts(type = "number"))]
        event: i64,
    },
    /// A trace for the Perfetto UI.
    Perfetto {},
}

/// A page of events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct EventPage {
    /// The number of matching rows.
    pub total: u32,
    /// The number of rows in words: `2,431 of 6,866 events`.
    pub text: String,
    /// Index of the first row among all matching rows.
    pub from: u32,
    /// The rows.
    pub rows: Vec<EventRow>,
    /// Index of the row requested with `near`; null if there is none.
    pub at: Option<u32>,
    /// All actions of the trace with their numbers of events.
    pub actions: Vec<DetailRow>,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct EventRow {
    /// The event's index.
    pub event: u32,
    /// The event in words: `#3,702`.
    pub label: String,
    /// The time from the window's start: `+1.204 s`; empty without a clock.
    pub time: String,
    /// PyTorch's name of the action.
    pub action: String,
    /// The event's size.
    pub bytes: Quantity,
    /// The address; empty if there is none.
    pub address: String,
    /// Requested bytes that are live after the event.
    pub live: Quantity,
    /// The call site.
    pub site: String,
    /// The color word of the call stack.
    pub color: u32,
    /// The block that the event is about; null if there is none.
    pub block: Option<u32>,
}

/// A page of blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct BlockPage {
    /// The number of matching rows.
    pub total: u32,
    /// The number of rows and their bytes in words: `12 of 2,443 blocks, 1.20 GiB`.
    pub text: String,
    /// True if tensors or their shapes are known.
    pub has_tensors: bool,
    /// Index of the first row among all matching rows.
    pub from: u32,
    /// The rows.
    pub rows: Vec<BlockLine>,
    /// Index of the row requested with `near`; null if there is none.
    pub at: Option<u32>,
}

/// A block in the table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct BlockLine {
    /// Index into the block table.
    pub block: u32,
    /// The block's stable reference.
    pub reference: String,
    /// Requested bytes.
    pub bytes: Quantity,
    /// The block size: bytes that the allocator carved out of a segment.
    pub block_bytes: Quantity,
    /// The category.
    pub category: String,
    /// The tensor that it holds: `0.weight, float32 [1024, 1024]`, or its shape; empty if neither
    /// is known.
    pub tensor: String,
    /// The alloc in words: `#3,702`, `before window`, or `not recorded`.
    pub allocated: String,
    /// The free in words: `#3,709`, `live at end`, `pending`, or `before #3,709` if the free is
    /// lost.
    pub freed: String,
    /// The lifetime in microseconds, or in events without a clock.
    pub lifetime: Quantity,
    /// The address, and which block at it this is: `0x76002a000000 (4th)`.
    pub address: String,
    /// The stream's handle, a signed number. The text of a long handle is only its end.
    pub stream: Quantity,
    /// The call site.
    pub site: String,
    /// The color word.
    pub color: u32,
}
