// What can break under the page: a worker that stops, memory that ends, a browser without WebGL, a
// host that sends something else. Each is said in words, the rest goes on, and there is a way back.

import { copyFileSync } from "node:fs";
import { basename } from "node:path";
import type { Locator, Page } from "@playwright/test";
import { cli, deviceOf } from "../lib/cli.js";
import { renamed, testData } from "../lib/data.js";
import { blind, bounded, end, fragile, reload, WORKER } from "../lib/faults.js";
import { expect, test } from "../lib/test.js";
import type { Viewer } from "../lib/viewer.js";
import { Views } from "../lib/views.js";
import { answering, pane, rangeOf, restedRange } from "../lib/work.js";

const REAL = "recorded/t26/gpt_small.pickle.gz";
const SMALL = "scenarios/f01.pickle";
const peakOf = (file: string) => String(deviceOf(file).requested_bytes.peak);

const again = (page: Page) => page.getByTestId("view-timeline").getByTestId("load-again");

/** Two ranks, of which the first is looked at, and all views. */
async function two(viewer: Viewer): Promise<Views> {
  const views = new Views(viewer);
  await views.open([renamed(REAL, "rank0.pickle.gz"), renamed(SMALL, "rank1.pickle")]);
  await viewer.expectRow("rank1.pickle", "ready");
  await viewer.row("rank0.pickle.gz").click();
  await answering(viewer.page);
  await viewer.plot.drawn();
  return views;
}

/** The words in a row and in the center, which are no wall. */
async function expectWords(viewer: Viewer, path: string, words: RegExp): Promise<void> {
  await viewer.expectRow(path, "error");
  await expect(viewer.row(path)).toContainText(words);
  const center = viewer.page.getByTestId("view-timeline").locator(".plot-state");
  await expect(center).toContainText(words);
  expect((await center.innerText()).length).toBeLessThan(400);
  await expect(center.getByRole("button")).toHaveCount(1);
}

for (const [how, what, words] of [
  ["throw", "throws outside of a question", /A worker has stopped: Error: boom/],
  [
    "panic",
    "panics in a question",
    /stopped on this file: panicked at crates\/some\/where\.rs:7:5: index out of bounds$/,
  ],
  ["outgrow", "has no more memory for a question", /Memory ran out: a browser tab has 4 GiB/],
  [
    "overflow",
    "needs one table of more than its addresses",
    /Memory ran out: a browser tab has 4 GiB/,
  ],
] as const) {
  test(`a worker that ${what} says so on its row, and is loaded again where it was`, async ({
    viewer,
    page,
  }) => {
    viewer.expectedErrors.push("boom", "panicked at");
    await fragile(page);
    const views = await two(viewer);
    await views.setState({ drawer: "blocks" });
    await views.zoomTo(1000, 2000);
    const [block] = cli("blocks", REAL).blocks;
    const sel = `0:${block?.address}@${block?.alloc_event}`;
    expect(await page.evaluate((name) => window.vramscope.select(name), sel)).toBe(true);
    const before = await restedRange(viewer);
    await end(page, "rank0.pickle.gz", how);
    // A question, for those who wait for one.
    if (how !== "throw")
      await views
        .table("blocks")
        .sortBy("lifetime")
        .catch(() => undefined);
    await viewer.expectRow("rank0.pickle.gz", "error");
    await expect(viewer.row("rank0.pickle.gz").locator(".rank-error")).toHaveText(words);
    await expectWords(viewer, "rank0.pickle.gz", new RegExp(words.source.replace("$", "")));
    // The table does not stand empty, nor does it say all that again.
    await expect(pane(page, "blocks")).toContainText("rank0.pickle.gz is not loaded");
    await expect(pane(page, "blocks").getByTestId("load-again")).toBeHidden();

    // What was known stays, and the others go on.
    await views.main("Overview");
    const line = page.locator("[data-testid=overview-row][data-path='rank0.pickle.gz']");
    await expect(line.locator("[data-column=peak]")).toHaveAttribute("data-value", peakOf(REAL));
    await expect(line).toContainText("not loaded");
    await expect(pane(page, "blocks").getByTestId("load-again")).toBeVisible();
    await viewer.row("rank1.pickle").click();
    await views.main("Timeline");
    await viewer.plot.drawn();
    await expect(viewer.peak).toHaveAttribute("data-value", peakOf(SMALL));

    await viewer.row("rank0.pickle.gz").click();
    await again(page).click();
    await viewer.expectRow("rank0.pickle.gz", "ready");
    await expect(viewer.peak).toHaveAttribute("data-value", peakOf(REAL));
    await views.table("blocks").expectTotal(cli("blocks", REAL).total);
    // In view is what was.
    await expect.poll(async () => (await viewer.state()).sel).toBe(sel);
    const apart = async () => {
      const { x0, x1 } = await rangeOf(viewer);
      return Math.abs(x0 - before.x0) + Math.abs(x1 - before.x1);
    };
    // A frame can take its time.
    await expect.poll(apart).toBeLessThan(1);
  });
}

