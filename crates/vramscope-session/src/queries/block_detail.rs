//! The details of a block: its rows, call stack and text for the clipboard.

use super::findings::place;
use super::hover::lifetime;
use super::shares::fraction;
use crate::messages::{AxisKind, BlockDetail, DetailRow, FrameRow, Span, StackDetail};
use std::fmt::Write as _;
use std::path::Path;
use vramscope_layout::{Axis, site_color};
use vramscope_report::holders::{self, HolderKind};
use vramscope_report::shapes::{BlockShapes, ShapeSource};
use vramscope_report::{
    BlockContext, BlockReference, FrameRecord, LoadedFile, Quantity, SnapshotEntry, Target,
    backward, block_site, frames, freed_by, notes, slot_of, text,
};
use vramscope_snapshot::{Events, PoolIndex, SegmentType, Snapshot, StackId, StrId};
use vramscope_trace::{Block, NoStack, Origin, Trace, is_library};
use vramscope_units::{Bytes, EventIndex, grouped};

/// The details of the block that a reference names: `<device>:<address>@<event|pre>`.
pub(crate) fn find_block(file: &LoadedFile, part: u32, reference: &str) -> Option<BlockDetail> {
    let reference: BlockReference = reference.parse().ok()?;
    let at = file.target(part, reference.device)?;
    block(at, reference.find(at.trace())?)
}

/// The details of a block by its index.
pub(crate) fn block(at: Target<'_>, index: u32) -> Option<BlockDetail> {
    let trace = at.trace();
    let block = trace.blocks.get(index as usize)?;
    let bytes = Quantity::bytes(block.bytes);
    let rows = rows(at, block, index);
    let terms = vec![format!("site:{}", block_site(at, block))];
    let stack = stack(at.entry, block.stack, note(trace, block));
    let reference = text::block_reference(trace, block);
    let copy = copy(&bytes.exact, &reference, &rows, &stack);
    Some(BlockDetail {
        block: index,
        reference,
        device: trace.device.device,
        event: i64::from(block.enters) - 1,
        bytes,
        address: text::block_address(block),
        rows,
        terms,
        stack,
        copy,
        color: site_color(&at.entry.sites, block.stack).word(),
        spans: spans(trace, block.enters, block.leaves),
    })
}

/// The range from slot `enters` to slot `leaves`, on each axis that the trace has.
pub(crate) fn spans(trace: &Trace, enters: u32, leaves: u32) -> Vec<Span> {
    let kinds = [AxisKind::Event, AxisKind::Time];
    let span = |kind: AxisKind| {
        let axis = Axis::new(trace, kind)?;
        Some(Span { kind, x0: axis.slot_of(enters) as f64, x1: axis.slot_of(leaves) as f64 })
    };
    kinds.into_iter().filter_map(span).collect()
}

