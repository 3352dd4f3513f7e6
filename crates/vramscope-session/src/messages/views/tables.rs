//! Tables: filters, orders, export formats, and pages of rows.

pub use vramscope_report::blocks::BlockSort;

use super::FlameWeight;
use crate::messages::{DetailRow, Quantity};
use serde::{Deserialize, Serialize};
use vramscope_report::blocks::BlockRecord;
use vramscope_report::events::EventRecord;
use vramscope_units::Bytes;

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
    /// The rows. Only the page reads them.
    #[serde(skip_deserializing)]
    pub rows: Vec<EventRow>,
    /// Index of the row requested with `near`; null if there is none.
    pub at: Option<u32>,
    /// All actions of the trace with their numbers of events.
    pub actions: Vec<DetailRow>,
}

/// An event in the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct EventRow {
    /// The record. Its stack is an index into the snapshot's.
    pub record: EventRecord<'static>,
    /// The rest of its row.
    pub view: EventView,
}

/// What the table shows of an event beyond the record.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct EventView {
    /// The time from the window's start: `+1.204 s`; empty without a clock.
    pub time: String,
    /// The address, and which block at it the event is about: `0x76002a000000 (4th)`; empty if
    /// there is none.
    pub place: String,
    /// Requested bytes that are live after the event.
    pub live: Bytes,
    /// The call site, or the reason why there is none.
    pub label: String,
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
    /// The rows. Only the page reads them.
    #[serde(skip_deserializing)]
    pub rows: Vec<BlockRow>,
    /// Index of the row requested with `near`; null if there is none.
    pub at: Option<u32>,
}

/// A block in the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct BlockRow {
    /// The record. Its stack is an index into the snapshot's.
    pub record: BlockRecord<'static>,
    /// The rest of its row.
    pub view: BlockView,
}

/// What the table shows of a block beyond the record.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct BlockView {
    /// Index into the block table.
    pub block: u32,
    /// The block's stable reference.
    pub reference: String,
    /// The tensor that it holds: `0.weight, float32 [1024, 1024]`, or its shape; empty if neither
    /// is known.
    pub tensor: String,
    /// The alloc in words: `#3,702`, `before window`, or `not recorded`.
    pub allocated: String,
    /// The free in words: `#3,709`, `live at end`, `pending`, or `before #3,709` if the free is
    /// lost.
    pub freed: String,
    /// The lifetime in events, and in time with a clock: `412 events, 38.2 ms`.
    pub life: String,
    /// The address, and which block at it this is: `0x76002a000000 (4th)`.
    pub place: String,
    /// The stream's handle. The text of a long handle is only its end.
    pub handle: Quantity,
    /// The color word.
    pub color: u32,
}
