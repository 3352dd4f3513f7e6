//! Errors that stop reading a pickle.

/// An offset in the pickle stream, in bytes from its start.
pub type ByteOffset = u64;

/// An error that stops reading. Everything less is a [`Note`](crate::Note).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PickleError {
    /// The stream has no bytes.
    #[error("the file is empty")]
    Empty,
    /// A byte is no opcode of protocols 0 to 5.
    #[error(
        "byte {code:#04x} at offset {at} is not an opcode: the file is damaged or not a pickle"
    )]
    UnknownOpcode {
        /// The byte.
        code: u8,
        /// Its offset.
        at: ByteOffset,
    },
    /// The stream ended before STOP.
    #[error("the file ends at offset {at}, inside {what}: it was cut off")]
    UnexpectedEnd {
        /// The part that is incomplete.
        what: &'static str,
        /// The length of the stream.
        at: ByteOffset,
    },
    /// The stack does not hold what an opcode needs.
    #[error("opcode {op} at offset {at} needs {expected}: the file is damaged")]
    Stack {
        /// The opcode's name.
        op: &'static str,
        /// What the opcode needs on the stack.
        expected: &'static str,
        /// The opcode's offset.
        at: ByteOffset,
    },
    /// A reference to a memo entry that was never written.
    #[error(
        "offset {at} refers to memo entry {index}, which was never written: the file is damaged"
    )]
    Memo {
        /// The entry's index.
        index: u64,
        /// The reference's offset.
        at: ByteOffset,
    },
    /// A text operand is not a number, or has an invalid escape.
    #[error("expected {expected} at offset {at}: the file is damaged")]
    Text {
        /// What the operand should be.
        expected: &'static str,
        /// The opcode's offset.
        at: ByteOffset,
    },
    /// A protocol after 5.
    #[error("pickle protocol {version} at offset {at} is not supported: only protocols 0 to 5 are")]
    Protocol {
        /// The protocol's number.
        version: u8,
        /// The offset of PROTO.
        at: ByteOffset,
    },
    /// Items for a container whose content was used before.
    #[error(
        "opcode {op} at offset {at} changes a list or dict after it was used: such pickles are not \
         read"
    )]
    LateItems {
        /// The opcode's name.
        op: &'static str,
        /// The opcode's offset.
        at: ByteOffset,
    },
    /// The pickle takes more memory than its length explains.
    #[error(
        "the first {at} bytes of this file ask for {asked} bytes of memory, {} times their \
         size: it is damaged or malicious",
        asked / at.max(&1)
    )]
    Memory {
        /// Bytes of memory held or asked for.
        asked: u64,
        /// The offset reached.
        at: ByteOffset,
    },
    /// The pickle takes more memory than it may.
    #[error(
        "after {at} unpacked bytes this file takes more than the limit of {max} bytes of memory"
    )]
    MaxMemory {
        /// The limit in bytes.
        max: u64,
        /// The offset reached.
        at: ByteOffset,
    },
    /// A declared size above the limit, rejected before any allocation.
    #[error(
        "{what} at offset {at} declares {found}, above the limit of {limit}: the file is damaged"
    )]
    Limit {
        /// What has the size.
        what: &'static str,
        /// The declared size.
        found: u64,
        /// The limit.
        limit: u64,
        /// The opcode's offset.
        at: ByteOffset,
    },
}

impl PickleError {
    /// Where in the pickle the error is, in bytes from its start; `None` for an empty file.
    pub fn offset(&self) -> Option<ByteOffset> {
        match *self {
            Self::Empty => None,
            Self::UnknownOpcode { at, .. }
            | Self::UnexpectedEnd { at, .. }
            | Self::Stack { at, .. }
            | Self::Memo { at, .. }
            | Self::Text { at, .. }
            | Self::Protocol { at, .. }
            | Self::LateItems { at, .. }
            | Self::Memory { at, .. }
            | Self::MaxMemory { at, .. }
            | Self::Limit { at, .. } => Some(at),
        }
    }
}
