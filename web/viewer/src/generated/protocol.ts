// Generated from crates/vramscope-protocol by `cargo xtask types`. Do not edit.

export const PROTOCOL = 1;
export const TILE_COLUMNS = 512;
export const TILE_ROWS = 1024;
export const MERGED = 2147483648;
export const NO_BLOCK = 2147483647;
export const ROW_UNITS = 4096;
export const SPARK = [200, 32] as const;
export const MINIMAP = [1000, 100] as const;
export const COMPARED = [1200, 200] as const;
export const CATEGORIES = ["parameter", "gradient", "optimizer_state", "buffer", "input", "activation", "temporary", "workspace", "communication", "unknown"] as const;
export const REPLACED = ["tracks", "stateAt", "markers", "range", "events", "blocks", "hit", "names", "search", "segments", "segmentRows", "flameBoxes", "flameNode"] as const;

export type Quantity = { 
/**
 * The exact integer (bytes, microseconds, a count or an event index). It crosses as decimal
 * digits, because a JavaScript number does not hold every u64.
 */
raw: string, 
/**
 * The short text: `42.48 GiB`.
 */
text: string, 
/**
 * The exact value in words, for a title: `45,609,994,504 bytes`.
 */
exact: string, };

export type AxisKind = "event" | "time" | "weight";

export type Axis = { 
/**
 * What it counts.
 */
kind: AxisKind, 
/**
 * The number of slots.
 */
extent: number, 
/**
 * The slot of event 0, or of the window's first microsecond: a label is `slot - origin`.
 */
origin: number, 
/**
 * Where the peak of `requested_bytes` is: the first slot at which it is reached.
 */
peak: number, };

export type TileKey = { 
/**
 * Log2 of the slots in a column.
 */
kx: number, 
/**
 * Log2 of the bytes in a row.
 */
ky: number, 
/**
 * The tile's place along x.
 */
ix: number, 
/**
 * The tile's place along y.
 */
iy: number, };

export type DeviceRef = { 
/**
 * Index into [`Loaded::parts`].
 */
part: number, 
/**
 * The device's ordinal in the file.
 */
device: number, };

export type Request = { "tiles": { 
/**
 * Comes back with every tile.
 */
id: number, 
/**
 * Which trace.
 */
target: DeviceRef, 
/**
 * Which axis.
 */
axis: AxisKind, 
/**
 * What they show. A newer request replaces only those of the same kind of layer.
 */
layer: Layer, 
/**
 * Which tiles.
 */
tiles: Array<TileKey>, } } | { "pick": { 
/**
 * Comes back.
 */
id: number, 
/**
 * Which trace.
 */
target: DeviceRef, 
/**
 * Which axis.
 */
axis: AxisKind, 
/**
 * The scale that is on screen: a column of `2^kx` slots ...
 */
kx: number, 
/**
 * ... and rows of `2^ky` bytes, so that the answer is what was drawn.
 */
ky: number, 
/**
 * The slot under the pointer.
 */
slot: number, 
/**
 * The height under the pointer in bytes.
 */
bytes: number, } } | { "block": { 
/**
 * Comes back.
 */
id: number, 
/**
 * Which trace.
 */
target: DeviceRef, 
/**
 * Index into the block table.
 */
block: number, } } | { "find": { 
/**
 * Comes back.
 */
id: number, 
/**
 * Index into [`Loaded::parts`].
 */
part: number, 
/**
 * `0:0x7f5a00000000@1234`.
 */
reference: string, } } | { "mapRange": { 
/**
 * Comes back.
 */
id: number, 
/**
 * Which trace.
 */
target: DeviceRef, 
/**
 * The axis that `x0` and `x1` are on; the answer is on the other.
 */
from: AxisKind, 
/**
 * Left edge in slots.
 */
x0: number, 
/**
 * Right edge in slots.
 */
x1: number, } } | { "view": { 
/**
 * Comes back.
 */
id: number, 
/**
 * Which trace.
 */
target: DeviceRef, 
/**
 * The question.
 */
query: Query, } };

export type Response = { "kind": "progress" } & Progress | { "kind": "loaded" } & Loaded | { "kind": "failed" } & Failure | { "kind": "tooLarge" } & TooLarge | { "kind": "tile", 
/**
 * The request's.
 */
id: number, 
/**
 * Which trace.
 */
target: DeviceRef, 
/**
 * Which axis.
 */
axis: AxisKind, 
/**
 * Which tile.
 */
key: TileKey, 
/**
 * How many strips.
 */
strips: number, } | { "kind": "picked", 
/**
 * The request's.
 */
id: number, 
/**
 * The hover text.
 */
hit: Hit | null, } | { "kind": "block", 
/**
 * The request's.
 */
id: number, 
/**
 * The block.
 */
detail: BlockDetail | null, } | { "kind": "range", 
/**
 * The request's.
 */
id: number, 
/**
 * The axis that the range is on.
 */
axis: AxisKind, 
/**
 * Left edge in slots.
 */
x0: number, 
/**
 * Right edge in slots.
 */
x1: number, } | { "kind": "view", 
/**
 * The request's.
 */
id: number, 
/**
 * The answer.
 */
answer: Answer, };

