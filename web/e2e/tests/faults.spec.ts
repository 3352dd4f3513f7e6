// Faults below the page: a worker that stops, no memory, no WebGL, a server that answers something
// else. The page reports each in words, the rest keeps working, and the user can recover.
// It is long because each fault is one test with its own set-up.

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

/** Opens two ranks and selects the first. */
async function two(viewer: Viewer): Promise<Views> {
  const views = new Views(viewer);
  await views.open([renamed(REAL, "rank0.pickle.gz"), renamed(SMALL, "rank1.pickle")]);
  await viewer.expectRow("rank1.pickle", "ready");
  await viewer.row("rank0.pickle.gz").click();
  await answering(viewer.page);
  await viewer.plot.drawn();
  return views;
}

/** Expects the error on the row and in the center, short and with one button. */
async function expectWords(viewer: Viewer, path: string, words: RegExp): Promise<void> {
  await viewer.expectRow(path, "error");
  await expect(viewer.row(path)).toContainText(words);
  const center = viewer.page.getByTestId("view-timeline").locator(".plot-state");
  await expect(center).toContainText(words);
  expect((await center.innerText()).length).toBeLessThan(400);
  await expect(center.getByRole("button")).toHaveCount(1);
}

test("a worker that panics says so on its row, and its file is loaded again with its view", async ({
  viewer,
  page,
}) => {
  viewer.expectedErrors.push("panicked at");
  const words =
    /stopped on this file: panicked at crates\/some\/where\.rs:7:5: index out of bounds$/;
  await fragile(page);
  const views = await two(viewer);
  await views.setState({ sheet: "blocks" });
  await views.zoomTo(1000, 2000);
  const [block] = cli("blocks", REAL).blocks;
  const sel = `0:${block?.address}@${block?.alloc_event}`;
  expect(await page.evaluate((name) => window.vramscope.select(name), sel)).toBe(true);
  const before = await restedRange(viewer);
  await end(page, "rank0.pickle.gz", "panic");
  // The panic comes with the next query. An answer that was on its way may have been that one, and
  // then the table is gone.
  await views
    .table("blocks")
    .sortBy("lifetime", 5000)
    .catch(() => undefined);
  await viewer.expectRow("rank0.pickle.gz", "error");
  await expect(viewer.row("rank0.pickle.gz").locator(".rank-error")).toHaveText(words);
  await expectWords(viewer, "rank0.pickle.gz", new RegExp(words.source.replace("$", "")));
  // The table says why it is empty, without a second copy of the error.
  await expect(pane(page, "blocks")).toContainText("rank0.pickle.gz is not loaded");
  await expect(pane(page, "blocks").getByTestId("load-again")).toBeHidden();

  // Known numbers stay, and other files work.
  await views.main("Ranks");
  const line = page.locator("[data-testid=overview-row][data-path='rank0.pickle.gz']");
  await expect(line.locator("[data-column=peak]")).toHaveAttribute("data-value", peakOf(REAL));
  await expect(line).toContainText("not loaded");
  await views.sheet("Blocks");
  await expect(pane(page, "timeline").getByTestId("load-again")).toBeVisible();
  await viewer.row("rank1.pickle").click();
  await views.main("Timeline");
  await viewer.plot.drawn();
  await expect(viewer.peak).toHaveAttribute("data-value", peakOf(SMALL));

  await viewer.row("rank0.pickle.gz").click();
  await again(page).click();
  await viewer.expectRow("rank0.pickle.gz", "ready");
  await expect(viewer.peak).toHaveAttribute("data-value", peakOf(REAL));
  await views.table("blocks").expectTotal(cli("blocks", REAL).total);
  // Selection and range are restored.
  await expect.poll(async () => (await viewer.state()).sel).toBe(sel);
  const apart = async () => {
    const { x0, x1 } = await rangeOf(viewer);
    return Math.abs(x0 - before.x0) + Math.abs(x1 - before.x1);
  };
  await expect.poll(apart).toBeLessThan(1);
});

