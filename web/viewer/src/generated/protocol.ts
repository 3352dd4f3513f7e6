// Generated from crates/vramscope-session by `cargo xtask types`. Do not edit.

export const PROTOCOL = 1;
export const TILE_COLUMNS = 512;
export const TILE_ROWS = 1024;
export const MERGED = 2147483648;
export const NO_BLOCK = 2147483647;
export const ROW_UNITS = 4096;
export const SIMULATED_HEIGHT = 100000;
export const COUNTER_HEIGHT = 1000;
export const PINNED_HEIGHT = 1000;
export const MAX_PARTS = 64;
export const MAX_ROWS = 200;
export const SPARK = [200, 32] as const;
export const MINIMAP = [1000, 100] as const;
export const COMPARED = [1200, 200] as const;
export const PLOT = [520, 160] as const;
export const FOLDED = [1000, 400] as const;
export const SERIES = [200, 40] as const;
export const CATEGORIES = ["parameter", "gradient", "optimizer_state", "buffer", "input", "activation", "temporary", "workspace", "communication", "cache", "unknown"] as const;
export const REPLACED = ["levers", "leverSettings", "tracks", "phases", "foldedSteps", "legend", "reservedLine", "deadLine", "freeLines", "moments", "pinnedLine", "limit", "peakLens", "stateAt", "markers", "range", "changes", "events", "blocks", "hit", "groupLabels", "blockRun", "stepRange", "names", "search", "group", "segments", "segmentRows", "segmentUses", "map", "flameBoxes", "modules", "holders", "code", "source", "sandwich", "reserved", "scenario", "simulatedCurve"] as const;

export type Quantity = { 
/**
 * The exact integer: bytes, microseconds, a count or an event index. It is serialized as
 * decimal digits, because a JavaScript number cannot represent every u64.
 */
raw: string, 
/**
 * The short text: `42.48 GiB`.
 */
text: string, 
/**
 * The exact value with its unit, for tooltips: `45,609,994,504 bytes`.
 */
exact: string, };

export type Bytes = Quantity;

export type SignedBytes = Quantity;

export type Micros = Quantity;

export type EventIndex = Quantity;

export type PeakEvent = Quantity;

export type Events = Quantity;

export type Iteration = Quantity;

export type Addr = string;

export type Lifetime = Quantity;

export type Phrase = { 
/**
 * The words.
 */
text: string, 
/**
 * The filter that shows what the words name: `category:activation`; null if there is none.
 */
filter: string | null, 
/**
 * The event that the words are about; null if there is none.
 */
event: number | null, };

export type AxisKind = "event" | "time" | "weight";

export type Axis = { 
/**
 * The unit of the axis.
 */
kind: AxisKind, 
/**
 * The number of slots.
 */
extent: number, 
/**
 * The slot of event 0, or of the window's first microsecond. Labels show `slot - origin`.
 */
origin: number, 
/**
 * The first slot at the peak of `requested_bytes`.
 */
peak: number, };

export type AxisBreak = { 
/**
 * The first slot.
 */
x0: number, 
/**
 * The first slot after it.
 */
x1: number, 
/**
 * Its time in microseconds.
 */
time: number, 
/**
 * The time in words: `460 ms`.
 */
text: string, 
/**
 * The tooltip: `460 ms of start-up, before 1 % of the peak is in use`.
 */
title: string, };

export type TileKey = { 
/**
 * Log2 of the slots per column.
 */
kx: number, 
/**
 * Log2 of the bytes per row.
 */
ky: number, 
/**
 * Index of the tile along x.
 */
ix: number, 
/**
 * Index of the tile along y.
 */
iy: number, };

export type DeviceRef = { 
/**
 * Index into [`Loaded::parts`](crate::messages::Loaded::parts).
 */
part: number, 
/**
 * The device's ordinal in the file.
 */
device: number, };

export type Request = { "tiles": { 
/**
 * The id, returned with every tile.
 */
id: number, 
/**
 * The trace.
 */
target: DeviceRef, 
/**
 * The axis.
 */
axis: AxisKind, 
/**
 * The layer that the tiles show.
 */
layer: Layer, 
/**
 * The tiles.
 */
tiles: Array<TileKey>, } } | { "pick": { 
/**
 * The id, returned in the response.
 */
id: number, 
/**
 * The trace.
 */
target: DeviceRef, 
/**
 * The axis.
 */
axis: AxisKind, 
/**
 * The layer that is drawn: its groups give the order of the stack.
 */
layer: Layer, 
/**
 * Log2 of the slots per column on screen. With `ky` the answer matches the drawn strips.
 */
kx: number, 
/**
 * Log2 of the bytes per row on screen.
 */
ky: number, 
/**
 * The slot under the pointer.
 */
slot: number, 
/**
 * The height under the pointer in bytes.
 */
bytes: number, 
/**
 * True for a moving pointer: the next such pick cancels this one.
 */
hover: boolean, } } | { "block": { 
/**
 * The id, returned in the response.
 */
id: number, 
/**
 * The trace.
 */
target: DeviceRef, 
/**
 * Index into the block table.
 */
block: number, } } | { "find": { 
/**
 * The id, returned in the response.
 */
id: number, 
/**
 * Index into [`Loaded::parts`](crate::messages::Loaded::parts).
 */
part: number, 
/**
 * The reference: `0:0x7f5a00000000@1234`.
 */
reference: string, } } | { "mapRange": { 
/**
 * The id, returned in the response.
 */
id: number, 
/**
 * The trace.
 */
target: DeviceRef, 
/**
 * The axis of `x0` and `x1`. The answer is on the other axis.
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
 * The id, returned in the response.
 */
id: number, 
/**
 * The trace.
 */
target: DeviceRef, 
/**
 * The query.
 */
query: Query, } };

export type Response = { "kind": "progress" } & Progress | { "kind": "loaded" } & Loaded | { "kind": "failed" } & Failure | { "kind": "tooLarge" } & TooLarge | { "kind": "tile", 
/**
 * The request's id.
 */
id: number, 
/**
 * The trace.
 */
target: DeviceRef, 
/**
 * The axis.
 */
axis: AxisKind, 
/**
 * The tile.
 */
key: TileKey, 
/**
 * The number of strips.
 */
strips: number, } | { "kind": "picked", 
/**
 * The request's id.
 */
id: number, 
/**
 * The hover text.
 */
hit: Hit | null, } | { "kind": "block", 
/**
 * The request's id.
 */
id: number, 
/**
 * The block.
 */
detail: BlockDetail | null, } | { "kind": "range", 
/**
 * The request's id.
 */
id: number, 
/**
 * The axis of the range.
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
 * The request's id.
 */
id: number, 
/**
 * The answer.
 */
answer: Answer, };

export type Progress = { 
/**
 * The fraction that is read, from 0 to 1.
 */
fraction: number, 
/**
 * The progress in words: `12.3 of 45.0 MiB`.
 */
text: string, 
/**
 * The curve of the events read so far; null for small files.
 */
provisional: Provisional | null, };

export type Provisional = { 
/**
 * The curve as a filled SVG path in a box of 1000 by 100, y down.
 */
path: string, 
/**
 * The number of events in words: `1,204,000 events so far`.
 */
text: string, };

export type ErrorKind = "no_snapshot" | "damaged" | "unreadable";

export type Failure = { 
/**
 * The request that failed; null if loading failed.
 */
id: number | null, 
/**
 * One line: what failed, where, and what was expected.
 */
message: string, 
/**
 * A remedy; null if there is none.
 */
hint: string | null, 
/**
 * What the file is. Absent where that is unknown, and for a request that failed.
 */
file?: ErrorKind, };

export type TooLarge = { 
/**
 * The error.
 */
failure: Failure, 
/**
 * The choice of a part; null if no part is small enough.
 */
choice: PartChoice | null, };

export type PartChoice = { 
/**
 * The curve of all events.
 */
curve: Provisional, 
/**
 * The first event of each column of the curve, then the number of events. Columns are equally
 * wide.
 */
edges: Array<number>, 
/**
 * The number of events.
 */
events: Quantity, 
/**
 * The first event of the suggested range, which contains the curve's peak and can be opened.
 */
first: number, 
/**
 * The last event of the suggested range.
 */
last: number, 
/**
 * The limit in words: `About 1,200,000 events can be opened at once.`
 */
text: string, };

export type Loaded = { 
/**
 * The worker's [`PROTOCOL`](crate::messages::PROTOCOL).
 */
protocol: number, 
/**
 * The file's snapshots. An HTML page may contain several, all other files contain one.
 */
parts: Array<Part>, };

export type Part = { 
/**
 * The snapshot's name inside the file; empty if the file is the snapshot.
 */
name: string, 
/**
 * Devices with events or segments.
 */
devices: Array<DeviceSummary>, 
/**
 * The device to show first: one that ran out of memory, then the one with the highest peak.
 */
defaultDevice: number, 
/**
 * Peak of `requested_bytes` on the default device.
 */
peak: Quantity | null, 
/**
 * Warnings about the file and its devices.
 */
warnings: Array<WarningRow>, 
/**
 * The number of starts and ends of annotated ranges.
 */
annotations: number, };

export type DeviceSummary = { 
/**
 * The device's ordinal.
 */
device: number, 
/**
 * The device's name: `device 0`.
 */
label: string, 
/**
 * The number of events in the trace.
 */
events: Quantity, 
/**
 * The number of blocks on the timeline.
 */
blocks: Quantity, 
/**
 * Peak of `requested_bytes`.
 */
peak: Quantity, 
/**
 * The event after which the peak is reached; -1 is the state before the window.
 */
peakEvent: Quantity, 
/**
 * The peak in words, for the header: `peak 42.48 GiB at #16,465`.
 */
peakText: string, 
/**
 * Peak of `reserved_bytes`.
 */
reservedPeak: Quantity, 
/**
 * Whether reserved bytes are so much higher than the stack that they have a strip of their
 * own.
 */
reservedApart: boolean, 
/**
 * Requested bytes before the window.
 */
start: Quantity, 
/**
 * Requested bytes after the last event.
 */
end: Quantity, 
/**
 * The axes of the trace: events, and time if it has a clock.
 */
axes: Array<Axis>, 
/**
 * The parts of the time axis that take less room.
 */
breaks: Array<AxisBreak>, 
/**
 * When the last event was recorded, in milliseconds since 1970; null without a clock.
 */
until: number | null, 
/**
 * Why there is no history; null if there is one.
 */
note: string | null, };

export type WarningRow = { 
/**
 * The stable name of the kind: `lost_free`.
 */
code: string, 
/**
 * The warning in words, with the place of its first occurrence.
 */
message: string, 
/**
 * The number of occurrences.
 */
count: number, };

export type Hit = { 
/**
 * Index of the block, or of the largest block of a merged strip.
 */
block: number, 
/**
 * The block's reference, as in [`BlockDetail::reference`].
 */
reference: string, 
/**
 * The title: `329.2 MiB`, or `1,204 small blocks, 3.10 MiB`.
 */
title: string, 
/**
 * Requested bytes of the block or of all merged blocks.
 */
bytes: Quantity, 
/**
 * The call site: `model.py:212 forward`.
 */
site: string, 
/**
 * Further lines: the lifetime, or the largest blocks of a merged strip.
 */
lines: Array<string>, 
/**
 * The number of blocks in the strip.
 */
count: number, 
/**
 * The strip's color word.
 */
color: number, };

export type BlockDetail = { 
/**
 * Index into the device's block table.
 */
block: number, 
/**
 * The stable reference: `<device>:<address>@<event|pre>`.
 */
reference: string, 
/**
 * The device's ordinal.
 */
device: number, 
/**
 * The event of the alloc, or the one from which the block counts; -1 is the state before the
 * window.
 */
event: number, 
/**
 * Requested bytes.
 */
bytes: Quantity, 
/**
 * The address, and which block at it this is: `0x76002a000000 (4th block here)`.
 */
address: string, 
/**
 * The block's properties in display order.
 */
rows: Array<DetailRow>, 
/**
 * The terms of a search for the blocks of the call site.
 */
terms: Array<string>, 
/**
 * The call stack, innermost frame first.
 */
stack: StackDetail, 
/**
 * All of it as text, for the clipboard.
 */
copy: string, 
/**
 * The block's color word on the timeline.
 */
color: number, 
/**
 * The block's lifetime on each axis, in slots.
 */
spans: Array<Span>, };

export type Span = { 
/**
 * The axis.
 */
kind: AxisKind, 
/**
 * First slot.
 */
x0: number, 
/**
 * The slot after the last one.
 */
x1: number, };

export type DetailRow = { 
/**
 * The stable name: `alloc_event`.
 */
key: string, 
/**
 * The label: `allocated`.
 */
label: string, 
/**
 * The value in words: `#3,702  +1.204 s`.
 */
text: string, 
/**
 * The exact integer as decimal digits; null if the value is not an integer.
 */
raw: string | null, };

export type StackDetail = { 
/**
 * The frames, innermost first.
 */
frames: Array<FrameRow>, 
/**
 * A note: this is the stack of the free, or the reason why there is no stack.
 */
note: string | null, 
/**
 * The frames of frameworks in words: `30 native frames`. Empty without one.
 */
folded: string, };

export type FrameRow = { 
/**
 * The function.
 */
name: string, 
/**
 * A short name: `aten::mul` for an operator's C++ function, else the function without its
 * arguments.
 */
function: string, 
/**
 * The file's path as recorded.
 */
file: string, 
/**
 * The line; 0 if unknown.
 */
line: number, 
/**
 * The place: `model.py:212`.
 */
place: string, 
/**
 * The line of source, from the file beside the snapshot; empty if it is unknown.
 */
source: string, 
/**
 * True for frames of PyTorch, Python's library and C++, which are dimmed and folded.
 */
framework: boolean, };

export type RunRequest = { "plan": { 
/**
 * The id, returned in the response.
 */
id: number, 
/**
 * The files, in any order.
 */
files: Array<FileEntry>, } } | { "view": { 
/**
 * The id, returned in the response.
 */
id: number, 
/**
 * The query.
 */
query: RunQuery, } } | { "list": { 
/**
 * The id, returned in the response.
 */
id: number, 
/**
 * The choice.
 */
query: ListQuery, } } | { "rows": { 
/**
 * The id, returned in the response.
 */
id: number, 
/**
 * The page's numbers of the rows.
 */
keys: Array<number>, } } | { "gpu": { 
/**
 * The id, returned in the response.
 */
id: number, 
/**
 * A name or an amount; empty for the names alone.
 */
text: string, } } | { "fleet": { 
/**
 * The id, returned in the response.
 */
id: number, 
/**
 * The page's number for a row of the run; null for the run with the most ranks.
 */
key: number | null, 
/**
 * The sizes of the parallel groups: `64/4/4` for data, tensor and pipeline; empty if they
 * are not known.
 */
sizes: string, 
/**
 * What PyTorch can have in bytes, as the user says; null for what the cards say.
 */
capacity: number | null, } } | { "compare": { 
/**
 * The id, returned in the response.
 */
id: number, 
/**
 * The query.
 */
query: CompareQuery, } } | { "matrix": { 
/**
 * The id, returned in the response.
 */
id: number, 
/**
 * The query.
 */
query: MatrixQuery, } } | { "explain": { 
/**
 * The id, returned in the response.
 */
id: number, 
/**
 * A message, or a log.
 */
text: string, } };

export type FileEntry = { 
/**
 * The path within the drop: `iteration_10/rank3_memory_snapshot.pickle`.
 */
path: string, 
/**
 * The file's size in bytes.
 */
bytes: number, 
/**
 * Whether a search of a folder found the file, and it is no snapshot. It gets no row.
 */
skipped: boolean, 
/**
 * Whether the user has closed the file. It gets no row, and counts nowhere.
 */
closed: boolean, };

