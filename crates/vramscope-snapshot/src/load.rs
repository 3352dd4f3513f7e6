//! Builds a [`Snapshot`] from the bytes of a pickle.

use crate::delta_column::DeltaColumn;
use crate::device_kind::{self, DeviceKind};
use crate::events::Action;
use crate::host;
use crate::ids::StackId;
use crate::json_text::{MAX_SHOWN_BYTES, cut, json_text};
use crate::keys;
use crate::limits;
use crate::report::{LoadError, WarningKind};
use crate::segments::{BlockState, Segment};
use crate::shape_data::ShapeData;
use crate::snapshot::{Device, Excerpt, Snapshot, UsedCounts};
use crate::source::{Options, has_snapshot_key};
use crate::source_code::SourceCode;
use crate::tables::{Tables, ext, with_devices};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;
use vramscope_pickle::{Heap, Kind, MemoryUse, Oddity, Parser, StrId, Value};
use vramscope_units::{Addr, Bytes};

/// A trace that is still being read. Exists once the trace has an event. Lists arrive in batches of
/// 1000 events, so the newest events may be missing.
#[derive(Clone, Copy, Debug)]
pub struct TraceProgress<'a> {
    /// Distinguishes the traces of a file.
    pub trace: u32,
    /// The number of events before these. Always 0, unless rows are filtered while reading: then
    /// these are the events of the last [`Reader::feed`](crate::Reader::feed).
    pub skipped: usize,
    /// The action of each event.
    pub actions: &'a [Action],
    /// A size column, and its row of the first of these events.
    pub sizes: (&'a DeltaColumn, usize),
}

impl<'a> TraceProgress<'a> {
    /// Actions and sizes in bytes, from event `done` of these on.
    pub fn events_from(&self, done: usize) -> impl Iterator<Item = (Action, u64)> + use<'a> {
        let (sizes, first) = self.sizes;
        let rest = self.actions.get(done..).unwrap_or_default();
        rest.iter().zip(first + done..).map(|(&action, row)| (action, sizes.get(row)))
    }
}

/// The events read so far, and their memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct RowCounts {
    /// Rows in memory that are not known to be dropped, in all traces.
    pub held: usize,
    /// Bytes of all rows in memory.
    pub bytes: usize,
    /// Number of events of the longest trace, with and without a row.
    pub longest_trace: u32,
}

/// Reads one pickled snapshot from chunks of bytes.
pub(crate) struct PickleLoader {
    parser: Parser<Tables>,
    /// The file offset of the last capacity reservation.
    reserved_at: u64,
    /// The first bytes, which have the root's first key.
    start: Vec<u8>,
}

/// The number of first bytes to keep. The protocol, the root and its first key take about 40.
const START_BYTES: usize = 256;

/// A pickle of fewer bytes may be a snapshot that ends before its first key.
const TELLING_BYTES: usize = 64;

/// Capacity reservations per file. Fewer would predict the rest better, but reallocate larger
/// tables.
pub const CAPACITY_CHECKS_PER_FILE: u64 = 64;

impl Default for PickleLoader {
    fn default() -> Self {
        Self::new(&Options::default())
    }
}

impl PickleLoader {
    pub(crate) fn new(options: &Options) -> Self {
        let mut parser = Parser::new(Tables::with_filter(&options.filter), keys::KNOWN);
        parser.set_max_memory(options.max_memory);
        Self { parser, reserved_at: 0, start: Vec::new() }
    }

    /// Reads the next bytes.
    ///
    /// # Errors
    /// When the bytes are not a pickle.
    pub(crate) fn feed(&mut self, chunk: &[u8]) -> Result<(), LoadError> {
        if let Some(filter) = &mut self.parser.sink_mut().filter {
            filter.forget_recent();
        }
        let missing = START_BYTES - self.start.len();
        self.start.extend_from_slice(&chunk[..missing.min(chunk.len())]);
        Ok(self.parser.feed(chunk)?)
    }

    /// Drops the rows of all events, read and to come. Only [`PickleLoader::trace_progress`] goes
    /// on.
    pub(crate) fn only_count(&mut self) {
        self.parser.sink_mut().only_count();
    }

    pub(crate) fn rows(&self) -> RowCounts {
        let tables = self.parser.sink();
        let held = tables.events.len() - tables.dropped_so_far();
        // Without spare capacity, which may be that of the whole file by now.
        RowCounts {
            held,
            bytes: tables.events.len() * tables.events.row_bytes(),
            longest_trace: tables.longest_trace(),
        }
    }

