// What a viewer was asked for is there once there is something to see: a viewer may be on a page
// before it is seen, in a tab or a panel that somebody opens later.

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

/** How high the rows of the segments are. */
const rows = (page: Page) =>
  still(() =>
    page
      .locator(".segment-label")
      .evaluateAll((labels) => labels.map((label) => (label as HTMLElement).style.height)),
  );

for (const [what, css] of [
  ["is not displayed", "display: none"],
  ["has no height", "height: 0; min-height: 0"],
] as const) {
  test(`a viewer that ${what} shows what it was asked for once it is seen`, async ({
    viewer,
    page,
  }) => {
    const [block] = blocksOf(REAL);
    if (!block) throw new Error("no blocks");
    const asked = { x0: 1000, x1: 2000, sel: referenceOf(block) };
    const go = () => page.evaluate((state) => window.vramscope.setState(state), asked);
    const gone = () => expect.poll(async () => (await viewer.state()).sel).toBe(asked.sel);
    await go();
    await viewer.show(REAL);
    await answering(page);
    await gone();
    await expect(page.locator(".segment-label").first()).toBeVisible();
    const seen = await rows(page);

    await reload(page);
    await look(page, css);
    await go();
    await viewer.open(REAL);
    await answering(page);
    await gone();
    expect(
      await page.evaluate(() => window.vramscope.stats().instances),
      "there is no room to draw in",
    ).toBe(0);
    await look(page, "");
    await viewer.plot.drawn();
    expect(await restedRange(viewer)).toEqual({ x0: asked.x0, x1: asked.x1 });
    expect(await rows(page)).toEqual(seen);
    expect((await viewer.state()).sel).toBe(asked.sel);
  });
}

test("what is asked of files to come is in view, whichever picture is drawn first", async ({
  viewer,
  page,
}) => {
  // Frames that take their time, and those who asked for one last have it first.
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
    window.vramscope.setState({ path: "gpt_small.pickle.gz", x0: 1000, x1: 2000 }),
  );
  await viewer.open(REAL);
  // More segments than the file before has: those of this one have been drawn.
  await expect(page.locator(".segment-label").nth(5)).toBeVisible();
  await page.evaluate(
    () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
  );
  expect(await restedRange(viewer)).toEqual({ x0: 1000, x1: 2000 });
});