export type Progress = { 
/**
 * Between 0 and 1.
 */
fraction: number, 
/**
 * `12.3 of 45.0 MiB`.
 */
text: string, 
/**
 * The curve of what has been read of a large file; null for others.
 */
provisional: Provisional | null, };

export type Provisional = { 
/**
 * As a filled SVG path in a box of 1000 by 100, y down.
 */
path: string, 
/**
 * `1,204,000 events so far`.
 */
text: string, };

export type Failure = { 
/**
 * The request that failed; null when it is the load.
 */
id: number | null, 
/**
 * What happened, where, and what was expected: one line.
 */
message: string, 
/**
 * What the reader can do, if anything.
 */
hint: string | null, };

export type TooLarge = { 
/**
 * That it does.
 */
failure: Failure, 
/**
 * The parts that there are to choose from; null where none is small enough.
 */
choice: PartChoice | null, };

export type PartChoice = { 
/**
 * The curve of all events.
 */
curve: Provisional, 
/**
 * The first event of each of the curve's columns, which are equally wide; then how many events
 * there are.
 */
edges: Array<number>, 
/**
 * How many events there are.
 */
events: Quantity, 
/**
 * The first of the events around the curve's top that can be opened together.
 */
first: number, 
/**
 * The last of them.
 */
last: number, 
/**
 * `About 1,200,000 events can be opened at once.`
 */
text: string, };

export type Loaded = { 
/**
 * [`PROTOCOL`].
 */
protocol: number, 
/**
 * The snapshots in it: one, but for HTML pages.
 */
parts: Array<Part>, };

export type Part = { 
/**
 * Its name inside the file; empty when the file is the snapshot.
 */
name: string, 
/**
 * Devices with events or segments.
 */
devices: Array<DeviceSummary>, 
/**
 * The device to show first: the one with the most events, then segments.
 */
defaultDevice: number, 
/**
 * Peak of `requested_bytes` of that device.
 */
peak: Quantity | null, 
/**
 * What was odd about the file, most severe first.
 */
warnings: Array<WarningRow>, 
/**
 * Starts and ends of annotated ranges.
 */
annotations: number, };

export type DeviceSummary = { 
/**
 * The ordinal.
 */
device: number, 
/**
 * `device 0`.
 */
label: string, 
/**
 * Events in its trace.
 */
events: Quantity, 
/**
 * Blocks that the timeline stacks.
 */
blocks: Quantity, 
/**
 * Peak of `requested_bytes`.
 */
peak: Quantity, 
/**
 * The event after which it is reached; `-1` when that is the state before the window.
 */
peakEvent: Quantity, 
/**
 * `peak 42.48 GiB at #16,465`, for the header.
 */
peakText: string, 
/**
 * Peak of `reserved_bytes`.
 */
reservedPeak: Quantity, 
/**
 * Memory live before the window.
 */
start: Quantity, 
/**
 * Memory live after the last event.
 */
end: Quantity, 
/**
 * The axes that this trace has: always events, and time when it has a clock.
 */
axes: Array<Axis>, 
/**
 * Why there is no history to show, when there is none.
 */
note: string | null, };

export type WarningRow = { 
/**
 * A stable name: `lost_free`.
 */
code: string, 
/**
 * In words, with the place of the first.
 */
message: string, 
/**
 * How often.
 */
count: number, };

export type Hit = { 
/**
 * The block; of a merged strip the largest.
 */
block: number, 
/**
 * The block's reference, as in [`BlockDetail::reference`].
 */
reference: string, 
/**
 * `329.2 MiB`, or `1,204 small blocks, 3.10 MiB`.
 */
title: string, 
/**
 * The exact bytes.
 */
bytes: Quantity, 
/**
 * The innermost frame that is the user's own: `forward model.py:212`.
 */
site: string, 
/**
 * Further lines: lifetime, or a merged strip's largest members.
 */
lines: Array<string>, 
/**
 * How many blocks the strip stands for.
 */
count: number, 
/**
 * The color word of the strip.
 */
color: number, };

export type BlockDetail = { 
/**
 * Index into the device's block table.
 */
block: number, 
/**
 * The stable name: `<device>:<address>@<event|pre>`.
 */
reference: string, 
/**
 * The device it is on.
 */
device: number, 
/**
 * The event of its alloc, or from which it counts; -1 is before the window.
 */
event: number, 
/**
 * Bytes requested.
 */
bytes: Quantity, 
/**
 * `0x7600_2a00_0000_3`.
 */
address: string, 
/**
 * What is known of it, in reading order.
 */
rows: Array<DetailRow>, 
/**
 * Its call stack, innermost first.
 */
stack: StackDetail, 
/**
 * The whole as text, for the clipboard.
 */
copy: string, 
/**
 * The color word that it is drawn with.
 */
color: number, 
/**
 * Where it begins and ends on each axis of its trace, in slots.
 */
spans: Array<Span>, };