    /// The traces from index `from` on, up to the last complete batch. Includes at least the traces
    /// that the last bytes extended.
    pub(crate) fn trace_progress(&self, from: u32) -> impl Iterator<Item = TraceProgress<'_>> {
        let tables = self.parser.sink();
        let event_lists = tables
            .row_ranges
            .iter()
            .enumerate()
            .skip(from as usize)
            .filter(|(_, list)| list.kind == ext::EVENT);
        event_lists.filter_map(|(trace, list)| {
            if let Some(filter) = &tables.filter {
                return filter.progress(trace);
            }
            let rows = list.start as usize..list.end as usize;
            let actions =
                tables.events.action.get(rows.clone()).filter(|actions| !actions.is_empty())?;
            Some(TraceProgress {
                trace: trace as u32,
                skipped: 0,
                actions,
                sizes: (&tables.events.size, rows.start),
            })
        })
    }

    /// Reserves capacity for the rest of the file, of whose `total` bytes `read` have arrived. The
    /// file may be compressed: only the ratio counts.
    pub(crate) fn reserve_ahead(&mut self, read: u64, total: u64) {
        let recent = read.saturating_sub(self.reserved_at);
        if recent >= total / CAPACITY_CHECKS_PER_FILE && recent > 0 && read < total {
            self.reserved_at = read;
            self.parser.reserve_ahead((total - read) as f64 / recent as f64);
        }
    }

    /// Bytes of memory held now: tables, memo and machine.
    pub(crate) fn memory(&self) -> usize {
        let tables = self.parser.sink();
        self.parser.memory() + tables.memory()
    }

    /// Whether the bytes so far show a part of a snapshot, or are too few to tell.
    pub(crate) fn may_be_snapshot(&self) -> bool {
        self.start.len() < TELLING_BYTES
            || has_snapshot_key(&self.start)
            || self.parser.sink().has_rows()
    }

    /// The parser's part of the memory. It is freed when the pickle ends.
    pub(crate) fn memory_use(&self) -> MemoryUse {
        self.parser.memory_use()
    }

    /// Ends the file and builds the snapshot.
    ///
    /// # Errors
    /// When the pickle is incomplete, or not a snapshot.
    pub(crate) fn finish(self) -> Result<Snapshot, LoadError> {
        let parsed = self.parser.finish()?;
        let mut tables = parsed.sink;
        if parsed.trailing > 0 {
            tables.report.warn(WarningKind::TrailingBytes, Some(parsed.end), || {
                format!(
                    "ignored {} bytes after the end of the pickle at byte {}",
                    parsed.trailing, parsed.end
                )
            });
        }
        for note in parsed.heap.notes() {
            let at = note.at;
            let (kind, message) = match note.what {
                Oddity::Opaque(name) => (
                    WarningKind::OpaqueObject,
                    format!(
                        "an object of {} at byte {at} was not built: files are never executed",
                        cut(&parsed.heap.strings.text(name), MAX_SHOWN_BYTES)
                    ),
                ),
                Oddity::HugeInteger => (
                    WarningKind::HugeInteger,
                    format!("dropped an integer of more than 128 bits at byte {at}"),
                ),
                Oddity::StrayItems => (
                    WarningKind::StrayItems,
                    format!("dropped items at byte {at} that belong to no list or dict"),
                ),
            };
            tables.report.warn_many(kind, Some(at), note.count, || message);
        }
        build(parsed.heap, tables, parsed.root, parsed.end)
    }
}

/// The first integer in `torch.save` files of the legacy format (`torch/serialization.py`,
/// `MAGIC_NUMBER`).
const TORCH_SAVE_MAGIC: i128 = 0x1950_a86a_20f9_469c_fc6c;

