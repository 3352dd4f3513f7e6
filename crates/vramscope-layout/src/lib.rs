//! Turns analysis tables and a viewport into strips, and a point into the block under it.
//!
//! The timeline is the stack of all live blocks over the window. One strip for every block and
//! every move of it would be quadratic in the number of blocks. A [`Timeline`] therefore answers
//! *viewport queries*: it returns the strips of one [`Cell`] of a grid over slots and bytes that
//! are visible at that scale. Blocks that are too small to see are never dropped. They are merged
//! with their neighbors into a strip in the color of the largest member. Positions are relative to
//! the cell, so 32-bit floats hold them exactly. Absolute times, addresses and byte offsets stay
//! integers.
//!
//! ```
//! use vramscope_trace::slicing::now;
//! use vramscope_trace::{Sites, Trace};
//! use vramscope_layout::{Axis, AxisKind, Cell, Colors, Timeline};
//! use vramscope_snapshot::Reader;
//!
//! let json = br#"{"segments": [], "device_traces": [[
//!     {"action": "alloc", "addr": 4096, "size": 1024},
//!     {"action": "alloc", "addr": 8192, "size": 2048}]]}"#;
//! let mut reader = Reader::default();
//! reader.feed(json)?;
//! let snapshot = reader.finish()?.remove(0).snapshot;
//! let trace = &Trace::all(&snapshot)[0];
//! let axis = Axis::new(trace, AxisKind::Event).expect("every trace has an event axis");
//! let sites = Sites::new(&snapshot);
//! let colors = now(async |budget| Colors::by_site(trace, &sites, budget).await);
//!
//! let cell = Cell { kx: 0, ky: 10, slot: 0, columns: 8, low: 0, rows: 8 };
//! let mut timeline = now(async |budget| Timeline::new(trace, budget).await);
//! let (strips, _) = timeline.strips(axis, cell, &colors);
//! // Slot 0 is the state before the window: empty. Rows are 1 KiB here.
//! assert_eq!(strips.positions, [[1.0, 0.0, 3.0, 1.0], [2.0, 1.0, 3.0, 3.0]]);
//! # Ok::<(), vramscope_snapshot::LoadError>(())
//! ```

mod axis;
mod bands;
mod block_run;
mod color;
mod flame;
mod group_edges;
mod hits;
mod map;
mod merge_threshold;
mod pick;
mod segments;
mod stack_order;
mod sumtree;
mod sweep;
mod tile;
mod treemap;

pub use axis::Axis;
pub use bands::{lines, outline};
pub use block_run::block_run;
pub use color::{
    CAME, Colors, LargestSites, STAYED, WENT, frame_color, name_color, segment_color, site_color,
    stream_color,
};
pub use flame::FlameRows;
pub use group_edges::{Band, GroupEdges, Place, Side, View};
pub use map::{LinePart, MAPPED, RELEASED, SegmentMap};
pub use pick::{PickPoint, Picked};
pub use segments::{ROW_QUARTERS, RowOrder, SegmentDrawing, SegmentRows, SegmentTiles};
pub use stack_order::StackOrder;
pub use tile::{Cell, Cost, Detail, Drawing, STRIP_BUDGET, States, Timeline};
pub use treemap::{Rect, squarify};
pub use vramscope_render::{AxisKind, Color, MERGED, NO_BLOCK, Strips, TILE_COLUMNS, TILE_ROWS};
pub use vramscope_render::{HATCH_GAP, PALETTE_LEN, Palette, Surfaces, Theme};