export type RunResponse = { "kind": "planned", 
/**
 * The request's id.
 */
id: number, 
/**
 * The run's name: the common folder, or the file.
 */
title: string, 
/**
 * The number of files in words: `8 ranks`, `3 files`.
 */
countText: string, 
/**
 * The number of skipped files.
 */
skipped: Quantity, 
/**
 * The skipped files in words: `5 other files skipped`; null if there are none.
 */
skippedText: string | null, 
/**
 * One row per file that is not skipped.
 */
rows: Array<PlannedRow>, } | { "kind": "gpu", 
/**
 * The request's id.
 */
id: number, 
/**
 * What PyTorch can have on it, in bytes; null for a wrong text.
 */
bytes: number | null, 
/**
 * The GPU in words: `H100, 78.68 GiB`; or what is wrong with the text.
 */
text: string, 
/**
 * The names that are known.
 */
names: Array<string>, } | { "kind": "overview", 
/**
 * The request's id.
 */
id: number, 
/**
 * The overview.
 */
overview: Overview, } | { "kind": "list", 
/**
 * The request's id.
 */
id: number, 
/**
 * The rows.
 */
list: RankList, } | { "kind": "rows", 
/**
 * The request's id.
 */
id: number, 
/**
 * The rows with the wanted numbers. Those of no card are missing.
 */
rows: Array<ShownRank>, } | { "kind": "fleet", 
/**
 * The request's id.
 */
id: number, 
/**
 * The picture; null with few ranks.
 */
fleet: Fleet | null, } | { "kind": "indexed", 
/**
 * The request's id.
 */
id: number, 
/**
 * The files and the progress.
 */
read: ReadIndex, } | { "kind": "compared", 
/**
 * The request's id.
 */
id: number, 
/**
 * The answer.
 */
answer: CompareAnswer, } | { "kind": "matrix", 
/**
 * The request's id.
 */
id: number, 
/**
 * The answer.
 */
answer: MatrixAnswer, } | { "kind": "explained", 
/**
 * The request's id.
 */
id: number, 
/**
 * The answer as a piece of HTML, in which every text is escaped.
 */
html: string, 
/**
 * Its styles.
 */
styles: string, };

export type PlannedRow = { 
/**
 * Index into the request's `files`.
 */
file: number, 
/**
 * The rank in the path; null if there is none.
 */
rank: number | null, 
/**
 * The row's label: the rank's number, or the file's name without a rank, and where its folder
 * has several files of the rank.
 */
label: string, 
/**
 * The file's folder: `iteration_10`; empty for the top folder.
 */
group: string, 
/**
 * The file's size in words.
 */
size: string, 
/**
 * Index into the request's `files` of the file that `vramscope.record` writes beside the
 * snapshot; null if it is not among them. It gets no row.
 */
beside: number | null, };

export type ColorBy = "stack" | "category" | "size" | "age" | "stream" | "segment";

export type Bands = { 
/**
 * `reserved_bytes`.
 */
reserved: boolean, 
/**
 * `active_bytes`.
 */
active: boolean, 
/**
 * `allocated_bytes`.
 */
allocated: boolean, 
/**
 * Requested bytes with private pools counted as a whole, if there are any.
 */
pools: boolean, };

export type GroupBy = "block" | "category" | "line" | "module";

export type Side = "left" | "right";

export type GroupLabel = { 
/**
 * The group, counted from the bottom of the stack.
 */
group: number, 
/**
 * The name and the size: `modeling_qwen2.py:59 · up to 7.66 GiB`.
 */
text: string, 
/**
 * The group's most bytes in view. The text says `up to` where it has less elsewhere in view.
 */
bytes: Quantity, 
/**
 * The color word of the group's category, with the shade of the band and its share of hits.
 */
color: number, 
/**
 * Null in its band. Otherwise it is beside the largest total in view, at the height of a band
 * that is too narrow for the text.
 */
beside: Side | null, 
/**
 * The left and right edge in slots.
 */
x: [number, number], 
/**
 * The lower and upper edge in bytes.
 */
y: [number, number], };

export type BlockRun = { 
/**
 * The left and right edge in slots.
 */
x: [number, number], 
/**
 * The lower and upper edge in bytes.
 */
y: [number, number], };

export type FlameWeight = "peak" | "cursor" | "byteSeconds" | "count" | "churn";

export type MarkedRange = { 
/**
 * The axis.
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
 * The weight.
 */
weight: FlameWeight, 
/**
 * The event after which `Cursor` counts; -1 is the state before the window.
 */
event: number, 
/**
 * The range with the peak of `Peak`, and in which `ByteSeconds`, `Count` and `Churn` count.
 * Null for the whole window.
 */
range: MarkedRange | null, 
/**
 * True for an inverted graph, with innermost frames at the root.
 */
inverted: boolean, 
/**
 * True to leave out frames of PyTorch, Python and C++.
 */
hideFramework: boolean, 
/**
 * The path of a node (see [`FlameNode::path`](super::FlameNode::path)), to show only this node
 * with its ancestors and descendants. Empty for all nodes.
 */
root: string, 
/**
 * Frames with this text keep their color, other frames are gray. Empty for no search.
 */
search: string, };

export type SegmentSort = "size" | "address" | "pool" | "occupancy";

export type SegmentSpec = { 
/**
 * The order.
 */
sort: SegmentSort, 
/**
 * The event after which `Occupancy` is measured; -1 is the state before the window.
 */
event: number, 
/**
 * The segment (from [`Query::SegmentOf`](super::Query::SegmentOf)) whose row is [`GROWN`]
 * times as high; null for none.
 */
grown: number | null, };

export type MapSpec = { 
/**
 * The event after which the segments are shown; -1 is the state before the window.
 */
event: number, 
/**
 * The event of an earlier state; null for none. With it, colors show what came, stayed and
 * went since, and what was released is part of the map.
 */
from: number | null, 
/**
 * The number of lines that the plot has room for. It decides how many bytes a line has.
 */
lines: number, };

export type Layer = { "outline": Record<symbol, never> } | { "timeline": { 
/**
 * What the blocks of the stack are grouped by.
 */
group: GroupBy, 
/**
 * The property that colors show.
 */
color: ColorBy, 
/**
 * The bytes that are drawn as lines.
 */
bands: Bands, 
/**
 * Blocks that match this search keep their color, other blocks are gray. Empty for no
 * search.
 */
search: string, } } | { "segments": { 
/**
 * The property that colors show.
 */
color: ColorBy, 
/**
 * The rows.
 */
rows: SegmentSpec, 
/**
 * The search, as in `Timeline`.
 */
search: string, } } | { "flame": { 
/**
 * The graph.
 */
flame: FlameSpec, } } | { "map": { 
/**
 * The property that colors show.
 */
color: ColorBy, 
/**
 * The event and the size.
 */
map: MapSpec, 
/**
 * The search, as in `Timeline`.
 */
search: string, } };

export type Query = { "card": Record<symbol, never> } | { "summary": Record<symbol, never> } | { "simulatedSummary": Record<symbol, never> } | { "summaryPlot": Record<symbol, never> } | { "levers": { 
/**
 * What PyTorch can have on the chosen device, in bytes; null for what the file shows.
 */
bytes: number | null, 
/**
 * Whether all levers are listed, and what is none.
 */
all: boolean, } } | { "leverSettings": Record<symbol, never> } | { "minimap": { 
/**
 * The axis.
 */
axis: AxisKind, } } | { "tracks": { 
/**
 * The axis.
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
 * The number of columns.
 */
columns: number, } } | { "phases": { 
/**
 * The axis.
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
 * The number of columns.
 */
columns: number, } } | { "foldedSteps": { 
/**
 * The axis of the steps.
 */
axis: AxisKind, } } | { "legend": { 
/**
 * What colors show.
 */
color: ColorBy, 
/**
 * The event after which the bytes are counted, -1 for the state before the window; null
 * for the peak of requested bytes.
 */
event: number | null, 
/**
 * The axis.
 */
axis: AxisKind, 
/**
 * Left edge of the view in slots. Only colors of blocks in view are listed.
 */
x0: number, 
/**
 * Right edge of the view in slots.
 */
x1: number, } } | { "reservedLine": { 
/**
 * The axis.
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
 * The number of columns.
 */
columns: number, } } | { "deadLine": { 
/**
 * The axis.
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
 * The number of columns.
 */
columns: number, } } | { "freeLines": { 
/**
 * The axis.
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
 * The number of columns.
 */
columns: number, 
/**
 * The event after which [`CounterLine::at`] holds.
 */
event: number, } } | { "moments": { 
/**
 * The axis.
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
 * The number of columns.
 */
columns: number, 
/**
 * The event of the time cursor, -1 before the window; null without a cursor.
 */
event: number | null, } } | { "pinnedLine": { 
/**
 * The other rank's answer to `Moments`.
 */
moments: Moments, 
/**
 * Bytes at the full height.
 */
top: number, } } | { "limit": { 
/**
 * The axis.
 */
axis: AxisKind, } } | { "peak": Record<symbol, never> } | { "peakLens": { 
/**
 * Index of the peak, the highest first. After the last, the last is meant.
 */
peak: number, 
/**
 * Width of the treemap in CSS pixels.
 */
width: number, 
/**
 * Height of the treemap in CSS pixels.
 */
height: number, } } | { "stateAt": { 
/**
 * The event's index; -1 is the state before the window. Events beyond the trace mean its
 * end.
 */
event: number, } } | { "eventAt": { 
/**
 * The axis.
 */
axis: AxisKind, 
/**
 * The slot. Slots beyond the axis mean its nearest end.
 */
slot: number, } } | { "markers": { 
/**
 * The events; -1 is the state before the window. Events that do not exist have no answer.
 */
events: number[], } } | { "range": MarkedRange } | { "changes": { 
/**
 * The event of state A; -1 is the state before the window.
 */
from: number, 
/**
 * The event of state B, which may be before A.
 */
to: number, } } | { "events": { 
/**
 * The filter.
 */
filter: EventFilter, 
/**
 * Index of the first row.
 */
from: number, 
/**
 * The maximum number of rows.
 */
count: number, 
/**
 * An event to locate. The answer's `at` is the last matching row at or before it.
 */
near: number | null, } } | { "blocks": { 
/**
 * The filter and the order.
 */
table: BlockTable, 
/**
 * Index of the first row.
 */
from: number, 
/**
 * The maximum number of rows.
 */
count: number, 
/**
 * A block to locate. The answer's `at` is its row.
 */
near: number | null, } } | { "export": { 
/**
 * The table.
 */
what: Table, 
/**
 * The format.
 */
form: TextForm, } } | { "record": { 
/**
 * The reference `<device>:<address>@<event|pre>`, or the finding's id.
 */
id: string, } } | { "convert": { 
/**
 * The format.
 */
format: ExportFormat, } } | { "markdown": Record<symbol, never> } | { "report": { 
/**
 * The name of the device among others.
 */
name: string, } } | { "next": { 
/**
 * The search.
 */
of: Looked, 
/**
 * The event to start from, for a call stack; -1 is the state before the window.
 */
event: number, 
/**
 * The block to start from. For a call stack, it tells blocks apart that enter with that
 * event, such as blocks from before the window.
 */
block: number | null, 
/**
 * True to search towards the start.
 */
backwards: boolean, } } | { "hit": { 
/**
 * Index into the block table.
 */
block: number, } } | { "groupLabels": { 
/**
 * What the blocks are grouped by.
 */
group: GroupBy, 
/**
 * The axis.
 */
axis: AxisKind, 
/**
 * Left and right edge of the view in slots.
 */
x: [number, number], 
/**
 * Lower and upper edge of the view in bytes.
 */
y: [number, number], 
/**
 * Width and height of the view in CSS pixels.
 */
size: [number, number], 
/**
 * Width of a letter and height of a line in CSS pixels.
 */
letter: [number, number], 
/**
 * The search: only bands with hits have labels, with the bytes of these.
 */
search: string, } } | { "groupTerms": { 
/**
 * Index into the block table.
 */
block: number, 
/**
 * What the blocks are grouped by.
 */
group: GroupBy, } } | { "stepRange": { 
/**
 * The other rank's answer to `Moments`, of one column.
 */
moments: Moments, 
/**
 * The axis.
 */
axis: AxisKind, } } | { "blockRun": { 
/**
 * Index into the block table.
 */
block: number, 
/**
 * What the blocks are grouped by.
 */
group: GroupBy, 
/**
 * The axis.
 */
axis: AxisKind, 
/**
 * Left and right edge of the view in slots.
 */
x: [number, number], 
/**
 * Width of the view in CSS pixels.
 */
width: number, 
/**
 * The slot near which its place is wanted.
 */
slot: number, } } | { "names": { 
/**
 * Indices into the block table.
 */
blocks: Array<number>, } } | { "search": { 
/**
 * Words of functions, files, metadata and annotations, an address `0x...`, a size
 * `>512MiB`, `live@peak`, or terms such as `site:gpt.py:43` and `category:activation`.
 */
text: string, } } | { "group": { 
/**
 * The search.
 */
text: string, 
/**
 * The event of the time cursor, -1 before the window; null without a cursor.
 */
event: number | null, } } | { "segments": { 
/**
 * The rows.
 */
rows: SegmentSpec, } } | { "segmentRows": { 
/**
 * The rows of the view.
 */
rows: SegmentSpec, 
/**
 * The lower height in units.
 */
y0: number, 
/**
 * The upper height in units.
 */
y1: number, } } | { "segmentUses": { 
/**
 * The rows of the view.
 */
rows: SegmentSpec, 
/**
 * The lower height in units.
 */
y0: number, 
/**
 * The upper height in units.
 */
y1: number, 
/**
 * The event after which the state holds; -1 is the state before the window.
 */
event: number, } } | { "segment": { 
/**
 * [`SegmentRow::segment`], or the answer to `SegmentOf`.
 */
segment: number, 
/**
 * The event after which the state holds; -1 is the state before the window.
 */
event: number, } } | { "segmentOf": { 
/**
 * Index into the block table.
 */
block: number, } } | { "map": { 
/**
 * The event and the size.
 */
map: MapSpec, } } | { "flame": { 
/**
 * The graph.
 */
flame: FlameSpec, } } | { "flameBoxes": { 
/**
 * The graph.
 */
flame: FlameSpec, 
/**
 * Left edge in the graph's units.
 */
x0: number, 
/**
 * Right edge in the same unit.
 */
x1: number, 
/**
 * The minimum width of a node, as a share of the distance between the edges.
 */
least: number, } } | { "flameNode": { 
/**
 * The graph.
 */
flame: FlameSpec, 
/**
 * The node, which is the strip's block.
 */
node: number, } } | { "code": { 
/**
 * The content and order.
 */
spec: CodeSpec, 
/**
 * Index of the first row.
 */
from: number, 
/**
 * The maximum number of rows.
 */
count: number, } } | { "source": { 
/**
 * The content.
 */
spec: SourceSpec, } } | { "modules": { 
/**
 * The content.
 */
spec: ModuleSpec, 
/**
 * Index of the first row.
 */
from: number, 
/**
 * The maximum number of rows.
 */
count: number, } } | { "holders": { 
/**
 * The event of the time cursor, -1 before the window; null without a cursor.
 */
event: number | null, } } | { "sandwich": { 
/**
 * The blocks.
 */
spec: CodeSpec, 
/**
 * [`CodeRow::frame`].
 */
frame: number, } } | { "frame": { 
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
 * The band at whose peaks the live sets are compared.
 */
band: BandKind, } } | { "settings": Record<symbol, never> } | { "reserved": Record<symbol, never> } | { "scenario": { 
/**
 * The question.
 */
text: string, } } | { "simulatedCurve": { 
/**
 * The question.
 */
text: string, 
/**
 * The axis.
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
 * The number of columns.
 */
columns: number, } } | { "picture": { 
/**
 * The content.
 */
layer: Layer, 
/**
 * The x axis.
 */
axis: AxisKind, 
/**
 * Left edge in the layer's units.
 */
x0: number, 
/**
 * Right edge in the same unit.
 */
x1: number, 
/**
 * Lower edge in the layer's units.
 */
y0: number, 
/**
 * Upper edge in the layer's units.
 */
y1: number, 
/**
 * Width of the plot in CSS pixels.
 */
width: number, 
/**
 * Height of the plot in CSS pixels.
 */
height: number, 
/**
 * True for a dark background.
 */
dark: boolean, 
/**
 * The question whose simulated reserved bytes are drawn over the timeline; null for none.
 */
simulated: string | null, } };

export type EventFilter = { 
/**
 * Names of actions, such as `alloc`; empty for all actions.
 */
actions: Array<string>, 
/**
 * A search as in [`Query::Search`](super::Query::Search); empty for no filter.
 */
text: string, };

export type BlockTable = { 
/**
 * A search as in [`Query::Search`](super::Query::Search); empty for no filter.
 */
text: string, 
/**
 * A category; empty for all categories.
 */
category: string, 
/**
 * An event, to keep only blocks that are live after it; -1 is the state before the window.
 */
liveAt: number | null, 
/**
 * The column to sort by.
 */
sort: BlockSort, 
/**
 * True for the largest or last first.
 */
descending: boolean, };

export type BlockSort = "size" | "blockSize" | "category" | "allocated" | "freed" | "lifetime" | "byteSeconds" | "address" | "stream" | "site";

export type Table = { "blocks": { 
/**
 * The filter and the order.
 */
table: BlockTable, } } | { "events": { 
/**
 * The filter.
 */
filter: EventFilter, } } | { "findings": Record<symbol, never> } | { "segments": { 
/**
 * The event after which the state holds; -1 is the state before the window.
 */
event: number, } };

export type TextForm = "csv" | "json";

