//! A streaming, resumable, inert reader of Python pickles, protocols 0 to 5.
//!
//! A pickle is a program for a small stack machine. [`Parser`] runs that program over chunks of
//! bytes as they arrive, and can stop and resume at any byte. It never builds a tree of Python
//! values. As soon as a dict, list or tuple is filled, a [`Sink`] gets it, extracts what it needs,
//! and leaves a small [`Value`] of its own in its place. Containers that the sink does not take
//! stay in the [`Heap`], eight bytes per value.
//!
//! Parsing executes nothing. Classes (`GLOBAL`, `REDUCE`, `BUILD` and so on) are never looked up or
//! called: such objects stay closed and are reported as [`Note`]s. Declared lengths, memo indices
//! and nesting are checked against limits before anything is allocated for them. A [`Budget`]
//! bounds the memory by the length of the stream. Nothing recurses.
//!
//! The result is what Python's `pickle.load` gives, or an error. One legal form is an error: a
//! container that changes after another one holds it ([`PickleError::LateItems`]).
//! This crate knows nothing about the content of the pickles.
//!
//! ```
//! use vramscope_pickle::{ByteOffset, Heap, Kind, Parser, Sink, Value};
//!
//! /// Counts dicts without taking them.
//! #[derive(Default)]
//! struct Dicts(usize);
//!
//! type Taken = Option<Value>;
//!
//! impl Sink for Dicts {
//!     fn dict(&mut self, _: &mut Heap, _: Taken, _: &[Value], _: ByteOffset) -> Taken {
//!         self.0 += 1;
//!         None
//!     }
//!     fn list(&mut self, _: &mut Heap, _: Taken, _: &[Value], _: ByteOffset) -> Taken {
//!         None
//!     }
//!     fn tuple(&mut self, _: &mut Heap, _: &[Value], _: ByteOffset) -> Taken {
//!         None
//!     }
//! }
//!
//! // pickle.dumps({"a": 7}, 4), in two chunks
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
//! The sink is not offered a root that was filled item by item, as here: such a container is
//! offered when it is put into another one.

mod budget;
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

pub use budget::{Budget, FREE_MEMORY, MEMORY_PER_BYTE, held_limit};
pub use capacity::reserve_for;
pub use error::{ByteOffset, PickleError};
pub use heap::{Heap, Note, Oddity};
pub use parser::{MemoryUse, Parsed, Parser};
pub use sink::Sink;
pub use strings::{Strings, insert_new};
pub use value::{Kind, ObjectId, StrId, Value};
