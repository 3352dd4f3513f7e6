//! Work without an outcome, before there is a file.
//!
//! A browser runs WebAssembly as it was translated in haste until a function has done much, and
//! translates a function when it is first called; only later is it optimized. The first file of a
//! visit would be read in that time. So while the page waits for a file, a worker reads snapshots
//! that are made here, and draws a tile of them. They have in them what PyTorch writes, in
//! CPython's opcodes: what is missing here is read slowly there.

use vramscope_protocol::{AxisKind, DeviceRef, Request, TileKey};

/// Frames that the call stacks are made of.
const FRAMES: u32 = 256;
/// Frames of a call stack: so many, and up to so many more.
const DEPTH: u32 = 24;
const DEEPER: u32 = 16;
/// How many different call stacks there are.
const STACKS: u32 = 61;
/// Blocks that are live at a time, also at the end.
const LIVE: u32 = 40;
/// Places for blocks in a segment, and how many segments there are: twice as many places as live
/// blocks.
const PLACES: u32 = 2;
const SEGMENTS: u32 = 2 * LIVE / PLACES;
/// Bytes of a place, and where the first is.
const PLACE: u64 = 2 << 20;
const BASE: u64 = 0x7f00_0000_0000;
/// All of 1000 blocks, in slots and bytes.
const TILE: TileKey = TileKey { kx: 3, ky: 17, ix: 0, iy: 0 };
/// Items that CPython writes at a time.
const BATCH: u32 = 1000;

/// A made-up snapshot of a trace in which so many blocks, a multiple of ten, are allocated and, but
/// for the last ones, freed.
///
/// ```
/// let bytes = vramscope_session::warm::snapshot(500);
/// let mut loader = vramscope_session::Loader::new("made up", bytes.len() as u64);
/// loader.feed(&bytes).unwrap();
/// assert_eq!(loader.finish().unwrap().parts[0].traces[0].allocations_in_window, 500);
/// ```
pub fn snapshot(blocks: u32) -> Vec<u8> {
    let mut w = Writer { out: b"\x80\x04".to_vec(), ..Writer::default() };
    w.open(b'}');
    w.word("segments");
    w.open(b']');
    for segment in 0..SEGMENTS {
        w.segment(segment, blocks);
    }
    w.out.push(b'e');
    w.word("device_traces");
    w.open(b']');
    w.open(b']');
    for (number, (what, block)) in (0..).zip(events(blocks)) {
        if number > 0 && number % BATCH == 0 {
            w.out.extend_from_slice(b"e(");
        }
        w.event(number, what, block);
    }
    w.out.extend_from_slice(b"ee");
    w.word("allocator_settings");
    w.open(b'}');
    w.word("expandable_segments");
    w.out.push(b'\x89');
    w.word("max_split_size");
    w.int(u64::MAX);
    w.words(&[("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:False")]);
    w.word("roundup_power2_divisions");
    // A dict of one, which has an operation of its own.
    w.out.push(b'}');
    w.memoize();
    w.numbers(&[("256", 4)]);
    w.out.push(b's');
    w.out.push(b'u');
    w.word("external_annotations");
    w.open(b']');
    for stage in ["START", "END"] {
        w.open(b'}');
        w.words(&[("stage", stage), ("name", "step")]);
        w.numbers(&[("device", 0), ("time_us", time(0))]);
        w.out.push(b'u');
    }
    w.out.extend_from_slice(b"eu.");
    w.out
}

/// What is asked of 1000 blocks: the tile that shows them all, and whatever else a page asks of a
/// file that it opens.
pub fn questions() -> Vec<Request> {
    let target = DeviceRef { part: 0, device: 0 };
    let axis = AxisKind::Event;
    {
        use vramscope_protocol::views::{ColorBy, Layer, Query, SegmentSpec};
        let (color, rows) = (ColorBy::Stack, SegmentSpec::default());
        let layers = [
            Layer::Timeline { color, bands: true, search: String::new() },
            Layer::Segments { color, rows: rows.clone(), search: String::new() },
        ];
        let queries =
            [Query::Minimap { axis }, Query::Segments { rows }, Query::Card {}, Query::Findings {}];
        let tiles = layers.into_iter().map(|layer| Request::Tiles {
            id: 0,
            target,
            axis,
            layer,
            tiles: vec![TILE],
        });
        tiles
            .chain(queries.into_iter().map(|query| Request::View { id: 0, target, query }))
            .collect()
    }
}