export type ExportFormat = { "folded": { 
/**
 * The weight of a block.
 */
weight: FlameWeight, 
/**
 * The event after which `Cursor` counts; -1 is the state before the window.
 */
event: number, } } | { "speedscope": { 
/**
 * The weight of a block.
 */
weight: FlameWeight, 
/**
 * The event after which `Cursor` counts; -1 is the state before the window.
 */
event: number, } } | { "perfetto": Record<symbol, never> };

export type Looked = { "search": { 
/**
 * The search, as in [`Query::Search`].
 */
text: string, } } | { "stack": { 
/**
 * Index into the block table.
 */
block: number, } };

export type Answer = { "card": FileCard } | { "summary": Summary } | { "summaryPlot": SummaryPlot } | { "levers": Levers } | { "leverSettings": Array<LeverSetting> } | { "minimap": Minimap } | { "phases": Phases } | { "foldedSteps": FoldedSteps } | { "tracks": Tracks } | { "legend": Legend } | { "reservedLine": CounterLine } | { "deadLine": CounterLine | null } | { "freeLines": Array<CounterLine> } | { "moments": Moments } | { "pinnedLine": PinnedLine } | { "limit": Limit } | { "peakLens": PeakLens } | { "stateAt": StateAt } | { "eventAt": number } | { "markers": Array<Marker> } | { "detail": DetailCard | null } | { "changes": StateChanges } | { "events": EventPage } | { "blocks": BlockPage } | { "text": string } | { "record": ProgramRecord | null } | { "next": NextBlock | null } | { "hit": Hit | null } | { "groupLabels": Array<GroupLabel> } | { "groupTerms": Array<string> } | { "stepRange": [number, number] | null } | { "blockRun": BlockRun | null } | { "names": Array<Array<string>> } | { "search": SearchResult | null } | { "group": GroupCard | null } | { "segments": SegmentsInfo } | { "segmentRows": Array<SegmentRow> } | { "segmentUses": SegmentUses } | { "segmentOf": number | null } | { "map": MapInfo } | { "flame": FlameInfo } | { "flameBoxes": Array<FlameBox> } | { "flameNode": FlameNode | null } | { "code": CodePage } | { "source": SourcePage } | { "holders": HolderTable } | { "modules": ModulePage } | { "sandwich": Sandwich | null } | { "settings": SettingsCard } | { "reserved": ReservedUse | null } | { "scenario": ScenarioCard } | { "simulatedCurve": SimulatedCurve };

export type ProgramRecord = Record<string, unknown>;

export type ListQuery = { 
/**
 * The sort key.
 */
sort: RankSort, 
/**
 * True for the largest first.
 */
descending: boolean, 
/**
 * The terms that all shown rows meet, separated by spaces. See [`RankList`].
 */
filter: string, 
/**
 * The iteration in decimal digits. Null, or one that no file has, means the last one of an
 * index, and all of other files.
 */
iteration: string | null, };

export type RankList = { 
/**
 * The page's numbers of the rows.
 */
order: Array<number>, 
/**
 * The peaks in words: `Peak per rank: 610.2 MiB to 1.16 GiB`.
 */
peaks: string, 
/**
 * How many are shown in words, if a filter is chosen: `312 of 1,024 ranks`; else empty.
 */
text: string, 
/**
 * Whether these are the rows of all cards.
 */
isWhole: boolean, 
/**
 * The place of the chosen iteration in [`super::Fleet::iterations`]; null for all iterations.
 */
iteration: number | null, };

export type ShownRank = { 
/**
 * The row.
 */
row: OverviewRow, 
/**
 * Its card, without the lists that no row shows: call sites, stacks, steps and the curve.
 * Categories are in their fixed order.
 */
card: Card, 
/**
 * Whether the card is of an index. Then no worker of a file has its findings.
 */
indexed: boolean, };

export type Fleet = { 
/**
 * Clusters of like ranks, that with the lowest rank first.
 */
clusters: Array<FleetCluster>, 
/**
 * The distribution of the peaks of requested bytes; empty with few ranks.
 */
bars: Array<FleetBar>, 
/**
 * Labels of the bytes.
 */
ticks: Array<FleetTick>, 
/**
 * The number of ranks of the highest bar in words.
 */
most: string, 
/**
 * The memory that PyTorch could have; null if it is not known.
 */
capacity: FleetTick | null, 
/**
 * What the sizes of the parallel groups mean, or why they cannot be; empty without sizes.
 */
sizes: string, 
/**
 * Whether the sizes fit the run.
 */
isSized: boolean, 
/**
 * The iterations of the ranks, ascending; empty with fewer than two.
 */
iterations: Array<FleetIteration>, 
/**
 * The median of the peaks by iteration, as an SVG path in a box of [`SERIES`], y down.
 */
medianPath: string, 
/**
 * The highest peak by iteration.
 */
maxPath: string, };

export type FleetCluster = { 
/**
 * Its ranks in words: `ranks 0-3, 8`.
 */
text: string, 
/**
 * Its place among the parallel groups: `pp 0, tp 0-3`; empty if it is not known.
 */
place: string, 
/**
 * The number of its ranks.
 */
count: Quantity, 
/**
 * The median of the peaks of requested bytes.
 */
median: Quantity, 
/**
 * The highest of these.
 */
max: Quantity, 
/**
 * The filter that shows its ranks.
 */
filter: string, };

export type FleetBar = { 
/**
 * Its left edge, from 0 to 1.
 */
x0: number, 
/**
 * Its right edge.
 */
x1: number, 
/**
 * The upper edges of its parts by cluster, from 0 to 1 of the highest bar.
 */
tops: Array<number>, 
/**
 * The number of ranks.
 */
count: number, 
/**
 * The bar in words: `10.0 GiB to 10.5 GiB: 312 ranks`.
 */
text: string, 
/**
 * The filter that shows its ranks.
 */
filter: string, };

export type FleetTick = { 
/**
 * The place, from 0 to 1.
 */
at: number, 
/**
 * The label.
 */
text: string, };

export type FleetIteration = { 
/**
 * The iteration.
 */
iteration: Iteration, 
/**
 * The median of the peaks of requested bytes.
 */
median: Quantity, 
/**
 * The highest of these.
 */
max: Quantity, 
/**
 * The place of its point in the paths, from 0 to 1.
 */
at: number, };

export type ReadIndex = { 
/**
 * The run's name.
 */
title: string, 
/**
 * The files that no line of the same answer named before.
 */
files: Array<IndexedFile>, 
/**
 * How many files have their card in words: `Reading 312 of 1,024 ranks`; empty at the end.
 */
progress: string, 
/**
 * The number from which to ask a server for the rest; null for a whole index.
 */
next: number | null, 
/**
 * Whether the last line was read.
 */
isDone: boolean, 
/**
 * Why the lines cannot be read; null if they can.
 */
error: string | null, };

export type IndexedFile = { 
/**
 * The path.
 */
path: string, 
/**
 * The size in bytes.
 */
bytes: number, 
/**
 * Why the file could not be read; null if it could.
 */
error: string | null, };

export type MatrixQuery = { "show": { 
/**
 * The page's number for a row of that run; null for the run with the most ranks.
 */
key: number | null, 
/**
 * Whether its rows are steps instead of call sites.
 */
byStep: boolean, } } | { "cell": { 
/**
 * The index of its call site.
 */
row: number, 
/**
 * The index of its rank.
 */
column: number, } };

export type MatrixAnswer = { "matrix": Matrix | null } | { "cell": MatrixCell | null };

export type Matrix = { 
/**
 * Whether the rows are steps, of which the ranks have at least two.
 */
byStep: boolean, 
/**
 * Whether the ranks have steps.
 */
hasSteps: boolean, 
/**
 * Clusters and outliers in sentences.
 */
text: Array<string>, 
/**
 * The call sites, that with the most bytes on any rank first.
 */
rows: Array<MatrixRow>, 
/**
 * The call sites without a row in words: `13 more call sites`; empty if there are none.
 */
omitted: string, 
/**
 * The ranks, cluster by cluster.
 */
columns: Array<MatrixColumn>, 
/**
 * Groups of like ranks.
 */
clusters: Array<MatrixCluster>, 
/**
 * The colors of the cells, row by row, a letter for each: `e` near the median, to `a` far
 * below and `i` far above, `-` for none.
 */
levels: string, 
/**
 * The bytes of the cells in words, row by row; empty with many ranks.
 */
cells: Array<string>, 
/**
 * The least differences from the median of the four steps of color, in words.
 */
bounds: Array<string>, };

export type MatrixRow = { 
/**
 * The call site.
 */
site: string, 
/**
 * The filter that chooses its blocks; empty if there is none.
 */
term: string, 
/**
 * The median over all ranks.
 */
median: Quantity, 
/**
 * The most bytes on a rank.
 */
max: Quantity, };

export type MatrixColumn = { 
/**
 * The page's number for the row.
 */
key: number, 
/**
 * The rank in digits.
 */
label: string, 
/**
 * The page's number for the row that it is compared with.
 */
usual: number, 
/**
 * How it differs from its cluster, in a sentence; empty if it does not.
 */
outlier: string, };

export type MatrixCluster = { 
/**
 * The index of its first column.
 */
first: number, 
/**
 * The number of its columns.
 */
count: number, 
/**
 * Its ranks in words: `ranks 0-3, 8`.
 */
text: string, };

export type MatrixCell = { 
/**
 * The cell in words: `233.3 MiB on rank 3`.
 */
title: string, 
/**
 * The bytes.
 */
bytes: Quantity, 
/**
 * The difference from the median over all ranks.
 */
change: Quantity, 
/**
 * The call site.
 */
site: string, 
/**
 * The median and the cluster in words.
 */
lines: Array<string>, };

export type FileCard = { 
/**
 * The card as JSON. The page passes it to the coordinator, so byte counts stay exact.
 */
card: string, 
/**
 * The findings of the card, in its order.
 */
findings: Array<FindingRow>, };

export type Card = { 
/**
 * The file's path, followed by `#name` if the file contains several snapshots.
 */
path: string, 
/**
 * Stored size of the file.
 */
bytes: Bytes, 
/**
 * The rank in the path; null if there is none.
 */
rank: number | null, 
/**
 * The iteration in the path; null if there is none.
 */
iteration: Iteration | null, 
/**
 * The device's ordinal.
 */
device: number, 
/**
 * The number of trace events.
 */
events: Events, 
/**
 * The four bands, in the order of [`BandKind::ALL`].
 */
bands: [BandSummary, BandSummary, BandSummary, BandSummary], 
/**
 * The free memory that the allocator caches at the peak of `reserved_bytes`.
 */
free: FreeMemory, 
/**
 * The free memory that the allocator caches after the last event.
 */
end_free: FreeMemory, 
/**
 * The most bytes that PyTorch can reserve on the device; null if the file does not show it.
 */
capacity: Bytes | null, 
/**
 * Live bytes at the peak of `requested_bytes` by category, most bytes first.
 */
categories: Array<CategoryShare>, 
/**
 * Live bytes at that peak by call site: the [`MAX_SITES`] largest.
 */
sites: Array<SiteBytes>, 
/**
 * Live bytes at that peak by call stack: the [`MAX_STACKS`] largest.
 */
stacks: Array<StackBytes>, 
/**
 * The event after the last whole step, or the last event where nothing shows steps; -1 is the
 * state before the window. The memory that is live then is kept.
 */
kept_event: PeakEvent, 
/**
 * `requested_bytes` after that event.
 */
kept: Bytes, 
/**
 * Live bytes after that event by call site: the [`MAX_SITES`] largest.
 */
kept_sites: Array<SiteBytes>, 
/**
 * Out-of-memory events.
 */
ooms: Array<OomSummary>, 
/**
 * The device's own findings by severity, then bytes. A short card has the worst of them.
 */
findings: Array<CardFinding>, 
/**
 * The findings that a short card leaves out.
 */
other_findings: Array<KindBytes>, 
/**
 * The most `requested_bytes` in equal parts of the window, in units of the full height divided
 * by [`FULL_HEIGHT`].
 */
curve: Array<number>, 
/**
 * The number of the first step in `steps`, from 0.
 */
first_step: number, 
/**
 * The last whole steps.
 */
steps: Array<StepBytes>, 
/**
 * The call sites and stacks that no card before this one names. A card outside of an index
 * names all of its own.
 */
names: Names, };

export type BandSummary = { 
/**
 * Before the first event.
 */
start: SignedBytes, 
/**
 * The largest value.
 */
peak: SignedBytes, 
/**
 * The first event after which the peak is reached, from 0; -1 is the state before the window.
 */
peak_event: PeakEvent, 
/**
 * The time of `peak_event`; null without a clock, and before the window.
 */
peak_us: Micros | null, 
/**
 * After the last event.
 */
end: SignedBytes, 
/**
 * `exact` or `estimate`.
 */
exactness: Exactness, };

export type Exactness = "exact" | "estimate";

export type FreeMemory = { 
/**
 * Reserved minus active bytes.
 */
bytes: Bytes, 
/**
 * The largest free piece.
 */
largest: Bytes, };

export type CategoryShare = { 
/**
 * The category.
 */
category: Category, 
/**
 * Bytes.
 */
bytes: Bytes, 
/**
 * Blocks.
 */
blocks: number, };

export type SiteBytes = { 
/**
 * Its index in [`Names::sites`].
 */
site: number, 
/**
 * Requested bytes.
 */
bytes: Bytes, };

export type StackBytes = { 
/**
 * Its index in [`Names::stacks`].
 */
stack: number, 
/**
 * Requested bytes.
 */
bytes: Bytes, 
/**
 * The category with most of the bytes.
 */
category: Category, 
/**
 * Whether a finding about growth or held memory names the call site. Absent means no.
 */
is_found?: boolean, };

export type OomSummary = { 
/**
 * The event's index in the trace.
 */
event: EventIndex, 
/**
 * Requested bytes.
 */
requested: Bytes, 
/**
 * Free bytes reported by the driver; null if not recorded.
 */
device_free: Bytes | null, };

export type CardFinding = { 
/**
 * The record, [in brief](FindingRecord::brief).
 */
record: FindingRecord, 
/**
 * The step and phase in words; empty if neither is known.
 */
place: string, };

export type KindBytes = { 
/**
 * The kind.
 */
kind: FindingKind, 
/**
 * Bytes that the finding is about.
 */
bytes: Bytes, };

export type StepBytes = { 
/**
 * The peak of `requested_bytes` in the step.
 */
peak: Bytes, 
/**
 * `requested_bytes` after the step.
 */
floor: Bytes, };

export type Names = { 
/**
 * The call sites.
 */
sites: Array<string>, 
/**
 * The call stacks.
 */
stacks: Array<NamedStack>, };

export type NamedStack = { 
/**
 * A hash of the frames' names, files and lines, equal in all ranks.
 */
hash: number, 
/**
 * The index of its call site in [`Names::sites`].
 */
site: number, };

export type CategoryRow = { 
/**
 * The category.
 */
name: Category, 
/**
 * The label: `parameters`.
 */
label: string, 
/**
 * Live bytes.
 */
bytes: Quantity, 
/**
 * Share of the whole, from 0 to 1.
 */
share: number, 
/**
 * The color word.
 */
color: number, };

export type FindingKind = "oom" | "growth" | "cycle" | "gradients_held" | "held_too_long" | "no_grad" | "one_piece" | "buckets" | "gathered" | "loaded" | "table" | "peak_cause" | "idle_model" | "rank_skew" | "reserved" | "stranded_pool" | "pending_free" | "churn" | "dead_at_peak" | "pinned";

export type Severity = "high" | "medium" | "low";

export type Category = "parameter" | "gradient" | "optimizer_state" | "buffer" | "input" | "activation" | "temporary" | "workspace" | "communication" | "cache" | "unknown";

export type Phase = "forward" | "backward" | "optimizer" | "other" | "evaluation";

export type Basis = "recorded" | "exact" | "estimate";

export type SimulatedBasis = "simulated" | "recipe" | "estimate";

export type FindingId = string;

export type Blocks = Quantity;

export type Simulated = { 
/**
 * The difference from the recording, in words: `as recorded`, `expandable_segments:True`.
 */
change: string, 
/**
 * The settings in the form of `PYTORCH_CUDA_ALLOC_CONF`. Empty for PyTorch's defaults.
 */
conf: string, 
/**
 * For a failed allocation: whether the run goes through this point. Null for other findings.
 */
fits: boolean | null, 
/**
 * The bytes that are missing; null for findings that are not about a failed allocation.
 */
short_by: Bytes | null, 
/**
 * The peak of `reserved_bytes`; when memory runs out, until then.
 */
reserved_peak: Bytes, 
/**
 * The memory that PyTorch must have for the run to go through; null if it was not searched.
 */
least_device_memory: Bytes | null, 
/**
 * How the numbers were obtained.
 */
basis: SimulatedBasis, };

export type Outcome = "fits" | "fits_barely" | "short" | "unknown";

export type Cost = "none" | "edit" | "time" | "precision" | "batch";