fn rows(at: Target<'_>, block: &Block, index: u32) -> Vec<DetailRow> {
    let (snapshot, trace, carving) = (at.snapshot(), at.trace(), at.entry.carving(at.index));
    let mut rows = Vec::new();
    let mut row = |key: &str, label: &str, text: String, raw: Option<String>| {
        rows.push(DetailRow::new(key, label, text, raw));
    };
    let raw = |event: EventIndex| Some(event.0.to_string());
    row("requested", "requested", block.bytes.exact(), Some(block.bytes.0.to_string()));
    for (key, label, text) in context(at, block, index) {
        row(key, label, text, None);
    }
    if let Some(tensor) = at.entry.tensor(at.index, index) {
        row("tensor", "tensor", tensor.name.clone(), None);
        row("shape", "shape", tensor.shape_text(), None);
        row("dtype", "dtype", tensor.dtype.clone(), None);
    } else if let Some(shape) = BlockShapes::new(at).of(index) {
        let label = if shape.source == ShapeSource::Size { "shape by size" } else { "shape" };
        row("shape", label, shape.words(), None);
    }
    for (key, label, text) in held_by(at, index) {
        row(key, label, text, None);
    }
    let size = carving.sizes[index as usize];
    row("block_bytes", "block size", size.exact(), Some(size.0.to_string()));
    row("address", "address", text::block_address(block), None);
    match (block.alloc_event(), block.origin()) {
        (Some(event), _) => row("alloc_event", "allocated", text::event(trace, event), raw(event)),
        (None, Origin::LostAlloc) => {
            row(
                "alloc_event",
                "allocated",
                "not recorded: the event is missing in the trace".into(),
                None,
            );
        }
        (None, _) => row("alloc_event", "allocated", "before the window".into(), Some("-1".into())),
    }
    match block.free_requested() {
        Some(event) => {
            row("free_requested", "free requested", text::event(trace, event), raw(event));
        }
        None if block.free_completed().is_some() => {
            row("free_requested", "free requested", "before the window".into(), Some("-1".into()));
        }
        None => {}
    }
    let is_pending = || !carving.is_allocated(trace, index, trace.slots() - 1);
    let free = block.free_requested().or(block.free_completed());
    let stack_of_free = free.map(|event| {
        let row = trace.device.events.start + event.0;
        snapshot.events.stack(row)
    });
    if let Some(stack) = stack_of_free.filter(|&stack| stack != StackId::EMPTY) {
        row("freed_by", "freed by", freed_by(at.entry, stack), None);
    }
    match block.free_completed() {
        Some(event) => {
            row("free_completed", "free completed", text::event(trace, event), raw(event));
        }
        None if block.leaves < trace.slots() => {
            let event = EventIndex(block.leaves - 1);
            row(
                "free_completed",
                "ended",
                format!(
                    "{event}: its address is allocated again, the free is missing in the trace"
                ),
                raw(event),
            );
        }
        // The final segments show a free that was requested before the window.
        None if block.free_requested().is_some() || is_pending() => {
            row("free_completed", "free completed", "pending".into(), None);
        }
        None => row("free_completed", "freed", "not freed".into(), None),
    }
    row(
        "lifetime",
        "lifetime",
        lifetime(trace, block),
        Some((block.leaves - block.enters).to_string()),
    );
    let handle = snapshot.stream(block.stream);
    row("stream", "stream", text::stream_name(snapshot, block.stream), Some(handle.to_string()));
    row("pool", "pool", pool(snapshot, trace, block), None);
    if let Some(alloc) = block.alloc_event() {
        let event = trace.device.events.start + alloc.0;
        let columns = [
            ("compile_context", "compiled region", &snapshot.events.compile_context),
            ("internal_metadata", "internal metadata", &snapshot.events.internal_metadata),
            ("recorded_category", "recorded category", &snapshot.events.category),
            ("forward_frames", "forward call", &snapshot.events.forward_frames),
        ];
        for (key, label, column) in columns {
            if let Some(value) = Events::sparse::<StrId>(column, event) {
                row(key, label, snapshot.text(value).into_owned(), None);
            }
        }
    }
    let notes = notes(at, index);
    if let Some(metadata) = notes.metadata {
        row("user_metadata", "metadata", metadata.into_owned(), None);
    }
    for annotation in notes.annotations {
        row("annotation", "annotation", annotation.into_owned(), None);
    }
    if let Some(place) = backward::of_block(at, index) {
        let forward = place.text();
        if let Some(node) = place.node {
            row("backward_node", "autograd node", node, None);
        }
        if let Some(forward) = forward {
            row("backward_of", "backward of", forward, None);
        }
    }
    rows
}

/// What holds a block at the end, if that is recorded.
fn held_by(at: Target<'_>, index: u32) -> Vec<(&'static str, &'static str, String)> {
    let Some(holder) = holders::of_block(at, index) else { return Vec::new() };
    let label = if holder.kind == HolderKind::Reference { "held by" } else { "holder" };
    let rows = [
        ("holder", label, holder.text),
        ("holder_path", "reached by", holder.path),
        ("holder_drop", "drop", holder.drop),
        ("holder_note", "note", holder.note),
    ];
    rows.into_iter().filter(|(.., text)| !text.is_empty()).collect()
}

/// What a block belongs to: its category, its place among the blocks of its call site, its share
/// of the peak, and the step and phase that allocated it.
fn context(at: Target<'_>, block: &Block, index: u32) -> Vec<(&'static str, &'static str, String)> {
    let guess = at.entry.categories(at.index).get(index);
    let category = match guess.candidates {
        Some([first, second]) => format!("unknown: {} or {}", first.name(), second.name()),
        None => guess.category.name().replace('_', " "),
    };
    let mut rows = vec![("category", "category", category)];
    let context = at.entry.block_context(at.index);
    rows.push(("site", "call site", of_site(at, block, context)));
    if let Some([own, site]) = peak_shares(at, block, context) {
        rows.push(("peak_share", "share of the peak", own + &site));
    }
    if let Some(part) = context.part(block) {
        let place = place(at, part.step, Some(part.phase.name()));
        rows.push(("place", "allocated in", place));
    }
    rows
}