export type Span = { 
/**
 * Which axis.
 */
kind: AxisKind, 
/**
 * First slot.
 */
x0: number, 
/**
 * One past its last slot.
 */
x1: number, };

export type DetailRow = { 
/**
 * A stable name: `alloc_event`.
 */
key: string, 
/**
 * `allocated`.
 */
label: string, 
/**
 * `#3,702  +1.204 s`.
 */
text: string, 
/**
 * The exact integer behind it, as digits, when there is one.
 */
raw: string | null, };

export type StackDetail = { 
/**
 * Innermost first.
 */
frames: Array<FrameRow>, 
/**
 * What the reader must know of it: that it is the stack of the free, or why there is none.
 */
note: string | null, };

export type FrameRow = { 
/**
 * Function.
 */
name: string, 
/**
 * File as recorded.
 */
file: string, 
/**
 * Line; 0 when unknown.
 */
line: number, 
/**
 * `model.py:212`.
 */
place: string, 
/**
 * True for PyTorch's own frames, Python's library and C++: dimmed and folded.
 */
framework: boolean, };

export type RunRequest = { "plan": { 
/**
 * Comes back.
 */
id: number, 
/**
 * The files, in any order.
 */
files: Array<FileEntry>, } } | { "view": { 
/**
 * Comes back.
 */
id: number, 
/**
 * The question.
 */
query: RunQuery, } } | { "compare": { 
/**
 * Comes back.
 */
id: number, 
/**
 * The question.
 */
query: CompareQuery, } };

export type FileEntry = { 
/**
 * Path within the drop: `iteration_10/rank3_memory_snapshot.pickle`.
 */
path: string, 
/**
 * Its size.
 */
bytes: number, };

export type RunResponse = { "kind": "planned", 
/**
 * The request's.
 */
id: number, 
/**
 * What the run is called: the common folder, or the file.
 */
title: string, 
/**
 * `8 ranks`, `3 files`.
 */
countText: string, 
/**
 * One a file.
 */
rows: Array<PlannedRow>, } | { "kind": "overview", 
/**
 * The request's.
 */
id: number, 
/**
 * The ranks beside each other.
 */
overview: Overview, } | { "kind": "compared", 
/**
 * The request's.
 */
id: number, 
/**
 * What was asked of them.
 */
answer: CompareAnswer, };

export type PlannedRow = { 
/**
 * Index into the request's `files`.
 */
file: number, 
/**
 * The rank that the path names; null when it names none.
 */
rank: number | null, 
/**
 * What stands in the row: the rank's number, or the file's name.
 */
label: string, 
/**
 * The folder that it belongs to: `iteration_10`; empty at the top.
 */
group: string, 
/**
 * Its size in words.
 */
size: string, };

export type ColorBy = "stack" | "category" | "size" | "age" | "stream" | "segment";

export type FlameWeight = "peak" | "cursor" | "byteSeconds" | "count" | "churn";

export type MarkedRange = { 
/**
 * On which axis.
 */
axis: AxisKind, 
/**
 * Left edge in slots.
 */
x0: number, 
/**
 * Right edge in slots.
 */
x1: number, };

export type FlameSpec = { 
/**
 * What is added up.
 */
weight: FlameWeight, 
/**
 * The event after which `Cursor` counts; -1 is the state before the window.
 */
event: number, 
/**
 * Whose peak `Peak` is at, and in which `ByteSeconds`, `Count` and `Churn` count; null for the
 * whole window.
 */
range: MarkedRange | null, 
/**
 * Innermost frame first.
 */
inverted: boolean, 
/**
 * Leave out frames of PyTorch, Python and C++.
 */
hideFramework: boolean, 
/**
 * Only this node and what is above and below it, by its path (see [`FlameNode::path`]); empty
 * for all.
 */
root: string, 
/**
 * Frames that hold this text keep their color, the others turn gray; empty for none.
 */
search: string, };

export type SegmentSort = "size" | "address" | "pool" | "occupancy";

export type SegmentSpec = { 
/**
 * The order.
 */
sort: SegmentSort, 
/**
 * The event at which `Occupancy` is told; -1 is the state before the window.
 */
event: number, 
/**
 * Whose row is [`GROWN`] times as high: any segment, as `SegmentOf` tells it.
 */
grown: number | null, };

export type Layer = { "timeline": { 
/**
 * What colors say.
 */
color: ColorBy, 
/**
 * Draw allocated, active and reserved bytes as lines.
 */
bands: boolean, 
/**
 * Blocks that match this search keep their color, the others turn gray; empty for none.
 */
search: string, } } | { "segments": { 
/**
 * What colors say.
 */
color: ColorBy, 
/**
 * Which rows.
 */
rows: SegmentSpec, 
/**
 * As in `Timeline`.
 */
search: string, } } | { "flame": { 
/**
 * Which graph.
 */
flame: FlameSpec, } };

