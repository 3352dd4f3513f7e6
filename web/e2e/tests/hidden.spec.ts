// A viewer that is hidden while its files load, as in a tab or a panel that is opened later.

import type { Page } from "@playwright/test";
import { blocksOf, referenceOf } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { reload } from "../lib/faults.js";
import { expect, test } from "../lib/test.js";
import { answering, restedRange, still } from "../lib/work.js";

const REAL = testData("recorded/t26/gpt_small.pickle.gz");

const look = (page: Page, css: string) =>
  page.evaluate((style) => {
    window.vramscope.style.cssText = style;
  }, css);

/** Heights of the rows in the segments view. */
const rows = (page: Page) =>
  still(() =>
    page
      .locator(".segment-label")
      .evaluateAll((labels) => labels.map((label) => (label as HTMLElement).style.height)),
  );

test("a viewer that is opened while hidden shows its state once it is visible", async ({
  viewer,
  page,
}) => {
  const [block] = blocksOf(REAL);
  if (!block) throw new Error("no blocks");
  const sel = referenceOf(block);
  const asked = { view: "timeline", x0: 1000, x1: 2000, sel, tracks: "segments" } as const;
  const go = () => page.evaluate((state) => window.vramscope.setState(state), asked);
  const selected = () => expect.poll(async () => (await viewer.state()).sel).toBe(asked.sel);
  await go();
  await viewer.show(REAL);
  await answering(page);
  await selected();
  await expect(page.locator(".segment-label").first()).toBeVisible();
  const seen = await rows(page);
  for (const css of ["display: none", "height: 0; min-height: 0"]) {
    await test.step(css, async () => {
      await reload(page);
      await look(page, css);
      await go();
      await viewer.load(REAL);
      await answering(page);
      await selected();
      const { instances } = await page.evaluate(() => window.vramscope.stats());
      expect(instances, "a hidden viewer draws nothing").toBe(0);
      await look(page, "");
      await viewer.plot.drawn();
      expect(await restedRange(viewer)).toEqual({ x0: asked.x0, x1: asked.x1 });
      expect(await rows(page)).toEqual(seen);
      expect((await viewer.state()).sel).toBe(asked.sel);
    });
  }
});

test("a state for files to come is shown, whichever picture is drawn first", async ({
  viewer,
  page,
}) => {
  // Slow frames, whose callbacks run in reverse order.
  await page.addInitScript(() => {
    let waiting: [number, FrameRequestCallback][] = [];
    let last = 0;
    window.requestAnimationFrame = (callback) => {
      if (waiting.length === 0)
        setTimeout(() => {
          const now = waiting.toReversed();
          waiting = [];
          for (const [, each] of now) each(performance.now());
        }, 500);
      last += 1;
      waiting.push([last, callback]);
      return last;
    };
    window.cancelAnimationFrame = (id) => {
      waiting = waiting.filter(([each]) => each !== id);
    };
  });
  await reload(page);
  await viewer.open(testData("scenarios/f01.pickle"));
  await answering(page);
  await page.evaluate(() =>
    window.vramscope.setState({
      path: "gpt_small.pickle.gz",
      x0: 1000,
      x1: 2000,
      tracks: "segments",
    }),
  );
  await viewer.open(REAL);
  // The file before has fewer segments, so these belong to this file.
  await expect(page.locator(".segment-label").nth(5)).toBeVisible();
  await page.evaluate(
    () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
  );
  expect(await restedRange(viewer)).toEqual({ x0: 1000, x1: 2000 });
});