/// `1 of 56 blocks of gpt.py:43 forward, 7.66 GiB`: the live blocks at the peak if the block is one
/// of them, else all blocks of its call site.
fn of_site(at: Target<'_>, block: &Block, context: &BlockContext) -> String {
    let (sum, site) = (context.site(at, block), block_site(at, block));
    let (blocks, bytes, when) = if is_at_peak(at.trace(), block) {
        (sum.peak_blocks, sum.peak_bytes, "at the peak")
    } else {
        (sum.blocks, sum.bytes, "in all")
    };
    let count = Quantity::count(blocks, "block", "blocks").exact;
    format!("{site}: 1 of {count}, {} {when}", Bytes(bytes))
}

fn is_at_peak(trace: &Trace, block: &Block) -> bool {
    let slot = slot_of(trace.requested_band.peak_event);
    block.is_live_at(slot)
}

/// The block's share of the peak: `0.4 %`, and that of its call site, if it has other blocks there:
/// `; its call site: 18.2 % (56 blocks)`. `None` for a block that is not live at the peak.
pub(super) fn peak_shares(
    at: Target<'_>,
    block: &Block,
    context: &BlockContext,
) -> Option<[String; 2]> {
    let trace = at.trace();
    if !is_at_peak(trace, block) {
        return None;
    }
    let peak = trace.requested.at(slot_of(trace.requested_band.peak_event));
    let sum = context.site(at, block);
    let percent = |bytes: u64| format!("{:.1} %", 100.0 * fraction(bytes, peak));
    let site = match sum.peak_blocks {
        0 | 1 => String::new(),
        blocks => {
            let blocks = Quantity::count(blocks, "block", "blocks").exact;
            format!("; its call site: {} ({blocks})", percent(sum.peak_bytes))
        }
    };
    Some([percent(block.bytes.0), site])
}

/// The pool and its size class, from the alloc event or from the final segment at the address.
fn pool(snapshot: &Snapshot, trace: &Trace, block: &Block) -> String {
    let segments = snapshot.segments_of(&trace.device);
    let at = segments.partition_point(|s| s.address <= block.address);
    let segment = at.checked_sub(1).map(|i| &segments[i]);
    let segment = segment.filter(|s| block.address.0 - s.address.0 < s.total_size.0);
    let pool = if block.pool == PoolIndex::UNKNOWN {
        segment.map_or(PoolIndex::UNKNOWN, |s| s.pool)
    } else {
        block.pool
    };
    let name = text::pool_name(snapshot, pool);
    match segment.map(|s| s.segment_type) {
        Some(SegmentType::Small) => format!("{name} (small)"),
        Some(SegmentType::Large) => format!("{name} (large)"),
        Some(SegmentType::Unknown) | None => name,
    }
}

/// A call stack with display texts, and a note about it.
pub(crate) fn stack(entry: &SnapshotEntry, stack: StackId, note: Option<&str>) -> StackDetail {
    let row = |frame: &FrameRecord<'_>| {
        FrameRow::new(frame, entry.source(&frame.file, frame.line).unwrap_or_default())
    };
    let frames: Vec<FrameRow> = frames(&entry.snapshot, stack).iter().map(row).collect();
    StackDetail { folded: folded(&frames), frames, note: note.map(str::to_owned) }
}

/// The frames of frameworks in words: `30 native frames`, or `12 framework frames` with Python's.
pub(super) fn folded(frames: &[FrameRow]) -> String {
    let is_python = |frame: &&FrameRow| Path::new(&frame.file).extension() == Some("py".as_ref());
    let of_framework: Vec<_> = frames.iter().filter(|frame| frame.framework).collect();
    let kind = if of_framework.iter().any(is_python) { "framework" } else { "native" };
    match of_framework.len() {
        0 => String::new(),
        1 => format!("1 {kind} frame"),
        count => format!("{} {kind} frames", grouped(count as u64)),
    }
}

/// A line of source, if it was recorded; else empty.
pub(super) fn source(entry: &SnapshotEntry, file: &str, line: u32) -> String {
    entry.source(file, line).unwrap_or_default().to_owned()
}

