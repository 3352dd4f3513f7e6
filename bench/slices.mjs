// How long the worker of a large file is deaf, in a headless browser: `node bench/slices.mjs FILE
// [isolated]`, after `cargo xtask build`. What every view asks for the first time is asked, one
// after the other; while that is made the worker answers nobody between two of its tasks. Prints
// for each how many of them there were and how long the longest took, in milliseconds of the
// thread's own time and on the clock, by the browser's own trace.

import { argv, stdout } from "node:process";
import { withPages } from "./page.mjs";

const [file, kind = "plain"] = argv.slice(2);

/** What is done, and to whom: each is the first of its kind. */
const STEPS = [
  ["from the first picture on", () => undefined],
  ["bands", (page) => page.getByRole("button", { name: "Bands" }).click()],
  ...["category", "size", "age", "stream", "segment"].map((color) => [
    `color by ${color}`,
    (page) => page.getByTestId("color-by").selectOption(color),
  ]),
  ["overview", (page) => page.keyboard.press("1")],
  ["segments", (page) => page.keyboard.press("3")],
  ["segments, emptiest", (page) => page.getByTestId("segment-sort").selectOption("occupancy")],
  ["flame graph", (page) => page.keyboard.press("4")],
  ["flame graph, bytes × time", (page) => page.getByRole("button", { name: "bytes × time" }).click()],
  ["anomalies", (page) => page.keyboard.press("5")],
  ["timeline", (page) => page.keyboard.press("2")],
  ["blocks", (page) => page.getByRole("tab", { name: "Blocks" }).click()],
  ["events", (page) => page.getByRole("tab", { name: "Events" }).click()],
  ["settings", (page) => page.getByRole("tab", { name: "Settings" }).click()],
  ["a search", (page) => page.getByRole("searchbox").fill("forward")],
];

/** Nothing is being made, for a while. */
async function settled(page) {
  for (let still = 0; still < 6; ) {
    await page.waitForTimeout(50);
    still = (await page.locator(".busy, [aria-busy=true]").count()) > 0 ? 0 : still + 1;
  }
}

/** The tasks of all workers while something is done. */
async function traced(page, act) {
  const session = await page.context().newCDPSession(page);
  const events = [];
  session.on("Tracing.dataCollected", ({ value }) => events.push(...value));
  const over = new Promise((resolve) => session.once("Tracing.tracingComplete", resolve));
  const includedCategories = ["devtools.timeline", "disabled-by-default-devtools.timeline"];
  await session.send("Tracing.start", { transferMode: "ReportEvents", traceConfig: { includedCategories, excludedCategories: ["*"] } });
  await act();
  await session.send("Tracing.end");
  await over;
  await session.detach();
  const isWorker = ({ name, args }) => name === "thread_name" && args.name.startsWith("DedicatedWorker");
  const workers = new Set(events.filter(isWorker).map(({ pid, tid }) => `${pid}/${tid}`));
  return events.filter(({ name, ph, pid, tid }) => name === "RunTask" && ph === "X" && workers.has(`${pid}/${tid}`));
}

await withPages(kind === "isolated", async (open) => {
  const page = await open();
  await page.getByTestId("open-files").setInputFiles(file);
  await page.waitForFunction(() => window.vramscope.stats().strips > 0, null, { timeout: 0 });
  for (const [name, act] of STEPS) {
    const tasks = await traced(page, async () => {
      await act(page);
      await settled(page);
    });
    const most = (of) => Math.max(0, ...tasks.map(of)) / 1000;
    const all = tasks.reduce((sum, { tdur = 0 }) => sum + tdur, 0) / 1000;
    stdout.write(
      `${name.padEnd(28)}${String(tasks.length).padStart(6)} tasks, longest ${most(({ tdur = 0 }) => tdur).toFixed(1).padStart(6)} ms (${most(({ dur }) => dur).toFixed(1)} on the clock), all ${all.toFixed(0)} ms\n`,
    );
  }
});
