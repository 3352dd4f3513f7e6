// What the modules do with a file, counted: instructions, bytes of memory, and what a frame draws.
// `cargo xtask cost` makes modules that count, calls this with their folder and one file, and reads
// what it prints: a JSON object of numbers by name.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { argv, stdout } from "node:process";
import { gunzipSync } from "node:zlib";
import { frames } from "./frames.mjs";

const CHUNK = 1 << 18;
/** The plot of the timeline, in pixels. */
const PLOT = { width: 1600, height: 800 };
const TILE = { columns: 512, rows: 1024 };

const [, , folder, path] = argv;
const packed = readFileSync(path);
const file = path.endsWith(".gz") ? gunzipSync(packed) : packed;
const counts = {};

/** The worker of a module, and what reads the file; `count` notes what a piece of work takes. */
async function open(name) {
  const { initSync, RankWorker } = await import(`../web/viewer/wasm/${name}.js`);
  const { instructions } = initSync({ module: readFileSync(join(folder, `${name}_bg.wasm`)) });
  const count = (row, work) => {
    const before = instructions.value;
    const out = work();
    counts[row] = Number(instructions.value - before);
    return out;
  };
  const worker = new RankWorker("cost", file.length);
  const read = () => {
    for (let at = 0; at < file.length; at += CHUNK) {
      const bytes = file.subarray(at, at + CHUNK);
      worker.feed(bytes, at + bytes.length);
    }
    return worker.finish();
  };
  return { worker, count, read };
}

/**
 * Steps until everything that was asked is answered, and gives the answers; one that says no ends
 * all.
 */
function answer(worker, request) {
  const answers = [];
  worker.post(request);
  for (let step = worker.step(); step !== undefined; step = worker.step()) {
    if (step?.response.kind === "failed") throw new Error(`${JSON.stringify(request)}: ${step.response.message}`);
    if (step) answers.push(step);
  }
  return answers;
}

/** The keys of the tiles of a part of the plot around the middle: of slots and of bytes. */
function tiles(slots, bytes, part) {
  const [width, height] = [Math.max(slots * part, PLOT.width), Math.max(bytes * part, 64)];
  const kx = Math.ceil(Math.log2(Math.max(width / PLOT.width, 1)));
  const ky = Math.floor(Math.log2(Math.max(height / PLOT.height, 1)));
  const range = (whole, shown, size) => {
    const from = Math.max((whole - shown) / 2, 0);
    const [first, end] = [Math.floor(from / size), Math.ceil(Math.min(from + shown, whole) / size)];
    return Array.from({ length: end - first }, (_, i) => first + i);
  };
  const columns = range(slots, width, TILE.columns * 2 ** kx);
  const rows = range(bytes, height, TILE.rows * 2 ** ky);
  return columns.flatMap((ix) => rows.map((iy) => ({ kx, ky, ix, iy })));
}

const first = await open("vramscope_worker");
const loaded = first.count("read", first.read);
if (loaded.kind !== "loaded") throw new Error(JSON.stringify(loaded));
counts["memory, bytes"] = first.worker.memoryBytes();
const [{ defaultDevice: device, devices }] = loaded.parts;
const summary = devices.find((one) => one.device === device);
const [events, peak] = [Number(summary.events.raw), Number(summary.peak.raw)];
const [target, axis] = [{ part: 0, device }, "event"];
const ask = (row, { worker, count }, kind, request) =>
  count(row, () => answer(worker, { [kind]: { id: 1, target, ...request } }));
const draw = (row, of, layer, part) => ask(row, of, "tiles", { axis, layer, tiles: tiles(events + 1, peak, part) });
const timeline = (color, bands) => ({ timeline: { color, bands, search: "" } });
draw("timeline, whole", first, timeline("stack", false), 1);
draw("timeline, a hundredth", first, timeline("stack", false), 0.01);
const tilesOf = (keys) =>
  keys.length === 0
    ? []
    : answer(first.worker, { tiles: { id: 1, target, axis, layer: timeline("stack", false), tiles: keys } })
        .filter(({ response }) => response.kind === "tile")
        .map(({ response, columns }) => ({ key: response.key, columns }));
await frames(folder, counts, { axis: summary.axes.find(({ kind }) => kind === axis), peak, tilesOf });

const all = await open("vramscope_worker_views");
all.read();
const event = Math.floor(events / 2);
const flame = { weight: "byteSeconds", event, range: null, inverted: false, hideFramework: false, root: "", search: "" };
const table = { text: "", category: "", liveAt: null, node: null, sort: "size", descending: true };
const page = { from: 0, count: 100, near: null };
const rows = { sort: "size", event, grown: null };
const view = (row, query) => ask(row, all, "view", { query });
draw("timeline by category, lines", all, timeline("category", true), 1);
view("card", { card: {} });
view("findings", { findings: {} });
view("minimap", { minimap: { axis } });
view("tracks", { tracks: { axis, x0: 0, x1: events, columns: 1000 } });
view("stateAt", { stateAt: { at: { event: { event } } } });
view("range", { range: { axis, x0: 0, x1: events } });
view("events, by a word", { events: { filter: { actions: [], text: "forward" }, ...page } });
view("blocks, by size", { blocks: { table, ...page } });
view("blocks, by a word", { blocks: { table: { ...table, text: "forward" }, ...page } });
view("search", { search: { text: "forward" } });
view("segments", { segments: { rows } });
draw("segments, whole", all, { segments: { color: "stack", rows, search: "" } }, 1);
view("flame graph", { flame: { flame } });
view("export of blocks", { export: { what: { blocks: { table } }, form: "csv" } });
counts["memory with all views, bytes"] = all.worker.memoryBytes();
stdout.write(JSON.stringify(counts));
