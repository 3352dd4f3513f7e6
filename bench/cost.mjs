// Counts instructions, bytes of memory and drawn objects for one file. `cargo xtask cost` passes
// the folder of the instrumented modules and the file, and reads a JSON object of counts by name
// from stdout.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { argv, stdout } from "node:process";
import { gunzipSync } from "node:zlib";
import { frames } from "./frames.mjs";

const CHUNK = 1 << 18;
/** Size of the timeline's plot, in pixels. */
const PLOT = { width: 1600, height: 800 };
const TILE = { columns: 512, rows: 1024 };

const [, , folder, path] = argv;
const packed = readFileSync(path);
const file = path.endsWith(".gz") ? gunzipSync(packed) : packed;
const counts = {};

const { initSync, RankWorker } = await import("../web/viewer/wasm/vramscope_worker.js");
const wasm = readFileSync(join(folder, "vramscope_worker_bg.wasm"));
const { instructions } = initSync({ module: wasm });
const worker = new RankWorker("cost", file.length);

/** Counts the instructions of `work` under the name `row`. */
function count(row, work) {
  const before = instructions.value;
  const result = work();
  counts[row] = Number(instructions.value - before);
  return result;
}

function read() {
  for (let at = 0; at < file.length; at += CHUNK) {
    const bytes = file.subarray(at, at + CHUNK);
    worker.feed(bytes, at + bytes.length);
  }
  return worker.finish();
}

/** Steps until the request is answered, and returns all answers. Throws when one is a failure. */
function answers(request) {
  const found = [];
  worker.post(request);
  for (let step = worker.step(); step !== undefined; step = worker.step()) {
    if (step?.response.kind === "failed") {
      throw new Error(`${JSON.stringify(request)}: ${step.response.message}`);
    }
    if (step) found.push(step);
  }
  return found;
}

/** Keys of the tiles that show a share of all slots and bytes, around the middle of the plot. */
function tiles(slots, bytes, share) {
  const [width, height] = [Math.max(slots * share, PLOT.width), Math.max(bytes * share, 64)];
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

const loaded = count("read", read);
if (loaded.kind !== "loaded") throw new Error(JSON.stringify(loaded));
counts["memory, bytes"] = worker.memoryBytes();
const [{ defaultDevice: device, devices }] = loaded.parts;
const summary = devices.find((one) => one.device === device);
const [events, peak] = [Number(summary.events.raw), Number(summary.peak.raw)];
const [target, axis] = [{ part: 0, device }, "event"];
const ask = (row, kind, request) =>
  count(row, () => answers({ [kind]: { id: 1, target, ...request } }));
const draw = (row, layer, share) =>
  ask(row, "tiles", { axis, layer, tiles: tiles(events + 1, peak, share) });
const view = (row, query) => ask(row, "view", { query });
const timeline = (by, lines) => {
  const bands = { reserved: true, active: lines, allocated: lines, pools: false };
  const group = by === "stack" ? "block" : by;
  return { timeline: { group, color: by, bands, search: "" } };
};

// The first pictures and the frames come before anything else is computed, as on the page. All but
// the outline need the categories of all blocks.
draw("outline, whole", { outline: {} }, 1);
draw("timeline, whole", timeline("category", false), 1);
draw("timeline, a hundredth", timeline("category", false), 0.01);
const tilesOf = (keys) =>
  keys.length === 0
    ? []
    : answers({
        tiles: { id: 1, target, axis, layer: timeline("category", false), tiles: keys },
      })
        .filter(({ response }) => response.kind === "tile")
        .map(({ response, columns }) => ({ key: response.key, columns }));
const axisInfo = summary.axes.find(({ kind }) => kind === axis);
await frames(folder, counts, { axis: axisInfo, peak, tilesOf });

const event = Math.floor(events / 2);
const flame = {
  weight: "byteSeconds",
  event,
  range: null,
  inverted: false,
  hideFramework: false,
  root: "",
  search: "",
};
const table = {
  text: "",
  category: "",
  liveAt: null,
  sort: "size",
  descending: true,
};
const page = { from: 0, count: 100, near: null };
const rows = { sort: "size", event, grown: null };
const byWord = { ...table, text: "forward" };
const filter = { actions: [], text: "forward" };
draw("timeline by call stack, lines", timeline("stack", true), 1);
// The summary computes the analyses that the card shows, too.
view("summary", { summary: {} });
view("card", { card: {} });
view("minimap", { minimap: { axis } });
view("tracks", { tracks: { axis, x0: 0, x1: events, columns: 1000 } });
view("state", { stateAt: { event } });
view("range", { range: { axis, x0: 0, x1: events } });
view("events, by a word", { events: { filter, ...page } });
view("blocks, by size", { blocks: { table, ...page } });
view("blocks, by a word", { blocks: { table: byWord, ...page } });
view("search", { search: { text: "forward" } });
view("segments", { segments: { rows } });
draw("segments, whole", { segments: { color: "stack", rows, search: "" } }, 1);
view("flame graph", { flame: { flame } });
view("export of blocks", { export: { what: { blocks: { table } }, form: "csv" } });
counts["memory with all views, bytes"] = worker.memoryBytes();
stdout.write(JSON.stringify(counts));