export type Covers = "run" | "steps" | "step" | "request";

export type Lasts = { 
/**
 * Further steps, after the part that `covers` names.
 */
steps: bigint, 
/**
 * The word for this number of them: `steps`, `request` or `passes`.
 */
called: string, };

export type Lever = { 
/**
 * Its name among the levers of a device: `expandable_segments:True`, `checkpoint:all`, or the
 * id of the finding that it cures.
 */
id: string, 
/**
 * The change's name: `checkpoint`. `setting` for settings alone, and the kind of the finding
 * for a cure that was not replayed.
 */
kind: string, 
/**
 * The change as `vramscope what-if --apply` takes it; empty for settings alone.
 */
recipe: string, 
/**
 * The settings in the form of `PYTORCH_CUDA_ALLOC_CONF`; null if they stay.
 */
conf: string | null, 
/**
 * The change as an instruction: `Checkpoint 6 of the 12 blocks`.
 */
text: string, 
/**
 * The file's path.
 */
path: string, 
/**
 * The device's ordinal.
 */
device: number, 
/**
 * The line to change; null where it is not known.
 */
place: LeverPlace | null, 
/**
 * The memory that PyTorch must have for the run to go through without a change.
 */
now_bytes: Bytes, 
/**
 * The memory that PyTorch must have with the change.
 */
needs_bytes: Bytes, 
/**
 * The difference; 0 for a change that needs more.
 */
saving_bytes: Bytes, 
/**
 * The price.
 */
cost: Cost, 
/**
 * How much longer a step takes, in percent: at least and at most. An estimate from the
 * device's data sheet, which was not measured on a GPU. Absent unless `cost` is `time`, and
 * where no estimate can be defended.
 */
seconds_percent?: [number, number] | null, 
/**
 * The GPU of that estimate: the one that was asked for, or else that of the recording, or else
 * an H100.
 */
seconds_gpu?: string | null, 
/**
 * Whether the run goes through with the memory that PyTorch can have; null if no limit is
 * known.
 */
outcome: Outcome | null, 
/**
 * The bytes that are missing at least; null unless `outcome` is `short`.
 */
short_by: Bytes | null, 
/**
 * The part of the run that was replayed.
 */
covers: Covers, 
/**
 * When memory is full again, if something grows from step to step that the change leaves; null
 * if nothing grows.
 */
lasts: Lasts | null, 
/**
 * How the numbers were obtained.
 */
basis: LeverBasis, 
/**
 * The measured error, in percent; null where nothing but settings changes, and where it was
 * not measured.
 */
error_percent: number | null, 
/**
 * Between which values `needs_bytes` lies, where the file can be read in two ways; else null.
 */
range: [Bytes, Bytes] | null, 
/**
 * The finding that it cures; null if none.
 */
cures: FindingId | null, 
/**
 * The change as an edit of the program; null for settings, and where none was written.
 */
edit: EditRecord | null, };

export type LeverBasis = "replayed" | "estimated";

export type LeverPlace = { 
/**
 * In words: `gpt.py:44`.
 */
site: string, 
/**
 * The recorded path of the file.
 */
file: string, 
/**
 * The line.
 */
line: number, };

export type Look = { 
/**
 * The cause and its cure: `attention scores: scaled_dot_product_attention`.
 */
text: string, 
/**
 * The peak of `active_bytes` is lower by this, replayed.
 */
bytes: Bytes, 
/**
 * The line: `gpt.py:18`; null where it is not known.
 */
site: string | null, 
/**
 * The change as `vramscope what-if --apply` takes it.
 */
recipe: string, };

export type FindingChild = { 
/**
 * The call site.
 */
site: string, 
/**
 * Its bytes.
 */
bytes: Bytes, 
/**
 * Its blocks.
 */
blocks: Blocks, };

export type FindingPlace = { 
/**
 * The call site: `gpt.py:44 forward`.
 */
site: string, 
/**
 * What of it: `in its backward (LogSoftmaxBackward0)`, `called from train.py:40 main`. Empty
 * if it is the line itself.
 */
note: string, 
/**
 * The recorded path of the file.
 */
file: string, 
/**
 * The line; 0 if unknown.
 */
line: number, 
/**
 * The line of source; null if it is not known.
 */
source: string | null, 
/**
 * What it allocates: shape, number of blocks. Empty if nothing more is known.
 */
what: string, };

export type FindingRecord = { 
/**
 * A stable id: one file gives one id on every machine.
 */
id: FindingId, 
/**
 * The kind.
 */
kind: FindingKind, 
/**
 * The severity.
 */
severity: Severity, 
/**
 * The file's path.
 */
path: string, 
/**
 * The rank in the path; null if there is none.
 */
rank: number | null, 
/**
 * The device's ordinal.
 */
device: number, 
/**
 * The finding in a few words.
 */
title: string, 
/**
 * Subject, numbers and cause.
 */
text: string, 
/**
 * What to do.
 */
action: string, 
/**
 * The line that it is about; null without a call stack.
 */
place: FindingPlace | null, 
/**
 * Why, in one line without the figures of the title; empty where the title says it.
 */
why: string, 
/**
 * Bytes that the finding is about.
 */
bytes: Bytes, 
/**
 * What the peak loses without it; null where that is not measured.
 */
saving_bytes: Bytes | null, 
/**
 * The training step, from 0; null if the finding is about several or none.
 */
step: number | null, 
/**
 * The phase; null if the finding is about several or none.
 */
phase: Phase | null, 
/**
 * How the numbers were obtained.
 */
basis: Basis, 
/**
 * Evidence: event indices from 0.
 */
events: Array<EventIndex>, 
/**
 * The call sites that the finding is about, most bytes first.
 */
sites: Array<string>, 
/**
 * The callers of the first site, innermost first: frames outside of PyTorch.
 */
called_from: Array<string>, 
/**
 * The number of blocks that the finding is about.
 */
blocks: Blocks, 
/**
 * The shares of the call sites, if there are several.
 */
children: Array<FindingChild>, 
/**
 * What the model of the allocator says: first about the run as recorded, then about changes.
 * Absent where it says nothing.
 */
simulated?: Array<Simulated>, 
/**
 * The changes with which a run goes through that failed, replayed over the whole run: what
 * fits first, then by cost. Absent for other findings.
 */
fixes?: Array<Lever>, 
/**
 * Known causes of memory that the file shows, whose cures do not suffice alone: those with
 * most bytes first. Absent for other findings.
 */
look?: Array<Look>, 
/**
 * What holds its blocks that are live at the end, most bytes first. Of a failed allocation:
 * what to drop beside the model. Absent unless the file beside the snapshot tells it.
 */
holders?: Array<Holder>, };

export type FindingView = { 
/**
 * The kind in words: `Growth`.
 */
label: string, 
/**
 * The finding in one sentence, without its rank.
 */
headline: Array<Phrase>, 
/**
 * The step and phase in words: `step 3, backward`, or `repetition 3`. Empty if neither is
 * known.
 */
place: string, 
/**
 * The terms of a search that finds the blocks of the finding; empty if none does.
 */
terms: Array<string>, 
/**
 * The changes that were replayed for it and help, as `diagnose` prints them: `fix 1: ...`.
 */
fixes: Array<string>, 
/**
 * The frames of its largest call stack that are the program's, innermost first. Only the
 * innermost ones.
 */
frames: Array<FrameRow>, 
/**
 * The range from the first to the last event on each axis; empty without events.
 */
spans: Array<Span>, 
/**
 * The reference of a block that shows the finding; null if there is none.
 */
reference: string | null, };

export type FindingRow = { 
/**
 * The record, without its proof.
 */
record: FindingRecord, 
/**
 * The rest of its card.
 */
view: FindingView, };

export type Diagnosis = { 
/**
 * The schema's name and version.
 */
schema: string, 
/**
 * The first words of the answer.
 */
sentence: string, 
/**
 * The result: one sentence for each device, the worst first: at most four, or with `--all`
 * every device. The page begins with it.
 */
headlines: Array<Headline>, 
/**
 * The number of further devices; absent if none.
 */
headlines_omitted?: number, 
/**
 * The dry run, if the files are of one; absent otherwise.
 */
dry?: DrySummary, 
/**
 * The memory of the first of these devices, at the moment of its headline; null if nothing
 * was reserved.
 */
memory: MemorySummary | null, 
/**
 * The findings that matter most, at most five. One finding stands for equal ones of several
 * ranks. Long lists and texts are cut. With `--all` the complete findings of each rank, by
 * severity, then bytes.
 */
findings: Array<FindingRecord>, 
/**
 * The number of further findings; absent if none.
 */
omitted?: number, 
/**
 * The highest peak of `requested_bytes`; null if no memory was allocated.
 */
peak: PeakSummary | null, 
/**
 * The levers of the device with the highest peak, best first, if one file is diagnosed: at
 * most five. A failed run has its levers as `fixes` of its finding.
 */
levers: Array<Lever>, 
/**
 * What could not be looked for.
 */
blind_spots: Array<BlindSpotRecord>, 
/**
 * Files in folders that are no snapshots.
 */
skipped_files: number, };

export type Headline = { 
/**
 * The file's path.
 */
path: string, 
/**
 * The rank in the path; null if there is none.
 */
rank: number | null, 
/**
 * The device's ordinal.
 */
device: number, 
/**
 * The severity of the finding that it is about; null if it is about the peak.
 */
severity: Severity | null, 
/**
 * The id of that finding; null without one.
 */
finding: FindingId | null, 
/**
 * The sentence, without the rank: cause, place, amount.
 */
text: string, };

export type MemorySummary = { 
/**
 * The event after which it holds, from 0; -1 is the state before the window.
 */
event: number, 
/**
 * `reserved_bytes`.
 */
reserved: Bytes, 
/**
 * What PyTorch can have; null where the file does not tell.
 */
capacity: Bytes | null, 
/**
 * The request that failed; null without one.
 */
request: Bytes | null, 
/**
 * What it is used for: categories of blocks, what no block holds, and what PyTorch did not
 * reserve.
 */
parts: { [key in string]: Bytes }, 
/**
 * The lines that hold most when an allocation failed, most first; absent else.
 */
lines?: Array<HoldingLine>, };

export type PeakSummary = { 
/**
 * The file's path.
 */
path: string, 
/**
 * The rank in the path; null if there is none.
 */
rank: number | null, 
/**
 * The device's ordinal.
 */
device: number, 
/**
 * Requested bytes.
 */
bytes: Bytes, 
/**
 * The first event after which it is reached, from 0; -1 is the state before the window.
 */
event: number, 
/**
 * The training step, from 0; null if nothing shows it.
 */
step: number | null, 
/**
 * The phase; null if nothing shows it.
 */
phase: string | null, 
/**
 * Requested bytes by category.
 */
categories: { [key in string]: Bytes }, 
/**
 * The lines that hold most, most first: at most five. Absent for files that an index tells.
 */
lines?: Array<HoldingLine>, 
/**
 * The part of the GPU that the KV cache of an inference engine has; absent for other runs, and
 * where a finding has the first words.
 */
cache?: CacheShare, };

export type CacheShare = { 
/**
 * Requested bytes of the cache.
 */
bytes: Bytes, 
/**
 * The memory of the GPU.
 */
device_memory: Bytes, 
/**
 * The flag of the engine that asked for this, as it was written; null if none is known to.
 */
flag: string | null, };

export type HoldingLine = { 
/**
 * The line: `model.py:212`. A line of the forward pass stands for what its backward makes:
 * `backward of model.py:212`. Without a line, why there is none.
 */
site: string, 
/**
 * The line of the program that calls a package's line; absent if the line is its own.
 */
called_from?: string, 
/**
 * Requested bytes that it holds.
 */
bytes: Bytes, 
/**
 * The share of all requested bytes, in percent.
 */
percent: number, 
/**
 * The category of most of it.
 */
category: Category, 
/**
 * What its memory is, if that alone explains it: `copies of the logits`, `conversion`, `copy`,
 * `torch.cdist`; absent else.
 */
does?: string, 
/**
 * What it held at the same place of the pass before; absent without such a pass, and where it
 * is about the same.
 */
before_bytes?: Bytes, 
/**
 * The bytes before and when that was, in words: `was 1.10 GiB in step 3`, and of how many
 * passes its blocks are; absent if neither is known.
 */
text?: string, };

export type DrySummary = { 
/**
 * The file's path.
 */
path: string, 
/**
 * The device's ordinal.
 */
device: number, 
/**
 * The GPU, as the user named it.
 */
gpu: string, 
/**
 * The memory of the device.
 */
memory_bytes: Bytes, 
/**
 * Steps of the optimizer that were run.
 */
steps: number, 
/**
 * The peak of `active_bytes`.
 */
active_bytes: Bytes, 
/**
 * The peak of `reserved_bytes`.
 */
reserved_bytes: Bytes, 
/**
 * Whether the program fits.
 */
outcome: DryOutcome, 
/**
 * Lines of the program that read values which were not computed.
 */
read: Array<ReadLine>, 
/**
 * All of this in a line.
 */
text: string, 
/**
 * What is estimated, or was not computed: a sentence each.
 */
notes: Array<string>, };

export type DryOutcome = "fits" | "ended" | "runs_out";

export type ReadLine = { 
/**
 * File and line: `train.py:77`.
 */
line: string, 
/**
 * The operator that read.
 */
operator: string, 
/**
 * The type of the values: `bool`, `float32`.
 */
dtype: string, 
/**
 * How often.
 */
count: number, 
/**
 * `size` if a size depends on it, else `branch`.
 */
decides: string, };

export type BlindSpotRecord = { 
/**
 * The stable name of the kind.
 */
kind: string, 
/**
 * What cannot be told, why, and how to record it; with the files, if it is not about all.
 */
text: string, };

export type Summary = { 
/**
 * The record that `vramscope diagnose --format json` prints of the device.
 */
record: Diagnosis, 
/**
 * Its words as `diagnose` prints them, and places of its pictures.
 */
view: SummaryView, };

export type SummaryView = { 
/**
 * What is wrong, or what holds the peak.
 */
headline: string, 
/**
 * The line that the headline names, with its words there; null without one.
 */
place: LeverPlace | null, 
/**
 * The sentences below it.
 */
lines: Array<string>, 
/**
 * What to do in a few words; empty if nothing is known but levers.
 */
remedy: string, 
/**
 * The device's memory; null if nothing was reserved.
 */
bar: MemoryBar | null, 
/**
 * The findings, that of the headline first, if one has it.
 */
findings: Array<FindingRow>, 
/**
 * The number of findings that are not shown: `and 3 more`. Empty if none.
 */
omitted: string, 
/**
 * The recording in a few words each: the window, whether the model of the allocator reproduces
 * it, what was not looked for.
 */
facts: Array<string>, 
/**
 * Whether the answer has what replays say of findings. That follows in a second answer.
 */
isSimulated: boolean, };

export type SummaryPlot = { 
/**
 * The categories, the top of the stack first; empty without history.
 */
areas: Array<PlotArea>, 
/**
 * The bytes at the full height.
 */
top: number, 
/**
 * Steps, from left to right; empty if there are more than fit.
 */
steps: Array<PlotStep>, 
/**
 * The moment; null without history.
 */
mark: PlotMark | null, 
/**
 * What PyTorch could have, in bytes; null where the file does not tell.
 */
limit: number | null, 
/**
 * The lines that hold most, most first.
 */
lines: Array<LargestLine>, 
/**
 * Their heading: `Largest lines at the peak`.
 */
linesTitle: string, 
/**
 * The pass before, to which each line is compared: `step 3`. Empty without one.
 */
before: string, };

export type PlotArea = { 
/**
 * The category's name.
 */
name: string, 
/**
 * Its words.
 */
label: string, 
/**
 * Its color word.
 */
color: number, 
/**
 * The area in the box [`PLOT`], y down.
 */
path: string, 
/**
 * The middle of the label, from 0 to 1 and y down; null where none fits.
 */
labelAt: [number, number] | null, };

export type PlotStep = { 
/**
 * The left edge, from 0 to 1.
 */
from: number, 
/**
 * The right edge.
 */
to: number, 
/**
 * Its name where it fits, else its number, or nothing.
 */
label: string, };

export type PlotMark = { 
/**
 * The place, from 0 to 1.
 */
at: number, 
/**
 * The bytes.
 */
bytes: number, 
/**
 * The words: `peak, #16,465`.
 */
label: string, 
/**
 * The event; -1 is the state before the window.
 */
event: number, };

export type LargestLine = { 
/**
 * `gpt.py:19 forward`, or why there is no line.
 */
site: string, 
/**
 * The file; empty without a line.
 */
file: string, 
/**
 * The line; 0 without one.
 */
line: number, 
/**
 * What the line does and of what its blocks are, for a tooltip.
 */
title: string, 
/**
 * The bytes.
 */
bytes: Quantity, 
/**
 * Their share of the moment: `36 %`.
 */
share: string, 
/**
 * Their part of the largest line's, from 0 to 1.
 */
part: number, 
/**
 * The color word of the category of most of them.
 */
color: number, 
/**
 * What the line held one pass before: `was 360 MiB`, `the same`, `new`. Empty without a pass.
 */
was: string, };

