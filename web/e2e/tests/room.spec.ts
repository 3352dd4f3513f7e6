// The room of the plot in a low window, and what stands around it.

import type { Page } from "@playwright/test";
import { cli } from "../lib/cli.js";
import { renamed, testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";
import { Views } from "../lib/views.js";
import { answering } from "../lib/work.js";

const OOM = "recorded/t26/oom_observer.pickle.gz";
const REAL = "recorded/t26/gpt_small.pickle.gz";

/** Recordings with a timeline: small and large, with a finding, with long names of steps. */
const SAMPLES = [
  OOM,
  REAL,
  "recorded/gpt_leak.pickle.gz",
  "recorded/ranks_fsdp/rank2_memory_snapshot.pickle.gz",
];

/** The plot's share of the page's height. */
async function shareOf(page: Page): Promise<number> {
  const plot = await page.getByTestId("timeline-canvas").boundingBox();
  return (plot?.height ?? 0) / (page.viewportSize()?.height ?? 1);
}

test("the plot has 55 % of the page at 1440x900, and a selection leaves it", async ({
  viewer,
  page,
}) => {
  await page.setViewportSize({ width: 1440, height: 900 });
  const views = new Views(viewer);
  for (const file of SAMPLES) {
    await views.show(testData(file));
    await answering(page);
    await expect.poll(() => shareOf(page), file).toBeGreaterThanOrEqual(0.55);
    await views.setState({ filter: "category:activation" });
    await expect(viewer.details).toBeVisible();
    expect(await shareOf(page), `${file}, selected`).toBeGreaterThanOrEqual(0.55);
  }
});

test("with ranks the plot has 45 % of the page at 1280x720", async ({ viewer, page }) => {
  await page.setViewportSize({ width: 1280, height: 720 });
  const ranks = [2, 3].map((rank) => `recorded/ranks_fsdp/rank${rank}_memory_snapshot.pickle.gz`);
  await viewer.open(ranks.map(testData));
  await viewer.plot.drawn();
  await answering(page);
  await expect.poll(() => shareOf(page)).toBeGreaterThanOrEqual(0.45);
});

test("the panel is there only while something is selected", async ({ viewer, page }) => {
  const views = new Views(viewer);
  await views.show(testData(REAL));
  await expect(viewer.details).toHaveCount(0);
  await page.keyboard.press("p");
  const clear = page.getByTestId("moment").getByRole("button", { name: "Clear" });
  await expect(clear).toBeVisible();
  await expect(viewer.details).toHaveCount(0);
  await views.setState({ filter: "category:activation" });
  await expect(viewer.details).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(viewer.details).toHaveCount(0);
  await clear.click();
  await expect(clear).toHaveCount(0);
});

test("the hint for new users covers nothing of the plot", async ({ viewer, page }) => {
  await page.getByTestId("start-oom").click();
  await viewer.settled();
  await viewer.place("Timeline");
  const hint = page.getByTestId("hint");
  await expect(hint).toBeVisible();
  await viewer.plot.drawn();
  const [line, plot] = [
    await hint.boundingBox(),
    await page.getByTestId("view-timeline").locator(".plot").boundingBox(),
  ];
  if (!line || !plot) throw new Error("nothing is shown");
  expect(line.y).toBeGreaterThanOrEqual(plot.y + plot.height - 0.5);
});

test("a category of the overview chooses its blocks, and the flame graph lights them", async ({
  viewer,
  page,
}) => {
  await page
    .getByTestId("open-files")
    .setInputFiles([renamed(REAL, "rank0.pickle.gz"), renamed(REAL, "rank1.pickle.gz")]);
  const views = new Views(viewer);
  await viewer.expectRow("rank1.pickle.gz", "ready");
  const overview = await views.main("Ranks");
  const categories = overview.getByRole("list", { name: "Categories" });
  const optimizer = categories.getByRole("button", { name: "optimizer state" });
  await optimizer.click();
  await expect(optimizer).toHaveAttribute("aria-pressed", "true");
  await expect.poll(async () => (await viewer.state()).filter).toBe("category:optimizer_state");
  const { categories: known } = cli("peak", REAL);
  const bytes = known.find(({ category }) => category === "optimizer_state")?.bytes;
  const flame = await views.main("Flame");
  await expect(flame.getByTestId("flame-matched")).toHaveAttribute("data-value", String(bytes));
  await expect(flame).toContainText("widths are of all blocks");
  await views.main("Ranks");
  await optimizer.click();
  await views.main("Flame");
  await expect(flame).not.toContainText("widths are of all blocks");
});