export type Query = { "card": Record<symbol, never> } | { "findings": Record<symbol, never> } | { "minimap": { 
/**
 * Which axis.
 */
axis: AxisKind, } } | { "tracks": { 
/**
 * Which axis.
 */
axis: AxisKind, 
/**
 * Left edge in slots.
 */
x0: number, 
/**
 * Right edge in slots.
 */
x1: number, 
/**
 * How many can be told apart.
 */
columns: number, } } | { "peak": Record<symbol, never> } | { "stateAt": { 
/**
 * When.
 */
at: At, } } | { "markers": { 
/**
 * The events, -1 for the state before the window; of one that is not there is no answer.
 */
events: number[], } } | { "range": MarkedRange } | { "events": { 
/**
 * Which of them.
 */
filter: EventFilter, 
/**
 * The first row.
 */
from: number, 
/**
 * How many.
 */
count: number, 
/**
 * The event whose row is asked for: the answer's `at` is the last matching row at or
 * before it.
 */
near: number | null, } } | { "blocks": { 
/**
 * Which of them, in which order.
 */
table: BlockTable, 
/**
 * The first row.
 */
from: number, 
/**
 * How many.
 */
count: number, 
/**
 * The block whose row is asked for.
 */
near: number | null, } } | { "export": { 
/**
 * Of what.
 */
what: Table, 
/**
 * How.
 */
form: TextForm, } } | { "convert": { 
/**
 * The format.
 */
format: ExportFormat, } } | { "next": { 
/**
 * What is looked for.
 */
of: Looked, 
/**
 * From this event on; -1 is before the window.
 */
event: number, 
/**
 * From this block on, which enters with that event: of several that do, such as those from
 * before the window.
 */
block: number | null, 
/**
 * Towards the start.
 */
backwards: boolean, } } | { "hit": { 
/**
 * Its index.
 */
block: number, } } | { "names": { 
/**
 * Their indices.
 */
blocks: Array<number>, } } | { "search": { 
/**
 * A word of a frame or file, `0x...`, or a size: `>512MiB`.
 */
text: string, } } | { "segments": { 
/**
 * Which.
 */
rows: SegmentSpec, } } | { "segmentRows": { 
/**
 * Of which.
 */
rows: SegmentSpec, 
/**
 * The lower height, in units.
 */
y0: number, 
/**
 * The upper height.
 */
y1: number, } } | { "segment": { 
/**
 * [`SegmentRow::segment`], or what `SegmentOf` tells.
 */
segment: number, 
/**
 * The event; -1 is the state before the window.
 */
event: number, } } | { "segmentOf": { 
/**
 * Index into the block table.
 */
block: number, } } | { "flame": { 
/**
 * Which graph.
 */
flame: FlameSpec, } } | { "flameBoxes": { 
/**
 * Which graph.
 */
flame: FlameSpec, 
/**
 * Left edge in the graph's units.
 */
x0: number, 
/**
 * Right edge.
 */
x1: number, 
/**
 * The least width.
 */
least: number, } } | { "flameNode": { 
/**
 * Which graph.
 */
flame: FlameSpec, 
/**
 * The node: a strip's block.
 */
node: number, } } | { "frame": { 
/**
 * The function.
 */
name: string, 
/**
 * The file.
 */
file: string, 
/**
 * The line.
 */
line: number, } } | { "side": { 
/**
 * The band at whose peaks they are compared.
 */
band: BandKind, } } | { "settings": Record<symbol, never> } | { "picture": { 
/**
 * What is drawn.
 */
layer: Layer, 
/**
 * Along which axis.
 */
axis: AxisKind, 
/**
 * Left edge in the layer's units.
 */
x0: number, 
/**
 * Right edge.
 */
x1: number, 
/**
 * Lower edge.
 */
y0: number, 
/**
 * Upper edge.
 */
y1: number, 
/**
 * CSS pixels of the plot.
 */
width: number, 
/**
 * The same.
 */
height: number, 
/**
 * On a dark ground.
 */
dark: boolean, } };

export type At = { "event": { 
/**
 * Its index.
 */
event: number, } } | { "slot": { 
/**
 * Which axis.
 */
axis: AxisKind, 
/**
 * Where.
 */
slot: number, } };

export type EventFilter = { 
/**
 * Names of actions: `alloc`; empty for all.
 */
actions: Array<string>, 
/**
 * As in [`Query::Search`]; empty for all.
 */
text: string, };

export type BlockTable = { 
/**
 * As in [`Query::Search`]; empty for all.
 */
text: string, 
/**
 * Only of this category; empty for all.
 */
category: string, 
/**
 * Only what is live after this event (-1: before the window).
 */
liveAt: number | null, 
/**
 * Only what is below this node of a flame graph.
 */
node: [FlameSpec, number] | null, 
/**
 * The column.
 */
sort: BlockSort, 
/**
 * Largest, or last, first.
 */
descending: boolean, };

export type BlockSort = "size" | "blockSize" | "category" | "allocated" | "freed" | "lifetime" | "byteSeconds" | "address" | "stream" | "site";

export type Table = { "blocks": { 
/**
 * Which.
 */
table: BlockTable, } } | { "events": { 
/**
 * Which.
 */
filter: EventFilter, } } | { "findings": Record<symbol, never> } | { "segments": { 
/**
 * The event; -1 is the state before the window.
 */
event: number, } };