/// A note when the stack is missing or is that of the free.
fn note(trace: &Trace, block: &Block) -> Option<&'static str> {
    match trace.no_stack(block) {
        Some(NoStack::BeforeRecording) => {
            Some("No call stack: the block was allocated before recording began.")
        }
        Some(NoStack::Backward) => Some(
            "No call stack: backward allocated the block in a thread without Python frames. Such \
             memory has a stack only with stacks=\"all\".",
        ),
        Some(NoStack::NotRecorded) if block.is_preexisting() => {
            Some("No call stack was recorded: the block was allocated before the window.")
        }
        Some(NoStack::NotRecorded) => {
            Some("No call stack was recorded. Record with context=\"all\".")
        }
        None if block.has_stack_of_free() => {
            Some("This is the call stack of the free. The alloc is not in the trace.")
        }
        None => None,
    }
}

/// Details as text for the clipboard.
pub(crate) fn copy(
    exact: &str,
    reference: &str,
    rows: &[DetailRow],
    stack: &StackDetail,
) -> String {
    let mut out = format!("{exact}  {reference}\n");
    let mut line = |text: std::fmt::Arguments<'_>| {
        out.write_fmt(text).expect("writing to a String cannot fail");
        out.push('\n');
    };
    for row in rows.iter().filter(|row| row.key != "requested") {
        line(format_args!("{}: {}", row.label, row.text));
    }
    if let Some(note) = &stack.note {
        line(format_args!("{note}"));
    }
    for frame in &stack.frames {
        match (frame.file.as_str(), frame.line) {
            ("", _) => line(format_args!("  {} ({})", frame.name, frame.place)),
            (file, number) if number == 0 || is_library(file) => {
                line(format_args!("  {} ({file})", frame.name));
            }
            (file, number) => line(format_args!("  {} ({file}:{number})", frame.name)),
        }
        if !frame.source.is_empty() {
            line(format_args!("    {}", frame.source));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queries::tests::load;

    /// The texts of the rows with a key, for each block that has some.
    fn texts(file: &LoadedFile, key: &str) -> Vec<Vec<String>> {
        let at = Target { path: "", entry: &file.entries[0], index: 0 };
        let details = (0..at.trace().blocks.len() as u32).filter_map(|index| block(at, index));
        let rows = details.map(|detail| {
            let rows = detail.rows.into_iter().filter(|row| row.key == key);
            rows.map(|row| row.text).collect::<Vec<_>>()
        });
        rows.filter(|texts| !texts.is_empty()).collect()
    }

    #[test]
    fn details_have_the_texts_of_the_program() {
        let annotated = load("edge/annotate.pickle");
        assert_eq!(texts(&annotated, "annotation"), [["weights", "{\"layer\":3}"]]);
        let metadata = load("edge/metadata.pickle");
        assert_eq!(
            texts(&metadata, "user_metadata"),
            [["a plain text"], ["{\"step\":3,\"phase\":\"forward\"}"]]
        );
    }

    #[test]
    fn no_block_is_freed_by_the_capture_of_a_stack() {
        let file = load("recorded/t29/gpt_small_all.pickle.gz");
        let freed = texts(&file, "freed_by");
        assert!(freed.iter().all(|by| !by[0].contains("torch::unwind")), "{freed:?}");
        let of = |wanted: &str| freed.iter().filter(|by| by[0] == wanted).count();
        assert!(of("autograd, once backward has used it") > 10, "{freed:?}");
        assert!(freed.iter().any(|by| by[0].contains(".py:")), "{freed:?}");
    }

    #[test]
    fn details_of_backward_have_the_node_and_the_forward_line() {
        let file = load("recorded/t29/gpt_small_all.pickle.gz");
        let nodes = texts(&file, "backward_node");
        assert!(nodes.iter().any(|node| node[0] == "LogSoftmaxBackward0"), "{nodes:?}");
        let lines = texts(&file, "backward_of");
        assert!(lines.iter().any(|line| line[0] == "gpt.py:44 forward (equal bytes)"), "{lines:?}");
        // A recording without C++ stacks has only sizes.
        let file = load("recorded/t26/gpt_small.pickle.gz");
        assert_eq!(texts(&file, "backward_node"), [[""; 1]; 0]);
        assert!(!texts(&file, "backward_of").is_empty());
    }
}