pub(crate) fn build(
    mut heap: Heap,
    mut tables: Tables,
    root: Value,
    bytes: u64,
) -> Result<Snapshot, LoadError> {
    tables.finish_filter();
    let mut roots = Roots::default();
    match root.kind() {
        Kind::Dict(_) => roots.read(&heap, root),
        // PyTorch 1.13 and `torch.cuda.memory_snapshot()` write only the list of segments.
        Kind::List(_) | Kind::Ext(ext::ROW_RANGE, _) => roots.segments = Some(root),
        _ => {}
    }
    if heap.int(root) == Some(TORCH_SAVE_MAGIC) {
        return Err(LoadError::Refused { what: crate::source::TORCH_SAVE });
    }
    let segments = roots.segments.map_or(0..0, |v| tables.rows(&mut heap, v, ext::SEGMENT));
    // Other files have a key `segments` too, such as transcripts.
    let is_empty_list = roots
        .segments
        .is_some_and(|list| matches!(list.kind(), Kind::List(_)) && heap.items(list).is_empty());
    if segments.is_empty() && roots.traces.is_none() && !is_empty_list {
        return Err(LoadError::NotASnapshot { found: describe(&heap, root) });
    }
    let mut traces: Vec<(Range<u32>, Option<Excerpt>)> = Vec::new();
    if let Some(value) = roots.traces.filter(|list| matches!(list.kind(), Kind::Ext(..))) {
        // A list of events, not of traces.
        tables.warn_stray(&heap, value, None);
    }
    for value in roots.traces.map_or(Vec::new(), |v| heap.items(v).to_vec()) {
        let rows = tables.rows(&mut heap, value, ext::EVENT);
        traces.push((rows, tables.excerpt(heap.resolve(value))));
    }
    let annotations =
        roots.annotations.map_or(0..0, |v| tables.rows(&mut heap, v, ext::ANNOTATION));
    let host = [roots.host_segments, roots.host_traces];
    let mut settings = Flattened { heap: &heap, out: Vec::new(), seen: 0 };
    for (prefix, value) in roots.settings {
        settings.add(&prefix, value, 0);
    }
    let settings = settings.out;
    let source_code = roots.source_code.map(|dict| SourceCode::read(&heap, dict));
    let shape_data = roots.shape_data.map(|list| ShapeData::read(&heap, list));

    let mut of_devices: Vec<Segment> =
        tables.segments[segments.start as usize..segments.end as usize].to_vec();
    with_devices(&mut of_devices, &mut tables.report);
    crate::segments::sort(&mut of_devices);
    let mut devices = devices(&of_devices, &traces);
    devices.extend(host::device(&mut heap, &mut tables, host, &mut of_devices));
    let held = heap.memory() + tables.memory();
    heap.budget.check(bytes, held)?;
    limits::check_sharing(&devices, &of_devices, bytes)?;
    let annotations =
        tables.annotations[annotations.start as usize..annotations.end as usize].to_vec();
    let mut snapshot = Snapshot {
        strings: heap.strings,
        frames: tables.frames,
        stacks: tables.stacks,
        events: Arc::new(tables.events),
        segments: of_devices,
        blocks: tables.blocks,
        annotations,
        streams: tables.streams,
        pools: tables.pools,
        actions: tables.actions,
        settings,
        source_code: source_code.unwrap_or_default(),
        shape_data: shape_data.unwrap_or_default(),
        devices,
        report: tables.report,
        used: UsedCounts::default(),
        bytes,
        padding: Bytes(0),
        workspaces: Vec::new(),
    };
    set_kind(&mut snapshot, tables.workspaces);
    limits::saturate_sizes(&mut snapshot);
    snapshot.used = count_used(&snapshot);
    check_invariants(&mut snapshot);
    Ok(snapshot)
}

/// Sets the kind of the devices. Takes the blocks of `torch_npu`'s workspace allocator as live: it
/// hands them out again and again, and reports them as free in any case (`get_segm` in
/// `NPUWorkspaceAllocator.cpp`).
fn set_kind(snapshot: &mut Snapshot, mut workspaces: Vec<(u64, u64)>) {
    let told = device_kind::tell(snapshot, !workspaces.is_empty());
    snapshot.padding = told.padding;
    let accelerators = snapshot.devices.iter_mut().filter(|device| !device.kind.is_host());
    accelerators.for_each(|device| device.kind = told.kind);
    workspaces.sort_unstable();
    workspaces.dedup();
    for segment in &snapshot.segments {
        let rows = segment.blocks.start as usize..segment.blocks.end as usize;
        let [block] = &mut snapshot.blocks[rows] else { continue };
        if workspaces.binary_search(&(block.address.0, block.size.0)).is_ok() {
            block.state = BlockState::Allocated;
        }
    }
    snapshot.workspaces = workspaces.into_iter().map(|(address, _)| Addr(address)).collect();
}