export type TextForm = "csv" | "json";

export type ExportFormat = { "folded": { 
/**
 * What a block counts for.
 */
weight: FlameWeight, 
/**
 * The event after which `Cursor` counts; -1 is the state before the window.
 */
event: number, } } | { "speedscope": { 
/**
 * What a block counts for.
 */
weight: FlameWeight, 
/**
 * The event after which `Cursor` counts; -1 is the state before the window.
 */
event: number, } } | { "perfetto": Record<symbol, never> };

export type Looked = { "search": { 
/**
 * As in [`Query::Search`].
 */
text: string, } } | { "stack": { 
/**
 * As this one, by its index.
 */
block: number, } };

export type Answer = { "card": RankCard } | { "findings": Array<FindingRow> } | { "minimap": Minimap } | { "tracks": Tracks } | { "stateAt": StateAt } | { "markers": Array<Marker> } | { "detail": DetailCard | null } | { "events": EventPage } | { "blocks": BlockPage } | { "text": string } | { "next": BlockDetail | null } | { "hit": Hit | null } | { "names": Array<Array<string>> } | { "search": SearchResult | null } | { "segments": SegmentsInfo } | { "segmentRows": Array<SegmentRow> } | { "segmentOf": number | null } | { "flame": FlameInfo } | { "flameBoxes": Array<FlameBox> } | { "flameNode": FlameNode | null } | { "settings": SettingsCard };

export type RankCard = { 
/**
 * The file's path.
 */
path: string, 
/**
 * The rank that it names.
 */
rank: number | null, 
/**
 * The device.
 */
device: number, 
/**
 * Requested, active, allocated and reserved bytes: their peaks.
 */
bands: Array<BandRow>, 
/**
 * Requested bytes after the last event.
 */
end: Quantity, 
/**
 * What was live at the peak of requested bytes, by category, in the fixed order of categories.
 */
categories: Array<CategoryRow>, 
/**
 * Out-of-memory events.
 */
ooms: Quantity, 
/**
 * Findings of its own.
 */
findings: Array<FindingRow>, 
/**
 * The curve of requested bytes as an SVG path in a box of [`SPARK`], y down.
 */
spark: string, 
/**
 * What the comparison needs: bytes at the peak by the hash of the stack, with the call
 * site.
 */
stacks: Array<StackFact>, };

export type StackFact = { 
/**
 * The stack's hash, equal in every rank, as decimal digits.
 */
hash: string, 
/**
 * Its call site.
 */
site: string, 
/**
 * Requested bytes, as decimal digits.
 */
bytes: string, };

export type BandRow = { 
/**
 * The band.
 */
name: BandKind, 
/**
 * `requested`.
 */
label: string, 
/**
 * The peak.
 */
peak: Quantity, 
/**
 * `at #3,737`.
 */
at: string, 
/**
 * Whether it is an estimate.
 */
estimate: boolean, };

export type CategoryRow = { 
/**
 * The category.
 */
name: Category, 
/**
 * `parameters`.
 */
label: string, 
/**
 * Bytes.
 */
bytes: Quantity, 
/**
 * The part of the whole, 0 to 1.
 */
share: number, 
/**
 * The color word.
 */
color: number, };

export type FindingKind = "growth" | "never_freed" | "pending_free" | "oom" | "fragmentation" | "retry" | "settings" | "outlier";

export type Severity = "high" | "medium" | "low";

export type Category = "parameter" | "gradient" | "optimizer_state" | "buffer" | "input" | "activation" | "temporary" | "workspace" | "communication" | "unknown";

export type FindingRow = { 
/**
 * The same for the same file everywhere; as in `vramscope anomalies --format json`.
 */
id: string, 
/**
 * The kind.
 */
kind: FindingKind, 
/**
 * The kind in words: `Growth`.
 */
label: string, 
/**
 * The severity.
 */
severity: Severity, 
/**
 * The file's path.
 */
path: string, 
/**
 * The device.
 */
device: number, 
/**
 * How much memory it is about.
 */
bytes: Quantity, 
/**
 * A sentence or two.
 */
text: string, 
/**
 * The event that shows it first; null when it has none.
 */
event: number | null, 
/**
 * `#3,702`; empty when it has none.
 */
at: string, 
/**
 * From its first to past its last event, on each axis; empty when it has none.
 */
spans: Array<Span>, 
/**
 * A block that it is about: its reference.
 */
reference: string | null, 
/**
 * The call stack it is about.
 */
stack: StackDetail, };

export type Minimap = { 
/**
 * Requested bytes as a filled SVG path in a box of [`MINIMAP`], y down.
 */
requested: string, 
/**
 * Reserved bytes as a line in the same box.
 */
reserved: string, 
/**
 * How many private pools the device has: with any, their line is among those of the bands.
 */
pools: number, 
/**
 * What is marked, by slot: `oom`, `finding`, and the separate peaks (`peak`, the highest
 * first).
 */
marks: Array<Mark>, };

