// Keys that zoom and pan the timeline, fit the selection and change the axes.

import { blocksOf, deviceOf, referenceOf, stateOf } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { heights, hold, middling } from "../lib/keys.js";
import { expect, test } from "../lib/test.js";
import {
  alone,
  cursorOf,
  drag,
  hoverAt,
  inside,
  marks,
  rangeOf,
  restedRange,
  select,
  selectedOf,
  still,
  widthOf,
  work,
} from "../lib/work.js";

const REAL = testData("recorded/t26/gpt_small.pickle.gz");
const LATE = testData("recorded/gpt_late.pickle.gz");

// A small canvas, because Mesa draws it in software.
test.use({ viewport: { width: 1100, height: 700 } });

test("W, S, A, D and arrows zoom and pan, with Shift in bytes, and 0 shows everything", async ({
  viewer,
  page,
}) => {
  await work(viewer, REAL);
  await alone(viewer);
  const whole = await restedRange(viewer);
  const high = await heights(viewer);
  await test.step("W zooms in at the pointer, S zooms out", async () => {
    const at = await hoverAt(viewer, 0.25);
    const { left } = await viewer.plot.scale();
    const { width } = await viewer.plot.box();
    const slot = ({ x0, x1 }: typeof whole) => x0 + ((x1 - x0) * (at.x - left)) / (width - left);
    await hold(page, "w", async () => widthOf(await rangeOf(viewer)) < widthOf(whole) * 0.8);
    const near = await restedRange(viewer);
    expect(
      Math.abs(slot(near) - slot(whole)),
      "the slot under the pointer stays there",
    ).toBeLessThan(widthOf(whole) * 0.02);
    await hold(page, "s", async () => widthOf(await rangeOf(viewer)) > widthOf(near) * 1.1);
    await restedRange(viewer);
  });
  await test.step("D and the right arrow pan right, A and the left arrow pan left", async () => {
    // A movement that still slows down would move the range after it was set.
    await expect
      .poll(async () => {
        await page.evaluate(() => window.vramscope.setState({ x0: 2000, x1: 3000 }));
        return (await rangeOf(viewer)).x0;
      })
      .toBe(2000);
    await viewer.canvas.focus();
    for (const [key, way] of [
      ["d", 1],
      ["a", -1],
      ["ArrowRight", 1],
      ["ArrowLeft", -1],
    ] as const) {
      const before = await rangeOf(viewer);
      await hold(page, key, async () => ((await rangeOf(viewer)).x0 - before.x0) * way > 20);
      const after = await restedRange(viewer);
      expect(widthOf(after), `${key} does not zoom`).toBeCloseTo(widthOf(before), 3);
    }
  });
  await test.step("a held key stops when the window loses the keyboard", async () => {
    const before = await rangeOf(viewer);
    await page.keyboard.down("d");
    await expect.poll(async () => (await rangeOf(viewer)).x0).not.toBe(before.x0);
    await page.evaluate(() => window.dispatchEvent(new Event("blur")));
    await restedRange(viewer);
    await page.keyboard.up("d");
    await page.keyboard.down("r");
    await page.evaluate(() => window.dispatchEvent(new Event("blur")));
    await drag(viewer, [500, 60], [400, 200]);
    await page.keyboard.up("r");
    await expect(marks(page, "ruler-y")).toHaveCount(0);
  });
  await test.step("with Shift the keys zoom in bytes, and the arrows pan in bytes", async () => {
    const range = await restedRange(viewer);
    await hoverAt(viewer, 0.5);
    const { zoom } = await still(() => heights(viewer));
    await hold(page, "Shift+KeyW", async () => (await heights(viewer)).zoom > zoom * 1.5);
    for (const [key, way] of [
      ["Shift+KeyD", 1],
      ["Shift+KeyA", -1],
      ["ArrowUp", 1],
      ["ArrowDown", -1],
    ] as const) {
      const before = await still(() => heights(viewer));
      // Zero moves down when higher bytes come into view.
      await hold(page, key, async () => ((await heights(viewer)).zero - before.zero) * way > 10);
      expect((await still(() => heights(viewer))).zoom, `${key} does not zoom`).toBeCloseTo(
        before.zoom,
        3,
      );
    }
    const near = await heights(viewer);
    await hold(page, "Shift+KeyS", async () => (await heights(viewer)).zoom < near.zoom * 0.9);
    expect(await restedRange(viewer)).toEqual(range);
  });
  await test.step("0 and Home show everything, in both directions", async () => {
    for (const key of ["0", "Home"]) {
      await hold(page, "Shift+KeyW", async () => (await heights(viewer)).zoom > high.zoom * 2);
      await page.keyboard.press(key);
      await expect.poll(() => rangeOf(viewer)).toEqual(whole);
      await expect.poll(async () => (await heights(viewer)).zoom).toBeCloseTo(high.zoom, 3);
      await hold(page, "w", async () => widthOf(await rangeOf(viewer)) < widthOf(whole) / 2);
    }
  });
});

