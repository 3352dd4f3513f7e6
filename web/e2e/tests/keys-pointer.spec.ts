// Drags on the timeline that hold a key, and Escape.

import { blocksOf, deviceOf, referenceOf } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { middling } from "../lib/keys.js";
import { expect, test } from "../lib/test.js";
import {
  drag,
  inside,
  marks,
  pane,
  rangeOf,
  restedRange,
  select,
  selectedOf,
  still,
  widthOf,
  work,
} from "../lib/work.js";

const REAL = testData("recorded/t26/gpt_small.pickle.gz");

// A small canvas, because Mesa draws it in software.
test.use({ viewport: { width: 1100, height: 700 } });

test("Escape cancels the drag, then the search, then the selection; Shift and a drag zoom", async ({
  viewer,
  page,
}) => {
  await work(viewer, REAL);
  const before = await restedRange(viewer);
  const block = middling(blocksOf(REAL), deviceOf(REAL).events);
  await select(viewer, referenceOf(block));
  await page.getByTestId("search").fill("forward");
  await expect.poll(async () => (await viewer.state()).find).toBe("forward");
  await viewer.canvas.focus();
  const { x, y } = await viewer.plot.box();
  await page.keyboard.down("Shift");
  await page.mouse.move(x + 200, y + 60);
  await page.mouse.down();
  await page.mouse.move(x + 400, y + 130, { steps: 3 });
  await expect(pane(page, "timeline").locator(".draft")).toBeVisible();
  await page.keyboard.up("Shift");
  await page.keyboard.press("Escape");
  await expect(pane(page, "timeline").locator(".draft")).toHaveCount(0);
  await page.mouse.up();
  expect(await restedRange(viewer), "a cancelled drag does not zoom").toEqual(before);
  expect((await viewer.state()).find).toBe("forward");
  await page.keyboard.press("Escape");
  await expect.poll(async () => (await viewer.state()).find).toBeUndefined();
  await expect(page.getByTestId("search")).toHaveValue("");
  expect(await selectedOf(viewer)).toBe(referenceOf(block));
  // An open dialog closes first.
  await page.keyboard.press("?");
  await expect(page.getByRole("dialog")).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toHaveCount(0);
  expect(await selectedOf(viewer)).toBe(referenceOf(block));
  await page.keyboard.press("Escape");
  await expect.poll(() => selectedOf(viewer)).toBeNull();

  const { x: slot } = await viewer.plot.scale();
  const [from, to] = [2000, 4000];
  await drag(viewer, [slot(from), 40], [slot(to), 120], "Shift");
  await expect.poll(async () => widthOf(await rangeOf(viewer))).toBeLessThan(widthOf(before) / 2);
  const zoomed = await restedRange(viewer);
  const pixel = widthOf(before) / (await inside(viewer)).width;
  expect(Math.abs(zoomed.x0 - from)).toBeLessThan(3 * pixel);
  expect(Math.abs(zoomed.x1 - to)).toBeLessThan(3 * pixel);
});

test("rulers measure bytes and events, stay at their data, and can be deleted", async ({
  viewer,
  page,
}) => {
  await work(viewer, REAL);
  const before = await restedRange(viewer);
  const { x, y } = await viewer.plot.scale();
  const MIB = 2 ** 20;
  await drag(viewer, [400, y(500 * MIB)], [420, y(1000 * MIB)], "r");
  await drag(viewer, [x(2000), 60], [x(3000), 80], "t");
  const [bytes, events] = [marks(page, "ruler-y"), marks(page, "ruler-x")];
  await expect(bytes).toHaveCount(1);
  await expect(events).toHaveCount(1);
  expect(await restedRange(viewer), "drawing a ruler does not pan").toEqual(before);
  const said = [await bytes.innerText(), await events.innerText()];
  const mib = Number.parseFloat(said[0] ?? "");
  expect(said[0]).toMatch(/MiB/);
  expect(Math.abs(mib - 500)).toBeLessThan(10);
  const counted = Number((said[1] ?? "").replace(/,/g, "").match(/\d+/)?.[0]);
  expect(Math.abs(counted - 1000)).toBeLessThan(20);
  const place = async () => {
    const canvas = await viewer.plot.box();
    const [tall, wide] = [await bytes.boundingBox(), await events.boundingBox()];
    const scale = await viewer.plot.scale();
    if (!tall || !wide) throw new Error("no rulers");
    return {
      top: Math.abs(tall.y - canvas.y - scale.y(1000 * MIB)),
      bottom: Math.abs(tall.y + tall.height - canvas.y - scale.y(500 * MIB)),
      left: Math.abs(wide.x - canvas.x - scale.x(2000)),
      right: Math.abs(wide.x + wide.width - canvas.x - scale.x(3000)),
    };
  };
  for (const zoomed of [false, true]) {
    if (zoomed) {
      await page.evaluate(() => window.vramscope.setState({ x0: 1500, x1: 3500 }));
      await expect.poll(async () => (await rangeOf(viewer)).x0).toBe(1500);
    }
    for (const [edge, off] of Object.entries(await still(place)))
      expect(off, `${edge}, zoomed ${zoomed}`).toBeLessThan(4);
  }
  expect([await bytes.innerText(), await events.innerText()]).toEqual(said);
  await page.keyboard.press("Delete");
  await expect(events).toHaveCount(0);
  await expect(bytes).toHaveCount(1);
  await page.keyboard.press("Backspace");
  await expect(bytes).toHaveCount(0);
  // With the key up, a drag pans.
  await drag(viewer, [500, 100], [400, 100]);
  await expect.poll(async () => (await rangeOf(viewer)).x0).toBeGreaterThan(1500);
  await expect(bytes).toHaveCount(0);
});
