//! A streaming, resumable, inert reader of Python pickles, protocols 0 to 5.
//!
//! A pickle is a program for a small stack machine. [`Parser`] runs that program over chunks of
//! bytes as they arrive, stopping and resuming at any byte. It never builds a tree of Python
//! values: as soon as a dict, list or tuple is filled it is pushed into a [`Sink`], which takes out
//! what it wants and leaves a small [`Value`] of its own in its place. What no sink takes stays in
//! the [`Heap`], eight bytes a value.
//!
//! It is inert. Classes (`GLOBAL`, `REDUCE`, `BUILD` and so on) are never looked up, let alone
//! called; such values stay closed and are reported as [`Note`]s. Declared lengths, memo numbers
//! and nesting are bounded before anything is reserved for them, and nothing recurses. This crate
//! knows nothing of what the pickles are about.
//!
//! ```
//! use vramscope_pickle::{ByteOffset, Heap, Kind, Parser, Sink, Value};
//!
//! /// Counts dicts, and takes none.
//! #[derive(Default)]
//! struct Dicts(usize);
//!
//! impl Sink for Dicts {
//!     fn dict(&mut self, _: &mut Heap, _: Option<Value>, _: &[Value], _: ByteOffset) -> Option<Value> {
//!         self.0 += 1;
//!         None
//!     }
//!     fn list(&mut self, _: &mut Heap, _: Option<Value>, _: &[Value], _: ByteOffset) -> Option<Value> {
//!         None
//!     }
//!     fn tuple(&mut self, _: &mut Heap, _: &[Value], _: ByteOffset) -> Option<Value> {
//!         None
//!     }
//! }
//!
//! // pickle.dumps({"a": 7}, 4), in two pieces
//! let pickle = b"\x80\x04\x95\x0a\0\0\0\0\0\0\0}\x94\x8c\x01a\x94K\x07s.";
//! let mut parser = Parser::new(Dicts::default(), &[]);
//! parser.feed(&pickle[..9])?;
//! parser.feed(&pickle[9..])?;
//! let parsed = parser.finish()?;
//! let items = parsed.heap.items(parsed.root);
//! assert_eq!(items[1].kind(), Kind::Int(7));
//! # Ok::<(), vramscope_pickle::PickleError>(())
//! ```
//!
//! The root itself is not offered to the sink when it was filled item by item, as here: there is
//! nothing left to put it into.

mod capacity;
mod containers;
mod error;
mod fast_path;
mod heap;
mod list_cache;
mod machine;
mod memo;
pub mod opcode;
mod operands;
mod parser;
mod sink;
mod slow_opcodes;
mod strings;
mod text;
mod value;

pub use capacity::reserve_for;
pub use error::{ByteOffset, PickleError};
pub use heap::{Heap, Note, Oddity};
pub use parser::{MemoryUse, Parsed, Parser};
pub use sink::Sink;
pub use strings::{Strings, insert_new};
pub use value::{Kind, ObjectId, StrId, Value};
