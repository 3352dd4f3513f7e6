// A run that is opened by its index: all ranks without reading a snapshot, and a rank's file when
// it is chosen. The numbers are those of the program.

import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import type { TestInfo } from "@playwright/test";
import { expectNoBarrier, THEMES } from "../lib/barriers.js";
import { cliIn, program } from "../lib/cli.js";
import { CLOCK, life, made, onDisk } from "../lib/made.js";
import { serve } from "../lib/served.js";
import { expect, test } from "../lib/test.js";
import type { Viewer } from "../lib/viewer.js";
import { Views } from "../lib/views.js";

const MIB = 2 ** 20;
const RANKS = 32;
const ITERATIONS = [0, 100];
const STAGES = 4;
/** The rank that holds more than the others of its stage. */
const SKEWED = 13;

const pathOf = (rank: number, iteration: number) => `run/iteration_${iteration}/rank${rank}.json`;
const stageOf = (rank: number) => Math.floor((rank * STAGES) / RANKS);

/** Writes the snapshots of a job with four stages of a pipeline, which grow from step to step. */
function makeRun(info: TestInfo): string {
  const job = info.outputPath("job");
  for (const iteration of ITERATIONS) {
    mkdirSync(join(job, `run/iteration_${iteration}`), { recursive: true });
    for (let rank = 0; rank < RANKS; rank += 1) {
      const stage = stageOf(rank);
      const sites: [string, number][] = [
        ...[0, 1, 2, 3, 4].map((layer): [string, number] => [
          `layer_${stage}_${layer}`,
          60 + 20 * stage + (rank % 8),
        ]),
        ["optimizer", 500 + iteration],
        ...(rank === SKEWED ? ([["prefetch", 256]] as [string, number][]) : []),
      ];
      const events = sites.flatMap(([site, mib], index) =>
        life(0x100000000 * (index + 1), mib * MIB, index, undefined, site),
      );
      const path = onDisk(made("snapshot.json", events, []), join(job, pathOf(rank, iteration)));
      // The server waits for files that may still be written.
      utimesSync(path, CLOCK / 1e6, CLOCK / 1e6);
    }
  }
  return job;
}

/** Writes the index of the run into a folder of it, and returns its path. */
function makeIndex(job: string, path = "run.vramscope"): string {
  execFileSync(program, ["export", "--as", "index", "run", "-o", path], {
    cwd: job,
    stdio: "pipe",
  });
  return join(job, path);
}

async function openIndex(viewer: Viewer, file: string) {
  await viewer.page.getByTestId("open-files").setInputFiles(file);
  const pane = viewer.page.getByTestId("view-ranks");
  await expect(pane.getByTestId("overview-row").first()).toBeVisible({ timeout: 30_000 });
  return pane;
}

const numbers = (values: (string | null)[]) => values.map(Number);

function runOf(job: string, iteration: number) {
  const [run] = cliIn(job, "ranks", `run/iteration_${iteration}`).runs;
  if (!run) throw new Error("no run");
  return run;
}