test("a coordinator that stops is replaced, and told again what it knew", async ({
  viewer,
  page,
}) => {
  viewer.expectedErrors.push("panicked at");
  await fragile(page);
  const views = await two(viewer);
  const overview = await views.main("Overview");
  const lines = overview.getByTestId("overview-row");
  await expect(lines).toHaveCount(2);
  await end(page, "coordinator", "panic");
  await overview.getByRole("button", { name: "peak", exact: true }).click();
  await expect(page.getByRole("alert")).toContainText(
    /stopped over the run: .* index out of bounds/,
  );
  await page.getByRole("button", { name: "Dismiss" }).click();
  await overview.getByRole("button", { name: "peak", exact: true }).click();
  await expect(lines.first()).toHaveAttribute("data-path", "rank1.pickle");
  await expect(lines).toHaveCount(2);
  await expect(page.getByRole("alert")).toHaveCount(0);
  await overview.getByRole("button", { name: "peak", exact: true }).click();
  await expect(lines.first()).toHaveAttribute("data-path", "rank0.pickle.gz");
});

test("memory that runs out while a file is read is told from a fault, and the small files are read", async ({
  viewer,
  page,
}) => {
  await page.route(/vramscope_worker[^/]*\.wasm$/, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, body: bounded(await response.body(), 6) });
  });
  await reload(page);
  await viewer.open([renamed(REAL, "rank0.pickle.gz"), renamed(SMALL, "rank1.pickle")]);
  await viewer.row("rank0.pickle.gz").click();
  await expectWords(viewer, "rank0.pickle.gz", /Memory ran out/);
  await viewer.expectRow("rank1.pickle", "ready");
  await expect(viewer.rowPeak("rank1.pickle")).toHaveAttribute("data-value", peakOf(SMALL));
  await again(page).click();
  await expectWords(viewer, "rank0.pickle.gz", /Memory ran out/);
});

for (const [what, answer] of [
  ["is not there", { status: 404, body: "not here" }],
  ["is of another type", { contentType: "text/plain", body: "postMessage(1)" }],
] as const) {
  test(`a worker whose script ${what} is told on the row, and started when it is there`, async ({
    viewer,
    page,
  }) => {
    viewer.expectedErrors.push("Failed to load", "expected a JavaScript", "404");
    await page.context().route(WORKER, (route) => route.fulfill(answer));
    await reload(page);
    await viewer.open(testData(SMALL));
    await expect(page.getByRole("alert")).toContainText(
      /worker could not be started.*Reload the page/,
    );
    await expect(page.getByRole("alert")).not.toContainText("blob:http");
    await page.context().unroute(WORKER);
    await viewer.show(testData(SMALL));
    await expect(viewer.peak).toHaveAttribute("data-value", peakOf(SMALL));
    await expect(page.getByRole("alert")).toHaveCount(0);
  });
}

