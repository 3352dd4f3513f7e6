// Times the page by what is on the screen, in a headless browser, after `cargo xtask build`:
// `node bench/browser.mjs [--place summary|timeline] [--runs N] [--cold] [--isolated] FILE...`.
//
// Each run reads the file by CPython's `pickle.load` in a new process, opens it in a page whose
// pixels are watched, and opens it in a page that is not watched. The clock runs from the change
// event of the file input to the marks of pixels.mjs. Without `--place` the page shows the place
// that it chooses, and then, in runs of their own, the timeline. `--cold` also drops the file as
// soon as a new page takes it.

import { spawnSync } from "node:child_process";
import { statSync } from "node:fs";
import { loadavg } from "node:os";
import { basename } from "node:path";
import { stdout } from "node:process";
import { parseArgs } from "node:util";
import { withPages } from "./page.mjs";
import { drop, marks, settled, watch } from "./pixels.mjs";

const { values: options, positionals: files } = parseArgs({
  allowPositionals: true,
  options: {
    place: { type: "string" },
    runs: { type: "string" },
    cold: { type: "boolean", default: false },
    isolated: { type: "boolean", default: false },
  },
});

/** Largest file for `pickle.load`, in bytes: CPython takes five times as much memory. */
const MAX_FOR_PYTHON = 2 ** 31;

/** Runs of a file of these bytes. */
const runsOf = (bytes) => Number(options.runs ?? (bytes < 20e6 ? 5 : 3));

/** Milliseconds of `pickle.load`; null for a file that is too large. */
function python(file) {
  if (statSync(file).size > MAX_FOR_PYTHON) return null;
  const script = `
import pickle, sys, time
with open(sys.argv[1], 'rb') as f:
    start = time.perf_counter()
    pickle.load(f)
    print(time.perf_counter() - start)`;
  const process = spawnSync("python3", ["-c", script, file], { encoding: "utf8" });
  if (process.status !== 0)
    throw new Error(`python3 did not read ${file}: ${process.signal ?? process.stderr}`);
  return 1000 * Number(process.stdout);
}

/** Opens a file in a new page. `place` null is the place that the page chooses. */
async function opened(open, { file, place, cold, isWatched }) {
  let watched = null;
  const prepare = async (page) => {
    if (isWatched) watched = await watch(page);
  };
  const page = await open({ cold, prepare });
  if (place !== null) await page.evaluate((view) => window.vramscope.setState({ view }), place);
  const { droppedAt, said } = await drop(page, file);
  let reached = {};
  if (watched !== null) {
    await settled(page, watched);
    reached = await marks(page, watched, droppedAt);
  }
  const inDocument = await said();
  await page.close();
  return { inDocument, ...reached };
}

/** Milliseconds between frames of the page at rest that repaints all the time. */
async function resolution(open) {
  let watched = null;
  const page = await open({
    prepare: async (one) => {
      watched = await watch(one);
    },
  });
  const begun = watched.frames.length;
  await page.evaluate(
    () =>
      new Promise((resolve) => {
        const end = performance.now() + 2000;
        const paint = () => {
          document.documentElement.style.opacity = String(0.99 + 0.01 * Math.random());
          if (performance.now() < end) requestAnimationFrame(paint);
          else resolve();
        };
        paint();
      }),
  );
  const times = watched.frames.slice(begun).map(({ at }) => at);
  await page.close();
  times.sort((a, b) => a - b);
  return times.slice(1).map((at, index) => at - times[index]);
}

const sorted = (values) => values.toSorted((a, b) => a - b);
const median = (values) => sorted(values)[values.length >> 1];

/** `335 (230 to 338)`: median and range. */
function spread(values) {
  if (values.includes(null)) return "not run";
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return `${median(values).toFixed(0)} (${low.toFixed(0)} to ${high.toFixed(0)})`;
}

const MARKS = ["filled", "colored", "still", "verdict"];

async function measure(open, file, place, cold) {
  const bytes = statSync(file).size;
  const [seen, unseen, pythons] = [[], [], []];
  for (let run = 0; run < runsOf(bytes); run += 1) {
    pythons.push(python(file));
    seen.push(await opened(open, { file, place, cold, isWatched: true }));
    unseen.push(await opened(open, { file, place, cold, isWatched: false }));
  }
  const of = (mark) => seen.map((one) => one[mark]);
  const ratio = (mark) =>
    pythons.includes(null) ? "-" : (median(of(mark)) / median(pythons)).toFixed(2);
  const places = [...new Set(of("place"))].join(" or ");
  const said = [seen, unseen].map((all) => median(all.map(({ inDocument }) => inDocument)));
  const cells = [
    `${basename(file)}, ${bytes.toLocaleString("en-US")} bytes`,
    `${place === null ? "opens: " : ""}${places}${cold ? ", cold" : ""}`,
    seen.length,
    ...MARKS.map((mark) => spread(of(mark))),
    spread(pythons),
    ...["filled", "colored", "verdict"].map(ratio),
    said.map((ms) => ms.toFixed(0)).join(", "),
    loadavg()[0].toFixed(1),
  ];
  stdout.write(`| ${cells.join(" | ")} |\n`);
}

await withPages(options.isolated, async (open) => {
  const between = await resolution(open);
  const rest = `A frame of the page at rest: ${spread(between)}.`;
  stdout.write(`Milliseconds, median (range). ${rest}\n\n`);
  const heads = [
    "file",
    "place",
    "runs",
    ...MARKS,
    "`pickle.load`",
    "filled / `pickle.load`",
    "colored",
    "verdict",
    "verdict in the document: watched, not watched",
    "load",
  ];
  stdout.write(`| ${heads.join(" | ")} |\n|${heads.map(() => "---").join("|")}|\n`);
  const places = options.place === undefined ? [null, "timeline"] : [options.place];
  for (const file of files)
    for (const place of places)
      for (const cold of options.cold ? [false, true] : [false])
        await measure(open, file, place, cold);
});