export type Levers = { 
/**
 * What the run needs without a change; null where it is not known.
 */
now: AsRecorded | null, 
/**
 * The limit on the gauges, from 0 to 1; null without one.
 */
limit: number | null, 
/**
 * The levers, best first; all of them by cost, then by need.
 */
rows: Array<LeverItem>, 
/**
 * The lever that is chosen at first: the best, if it makes the run fit, or cures what the
 * headline says. Null for none.
 */
chosen: string | null, 
/**
 * What is no lever, with the reason: `under 1 %`. Only of all levers.
 */
others: Array<OtherChanges>, 
/**
 * The largest batch that fits the chosen device, or why there is no lever; else empty.
 */
note: string, };

export type AsRecorded = { 
/**
 * `as recorded`, or `as recorded, the step run to its end`.
 */
text: string, 
/**
 * What PyTorch must have.
 */
needs: Quantity, 
/**
 * That on the gauge, from 0 to 1.
 */
gauge: number, 
/**
 * Whether it goes through; null without a limit.
 */
outcome: Outcome | null, 
/**
 * The outcome in words: `5.07 GiB short`.
 */
verdict: string, };

export type LeverItem = { 
/**
 * Its name among the levers of a device.
 */
id: string, 
/**
 * Its kind: two levers of one kind are forms of one change.
 */
kind: string, 
/**
 * What to change.
 */
text: string, 
/**
 * The line: `gpt.py:18`. Empty without one, and where `text` has it.
 */
site: string, 
/**
 * The file of the line; empty without one.
 */
file: string, 
/**
 * The number of the line; 0 without one.
 */
line: number, 
/**
 * What PyTorch must have with it.
 */
needs: Quantity, 
/**
 * That on the gauge, from 0 to 1.
 */
gauge: number, 
/**
 * Whether the run goes through; null without a limit.
 */
outcome: Outcome | null, 
/**
 * The outcome in words.
 */
verdict: string, 
/**
 * The price.
 */
cost: Cost, 
/**
 * How much longer a step takes with a change that costs time: `time, est. +18 to 26 %`. Empty
 * without an estimate.
 */
time: string, 
/**
 * What that estimate is, in words; empty without one.
 */
timeBasis: string, 
/**
 * How the number was obtained: `replayed ±5 %`.
 */
basis: string, 
/**
 * What it does, for the first row and for a tooltip; may be empty.
 */
why: string, 
/**
 * The finding that it cures; null if none.
 */
cures: FindingId | null, 
/**
 * The question to the model of the allocator; empty if it cannot be asked.
 */
question: string, 
/**
 * The edit in Python, or the environment variable; empty where none was written.
 */
edit: string, };

export type OtherChanges = { 
/**
 * `on already`, `under 1 %`, `not possible`.
 */
why: string, 
/**
 * The changes, with reasons of their own.
 */
changes: Array<string>, };

export type LeverSetting = { 
/**
 * `max_split_size_mb:512`, or `the defaults`.
 */
setting: string, 
/**
 * What PyTorch must have without and with expandable segments; null where they are not
 * supported.
 */
needs: Array<Quantity | null>, };

export type MemoryBar = { 
/**
 * The event after which it holds; null is the state before the window.
 */
event: number | null, 
/**
 * The moment in words: `at the peak, #3,737`.
 */
moment: string, 
/**
 * The bytes of the whole scale.
 */
whole: number, 
/**
 * The parts from left to right, without gaps.
 */
parts: Array<BarPart>, 
/**
 * The memory that PyTorch had reserved.
 */
reserved: Quantity, 
/**
 * The memory that PyTorch can have; null where the file does not tell.
 */
capacity: BarMark | null, 
/**
 * The request that failed; null without one.
 */
request: BarPart | null, 
/**
 * Round values below the bar.
 */
ticks: Array<BarMark>, };

export type BarPart = { 
/**
 * The category's name, or `rounding`, `idle`, `stuck`, `small`, `graph_pools`, `device_free`,
 * `outside` or `request`.
 */
name: string, 
/**
 * The words: `activations`.
 */
label: string, 
/**
 * The bytes.
 */
bytes: Quantity, 
/**
 * The whole in words, for a tooltip: `activations: 3.21 GiB, 62 % of the reserved memory`.
 */
title: string, 
/**
 * The left edge on the scale, from 0 to 1.
 */
from: number, 
/**
 * The right edge.
 */
to: number, 
/**
 * The category's color word; null if no block holds the part.
 */
color: number | null, 
/**
 * The filter that shows its blocks; null if no block holds it.
 */
filter: string | null, };

export type BarMark = { 
/**
 * The place on the scale, from 0 to 1.
 */
at: number, 
/**
 * The bytes.
 */
bytes: Quantity, 
/**
 * The words: `5.51 GiB for PyTorch`.
 */
label: string, };

export type FindingGroup = { 
/**
 * `on 7 of 8 ranks`; empty for a finding without equals.
 */
text: string, 
/**
 * Whether it is of low severity.
 */
small: boolean, 
/**
 * The findings, the worst first: all, or the first few of those of an index.
 */
members: Array<FindingMember>, };

export type FindingMember = { 
/**
 * The page's number for the row whose card has it; null if it is in [`Overview::outliers`].
 */
row: number | null, 
/**
 * Its index there; after the last of these in [`Overview::indexed`].
 */
index: number, };

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
 * The number of private pools. If it is not zero, the bands include a line for pools.
 */
pools: number, 
/**
 * Marks by slot: the first and the last OOMs, findings, and separate peaks (the highest peak
 * first).
 */
marks: Array<Mark>, };

export type Mark = { 
/**
 * The kind.
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
 * The mark in words.
 */
text: string, 
/**
 * The finding's id; empty for other kinds.
 */
id: string, };

export type MarkKind = "oom" | "finding" | "peak";

export type Tracks = { 
/**
 * The number of lanes in the file.
 */
lanes: number, 
/**
 * Left edge of the query in slots.
 */
x0: number, 
/**
 * Right edge of the query in slots.
 */
x1: number, 
/**
 * The number of columns between the edges.
 */
columns: number, 
/**
 * The items by lane, then by position.
 */
items: Array<TrackItem>, };

export type TrackItem = { 
/**
 * The lane, from the top.
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
 * The range's name, or `12 ranges`.
 */
text: string, 
/**
 * The tooltip: name and duration.
 */
title: string, 
/**
 * The color word, derived from the name. Gray for several ranges with different names.
 */
color: number, 
/**
 * The share of the item that its ranges cover, from 0 to 1. 1 for a single range.
 */
density: number, };

export type Phases = { 
/**
 * The kind of items in words: `steps`, `requests`, `passes` or, without them, `phases`.
 */
label: string, 
/**
 * Left edge of the query in slots.
 */
x0: number, 
/**
 * Right edge of the query in slots.
 */
x1: number, 
/**
 * The number of columns between the edges.
 */
columns: number, 
/**
 * The items by position; empty if nothing shows steps or phases.
 */
items: Array<PhaseItem>, 
/**
 * The steps by position, several of them in one item where they are narrow; empty if nothing
 * shows steps.
 */
steps: Array<StepItem>, };

export type StepItem = { 
/**
 * The last slot of the state before its first event.
 */
x0: number, 
/**
 * The last slot of the state after its last event.
 */
x1: number, 
/**
 * The name where it fits: `step 3`.
 */
name: string, 
/**
 * The number of the first step: `3`.
 */
number: string, 
/**
 * True for every second item, whose ground in the plot differs from that of its neighbors.
 */
shaded: boolean, 
/**
 * The tooltip: steps, events and peak.
 */
title: string, };

export type PhaseItem = { 
/**
 * The last slot of the state before its first event.
 */
x0: number, 
/**
 * The last slot of the state after its last event.
 */
x1: number, 
/**
 * The phase: `forward`, `backward`, `optimizer` or `other`. Empty for several phases, and if
 * only the step is known.
 */
phase: string, 
/**
 * The number of the step that begins in the item, or of the last of several: `3`. Empty if
 * none does.
 */
step: string, 
/**
 * The tooltip: step, phase, events and peak.
 */
title: string, };

export type Legend = { 
/**
 * When the bytes are counted: `at the peak, #7,382`.
 */
at: string, 
/**
 * The colors of blocks in view, those with the most bytes at the peak first. Empty for a ramp.
 */
entries: Array<LegendEntry>, 
/**
 * The ramp of a quantity; null for a list.
 */
ramp: Ramp | null, };

export type LegendEntry = { 
/**
 * What has the color: `activations` or `model.py:212`.
 */
label: string, 
/**
 * The color word.
 */
color: number, 
/**
 * Requested bytes of its live blocks.
 */
bytes: Quantity, 
/**
 * The tooltip.
 */
title: string, 
/**
 * The search term that finds its blocks: `category:activation`. Empty if there is none.
 */
term: string, };

export type Ramp = { 
/**
 * The color words from low to high.
 */
colors: Array<number>, 
/**
 * The lowest value.
 */
low: string, 
/**
 * The highest value.
 */
high: string, };

export type CounterLine = { 
/**
 * Left edge in slots.
 */
x0: number, 
/**
 * Right edge in slots.
 */
x1: number, 
/**
 * Width of the box of `path`.
 */
columns: number, 
/**
 * The maximum of each column, as a line in a box of [`COUNTER_HEIGHT`], y down. The full
 * height is `top`. Empty where the trace has no states.
 */
path: string, 
/**
 * The maximum over the window.
 */
top: Quantity, 
/**
 * The value after the event that was asked for.
 */
at: Quantity | null, 
/**
 * What is counted: `reserved`, or `default pool, stream 0 (default), large`.
 */
name: string, 
/**
 * The line in words: `reserved_bytes, peak 9.15 GiB`.
 */
title: string, };

export type PinnedLine = { 
/**
 * Requested bytes as a filled SVG path, y down, in a box of [`PINNED_HEIGHT`] and a unit of
 * width per column: the most in each column.
 */
path: string, 
/**
 * Bytes at the full height.
 */
top: Quantity, 
/**
 * The peak of requested bytes over the whole recording.
 */
peak: Quantity, 
/**
 * Bytes at the time cursor; null without a cursor, and where the recording has no data.
 */
held: Quantity | null, 
/**
 * What is equal at one position: `clock`, `step` or `event`.
 */
aligned: string, };

export type Moments = { 
/**
 * Left edge in slots.
 */
x0: number, 
/**
 * Right edge in slots.
 */
x1: number, 
/**
 * The number of columns; 0 where the trace has no such axis.
 */
columns: number, 
/**
 * The times of the first and of the last event; null without a clock.
 */
window: [number, number] | null, 
/**
 * In microseconds since the epoch; empty without a clock.
 */
times: Array<number>, 
/**
 * Numbers of training steps; empty without steps.
 */
steps: Array<number>, 
/**
 * States of the trace.
 */
states: Array<number>, };

export type Limit = { 
/**
 * Reserved bytes and free bytes of the device when an allocation failed; null if the file does
 * not show them.
 */
capacity: Quantity | null, 
/**
 * The capacity in words: `5.51 GiB available to PyTorch at #7,396`; empty if it is not known.
 */
text: string, 
/**
 * Whether the capacity is so much higher than the stack that it need not be in view.
 */
far: boolean, 
/**
 * The first and the last allocations that failed, by event.
 */
requests: Array<FailedRequest>, };

export type FailedRequest = { 
/**
 * The event.
 */
event: number, 
/**
 * Its slot.
 */
slot: number, 
/**
 * Requested bytes that were live.
 */
low: number, 
/**
 * The same with the request.
 */
high: number, 
/**
 * The size of the request.
 */
bytes: Quantity, 
/**
 * The request in words: `asked for 393.0 MiB`.
 */
text: string, };

export type StateAt = { 
/**
 * The event after which the state holds; -1 is the state before the window.
 */
event: number, 
/**
 * Its slot on each axis, as a range of one slot.
 */
spans: Array<Span>, 
/**
 * The event in words: `#3,737  +1.204 s`.
 */
label: string, 
/**
 * The event's action in words: `alloc 2.00 MiB`.
 */
action: string, 
/**
 * The block that the event is about; null if there is none.
 */
block: number | null, 
/**
 * Requested, active, allocated and reserved bytes, rounding waste and cached free bytes, and
 * private pools if there are any.
 */
bands: Array<DetailRow>, 
/**
 * The number of live blocks.
 */
blocks: Quantity, 
/**
 * Live bytes by category, most bytes first.
 */
categories: Array<CategoryRow>, 
/**
 * The call stacks with most live bytes.
 */
stacks: Array<StackShareRow>, 
/**
 * The state in one sentence, for screen readers.
 */
spoken: string, };

export type Marker = { 
/**
 * The event's index; -1 is the state before the window.
 */
event: number, 
/**
 * Its slot on each axis, as a range of one slot.
 */
spans: Array<Span>, 
/**
 * The event in words: `#3,737  +1.204 s`.
 */
label: string, };

export type StackShareRow = { 
/**
 * The call site.
 */
site: string, 
/**
 * The frame that distinguishes it from other rows of the site: `adam.py:183 _init_group`;
 * empty if there is none.
 */
via: string, 
/**
 * Bytes.
 */
bytes: Quantity, 
/**
 * The number of blocks.
 */
blocks: Quantity, 
/**
 * The shape that all of them have; empty if it is not known.
 */
shape: string, 
/**
 * Share of the whole, from 0 to 1.
 */
share: number, 
/**
 * The color word.
 */
color: number, 
/**
 * Index of a block with this call stack.
 */
block: number, 
/**
 * A note, such as `all freed again`.
 */
note: string, 
/**
 * The terms of a search that finds the blocks of this row.
 */
terms: Array<string>, };

export type DetailCard = { 
/**
 * The kind in words: `Segment`.
 */
kind: string, 
/**
 * The title: `2.00 GiB`.
 */
title: Quantity, 
/**
 * The properties in display order.
 */
rows: Array<DetailRow>, 
/**
 * The heading above `stacks`; empty without stacks.
 */
heading: string, 
/**
 * The memory by call stack.
 */
stacks: Array<StackShareRow>, 
/**
 * The item's own call stack; null if it has none.
 */
stack: StackDetail | null, 
/**
 * All of it as text, for the clipboard.
 */
copy: string, };

export type EventPage = { 
/**
 * The number of matching rows.
 */
total: number, 
/**
 * The number of rows in words: `2,431 of 6,866 events`.
 */
text: string, 
/**
 * Index of the first row among all matching rows.
 */
from: number, 
/**
 * The rows. Only the page reads them.
 */
rows: Array<EventRow>, 
/**
 * Index of the row requested with `near`; null if there is none.
 */
at: number | null, 
/**
 * All actions of the trace with their numbers of events.
 */
actions: Array<DetailRow>, };

export type EventRow = { 
/**
 * The record. Its stack is an index into the snapshot's.
 */
record: EventRecord, 
/**
 * The rest of its row.
 */
view: EventView, };

export type EventView = { 
/**
 * The time from the window's start: `+1.204 s`; empty without a clock.
 */
time: string, 
/**
 * The address, and which block at it the event is about: `0x76002a000000 (4th)`; empty if
 * there is none.
 */
place: string, 
/**
 * Requested bytes that are live after the event.
 */
live: Bytes, 
/**
 * The call site, or the reason why there is none.
 */
label: string, 
/**
 * The color word of the call stack.
 */
color: number, 
/**
 * The block that the event is about; null if there is none.
 */
block: number | null, };

export type EventRecord = { 
/**
 * The event's index in the device's trace, from 0.
 */
index: EventIndex, 
/**
 * The recorded time in microseconds since the Unix epoch; null if it was not recorded.
 */
time_us: number | null, 
/**
 * The action: `alloc`, `free_completed`, `segment_map` and others.
 */
action: string, 
/**
 * The address: `0x...`; null for an event without one, such as an out-of-memory event.
 */
address: Addr | null, 
/**
 * The recorded size in bytes: requested bytes for blocks, the reserved range for segments.
 */
size: Bytes, 
/**
 * The stream's handle; 0 is the default stream.
 */
stream: number, 
/**
 * The memory pool: `[0, 0]` is the default pool; null if the event does not record it.
 */
pool: [number, number] | null, 
/**
 * The call site: the stack's innermost frame in the user's own code.
 */
site: string, 
/**
 * The index of the call stack in the report's `stacks`.
 */
stack: number, 
/**
 * The text of `_annotate_tensor` of an `annotate` event, or the one that
 * `_set_memory_metadata` had set at the event; absent without one.
 */
user_metadata?: string, };