export type Mark = { 
/**
 * What is marked.
 */
kind: MarkKind, 
/**
 * The slot.
 */
slot: number, 
/**
 * The event.
 */
event: number, 
/**
 * In words.
 */
text: string, 
/**
 * The finding's id; empty for others.
 */
id: string, };

export type MarkKind = "oom" | "finding" | "peak";

export type Tracks = { 
/**
 * How many lanes the file has.
 */
lanes: number, 
/**
 * Left edge in slots, as it was asked for.
 */
x0: number, 
/**
 * Right edge in slots, as it was asked for.
 */
x1: number, 
/**
 * How many are told apart between the two.
 */
columns: number, 
/**
 * By lane, then by place.
 */
items: Array<TrackItem>, };

export type TrackItem = { 
/**
 * Which lane, from the top.
 */
lane: number, 
/**
 * Left edge in slots.
 */
x0: number, 
/**
 * Right edge in slots.
 */
x1: number, 
/**
 * Its name, or `12 ranges`.
 */
text: string, 
/**
 * Name and duration.
 */
title: string, 
/**
 * The color word, from the name.
 */
color: number, };

export type StateAt = { 
/**
 * The event that it is after; -1 is before the window.
 */
event: number, 
/**
 * Where it is on each axis: its slot, and the one after it.
 */
spans: Array<Span>, 
/**
 * `#3,737  +1.204 s`.
 */
label: string, 
/**
 * `alloc 2.00 MiB`.
 */
action: string, 
/**
 * The block that the event is about, if any.
 */
block: number | null, 
/**
 * Requested, active, allocated and reserved bytes, rounding waste and cached-free; private
 * pools where there are any.
 */
bands: Array<DetailRow>, 
/**
 * Live blocks.
 */
blocks: Quantity, 
/**
 * By category, most first.
 */
categories: Array<CategoryRow>, 
/**
 * The call stacks that hold most.
 */
stacks: Array<StackShareRow>, 
/**
 * In one sentence, for a screen reader.
 */
spoken: string, };

export type Marker = { 
/**
 * Its number; -1 is before the window.
 */
event: number, 
/**
 * Where it is on each axis: its slot, and the one after it.
 */
spans: Array<Span>, 
/**
 * `#3,737  +1.204 s`.
 */
label: string, };

export type StackShareRow = { 
/**
 * The call site.
 */
site: string, 
/**
 * `_init_group adam.py:183`: where it parts from other rows of that site; empty where none has
 * it.
 */
via: string, 
/**
 * Bytes.
 */
bytes: Quantity, 
/**
 * Blocks.
 */
blocks: Quantity, 
/**
 * The part of the whole, 0 to 1.
 */
share: number, 
/**
 * The color word.
 */
color: number, 
/**
 * A block of it.
 */
block: number, 
/**
 * What else is to be said: `all freed again`.
 */
note: string, };

export type DetailCard = { 
/**
 * `Segment`.
 */
kind: string, 
/**
 * `2.00 GiB`.
 */
title: Quantity, 
/**
 * What is known of it.
 */
rows: Array<DetailRow>, 
/**
 * The heading above `stacks`; empty when there are none.
 */
heading: string, 
/**
 * By call stack.
 */
stacks: Array<StackShareRow>, 
/**
 * Its own stack, if it has one.
 */
stack: StackDetail | null, 
/**
 * The whole as text, for the clipboard.
 */
copy: string, };

export type EventPage = { 
/**
 * How many match.
 */
total: number, 
/**
 * `2,431 of 6,866 events`.
 */
text: string, 
/**
 * The first row's place among those that match.
 */
from: number, 
/**
 * The rows.
 */
rows: Array<EventRow>, 
/**
 * The row that was asked for with `near`.
 */
at: number | null, 
/**
 * All actions of this trace, with how often each occurs.
 */
actions: Array<DetailRow>, };

export type EventRow = { 
/**
 * Its index.
 */
event: number, 
/**
 * `#3,702`.
 */
label: string, 
/**
 * `+1.204 s`; empty without a clock.
 */
time: string, 
/**
 * PyTorch's name of the action.
 */
action: string, 
/**
 * Its size.
 */
bytes: Quantity, 
/**
 * The address; empty where there is none.
 */
address: string, 
/**
 * Requested bytes live after it.
 */
live: Quantity, 
/**
 * The call site.
 */
site: string, 
/**
 * The color word of its stack.
 */
color: number, 
/**
 * The block it is about.
 */
block: number | null, };

export type BlockPage = { 
/**
 * How many match.
 */
total: number, 
/**
 * `12 of 2,443 blocks, 1.20 GiB`.
 */
text: string, 
/**
 * The first row's place among those that match.
 */
from: number, 
/**
 * The rows.
 */
rows: Array<BlockLine>, 
/**
 * The row that was asked for with `near`.
 */
at: number | null, };

