//! Writes the snapshot of a run as `torch.cuda.memory._dump_snapshot` of PyTorch 2.9 does: keys,
//! values and stacks that are one object there are one object here.
//!
//! The file has the segments, which are the final state, before the trace. So each run is simulated
//! twice: first for its final state, then for its events.

use crate::allocator::{Allocator, Event, Use};
use crate::pickler::{List, Pickler};
use crate::program::{Capture, Label, NullSink, Plan, Role, Run, Sink, run};
use crate::stacks::Stacks;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::io::{self, Write};

/// Capacity of the ring of annotations. Like PyTorch's ring it keeps the newest, so that memory
/// does not grow with the file.
const MAX_ANNOTATIONS: usize = 200_000;
const DIVISIONS: [&str; 16] = [
    "1", "2", "4", "8", "16", "32", "64", "128", "256", "512", "1024", "2048", "4096", "8192",
    "16384", "32768",
];

/// Counts of a written snapshot.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    /// Size of the file, in bytes.
    pub bytes: u64,
    /// Events of the trace.
    pub events: u64,
    /// Steps of the training loop.
    pub steps: u64,
    /// Segments at the end.
    pub segments: usize,
    /// Blocks at the end that are not free.
    pub live: usize,
}

/// Writes the snapshot of one rank.
pub(crate) fn write(
    plan: &Plan,
    stacks: &Stacks,
    (rank, role): (u64, &Role),
    out: impl Write,
) -> io::Result<Written> {
    let Run { allocator, events, steps } = run(plan, (rank, role), &mut NullSink)?;
    let pickler = Pickler::new(out)?;
    let frames = vec![None; stacks.frames.len()];
    let empty = FxHashMap::default();
    let mut writer = Writer { pickler, stacks, frames, kept: empty, last: None, none: None };
    writer.pickler.dict()?;
    writer.pickler.word("segments")?;
    let (segments, live) = writer.segments(&allocator)?;
    drop(allocator);

    writer.pickler.word("device_traces")?;
    let (mut devices, _) = writer.pickler.list(1)?;
    writer.pickler.item(&mut devices);
    let (trace, _) = writer.pickler.list(usize::try_from(events).map_err(io::Error::other)?)?;
    let mut recorder = Recorder { writer, trace, annotations: VecDeque::new() };
    run(plan, (rank, role), &mut recorder)?;
    let Recorder { mut writer, trace, annotations } = recorder;
    writer.pickler.end_list(&trace);
    writer.pickler.end_list(&devices);

    writer.pickler.word("allocator_settings")?;
    writer.settings()?;
    writer.pickler.word("external_annotations")?;
    writer.annotations(&annotations)?;
    writer.pickler.end_dict();
    let bytes = writer.pickler.finish()?;
    Ok(Written { bytes, events, steps, segments, live })
}

struct Writer<'a, W> {
    pickler: Pickler<W>,
    stacks: &'a Stacks,
    /// Memo number of each frame, by the frame's number.
    frames: Vec<Option<u32>>,
    /// Memo numbers of the lists of frames in the final state.
    kept: FxHashMap<Capture, u32>,
    /// The last list of frames in the trace, which the next event may share.
    last: Option<(Capture, u32)>,
    /// Memo number of the empty list of frames.
    none: Option<u32>,
}

