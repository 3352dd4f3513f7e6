//! Tooltips and details of blocks.

use crate::messages::{AxisKind, Quantity};
use serde::{Deserialize, Serialize};
use vramscope_report::{FrameRecord, text};

/// The tooltip of a block or of a merged strip.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Hit {
    /// Index of the block, or of the largest block of a merged strip.
    pub block: u32,
    /// The block's reference, as in [`BlockDetail::reference`].
    pub reference: String,
    /// The title: `329.2 MiB`, or `1,204 small blocks, 3.10 MiB`.
    pub title: String,
    /// Requested bytes of the block or of all merged blocks.
    pub bytes: Quantity,
    /// The call site: `model.py:212 forward`.
    pub site: String,
    /// Further lines: the lifetime, or the largest blocks of a merged strip.
    pub lines: Vec<String>,
    /// The number of blocks in the strip.
    pub count: u32,
    /// The strip's color word.
    pub color: u32,
}

/// The details of a block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct BlockDetail {
    /// Index into the device's block table.
    pub block: u32,
    /// The stable reference: `<device>:<address>@<event|pre>`.
    pub reference: String,
    /// The device's ordinal.
    pub device: u32,
    /// The event of the alloc, or the one from which the block counts; -1 is the state before the
    /// window.
    #[cfg_attr(test, ts(type = "number"))]
    pub event: i64,
    /// Requested bytes.
    pub bytes: Quantity,
    /// The address, and which block at it this is: `0x76002a000000 (4th block here)`.
    pub address: String,
    /// The block's properties in display order.
    pub rows: Vec<DetailRow>,
    /// The terms of a search for the blocks of the call site.
    pub terms: Vec<String>,
    /// The call stack, innermost frame first.
    pub stack: StackDetail,
    /// All of it as text, for the clipboard.
    pub copy: String,
    /// The block's color word on the timeline.
    pub color: u32,
    /// The block's lifetime on each axis, in slots.
    pub spans: Vec<Span>,
}

/// A range on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Span {
    /// The axis.
    pub kind: AxisKind,
    /// First slot.
    pub x0: f64,
    /// The slot after the last one.
    pub x1: f64,
}

/// One row of the details pane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct DetailRow {
    /// The stable name: `alloc_event`.
    pub key: String,
    /// The label: `allocated`.
    pub label: String,
    /// The value in words: `#3,702  +1.204 s`.
    pub text: String,
    /// The exact integer as decimal digits; null if the value is not an integer.
    pub raw: Option<String>,
}

impl DetailRow {
    /// A row.
    pub fn new(
        key: impl Into<String>,
        label: impl Into<String>,
        text: impl Into<String>,
        raw: Option<String>,
    ) -> Self {
        Self { key: key.into(), label: label.into(), text: text.into(), raw }
    }
}

/// A call stack for display.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct StackDetail {
    /// The frames, innermost first.
    pub frames: Vec<FrameRow>,
    /// A note: this is the stack of the free, or the reason why there is no stack.
    pub note: Option<String>,
    /// The frames of frameworks in words: `30 native frames`. Empty without one.
    pub folded: String,
}

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct FrameRow {
    /// The function.
    pub name: String,
    /// A short name: `aten::mul` for an operator's C++ function, else the function without its
    /// arguments.
    pub function: String,
    /// The file's path as recorded.
    pub file: String,
    /// The line; 0 if unknown.
    pub line: u32,
    /// The place: `model.py:212`.
    pub place: String,
    /// The line of source, from the file beside the snapshot; empty if it is unknown.
    pub source: String,
    /// True for frames of PyTorch, Python's library and C++, which are dimmed and folded.
    pub framework: bool,
}

impl FrameRow {
    /// The row of a frame with its line of source, which is empty if unknown.
    pub fn new(frame: &FrameRecord<'_>, source: &str) -> Self {
        Self {
            name: frame.name.to_string(),
            function: text::short_name(&frame.name),
            file: frame.file.to_string(),
            line: frame.line,
            place: text::place(&frame.file, frame.line),
            source: source.to_owned(),
            framework: frame.is_framework(),
        }
    }
}
