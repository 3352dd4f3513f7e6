// The room of the plot in a low window, and what stands around it.

import { cli } from "../lib/cli.js";
import { renamed, testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";
import { Views } from "../lib/views.js";
import { answering } from "../lib/work.js";

const OOM = "recorded/t26/oom_observer.pickle.gz";
const REAL = "recorded/t26/gpt_small.pickle.gz";

test("in a low window verdict and legend are one row each, and the drawer is closed", async ({
  viewer,
  page,
}) => {
  await page.setViewportSize({ width: 1000, height: 700 });
  const views = new Views(viewer);
  await views.show(testData(OOM));
  await answering(page);
  const plot = page.getByTestId("view-timeline").locator(".plot");
  const height = async () => (await plot.boundingBox())?.height ?? 0;
  await expect.poll(height).toBeGreaterThanOrEqual(300);
  await expect(page.getByTestId("verdict")).toHaveAttribute("data-open", "false");
  const legend = page.locator(".legend-line");
  expect((await legend.boundingBox())?.height).toBeLessThan(30);
  await expect(page.locator("[data-place=drawer]")).toHaveCount(0);

  // A drawer that was opened stays, whatever the window's size.
  await views.drawer("Blocks");
  for (const size of [
    { width: 1440, height: 900 },
    { width: 1000, height: 700 },
  ]) {
    await page.setViewportSize(size);
    await expect(views.pane("Blocks")).toHaveAttribute("data-place", "drawer");
  }
});

test("a window that grows opens the drawer that it had no room for", async ({ viewer, page }) => {
  const views = new Views(viewer);
  await page.setViewportSize({ width: 1000, height: 700 });
  await views.show(testData(REAL));
  await expect(page.locator("[data-place=drawer]")).toHaveCount(0);
  await page.setViewportSize({ width: 1440, height: 900 });
  await expect(views.pane("Segments")).toHaveAttribute("data-place", "drawer");
});

test("the hint for new users covers nothing of the plot", async ({ viewer, page }) => {
  await page.getByTestId("start-oom").click();
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
  const overview = await views.main("Overview");
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
  await views.main("Overview");
  await optimizer.click();
  await views.main("Flame");
  await expect(flame).not.toContainText("widths are of all blocks");
});