/// The values of the root's keys.
#[derive(Default)]
struct Roots {
    segments: Option<Value>,
    traces: Option<Value>,
    annotations: Option<Value>,
    host_segments: Option<Value>,
    host_traces: Option<Value>,
    settings: Vec<(String, Value)>,
    source_code: Option<Value>,
    shape_data: Option<Value>,
}

impl Roots {
    fn read(&mut self, heap: &Heap, root: Value) {
        for [key, value] in distinct(heap, root) {
            let Kind::Str(key) = key.kind() else { continue };
            match key.0 {
                keys::SEGMENTS => self.segments = Some(value),
                keys::DEVICE_TRACES => self.traces = Some(value),
                keys::EXTERNAL_ANNOTATIONS => self.annotations = Some(value),
                keys::HOST_SEGMENTS => self.host_segments = Some(value),
                keys::HOST_TRACES => self.host_traces = Some(value),
                keys::ALLOCATOR_SETTINGS => self.settings.push((String::new(), value)),
                keys::SOURCE_CODE if matches!(value.kind(), Kind::Dict(_)) => {
                    self.source_code = Some(value);
                }
                keys::SHAPE_DATA if matches!(value.kind(), Kind::List(_)) => {
                    self.shape_data = Some(value);
                }
                // Hints that some builds add, such as `trace_alloc_max_entries`.
                _ if self.settings.len() < MAX_SETTINGS => {
                    let key = cut(&heap.strings.text(key), MAX_SETTING_KEY_BYTES);
                    self.settings.push((key, value));
                }
                _ => {}
            }
        }
    }
}

/// Limit of settings. PyTorch has some dozens. Without a limit, dicts that hold each other many
/// times would exhaust memory.
const MAX_SETTINGS: usize = 1024;
/// Limit of a setting's key, at each level.
const MAX_SETTING_KEY_BYTES: usize = 256;

/// The keys of a dict with their values. A key that is in it twice has its first place and its last
/// value, as in Python.
fn distinct(heap: &Heap, dict: Value) -> Vec<[Value; 2]> {
    let mut places = FxHashMap::default();
    let mut pairs: Vec<[Value; 2]> = Vec::new();
    for pair in heap.items(dict).chunks_exact(2) {
        let place = *places.entry(pair[0]).or_insert(pairs.len());
        let pair = [pair[0], heap.resolve(pair[1])];
        match pairs.get_mut(place) {
            Some(known) => known[1] = pair[1],
            None => pairs.push(pair),
        }
    }
    pairs
}

/// Values of dicts that are looked at for settings.
const MAX_SETTING_VALUES: usize = 1 << 20;

/// Flattens nested settings into dotted keys. After [`MAX_SETTINGS`] the last key is `...`.
struct Flattened<'a> {
    heap: &'a Heap,
    out: Vec<(String, String)>,
    /// Values seen so far. Dicts may hold each other many times.
    seen: usize,
}

impl Flattened<'_> {
    fn add(&mut self, prefix: &str, value: Value, depth: usize) {
        let heap = self.heap;
        if !matches!(value.kind(), Kind::Dict(_)) || depth > 4 {
            self.out.push((prefix.to_owned(), json_text(heap, value)));
            return;
        }
        self.seen += heap.items(value).len();
        if self.is_full() {
            return;
        }
        for [key, value] in distinct(heap, value) {
            if self.is_full() {
                return;
            }
            let name = match key.kind() {
                Kind::Str(text) => cut(&heap.strings.text(text), MAX_SETTING_KEY_BYTES),
                _ => cut(&json_text(heap, key), MAX_SETTING_KEY_BYTES),
            };
            let key = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
            self.add(&key, value, depth + 1);
        }
    }

    /// Whether nothing more is added. The first time, notes that something is missing.
    fn is_full(&mut self) -> bool {
        let is_full = self.out.len() >= MAX_SETTINGS || self.seen > MAX_SETTING_VALUES;
        if is_full && self.out.len() <= MAX_SETTINGS && self.out.last().is_none_or(|l| l.0 != "...")
        {
            self.out.push(("...".to_owned(), "...".to_owned()));
        }
        is_full
    }
}

