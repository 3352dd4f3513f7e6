//! Messages between the page and its workers.
//!
//! `cargo xtask types` generates the page's TypeScript types from this crate into
//! `web/viewer/src/generated`. Every displayed value comes with its display text, so the page
//! formats no numbers.
//!
//! Encoding of values:
//! - Bytes and absolute microseconds are decimal strings in `raw`, because a JavaScript number
//!   cannot represent every u64.
//! - Addresses are strings: `"0x.."`.
//! - Positions along an axis are numbers in *slots* (see [`Axis`]), which are small and relative.
//! - Large data are columns, sent along with the response as transferred buffers.

mod axes;
mod details;
mod envelope;
mod loading;
mod run;
#[cfg(test)]
mod style_variables;
#[cfg(test)]
mod typescript;
pub mod views;

pub use axes::*;
pub use details::*;
pub use envelope::*;
pub use loading::*;
pub use run::*;
pub use vramscope_render::{Axis, AxisKind, MERGED, NO_BLOCK, TILE_COLUMNS, TILE_ROWS, TileKey};
pub use vramscope_report::{Phrase, Quantity};

/// The version of the protocol, increased with every change of a message's meaning. A page and a
/// worker with different versions show an error.
pub const PROTOCOL: u32 = 1;
