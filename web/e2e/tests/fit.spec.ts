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
  "overview",
  "timeline",
  "segments",
  "flame",
  "findings",
  "compare",
  "map",
  "matrix",
  "modules",
] as const;
const DRAWER = [
  "segments",
  "map",
  "peak",
  "flame",
  "source",
  "findings",
  "steps",
  "ab",
  "blocks",
  "events",
  "what-if",
  "settings",
] as const;

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
      await page.evaluate((to) => window.vramscope.setState({ view: to, drawer: "none" }), view);
      await expectPlace(page, view, "main");
      await check(view);
      if (view === "compare") {
        await check(await flameOfBoth(page));
        await page.getByRole("button", { name: "over time", exact: true }).click();
      }
    }
    await page.evaluate(() => window.vramscope.setState({ view: "timeline" }));
    for (const drawer of DRAWER) {
      await page.evaluate((to) => window.vramscope.setState({ drawer: to }), drawer);
      await expectPlace(page, drawer, "drawer");
      await check(`${drawer} in the drawer`);
    }
    await test.step(`every view can be reached at ${width}`, async () => {
      for (const [name, count] of [
        ["Views", MAIN.length],
        ["Drawer", DRAWER.length],
      ] as const) {
        const list = page.getByRole("tablist", { name, exact: true });
        const more = page.getByRole("button", { name: `More ${name.toLowerCase()}` });
        let reached = await list.getByRole("tab").count();
        if (await more.isVisible()) {
          await more.click();
          reached += await page.locator(".more-tabs .menu-item:visible").count();
          expect.soft(await misfits(page), `the menu of ${name} at ${width}`).toEqual([]);
          await page.keyboard.press("Escape");
          await expect(more).toBeFocused();
        }
        expect(reached, `${name} at ${width}`).toBe(count);
      }
    });
  }
});

test("a view in the menu opens, and its tab stays", async ({ viewer, page }) => {
  await page.setViewportSize({ width: 420, height: 800 });
  await open(viewer);
  const tabs = page.getByRole("tablist", { name: "Views", exact: true });
  await page.getByRole("button", { name: "More views" }).click();
  await page.locator(".menu-item", { hasText: "Compare" }).click();
  await expectPlace(page, "compare", "main");
  await expect(tabs.getByRole("tab", { selected: true })).toHaveText("Compare");
  await expect(page.locator(".more-tabs .menu-item", { hasText: "Compare" })).toHaveCount(0);
});
