//! Explains out-of-memory messages without a snapshot: what each figure means, which causes the
//! figures show, and what they leave open.
//!
//! A text may be one message or a whole log. [`explain`] finds the messages of PyTorch, of the
//! driver, of libraries, of NCCL and of serving engines in it, however loggers and terminals broke
//! them into lines. The figures of a message are rounded, so each sum has an error; a cause is
//! `shown` only where the error cannot change that.
//!
//! ```
//! use vramscope_report::explain::{CauseKind, explain};
//!
//! let explained = explain(
//!     "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 100.00 MiB. GPU 0 has a \
//!      total capacity of 31.37 GiB of which 15.88 MiB is free. Including non-PyTorch memory, \
//!      this process has 31.34 GiB memory in use. Of the allocated memory 30.74 GiB is allocated \
//!      by PyTorch, and 19.41 MiB is reserved by PyTorch but unallocated.",
//! );
//! assert_eq!(explained.messages[0].cause, Some(CauseKind::Demand));
//! ```

mod answer;
mod causes;
mod figures;
mod flat;
mod groups;
mod pieces;
mod record;
mod scan;
mod words;

pub use record::{
    Advice, Backend, Bar, BarPart, Cause, CauseKind, CauseVerdict, CountName, Counted, Explained,
    Figure, FigureName, Kind, Message, ProcessMemory,
};

use std::io::{self, Read};
use vramscope_units::Count;

/// Explains the out-of-memory messages of a text.
pub fn explain(log: &str) -> Explained {
    explained(log.as_bytes()).unwrap_or_else(|_| unreachable!("memory can be read"))
}

/// Explains the out-of-memory messages of a log of any length. Memory does not grow with the log,
/// only with its messages.
///
/// # Errors
/// The log cannot be read.
pub fn explained(log: impl Read) -> io::Result<Explained> {
    let mut search = scan::Search::default();
    let lines = pieces::each(log, |piece| search.take(piece))?;
    Ok(Explained {
        schema: "vramscope.explain/1",
        lines: Count(i64::try_from(lines).unwrap_or(i64::MAX)),
        messages: groups::alike(&search.end()),
    })
}
