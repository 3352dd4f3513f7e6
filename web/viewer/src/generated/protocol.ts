// Generated from crates/memstrata-engine/src/protocol.rs by `cargo xtask gen`. Do not edit.

export const PROTOCOL = 1;
export const TILE_COLUMNS = 512;
export const TILE_ROWS = 1024;
export const MERGED = 2147483648;

export type Quantity = { 
/**
 * The exact integer (bytes, microseconds, a count or an event index), as decimal digits.
 */
raw: string, 
/**
 * How it is written for people: `42.48 GiB`.
 */
text: string, 
/**
 * The exact value in words, for a title: `45,609,994,504 bytes`.
 */
exact: string, };

export type AxisKind = "event" | "time";

export type Axis = { 
/**
 * Events or time.
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
x1: number, } };

export type Response = { "kind": "progress" } & Progress | { "kind": "loaded" } & Loaded | { "kind": "failed" } & Failure | { "kind": "tile", 
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
x1: number, };

export type Progress = { 
/**
 * Between 0 and 1.
 */
fraction: number, 
/**
 * `12.3 of 45.0 MiB`.
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
warnings: Array<WarningRow>, };

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
 * The colour word of the strip.
 */
colour: number, };

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
 * The colour word that it is drawn with.
 */
colour: number, 
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
files: Array<FileEntry>, } };

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
rows: Array<PlannedRow>, };

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
