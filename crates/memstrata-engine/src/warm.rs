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
/// How many blocks are live at a time.
const LIVE: u32 = 40;
/// Where they lie, in how much.
const BASE: u64 = 0x7f00_0000_0000;
const BLOCK: u64 = 1024;
const SPAN: u64 = 2 * LIVE as u64 * BLOCK;
/// Items that CPython writes at a time.
const BATCH: u32 = 1000;

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

/// A pickle that is being written, and how many of its objects are remembered.
struct Pickle {
    bytes: Vec<u8>,
    memo: u32,
}

impl Pickle {
    /// Opcodes as they are, `remembered` of which are MEMOIZE; gives the number of the first of these.
    fn put(&mut self, opcodes: &[u8], remembered: u32) -> u32 {
        self.bytes.extend_from_slice(opcodes);
        self.memo += remembered;
        self.memo - remembered
    }

    fn text(&mut self, text: &str) -> u32 {
        self.put(&[b"\x8c", &[text.len() as u8], text.as_bytes(), b"\x94"].concat(), 1)
    }

    /// A text that is only remembered.
    fn word(&mut self, text: &str) -> u32 {
        let memo = self.text(text);
        self.put(b"0", 0);
        memo
    }

    fn refer(&mut self, memo: u32) {
        match u8::try_from(memo) {
            Ok(near) => self.put(&[b'h', near], 0),
            Err(_) => self.put(&[&b"j"[..], &memo.to_le_bytes()].concat(), 0),
        };
    }

    /// An integer of seven bytes, as addresses and microseconds are.
    fn long(&mut self, value: u64) {
        self.put(&[&b"\x8a\x07"[..], &value.to_le_bytes()[..7]].concat(), 0);
    }
}

/// Blocks that are allocated and, some blocks later, freed.
fn snapshot(blocks: u32) -> Vec<u8> {
    let mut p = Pickle { bytes: b"\x80\x04".to_vec(), memo: 0 };
    p.put(b"}\x94(", 1);
    let [name, filename, line, frames] = ["name", "filename", "line", "frames"].map(|word| p.word(word));
    let [alloc, requested, completed] = ["alloc", "free_requested", "free_completed"].map(|word| p.word(word));
    let [action, addr, size, stream, time] = ["action", "addr", "size", "stream", "time_us"].map(|word| p.word(word));
    let [segments, address, total] = ["segments", "address", "total_size"].map(|word| p.word(word));
    let [inside, state, inactive] = ["blocks", "state", "inactive"].map(|word| p.word(word));
    let traces = p.word("device_traces");
    let shared: Vec<u32> = (0..FRAMES)
        .map(|frame| {
            let memo = p.put(b"}\x94(", 1);
            p.refer(name);
            p.text(&format!("call_{frame}"));
            p.refer(filename);
            p.text(&format!("module_{}.py", frame % 16));
            p.refer(line);
            p.put(&[b"K", &[frame as u8][..], b"u0"].concat(), 0);
            memo
        })
        .collect();
    // One segment, which is free when all is over.
    p.refer(segments);
    p.put(b"]\x94}\x94(", 2);
    for part in [address, total] {
        p.refer(part);
        p.long(if part == address { BASE } else { SPAN });
    }
    p.refer(inside);
    p.put(b"]\x94}\x94(", 2);
    p.refer(size);
    p.long(SPAN);
    p.refer(state);
    p.refer(inactive);
    p.put(b"uaua", 0);
    p.refer(traces);
    p.put(b"]\x94]\x94(", 2);
    let mut event = |number: u32, what: u32, block: u32| {
        if number > 0 && number.is_multiple_of(BATCH) {
            p.put(b"e(", 0);
        }
        p.put(b"}\x94(", 1);
        p.refer(action);
        p.refer(what);
        p.refer(addr);
        p.long(BASE + u64::from(block % (2 * LIVE)) * BLOCK);
        p.refer(size);
        p.put(b"M\0\x04", 0);
        p.refer(stream);
        p.put(b"K\0", 0);
        p.refer(time);
        p.long(0x6_0000_0000_0000 + u64::from(number) * 7);
        p.refer(frames);
        p.put(b"]\x94(", 1);
        for depth in 0..DEPTH {
            p.refer(shared[((block % STACKS) * 7 + depth * 5) as usize % shared.len()]);
        }
        p.put(b"eu", 0);
    };
    let mut number = 0;
    for step in 0..blocks + LIVE {
        let freed = step.checked_sub(LIVE).map(|old| [(requested, old), (completed, old)]);
        let allocated = (step < blocks).then_some((alloc, step));
        for (what, block) in allocated.into_iter().chain(freed.into_iter().flatten()) {
            event(number, what, block);
            number += 1;
        }
    }
    p.put(b"eau.", 0);
    p.bytes
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
