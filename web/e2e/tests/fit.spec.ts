// Every view at three widths: nothing is cut, nothing overlaps, nothing is out of reach.

import { renamed } from "../lib/data.js";
import { misfits } from "../lib/fit.js";
import { expect, test } from "../lib/test.js";
import type { Viewer } from "../lib/viewer.js";
import { answering, expectPlace, flameOfBoth } from "../lib/work.js";

const SIZES = [
  [1440, 900],
  [1000, 700],
  [420, 800],
] as const;
const MAIN = [
  "summary",
  "timeline",
  "modules",
  "flame",
  "source",
  "map",
  "segments",
  "ranks",
  "matrix",
  "compare",
] as const;
const SHEETS = ["blocks", "events", "ab", "peak", "steps"] as const;
const PLACES = ["Summary", "Timeline", "Code", "Allocator", "Ranks", "Compare"];

/** Two ranks with long names, so that the rail, the names and the comparison are filled. */
async function open(viewer: Viewer): Promise<void> {
  const folder = "experiments-2026-11-cluster-a";
  await viewer.open([
    renamed("recorded/ranks_fsdp/rank2_memory_snapshot.pickle.gz", `${folder}_rank2.pickle.gz`),
    renamed("recorded/gpt_leak.pickle.gz", `${folder}_rank3.pickle.gz`),
  ]);
  await viewer.expectRow(`${folder}_rank2.pickle.gz`, "ready");
  await viewer.expectRow(`${folder}_rank3.pickle.gz`, "ready");
  await answering(viewer.page);
}

test("nothing is cut or covered in any view, at 1440, 1000 and 420 px", async ({
  viewer,
  page,
}) => {
  test.setTimeout(180_000);
  for (const [width, height] of SIZES) {
    await page.setViewportSize({ width, height });
    expect.soft(await misfits(page), `landing at ${width}`).toEqual([]);
  }
  await open(viewer);
  for (const [width, height] of SIZES) {
    await page.setViewportSize({ width, height });
    // Tabs are measured in the frame after a resize, and answers arrive later.
    const check = (name: string) =>
      expect
        .configure({ soft: true })
        .poll(() => misfits(page), { message: `${name} at ${width}`, timeout: 3000 })
        .toEqual([]);
    for (const view of MAIN) {
      await page.evaluate((to) => window.vramscope.setState({ view: to, sheet: "none" }), view);
      await expectPlace(page, view, "main");
      await check(view);
      if (view === "compare") {
        await check(await flameOfBoth(page));
        await page.getByRole("button", { name: "over time", exact: true }).click();
      }
    }
    await page.evaluate(() => window.vramscope.setState({ view: "timeline" }));
    await page.evaluate(() => window.vramscope.setState({ tracks: "segments" }));
    await expectPlace(page, "segments", "track");
    await check("the track of segments");
    await page.evaluate(() => window.vramscope.setState({ tracks: "none" }));
    for (const sheet of SHEETS) {
      await page.evaluate((to) => window.vramscope.setState({ sheet: to }), sheet);
      await expectPlace(page, sheet, "sheet");
      await check(`${sheet} in the sheet`);
    }
    await test.step(`every place can be reached at ${width}`, async () => {
      const tabs = page.getByRole("tablist", { name: "Places" }).getByRole("tab");
      await expect(tabs).toHaveCount(PLACES.length);
      for (const name of PLACES) {
        await viewer.place(name);
        await expect(
          page.getByTestId(`place-${name.toLowerCase().replace(" ", "-")}`),
        ).toBeVisible();
      }
    });
  }
});