/// What happens, to which block.
fn events(blocks: u32) -> impl Iterator<Item = (&'static str, u32)> {
    (0..blocks).flat_map(|block| {
        let freed = block.checked_sub(LIVE);
        let free = freed
            .into_iter()
            .flat_map(|freed| [("free_requested", freed), ("free_completed", freed)]);
        free.chain([("alloc", block)])
    })
}

/// Requested bytes of a block, which takes all of its place.
fn requested(block: u32) -> u64 {
    PLACE - u64::from(block * 997 % 511)
}

fn address(place: u32) -> u64 {
    BASE + u64::from(place) * PLACE
}

fn time(number: u32) -> u64 {
    0x6_0000_0000_0000 + u64::from(number) * 7
}

/// Writes as CPython's pickler does: whatever was written once is a reference from then on.
#[derive(Default)]
struct Writer {
    out: Vec<u8>,
    words: Vec<(&'static str, u32)>,
    /// Memo numbers of the frames that were written.
    frames: Vec<u32>,
    next: u32,
}

impl Writer {
    fn memoize(&mut self) -> u32 {
        self.out.push(0x94);
        self.next += 1;
        self.next - 1
    }

    /// A dict or list, whose content follows.
    fn open(&mut self, what: u8) {
        self.out.push(what);
        self.memoize();
        self.out.push(b'(');
    }

    fn get(&mut self, number: u32) {
        match u8::try_from(number) {
            Ok(number) => self.out.extend_from_slice(&[b'h', number]),
            Err(_) => {
                self.out.push(b'j');
                self.out.extend_from_slice(&number.to_le_bytes());
            }
        }
    }

    fn word(&mut self, word: &'static str) {
        if let Some(&(_, number)) = self.words.iter().find(|known| known.0 == word) {
            return self.get(number);
        }
        self.out.extend_from_slice(&[0x8c, word.len() as u8]);
        self.out.extend_from_slice(word.as_bytes());
        let number = self.memoize();
        self.words.push((word, number));
    }

    fn int(&mut self, number: u64) {
        let bytes = number.to_le_bytes();
        match number {
            0..0x100 => self.out.extend_from_slice(&[b'K', bytes[0]]),
            0x100..0x1_0000 => self.out.extend_from_slice(&[b'M', bytes[0], bytes[1]]),
            0x1_0000..0x8000_0000 => {
                self.out.extend_from_slice(&[b'J', bytes[0], bytes[1], bytes[2], bytes[3]])
            }
            _ => {
                // With a byte for the sign.
                let len = 9 - number.leading_zeros() as usize / 8;
                self.out.extend_from_slice(&[0x8a, len as u8]);
                self.out.extend_from_slice(&[&bytes[..], &[0]].concat()[..len]);
            }
        }
    }

    fn words(&mut self, pairs: &[(&'static str, &'static str)]) {
        for (key, word) in pairs {
            self.word(key);
            self.word(word);
        }
    }