impl<W: Write> Writer<'_, W> {
    fn number(&mut self, key: &'static str, value: u64) -> io::Result<()> {
        self.pickler.word(key)?;
        self.pickler.int(value as i64)
    }

    /// Writes a new list of frames, and returns its memo number.
    fn stack(&mut self, number: usize) -> io::Result<u32> {
        let stacks = self.stacks;
        let stack = &stacks.stacks[number];
        let (mut list, memo) = self.pickler.list(stack.len())?;
        for &number in stack {
            self.pickler.item(&mut list);
            if let Some(memo) = self.frames[number as usize] {
                self.pickler.get(memo)?;
                continue;
            }
            let frame = &stacks.frames[number as usize];
            self.frames[number as usize] = Some(self.pickler.dict()?);
            self.pickler.word("name")?;
            self.pickler.string(&frame.name)?;
            self.pickler.word("filename")?;
            // CPython interns the empty string.
            match frame.file.as_str() {
                "" => self.pickler.word("")?,
                file => {
                    self.pickler.string(file)?;
                }
            }
            self.number("line", u64::from(frame.line))?;
            self.pickler.end_dict();
        }
        self.pickler.end_list(&list);
        Ok(memo)
    }

    fn kept_stack(&mut self, capture: Capture) -> io::Result<()> {
        self.pickler.word("frames")?;
        if let Some(&memo) = self.kept.get(&capture) {
            return self.pickler.get(memo);
        }
        let memo = self.stack(capture.stack())?;
        self.kept.insert(capture, memo);
        Ok(())
    }

    fn no_stack(&mut self) -> io::Result<()> {
        self.pickler.word("frames")?;
        if let Some(memo) = self.none {
            return self.pickler.get(memo);
        }
        let (list, memo) = self.pickler.list(0)?;
        self.pickler.end_list(&list);
        self.none = Some(memo);
        Ok(())
    }

    /// Writes the segments. Returns the number of segments and of blocks that are not free.
    fn segments(&mut self, allocator: &Allocator) -> io::Result<(usize, usize)> {
        let (mut list, _) = self.pickler.list(allocator.segments().count())?;
        let (mut segments, mut live) = (0, 0);
        for (address, segment, blocks) in allocator.segments() {
            let blocks: Vec<_> = blocks.collect();
            let held = || blocks.iter().map(|b| b.1).filter(|b| b.used != Use::Free);
            let allocated = held().filter(|b| b.used == Use::Live).map(|b| b.size).sum();
            segments += 1;
            live += held().count();
            self.pickler.item(&mut list);
            self.pickler.dict()?;
            self.number("device", 0)?;
            self.number("address", address)?;
            self.number("total_size", segment.size)?;
            self.number("allocated_size", allocated)?;
            self.number("active_size", held().map(|b| b.size).sum())?;
            self.number("requested_size", held().map(|b| b.requested).sum())?;
            self.number("stream", segment.stream)?;
            self.pickler.word("segment_type")?;
            self.pickler.word(if segment.small { "small" } else { "large" })?;
            self.pickler.word("segment_pool_id")?;
            self.pickler.pair(0, 0)?;
            self.pickler.word("is_expandable")?;
            self.pickler.bool(segment.expandable)?;
            self.pickler.word("blocks")?;
            let (mut of, _) = self.pickler.list(blocks.len())?;
            for (address, block) in &blocks {
                self.pickler.item(&mut of);
                self.pickler.dict()?;
                self.number("address", *address)?;
                self.number("size", block.size)?;
                self.number("requested_size", block.requested)?;
                self.pickler.word("state")?;
                self.pickler.word(match block.used {
                    Use::Free => "inactive",
                    Use::Live => "active_allocated",
                    Use::Pending => "active_pending_free",
                })?;
                match block.used {
                    Use::Free => self.no_stack()?,
                    Use::Live | Use::Pending => self.kept_stack(Capture::of(block.owner))?,
                }
                self.pickler.end_dict();
            }
            self.pickler.end_list(&of);
            self.kept_stack(Capture::of(segment.owner))?;
            self.pickler.end_dict();
        }
        self.pickler.end_list(&list);
        Ok((segments, live))
    }

    fn settings(&mut self) -> io::Result<()> {
        self.pickler.dict()?;
        self.pickler.word("PYTORCH_CUDA_ALLOC_CONF")?;
        self.pickler.word("")?;
        self.pickler.word("max_split_size")?;
        self.pickler.int(-1)?;
        self.pickler.word("garbage_collection_threshold")?;
        self.pickler.float(0.0)?;
        self.pickler.word("expandable_segments")?;
        self.pickler.bool(false)?;
        self.number("pinned_num_register_threads", 1)?;
        for no in [
            "release_lock_on_cudamalloc",
            "pinned_use_cuda_host_register",
            "graph_capture_record_stream_reuse",
        ] {
            self.pickler.word(no)?;
            self.pickler.bool(false)?;
        }
        self.pickler.word("roundup_power2_divisions")?;
        self.pickler.dict()?;
        for size in DIVISIONS {
            self.number(size, 0)?;
        }
        self.pickler.end_dict();
        self.pickler.end_dict();
        Ok(())
    }

    fn annotations(&mut self, annotations: &VecDeque<(Label, bool, u64)>) -> io::Result<()> {
        let (mut list, _) = self.pickler.list(annotations.len())?;
        for &(label, start, time) in annotations {
            self.pickler.item(&mut list);
            self.pickler.dict()?;
            // PyTorch makes new strings for each annotation.
            self.pickler.string("stage")?;
            self.pickler.string(if start { "START" } else { "END" })?;
            self.pickler.string("name")?;
            match label {
                Label::Named(name) => self.pickler.string(name)?,
                Label::Step(step) => self.pickler.string(&format!("ProfilerStep#{step}"))?,
            };
            self.number("device", 0)?;
            self.number("time_us", time)?;
            self.pickler.end_dict();
        }
        self.pickler.end_list(&list);
        Ok(())
    }
}

/// Writes events as they happen, and collects annotations.
struct Recorder<'a, W> {
    writer: Writer<'a, W>,
    trace: List,
    annotations: VecDeque<(Label, bool, u64)>,
}

impl<W: Write> Sink for Recorder<'_, W> {
    fn event(&mut self, event: &Event, time: u64, capture: Capture) -> io::Result<()> {
        let writer = &mut self.writer;
        writer.pickler.item(&mut self.trace);
        writer.pickler.dict()?;
        writer.pickler.word("action")?;
        writer.pickler.word(event.action)?;
        writer.number("addr", event.address)?;
        writer.number("size", event.size)?;
        writer.number("stream", event.stream)?;
        writer.number("time_us", time)?;
        writer.pickler.word("compile_context")?;
        // PyTorch makes a new string for each event.
        writer.pickler.string("N/A")?;
        writer.pickler.word("frames")?;
        let known = writer.last.filter(|last| last.0 == capture).map(|last| last.1);
        match known.or_else(|| writer.kept.get(&capture).copied()) {
            Some(memo) => writer.pickler.get(memo)?,
            None => writer.last = Some((capture, writer.stack(capture.stack())?)),
        }
        writer.pickler.end_dict();
        Ok(())
    }

    fn annotation(&mut self, label: Label, start: bool, time: u64) {
        if self.annotations.len() == MAX_ANNOTATIONS {
            self.annotations.pop_front();
        }
        self.annotations.push_back((label, start, time));
    }
}
