//! The snapshot that the page's worker reads before the first file.
//!
//! A browser compiles WebAssembly quickly at first, and optimizes a function after many calls. So
//! while the page waits for a file, a worker reads this snapshot and draws tiles of it. The
//! snapshot has every kind of value that PyTorch writes, in CPython's opcodes: the browser would
//! not optimize the code for an opcode that is missing here.

use crate::pickler::{List, Pickler};
use std::io;

/// Distinct frames of all call stacks.
const FRAMES: u32 = 256;
/// Frames of the shortest call stack.
const MIN_DEPTH: u32 = 24;
/// Number of different depths.
const DEPTHS: u32 = 16;
/// Distinct call stacks.
const STACKS: u32 = 61;
/// Blocks that are live at a time, also at the end.
const LIVE: u32 = 40;
/// Slots for blocks in a segment.
const SLOTS: u32 = 2;
/// Segments: together they have twice as many slots as there are live blocks.
const SEGMENTS: u32 = 2 * LIVE / SLOTS;
/// Bytes of a slot.
const SLOT_BYTES: u64 = 2 << 20;
/// Address of the first slot.
const BASE: u64 = 0x7f00_0000_0000;
/// Events after which the form of events changes between PyTorch 2.8 and 2.9.
const EVENTS_PER_FORM: u32 = 200;

/// Writes the snapshot of a trace that allocates `blocks` blocks, a multiple of ten, and frees all
/// but the last 40.
///
/// The result is the same for the same number.
pub fn warm_up(blocks: u32) -> Vec<u8> {
    let mut out = Vec::new();
    write(blocks, &mut out).expect("a Vec takes all bytes");
    out
}

fn write(blocks: u32, out: &mut Vec<u8>) -> io::Result<()> {
    let mut writer = Writer { pickler: Pickler::new(out)?, frames: [None; FRAMES as usize] };
    writer.pickler.dict()?;
    writer.pickler.word("segments")?;
    let (mut segments, _) = writer.pickler.list(SEGMENTS as usize)?;
    for segment in 0..SEGMENTS {
        writer.pickler.item(&mut segments);
        writer.segment(segment, blocks)?;
    }
    writer.pickler.end_list(&segments);
    writer.pickler.word("device_traces")?;
    let (mut devices, _) = writer.pickler.list(1)?;
    writer.pickler.item(&mut devices);
    let events: Vec<_> = events(blocks).collect();
    let (mut trace, _) = writer.pickler.list(events.len())?;
    for (number, (action, block)) in (0..).zip(events) {
        writer.pickler.item(&mut trace);
        writer.event(number, action, block)?;
    }
    writer.pickler.end_list(&trace);
    writer.pickler.end_list(&devices);
    writer.pickler.word("allocator_settings")?;
    writer.settings()?;
    writer.pickler.word("external_annotations")?;
    writer.annotations()?;
    writer.pickler.end_dict();
    writer.pickler.finish().map(drop)
}

/// Actions with their blocks: `LIVE` blocks after its allocation, each block is freed.
fn events(blocks: u32) -> impl Iterator<Item = (&'static str, u32)> {
    (0..blocks).flat_map(|block| {
        let freed = block.checked_sub(LIVE);
        let frees = freed
            .into_iter()
            .flat_map(|freed| [("free_requested", freed), ("free_completed", freed)]);
        frees.chain([("alloc", block)])
    })
}

/// Requested bytes of a block, which fills its slot.
fn requested(block: u32) -> u64 {
    SLOT_BYTES - u64::from(block * 997 % 511)
}

fn address(slot: u32) -> u64 {
    BASE + u64::from(slot) * SLOT_BYTES
}

fn time(number: u32) -> u64 {
    0x6_0000_0000_0000 + u64::from(number) * 7
}

struct Writer<'a> {
    pickler: Pickler<&'a mut Vec<u8>>,
    /// Memo number of each frame.
    frames: [Option<u32>; FRAMES as usize],
}