test("the overview shows the numbers of the program without reading a snapshot", async ({
  viewer,
  page,
}, info) => {
  const job = makeRun(info);
  const pane = await openIndex(viewer, makeIndex(job));
  const run = runOf(job, 100);
  const peaks = new Map(run.columns.map(({ rank, peak_bytes }) => [rank, peak_bytes]));
  const rows = pane.getByTestId("overview-row");

  await test.step("rows of the last iteration", async () => {
    await expect(rows).toHaveCount(RANKS);
    for (let rank = 0; rank < RANKS; rank += 1)
      await expect(rows.nth(rank).locator("[data-column=peak]")).toHaveAttribute(
        "data-value",
        String(peaks.get(rank)),
      );
    await expect(viewer.row(pathOf(0, 0))).toHaveAttribute("data-state", "unread");
    await expect(page.locator("[data-testid=rank-row]:not([data-state=unread])")).toHaveCount(0);
  });

  await test.step("clusters and the distribution", async () => {
    const clusters = pane.getByTestId("fleet-cluster");
    await expect(clusters.locator("th .link")).toHaveText(run.clusters.map(({ text }) => text));
    expect(run.clusters.map(({ ranks }) => ranks.length)).toEqual([8, 8, 8, 8]);
    const [first] = run.clusters;
    const most = Math.max(...(first?.ranks ?? []).map((rank) => peaks.get(rank) ?? 0));
    await expect(clusters.first().locator("td").nth(2)).toHaveAttribute("data-value", `${most}`);
    const bars = pane.getByTestId("fleet-bar");
    const counts = await bars.evaluateAll((all) =>
      all.map((bar) => bar.getAttribute("data-value")),
    );
    expect(numbers(counts).reduce((sum, count) => sum + count, 0)).toBe(RANKS);
  });

  await test.step("a bar and a cluster filter the rows", async () => {
    const bar = pane.getByTestId("fleet-bar").first();
    await bar.click();
    await expect(rows).toHaveCount(Number(await bar.getAttribute("data-value")));
    await bar.click();
    await expect(rows).toHaveCount(RANKS);
    await pane.getByTestId("fleet-cluster").nth(1).getByRole("button").click();
    await expect(rows).toHaveCount(8);
    await expect(pane.getByTestId("shown-ranks")).toHaveText("8 of 32 ranks");
    expect((await viewer.state()).ranks).toBe("cluster:2");
  });

  await test.step("the sentence names the outlier", async () => {
    await pane.getByTestId("rank-filter").fill("outlier");
    await expect(rows).toHaveCount(1);
    await expect(rows).toHaveAttribute("data-path", pathOf(SKEWED, 100));
    await expect(page.getByTestId("verdict")).toContainText(`rank ${SKEWED}`);
    await expect(pane.getByRole("list", { name: "Differences between ranks" })).toContainText(
      "prefetch",
    );
    await pane.getByTestId("rank-filter").fill("");
  });

  await test.step("sizes of parallel groups name the clusters", async () => {
    const sizes = pane.getByTestId("parallel-sizes");
    await sizes.fill("4/2/5");
    await expect(pane.getByTestId("parallel-text")).toHaveText(
      "4 x 2 x 5 are 40 ranks, and the run has 32",
    );
    await sizes.fill("4/2/4");
    await expect(pane.getByTestId("parallel-text")).toContainText("as in Megatron-LM");
    const places = pane.getByTestId("fleet-cluster").locator(".fleet-place");
    await expect(places).toHaveText(["pp 0", "pp 1", "pp 2", "pp 3"]);
  });

  await test.step("the slider chooses an iteration for the overview and the matrix", async () => {
    const before = runOf(job, 0);
    const slider = pane.getByTestId("iteration");
    await expect(slider).toHaveAttribute("aria-valuetext", "iteration 100");
    await slider.fill("0");
    await expect(pane.getByTestId("iteration-text")).toHaveText("iteration 0");
    const all = before.columns.map(({ peak_bytes }) => peak_bytes).toSorted((a, b) => a - b);
    await expect(pane.getByTestId("iteration-max")).toHaveAttribute("data-value", `${all.at(-1)}`);
    const row = rows.first();
    await expect(row).toHaveAttribute("data-path", pathOf(0, 0));
    const views = new Views(viewer);
    const matrix = await views.main("Matrix");
    await expect(matrix.getByTestId("matrix-text")).toHaveText(before.text[0] ?? "");
    const optimizer = before.rows.find(({ site }) => site.endsWith(" optimizer"));
    const shown = matrix.getByTestId("matrix-row").filter({ hasText: "optimizer" });
    await expect(shown.locator("[data-column=median]")).toHaveAttribute(
      "data-value",
      `${optimizer?.median}`,
    );
    expect((await viewer.state()).iteration).toBe("0");
  });
});

