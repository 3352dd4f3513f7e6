//! The columnar model of a PyTorch memory snapshot, and its loader.
//!
//! [`Reader`] takes the bytes of a file in chunks of any size: a pickle as
//! `torch.cuda.memory._dump_snapshot` writes it, a gzipped one, a `trace_plot` page, or JSON. It
//! returns [`Snapshot`]s: tables with one column per field, in which strings, frames and stacks are
//! interned. It never builds a tree of Python values, and never holds the whole file (except JSON).
//!
//! ```
//! use vramscope_snapshot::{Action, Reader};
//!
//! let json = br#"{"segments": [], "device_traces": [[
//!     {"action": "alloc", "addr": 4096, "size": 100, "stream": 0,
//!      "frames": [{"name": "forward", "filename": "model.py", "line": 7}]}]]}"#;
//! let mut reader = Reader::default();
//! reader.feed(json)?;
//! let snapshot = reader.finish()?.remove(0).snapshot;
//! let event = snapshot.devices[0].events.start;
//! assert_eq!(snapshot.events.action(event), Action::ALLOC);
//! let frame = snapshot.stack(snapshot.events.stack(event)).next().expect("one frame");
//! assert_eq!((&*snapshot.text(frame.name), frame.line), ("forward", 7));
//! # Ok::<(), vramscope_snapshot::LoadError>(())
//! ```
//!
//! Defects of a file are [`Warning`]s. A [`LoadError`] names what makes a file unreadable, and
//! where. This crate knows what PyTorch writes, but draws no conclusions from it:
//! vramscope-trace does.

mod annotations;
mod constant_column;
mod delta_column;
mod device_kind;
mod dump;
mod event_range;
mod events;
mod frames;
mod host;
mod ids;
mod json;
mod json_text;
mod keys;
mod limits;
mod live_window;
mod load;
mod report;
mod segments;
mod shape_data;
mod sink;
mod snapshot;
mod source;
mod source_code;
mod tables;
mod write;

pub use annotations::{Annotation, Stage};
pub use delta_column::DeltaColumn;
pub use device_kind::DeviceKind;
pub use dump::dump;
pub use events::{Action, Events, SparseColumn};
pub use frames::{Frame, Frames, Stacks};
pub use ids::{FrameId, PoolId, PoolIndex, StackId, StreamId};
pub use load::{CAPACITY_CHECKS_PER_FILE, RowCounts, TraceProgress};
pub use report::{AffectedCurve, FileFault, LoadError, Report, Warning, WarningKind};
pub use segments::{Block, BlockState, Segment, SegmentType};
pub use shape_data::ShapeData;
pub use snapshot::{Device, Excerpt, HOST, Snapshot, UsedCounts, device_name};
pub use source::{NamedSnapshot, Reader};
pub use source_code::SourceCode;
pub use vramscope_pickle::{MemoryUse, StrId};
pub use write::{AsRecorded, Texts, write_pickle};
