// What the pointer does on the timeline, with keys and without; and how Escape and Enter take part
// in it.

import { blocksOf, deviceOf, referenceOf } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { heights, keys, middling } from "../lib/keys.js";
import { expect, test } from "../lib/test.js";
import {
  answering,
  drag,
  expectCursor,
  hoverAt,
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

// Small, since it is drawn in software.
test.use({ viewport: { width: 1100, height: 700 } });

test(
  "Enter and a click select the block at the cursor",
  keys("Enter", "Click"),
  async ({ viewer, page }) => {
    await viewer.show(testData("scenarios/f01.pickle"));
    await answering(page);
    const scale = await viewer.plot.scale();
    await viewer.plot.moveTo(scale.x(2.5), scale.y(500));
    await page.keyboard.press("Enter");
    await expect.poll(() => selectedOf(viewer)).toBe("0:0x1000@1");
    await expectCursor(page, 2);
    const box = await viewer.plot.box();
    await page.mouse.click(box.x + scale.x(2.5), box.y + scale.y(1250));
    await expect.poll(() => selectedOf(viewer)).toBe("0:0x1400@2");
    // Empty ground clears it.
    await page.mouse.click(box.x + scale.x(2.5), box.y + scale.y(1500) - 12);
    await expect.poll(() => selectedOf(viewer)).toBeNull();
  },
);

test(
  "Escape cancels the drag, then the search, then what is selected",
  keys("Esc", "Shift drag"),
  async ({ viewer, page }) => {
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
    expect(await restedRange(viewer), "the drag has done nothing").toEqual(before);
    expect((await viewer.state()).find).toBe("forward");
    await page.keyboard.press("Escape");
    await expect.poll(async () => (await viewer.state()).find).toBeUndefined();
    await expect(page.getByTestId("search")).toHaveValue("");
    expect(await selectedOf(viewer)).toBe(referenceOf(block));
    // A sheet over it goes first.
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
  },
);

test(
  "Alt and a drag mark a range, and say what happens in it",
  keys("Alt drag"),
  async ({ viewer, page }) => {
    await work(viewer, REAL);
    const { x } = await viewer.plot.scale();
    const [from, to] = [2000, 3000];
    await drag(viewer, [x(from), 80], [x(to), 120], "Alt");
    const range = viewer.details.locator("[data-kind=Range]");
    await expect(range).toBeVisible();
    const canvas = await viewer.plot.box();
    const box = await marks(page, "range").boundingBox();
    expect(Math.abs((box?.x ?? 0) - canvas.x - x(from))).toBeLessThan(2);
    expect(Math.abs((box?.x ?? 0) + (box?.width ?? 0) - canvas.x - x(to))).toBeLessThan(2);
    // A pixel is some events wide: what is allocated in it is what is allocated in the range, give or
    // take those.
    const some = blocksOf(REAL).filter(
      ({ alloc_event }) => alloc_event !== null && alloc_event >= from && alloc_event < to,
    );
    const rows = await range
      .locator("[data-key]")
      .evaluateAll((all) =>
        all.map(
          (row) =>
            [
              row.getAttribute("data-key") ?? "",
              Number(row.querySelector("dd")?.getAttribute("data-value")),
            ] as const,
        ),
      );
    const allocated = new Map(rows).get("allocated") ?? Number.NaN;
    const bytes = some.reduce((sum, block) => sum + block.bytes, 0);
    expect(
      Math.abs(allocated - bytes) / bytes,
      `allocated ${allocated}, by the program ${bytes}`,
    ).toBeLessThan(0.1);
    // The picture is where it was, and the range stays in its place when it moves.
    await page.keyboard.press("Escape");
    await expect(range).toHaveCount(0);
  },
);

test(
  "a double click fits the block under it, and on empty ground all",
  keys("Double-click", "Wheel", "Shift wheel", "Drag"),
  async ({ viewer, page }) => {
    await work(viewer, REAL);
    const whole = await restedRange(viewer);
    const block = middling(blocksOf(REAL), deviceOf(REAL).events);
    const { x, bottom } = await viewer.plot.scale();
    const box = await viewer.plot.box();
    const at = x((block.alloc_event + block.free_completed_event) / 2);
    // Where it is drawn: the page says what is under a point.
    const under = (y: number) =>
      page.evaluate(([px = 0, py = 0]) => window.vramscope.pick("timeline", px, py), [at, y]);
    let found = -1;
    for (let y = 20; y < bottom && found < 0; y += 4)
      if ((await under(y))?.reference === referenceOf(block)) found = y;
    expect(found, "the block is in the picture").toBeGreaterThan(0);
    await page.mouse.dblclick(box.x + at, box.y + found);
    await expect
      .poll(async () => widthOf(await rangeOf(viewer)))
      .toBeLessThan(widthOf(whole) * 0.6);
    const fitted = await restedRange(viewer);
    expect(fitted.x0).toBeLessThanOrEqual(block.alloc_event + 1);
    expect(fitted.x1).toBeGreaterThanOrEqual(block.free_completed_event);
    expect(await selectedOf(viewer)).toBe(referenceOf(block));

    await hoverAt(viewer, 0.5);
    await page.mouse.wheel(0, -240);
    await expect.poll(async () => widthOf(await rangeOf(viewer))).toBeLessThan(widthOf(fitted));
    const near = await restedRange(viewer);
    const { zoom } = await heights(viewer);
    await page.keyboard.down("Shift");
    await page.mouse.wheel(0, -240);
    await page.keyboard.up("Shift");
    await expect.poll(async () => (await heights(viewer)).zoom).toBeGreaterThan(zoom * 1.05);
    expect(await restedRange(viewer)).toEqual(near);
    await drag(viewer, [500, 100], [400, 100]);
    await expect.poll(async () => (await rangeOf(viewer)).x0).toBeGreaterThan(near.x0);
    expect(widthOf(await restedRange(viewer))).toBeCloseTo(widthOf(near), 3);

    await page.keyboard.press("0");
    await expect.poll(() => rangeOf(viewer)).toEqual(whole);
    await page.mouse.wheel(0, -480);
    await expect.poll(async () => widthOf(await rangeOf(viewer))).toBeLessThan(widthOf(whole));
    await restedRange(viewer);
    await page.mouse.dblclick(box.x + 500, box.y + 4);
    await expect.poll(() => rangeOf(viewer)).toEqual(whole);
  },
);

test(
  "rulers say bytes and events, stay where they are in the data, and Delete takes the last one away",
  keys("R drag", "T drag"),
  async ({ viewer, page }) => {
    await work(viewer, REAL);
    const before = await restedRange(viewer);
    const { x, y } = await viewer.plot.scale();
    const MIB = 2 ** 20;
    await drag(viewer, [400, y(500 * MIB)], [420, y(1000 * MIB)], "r");
    await drag(viewer, [x(2000), 60], [x(3000), 80], "t");
    const [bytes, events] = [marks(page, "ruler-y"), marks(page, "ruler-x")];
    await expect(bytes).toHaveCount(1);
    await expect(events).toHaveCount(1);
    expect(await restedRange(viewer), "a ruler moves nothing").toEqual(before);
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
    // The key is up: a drag pans.
    await drag(viewer, [500, 100], [400, 100]);
    await expect.poll(async () => (await rangeOf(viewer)).x0).toBeGreaterThan(1500);
    await expect(bytes).toHaveCount(0);
  },
);