test("a worker that throws or has no more memory says so on its row", async ({ viewer, page }) => {
  viewer.expectedErrors.push("boom", "panicked at");
  await fragile(page);
  const views = new Views(viewer);
  const outOfMemory = /Memory ran out: a browser tab has 4 GiB/;
  const ends = [
    ["rank0.pickle", "throw", /A worker has stopped: Error: boom/],
    ["rank1.pickle", "outgrow", outOfMemory],
    ["rank2.pickle", "overflow", outOfMemory],
  ] as const;
  await views.open(ends.map(([path]) => renamed(SMALL, path)));
  await views.setState({ sheet: "blocks" });
  for (const [path, how, words] of ends) {
    await viewer.expectRow(path, "ready");
    await viewer.row(path).click();
    await views.table("blocks").expectTotal(cli("blocks", SMALL).total);
    await viewer.plot.drawn();
    await end(page, path, how);
    // Only "throw" needs no query.
    if (how !== "throw")
      await views
        .table("blocks")
        .sortBy("lifetime", 5000)
        .catch(() => undefined);
    await expectWords(viewer, path, words);
  }
});

test("a worker that is silent for a minute is given up, and the others stay", async ({
  viewer,
  page,
}) => {
  await page.clock.install();
  await fragile(page);
  const views = await two(viewer);
  await views.setState({ sheet: "blocks" });
  const table = views.table("blocks");
  await table.expectTotal(cli("blocks", REAL).total);
  const progress = page.getByRole("progressbar", { name: "Computing" });
  await expect(progress).toHaveCount(0);
  await end(page, "rank0.pickle.gz", "silence");
  await pane(page, "blocks").getByRole("button", { name: "lifetime" }).click();
  await expect(progress).toBeVisible();
  // Half a minute of silence may be a long step.
  const pass = async (questions: number) => {
    for (let asked = 0; asked < questions; asked += 1) {
      await page.clock.runFor(5000);
      // Lets the workers that live answer.
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(done)));
    }
  };
  await pass(6);
  await viewer.expectRow("rank0.pickle.gz", "ready");
  await pass(8);
  await expectWords(viewer, "rank0.pickle.gz", /A worker has not answered for a minute/);
  await expect(pane(page, "blocks")).toContainText("rank0.pickle.gz is not loaded");
  // The worker beside it lives, and a new one reads the file.
  await viewer.expectRow("rank1.pickle", "ready");
  await viewer.row("rank1.pickle").click();
  await table.expectTotal(cli("blocks", SMALL).total);
  await viewer.row("rank0.pickle.gz").click();
  await again(page).click();
  await viewer.expectRow("rank0.pickle.gz", "ready");
  await table.expectTotal(cli("blocks", REAL).total);
});