    fn numbers(&mut self, pairs: &[(&'static str, u64)]) {
        for (key, number) in pairs {
            self.word(key);
            self.int(*number);
        }
    }

    /// The call stack of a block.
    fn stack(&mut self, block: u32) {
        self.word("frames");
        let stack = block % STACKS;
        if stack == 0 {
            // A list of one, which has an operation of its own.
            self.out.push(b']');
            self.memoize();
            self.frame(0);
            self.out.push(b'a');
            return;
        }
        self.open(b']');
        for depth in 0..DEPTH + stack % DEEPER {
            let frame = (stack * 7 + depth * 5) % FRAMES;
            self.frame(frame);
        }
        self.out.push(b'e');
    }

    /// The frames are written as they are met, so they are numbered in that order.
    fn frame(&mut self, frame: u32) {
        let known = self.frames.iter().position(|&known| known & 0xff == frame);
        if let Some(&known) = known.and_then(|at| self.frames.get(at)) {
            return self.get(known >> 8);
        }
        self.frames.push(self.next << 8 | frame);
        self.open(b'}');
        self.words(&[
            ("name", "forward"),
            ("filename", "/usr/lib/python3/site-packages/torch/nn/modules/module.py"),
        ]);
        self.numbers(&[("line", u64::from(frame))]);
        self.out.push(b'u');
    }

    /// A tuple, which is a new one each time.
    fn default_pool(&mut self) {
        self.out.extend_from_slice(b"K\0K\0\x86");
        self.memoize();
    }

    fn segment(&mut self, segment: u32, blocks: u32) {
        let places = segment * PLACES..(segment + 1) * PLACES;
        let block_at = |place: u32| {
            (blocks.saturating_sub(LIVE)..blocks).find(|block| block % (2 * LIVE) == place)
        };
        let live: Vec<u32> = places.clone().filter_map(block_at).collect();
        let (all, active) = (u64::from(PLACES) * PLACE, live.len() as u64 * PLACE);
        self.open(b'}');
        self.numbers(&[
            ("device", 0),
            ("address", address(places.start)),
            ("total_size", all),
            ("allocated_size", active),
            ("active_size", active),
            ("requested_size", live.iter().map(|&block| requested(block)).sum()),
            ("stream", 0),
        ]);
        self.words(&[("segment_type", "large")]);
        self.word("segment_pool_id");
        self.default_pool();
        self.word("is_expandable");
        self.out.push(b'\x89');
        self.stack(segment);
        self.word("blocks");
        self.open(b']');
        if live.is_empty() {
            self.block(address(places.start), all, "inactive", None);
        }
        for block in live {
            self.block(address(block % (2 * LIVE)), PLACE, "active_allocated", Some(block));
        }
        self.out.extend_from_slice(b"eu");
    }

    fn block(&mut self, address: u64, size: u64, state: &'static str, block: Option<u32>) {
        self.open(b'}');
        self.numbers(&[
            ("address", address),
            ("size", size),
            ("requested_size", block.map_or(0, requested)),
        ]);
        self.words(&[("state", state)]);
        self.stack(block.unwrap_or(0));
        self.out.push(b'u');
    }

    fn event(&mut self, number: u32, what: &'static str, block: u32) {
        self.open(b'}');
        self.words(&[("action", what)]);
        self.numbers(&[
            ("addr", address(block % (2 * LIVE))),
            ("size", requested(block)),
            ("stream", 0),
            ("time_us", time(number)),
        ]);
        // Since PyTorch 2.9 there is more, in an order and in operations of their own.
        if number / BATCH % 2 == 1 {
            self.word("compile_context");
            self.out.extend_from_slice(b"\x8c\x03N/A");
            self.memoize();
            self.words(&[("user_metadata", "")]);
            self.word("segment_pool_id");
            self.default_pool();
        }
        self.stack(block);
        self.out.push(b'u');
    }
}

#[cfg(test)]
mod tests {
    use super::{LIVE, questions, requested, snapshot};
    use crate::loader::Loader;
    use crate::{Column, FileSession};
    use vramscope_protocol::Response;
    use vramscope_report::summary::summarize;

    #[test]
    fn what_is_read_is_a_snapshot_without_a_warning() {
        let bytes = snapshot(2000);
        let mut loader = Loader::new("warm", bytes.len() as u64);
        loader.feed(&bytes).expect("a pickle");
        let file = Ok(loader.finish().expect("a snapshot"));
        let [summary] = &summarize("warm", bytes.len() as u64, &file)[..] else {
            panic!("one snapshot")
        };
        assert!(summary.warnings.is_empty(), "{:?}", summary.warnings);
        let [device] = &summary.devices[..] else { panic!("one device") };
        let (events, live) = (3 * 2000 - 2 * LIVE as usize, LIVE);
        assert_eq!(
            (device.events, device.allocations_in_window, device.end_live_blocks),
            (events, 2000, live)
        );
        assert_eq!((device.segments, summary.annotations), (40, 2));
        // As many as are live come before each block that is allocated.
        let at = |block: u32| {
            (block.saturating_sub(LIVE - 1)..=block).map(requested).sum::<u64>() as i64
        };
        assert_eq!(device.requested_bytes.peak, (0..2000).map(at).max().expect("blocks"));
    }

    #[test]
    fn the_first_answer_shows_all_of_it_and_no_other_is_a_failure() {
        let bytes = snapshot(1000);
        let mut engine = FileSession::new("warm", bytes.len() as u64);
        engine.feed(&bytes).expect("a pickle");
        assert!(matches!(engine.finish(), Response::Loaded(_)));
        let questions = questions();
        let asked = questions.len();
        for question in questions {
            engine.post(question);
        }
        let reply = engine.step().expect("a tile");
        assert!(matches!(reply.response, Response::Tile { .. }), "{:?}", reply.response);
        let blocks = reply.columns.iter().find(|(name, _)| *name == "blocks").expect("blocks");
        let Column::U32(blocks) = &blocks.1 else { panic!("numbers") };
        let mut blocks = blocks.clone();
        blocks.sort_unstable();
        blocks.dedup();
        assert!(blocks.len() > 900, "{} of 1000 blocks", blocks.len());
        let others: Vec<_> =
            std::iter::from_fn(|| engine.step()).map(|reply| reply.response).collect();
        assert_eq!(others.len(), asked - 1);
        assert!(others.iter().all(|other| !matches!(other, Response::Failed(_))), "{others:?}");
    }
}