for (const [what, answer, words] of [
  ["is not there", { status: 404, body: "not here" }, /\.wasm answered 404.*Reload the page/],
  [
    "is a page",
    { contentType: "text/html", body: "<!doctype html>" },
    /\.wasm is not WebAssembly.*text\/html/,
  ],
] as const) {
  test(`WebAssembly that ${what} is told at once, and had when it is there`, async ({
    viewer,
    page,
  }) => {
    viewer.expectedErrors.push("Failed to load", "404", "WebAssembly");
    const modules = /vramscope_(view|worker)_bg[^/]*\.wasm$/;
    await page.route(modules, (route) => route.fulfill(answer));
    await reload(page);
    await expect(page.getByRole("alert")).toContainText(words);
    await page.unroute(modules);
    await viewer.show(testData(SMALL));
    await expect(viewer.peak).toHaveAttribute("data-value", peakOf(SMALL));
  });
}

test("a content security policy without WebAssembly is told with what it lacks", async ({
  viewer,
  page,
}) => {
  viewer.expectedErrors.push("Content Security Policy", "WebAssembly");
  await page.route("/", async (route) => {
    const response = await route.fetch();
    await route.fulfill({
      response,
      body: (await response.text()).replace(" 'wasm-unsafe-eval'", ""),
    });
  });
  await reload(page);
  const alert = page.getByRole("alert");
  await expect(alert).toContainText(
    "Content-Security-Policy does not let WebAssembly run. Its script-src needs 'wasm-unsafe-eval'",
  );
  await viewer.open(testData(SMALL));
  await expect(alert).toContainText("'wasm-unsafe-eval'");
});

test("a content security policy that refuses workers is told with what it lacks", async ({
  viewer,
  page,
}) => {
  viewer.expectedErrors.push("Content Security Policy");
  await page.route("/", async (route) => {
    const response = await route.fetch();
    const refusing = (await response.text()).replace(
      "worker-src 'self' blob:",
      "worker-src 'none'",
    );
    await route.fulfill({ response, body: refusing });
  });
  await reload(page);
  await viewer.open(testData(SMALL));
  const alert = page.getByRole("alert");
  await expect(alert).toContainText("A worker could not be started");
  await expect(alert).toContainText("Content-Security-Policy lacks worker-src 'self' blob:");
  await expect(viewer.rows).toHaveCount(0);
  await page.unroute("/");
  await reload(page);
  await viewer.show(testData(SMALL));
  await expect(viewer.peak).toHaveAttribute("data-value", peakOf(SMALL));
});

test("a file that has changed since it was opened says so when it is read again, and the others go on", async ({
  viewer,
  page,
}, info) => {
  // More than there are workers: some files are released, and read again from the disk where they
  // are looked at.
  const paths = Array.from({ length: 11 }, (_, rank) => info.outputPath(`rank${rank}.pickle`));
  for (const path of paths) copyFileSync(testData(SMALL), path);
  await viewer.open(paths);
  const names = paths.map((path) => basename(path));
  for (const name of names) await viewer.expectRow(name, "ready");
  const released = () =>
    page.evaluate(() =>
      window.vramscope
        .stats()
        .ranks.flatMap(({ path, wasmBytes }) => (wasmBytes === 0 ? path : [])),
    );
  await expect.poll(async () => (await released()).length).toBeGreaterThan(1);
  const [changed = "", left = ""] = await released();
  copyFileSync(testData("scenarios/f02.pickle"), info.outputPath(changed));
  await viewer.row(changed).click();
  const words = "The file cannot be read: it changed or moved on disk.";
  await viewer.expectRow(changed, "error");
  await expect(viewer.row(changed)).toContainText(words);
  const center = page.getByTestId("view-timeline").locator(".plot-state");
  await expect(center).toContainText(words);
  await expect(center).toContainText("Open it again.");
  // The browser has let go of it: to try again is of no use.
  await expect(center.getByRole("button")).toHaveCount(0);
  await viewer.row(left).click();
  await viewer.plot.drawn();
  await expect(viewer.peak).toHaveAttribute("data-value", peakOf(SMALL));
  // As it is now.
  await viewer.open(info.outputPath(changed));
  await viewer.expectRow(changed, "ready");
  await expect(viewer.peak).toHaveAttribute("data-value", peakOf("scenarios/f02.pickle"));
});

