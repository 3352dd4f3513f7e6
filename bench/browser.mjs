// Measures the time from a drop to the first picture in a headless browser: `node bench/browser.mjs
// FILE [RUNS] [isolated]`, after `cargo xtask build`. The clock runs in the page, from the change
// event of the file input to the first frame with the outline of the stack, and to the first with
// its blocks. CPython's `pickle.load` of the same file in the same run is the reference. Then the
// page is zoomed and panned with all views open, and the browser's trace tells the script time of
// each frame.

import { spawnSync } from "node:child_process";
import { statSync } from "node:fs";
import { argv, stdout } from "node:process";
import { withPages } from "./page.mjs";

const [file, runs = "5", kind = "plain"] = argv.slice(2);

/** Largest file for `pickle.load`, in bytes: CPython takes five times as much memory. */
const MAX_FOR_PYTHON = 2 ** 31;

async function once(open) {
  const page = await open();
  // The page stays on the timeline, whatever it finds.
  await page.evaluate(() => window.vramscope.setState({ view: "timeline" }));
  // A change event does not leave the shadow root of the input.
  await page.getByTestId("open-files").evaluate((input) => {
    window.firstPicture = new Promise((resolve) => {
      let start = 0;
      let first = 0;
      const look = () => {
        const { picture, ranks } = window.vramscope.stats();
        if (picture !== "none") first ||= performance.now() - start;
        if (picture === "blocks") {
          resolve({
            ms: first,
            blocksMs: performance.now() - start,
            loadMs: ranks[0].loadMs,
            wasmBytes: ranks[0].wasmBytes,
          });
        } else requestAnimationFrame(look);
      };
      const begin = () => {
        start = performance.now();
        look();
      };
      input.getRootNode().addEventListener("change", begin, { capture: true, once: true });
    });
  });
  await page.getByTestId("open-files").setInputFiles(file);
  const measured = await page.evaluate(() => window.firstPicture);
  const began = performance.now();
  await page.locator("[data-testid=verdict] b").waitFor({ timeout: 300_000 });
  const verdict = measured.blocksMs + performance.now() - began;
  const panned = await pan(page);
  await page.close();
  return { ...measured, verdict, ...panned };
}

/**
 * Zooms in, then pans to and fro for three seconds. Measures the script of each frame in
 * milliseconds of the main thread's time, which other programs do not affect. Style and layout
 * count only when a script waits for them.
 */
async function pan(page) {
  const session = await page.context().newCDPSession(page);
  await page.mouse.move(600, 300);
  const hold = async (key, ms) => {
    await page.keyboard.down(key);
    await page.waitForTimeout(ms);
    await page.keyboard.up(key);
  };
  await hold("w", 800);
  await page.waitForTimeout(1000);
  const events = [];
  session.on("Tracing.dataCollected", ({ value }) => events.push(...value));
  const traced = new Promise((resolve) => session.once("Tracing.tracingComplete", resolve));
  const includedCategories = [
    "devtools.timeline",
    "disabled-by-default-devtools.timeline",
    "devtools.timeline.frame",
  ];
  await session.send("Tracing.start", {
    transferMode: "ReportEvents",
    traceConfig: { includedCategories, excludedCategories: ["*"] },
  });
  // The start of tracing would slow down the first key.
  await page.waitForTimeout(500);
  await hold("d", 1500);
  await hold("a", 1500);
  await session.send("Tracing.end");
  await traced;
  await session.send("Performance.enable");
  const { metrics } = await session.send("Performance.getMetrics");
  const heap = metrics.find(({ name }) => name === "JSHeapUsedSize").value;
  const { instances, drawCalls, ranks } = await page.evaluate(() => window.vramscope.stats());
  return {
    ...scriptOfFrames(events),
    heap,
    instances,
    drawCalls,
    wasmInTheEnd: ranks[0].wasmBytes,
  };
}

const SCRIPT = new Set([
  "EvaluateScript",
  "EventDispatch",
  "FireAnimationFrame",
  "FunctionCall",
  "HandlePostMessage",
  "RunMicrotasks",
  "TimerFire",
]);
const BROWSERS = new Set(["Layout", "UpdateLayoutTree"]);