fn devices(segments: &[Segment], traces: &[(Range<u32>, Option<Excerpt>)]) -> Vec<Device> {
    let highest = segments.last().map_or(0, |s| s.device as usize + 1);
    let with_segments = segments.chunk_by(|a, b| a.device == b.device).map(|list| list[0].device);
    let with_events = (0..).zip(traces).filter(|(_, t)| !t.0.is_empty()).map(|(device, _)| device);
    let mut ordinals: Vec<u32> = with_segments.chain(with_events).collect();
    ordinals.sort_unstable();
    ordinals.dedup();
    debug_assert!(ordinals.len() <= highest.max(traces.len()));
    let range_of = |device: u32| {
        let start = segments.partition_point(|s| s.device < device);
        let end = segments.partition_point(|s| s.device <= device);
        start as u32..end as u32
    };
    ordinals
        .into_iter()
        .map(|device| {
            let (events, excerpt) = traces.get(device as usize).cloned().unwrap_or((0..0, None));
            let (kind, segments) = (DeviceKind::default(), range_of(device));
            Device { device, kind, events, segments, excerpt }
        })
        .collect()
}

fn count_used(snapshot: &Snapshot) -> UsedCounts {
    let mut stacks = vec![false; snapshot.stacks.len()];
    let mut frames = vec![false; snapshot.frames.len()];
    let mut see = |id: &StackId| stacks[id.0 as usize] = true;
    snapshot.events.stack.iter().for_each(&mut see);
    snapshot.blocks.iter().for_each(|block| see(&block.stack));
    snapshot.segments.iter().for_each(|segment| see(&segment.stack));
    for id in (0..snapshot.stacks.len() as u32).filter(|&id| stacks[id as usize]) {
        for frame in snapshot.stacks.frames(StackId(id)) {
            frames[frame.0 as usize] = true;
        }
    }
    let count = |seen: &[bool]| seen.iter().filter(|&&s| s).count() as u32;
    UsedCounts { frames: count(&frames), stacks: count(&stacks[1..]) }
}

/// Checks invariants that real files sometimes break. Each kind is reported once, with its first
/// occurrence.
fn check_invariants(snapshot: &mut Snapshot) {
    let mut report = std::mem::take(&mut snapshot.report);
    for segment in &snapshot.segments {
        let blocks = snapshot.blocks_of(segment);
        let sum = blocks.iter().fold(0u64, |sum, b| sum.saturating_add(b.size.0));
        if !blocks.is_empty() && sum != segment.total_size.0 {
            report.warn(WarningKind::SegmentSum, None, || {
                format!(
                    "the blocks of the segment at {} add up to {} bytes, but its total_size is {}",
                    segment.address, sum, segment.total_size.0
                )
            });
        }
    }
    for pair in snapshot.segments.windows(2) {
        if pair[0].device == pair[1].device
            && pair[0].address.0.saturating_add(pair[0].total_size.0) > pair[1].address.0
        {
            report.warn(WarningKind::SegmentsOverlap, None, || {
                format!(
                    "the segments at {} and {} of device {} overlap",
                    pair[0].address, pair[1].address, pair[0].device
                )
            });
        }
    }
    snapshot.report = report;
}

/// Describes a root that is not a snapshot.
fn describe(heap: &Heap, value: Value) -> String {
    let named = |what: &str, name: StrId| {
        format!("{what} {}", cut(&heap.strings.text(name), MAX_SHOWN_BYTES))
    };
    match value.kind() {
        Kind::None => "None".into(),
        Kind::Bool(_) => "a bool".into(),
        Kind::Int(_) | Kind::Long(_) => "an integer".into(),
        Kind::Float(_) => "a float".into(),
        Kind::Str(_) => "a string".into(),
        Kind::Bytes => "bytes".into(),
        Kind::List(_) => "a list of other objects".into(),
        Kind::Dict(_) => {
            let keys = heap.items(value).chunks_exact(2).filter_map(|pair| match pair[0].kind() {
                Kind::Str(key) => Some(cut(&heap.strings.text(key), MAX_SHOWN_BYTES)),
                _ => None,
            });
            let keys: Vec<String> = keys.take(5).collect();
            if keys.is_empty() {
                "an empty dict".into()
            } else {
                format!("a dict with the keys {}", keys.join(", "))
            }
        }
        Kind::Tuple(_) => "a tuple".into(),
        Kind::Ext(..) => "a part of a snapshot".into(),
        Kind::Class(name) => named("the class", name),
        Kind::Opaque(name) => named("an object that", name) + " would build",
    }
}
