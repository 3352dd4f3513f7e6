//! Messages between the page and a rank's worker.

use crate::messages::{
    AxisKind, BlockDetail, DeviceRef, Failure, Hit, Loaded, Progress, TileKey, TooLarge, views,
};
use serde::{Deserialize, Serialize};

/// A request from the page to a rank's worker. The response has the request's `id`.
///
/// The variant's name is the object's only key. A tag among the fields would need a larger decoder,
/// which buffers all fields first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Request {
    /// Tiles by priority. A newer `Tiles` cancels older ones of the same kind of layer. Canceled
    /// tiles are not answered.
    Tiles {
        /// The id, returned with every tile.
        id: u32,
        /// The trace.
        target: DeviceRef,
        /// The axis.
        axis: AxisKind,
        /// The layer that the tiles show.
        layer: views::Layer,
        /// The tiles.
        tiles: Vec<TileKey>,
    },
    /// The block at a point.
    Pick {
        /// The id, returned in the response.
        id: u32,
        /// The trace.
        target: DeviceRef,
        /// The axis.
        axis: AxisKind,
        /// The layer that is drawn: its groups give the order of the stack.
        layer: views::Layer,
        /// Log2 of the slots per column on screen. With `ky` the answer matches the drawn strips.
        kx: u8,
        /// Log2 of the bytes per row on screen.
        ky: u8,
        /// The slot under the pointer.
        slot: f64,
        /// The height under the pointer in bytes.
        bytes: f64,
        /// True for a moving pointer: the next such pick cancels this one.
        hover: bool,
    },
    /// The details of a block, by its index in the device's block table.
    Block {
        /// The id, returned in the response.
        id: u32,
        /// The trace.
        target: DeviceRef,
        /// Index into the block table.
        block: u32,
    },
    /// The block with a reference, from a link or a saved state: `<device>:<address>@<event|pre>`.
    Find {
        /// The id, returned in the response.
        id: u32,
        /// Index into [`Loaded::parts`](crate::messages::Loaded::parts).
        part: u32,
        /// The reference: `0:0x7f5a00000000@1234`.
        reference: String,
    },
    /// Converts a range on one axis to the other axis, so that a change of the axis keeps the view.
    MapRange {
        /// The id, returned in the response.
        id: u32,
        /// The trace.
        target: DeviceRef,
        /// The axis of `x0` and `x1`. The answer is on the other axis.
        from: AxisKind,
        /// Left edge in slots.
        x0: f64,
        /// Right edge in slots.
        x1: f64,
    },
    /// A query of a view. A newer query of some kinds cancels older ones (see
    /// [`views::Query::spec`]).
    View {
        /// The id, returned in the response.
        id: u32,
        /// The trace.
        target: DeviceRef,
        /// The query.
        query: views::Query,
    },
}

/// A response of a rank's worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Response {
    /// The progress of loading.
    Progress(Progress),
    /// The file is loaded. Its numbers are final.
    Loaded(Loaded),
    /// The file could not be read, or a request could not be answered.
    Failed(Failure),
    /// The file needs more memory than is available.
    TooLarge(TooLarge),
    /// A tile. Three buffers are sent along. `positions` has four f32 per strip: x0, y0, x1, y1 in
    /// the tile's columns and rows. `colors` has one u32 per strip. `blocks` has one u32 per strip:
    /// the block's index, or with [`MERGED`](crate::messages::MERGED) set the largest of several
    /// blocks.
    Tile {
        /// The request's id.
        id: u32,
        /// The trace.
        target: DeviceRef,
        /// The axis.
        axis: AxisKind,
        /// The tile.
        key: TileKey,
        /// The number of strips.
        strips: u32,
    },
    /// The answer to `Pick`; null over empty space.
    Picked {
        /// The request's id.
        id: u32,
        /// The hover text.
        hit: Option<Hit>,
    },
    /// The answer to `Block` and `Find`; null if the block does not exist.
    Block {
        /// The request's id.
        id: u32,
        /// The block.
        detail: Option<BlockDetail>,
    },
    /// The answer to `MapRange`.
    Range {
        /// The request's id.
        id: u32,
        /// The axis of the range.
        axis: AxisKind,
        /// Left edge in slots.
        x0: f64,
        /// Right edge in slots.
        x1: f64,
    },
    /// The answer to `View`.
    View {
        /// The request's id.
        id: u32,
        /// The answer.
        answer: views::Answer,
    },
}