export type BlockPage = { 
/**
 * The number of matching rows.
 */
total: number, 
/**
 * The number of rows and their bytes in words: `12 of 2,443 blocks, 1.20 GiB`.
 */
text: string, 
/**
 * True if tensors or their shapes are known.
 */
hasTensors: boolean, 
/**
 * Index of the first row among all matching rows.
 */
from: number, 
/**
 * The rows. Only the page reads them.
 */
rows: Array<BlockRow>, 
/**
 * Index of the row requested with `near`; null if there is none.
 */
at: number | null, };

export type BlockRow = { 
/**
 * The record. Its stack is an index into the snapshot's.
 */
record: BlockRecord, 
/**
 * The rest of its row.
 */
view: BlockView, };

export type BlockView = { 
/**
 * Index into the block table.
 */
block: number, 
/**
 * The block's stable reference.
 */
reference: string, 
/**
 * The tensor that it holds: `0.weight, float32 [1024, 1024]`, or its shape; empty if neither
 * is known.
 */
tensor: string, 
/**
 * The alloc in words: `#3,702`, `before window`, or `not recorded`.
 */
allocated: string, 
/**
 * The free in words: `#3,709`, `live at end`, `pending`, or `before #3,709` if the free is
 * lost.
 */
freed: string, 
/**
 * The lifetime in events, and in time with a clock: `412 events, 38.2 ms`.
 */
life: string, 
/**
 * The address, and which block at it this is: `0x76002a000000 (4th)`.
 */
place: string, 
/**
 * The stream's handle. The text of a long handle is only its end.
 */
handle: Quantity, 
/**
 * The color word.
 */
color: number, };

export type BlockRecord = { 
/**
 * The address: `0x...`.
 */
address: Addr, 
/**
 * The number of earlier blocks of the window at this address.
 */
reuse: number, 
/**
 * Requested bytes.
 */
bytes: Bytes, 
/**
 * The block size: bytes that the allocator carved out of a segment.
 */
block_bytes: Bytes, 
/**
 * The category.
 */
category: Category, 
/**
 * Two categories that are equally likely, where `category` is `unknown` for that reason.
 */
candidates?: [Category, Category], 
/**
 * The event that allocated the block; null if it was before the window or is lost.
 */
alloc_event: EventIndex | null, 
/**
 * The event that requested the free; null if there is none.
 */
free_requested_event: EventIndex | null, 
/**
 * The event that completed the free; null if there is none.
 */
free_completed_event: EventIndex | null, 
/**
 * Lifetime within the window, in `lifetime_unit`.
 */
lifetime: Lifetime, 
/**
 * True if the block was live before the window.
 */
preexisting: boolean, 
/**
 * True if the block is live at the end of the window.
 */
live_at_end: boolean, 
/**
 * The stream's handle; 0 is the default stream.
 */
stream: number, 
/**
 * The memory pool: `[0, 0]` is the default pool; null if the file does not record pools.
 */
pool: [number, number] | null, 
/**
 * `small` (requests up to 1 MiB) or `large`: the kind of segment that the block lies in.
 */
segment_type: string, 
/**
 * True if `stack` is the stack of the free, not of the alloc.
 */
of_free: boolean, 
/**
 * The call site: the stack's innermost frame in the user's own code.
 */
site: string, 
/**
 * The index of its place in the report's `backward`; absent unless backward allocated the
 * block in a thread without Python.
 */
backward?: number, 
/**
 * The text of `_set_memory_metadata` at the alloc; absent if there is none.
 */
user_metadata?: string, 
/**
 * The texts of `_annotate_tensor`, in order; absent if there are none.
 */
annotations?: Array<string>, 
/**
 * The tensor in the block at the end of a step; absent unless the file beside the snapshot
 * names one.
 */
tensor?: TensorRecord, 
/**
 * What holds the block at the end: the shortest chain of references. Absent unless the file
 * beside the snapshot tells it.
 */
holders?: Array<Holder>, 
/**
 * The index of the shape in the report's `shapes`; absent if nothing tells the shape.
 */
shape?: number, 
/**
 * The index of the call stack in the report's `stacks`.
 */
stack: number, };

export type TensorRecord = { 
/**
 * `parameter`, `buffer`, `gradient` or `optimizer_state`.
 */
kind: string, 
/**
 * The name in the model: `layers.0.weight`.
 */
name: string, 
/**
 * The shape.
 */
shape: number[], 
/**
 * The type of its elements: `float32`.
 */
dtype: string, };

export type SearchResult = { 
/**
 * The number of blocks.
 */
blocks: Quantity, 
/**
 * Bytes of the matching blocks that are live at the peak.
 */
bytes: Quantity, 
/**
 * The result in words: `112 blocks, 1.20 GiB at the peak`.
 */
text: string, 
/**
 * The terms of the search as they are written, without quotes.
 */
terms: Array<string>, 
/**
 * The call sites of the blocks, those with most bytes at the peak first.
 */
sites: Array<StackShareRow>, 
/**
 * The call sites that are left out: `and 7 more call sites`; empty if none are.
 */
more: string, };

export type GroupCard = { 
/**
 * Bytes at the peak; the most bytes at once if none of the blocks is live at the peak.
 */
title: Quantity, 
/**
 * What the title is: `at the peak, 36 % of it`, or `most at once, #12`.
 */
note: string, 
/**
 * The number of blocks.
 */
blocks: Quantity, 
/**
 * The properties in display order. None repeats the bytes of the title.
 */
rows: Array<DetailRow>, 
/**
 * The word above `steps`: `steps`, `requests` or `passes`.
 */
stepsLabel: string, 
/**
 * The most bytes at once in each step; empty without steps.
 */
steps: Array<StepBar>, 
/**
 * Bytes at the time of the title by category, most bytes first: all categories of the blocks.
 */
categories: Array<CategoryRow>, 
/**
 * Bytes at the time of the title by call site, most bytes first.
 */
sites: Array<StackShareRow>, 
/**
 * The call sites that are left out: `and 7 more call sites`; empty if none are.
 */
more: string, 
/**
 * All of it as text, for the clipboard.
 */
copy: string, };

export type StepBar = { 
/**
 * The steps: `3` or `3-5`.
 */
label: string, 
/**
 * The most bytes at once.
 */
bytes: Quantity, 
/**
 * The bytes as a fraction of the largest bar, from 0 to 1.
 */
share: number, 
/**
 * The term of a search for the blocks that are allocated in the steps: `step:3`.
 */
term: string, };

export type NextBlock = { 
/**
 * The block.
 */
detail: BlockDetail, 
/**
 * Its place among all blocks of a search: `3 of 120`; empty for a call stack.
 */
place: string, };

export type SegmentsInfo = { 
/**
 * The height of all rows in units; 0 without rows.
 */
units: number, 
/**
 * The rows in words: the number of segments and rows, and the peak of reserved bytes.
 */
text: string, 
/**
 * The lower and upper edge of the higher row in units; null if there is none.
 */
grown: [number, number] | null, 
/**
 * The headers of the pools, from the top; empty unless the rows are ordered by pool.
 */
groups: Array<SegmentGroup>, };

export type SegmentRow = { 
/**
 * Index of the row's first segment among the device's segments. It does not depend on the
 * order of rows.
 */
segment: number, 
/**
 * The lower edge in units.
 */
y0: number, 
/**
 * The upper edge in units.
 */
y1: number, 
/**
 * The type: `large`, `small` or `expandable`.
 */
label: string, 
/**
 * The size of each segment.
 */
size: Quantity, 
/**
 * The address: `0x...`.
 */
address: string, 
/**
 * The tooltip: number, address, pool, stream and lifetime.
 */
title: string, };

export type SegmentGroup = { 
/**
 * The lower edge of the header in units.
 */
y0: number, 
/**
 * The upper edge of the header in units.
 */
y1: number, 
/**
 * The pool, the stream and the number of segments: `default pool, default stream, 45
 * segments`.
 */
text: string, 
/**
 * The handles of pool and stream, for a tooltip.
 */
title: string, };

export type SegmentUse = { 
/**
 * [`SegmentRow::segment`] of the row; for a pool, of its first row.
 */
segment: number, 
/**
 * Bytes of blocks that are not yet free.
 */
used: Quantity, 
/**
 * The other bytes.
 */
free: Quantity, 
/**
 * The largest free piece.
 */
hole: Quantity, };

export type SegmentUses = { 
/**
 * The event: `#3,737`.
 */
when: string, 
/**
 * The rows whose segment is reserved then.
 */
rows: Array<SegmentUse>, 
/**
 * The pools, in the order of [`SegmentsInfo::groups`].
 */
groups: Array<SegmentUse>, };

export type MapInfo = { 
/**
 * The height of all lines in units; 0 without segments.
 */
units: number, 
/**
 * Bytes in a line.
 */
lineBytes: number, 
/**
 * The event and the sums: `After #7,396: 138 segments, 5.45 GiB reserved, 5.09 GiB active.`
 */
text: string, 
/**
 * The scale: `a line is 128 MiB`.
 */
scale: string, 
/**
 * Segments by pool, stream and size class, from the top.
 */
groups: Array<MapGroup>, 
/**
 * Segments that few blocks keep from being returned to the driver, sorted by
 * [`MapPin::kept`], the largest first; at most 100.
 */
pins: Array<MapPin>, 
/**
 * The number of pins and the bytes that they keep: `3 segments, 410 MiB`. Empty without pins.
 */
pinned: string, };

export type FoldedSteps = { 
/**
 * What follows, in sentences.
 */
text: Array<string>, 
/**
 * The steps in order, at most the last 200.
 */
steps: Array<FoldedStep>, 
/**
 * The number of earlier steps; empty without any: `12 earlier steps`.
 */
earlier: string, 
/**
 * The area between the least and the most bytes of the listed steps, as an SVG path with the
 * fill rule `evenodd`.
 */
ribbon: string, 
/**
 * What stays after each listed step, as a staircase: an SVG path.
 */
floors: string, 
/**
 * The texts of ticks of the y axis, from the bottom.
 */
ticks: Array<string>, 
/**
 * Their heights, in units of the picture from the top.
 */
heights: Array<number>, 
/**
 * True if the y axis does not begin at 0.
 */
isCut: boolean, };

export type FoldedStep = { 
/**
 * The step, from 0.
 */
step: number, 
/**
 * The filter of its blocks: `step:3`.
 */
term: string, 
/**
 * The curve of requested bytes, as an SVG path; empty for all but the last 24 steps.
 */
path: string, 
/**
 * The most requested bytes.
 */
peak: Quantity, 
/**
 * Requested bytes after it.
 */
floor: Quantity, 
/**
 * What they grew by since the step before; null for the first step.
 */
change: Quantity | null, };

export type PeakLens = { 
/**
 * The separate peaks of requested bytes, the highest first.
 */
peaks: Array<LensPeak>, 
/**
 * Index of the peak that is shown.
 */
shown: number, 
/**
 * Allocations and frees around it, in order.
 */
events: Array<LensEvent>, 
/**
 * The number of earlier events: `16,366 earlier events`.
 */
earlier: string, 
/**
 * The number of later events.
 */
later: string, 
/**
 * The most and the least bytes of these events: the upper and lower edge of their picture.
 */
edges: Array<Quantity>, 
/**
 * All live blocks.
 */
total: Quantity, 
/**
 * Live blocks by category and call site, as cells of a treemap. A category is followed by its
 * call sites, the largest first.
 */
cells: Array<TreemapCell>, };

export type LensPeak = { 
/**
 * The event; -1 is the state before the window.
 */
event: number, 
/**
 * The event in words: `#16,402`.
 */
label: string, 
/**
 * Requested bytes.
 */
bytes: Quantity, 
/**
 * The phase and the step: `backward, step 2`. Empty if nothing shows them.
 */
place: string, 
/**
 * How much lower the next peak is; null for the last.
 */
lower: Quantity | null, 
/**
 * The peak and what its end would bring, one sentence each.
 */
text: Array<string>, };

export type LensEvent = { 
/**
 * The event.
 */
event: number, 
/**
 * The event in words: `#16,402`.
 */
label: string, 
/**
 * What requested bytes change by.
 */
bytes: Quantity, 
/**
 * Requested bytes after it.
 */
total: Quantity, 
/**
 * The category in words.
 */
category: string, 
/**
 * The color word of the category.
 */
color: number, 
/**
 * The call site.
 */
site: string, 
/**
 * The block.
 */
block: number, 
/**
 * The lower and upper edge of its bar, as shares of the picture's height.
 */
y: [number, number], 
/**
 * True if the total is the peak.
 */
isPeak: boolean, };

export type TreemapCell = { 
/**
 * 0 for a category, 1 for a call site.
 */
depth: number, 
/**
 * The category or call site.
 */
label: string, 
/**
 * Requested bytes.
 */
bytes: Quantity, 
/**
 * The number of blocks.
 */
blocks: Quantity, 
/**
 * The share of all live blocks: `12.4 %`.
 */
percent: string, 
/**
 * The color word.
 */
color: number, 
/**
 * The terms of a search for its blocks; empty for small call sites that share a cell.
 */
terms: Array<string>, 
/**
 * The left and right edge.
 */
x: [number, number], 
/**
 * The upper and lower edge.
 */
y: [number, number], 
/**
 * The edges of its blocks, as an SVG path relative to its corner. Empty if they are too small.
 */
edges: string, };

export type StateChanges = { 
/**
 * A and B in words: `#3,737  +1.204 s`.
 */
moments: Array<string>, 
/**
 * All blocks.
 */
all: ChangeRow, 
/**
 * The numbers of blocks that came, went and stayed.
 */
blocks: Array<Quantity>, 
/**
 * Reserved memory that was mapped and released.
 */
reserved: Array<DetailRow>, 
/**
 * The color words of what came, went and stayed, and of memory that was mapped and released.
 */
colors: Array<number>, 
/**
 * By category, the largest net change first.
 */
categories: Array<ChangeRow>, 
/**
 * By call site, the largest net change first; at most 200.
 */
sites: Array<ChangeRow>, 
/**
 * The number of further call sites: `and 12 more call sites`. Empty if there are none.
 */
more: string, };

export type ChangeRow = { 
/**
 * The category, or the call site.
 */
label: string, 
/**
 * What else is known: the category of a call site.
 */
note: string, 
/**
 * The color word.
 */
color: number, 
/**
 * The terms of a search for the blocks of the row.
 */
terms: Array<string>, 
/**
 * The numbers of blocks: `3 blocks came, 1 went, 12 stayed`.
 */
title: string, 
/**
 * Bytes of blocks that are live at B only.
 */
came: Quantity, 
/**
 * Bytes of blocks that are live at A only.
 */
went: Quantity, 
/**
 * Bytes of blocks that are live at both.
 */
stayed: Quantity, 
/**
 * What came less what went.
 */
net: Quantity, 
/**
 * `net` as a share of the largest in its table, from -1 to 1.
 */
bar: number, };

export type MapGroup = { 
/**
 * The lower and upper edge of the heading in units.
 */
y: [number, number], 
/**
 * The pool, the stream and the size class: `default pool, default stream, large segments`.
 */
name: string, 
/**
 * The handles of pool and stream, for a tooltip.
 */
title: string, 
/**
 * The number of segments: `45 segments`.
 */
segments: Quantity, 
/**
 * Reserved bytes.
 */
reserved: Quantity, 
/**
 * Bytes of blocks that are not yet free.
 */
active: Quantity, 
/**
 * The other bytes.
 */
free: Quantity, 
/**
 * The largest free piece.
 */
hole: Quantity, };

export type MapPin = { 
/**
 * The largest block in it.
 */
block: number, 
/**
 * The left and right edge of that block's first part in bytes of its line.
 */
x: [number, number], 
/**
 * The lower and upper edge in units.
 */
y: [number, number], 
/**
 * The unused bytes of the segment.
 */
kept: Quantity, 
/**
 * `1 block of 1.50 MiB keeps 196.5 MiB from being returned`.
 */
text: string, 
/**
 * The call site of the largest block.
 */
site: string, };

export type FlameInfo = { 
/**
 * The weight of all stacks.
 */
total: Quantity, 
/**
 * The width of the x axis in the graph's units: the weight of the shown nodes, halved until it
 * is below 2^40.
 */
extent: number, 
/**
 * The number of rows.
 */
rows: number, 
/**
 * The weight in words: `requested bytes live at the peak, #3,737`.
 */
text: string, 
/**
 * The weight of stacks that match the search. Each stack counts once. Null without a search.
 */
matched: Quantity | null, 
/**
 * The breadcrumb from the whole graph to the root node.
 */
path: Array<FlameStep>, };

