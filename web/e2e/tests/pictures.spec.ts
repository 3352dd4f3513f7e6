// The plots against reference pictures in __screenshots__.

import { fileURLToPath } from "node:url";
import type { Locator, Page } from "@playwright/test";
import { testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";
import { expectPlace, pane, restedRange, still, work } from "../lib/work.js";

// Canvases of about 900 x 300. Fonts differ between machines, so lib/canvas-only.css hides texts.
// The page's policy would refuse that style.
test.use({ viewport: { width: 1240, height: 520 }, bypassCSP: true });
const MATCH = {
  maxDiffPixelRatio: 0.02,
  stylePath: fileURLToPath(new URL("../lib/canvas-only.css", import.meta.url)),
};

/** Waits until the canvas no longer changes. */
async function settled(page: Page, canvas: Locator): Promise<Locator> {
  await page.mouse.move(2, 2);
  await expect(canvas).toBeVisible();
  await still(() => page.evaluate(() => window.vramscope.stats().instances));
  return canvas;
}

test("timeline, segments and flame graph match their reference pictures", async ({
  viewer,
  page,
}) => {
  await page.emulateMedia({ colorScheme: "light" });
  await work(viewer, testData("recorded/t26/gpt_small.pickle.gz"));
  await page.evaluate(() => window.vramscope.setState({ sheet: "none" }));
  await expect(page.locator(".phases .track")).not.toHaveCount(0);
  await restedRange(viewer);
  for (const [view, label] of [
    ["timeline", ".tick-x"],
    ["segments", ".segment-label"],
    ["flame", ".flame-name"],
  ] as const) {
    await page.evaluate((to) => window.vramscope.setState({ view: to }), view);
    await expectPlace(page, view, "main");
    await expect(pane(page, view).locator(label).first()).toBeAttached();
    for (const theme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme: theme });
      await expect(page.locator(`[data-theme=${theme}]`)).toBeVisible();
      const canvas = await settled(page, page.getByTestId(`${view}-canvas`));
      await expect(canvas).toHaveScreenshot(`${view}-${theme}.png`, MATCH);
    }
  }
});
