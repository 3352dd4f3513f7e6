// What the plots look like, beside pictures of them that have been looked at.

import { fileURLToPath } from "node:url";
import type { Locator, Page } from "@playwright/test";
import { testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";
import { expectPlace, marks, restedRange, still, work } from "../lib/work.js";

// Canvases of about 900 x 300; fonts differ between machines, so only what is drawn is compared.
// The page forbids the style that hides the rest.
test.use({ viewport: { width: 1240, height: 420 }, bypassCSP: true });
const LOOK = {
  maxDiffPixelRatio: 0.02,
  stylePath: fileURLToPath(new URL("../lib/canvas-only.css", import.meta.url)),
};

/** A canvas whose picture no longer changes. */
async function settled(page: Page, canvas: Locator): Promise<Locator> {
  await page.mouse.move(2, 2);
  await expect(canvas).toBeVisible();
  await still(() => page.evaluate(() => window.vramscope.stats().instances));
  return canvas;
}

for (const theme of ["light", "dark"] as const) {
  test(`timeline, segments and flame graph look as they did, ${theme}`, async ({
    viewer,
    page,
  }) => {
    await page.emulateMedia({ colorScheme: theme });
    await work(viewer, testData("recorded/t26/gpt_small.pickle.gz"));
    await page.evaluate(() => window.vramscope.setState({ drawer: "none" }));
    await expect(marks(page, "finding")).not.toHaveCount(0);
    await restedRange(viewer);
    await expect(await settled(page, viewer.canvas)).toHaveScreenshot(
      `timeline-${theme}.png`,
      LOOK,
    );
    for (const [key, view] of [
      ["3", "segments"],
      ["4", "flame"],
    ] as const) {
      await page.keyboard.press(key);
      await expectPlace(page, view, "main");
      await expect(
        page.locator(view === "flame" ? ".flame-name" : ".segment-label").first(),
      ).toBeAttached();
      await expect(await settled(page, page.getByTestId(`${view}-canvas`))).toHaveScreenshot(
        `${view}-${theme}.png`,
        LOOK,
      );
    }
  });
}