const CANVASES = [
  ["Timeline", "timeline-canvas"],
  ["Segments", "segments-canvas"],
  ["Flame", "flame-canvas"],
] as const;

/** The share of a canvas that has another color than most of it. */
async function painted(views: Views, testid: string): Promise<number> {
  const plot = views.plot(testid);
  const picture = await plot.picture();
  const { width, height } = picture.png;
  const ground = [picture.color(width - 2, 2)];
  return picture.share(70, 4, width, height - 30, ground);
}

const without = (page: Page, tab: string): Locator =>
  page.getByTestId(`view-${tab.toLowerCase()}`).locator(".plot-state");

test("without WebGL 2 there are no pictures, and everything else", async ({ viewer, page }) => {
  await blind(page);
  await reload(page);
  const views = new Views(viewer);
  await views.open([renamed(REAL, "rank0.pickle.gz"), renamed(SMALL, "rank1.pickle")]);
  await viewer.row("rank0.pickle.gz").click();
  await expect(viewer.peak).toHaveAttribute("data-value", peakOf(REAL));
  for (const [tab] of CANVASES) {
    await views.main(tab);
    await expect(without(page, tab)).toContainText(
      /cannot be drawn here.*WebGL 2.*hardware acceleration/s,
    );
    await expect(without(page, tab).getByRole("button")).toHaveCount(1);
  }
  const overview = await views.main("Overview");
  await expect(
    overview.locator("[data-path='rank0.pickle.gz'] [data-column=peak]"),
  ).toHaveAttribute("data-value", peakOf(REAL));
  // Categories have their colors.
  await expect(overview.locator(".swatch").first()).toHaveCSS(
    "background-color",
    /rgb\((?!0, 0, 0)/,
  );
  await views.main("Anomalies");
  await expect(page.locator("[data-testid=finding]").first()).toBeVisible();
  await views.drawer("Blocks");
  await views.table("blocks").expectTotal(cli("blocks", REAL).total);
  await views.table("blocks").rows.first().click();
  await expect(viewer.details.locator("[data-reference]")).toBeVisible();
  await views.main("Compare");
  await expect(page.getByTestId("compare-totals")).toBeVisible();

  await page.evaluate(() => Object.assign(window, { blind: false }));
  await views.main("Segments");
  await without(page, "Segments").getByRole("button", { name: "Try again" }).click();
  await expect.poll(() => painted(views, "segments-canvas")).toBeGreaterThan(0.05);
  await views.main("Timeline");
  await viewer.plot.drawn();
});

for (const [tab, testid] of CANVASES) {
  test(`a GL context that ${tab} has lost is told, and comes back or is had anew`, async ({
    viewer,
    page,
  }) => {
    const views = new Views(viewer);
    await views.show(testData(REAL));
    await views.main(tab);
    await expect.poll(() => painted(views, testid)).toBeGreaterThan(0.05);
    const before = await painted(views, testid);
    const range = await restedRange(viewer);
    const lose = (back: boolean) =>
      page.getByTestId(testid).evaluate(async (canvas: HTMLCanvasElement, restored) => {
        const lost = canvas.getContext("webgl2")?.getExtension("WEBGL_lose_context");
        lost?.loseContext();
        await new Promise((resolve) => setTimeout(resolve, 200));
        if (restored) lost?.restoreContext();
      }, back);
    await lose(true);
    await expect(without(page, tab)).toHaveCount(0);
    await expect
      .poll(async () => Math.abs((await painted(views, testid)) - before))
      .toBeLessThan(0.01);

    await lose(false);
    await expect(without(page, tab)).toContainText("The picture was lost");
    await without(page, tab).getByRole("button", { name: "Draw again" }).click();
    await expect(without(page, tab)).toHaveCount(0);
    await expect
      .poll(async () => Math.abs((await painted(views, testid)) - before))
      .toBeLessThan(0.01);
    expect(await restedRange(viewer)).toEqual(range);
  });
}