test("a coordinator that stops is replaced, and gets the files again", async ({ viewer, page }) => {
  viewer.expectedErrors.push("panicked at");
  await fragile(page);
  const views = await two(viewer);
  const overview = await views.main("Ranks");
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

test("memory that runs out while a file is read is reported, and small files are read", async ({
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

test("a worker whose script is missing is reported, and starts once the script is there", async ({
  viewer,
  page,
}) => {
  viewer.expectedErrors.push("Failed to load", "expected a JavaScript", "404");
  for (const answer of [
    { status: 404, body: "not here" },
    { contentType: "text/plain", body: "postMessage(1)" },
  ]) {
    await page.context().route(WORKER, (route) => route.fulfill(answer));
    await reload(page);
    await page.getByTestId("open-files").setInputFiles(testData(SMALL));
    const alert = page.getByRole("alert");
    await expect(alert).toContainText(/worker could not be started.*Reload the page/);
    await expect(alert).not.toContainText("blob:http");
    await page.context().unroute(WORKER);
    await viewer.show(testData(SMALL));
    await expect(viewer.peak).toHaveAttribute("data-value", peakOf(SMALL));
    await expect(alert).toHaveCount(0);
  }
});

test("WebAssembly that is missing is reported at once, and loaded once it is there", async ({
  viewer,
  page,
}) => {
  viewer.expectedErrors.push("Failed to load", "404", "WebAssembly");
  const modules = /vramscope_(view|worker)_bg[^/]*\.wasm$/;
  for (const [answer, words] of [
    [{ status: 404, body: "not here" }, /\.wasm answered 404.*Reload the page/],
    [
      { contentType: "text/html", body: "<!doctype html>" },
      /\.wasm is not WebAssembly.*text\/html/,
    ],
  ] as const) {
    await page.route(modules, (route) => route.fulfill(answer));
    await reload(page);
    await expect(page.getByRole("alert")).toContainText(words);
    await page.unroute(modules);
    await viewer.show(testData(SMALL));
    await expect(viewer.peak).toHaveAttribute("data-value", peakOf(SMALL));
  }
});

test("a content security policy that is too strict is reported with what it lacks", async ({
  viewer,
  page,
}) => {
  await test.step("WebAssembly is refused", async () => {
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
    const remedy = "Its script-src needs 'wasm-unsafe-eval'";
    await expect(alert).toContainText(
      `Content-Security-Policy does not let WebAssembly run. ${remedy}`,
    );
    await page.unroute("/");
  });
  await test.step("workers are refused", async () => {
    await page.route("/", async (route) => {
      const response = await route.fetch();
      const refusing = (await response.text()).replace(
        "worker-src 'self' blob:",
        "worker-src 'none'",
      );
      await route.fulfill({ response, body: refusing });
    });
    await reload(page);
    await page.getByTestId("open-files").setInputFiles(testData(SMALL));
    const alert = page.getByRole("alert");
    await expect(alert).toContainText("A worker could not be started");
    await expect(alert).toContainText("Content-Security-Policy lacks worker-src 'self' blob:");
    await expect(viewer.rows).toHaveCount(0);
    await page.unroute("/");
    await reload(page);
    await viewer.show(testData(SMALL));
    await expect(viewer.peak).toHaveAttribute("data-value", peakOf(SMALL));
  });
});

test("a file that changed since it was opened says so when it is read again", async ({
  viewer,
  page,
}, info) => {
  // More files than workers: some are released, and read again from the disk when selected.
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
  // The browser has dropped its handle, so a retry cannot work.
  await expect(center.getByRole("button")).toHaveCount(0);
  await viewer.row(left).click();
  await viewer.plot.drawn();
  await expect(viewer.peak).toHaveAttribute("data-value", peakOf(SMALL));
  // Opened again, the file has its new content.
  await viewer.open(info.outputPath(changed));
  await viewer.expectRow(changed, "ready");
  await expect(viewer.peak).toHaveAttribute("data-value", peakOf("scenarios/f02.pickle"));
});

const CANVASES = [
  ["Timeline", "timeline-canvas"],
  ["Segments", "segments-canvas"],
  ["Flame", "flame-canvas"],
] as const;

/** Share of the canvas that differs from its background. */
async function painted(views: Views, testid: string): Promise<number> {
  const plot = views.plot(testid);
  const picture = await plot.picture();
  const { width, height } = picture.png;
  const ground = [picture.color(width - 2, 2)];
  return picture.share(70, 4, width, height - 30, ground);
}

const without = (page: Page, tab: string): Locator =>
  page.getByTestId(`view-${tab.toLowerCase()}`).locator(".plot-state");

test("without WebGL 2 the pictures are missing, and everything else works", async ({
  viewer,
  page,
}) => {
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
  const overview = await views.main("Ranks");
  await expect(
    overview.locator("[data-path='rank0.pickle.gz'] [data-column=peak]"),
  ).toHaveAttribute("data-value", peakOf(REAL));
  // Swatches of categories have their colors without WebGL.
  await expect(overview.locator(".swatch").first()).toHaveCSS(
    "background-color",
    /rgb\((?!0, 0, 0)/,
  );
  await views.main("Summary");
  await expect(page.getByTestId("summary-lines").locator("tbody tr").first()).toBeVisible();
  await views.sheet("Blocks");
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

test("a GL context that a plot has lost is reported, and restored or made again", async ({
  viewer,
  page,
}) => {
  const views = new Views(viewer);
  await views.show(testData(REAL));
  for (const [tab, testid] of CANVASES) {
    await views.main(tab);
    await expect.poll(() => painted(views, testid)).toBeGreaterThan(0.05);
    const before = await painted(views, testid);
    const range = await restedRange(viewer);
    const lose = (back: boolean) =>
      page.getByTestId(testid).evaluate(async (canvas: HTMLCanvasElement, restored) => {
        const context = canvas.getContext("webgl2")?.getExtension("WEBGL_lose_context");
        const lost = new Promise((done) => canvas.addEventListener("webglcontextlost", done));
        context?.loseContext();
        await lost;
        // The viewer's listeners have run by the next frame.
        await new Promise((done) => requestAnimationFrame(done));
        if (restored) context?.restoreContext();
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
  }
});