test("a rank is read when it is chosen, from the files that were opened with the index", async ({
  viewer,
  page,
}, info) => {
  const job = makeRun(info);
  makeIndex(job, "run/all.vramscope");
  await page.getByLabel("Open folder").first().setInputFiles(join(job, "run"));
  const pane = page.getByTestId("view-ranks");
  const rows = pane.getByTestId("overview-row");
  await expect(rows).toHaveCount(RANKS, { timeout: 30_000 });
  const read = page.locator("[data-testid=rank-row][data-state=ready]");
  await expect(read).toHaveCount(0);
  await rows.nth(SKEWED).click();
  await viewer.expectRow(pathOf(SKEWED, 100), "ready");
  await expect(read).toHaveCount(1);
  const { files } = cliIn(job, "summary", pathOf(SKEWED, 100));
  const peak = files[0]?.devices[0]?.requested_bytes.peak;
  await expect(viewer.rowPeak(pathOf(SKEWED, 100))).toHaveAttribute("data-value", `${peak}`);
  await expect(rows.nth(SKEWED).locator("[data-column=peak]")).toHaveAttribute(
    "data-value",
    `${peak}`,
  );

  await viewer.row(pathOf(2, 0)).click();
  await viewer.expectRow(pathOf(2, 0), "ready");
  await test.step("a column of the matrix", async () => {
    const matrix = await new Views(viewer).main("Matrix");
    const canvas = matrix.getByTestId("matrix");
    const box = await canvas.boundingBox();
    if (!box) throw new Error("no canvas");
    await page.mouse.move(box.x + 0.5 * (box.width / RANKS), box.y + 10);
    await expect(matrix.getByTestId("matrix-tip")).toContainText(
      "Click to read the file of rank 0",
    );
    await page.mouse.click(box.x + 0.5 * (box.width / RANKS), box.y + 10);
    await viewer.expectRow(pathOf(0, 100), "ready");
  });
  await expect(read).toHaveCount(3);
});

test("without the snapshots, the page says which file to open, and takes it", async ({
  viewer,
  page,
}, info) => {
  const job = makeRun(info);
  const pane = await openIndex(viewer, makeIndex(job));
  const rows = pane.getByTestId("overview-row");
  await rows.nth(3).click();
  const notice = page.getByRole("alert");
  await expect(notice).toContainText(`${pathOf(3, 100)} is not open`);
  await expect(rows).toHaveCount(RANKS);
  await page.getByTestId("open-files").setInputFiles(join(job, pathOf(3, 100)));
  await viewer.expectRow(pathOf(3, 100), "ready");
  await expect(notice).toHaveCount(0);
  await expect(rows).toHaveCount(RANKS);
});

test("text that is no index is refused", async ({ viewer, page }) => {
  await viewer.page.getByTestId("open-files").setInputFiles({
    name: "run.vramscope",
    mimeType: "application/octet-stream",
    buffer: gzipSync('{"schema":"vramscope.index/9"}\n'),
  });
  await expect(page.getByRole("alert")).toContainText("expected vramscope.index/1");
});

/** An index with the cards of a run as often as there are ranks, each with a rank of its own. */
function repeated(file: string, ranks: number): Buffer {
  const [head = "", ...lines] = gunzipSync(new Uint8Array(readFileSync(file)))
    .toString()
    .trimEnd()
    .split("\n");
  const last = lines.pop() ?? "";
  const cards = lines.map((line) => JSON.parse(line));
  const out = [head, ...lines];
  const none = { names: { sites: [], stacks: [] } };
  for (let rank = RANKS; rank < ranks; rank += 1) {
    const card = { ...cards[rank % RANKS], ...none, rank };
    out.push(JSON.stringify({ ...card, path: card.path.replace(/rank\d+/, `rank${rank}`) }));
  }
  return gzipSync(`${[...out, last].join("\n")}\n`);
}