export type BlockLine = { 
/**
 * Index into the block table.
 */
block: number, 
/**
 * Its reference.
 */
reference: string, 
/**
 * Requested bytes.
 */
bytes: Quantity, 
/**
 * Bytes carved out for it.
 */
blockBytes: Quantity, 
/**
 * What it is.
 */
category: string, 
/**
 * `#3,702`, `before window`, or `not recorded`.
 */
allocated: string, 
/**
 * `#3,709`, `live at end`, `pending`, or `before #3,709`, where the free was lost.
 */
freed: string, 
/**
 * How long it lived: microseconds, or events where there is no clock.
 */
lifetime: Quantity, 
/**
 * `0x7600_2a00_0000_3`.
 */
address: string, 
/**
 * The stream's handle, a signed number; of the text only its end where it is long.
 */
stream: Quantity, 
/**
 * The call site.
 */
site: string, 
/**
 * The color word.
 */
color: number, };

export type SearchResult = { 
/**
 * Blocks.
 */
blocks: Quantity, 
/**
 * Their bytes at the peak.
 */
bytes: Quantity, 
/**
 * `112 blocks, 1.20 GiB of them at the peak`.
 */
text: string, };

export type SegmentsInfo = { 
/**
 * The height of all rows in units; 0 when there are none.
 */
units: number, 
/**
 * `45 segments in 40 rows, 2.10 GiB reserved at most`.
 */
text: string, 
/**
 * The lower and the upper edge of the higher row in units; null when there is no such row.
 */
grown: [number, number] | null, };

export type SegmentRow = { 
/**
 * Its first one's index among the device's segments, whatever the order of rows.
 */
segment: number, 
/**
 * Its lower edge in units.
 */
y0: number, 
/**
 * Its upper edge in units.
 */
y1: number, 
/**
 * `large`, `small` or `expandable`.
 */
label: string, 
/**
 * The size of each.
 */
size: Quantity, 
/**
 * `0x...`.
 */
address: string, 
/**
 * How many, address, pool, stream and life in words.
 */
title: string, };

export type FlameInfo = { 
/**
 * The sum of all.
 */
total: Quantity, 
/**
 * The width of the x axis in the graph's units: the weight of what is shown, halved until it
 * is below 2^40.
 */
extent: number, 
/**
 * Rows that the graph has.
 */
rows: number, 
/**
 * `requested bytes live at the peak, #3,737`.
 */
text: string, 
/**
 * What the search finds, each stack counted once; null without a search.
 */
matched: Quantity | null, 
/**
 * From the whole to the node that is the root: the breadcrumb.
 */
path: Array<FlameStep>, };

export type FlameStep = { 
/**
 * The node's path: what [`FlameSpec::root`](super::FlameSpec::root) takes.
 */
path: string, 
/**
 * `forward model.py:212`.
 */
text: string, };

export type FlameBox = { 
/**
 * The node.
 */
node: number, 
/**
 * Left edge in the graph's units.
 */
x0: number, 
/**
 * Right edge.
 */
x1: number, 
/**
 * Lower edge in units.
 */
y0: number, 
/**
 * Upper edge in units.
 */
y1: number, 
/**
 * `forward`.
 */
text: string, 
/**
 * `model.py:212`: what tells one `forward` from another. Empty where it is in `text`, or
 * nowhere.
 */
place: string, };

export type FlameNode = { 
/**
 * The node.
 */
node: number, 
/**
 * What [`FlameSpec::root`](super::FlameSpec::root) takes: the place of the node among its
 * siblings, from the root: `0.2.1`.
 */
path: string, 
/**
 * The path of the node above; null for the root.
 */
parent: string | null, 
/**
 * `forward model.py:212`.
 */
title: string, 
/**
 * Its weight, with all below.
 */
total: Quantity, 
/**
 * `12.3 % of all, 40 blocks; 1.2 MiB of its own`.
 */
text: string, 
/**
 * The frame's file.
 */
file: string, 
/**
 * Left edge in the graph's units.
 */
x0: number, 
/**
 * Right edge.
 */
x1: number, 
/**
 * The color word.
 */
color: number, 
/**
 * Neighbors that the arrow keys go to: the first child, the one before, the one behind.
 */
child: number | null, 
/**
 * See `child`.
 */
before: number | null, 
/**
 * See `child`.
 */
behind: number | null, 
/**
 * The node above; null for the root.
 */
above: number | null, };

export type SettingsCard = { 
/**
 * What is known of the recording.
 */
provenance: Array<DetailRow>, 
/**
 * Settings: the key, its value, and what it means for this run.
 */
settings: Array<SettingRow>, 
/**
 * Said when there are no settings in the file.
 */
note: string | null, };

export type SettingRow = { 
/**
 * `expandable_segments`.
 */
key: string, 
/**
 * `true`.
 */
value: string, 
/**
 * What it does, and what that means here.
 */
text: string, };

export type RunQuery = { "clear": Record<symbol, never> } | { "card": { 
/**
 * The page's number for the row.
 */
key: number, 
/**
 * The folder that its file is in, as planned.
 */
group: string, 
/**
 * The card.
 */
card: RankCard, } } | { "sort": { 
/**
 * By what.
 */
sort: RankSort, 
/**
 * The largest first.
 */
descending: boolean, } };