test("F centers and fits the selection, and X keeps range and selection on the other axis", async ({
  viewer,
  page,
}) => {
  await work(viewer, REAL);
  // Beside the drawer this small window has room for one label of bytes, which gives no scale.
  await alone(viewer);
  const { events } = deviceOf(REAL);
  const blocks = blocksOf(REAL);
  const block = middling(blocks, events);
  const { alloc_event: from, free_completed_event: to } = block;
  await select(viewer, referenceOf(block));
  await test.step("F centers the selection, and fits it when pressed again", async () => {
    // Start elsewhere, with a range that is a little wider than the block.
    const wide = (to - from) * 1.4;
    const view = { x0: events - wide, x1: events };
    await page.evaluate((range) => window.vramscope.setState(range), view);
    await expect.poll(async () => (await rangeOf(viewer)).x0).toBeCloseTo(view.x0, 3);
    await page.keyboard.press("f");
    const centered = await restedRange(viewer);
    expect(widthOf(centered), "centering does not zoom").toBeCloseTo(wide, 1);
    expect(Math.abs((centered.x0 + centered.x1) / 2 - (from + to) / 2)).toBeLessThan(wide / 50);
    await page.keyboard.press("f");
    await expect.poll(async () => widthOf(await rangeOf(viewer))).not.toBeCloseTo(wide, 1);
    const fitted = await restedRange(viewer);
    expect(widthOf(fitted)).toBeLessThan(wide);
    expect(fitted.x0).toBeLessThanOrEqual(from + 1);
    expect(fitted.x1).toBeGreaterThanOrEqual(to);
  });
  await test.step("X keeps the range in time, the height and the selection", async () => {
    const before = { x0: from - 300, x1: to + 300 };
    await page.evaluate((range) => window.vramscope.setState(range), before);
    await expect.poll(async () => (await rangeOf(viewer)).x0).toBe(before.x0);
    await hold(page, "Shift+KeyW", async () => (await heights(viewer)).zoom > 0.5);
    const high = await still(() => heights(viewer));
    /** Times in microseconds at the left and right edge, read from the state at the cursor. */
    const edges = async () => {
      const seen: number[] = [];
      const { width } = await inside(viewer);
      for (const part of [1 / width, 1 - 1 / width]) {
        await hoverAt(viewer, part);
        await page.keyboard.press("i");
        seen.push(stateOf(REAL, (await still(() => cursorOf(page))) ?? -2).time_us);
      }
      return seen;
    };
    const inEvents = await edges();
    await page.keyboard.press("x");
    await expect.poll(async () => (await viewer.state()).axis).toBe("time");
    const pixel = widthOf(await restedRange(viewer)) / (await inside(viewer)).width;
    const inTime = await edges();
    for (const [edge, at] of inEvents.entries())
      expect(
        Math.abs(at - (inTime[edge] ?? 0)),
        `edges ${inEvents}, along time ${inTime}`,
      ).toBeLessThan(4 * pixel);
    expect(await selectedOf(viewer)).toBe(referenceOf(block));
    expect((await heights(viewer)).zoom).toBeCloseTo(high.zoom, 3);
    await page.keyboard.press("x");
    await expect.poll(async () => (await viewer.state()).axis).toBe("event");
    const back = await restedRange(viewer);
    // Events of one microsecond share a place in time, so another of them may be at the edge.
    const little = widthOf(before) * 0.1;
    expect(Math.abs(back.x0 - before.x0)).toBeLessThan(little);
    expect(Math.abs(back.x1 - before.x1)).toBeLessThan(little);
    expect(await selectedOf(viewer)).toBe(referenceOf(block));
  });
  await test.step("F fits a block at the start of the trace", async () => {
    const short = blocks.find(
      ({ alloc_event, free_completed_event }) =>
        alloc_event !== null &&
        alloc_event < 150 &&
        free_completed_event !== null &&
        free_completed_event < 400,
    );
    if (!short) throw new Error("no block lives at the start of the trace");
    await select(viewer, referenceOf(short));
    await expect(async () => {
      await page.keyboard.press("f");
      const { x0, x1 } = await restedRange(viewer);
      expect(x1 - x0).toBeLessThan(
        ((short.free_completed_event ?? 0) - (short.alloc_event ?? 0)) * 2,
      );
      expect(x0).toBeLessThanOrEqual((short.alloc_event ?? 0) + 1);
    }).toPass({ timeout: 5000 });
  });
});

test("Y starts the byte axis at the memory from before the window, and at zero again", async ({
  viewer,
  page,
}) => {
  await work(viewer, LATE);
  // Beside the drawer this small window has room for one label of bytes, which gives no scale.
  await alone(viewer);
  const { start } = deviceOf(LATE).requested_bytes;
  expect(start).toBeGreaterThan(0);
  /** Distance in pixels of zero and of `start` from the bottom of the plot. */
  const ground = async () => {
    const { y, bottom } = await viewer.plot.scale();
    return { zero: Math.round(y(0) - bottom), start: Math.round(y(start) - bottom) };
  };
  expect((await still(ground)).zero).toBe(0);
  await page.keyboard.press("y");
  await page.keyboard.press("0");
  await expect.poll(async () => Math.abs((await ground()).start)).toBeLessThan(2);
  await page.keyboard.press("y");
  await page.keyboard.press("0");
  await expect.poll(async () => Math.abs((await ground()).zero)).toBeLessThan(2);
});