test("4,096 ranks are shown, sorted and filtered", async ({ viewer, page }, info) => {
  const ranks = 4096;
  const job = makeRun(info);
  execFileSync(program, ["export", "--as", "index", "run/iteration_0", "-o", "one.vramscope"], {
    cwd: job,
  });
  const file = join(job, "many.vramscope");
  writeFileSync(file, new Uint8Array(repeated(join(job, "one.vramscope"), ranks)));
  await page.evaluate(() => {
    const root = window.vramscope.shadowRoot;
    root?.addEventListener("change", () => Object.assign(window, { from: performance.now() }), {
      capture: true,
      once: true,
    });
  });
  const pane = await openIndex(viewer, file);
  const shown = await page.evaluate(
    () => performance.now() - (window as unknown as { from: number }).from,
  );
  info.annotations.push({ type: "4,096 cards", description: `${Math.round(shown)} ms` });
  const rows = pane.getByTestId("overview-row");
  await expect(pane.getByRole("table", { name: "Ranks", exact: true })).toHaveAttribute(
    "aria-rowcount",
    String(ranks + 1),
  );
  await expect(pane.getByTestId("fleet-cluster").first()).toBeVisible({ timeout: 30_000 });
  const elements = await page.evaluate(
    () => window.vramscope.shadowRoot?.querySelectorAll("*").length ?? 0,
  );
  expect(elements, "elements of the page").toBeLessThan(6000);
  const largest = Math.max(...runOf(job, 0).columns.map(({ peak_bytes }) => peak_bytes));
  await pane
    .locator("th", { hasText: /^peak$/ })
    .getByRole("button")
    .click();
  await expect(rows.first().locator("[data-column=peak]")).toHaveAttribute(
    "data-value",
    String(largest),
  );
  await pane.getByTestId("rank-filter").fill("4000-4009");
  await expect(rows).toHaveCount(10);
  await expect(pane.getByTestId("shown-ranks")).toHaveText("10 of 4,096 ranks");
  await expect(page.locator("[data-testid=rank-row]:not([data-state=unread])")).toHaveCount(0);
});

test("the picture of a run has no barrier", async ({ viewer, page }, info) => {
  const pane = await openIndex(viewer, makeIndex(makeRun(info)));
  await expect(pane.getByTestId("fleet-cluster").first()).toBeVisible();
  for (const colorScheme of THEMES) {
    await page.emulateMedia({ colorScheme });
    await expectNoBarrier(page, colorScheme, "the overview of a run", "any");
  }
});

test("a served run is shown from the cards that the server makes", async ({ page }, info) => {
  const job = makeRun(info);
  const foreign = join(job, "run/config.json");
  writeFileSync(foreign, "{}");
  utimesSync(foreign, CLOCK / 1e6, CLOCK / 1e6);
  const served = await serve({}, join(job, "run"));
  try {
    await page.goto(served.address);
    const pane = page.getByTestId("view-ranks");
    const rows = pane.getByTestId("overview-row");
    await expect(rows).toHaveCount(RANKS, { timeout: 60_000 });
    await expect(pane.getByTestId("reading-cards")).toHaveCount(0, { timeout: 60_000 });
    await expect(page.locator("[data-testid=rank-row]")).toHaveCount(RANKS * ITERATIONS.length);
    await expect(page.locator("[data-testid=rank-row][data-state=unread]")).toHaveCount(
      RANKS * ITERATIONS.length,
    );
    await expect(page.getByTestId("skipped-files")).toHaveAttribute("data-value", "1");
    const [column] = runOf(job, 100).columns;
    const row = pane.locator(`[data-path$="iteration_100/rank${column?.rank}.json"]`);
    await expect(row.locator("[data-column=peak]")).toHaveAttribute(
      "data-value",
      `${column?.peak_bytes}`,
    );
    await row.click();
    const read = page.locator("[data-testid=rank-row][data-state=ready]");
    await expect(read).toHaveCount(1, { timeout: 30_000 });
    await expect(read.locator("[data-value]")).toHaveAttribute(
      "data-value",
      `${column?.peak_bytes}`,
    );
  } finally {
    await served.stop();
  }
});
