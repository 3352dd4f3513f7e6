//! Work without an outcome, before there is a file.
//!
//! A browser runs WebAssembly as it was translated in haste until a function has done much; only then is it optimised. The
//! first file of a visit would be read in that time. So while the page waits for a file, a worker reads snapshots that are
//! made here: as PyTorch writes them, in CPython's opcodes, references to shared frames above all.

use crate::file::Loader;
use crate::protocol::Failure;

/// Frames that the call stacks are made of.
const FRAMES: u32 = 256;
/// Frames of a call stack.
const DEPTH: u32 = 30;
/// How many different call stacks there are.
const STACKS: u32 = 61;
/// How many blocks are live at a time, and their bytes.
const LIVE: u32 = 40;
const BLOCK: u64 = 1024;
/// Where they lie.
const BASE: u64 = 0x7f00_0000_0000;
/// Items that CPython writes at a time.
const BATCH: u32 = 1000;

/// The root, and words that are only remembered: `name` as 1, and so on to `device_traces` as 19.
const HEAD: &[u8] = b"\x80\x04}\x94(\x8c\x04name\x940\x8c\x08filename\x940\x8c\x04line\x940\x8c\x06frames\x940\
    \x8c\x06action\x940\x8c\x05alloc\x940\x8c\x0efree_requested\x940\x8c\x0efree_completed\x940\
    \x8c\x04addr\x940\x8c\x04size\x940\x8c\x06stream\x940\x8c\x07time_us\x940\
    \x8c\x08segments\x940\x8c\x07address\x940\x8c\x0atotal_size\x940\x8c\x06blocks\x940\x8c\x05state\x940\x8c\x08inactive\x940\
    \x8c\x0ddevice_traces\x940";
/// A frame but for its line; it is remembered, too, the first as 20.
const FRAME: &[u8] = b"}\x94(h\x01h\x06h\x02h\x10h\x03K";
/// One segment of 80 KiB, free when all is over; then the traces, of which the first is open.
const SEGMENT: &[u8] =
    b"h\x0d]\x94}\x94(h\x0e\x8a\x07\0\0\0\0\0\x7f\0h\x0fJ\0\x40\x01\0h\x10]\x94}\x94(h\x0aJ\0\x40\x01\0h\x11h\x12uaua\
    h\x13]\x94]\x94(";
/// The numbers of what happens to a block.
const ALLOC: u8 = 6;
const REQUESTED: u8 = 7;
const COMPLETED: u8 = 8;

/// Read a made-up trace of `blocks` blocks; gives the number of events that were read, three a block.
///
/// ```
/// assert_eq!(memstrata_engine::warm_up(500).unwrap(), 1500);
/// ```
///
/// # Errors
/// As for any file; there is nothing wrong with this one.
pub fn warm_up(blocks: u32) -> Result<u32, Failure> {
    let bytes = snapshot(blocks);
    let mut loader = Loader::new("", bytes.len() as u64);
    loader.feed(&bytes)?;
    let file = loader.finish()?;
    let traces = file.parts.iter().flat_map(|part| &part.traces);
    Ok(traces.map(|trace| trace.device.events.len() as u32).sum())
}

/// Blocks that are allocated and, some blocks later, freed.
fn snapshot(blocks: u32) -> Vec<u8> {
    let mut out = HEAD.to_vec();
    for line in 0..FRAMES {
        out.extend_from_slice(FRAME);
        out.extend_from_slice(&[line as u8, b'u', b'0']);
    }
    out.extend_from_slice(SEGMENT);
    let mut number = 0;
    for step in 0..blocks + LIVE {
        let freed = step.checked_sub(LIVE);
        for (what, block) in [(ALLOC, Some(step)), (REQUESTED, freed), (COMPLETED, freed)] {
            let Some(block) = block.filter(|&block| block < blocks) else { continue };
            if number > 0 && number % BATCH == 0 {
                out.extend_from_slice(b"e(");
            }
            event(&mut out, number, what, block);
            number += 1;
        }
    }
    out.extend_from_slice(b"eau.");
    out
}

fn event(out: &mut Vec<u8>, number: u32, what: u8, block: u32) {
    // Integers of seven bytes, as addresses and microseconds are.
    let address = BASE + u64::from(block % (2 * LIVE)) * BLOCK;
    let time = 0x6_0000_0000_0000 + u64::from(number) * 7;
    out.extend_from_slice(&[b'}', 0x94, b'(', b'h', 5, b'h', what, b'h', 9, 0x8a, 7]);
    out.extend_from_slice(&address.to_le_bytes()[..7]);
    out.extend_from_slice(b"h\x0aM\0\x04h\x0bK\0h\x0c\x8a\x07");
    out.extend_from_slice(&time.to_le_bytes()[..7]);
    out.extend_from_slice(b"h\x04]\x94(");
    for depth in 0..DEPTH {
        let frame = 20 + ((block % STACKS) * 7 + depth * 5) % FRAMES;
        if frame < 256 {
            out.extend_from_slice(&[b'h', frame as u8]);
        } else {
            out.push(b'j');
            out.extend_from_slice(&frame.to_le_bytes());
        }
    }
    out.extend_from_slice(b"eu");
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, LIVE, snapshot};
    use crate::file::Loader;
    use crate::report::summary::summarize;

    #[test]
    fn what_is_read_is_a_snapshot_without_a_warning() {
        let bytes = snapshot(2000);
        let mut loader = Loader::new("warm", bytes.len() as u64);
        loader.feed(&bytes).expect("a pickle");
        let file = loader.finish();
        let [summary] = &summarize("warm", bytes.len() as u64, &file)[..] else { panic!("one snapshot") };
        assert!(summary.warnings.is_empty(), "{:?}", summary.warnings);
        let [device] = &summary.devices[..] else { panic!("one device") };
        assert_eq!((device.events, device.allocations_in_window, device.end_live_blocks), (6000, 2000, 0));
        assert_eq!(device.requested_bytes.peak, i64::from(LIVE + 1) * BLOCK as i64);
    }
}