export type FlameStep = { 
/**
 * The node's path, as [`FlameSpec::root`](super::FlameSpec::root) takes it.
 */
path: string, 
/**
 * The call site: `model.py:212 forward`.
 */
text: string, 
/**
 * The terms of a search for the blocks of the node; empty for the whole graph.
 */
terms: Array<string>, };

export type FlameBox = { 
/**
 * The node's index.
 */
node: number, 
/**
 * Left edge in the graph's units.
 */
x0: number, 
/**
 * Right edge in the same unit.
 */
x1: number, 
/**
 * The lower edge in units.
 */
y0: number, 
/**
 * The upper edge in units.
 */
y1: number, 
/**
 * The function: `forward`.
 */
text: string, 
/**
 * The place: `model.py:212`. Empty if `text` contains it or if it is unknown.
 */
place: string, 
/**
 * The weight with its share of the whole graph: `18.2 GiB, 43 %`.
 */
weight: string, 
/**
 * The color word.
 */
color: number, };

export type FlameNode = { 
/**
 * The node's index.
 */
node: number, 
/**
 * The node's path, as [`FlameSpec::root`](super::FlameSpec::root) takes it: the index among
 * siblings at each level from the root, such as `0.2.1`.
 */
path: string, 
/**
 * The path of the parent node; null for the root.
 */
parent: string | null, 
/**
 * The call site: `model.py:212 forward`.
 */
title: string, 
/**
 * The weight with all descendants.
 */
total: Quantity, 
/**
 * The weight in words: share of all, number of blocks, and the node's own weight.
 */
text: string, 
/**
 * The frame's file.
 */
file: string, 
/**
 * The terms of a search for the blocks of the node; empty for the whole graph.
 */
terms: Array<string>, 
/**
 * Left edge in the graph's units.
 */
x0: number, 
/**
 * Right edge in the same unit.
 */
x1: number, 
/**
 * The color word.
 */
color: number, 
/**
 * The first child; null if there is none.
 */
child: number | null, 
/**
 * The previous sibling; null if there is none.
 */
before: number | null, 
/**
 * The next sibling; null if there is none.
 */
behind: number | null, 
/**
 * The parent node; null for the root.
 */
above: number | null, };

export type CodeSpec = { 
/**
 * A search as in [`Query::Search`](super::Query::Search); empty for all blocks.
 */
text: string, 
/**
 * The event of the time cursor, -1 before the window; null without a cursor.
 */
event: number | null, 
/**
 * True to leave out frames of PyTorch, Python and C++.
 */
hideFramework: boolean, 
/**
 * The column to sort by.
 */
sort: CodeSort, 
/**
 * True for the largest first.
 */
descending: boolean, 
/**
 * The keys of rows whose children are listed.
 */
open: Array<string>, };

export type CodeSort = "total" | "own" | "cursor" | "growth" | "blocks" | "largest" | "name";

export type CodePage = { 
/**
 * The number of listed rows.
 */
total: number, 
/**
 * Index of the first row.
 */
from: number, 
/**
 * The rows.
 */
rows: Array<CodeRow>, };

export type SourceSpec = { 
/**
 * A search as in [`Query::Search`](super::Query::Search); empty for all blocks.
 */
text: string, 
/**
 * The event of the time cursor, -1 before the window; null without a cursor.
 */
event: number | null, 
/**
 * True to leave out lines of PyTorch, Python and C++.
 */
hideFramework: boolean, 
/**
 * The path of the file whose lines are listed; empty for the one that allocates most itself.
 */
file: string, 
/**
 * True for what each line allocates itself, false for all that goes through it.
 */
own: boolean, };

export type SourceRow = { 
/**
 * 0 for a file, 1 for a function, 2 for a line.
 */
depth: number, 
/**
 * The file's path, the function, or the functions of the line.
 */
label: string, 
/**
 * The functions of the line, or the function; empty for a file.
 */
functions: Array<string>, 
/**
 * The line, or the first line of the function; 0 for a file.
 */
line: number, 
/**
 * The recorded text of the line; empty if it is unknown.
 */
source: string, 
/**
 * Bytes at the peak.
 */
peak: Quantity, 
/**
 * Bytes at the time cursor; null without a cursor.
 */
cursor: Quantity | null, 
/**
 * What the bytes at the ends of steps grow by, per step; null without two steps.
 */
growth: Quantity | null, 
/**
 * Blocks in the window.
 */
blocks: Quantity, 
/**
 * The bytes at the peak, at the cursor and per step in parts of the largest of all lines, or
 * of all functions or files.
 */
shares: Array<number>, 
/**
 * The terms of a search for the blocks; empty without any.
 */
terms: Array<string>, };

export type SourcePage = { 
/**
 * The path of the file whose functions and lines are listed; empty without any.
 */
file: string, 
/**
 * Files and functions with most bytes first, and lines in the order of the file.
 */
rows: Array<SourceRow>, 
/**
 * The text of the file, if it was recorded as a whole.
 */
text: string | null, 
/**
 * What no line has, in sentences.
 */
notes: Array<string>, };

export type CodeRow = { 
/**
 * The number of the row among all places.
 */
place: number, 
/**
 * A stable key.
 */
key: string, 
/**
 * 0 for a module, 1 for a file, 2 for a line.
 */
depth: number, 
/**
 * The module, the file's name, or the line with its function.
 */
label: string, 
/**
 * The path of the module or file, or the line's function with its place.
 */
title: string, 
/**
 * Whether the children are listed; null for a line, which has none.
 */
open: boolean | null, 
/**
 * Bytes at the peak of blocks whose call stack goes through the place.
 */
total: Quantity, 
/**
 * The same as a percentage of the peak: `43.2 %`.
 */
percent: string, 
/**
 * Bytes at the peak of blocks that the place allocates itself.
 */
own: Quantity, 
/**
 * Bytes at the time cursor; null without a cursor.
 */
cursor: Quantity | null, 
/**
 * What the bytes at the ends of steps grow by, per step; null without two steps.
 */
growth: Quantity | null, 
/**
 * The number of blocks in the window.
 */
blocks: Quantity, 
/**
 * The largest block.
 */
largest: Quantity, 
/**
 * The category with most bytes at the peak; empty if there are none.
 */
category: string, 
/**
 * The color word of the category.
 */
color: number, 
/**
 * The terms of a search for the blocks.
 */
terms: Array<string>, 
/**
 * The frame for `Sandwich`; null for modules and files.
 */
frame: number | null, };

export type Holder = { 
/**
 * The kind.
 */
kind: HolderKind, 
/**
 * Where the chain begins: `local "losses" (list of 12) of train(), train.py:42`.
 */
text: string, 
/**
 * The way from there: `losses[0] -> Tensor -> its autograd graph saves it as "other"`. Empty
 * if that variable itself holds the memory.
 */
path?: string, 
/**
 * What dropping references frees: `dropping "losses" frees 3.18 GiB`. Empty if that is not
 * known.
 */
drop?: string, 
/**
 * What else is known: a slice keeps the whole block, graphs were not read. Often empty.
 */
note?: string, 
/**
 * Requested bytes of the blocks that it holds.
 */
bytes: Bytes, 
/**
 * These blocks.
 */
blocks: Blocks, 
/**
 * What the drop frees; null if that is not known.
 */
frees_bytes: Bytes | null, 
/**
 * True if the drop may free less: not all references were read.
 */
is_upper_bound: boolean, };

export type HolderKind = "reference" | "cycle" | "below_python" | "unread";

export type HolderTable = { 
/**
 * What limits the answer, in sentences.
 */
text: Array<string>, 
/**
 * The first column of bytes: `at peak` or `at cursor`.
 */
moment: string, 
/**
 * Blocks by what holds them: each root with most bytes first, followed by parts of it.
 */
rows: Array<HolderLine>, 
/**
 * What a drop does to bytes: `frees`, or `frees at most`.
 */
frees: string, 
/**
 * What dropping references frees at the end: a row is followed by the rows within it. Empty
 * where `rows` say it.
 */
drops: Array<DropLine>, };

export type HolderLine = { 
/**
 * Identifies the row.
 */
row: number, 
/**
 * The variable, a part of it, or why none is named.
 */
label: string, 
/**
 * The number of rows around it.
 */
depth: number, 
/**
 * Bytes at the moment.
 */
total: Quantity, 
/**
 * The same as a percentage of all bytes: `43.2 %`.
 */
percent: string, 
/**
 * Bytes at the end.
 */
end: Quantity, 
/**
 * What dropping it alone frees; null if that is not known.
 */
frees: Quantity | null, 
/**
 * The number of blocks at the moment.
 */
blocks: Quantity, 
/**
 * The categories in words: `activations 8.20 GiB, parameters 1.22 GiB`.
 */
categories: string, 
/**
 * Their shares, from 0 to 1, most bytes first.
 */
shares: Array<number>, 
/**
 * The color words of the shares.
 */
colors: Array<number>, 
/**
 * The terms of a search for the blocks; empty if none finds them.
 */
terms: Array<string>, };

export type DropLine = { 
/**
 * The references.
 */
label: string, 
/**
 * The number of rows that it is within.
 */
depth: number, 
/**
 * Freed bytes.
 */
bytes: Quantity, 
/**
 * Freed blocks.
 */
blocks: Quantity, };

export type ModuleSpec = { 
/**
 * The event of the time cursor, -1 before the window; null without a cursor.
 */
event: number | null, 
/**
 * The modules whose children are listed; null for the usual ones.
 */
open: Array<number> | null, };

export type ModulePage = { 
/**
 * The number of listed rows.
 */
total: number, 
/**
 * Index of the first row.
 */
from: number, 
/**
 * The rows.
 */
rows: Array<ModuleRow>, 
/**
 * The modules whose children are listed.
 */
open: Array<number>, 
/**
 * How modules are known, one sentence each.
 */
text: Array<string>, 
/**
 * The names of the phases that the window has, in the order of [`ModuleRow::phases`].
 */
phases: Array<string>, 
/**
 * The dimensions of the model and its data: `N = 4,096 tokens`. Empty if nothing tells them.
 */
dims: Array<string>, 
/**
 * Why sizes do not tell shapes; empty if they do.
 */
refused: string, 
/**
 * The shapes with most bytes at the peak.
 */
shapes: Array<ShapeSum>, };

export type ModuleRow = { 
/**
 * Identifies the module.
 */
node: number, 
/**
 * The number of modules around it.
 */
depth: number, 
/**
 * The name.
 */
label: string, 
/**
 * The number of layers, and where the module is called or built: `×24 gpt.py:42`. Empty if
 * neither is known.
 */
note: string, 
/**
 * All that is known of the module, for the tooltip.
 */
title: string, 
/**
 * Whether the children are listed; null without children.
 */
open: boolean | null, 
/**
 * Bytes at the peak.
 */
total: Quantity, 
/**
 * The same as a percentage of the peak: `43.2 %`.
 */
percent: string, 
/**
 * Bytes at the time cursor; null without a cursor.
 */
cursor: Quantity | null, 
/**
 * Shares of categories at the peak, from 0 to 1, most bytes first.
 */
shares: Array<number>, 
/**
 * The color words of the shares.
 */
colors: Array<number>, 
/**
 * The shares in words: `activations 8.20 GiB, parameters 1.22 GiB`.
 */
categories: string, 
/**
 * Bytes at the highest peak of each phase.
 */
phases: Array<Quantity>, 
/**
 * Blocks at the peak.
 */
blocks: Quantity, 
/**
 * The terms of a search for the blocks.
 */
terms: Array<string>, };

export type ShapeSum = { 
/**
 * The shape: `[4,096, 8,960] of 4 bytes`.
 */
shape: string, 
/**
 * The shape by the names of dimensions: `[N, f]`; empty without names.
 */
symbols: string, 
/**
 * Bytes.
 */
bytes: Quantity, 
/**
 * The number of blocks.
 */
blocks: Quantity, 
/**
 * Share of the peak, from 0 to 1.
 */
share: number, };

export type Sandwich = { 
/**
 * The line with its function: `gpt.py:43 forward`.
 */
title: string, 
/**
 * Bytes at the peak of blocks whose call stack goes through the line.
 */
total: Quantity, 
/**
 * Bytes at the peak of blocks that the line allocates itself.
 */
own: Quantity, 
/**
 * The frames that call the line, most bytes first.
 */
callers: Array<StackShareRow>, 
/**
 * The frames that the line calls, most bytes first.
 */
callees: Array<StackShareRow>, };

export type SettingsCard = { 
/**
 * The properties of the recording.
 */
provenance: Array<DetailRow>, 
/**
 * The allocator settings.
 */
settings: Array<SettingRow>, 
/**
 * A note if the file has no settings; else null.
 */
note: string | null, };

export type SettingRow = { 
/**
 * The key: `expandable_segments`.
 */
key: string, 
/**
 * The value: `true`.
 */
value: string, 
/**
 * The effect of the setting, and its meaning for this run.
 */
text: string, };

export type WrongItem = { 
/**
 * The item's name; `apply` for a change of the program.
 */
item: string, 
/**
 * The error in a sentence, with what was expected.
 */
text: string, };

export type GraphsCard = { 
/**
 * What follows, in sentences.
 */
text: Array<string>, 
/**
 * The captures, in order: the first.
 */
captures: Array<CaptureRow>, 
/**
 * `12 more captures`; empty if none is left out.
 */
more: string, 
/**
 * What is reserved at the peak, by use: weights, KV cache, graphs.
 */
uses: Array<ReservedPart>, };

export type CaptureRow = { 
/**
 * The event of its first allocation.
 */
event: EventIndex, 
/**
 * Its pool: `(0, 1)`.
 */
pool: string, 
/**
 * The innermost frame of the program that its allocations share; empty without stacks.
 */
site: string, 
/**
 * Bytes that the pool reserved for it.
 */
added: Bytes, 
/**
 * Bytes in memory that the pool had before.
 */
reused: Bytes, 
/**
 * Bytes that are live after it.
 */
kept: Bytes, };

export type ReservedPart = { 
/**
 * Its name: `fragmented`.
 */
name: string, 
/**
 * Bytes.
 */
bytes: Bytes, 
/**
 * Its share of the peak, from 0 to 1.
 */
share: number, 
/**
 * What it is.
 */
text: string, };

export type ReservedUse = { 
/**
 * The recorded peak of `reserved_bytes`.
 */
peak: Bytes, 
/**
 * It in a sentence: `Reserved 3.87 GiB at most, for 2.60 GiB in use: 790.0 MiB is cached.`
 */
text: string, 
/**
 * The parts in the order of the bar, without empty ones.
 */
parts: Array<ReservedPart>, 
/**
 * The captures of CUDA graphs and what an inference engine holds; null without them.
 */
graphs: GraphsCard | null, };

export type StepPhase = "forward" | "backward" | "optimizer" | "generation" | "evaluation" | "other";

export type EditRecord = { 
/**
 * The change: `checkpoint:all`.
 */
recipe: string, 
/**
 * The line of the program: `train.py:12`; null if no call stack shows it.
 */
place: string | null, 
/**
 * The statement at that line, in words.
 */
what: string, 
/**
 * The change in Python. Names such as `model`, `block`, `hidden` and `lr` are the program's.
 */
snippet: string, };

export type Change = Quantity;

export type Count = Quantity;

export type CountChange = Quantity;

export type ScenarioCard = { 
/**
 * The item of the question that is wrong; null if none is.
 */
error: WrongItem | null, 
/**
 * What differs from the recording, in words; empty without a prediction.
 */
change: string, 
/**
 * What PyTorch must have; null without a prediction.
 */
needs: Quantity | null, 
/**
 * Whether the run goes through; null without a limit.
 */
outcome: Outcome | null, 
/**
 * The outcome in words: `fits, 2.19 GiB to spare`, or why there is no prediction.
 */
verdict: string, 
/**
 * How the number was obtained: `replayed ±6 %`.
 */
basis: string, 
/**
 * The most bytes of the curve, for the height of the plot; 0 for a changed program, which has
 * none.
 */
top: number, };

export type SimulatedCurve = { 
/**
 * Left edge in slots.
 */
x0: number, 
/**
 * Right edge in slots.
 */
x1: number, 
/**
 * Width of the box of `path`.
 */
columns: number, 
/**
 * The bytes at the full height of the box of `path`, which is [`SIMULATED_HEIGHT`].
 */
top: number, 
/**
 * The curve as a line, y down. It ends where memory runs out. Empty without a prediction.
 */
path: string, };

export type RunCard = { 
/**
 * The page's number for the row.
 */
key: number, 
/**
 * The file's folder, from the answer to `Plan`.
 */
group: string, 
/**
 * The card, as the text of [`FileCard::card`].
 */
card: string, };

export type RunQuery = { "clear": Record<symbol, never> } | { "cards": { 
/**
 * The cards.
 */
cards: Array<RunCard>, } };

export type RankSort = "rank" | "peak" | "reserved" | "end" | "findings";

