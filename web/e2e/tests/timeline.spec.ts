// Pointer and picture of the timeline, in a file of seven events and in a real one.

import { blocksOf, deviceOf, referenceOf } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { middling } from "../lib/keys.js";
import { expect, test } from "../lib/test.js";
import type { Viewer } from "../lib/viewer.js";

const REAL = testData("recorded/t26/gpt_small.pickle.gz");

async function range(viewer: Viewer): Promise<{ x0: number; x1: number }> {
  const { x0, x1 } = await viewer.state();
  if (x0 === undefined || x1 === undefined) throw new Error("nothing is shown");
  return { x0, x1 };
}

/** The range after the easing of a jump has ended. */
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

test("the tooltip names the block under the pointer, and a click or Enter selects it", async ({
  viewer,
}) => {
  // Event 2 of 7 allocates 500 bytes above the 1000 at 0x1000: both are live at the peak.
  await viewer.show(testData("scenarios/f01.pickle"));
  await expect(viewer.peak).toHaveAttribute("data-value", "1500");
  let scale = await viewer.plot.scale();
  const x = scale.x(2.5);
  await viewer.plot.moveTo(x, scale.y(500));
  await expect(viewer.tooltip.locator("[data-value]")).toHaveAttribute("data-value", "1000");
  await expect(viewer.tooltip).toContainText("alloc_1");
  await viewer.plot.moveTo(x, scale.y(1250));
  await expect(viewer.tooltip.locator("[data-value]")).toHaveAttribute("data-value", "500");
  await viewer.plot.moveTo(x, scale.y(1500) - 12);
  await expect(viewer.tooltip).toHaveCount(0);

  let box = await viewer.plot.box();
  // The first click chooses the category, by which the blocks are grouped; then one the block.
  await viewer.page.mouse.click(box.x + x, box.y + scale.y(500));
  await expect.poll(async () => (await viewer.state()).filter).toBe("category:unknown");
  expect((await viewer.state()).sel).toBeUndefined();
  await viewer.chooseAll();
  await viewer.page.getByTestId("group-by").selectOption("none");
  await viewer.plot.drawn();
  box = await viewer.plot.box();
  scale = await viewer.plot.scale();
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
  await viewer.plot.moveTo(x, scale.y(1250));
  await viewer.page.keyboard.press("Enter");
  await expect.poll(async () => (await viewer.state()).sel).toBe("0:0x1400@2");
  // A click on the empty background clears the selection.
  await viewer.page.mouse.click(box.x + x, box.y + scale.y(1500) - 12);
  await expect.poll(async () => (await viewer.state()).sel).toBeUndefined();
});

test("the wheel zooms, a drag pans, a double click fits, a click selects what is drawn", async ({
  viewer,
  page,
}) => {
  await viewer.show(REAL);
  await test.step("wheel, drag and double click", async () => {
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
    expect(
      Math.abs(slot(near) - slot(whole)),
      "the slot under the pointer stays there",
    ).toBeLessThan((whole.x1 - whole.x0) * 0.02);

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
  await test.step("Shift and the wheel zoom in bytes", async () => {
    const zoom = async () => {
      const { y } = await viewer.plot.scale();
      return y(0) - y(1 << 20);
    };
    const before = await zoom();
    const whole = await settledRange(viewer);
    const box = await viewer.plot.box();
    await viewer.plot.moveTo(box.width / 2, box.height / 2);
    await page.keyboard.down("Shift");
    await page.mouse.wheel(0, -240);
    await page.keyboard.up("Shift");
    await expect.poll(zoom).toBeGreaterThan(before * 1.05);
    expect(await settledRange(viewer)).toEqual(whole);
    await page.keyboard.press("0");
    await expect.poll(zoom).toBeCloseTo(before, 3);
    await viewer.plot.drawn();
  });
  await test.step("a click selects the block that pick() names", async () => {
    await viewer.chooseAll();
    const box = await viewer.plot.box();
    const scale = await viewer.plot.scale();
    let found = 0;
    for (let i = 0; i < 12; i += 1) {
      // The lower half of the plot, where blocks are small.
      const x = scale.left + ((box.width - scale.left) * (i + 0.5)) / 12;
      const y = box.height * (0.55 + 0.03 * i);
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
    expect(found).toBeGreaterThan(6);
  });
  await test.step("a double click on a block fits it", async () => {
    const block = middling(blocksOf(REAL), deviceOf(REAL).events);
    const { alloc_event: from, free_completed_event: to } = block;
    const before = await settledRange(viewer);
    const box = await viewer.plot.box();
    const { bottom, x } = await viewer.plot.scale();
    const at = x((from + to) / 2);
    let found = -1;
    for (let y = 10; y < bottom && found < 0; y += 3) {
      const hit = await page.evaluate(
        ([px = 0, py = 0]) => window.vramscope.pick("timeline", px, py),
        [at, y],
      );
      if (hit?.reference === referenceOf(block)) found = y;
    }
    expect(found, "the block is in the picture").toBeGreaterThan(0);
    await page.mouse.dblclick(box.x + at, box.y + found);
    await expect
      .poll(async () => (await range(viewer)).x1 - (await range(viewer)).x0)
      .toBeLessThan((before.x1 - before.x0) * 0.6);
    const fitted = await settledRange(viewer);
    expect(fitted.x0).toBeLessThanOrEqual(from + 1);
    expect(fitted.x1).toBeGreaterThanOrEqual(to);
  });
});

test("zooming in shows single blocks, and the axis counts events or time", async ({
  viewer,
  page,
}) => {
  await viewer.show(REAL);
  await test.step("zoomed in, the picture is filled", async () => {
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
  await test.step("the time axis", async () => {
    const time = page.getByRole("button", { name: "time", exact: true });
    await expect(time).toHaveAttribute("aria-pressed", "false");
    await time.click();
    await expect.poll(async () => (await viewer.state()).axis).toBe("time");
    await viewer.plot.drawn();
    expect((await viewer.plot.picture()).width).toBeGreaterThan(0);
  });
});
