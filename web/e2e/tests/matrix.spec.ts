// The matrix of ranks and the ranks pinned below the timeline, with the numbers of the program.

import { cpSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type { TestInfo } from "@playwright/test";
import { expectNoBarrier, THEMES } from "../lib/barriers.js";
import { cliIn } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { life, made, onDisk } from "../lib/made.js";
import { expect, test } from "../lib/test.js";
import type { Viewer } from "../lib/viewer.js";
import { Views } from "../lib/views.js";

const MIB = 2 ** 20;
/** Height of a row in CSS pixels. */
const ROW = 20;
/** Rows that the page shows. */
const ROWS = 40;

const nameOf = (rank: number) => `rank${rank}_memory_snapshot.pickle.gz`;

/** Opens the four ranks of a run in which rank 2 holds more, and copies them for the program. */
async function openSkewed(viewer: Viewer, info: TestInfo) {
  const folder = info.outputPath("run");
  mkdirSync(folder, { recursive: true });
  const paths = [0, 1, 2, 3].map((rank) => {
    const path = join(folder, nameOf(rank));
    cpSync(testData(`findings/ranks_fsdp2_skew/${nameOf(rank)}`), path);
    return path;
  });
  return { folder, views: await openAll(viewer, paths) };
}

async function openAll(viewer: Viewer, paths: string[]): Promise<Views> {
  const views = new Views(viewer);
  await views.open(paths);
  const ready = viewer.page.locator("[data-testid=rank-row][data-state=ready]");
  await expect(ready).toHaveCount(paths.length, { timeout: 60_000 });
  return views;
}

function matrixOf(folder: string) {
  const [run] = cliIn(folder, "ranks", ".").runs;
  if (!run) throw new Error("no run");
  return run;
}

test("cells are those of the program, by pointer and by keyboard", async ({
  viewer,
  page,
}, info) => {
  const { folder, views } = await openSkewed(viewer, info);
  const run = matrixOf(folder);
  const pane = await views.main("Matrix");
  await expect(pane.getByTestId("matrix-text")).toHaveText(run.text[0] ?? "");
  await expect(pane.getByTestId("matrix-outliers").getByRole("listitem")).toHaveText(
    run.text.slice(1),
  );
  await expect(pane.getByTestId("matrix-cluster")).toHaveText(run.clusters.map((c) => c.text));
  await expect(pane.getByTestId("matrix-rank")).toHaveText(run.columns.map((c) => `${c.rank}`));
  const rows = pane.getByTestId("matrix-row");
  await expect(rows).toHaveCount(Math.min(ROWS, run.rows.length));
  for (const [index, { site, median, max }] of run.rows.slice(0, ROWS).entries()) {
    const row = rows.nth(index);
    await expect(row.locator(".matrix-site")).toHaveText(site);
    await expect(row.locator("[data-column=median]")).toHaveAttribute("data-value", `${median}`);
    await expect(row.locator("[data-column=max]")).toHaveAttribute("data-value", `${max}`);
  }
  const canvas = pane.getByTestId("matrix");
  const tip = pane.getByTestId("matrix-tip").locator("[data-value]");
  const shows = async (row: number, column: number) => {
    const { bytes, median } = run.rows[row] ?? { bytes: [], median: 0 };
    const held = bytes[column] ?? Number.NaN;
    await expect(tip).toHaveAttribute("data-value", `${held}`);
    await expect(tip).toHaveAttribute("data-change", `${held - median}`);
    await expect(tip).toContainText(`on rank ${run.columns[column]?.rank}`);
  };
  await test.step("the pointer", async () => {
    const box = await canvas.boundingBox();
    if (!box) throw new Error("no canvas");
    for (const [row, column] of [
      [0, 2],
      [0, 3],
      [4, 0],
      [7, 1],
    ] as const) {
      const wide = box.width / run.columns.length;
      await page.mouse.move(box.x + (column + 0.5) * wide, box.y + (row + 0.5) * ROW);
      await shows(row, column);
    }
    await page.mouse.move(0, 0);
    await expect(tip).toHaveCount(0);
  });
  const odd = run.columns.findIndex(({ rank }) => rank === run.outliers[0]?.rank);
  await test.step("arrow keys begin at the outlier", async () => {
    await canvas.focus();
    await page.keyboard.press("ArrowDown");
    await shows(0, odd);
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowRight");
    await shows(1, odd + 1);
    await page.keyboard.press("Home");
    await shows(1, 0);
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("End");
    await shows(0, run.columns.length - 1);
    const { cell } = await viewer.state();
    expect(cell).toBe(`${run.columns.at(-1)?.rank}:${run.rows[0]?.site}`);
  });
  await test.step("a link has the cell", async () => {
    const site = run.rows[3]?.site;
    await views.setState({ view: "matrix", cell: `1:${site}` });
    await expect(pane.locator(".matrix-cursor")).toHaveAttribute("style", /top: 60px/);
    expect((await viewer.state()).view).toBe("matrix");
  });
  await test.step("a call site chooses its blocks in all views", async () => {
    const outlier = rows.filter({ hasText: "r_fsdp2.py:40 main" });
    await outlier.getByRole("button").click();
    await expect(outlier).toHaveAttribute("data-chosen", "true");
    expect((await viewer.state()).filter).toBe('"site:r_fsdp2.py:40 main"');
    await outlier.getByRole("button").click();
    expect((await viewer.state()).filter).toBeUndefined();
  });
  for (const theme of THEMES) {
    await page.emulateMedia({ colorScheme: theme });
    await expectNoBarrier(page, theme, "matrix", "serious", ".matrix");
  }
  await test.step("Enter and a click compare the rank with the usual one", async () => {
    const expectPair = async (column: number) => {
      const { path, usual_rank: usual } = run.columns[column] ?? { path: "", usual_rank: -1 };
      await expect(views.pane("Compare")).toHaveAttribute("data-place", "main");
      await expect.poll(async () => (await viewer.state()).path).toBe(path.replace("./", ""));
      expect((await viewer.state()).a).toBe(nameOf(usual));
    };
    await canvas.focus();
    await page.keyboard.press("Home");
    await page.keyboard.press("Enter");
    await expectPair(0);
    await page.evaluate(() => window.vramscope.setState({ view: "matrix" }));
    const box = await canvas.boundingBox();
    if (!box) throw new Error("no canvas");
    await page.mouse.click(box.x + ((odd + 0.5) / run.columns.length) * box.width, box.y + 5);
    await expectPair(odd);
  });
});

test("stages of a pipeline are clusters", async ({ viewer, page }, info) => {
  const folder = info.outputPath("run");
  mkdirSync(folder, { recursive: true });
  const paths = [0, 1, 2, 3, 4, 5, 6, 7].map((rank) => {
    const stage = rank % 2;
    const sites: [string, number][] = [
      [stage === 0 ? "embedding" : "head", 300 + rank],
      ["layers", 200 - 80 * stage],
      ...(rank === 5 ? ([["keep", 250]] as [string, number][]) : []),
    ];
    const events = sites.flatMap(([site, mib], index) =>
      life(0x100000000 * (index + 1), mib * MIB, index, undefined, site),
    );
    return onDisk(made("run.json", events, []), join(folder, `rank${rank}.json`));
  });
  const views = await openAll(viewer, paths);
  const run = matrixOf(folder);
  expect(run.clusters.map(({ ranks }) => ranks)).toEqual([
    [0, 2, 4, 6],
    [1, 3, 5, 7],
  ]);
  const pane = await views.main("Matrix");
  await expect(pane.getByTestId("matrix-cluster")).toHaveText(run.clusters.map((c) => c.text));
  await expect(pane.getByTestId("matrix-rank")).toHaveText([
    "0",
    "2",
    "4",
    "6",
    "1",
    "3",
    "5",
    "7",
  ]);
  await expect(pane.locator("[data-testid=matrix-rank][data-outlier=true]")).toHaveText("5");
  await expect(pane.getByTestId("matrix-outliers")).toHaveText(run.outliers[0]?.text ?? "");
  await expect(pane.locator(".matrix-edge")).toHaveCount(1);
  await test.step("colors differ from the median, and cells without bytes are empty", async () => {
    // The middle of each cell of a row, as pixels.
    const colors = (row: number) =>
      pane.getByTestId("matrix").evaluate(
        (element, { at, high }) => {
          const canvas = element as HTMLCanvasElement;
          const scale = canvas.height / canvas.getBoundingClientRect().height;
          const wide = canvas.width / 8;
          return Array.from({ length: 8 }, (_, column) => {
            const [x, y] = [(column + 0.1) * wide, (at * high + 3) * scale];
            const pixel = canvas.getContext("2d")?.getImageData(x, y, 1, 1).data ?? [];
            return [...pixel].slice(0, 3).join(" ");
          });
        },
        { at: row, high: ROW },
      );
    const row = run.rows.findIndex(({ site }) => site.endsWith(" keep"));
    const cells = await colors(row);
    const keep = run.columns.findIndex(({ rank }) => rank === 5);
    expect(new Set(cells.filter((_, column) => column !== keep)).size).toBe(1);
    expect(cells[keep]).not.toBe(cells[0]);
    const layers = await colors(run.rows.findIndex(({ site }) => site.endsWith(" layers")));
    expect(new Set(layers.slice(0, 4)).size).toBe(1);
    expect(layers[0]).not.toBe(layers[4]);
    await page.emulateMedia({ colorScheme: "dark" });
    await expect.poll(() => colors(row)).not.toEqual(cells);
  });
});

test("a single file has no places for ranks", async ({ viewer, page }) => {
  const views = new Views(viewer);
  await views.show(testData(`findings/ranks_fsdp2_skew/${nameOf(2)}`));
  const tabs = page.getByRole("tablist", { name: "Places", exact: true });
  await expect(tabs.getByRole("tab")).toHaveCount(4);
  await page.keyboard.press("5");
  await expect(page.getByTestId("place-timeline")).toBeVisible();
  await page.keyboard.press("k");
  await expect(page.getByTestId("pinned-lane")).toHaveCount(0);
});

/** A rank whose allocations are 7 us later, and larger, than those of the rank before. */
function rankOnOneClock(folder: string, rank: number): string {
  const events = Array.from({ length: 30 }, (_, index) => {
    const at = 100 * index + 7 * rank;
    const size = ((index % 5) + 1 + rank) * MIB;
    return life(0x10000000 * (index + 1), size, at, at + 350, `site${index % 3}`);
  });
  return onDisk(made("run.json", events.flat(), []), join(folder, `rank${rank}.json`));
}

test("pinned ranks share the axis, the scale and the cursor of the timeline", async ({
  viewer,
  page,
}, info) => {
  const folder = info.outputPath("run");
  mkdirSync(folder, { recursive: true });
  const ranks = [0, 1, 2, 3];
  const views = await openAll(
    viewer,
    ranks.map((rank) => rankOnOneClock(folder, rank)),
  );
  const name = (rank: number) => `rank${rank}.json`;
  const peaks = ranks.map(
    (rank) => cliIn(folder, "summary", name(rank)).files[0]?.devices[0]?.requested_bytes.peak,
  );
  await viewer.row(name(2)).click();
  await views.main("Timeline");
  await viewer.plot.drawn();
  await page.keyboard.press("k");
  await viewer.row(name(3)).hover();
  await viewer.row(name(3)).getByTestId("pin").click();
  await viewer.row(name(0)).click();
  await viewer.plot.drawn();
  const lanes = page.getByTestId("pinned-lane");
  const lane = (rank: number) =>
    page.locator(`[data-testid=pinned-lane][data-path="${name(rank)}"]`);
  await expect(lanes).toHaveCount(2);
  const held = (rank: number) => lane(rank).locator("[data-column=held]");
  for (const event of [20, 41]) {
    await views.cursor(event);
    const { time_us: time } = cliIn(folder, "state", name(0), "--at", `${event}`);
    for (const rank of [2, 3]) {
      await expect(lane(rank)).toHaveAttribute("data-aligned", "clock");
      const peak = lane(rank).locator("[data-column=peak]");
      await expect(peak).toHaveAttribute("data-value", `${peaks[rank]}`);
      const then = cliIn(folder, "state", name(rank), "--at", `${time}`);
      await expect(held(rank)).toHaveAttribute("data-value", `${then.requested_bytes}`);
    }
  }
  const top = page.getByTestId("pinned").locator(".pinned-head [data-value]");
  await expect(top).toHaveAttribute("data-value", `${Math.max(...peaks.map(Number))}`);
  await test.step("zooming moves all curves and the cursor", async () => {
    const boxes = () =>
      lanes
        .locator(".pinned-open svg")
        .evaluateAll((all) => all.map((svg) => svg.getAttribute("viewBox") ?? ""));
    const [whole] = await boxes();
    await views.zoomTo(32, 52);
    await expect.poll(async () => (await boxes())[0]).not.toBe(whole);
    await expect.poll(async () => new Set(await boxes()).size).toBe(1);
    // The state after event 41 begins at slot 42, in the middle of the view.
    const at = lane(2).locator(".pinned-cursor");
    await expect(at).toHaveAttribute("style", /--at: 0\.5;/);
    await page.keyboard.press("0");
  });
  for (const theme of THEMES) {
    await page.emulateMedia({ colorScheme: theme });
    await expectNoBarrier(page, theme, "pinned ranks", "serious", ".timeline");
  }
  await test.step("a click puts a lane in the center and the other rank in its place", async () => {
    await lane(2)
      .getByRole("button", { name: /center/ })
      .click();
    await expect.poll(async () => (await viewer.state()).path).toBe(name(2));
    expect((await viewer.state()).pins).toBe(`0:${name(0)}|0:${name(3)}`);
    const peak = lane(0).locator("[data-column=peak]");
    await expect(peak).toHaveAttribute("data-value", `${peaks[0]}`);
  });
  await test.step("links and commands pin and unpin", async () => {
    await lane(3).getByRole("button", { name: "Unpin rank 3" }).click();
    await expect(lanes).toHaveCount(1);
    await views.setState({ pins: `0:${name(1)}|0:${name(3)}` });
    await expect(lane(1)).toHaveCount(1);
    await expect(lanes).toHaveCount(2);
    await page.keyboard.press(">");
    await page.keyboard.type("unpin all");
    await page.keyboard.press("Enter");
    await expect(lanes).toHaveCount(0);
    expect((await viewer.state()).pins).toBeUndefined();
    await page.keyboard.press(">");
    await page.keyboard.type("pin rank 1 below");
    await page.keyboard.press("Enter");
    await expect(lane(1)).toHaveCount(1);
  });
});

test("ranks that were recorded one after the other are aligned by step", async ({
  viewer,
  page,
}, info) => {
  const { folder, views } = await openSkewed(viewer, info);
  const times = [0, 1].map((rank) => cliIn(folder, "info", nameOf(rank)).files[0]?.devices[0]);
  expect(times.every((device) => (device?.steps ?? 0) > 1)).toBe(true);
  await viewer.row(nameOf(1)).click();
  await viewer.plot.drawn();
  await page.keyboard.press("k");
  await viewer.row(nameOf(0)).click();
  const lane = page.getByTestId("pinned-lane");
  await expect(lane).toHaveAttribute("data-aligned", "step");
  await expect(lane).toContainText("aligned by step");
  await expect(lane.locator(".pinned-fill")).toHaveAttribute("d", /^M0 1000.*V/);
  await views.setState({ view: "ranks" });
  await expect(lane).toHaveCount(1);
});