/** Mean and 95th percentile of the script between two commits of the main thread, in ms. */
function scriptOfFrames(events) {
  const main = events.find(({ name }) => name === "FireAnimationFrame");
  const own = events.filter(
    ({ pid, tid, ph }) => pid === main.pid && tid === main.tid && ph === "X",
  );
  own.sort((a, b) => a.ts - b.ts || b.dur - a.dur);
  const frames = [];
  let [inFrame, scriptEnds, browserEnds] = [0, 0, 0];
  for (const { name, ts, dur, tdur = 0 } of own) {
    if (name === "Commit") {
      frames.push(inFrame / 1000);
      inFrame = 0;
    } else if (SCRIPT.has(name) && ts >= scriptEnds) {
      inFrame += tdur;
      scriptEnds = ts + dur;
    } else if (BROWSERS.has(name) && ts < scriptEnds && ts >= browserEnds) {
      inFrame -= tdur;
      browserEnds = ts + dur;
    }
  }
  frames.sort((a, b) => a - b);
  const scriptMean = frames.reduce((sum, ms) => sum + ms, 0) / frames.length;
  return { scriptMean, scriptP95: frames[Math.floor(frames.length * 0.95)], frames: frames.length };
}

/** Milliseconds of `pickle.load`; NaN for a file that is too large. */
function python() {
  if (statSync(file).size > MAX_FOR_PYTHON) return Number.NaN;
  const script = `
import pickle, sys, time
with open(sys.argv[1], 'rb') as f:
    start = time.perf_counter()
    pickle.load(f)
    print(time.perf_counter() - start)`;
  const {
    stdout: seconds,
    stderr,
    status,
    signal,
  } = spawnSync("python3", ["-c", script, file], { encoding: "utf8" });
  if (status !== 0) throw new Error(`python3 did not read ${file}: ${signal ?? stderr}`);
  return 1000 * Number(seconds);
}

await withPages(kind === "isolated", async (open) => {
  const all = [];
  for (let run = 0; run < Number(runs); run += 1)
    all.push({ ...(await once(open)), python: python() });
  const best = (of) => Math.min(...all.map(of));
  const [picture, blocks, loaded, cpython] = [
    best(({ ms }) => ms),
    best(({ blocksMs }) => blocksMs),
    best(({ loadMs }) => loadMs),
    best(({ python: ms }) => ms),
  ];
  stdout.write(`${file}, ${statSync(file).size} bytes, best of ${runs}\n`);
  stdout.write(
    `drop to first picture ${picture.toFixed(0)} ms (of which reading ${loaded.toFixed(0)} ms)\n`,
  );
  stdout.write(`drop to blocks        ${blocks.toFixed(0)} ms\n`);
  const median = (of) => all.map(of).sort((a, b) => a - b)[all.length >> 1];
  const ratio = (of) => median((one) => one[of] / one.python).toFixed(2);
  const compared = Number.isNaN(cpython)
    ? "not run: the file is too large"
    : `${cpython.toFixed(0)} ms. Median ratios: ${ratio("ms")}, blocks ${ratio("blocksMs")}`;
  stdout.write(`CPython pickle.load   ${compared}\n`);
  stdout.write(`drop to the verdict   ${best(({ verdict }) => verdict).toFixed(0)} ms\n`);
  const { wasmBytes, wasmInTheEnd, heap, instances, drawCalls } = all[0];
  const mib = (bytes) => `${(bytes / 2 ** 20).toFixed(1)} MiB`;
  stdout.write(`wasm memory           ${mib(wasmBytes)}, with all views ${mib(wasmInTheEnd)}\n`);
  stdout.write(`JavaScript heap       ${mib(heap)}\n`);
  const mean = best(({ scriptMean }) => scriptMean).toFixed(2);
  const p95 = best(({ scriptP95 }) => scriptP95).toFixed(2);
  stdout.write(`script per frame, panning: mean ${mean} ms, p95 ${p95} ms of thread time\n`);
  const most = Math.max(...all.map(({ frames }) => frames));
  stdout.write(`instances ${instances}, draw calls ${drawCalls}, frames in 3 s ${most}\n`);
});
