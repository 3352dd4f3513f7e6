//! What dropping a reference frees, in a graph of references.
//!
//! Nodes are variables and objects. A variable refers to one object, an object to any number. Some
//! objects hold blocks of memory. A block is freed when no variable leads to an object that holds
//! it. So the reference to free is one that is on all of these ways: a *dominator* of the block.
//!
//! ```
//! use vramscope_holders::{Graph, Limits};
//!
//! // Two variables: `losses` is a list of two tensors, `last` is the second of them.
//! let mut graph = Graph::default();
//! let [losses, last] = [graph.add_variable(false), graph.add_variable(false)];
//! let [list, first, second] = [graph.add(), graph.add(), graph.add()];
//! for (from, to) in [(losses, list), (last, second), (list, first), (list, second)] {
//!     graph.refer(from, to);
//! }
//! let (holds, bytes) = ([(first, 0), (second, 1)], [10, 20]);
//! let drops = graph.drops(&holds, &bytes, &Limits::default(), |_| true, &|| true).unwrap();
//! // Dropping `losses` frees the first tensor. Two references hold the second.
//! let freed = drops.rows.iter().map(|row| (row.references.as_slice(), row.bytes));
//! let freed: Vec<_> = freed.collect();
//! assert_eq!(freed, [
//!     (&[(last, second), (list, second)][..], 20),
//!     (&[(list, first)][..], 10),
//! ]);
//! assert_eq!(drops.of_block, [Some(1), Some(0)]);
//! ```

mod csr;
mod dominators;
mod drops;
mod graph;
mod pace;
mod paths;

pub use drops::{Drops, Limits, Row};
pub use graph::{Graph, Referrers};
pub use pace::Stopped;
pub use paths::{NONE, Path, Paths};
