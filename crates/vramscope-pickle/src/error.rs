//! Why a pickle could not be read: what, where, and what was expected.

/// A place in the pickle stream, in bytes from its first.
pub type ByteOffset = u64;

/// What stops a read. Everything else is a [`Note`](crate::Note).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PickleError {
    /// The stream has no byte at all.
    #[error("the file is empty")]
    Empty,
    /// A byte that starts no opcode of protocols 0 to 5.
    #[error(
        "byte {code:#04x} at offset {at} is no pickle opcode: the file is damaged, or not a pickle"
    )]
    UnknownOpcode {
        /// The byte.
        code: u8,
        /// Where.
        at: ByteOffset,
    },
    /// The stream ended before STOP.
    #[error("the file ends at offset {at}, inside {what}: it was cut off")]
    UnexpectedEnd {
        /// What was being read.
        what: &'static str,
        /// Where the bytes end.
        at: ByteOffset,
    },
    /// An opcode found something else on the stack than it needs.
    #[error("opcode {op} at offset {at} needs {expected}: the file is damaged")]
    Stack {
        /// Its name.
        op: &'static str,
        /// What it needs.
        expected: &'static str,
        /// Where.
        at: ByteOffset,
    },
    /// A reference to a memo entry that was never written.
    #[error(
        "offset {at} refers to memo entry {index}, which was never written: the file is damaged"
    )]
    Memo {
        /// The entry.
        index: u64,
        /// Where.
        at: ByteOffset,
    },
    /// Text that should be a number, or an escape that is none.
    #[error("offset {at}: expected {expected}")]
    Text {
        /// What should be there.
        expected: &'static str,
        /// Where.
        at: ByteOffset,
    },
    /// A newer protocol.
    #[error("pickle protocol {version} at offset {at}: protocols 0 to 5 are known")]
    Protocol {
        /// The number found.
        version: u8,
        /// Where.
        at: ByteOffset,
    },
    /// A declared size beyond what any snapshot needs, refused before anything is reserved for it.
    #[error(
        "{what} at offset {at} declares {found}, more than the limit of {limit}: the file is damaged"
    )]
    Limit {
        /// Of what.
        what: &'static str,
        /// What is declared.
        found: u64,
        /// The limit.
        limit: u64,
        /// Where.
        at: ByteOffset,
    },
}