export type Overview = { 
/**
 * The rows that are shown.
 */
list: RankList, 
/**
 * The rows by rank, if the run has at most [`MAX_ROWS`]; else they are asked for by key.
 */
rows: Array<ShownRank>, 
/**
 * The number of cards.
 */
cards: number, 
/**
 * Findings that need a comparison of ranks, the worst first.
 */
outliers: Array<FindingRow>, 
/**
 * Findings of ranks whose cards are in an index, as far as `groups` name them.
 */
indexed: Array<FindingRow>, 
/**
 * These and the findings of all ranks, the worst first. Equal ones of several ranks are one.
 */
groups: Array<FindingGroup>, 
/**
 * The number of groups above low severity.
 */
notable: number, 
/**
 * The same in words: `3 findings`.
 */
notableText: string, 
/**
 * The other groups in words: `2 small findings`; empty if there are none.
 */
smallText: string, 
/**
 * The findings that `groups` lacks in words; empty if there are none.
 */
omitted: string, 
/**
 * The key of the row with the worst finding; null without one above low.
 */
worst: number | null, };

export type OverviewRow = { 
/**
 * The page's number for the row.
 */
key: number, 
/**
 * The peak of requested bytes, relative to the largest peak of all ranks.
 */
requested: number, 
/**
 * The peak of reserved bytes, relative to the largest peak of all ranks.
 */
reserved: number, 
/**
 * The bars of the categories, in the card's order.
 */
categories: Array<CategoryBar>, 
/**
 * The out-of-memory events in words: `2 out-of-memory events`; empty if there are none.
 */
ooms: string, 
/**
 * The curve of requested bytes as an SVG path in a box of [`SPARK`], y down.
 */
spark: string, 
/**
 * The number of findings above low severity that the rank has or is about.
 */
notable: number, 
/**
 * What the rank holds more than others: `480.0 MiB more at train.py:88 step`; empty if
 * nothing.
 */
outlier: string, 
/**
 * The index in [`Overview::outliers`] of the rank's worst finding; null if that is its own,
 * or none.
 */
story: number | null, };

export type CategoryBar = { 
/**
 * The label: `parameters`.
 */
label: string, 
/**
 * The color word.
 */
color: number, 
/**
 * The right edge, relative to the largest peak of all ranks.
 */
end: number, };

export type BandKind = "requested_bytes" | "active_bytes" | "allocated_bytes" | "reserved_bytes";

export type Align = "event" | "time" | "step";

export type CompareQuery = { "sides": { 
/**
 * A, as its worker answered.
 */
a: string, 
/**
 * B, as its worker answered.
 */
b: string, } } | { "stacks": { 
/**
 * A filter: a word in a function, a file or the category; empty for no filter.
 */
text: string, 
/**
 * The rows of one group, by [`ComparedGroup::key`]; empty for all that changed.
 */
group: string, 
/**
 * The flame graph of which only the stacks through its root are wanted.
 */
tree: ComparedTree, 
/**
 * The first row.
 */
from: number, 
/**
 * The maximum number of rows.
 */
count: number, } } | { "stack": { 
/**
 * [`ComparedStack::row`].
 */
row: number, } } | "markdown" | { "tree": { 
/**
 * The graph.
 */
tree: ComparedTree, } } | { "boxes": { 
/**
 * The graph.
 */
tree: ComparedTree, 
/**
 * Left edge of the visible part, in the graph's units.
 */
x0: number, 
/**
 * Right edge of the visible part.
 */
x1: number, 
/**
 * The minimum width of a node in the same unit.
 */
least: number, } } | { "node": { 
/**
 * The graph.
 */
tree: ComparedTree, 
/**
 * The node's index.
 */
node: number, } } | { "tiles": { 
/**
 * The graph.
 */
tree: ComparedTree, 
/**
 * The tiles.
 */
tiles: Array<TileKey>, } };

export type CompareAnswer = { "comparison": Comparison | null } | { "stacks": ComparedStacks } | { "detail": DetailCard | null } | { "markdown": string | null } | { "tree": ComparedFlame | null } | { "boxes": Array<FlameBox> } | { "node": ComparedNode | null } | { "tiles": Array<ComparedTile> };

export type Comparison = { 
/**
 * The difference, as `vramscope diff` writes it, without call stacks.
 */
record: Pair, 
/**
 * Its words, tables and curves.
 */
view: ComparisonView, };

export type ComparedTree = { 
/**
 * True if widths are the bytes of A, false if they are those of B.
 */
ofA: boolean, 
/**
 * True if the innermost frame is at the top.
 */
inverted: boolean, 
/**
 * Whether frames of PyTorch, Python and compiled code are hidden.
 */
hideFramework: boolean, 
/**
 * The path of the node that is shown as root; empty for all.
 */
root: string, };

export type ComparedFlame = { 
/**
 * Its figures. The total is that of the side of the widths.
 */
info: FlameInfo, 
/**
 * What the shown root holds in A and in B: `1.20 GiB → 1.50 GiB, +307.2 MiB, +25.0 %`.
 */
text: string, 
/**
 * The bytes of the stacks without a width, with a sentence as text; null if there are none.
 */
missing: Quantity | null, 
/**
 * The color words from "only in A" over "equal" to "only in B".
 */
colors: Array<number>, };

export type ComparedNode = { 
/**
 * The node's path, as [`ComparedTree::root`] takes it.
 */
path: string, 
/**
 * The call site: `model.py:212 forward`.
 */
title: string, 
/**
 * What it holds in A and in B: `1.20 GiB → 1.50 GiB, +307.2 MiB, +25.0 %`.
 */
text: string, 
/**
 * The color word.
 */
color: number, 
/**
 * Both sides and their difference.
 */
card: DetailCard, };

export type ComparedTile = { 
/**
 * The tile.
 */
key: TileKey, 
/**
 * Four numbers per strip: left, bottom, right and top, in columns and rows of the tile.
 */
positions: Array<number>, 
/**
 * One color word per strip.
 */
colors: Array<number>, 
/**
 * The node of each strip.
 */
blocks: Array<number>, };

export type ComparisonView = { 
/**
 * The headline:
 * `requested bytes peak at 2.17 GiB in A, at 2.60 GiB in B: +445.1 MiB, +20.1 %`.
 */
text: string, 
/**
 * The allocator settings that differ, then steps and inputs if they differ.
 */
recording: Array<RecordingRow>, 
/**
 * Each band at its start (if not zero), peak and end, then blocks, OOMs, findings, steps and
 * input.
 */
totals: Array<DiffRow>, 
/**
 * The number of totals that are equal: `5 unchanged`; empty if there are none.
 */
totalsUnchanged: string, 
/**
 * Live bytes at the peaks by category, the largest change first.
 */
categories: Array<DiffRow>, 
/**
 * The number of categories that are equal: `2 unchanged`; empty if there are none.
 */
categoriesUnchanged: string, 
/**
 * The band over both windows by event, by time and by step.
 */
curves: Array<ComparedCurves>, 
/**
 * The kinds in words of the findings that only B has, in their order: `Growth`.
 */
newLabels: Array<string>, 
/**
 * The kinds in words of the findings that only A has.
 */
goneLabels: Array<string>, };

export type Pair = { 
/**
 * The rank, if it is equal in both paths; else null.
 */
rank: number | null, 
/**
 * The device of A.
 */
a: SideSource, 
/**
 * The device of B.
 */
b: SideSource, 
/**
 * Why the memory differs, in sentences; empty if settings and inputs do not explain it.
 */
causes: Array<string>, 
/**
 * What changed in the program, and whether that did what was predicted from A. Null if nothing
 * changed, if the change has no name, and for folders.
 */
changes: null, 
/**
 * The allocator settings that differ. Empty if a file has none (before PyTorch 2.3).
 */
settings: Array<SettingDiff>, 
/**
 * Whole training steps.
 */
steps: CountDiff, 
/**
 * The data that a step reads; null if it is not known in both sides.
 */
tokens: TokensDiff | null, 
/**
 * Bytes requested by the program.
 */
requested_bytes: BandDiff, 
/**
 * Block sizes of blocks that are not yet free.
 */
active_bytes: BandDiff, 
/**
 * Block sizes of blocks whose free was not yet requested. The peak is
 * `torch.cuda.max_memory_allocated()`.
 */
allocated_bytes: BandDiff, 
/**
 * Bytes that the allocator reserved from the driver.
 */
reserved_bytes: BandDiff, 
/**
 * Blocks that are live at the band's peak (segments, for `reserved_bytes`).
 */
blocks: CountDiff, 
/**
 * Out-of-memory events.
 */
ooms: CountDiff, 
/**
 * The number of findings, and the findings that are in one side only.
 */
findings: FindingsDiff, 
/**
 * Live memory at the peak by category, the largest change first; empty for `reserved_bytes`.
 */
categories: Array<CategoryDiff>, 
/**
 * Live memory at the peak by call stack, the largest change first. The stacks add up to the
 * peaks. Null except for the pair whose peak changes most.
 */
stacks: null, 
/**
 * The number of stacks left out by `--limit`.
 */
stacks_left_out: number, 
/**
 * All call stacks as a tree, depth first from the root; null where `stacks` is null.
 */
tree: null, };

export type SideSource = { 
/**
 * The file's path.
 */
path: string, 
/**
 * The device's ordinal.
 */
device: number, 
/**
 * The event of the band's peak; -1 is the state before the window.
 */
event: PeakEvent, };

export type SettingDiff = { 
/**
 * The key. A group, such as `roundup_power2_divisions`, is one row if all its members have
 * equal values in each side.
 */
key: string, 
/**
 * The value in A as JSON text; null if A does not have the key.
 */
a: string | null, 
/**
 * The value in B as JSON text; null if B does not have the key.
 */
b: string | null, };

export type TokensDiff = { 
/**
 * Bytes of the input blocks of a typical step.
 */
input_bytes_per_step: BytesDiff, };

export type BytesDiff = { 
/**
 * The value in A.
 */
a: SignedBytes, 
/**
 * The value in B.
 */
b: SignedBytes, 
/**
 * `b` - `a`.
 */
change: Change, };

export type CountDiff = { 
/**
 * The value in A.
 */
a: Count, 
/**
 * The value in B.
 */
b: Count, 
/**
 * `b` - `a`.
 */
change: CountChange, };

export type BandDiff = { 
/**
 * Before the first event.
 */
start: BytesDiff, 
/**
 * The largest value.
 */
peak: BytesDiff, 
/**
 * After the last event.
 */
end: BytesDiff, 
/**
 * `estimate` if either side is an estimate.
 */
exactness: Exactness, };

export type FindingsDiff = { 
/**
 * Findings of B without a match in A. Findings match by kind, and by function or setting.
 */
new: Array<SideFinding>, 
/**
 * Findings of A without a match in B.
 */
gone: Array<SideFinding>, 
/**
 * The value in A.
 */
a: Count, 
/**
 * The value in B.
 */
b: Count, 
/**
 * `b` - `a`.
 */
change: CountChange, };

export type SideFinding = { 
/**
 * The subject that identifies it in another recording: the function and file of its call site,
 * a setting's key, or an empty text.
 */
about: string, 
/**
 * A stable id: one file gives one id on every machine.
 */
id: FindingId, 
/**
 * The kind.
 */
kind: FindingKind, 
/**
 * The severity.
 */
severity: Severity, 
/**
 * The file's path.
 */
path: string, 
/**
 * The rank in the path; null if there is none.
 */
rank: number | null, 
/**
 * The device's ordinal.
 */
device: number, 
/**
 * The finding in a few words.
 */
title: string, 
/**
 * Subject, numbers and cause.
 */
text: string, 
/**
 * What to do.
 */
action: string, 
/**
 * The line that it is about; null without a call stack.
 */
place: FindingPlace | null, 
/**
 * Why, in one line without the figures of the title; empty where the title says it.
 */
why: string, 
/**
 * Bytes that the finding is about.
 */
bytes: Bytes, 
/**
 * What the peak loses without it; null where that is not measured.
 */
saving_bytes: Bytes | null, 
/**
 * The training step, from 0; null if the finding is about several or none.
 */
step: number | null, 
/**
 * The phase; null if the finding is about several or none.
 */
phase: Phase | null, 
/**
 * How the numbers were obtained.
 */
basis: Basis, 
/**
 * Evidence: event indices from 0.
 */
events: Array<EventIndex>, 
/**
 * The call sites that the finding is about, most bytes first.
 */
sites: Array<string>, 
/**
 * The callers of the first site, innermost first: frames outside of PyTorch.
 */
called_from: Array<string>, 
/**
 * The number of blocks that the finding is about.
 */
blocks: Blocks, 
/**
 * The shares of the call sites, if there are several.
 */
children: Array<FindingChild>, 
/**
 * What the model of the allocator says: first about the run as recorded, then about changes.
 * Absent where it says nothing.
 */
simulated?: Array<Simulated>, 
/**
 * The changes with which a run goes through that failed, replayed over the whole run: what
 * fits first, then by cost. Absent for other findings.
 */
fixes?: Array<Lever>, 
/**
 * Known causes of memory that the file shows, whose cures do not suffice alone: those with
 * most bytes first. Absent for other findings.
 */
look?: Array<Look>, 
/**
 * What holds its blocks that are live at the end, most bytes first. Of a failed allocation:
 * what to drop beside the model. Absent unless the file beside the snapshot tells it.
 */
holders?: Array<Holder>, };

export type CategoryDiff = { 
/**
 * The category.
 */
category: Category, 
/**
 * Blocks.
 */
blocks: CountDiff, 
/**
 * The value in A.
 */
a: SignedBytes, 
/**
 * The value in B.
 */
b: SignedBytes, 
/**
 * `b` - `a`.
 */
change: Change, };

export type DiffRow = { 
/**
 * The stable name: `requested_bytes.peak`, `ooms`, `parameter`.
 */
key: string, 
/**
 * The name in words: `requested peak`.
 */
label: string, 
/**
 * The numbers.
 */
values: DiffValues, 
/**
 * The change in percent of A.
 */
percent: string, };

export type DiffValues = BytesDiff | CountDiff;

export type RecordingRow = { 
/**
 * The setting's key, or what is counted.
 */
name: string, 
/**
 * The value in A.
 */
a: string, 
/**
 * The value in B.
 */
b: string, };

export type ComparedGroup = { 
/**
 * `new`, `gone`, `grown`, `shrunk` or `unchanged`.
 */
key: string, 
/**
 * The number of rows in words: `3 new`.
 */
text: string, 
/**
 * The number of rows.
 */
count: number, 
/**
 * The change of all of them.
 */
change: Change, };

export type Difference = { 
/**
 * Where B has more, as an SVG path in a box of [`COMPARED`], y down.
 */
more: string, 
/**
 * Where B has less.
 */
less: string, 
/**
 * The height of the line of zero from the top, from 0 to 1.
 */
zero: number, 
/**
 * The largest surplus of B: `+445.1 MiB`; empty if there is none.
 */
most: string, 
/**
 * The largest deficit of B: `-540.4 MiB`; empty if there is none.
 */
least: string, };

export type ComparedCurves = { 
/**
 * The axis by which the curves are aligned.
 */
align: Align, 
/**
 * Why there are no curves; empty if there are.
 */
missing: string, 
/**
 * The curve of A as an SVG path in a box of [`COMPARED`], y down.
 */
a: string, 
/**
 * The curve of B.
 */
b: string, 
/**
 * Labels of the x axis, relative to the box from its left edge.
 */
x: Array<PlaceMark>, 
/**
 * Labels of the y axis, relative to the box from its bottom edge.
 */
y: Array<PlaceMark>, 
/**
 * What B has more or less than A.
 */
difference: Difference, };

export type PlaceMark = { 
/**
 * The position, from 0 to 1.
 */
at: number, 
/**
 * The label: `2.00 GiB`.
 */
text: string, };

export type ComparedStacks = { 
/**
 * The number of matching rows.
 */
total: number, 
/**
 * The number of rows and their change in words: `32 of 34 call stacks, +445.1 MiB`.
 */
text: string, 
/**
 * Index of the first row among all matching rows.
 */
from: number, 
/**
 * The rows.
 */
rows: Array<ComparedStack>, 
/**
 * All groups with rows that match the text.
 */
groups: Array<ComparedGroup>, };

export type ComparedStack = { 
/**
 * Index among all call stacks, the largest change first.
 */
row: number, 
/**
 * The call site.
 */
site: string, 
/**
 * The frame that distinguishes it from other stacks of the site; empty if there is none.
 */
via: string, 
/**
 * The category with most of the bytes.
 */
category: string, 
/**
 * Bytes in A and in B.
 */
bytes: BytesDiff, 
/**
 * The change relative to the largest change, from -1 to 1.
 */
share: number, 
/**
 * The change in blocks.
 */
blocks: CountChange, 
/**
 * `only in A`, `only in B` or `other lines`; empty for equal frames.
 */
note: string, };
