// Threads on a page with shared memory: a large file is read by several.

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
  "threads are not tested: the site was built without them (`cargo xtask test threads`)",
);

const REAL = "recorded/t26/gpt_small.pickle.gz";

/** Minimum bytes of a file that is read by several threads. */
const LARGE = 64 << 20;

/** A large recording: its pickle starts with a bytes object of zeros that is popped. */
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

/** Threads for a single large file. */
const most = (page: Page) => page.evaluate(() => Math.min(navigator.hardwareConcurrency, 8));

/** The number of threads that the settings show, beside the keys. */
async function told({ viewer: { page } }: Views): Promise<{ threads: number; text: string }> {
  await page.getByRole("button", { name: "Keys and gestures" }).click();
  const line = page.locator("[data-key=threads] dd");
  const threads = Number(await line.getAttribute("data-value"));
  const text = await line.innerText();
  await page.keyboard.press("Escape");
  await expect(line).toHaveCount(0);
  return { threads, text };
}

/** Contents of several views of the open file. */
async function said(viewer: Viewer, views: Views): Promise<Map<string, unknown>> {
  const answers = new Map<string, unknown>([["peak", await viewer.peak.innerText()]]);
  const summary = await views.main("Summary");
  await expect(summary.getByTestId("lever").first()).toBeVisible();
  await expect(summary.getByTestId("summary-lines")).toBeVisible();
  answers.set("summary", [
    await summary.innerText(),
    await valuesOf(summary.locator("[data-value]")),
  ]);
  await views.main("Timeline");
  await views.cursor(3000);
  answers.set("moment", await views.moment.innerText());
  await views.sheet("Blocks");
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

/** Removes the headers that isolate the page. */
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

test("a large file is read by all cores, with the answers of one thread", async ({
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

  // The threads end with their worker.
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

test("small files, and more large files than cores, are read by one thread each", async ({
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
test("a large file is read by one thread when module or threads cannot be fetched", async ({
  viewer,
  page,
}, info) => {
  viewer.expectedErrors.push("Failed to load resource", "ERR_FAILED");
  const file = large(info);
  for (const blocked of [/_threads_bg\.wasm$/, /workerHelpers\.js$/]) {
    const refused = page.waitForEvent("requestfailed", (request) => blocked.test(request.url()));
    await page.context().route(blocked, (route) => route.abort());
    const views = await reload(viewer);
    await views.show(file);
    await refused;
    expect(await statsOf(page)).toMatchObject({ threads: 1 });
    await views.sheet("Blocks");
    await views.table("blocks").expectTotal(cli("blocks", REAL).total);
    await page.context().unroute(blocked);
  }
});

/** Changes the script of the threads: each stops with its first work, as with a panic. */
function stopping(script: string, address: string): string {
  const stop = `(() => {
    const panic = "panicked at crates/some/where.rs:7:5:\\nindex out of bounds";
    console.error(panic + "\\n\\nStack:\\n\\nat many frames");
    const stops = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 7, 5,
      1, 1, 102, 0, 0, 10, 5, 1, 3, 0, 0, 11);
    new WebAssembly.Instance(new WebAssembly.Module(stops)).exports.f();
  })()`;
  const from = new URL("../../../vramscope_worker_threads.js", address);
  const thread = script
    .replace("'../../../vramscope_worker_threads.js'", JSON.stringify(from))
    .replace("pkg.wbg_rayon_start_worker(receiver)", stop);
  // Playwright cannot route requests of a worker's worker, so the script starts as a blob.
  const blob = `new Blob([${JSON.stringify(thread)}], { type: "text/javascript" })`;
  return script.replace(
    "new URL('./workerHelpers.js', import.meta.url)",
    `URL.createObjectURL(${blob})`,
  );
}

test("a thread that stops is an error on the row, and one thread reads the file again", async ({
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
  // The worker that waits for the threads has ended with them.
  await expect.poll(workers).toBe(2);
  await page.getByTestId("view-timeline").getByTestId("load-again").click();
  await viewer.plot.drawn();
  expect(await statsOf(page)).toMatchObject({ threads: 1 });
  await views.sheet("Blocks");
  await views.table("blocks").expectTotal(cli("blocks", REAL).total);
});
