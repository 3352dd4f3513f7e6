// Zooms and pans the timeline of a file in a headless browser: `node bench/panning.mjs FILE [RUNS]
// [isolated]`, after `cargo xtask build`. Prints the script time of each frame from the browser's
// trace, the size of the picture, and the memory in the end.

import { statSync } from "node:fs";
import { argv, stdout } from "node:process";
import { withPages } from "./page.mjs";
import { drop } from "./pixels.mjs";

const [file, runs = "3", kind = "plain"] = argv.slice(2);

async function once(open) {
  const page = await open();
  // The page stays on the timeline, whatever it finds.
  await page.evaluate(() => window.vramscope.setState({ view: "timeline" }));
  const { said } = await drop(page, file);
  await said();
  const panned = await pan(page);
  await page.close();
  return panned;
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
    loadMs: ranks[0].loadMs,
    wasmBytes: ranks[0].wasmBytes,
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

await withPages(kind === "isolated", async (open) => {
  const all = [];
  for (let run = 0; run < Number(runs); run += 1) all.push(await once(open));
  const best = (of) => Math.min(...all.map(of));
  const { wasmBytes, heap, instances, drawCalls } = all[0];
  const mib = (bytes) => `${(bytes / 2 ** 20).toFixed(1)} MiB`;
  stdout.write(`${file}, ${statSync(file).size} bytes, best of ${runs}\n`);
  stdout.write(`reading in the worker ${best(({ loadMs }) => loadMs).toFixed(0)} ms\n`);
  stdout.write(`wasm memory           ${mib(wasmBytes)}\n`);
  stdout.write(`JavaScript heap       ${mib(heap)}\n`);
  const mean = best(({ scriptMean }) => scriptMean).toFixed(2);
  const p95 = best(({ scriptP95 }) => scriptP95).toFixed(2);
  stdout.write(`script per frame, panning: mean ${mean} ms, p95 ${p95} ms of thread time\n`);
  const most = Math.max(...all.map(({ frames }) => frames));
  stdout.write(`instances ${instances}, draw calls ${drawCalls}, frames in 3 s ${most}\n`);
});