impl Writer<'_> {
    fn words(&mut self, pairs: &[(&'static str, &'static str)]) -> io::Result<()> {
        for (key, word) in pairs {
            self.pickler.word(key)?;
            self.pickler.word(word)?;
        }
        Ok(())
    }

    fn numbers(&mut self, pairs: &[(&'static str, u64)]) -> io::Result<()> {
        for (key, number) in pairs {
            self.pickler.word(key)?;
            self.pickler.int(*number as i64)?;
        }
        Ok(())
    }

    /// The call stack of a block; each is a new list, and one has a single frame.
    fn stack(&mut self, block: u32) -> io::Result<()> {
        self.pickler.word("frames")?;
        let stack = block % STACKS;
        let depth = if stack == 0 { 1 } else { MIN_DEPTH + stack % DEPTHS };
        let (mut list, _) = self.pickler.list(depth as usize)?;
        for position in 0..depth {
            self.frame(&mut list, (stack * 7 + position * 5) % FRAMES)?;
        }
        self.pickler.end_list(&list);
        Ok(())
    }

    fn frame(&mut self, list: &mut List, frame: u32) -> io::Result<()> {
        self.pickler.item(list);
        if let Some(memo) = self.frames[frame as usize] {
            return self.pickler.get(memo);
        }
        self.frames[frame as usize] = Some(self.pickler.dict()?);
        self.words(&[
            ("name", "forward"),
            ("filename", "/usr/lib/python3/site-packages/torch/nn/modules/module.py"),
        ])?;
        self.numbers(&[("line", u64::from(frame))])?;
        self.pickler.end_dict();
        Ok(())
    }

    fn segment(&mut self, segment: u32, blocks: u32) -> io::Result<()> {
        let slots = segment * SLOTS..(segment + 1) * SLOTS;
        let block_in = |slot: u32| {
            (blocks.saturating_sub(LIVE)..blocks).find(|block| block % (2 * LIVE) == slot)
        };
        let live: Vec<u32> = slots.clone().filter_map(block_in).collect();
        let (total, active) = (u64::from(SLOTS) * SLOT_BYTES, live.len() as u64 * SLOT_BYTES);
        self.pickler.dict()?;
        self.numbers(&[
            ("device", 0),
            ("address", address(slots.start)),
            ("total_size", total),
            ("allocated_size", active),
            ("active_size", active),
            ("requested_size", live.iter().map(|&block| requested(block)).sum()),
            ("stream", 0),
        ])?;
        self.words(&[("segment_type", "large")])?;
        self.pickler.word("segment_pool_id")?;
        self.pickler.pair(0, 0)?;
        self.pickler.word("is_expandable")?;
        self.pickler.bool(false)?;
        self.stack(segment)?;
        self.pickler.word("blocks")?;
        let (mut list, _) = self.pickler.list(live.len().max(1))?;
        if live.is_empty() {
            self.pickler.item(&mut list);
            self.block(address(slots.start), total, "inactive", None)?;
        }
        for block in live {
            self.pickler.item(&mut list);
            let slot = address(block % (2 * LIVE));
            self.block(slot, SLOT_BYTES, "active_allocated", Some(block))?;
        }
        self.pickler.end_list(&list);
        self.pickler.end_dict();
        Ok(())
    }

    fn block(
        &mut self,
        address: u64,
        size: u64,
        state: &'static str,
        block: Option<u32>,
    ) -> io::Result<()> {
        self.pickler.dict()?;
        self.numbers(&[
            ("address", address),
            ("size", size),
            ("requested_size", block.map_or(0, requested)),
        ])?;
        self.words(&[("state", state)])?;
        self.stack(block.unwrap_or(0))?;
        self.pickler.end_dict();
        Ok(())
    }

    fn event(&mut self, number: u32, action: &'static str, block: u32) -> io::Result<()> {
        self.pickler.dict()?;
        self.words(&[("action", action)])?;
        self.numbers(&[
            ("addr", address(block % (2 * LIVE))),
            ("size", requested(block)),
            ("stream", 0),
            ("time_us", time(number)),
        ])?;
        // PyTorch 2.9 writes more keys, and a new string and a new tuple in each event.
        if number / EVENTS_PER_FORM % 2 == 1 {
            self.pickler.word("compile_context")?;
            self.pickler.string("N/A")?;
            self.words(&[("user_metadata", "")])?;
            self.pickler.word("segment_pool_id")?;
            self.pickler.pair(0, 0)?;
        }
        self.stack(block)?;
        self.pickler.end_dict();
        Ok(())
    }

    fn settings(&mut self) -> io::Result<()> {
        self.pickler.dict()?;
        self.pickler.word("expandable_segments")?;
        self.pickler.bool(false)?;
        self.pickler.word("max_split_size")?;
        self.pickler.int(-1)?;
        self.words(&[("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:False")])?;
        self.pickler.word("roundup_power2_divisions")?;
        self.pickler.dict_of_one()?;
        self.numbers(&[("256", 4)])?;
        self.pickler.end_pair();
        self.pickler.end_dict();
        Ok(())
    }

    fn annotations(&mut self) -> io::Result<()> {
        let (mut list, _) = self.pickler.list(2)?;
        for stage in ["START", "END"] {
            self.pickler.item(&mut list);
            self.pickler.dict()?;
            self.words(&[("stage", stage), ("name", "step")])?;
            self.numbers(&[("device", 0), ("time_us", time(0))])?;
            self.pickler.end_dict();
        }
        self.pickler.end_list(&list);
        Ok(())
    }
}
