// One large file on a page that may share memory: several threads answer, and what they say is what
// one says.

import { copyFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import type { Page, TestInfo } from "@playwright/test";
import { cli } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";
import type { Viewer } from "../lib/viewer.js";
import { Views, valuesOf } from "../lib/views.js";

const BUILT = existsSync(fileURLToPath(new URL("../../site/dist/threads", import.meta.url)));
test.skip(
  !BUILT,
  "THREADS ARE NOT TESTED: the build with threads is absent, rust-src could not be had",
);

const REAL = "recorded/t26/gpt_small.pickle.gz";

/** From this many bytes on a file is large. */
const LARGE = 64 << 20;

/** A recording that is large: before all else its pickle makes a row of zeros, and drops it. */
function large(info: TestInfo): string {
  const plain = new Uint8Array(gunzipSync(new Uint8Array(readFileSync(testData(REAL)))));
  const begin = new DataView(new ArrayBuffer(5));
  begin.setUint8(0, 0x42);
  begin.setUint32(1, LARGE, true);
  const path = info.outputPath("large.pickle");
  const zeros = [new Uint8Array(begin.buffer), new Uint8Array(LARGE), new Uint8Array([0x30])];
  writeFileSync(
    path,
    new Uint8Array(Buffer.concat([plain.subarray(0, 2), ...zeros, plain.subarray(2)])),
  );
  return path;
}

const threadsOf = (page: Page) =>
  page.workers().filter((worker) => worker.url().includes("workerHelpers")).length;

/** How many threads a large file alone gets. */
const most = (page: Page) => page.evaluate(() => Math.min(navigator.hardwareConcurrency, 8));

/** What runs, as the settings say it. */
async function told(views: Views): Promise<{ threads: number; text: string }> {
  const line = (await views.drawer("Settings")).locator("[data-key=threads] dd");
  return { threads: Number(await line.getAttribute("data-value")), text: await line.innerText() };
}

/** What several views say of the file that is open. */
async function said(viewer: Viewer, views: Views): Promise<Map<string, unknown>> {
  const answers = new Map<string, unknown>([["peak", await viewer.peak.innerText()]]);
  const row = (await views.main("Overview")).getByTestId("overview-row");
  await expect(row.locator("[data-category]").first()).toBeAttached();
  answers.set("overview", [await row.innerText(), await valuesOf(row.locator("[data-value]"))]);
  answers.set("anomalies", await (await views.main("Anomalies")).innerText());
  await views.main("Timeline");
  await views.cursor(3000);
  answers.set("moment", await views.moment.innerText());
  await views.drawer("Blocks");
  const table = views.table("blocks");
  const { total } = cli("blocks", REAL);
  await table.expectTotal(total);
  for (const column of ["requested", "lifetime", "category", "call site"]) {
    const first = () => table.rows.first().innerText();
    const before = await first();
    await table.sortBy(column);
    await expect.poll(first).not.toBe(before);
    answers.set(column, [
      await table.texts("address"),
      await table.values("size"),
      await table.texts("category"),
    ]);
  }
  return answers;
}

/** The same page from a host that does not isolate it. */
async function withoutIsolation(page: Page): Promise<void> {
  await page.route("/", async (route) => {
    const response = await route.fetch();
    const headers = Object.entries(response.headers()).filter(
      ([name]) => !name.startsWith("cross-origin-"),
    );
    await route.fulfill({ response, headers: Object.fromEntries(headers) });
  });
}

async function reload(viewer: Viewer): Promise<Views> {
  await viewer.page.goto("/");
  await viewer.page.waitForFunction(() => "vramscope" in window);
  return new Views(viewer);
}

const statsOf = (page: Page) => page.evaluate(() => window.vramscope.stats().ranks[0]);

test("a large file has the cores to itself, and the answers are those of one thread", async ({
  viewer,
  page,
}, info) => {
  const threads = await most(page);
  test.skip(threads < 2, "THREADS ARE NOT TESTED: this machine has one core");
  const file = large(info);
  let views = new Views(viewer);
  await views.show(file);
  expect(await page.evaluate(() => crossOriginIsolated)).toBe(true);
  expect(threadsOf(page)).toBe(threads);
  expect(await told(views)).toEqual({ threads, text: `${threads} threads` });
  const { wasmBytes = 0 } = (await statsOf(page)) ?? {};
  expect(wasmBytes).toBeGreaterThan(1 << 20);
  expect(wasmBytes % 65_536, "whole pages of memory").toBe(0);
  const many = await said(viewer, views);
  const { blocks } = cli("blocks", REAL, "--sort", "size");
  expect(JSON.stringify(many.get("requested"))).toContain(String(blocks.at(-1)?.bytes));

  // They end with their worker.
  await views.open(testData("scenarios/f01.pickle"));
  await expect.poll(() => threadsOf(page)).toBe(0);

  await withoutIsolation(page);
  views = await reload(viewer);
  await views.show(file);
  expect(await page.evaluate(() => crossOriginIsolated)).toBe(false);
  expect(threadsOf(page)).toBe(0);
  expect(await told(views)).toEqual({
    threads: 1,
    text: "1 thread: this page is not cross-origin isolated",
  });
  expect(await said(viewer, views)).toEqual(many);
});

test("small files, and large ones of which there are more than cores, have a thread each", async ({
  viewer,
  page,
}, info) => {
  const views = new Views(viewer);
  await views.show(testData(REAL));
  expect(await told(views)).toMatchObject({
    threads: 1,
    text: expect.stringContaining("large files"),
  });
  const file = large(info);
  const many = Array.from({ length: (await most(page)) + 1 }, (_, rank) => {
    const path = info.outputPath(`rank${rank}.pickle`);
    copyFileSync(file, path);
    return path;
  });
  await viewer.open(many);
  await viewer.expectRow("rank0.pickle", "ready");
  expect(threadsOf(page)).toBe(0);
  expect((await statsOf(page))?.threads).toBe(1);
});

for (const [what, blocked] of [
  ["module", /_threads_bg\.wasm$/],
  ["threads", /workerHelpers\.js$/],
] as const) {
  test(`a large file is read by one thread when the ${what} cannot be had`, async ({
    viewer,
    page,
  }, info) => {
    viewer.expectedErrors.push("Failed to load resource", "ERR_FAILED");
    const refused = page.waitForEvent("requestfailed");
    await page.context().route(blocked, (route) => route.abort());
    const views = new Views(viewer);
    await views.show(large(info));
    expect((await refused).url()).toMatch(blocked);
    expect(await statsOf(page)).toMatchObject({ threads: 1 });
    await views.drawer("Blocks");
    await views.table("blocks").expectTotal(cli("blocks", REAL).total);
  });
}

/**
 * The script of the threads, where each stops when it is given its first work, as a panic would
 * make it.
 */
function stopping(script: string, address: string): string {
  const stop = `(() => {
    console.error("panicked at crates/some/where.rs:7:5:\\nindex out of bounds\\n\\nStack:\\n\\nat a wall of it");
    const stops = Uint8Array.of(0,97,115,109,1,0,0,0, 1,4,1,96,0,0, 3,2,1,0, 7,5,1,1,102,0,0, 10,5,1,3,0,0,11);
    new WebAssembly.Instance(new WebAssembly.Module(stops)).exports.f();
  })()`;
  const from = new URL("../../../vramscope_worker_threads.js", address);
  const thread = script
    .replace("'../../../vramscope_worker_threads.js'", JSON.stringify(from))
    .replace("pkg.wbg_rayon_start_worker(receiver)", stop);
  // What a worker's worker asks for cannot be routed: it begins as a blob.
  const blob = `new Blob([${JSON.stringify(thread)}], { type: "text/javascript" })`;
  return script.replace(
    "new URL('./workerHelpers.js', import.meta.url)",
    `URL.createObjectURL(${blob})`,
  );
}

test("a thread that stops does not leave its file waiting, and one thread reads it again", async ({
  viewer,
  page,
}, info) => {
  const threads = await most(page);
  test.skip(threads < 2, "THREADS ARE NOT TESTED: this machine has one core");
  viewer.expectedErrors.push("panicked at", "unreachable");
  await page.context().route(/workerHelpers\.js$/, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, body: stopping(await response.text(), route.request().url()) });
  });
  const views = new Views(viewer);
  const workers = () => page.workers().length;
  await expect.poll(workers).toBe(2);
  await viewer.open(large(info));
  await expect(viewer.rows).toHaveAttribute("data-state", "error");
  await expect(viewer.rows).toContainText(
    "stopped on this file: panicked at crates/some/where.rs:7:5: index out of",
  );
  // The worker, which waits for the threads, has ended with them.
  await expect.poll(workers).toBe(2);
  await page.getByTestId("view-timeline").getByTestId("load-again").click();
  await viewer.plot.drawn();
  expect(await statsOf(page)).toMatchObject({ threads: 1 });
  await views.drawer("Blocks");
  await views.table("blocks").expectTotal(cli("blocks", REAL).total);
});
