// Hand and eye on the timeline: a file of seven events, of which everything is known, and a real
// one to move about in.

import { testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";
import type { Viewer } from "../lib/viewer.js";

const REAL = testData("recorded/t26/gpt_small.pickle.gz");

async function range(viewer: Viewer): Promise<{ x0: number; x1: number }> {
  const { x0, x1 } = await viewer.state();
  if (x0 === undefined || x1 === undefined) throw new Error("nothing is shown");
  return { x0, x1 };
}

/** The range once it has come to rest: jumps are eased. */
async function settledRange(viewer: Viewer): Promise<{ x0: number; x1: number }> {
  let before = await range(viewer);
  await expect
    .poll(async () => {
      const now = await range(viewer);
      const same = now.x0 === before.x0 && now.x1 === before.x1;
      before = now;
      return same;
    })
    .toBe(true);
  return before;
}

test("hover says what is under the pointer, click shows all of it", async ({ viewer }) => {
  // Event 2 of 7 allocates 500 bytes over 1000 at 0x1000; both stand in the column of the peak.
  await viewer.show(testData("scenarios/f01.pickle"));
  await expect(viewer.peak).toHaveAttribute("data-value", "1500");
  const scale = await viewer.plot.scale();
  const x = scale.x(2.5);
  await viewer.plot.moveTo(x, scale.y(500));
  await expect(viewer.tooltip.locator("[data-value]")).toHaveAttribute("data-value", "1000");
  await expect(viewer.tooltip).toContainText("alloc_1");
  await viewer.plot.moveTo(x, scale.y(1250));
  await expect(viewer.tooltip.locator("[data-value]")).toHaveAttribute("data-value", "500");
  await viewer.plot.moveTo(x, scale.y(1500) - 12);
  await expect(viewer.tooltip).toHaveCount(0);

  const box = await viewer.plot.box();
  await viewer.page.mouse.click(box.x + x, box.y + scale.y(500));
  await expect(viewer.details.getByRole("heading", { name: "1000 B" })).toHaveAttribute(
    "data-value",
    "1000",
  );
  await expect(viewer.details.locator("[data-reference]")).toHaveAttribute(
    "data-reference",
    "0:0x1000@1",
  );
  await expect(viewer.details).toContainText("0x1000");
  await expect(viewer.details).toContainText("alloc_1");
  await expect(viewer.details).toContainText("f01.py");
  expect((await viewer.state()).sel).toBe("0:0x1000@1");
  await viewer.page.keyboard.press("Escape");
  await expect.poll(async () => (await viewer.state()).sel).toBeUndefined();
});

test("a block from before the window is drawn, with the stack that is known", async ({
  viewer,
}) => {
  await viewer.show(testData("scenarios/f04.pickle"));
  const scale = await viewer.plot.scale();
  const box = await viewer.plot.box();
  await viewer.page.mouse.click(box.x + scale.left + 6, box.y + scale.y(350));
  await expect(viewer.details.locator("[data-reference]")).toHaveAttribute(
    "data-reference",
    "0:0x1000@pre",
  );
  await expect(viewer.details.locator("h2[data-value]")).toHaveAttribute("data-value", "700");
  await expect(viewer.details).toContainText("free_1");
});

test("pick() answers for a point of the canvas", async ({ viewer, page }) => {
  await viewer.show(testData("scenarios/f01.pickle"));
  const scale = await viewer.plot.scale();
  const pick = (x: number, y: number) =>
    page.evaluate(([px = 0, py = 0]) => window.vramscope.pick("timeline", px, py), [x, y]);
  expect((await pick(scale.x(2.5), scale.y(1250)))?.bytes.raw).toBe("500");
  expect(await pick(scale.x(2.5), scale.y(1500) - 12)).toBeNull();
});

test("what a click selects is what the pointer showed", async ({ viewer, page }) => {
  await viewer.show(REAL);
  const box = await viewer.plot.box();
  const scale = await viewer.plot.scale();
  let found = 0;
  for (let i = 0; i < 40; i += 1) {
    // Where blocks are small: in the crowded half of the plot.
    const x = scale.left + ((box.width - scale.left) * (i + 0.5)) / 40;
    const y = box.height * (0.55 + 0.009 * i);
    const picked = await page.evaluate(
      ([px = 0, py = 0]) => window.vramscope.pick("timeline", px, py),
      [x, y],
    );
    if (picked === null) continue;
    found += 1;
    await page.mouse.click(box.x + x, box.y + y);
    await expect
      .poll(async () => (await viewer.state()).sel, `at ${x}, ${y}`)
      .toBe(picked.reference);
  }
  expect(found).toBeGreaterThan(20);
});

test("the wheel zooms at the pointer, a drag pans, a double click fits", async ({
  viewer,
  page,
}) => {
  await viewer.show(REAL);
  const whole = await settledRange(viewer);
  const box = await viewer.plot.box();
  const { left } = await viewer.plot.scale();
  const middle = left + (box.width - left) / 2;
  await viewer.plot.moveTo(middle, box.height / 2);
  for (let i = 0; i < 5; i += 1) await page.mouse.wheel(0, -240);
  await expect
    .poll(async () => (await range(viewer)).x1 - (await range(viewer)).x0)
    .toBeLessThan((whole.x1 - whole.x0) / 2);
  const near = await settledRange(viewer);
  const slot = (r: { x0: number; x1: number }) =>
    r.x0 + ((r.x1 - r.x0) * (middle - left)) / (box.width - left);
  expect(Math.abs(slot(near) - slot(whole)), "what is under the pointer stays there").toBeLessThan(
    (whole.x1 - whole.x0) * 0.02,
  );

  await page.mouse.down();
  await page.mouse.move(box.x + middle - 200, box.y + box.height / 2, { steps: 5 });
  await page.mouse.up();
  const panned = await settledRange(viewer);
  expect(panned.x1 - panned.x0).toBeCloseTo(near.x1 - near.x0, 3);
  const moved = ((near.x1 - near.x0) * 200) / (box.width - left);
  expect(panned.x0 - near.x0).toBeGreaterThan(moved * 0.9);
  expect(panned.x0 - near.x0).toBeLessThan(moved * 1.1);
  await viewer.plot.drawn();

  await page.mouse.dblclick(box.x + middle, box.y + box.height / 2);
  await expect.poll(async () => (await range(viewer)).x0).toBeCloseTo(whole.x0, 1);
  expect((await settledRange(viewer)).x1).toBeCloseTo(whole.x1, 1);
});

test("keys zoom, pan and fit", async ({ viewer, page }) => {
  await viewer.show(REAL);
  const whole = await settledRange(viewer);
  await viewer.canvas.focus();
  await page.keyboard.down("w");
  await expect
    .poll(async () => (await range(viewer)).x1 - (await range(viewer)).x0)
    .toBeLessThan((whole.x1 - whole.x0) * 0.7);
  await page.keyboard.up("w");
  const near = await settledRange(viewer);
  await page.keyboard.down("d");
  await expect.poll(async () => (await range(viewer)).x0).toBeGreaterThan(near.x0 + 1);
  await page.keyboard.up("d");
  await settledRange(viewer);
  await page.keyboard.press("0");
  await expect.poll(async () => (await range(viewer)).x0).toBeCloseTo(whole.x0, 1);
  await page.keyboard.press("?");
  await expect(page.getByRole("dialog")).toBeVisible();
});

test("zooming in brings the exact blocks: what was merged can be picked", async ({
  viewer,
  page,
}) => {
  await viewer.show(REAL);
  const box = await viewer.plot.box();
  await viewer.plot.moveTo(box.width / 2, box.height - 60);
  for (let i = 0; i < 25; i += 1) await page.mouse.wheel(0, -240);
  await settledRange(viewer);
  await viewer.plot.drawn();
  const picture = await viewer.plot.picture();
  const { left, bottom } = await viewer.plot.scale();
  const share = picture.share(
    Math.ceil(left) + 1,
    Math.floor(bottom) - 30,
    picture.width - 20,
    Math.floor(bottom) - 2,
    [picture.color(picture.width >> 1, 1)],
  );
  expect(share).toBeGreaterThan(0.5);
});

test("events or time along the axis, and no time where there is no clock", async ({
  viewer,
  page,
}) => {
  await viewer.show(REAL);
  const time = page.getByRole("button", { name: "time", exact: true });
  await expect(time).toHaveAttribute("aria-pressed", "false");
  await time.click();
  await expect.poll(async () => (await viewer.state()).axis).toBe("time");
  await viewer.plot.drawn();
  expect((await viewer.plot.picture()).width).toBeGreaterThan(0);
  await viewer.show(testData("edge/no_time.pickle"));
  await expect(viewer.peak).toHaveAttribute("data-value", "1500");
  await expect(time).toHaveCount(0);
  expect((await viewer.state()).axis).toBe("event");
});

test("a selector for the devices of a file", async ({ viewer }) => {
  await viewer.show(testData("edge/two_devices.pickle"));
  await expect(viewer.device.locator("option")).toHaveCount(2);
  await viewer.device.selectOption("1");
  await expect(viewer.peak).toHaveAttribute("data-value", "5000");
  await viewer.device.selectOption("0");
  await expect(viewer.peak).toHaveAttribute("data-value", "1500");
  expect((await viewer.state()).device).toBe(0);
});
