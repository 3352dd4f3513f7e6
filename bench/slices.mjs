// Measures how long the worker of a large file handles no messages, in a headless browser: `node
// bench/slices.mjs FILE [isolated]`, after `cargo xtask build`. Opens every view for the first
// time, one after the other. The worker handles messages only between two tasks. Prints the number
// of tasks and the longest one for each view, in milliseconds of thread time and of wall time, from
// the browser's trace.

import { argv, stdout } from "node:process";
import { withPages } from "./page.mjs";

const [file, kind = "plain"] = argv.slice(2);

const show = (state) => (page) => page.evaluate((to) => window.vramscope.setState(to), state);

/** Names of the views, and how each is opened. */
const STEPS = [
  ["from the first picture on", () => undefined],
  ...["stack", "size", "age", "stream", "segment", "category"].map((color) => [
    `color by ${color}`,
    (page) => page.getByTestId("color-by").selectOption(color),
  ]),
  ["segments below", show({ tracks: "segments" })],
  ["ranks", show({ view: "ranks" })],
  ["summary", show({ view: "summary" })],
  ["modules", show({ view: "modules" })],
  ["flame graph", show({ view: "flame" })],
  [
    "flame graph, bytes × time",
    (page) => page.getByRole("button", { name: "bytes × time" }).click(),
  ],
  ["files and lines", show({ view: "source" })],
  ["map", show({ view: "map" })],
  ["segments", show({ view: "segments" })],
  ["segments, emptiest", (page) => page.getByTestId("segment-sort").selectOption("occupancy")],
  ["what if", show({ view: "what-if" })],
  ["blocks", show({ view: "timeline", sheet: "blocks" })],
  ["events", show({ view: "timeline", sheet: "events" })],
  ["steps", show({ view: "timeline", sheet: "steps" })],
  ["a search", (page) => page.getByTestId("search").fill("forward")],
];

/** Waits until no view has been busy for 300 ms. */
async function settled(page) {
  for (let still = 0; still < 6; ) {
    await page.waitForTimeout(50);
    const busy = await page.locator(".busy, [aria-busy=true]").count();
    still = busy > 0 ? 0 : still + 1;
  }
}

/** The tasks of all workers while `act` runs. */
async function traced(page, act) {
  const session = await page.context().newCDPSession(page);
  const events = [];
  session.on("Tracing.dataCollected", ({ value }) => events.push(...value));
  const over = new Promise((resolve) => session.once("Tracing.tracingComplete", resolve));
  const includedCategories = ["devtools.timeline", "disabled-by-default-devtools.timeline"];
  await session.send("Tracing.start", {
    transferMode: "ReportEvents",
    traceConfig: { includedCategories, excludedCategories: ["*"] },
  });
  await act();
  await session.send("Tracing.end");
  await over;
  await session.detach();
  const isWorker = ({ name, args }) =>
    name === "thread_name" && args.name.startsWith("DedicatedWorker");
  const workers = new Set(events.filter(isWorker).map(({ pid, tid }) => `${pid}/${tid}`));
  return events.filter(
    ({ name, ph, pid, tid }) => name === "RunTask" && ph === "X" && workers.has(`${pid}/${tid}`),
  );
}

await withPages(kind === "isolated", async (open) => {
  const page = await open();
  await page.evaluate(() => window.vramscope.setState({ view: "timeline" }));
  await page.getByTestId("open-files").setInputFiles(file);
  await page.waitForFunction(() => window.vramscope.stats().strips > 0, null, { timeout: 0 });
  for (const [name, act] of STEPS) {
    const tasks = await traced(page, async () => {
      await act(page);
      await settled(page);
    });
    const most = (of) => Math.max(0, ...tasks.map(of)) / 1000;
    const all = tasks.reduce((sum, { tdur = 0 }) => sum + tdur, 0) / 1000;
    const count = String(tasks.length).padStart(6);
    const thread = most(({ tdur = 0 }) => tdur)
      .toFixed(1)
      .padStart(6);
    const wall = most(({ dur }) => dur).toFixed(1);
    stdout.write(`${name.padEnd(28)}${count} tasks, longest ${thread} ms (${wall} ms wall time), `);
    stdout.write(`all ${all.toFixed(0)} ms\n`);
  }
});
