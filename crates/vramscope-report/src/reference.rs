//! The stable name of a block, `<device>:<address>@<event|pre>`: its text, its parser, its block.

use std::fmt;
use std::str::FromStr;
use vramscope_trace::{Block, Origin, Trace};
use vramscope_units::{Addr, EventIndex};

/// The stable name of a block. Files of one run with different windows name one block alike only
/// if both windows have its alloc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockReference {
    /// The device's ordinal.
    pub device: u32,
    /// The block's address.
    pub address: Addr,
    /// Which block at this address.
    pub entry: Entry,
}

/// How a block enters the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// It was live before the window: `pre`.
    Before,
    /// An event allocates it: `12`.
    Alloc(EventIndex),
    /// Its alloc is lost, and it counts from this event on: `~12`.
    Lost(EventIndex),
}

impl BlockReference {
    /// The name of a block of a trace.
    pub fn of(trace: &Trace, block: &Block) -> Self {
        let entry = match block.origin() {
            Origin::Alloc => Entry::Alloc(EventIndex(block.enters - 1)),
            Origin::LostAlloc => Entry::Lost(EventIndex(block.enters - 1)),
            Origin::PreexistingLive | Origin::PreexistingFreed | Origin::Workspace => Entry::Before,
        };
        Self { device: trace.device.device, address: block.address, entry }
    }

    /// The index of the block in the trace of its device; `None` if the trace has no such block.
    pub fn find(self, trace: &Trace) -> Option<u32> {
        let event = match self.entry {
            Entry::Before => None,
            Entry::Alloc(event) | Entry::Lost(event) => Some(event),
        };
        trace.find(self.address.0, event).filter(|_| trace.device.device == self.device)
    }
}

impl fmt::Display for BlockReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}@", self.device, self.address.plain())?;
        match self.entry {
            Entry::Before => f.write_str("pre"),
            Entry::Alloc(event) => write!(f, "{}", event.0),
            Entry::Lost(event) => write!(f, "~{}", event.0),
        }
    }
}

/// The text is no reference. It may be the id of a finding, or a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoReference;

impl FromStr for BlockReference {
    type Err = NoReference;

    fn from_str(text: &str) -> Result<Self, NoReference> {
        let parse = || {
            let (device, rest) = text.split_once(':')?;
            let (address, entry) = rest.split_once('@')?;
            let address = u64::from_str_radix(address.strip_prefix("0x")?, 16).ok()?;
            let event = |digits: &str| digits.parse().ok().map(EventIndex);
            let entry = match (entry, entry.strip_prefix('~')) {
                ("pre", _) => Entry::Before,
                (_, Some(digits)) => Entry::Lost(event(digits)?),
                (digits, None) => Entry::Alloc(event(digits)?),
            };
            Some(Self { device: device.parse().ok()?, address: Addr(address), entry })
        };
        parse().ok_or(NoReference)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reference_reads_its_own_text() {
        let event = EventIndex(7);
        for (text, entry) in [
            ("1:0x7600a0@pre", Entry::Before),
            ("1:0x7600a0@7", Entry::Alloc(event)),
            ("1:0x7600a0@~7", Entry::Lost(event)),
        ] {
            let reference = BlockReference { device: 1, address: Addr(0x76_00a0), entry };
            assert_eq!(text.parse(), Ok(reference));
            assert_eq!(reference.to_string(), text);
        }
    }

    #[test]
    fn other_texts_are_no_references() {
        for text in ["", "growth-0-1", "0:0x10", "0:10@7", "0:0x10@", "0:0x10@-1", "x:0x10@7"] {
            assert_eq!(text.parse::<BlockReference>(), Err(NoReference), "{text:?}");
        }
    }
}