export type RankSort = "rank" | "peak" | "reserved" | "end" | "findings";

export type Overview = { 
/**
 * In order.
 */
rows: Array<OverviewRow>, 
/**
 * `peaks from 610.2 MiB to 1.16 GiB`.
 */
text: string, 
/**
 * Findings that only show when ranks are compared.
 */
outliers: Array<FindingRow>, 
/**
 * These and those of every rank, the most severe first.
 */
findings: Array<FindingRow>, 
/**
 * How many of them are of more than low severity: what a mark on the page counts.
 */
notable: number, };

export type OverviewRow = { 
/**
 * The page's number for the row.
 */
key: number, 
/**
 * Its folder, where that differs from the row before (in the order by rank); else empty.
 */
group: string, 
/**
 * The peak of requested bytes as a part of the largest reserved peak of all ranks.
 */
requested: number, 
/**
 * The peak of reserved bytes as a part of the same.
 */
reserved: number, 
/**
 * Where its bars of categories end, as parts of the same, in the order of the card.
 */
categories: Array<number>, 
/**
 * How it differs from the other ranks: `480 MiB more at train.py:88`; empty when it does not.
 */
outlier: string, };

export type BandKind = "requested_bytes" | "active_bytes" | "allocated_bytes" | "reserved_bytes";

export type Align = "event" | "time" | "step";

export type CompareQuery = { "sides": { 
/**
 * The one before, as its worker answered.
 */
a: string, 
/**
 * The one after.
 */
b: string, } } | { "stacks": { 
/**
 * Only those with this word in a function, a file or the category; empty for all.
 */
text: string, 
/**
 * The first row.
 */
from: number, 
/**
 * How many.
 */
count: number, } } | { "stack": { 
/**
 * [`ComparedStack::row`].
 */
row: number, } };

export type CompareAnswer = { "comparison": Comparison | null } | { "stacks": ComparedStacks } | { "detail": DetailCard | null };

export type Comparison = { 
/**
 * `requested bytes peak at 2.17 GiB in A, at 2.60 GiB in B: +445.1 MiB, +20.1 %`.
 */
text: string, 
/**
 * Where the band peaks in each: `#1,234`.
 */
peaks: [string, string], 
/**
 * Each band at its start where there was any, its peak and its end; blocks, OOMs and findings.
 */
totals: Array<ComparedRow>, 
/**
 * What is live at the peaks, by category, the largest change first.
 */
categories: Array<ComparedRow>, 
/**
 * The band over both windows, by event, by time and by step.
 */
curves: Array<ComparedCurves>, 
/**
 * Findings that are only in one of them.
 */
findings: Array<ComparedFinding>, };

export type ComparedRow = { 
/**
 * `requested_bytes.peak`, `ooms`, `parameter`.
 */
key: string, 
/**
 * `requested peak`.
 */
label: string, 
/**
 * Before.
 */
a: Quantity, 
/**
 * After.
 */
b: Quantity, 
/**
 * The change, with its sign.
 */
change: Quantity, 
/**
 * The same in percent of what was before.
 */
percent: string, };

export type ComparedCurves = { 
/**
 * What they are laid over each other by.
 */
align: Align, 
/**
 * Why there are none; empty when there are.
 */
missing: string, 
/**
 * The one before as an SVG path in a box of [`COMPARED`], y down.
 */
a: string, 
/**
 * The one after.
 */
b: string, 
/**
 * Round places along x, as parts of the box from its left.
 */
x: Array<PlaceMark>, 
/**
 * Round places along y, from its bottom.
 */
y: Array<PlaceMark>, };

export type PlaceMark = { 
/**
 * 0 to 1.
 */
at: number, 
/**
 * `2.00 GiB`.
 */
text: string, };

export type ComparedFinding = { 
/**
 * Whether it came with B; else it went with A.
 */
isNew: boolean, 
/**
 * `Growth`.
 */
label: string, 
/**
 * A sentence or two.
 */
text: string, 
/**
 * How much memory it is about.
 */
bytes: Quantity, };

export type ComparedStacks = { 
/**
 * How many match.
 */
total: number, 
/**
 * `32 of 34 call stacks, +445.1 MiB`.
 */
text: string, 
/**
 * The first row's place among those that match.
 */
from: number, 
/**
 * The rows.
 */
rows: Array<ComparedStack>, };

export type ComparedStack = { 
/**
 * Its place among all, the largest change first.
 */
row: number, 
/**
 * The call site.
 */
site: string, 
/**
 * Where it parts from others of that site; empty where there is none.
 */
via: string, 
/**
 * What most of it is.
 */
category: string, 
/**
 * Bytes before.
 */
a: Quantity, 
/**
 * Bytes after.
 */
b: Quantity, 
/**
 * The change, with its sign.
 */
change: Quantity, 
/**
 * The change as a part of the largest, -1 to 1.
 */
share: number, 
/**
 * The change in blocks, with its sign.
 */
blocks: Quantity, 
/**
 * `only in A`, `only in B`, `other lines`; empty where its frames are the same.
 */
note: string, };
