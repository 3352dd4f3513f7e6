// Keys where the browser, the canvas or the focus take part. The unit tests of keyboard and keymap
// have the rest.

import { blocksOf, deviceOf, referenceOf, stateOf } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { heights, hold, middling, openPalette } from "../lib/keys.js";
import { expect, test } from "../lib/test.js";
import {
  alone,
  cursorOf,
  drag,
  expectPlace,
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
const LATE = testData("recorded/gpt_late.pickle.gz");

// A small canvas, because Mesa draws it in software.
test.use({ viewport: { width: 1100, height: 700 } });

test("held keys zoom at the pointer, pan, and zoom in bytes until they are released", async ({
  viewer,
  page,
}) => {
  await work(viewer, REAL);
  await alone(viewer);
  const whole = await restedRange(viewer);
  const high = await heights(viewer);
  await test.step("W keeps the slot under the pointer", async () => {
    const at = await hoverAt(viewer, 0.25);
    const { left } = await viewer.plot.scale();
    const { width } = await viewer.plot.box();
    const slot = ({ x0, x1 }: typeof whole) => x0 + ((x1 - x0) * (at.x - left)) / (width - left);
    await hold(page, "w", async () => widthOf(await rangeOf(viewer)) < widthOf(whole) * 0.5);
    const near = await restedRange(viewer);
    expect(Math.abs(slot(near) - slot(whole))).toBeLessThan(widthOf(whole) * 0.02);
  });
  await test.step("D pans, and stops when the window loses the keyboard", async () => {
    const before = await rangeOf(viewer);
    await page.keyboard.down("d");
    await expect.poll(async () => (await rangeOf(viewer)).x0).toBeGreaterThan(before.x0 + 20);
    await page.evaluate(() => window.dispatchEvent(new Event("blur")));
    const after = await restedRange(viewer);
    await page.keyboard.up("d");
    expect(widthOf(after), "panning does not zoom").toBeCloseTo(widthOf(before), 3);
  });
  await test.step("with Shift W zooms in bytes, and the up arrow pans", async () => {
    const range = await restedRange(viewer);
    await hold(page, "Shift+KeyW", async () => (await heights(viewer)).zoom > high.zoom * 1.5);
    const before = await still(() => heights(viewer));
    // Zero moves down when higher bytes come into view.
    await hold(page, "ArrowUp", async () => (await heights(viewer)).zero - before.zero > 10);
    expect((await still(() => heights(viewer))).zoom).toBeCloseTo(before.zoom, 3);
    expect(await restedRange(viewer)).toEqual(range);
  });
  await test.step("0 shows everything, in both directions", async () => {
    await page.keyboard.press("0");
    await expect.poll(() => rangeOf(viewer)).toEqual(whole);
    await expect.poll(async () => (await heights(viewer)).zoom).toBeCloseTo(high.zoom, 3);
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
  const block = middling(blocksOf(REAL), events);
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

test("Escape cancels a drag, Shift and a drag zoom, R and T measure at their data", async ({
  viewer,
  page,
}) => {
  await work(viewer, REAL);
  const before = await restedRange(viewer);
  const { x, y } = await viewer.plot.scale();
  const MIB = 2 ** 20;
  await test.step("a cancelled drag does not zoom", async () => {
    const box = await viewer.plot.box();
    await viewer.canvas.focus();
    await page.keyboard.down("Shift");
    await page.mouse.move(box.x + 200, box.y + 60);
    await page.mouse.down();
    await page.mouse.move(box.x + 400, box.y + 130, { steps: 3 });
    await expect(pane(page, "timeline").locator(".draft")).toBeVisible();
    await page.keyboard.up("Shift");
    await page.keyboard.press("Escape");
    await expect(pane(page, "timeline").locator(".draft")).toHaveCount(0);
    await page.mouse.up();
    expect(await restedRange(viewer)).toEqual(before);
  });
  const [bytes, events] = [marks(page, "ruler-y"), marks(page, "ruler-x")];
  await test.step("rulers measure bytes and events", async () => {
    await drag(viewer, [400, y(500 * MIB)], [420, y(1000 * MIB)], "r");
    await drag(viewer, [x(2000), 60], [x(3000), 80], "t");
    await expect(bytes).toHaveCount(1);
    await expect(events).toHaveCount(1);
    expect(await restedRange(viewer), "drawing a ruler does not pan").toEqual(before);
    const said = [await bytes.innerText(), await events.innerText()];
    expect(said[0]).toMatch(/MiB/);
    expect(Math.abs(Number.parseFloat(said[0] ?? "") - 500)).toBeLessThan(10);
    const counted = Number((said[1] ?? "").replace(/,/g, "").match(/\d+/)?.[0]);
    expect(Math.abs(counted - 1000)).toBeLessThan(20);
  });
  await test.step("Shift and a drag zoom to a box, and rulers stay at their data", async () => {
    const [from, to] = [1500, 3500];
    await drag(viewer, [x(from), 20], [x(to), 200], "Shift");
    await expect.poll(async () => widthOf(await rangeOf(viewer))).toBeLessThan(widthOf(before) / 2);
    const zoomed = await restedRange(viewer);
    const pixel = widthOf(before) / (await inside(viewer)).width;
    expect(Math.abs(zoomed.x0 - from)).toBeLessThan(3 * pixel);
    expect(Math.abs(zoomed.x1 - to)).toBeLessThan(3 * pixel);
    const place = async () => {
      const canvas = await viewer.plot.box();
      const wide = await events.boundingBox();
      const scale = await viewer.plot.scale();
      if (!wide) throw new Error("no ruler");
      return [
        Math.abs(wide.x - canvas.x - scale.x(2000)),
        Math.abs(wide.x + wide.width - canvas.x - scale.x(3000)),
      ];
    };
    // The ends of the ruler are as exact as the pixels that it was drawn along.
    const zoom = widthOf(before) / widthOf(zoomed);
    for (const off of await still(place)) expect(off).toBeLessThan(2 + 2 * zoom);
  });
  await test.step("with the key up, a drag pans", async () => {
    const { x0 } = await restedRange(viewer);
    await drag(viewer, [500, 100], [400, 100]);
    await expect.poll(async () => (await rangeOf(viewer)).x0).toBeGreaterThan(x0);
    // The ruler of bytes is out of view, and no other one was drawn.
    await expect(events).toHaveCount(1);
  });
});

test("search, dialogs and clipboard take and return the keyboard", async ({
  viewer,
  page,
  context,
}) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await work(viewer, REAL);
  const search = page.getByTestId("search");
  await test.step("the search takes all letters, and Escape leaves it", async () => {
    for (const way of ["/", "Control+f"]) {
      await viewer.canvas.focus();
      await page.keyboard.press(way);
      await expect(search).toBeFocused();
      const word = "wsadpfxyqmihvbzon0?[].,12>";
      await page.keyboard.type(word);
      await expect(search).toHaveValue(word);
      await expect(page.getByRole("dialog")).toHaveCount(0);
      await page.keyboard.press("Escape");
      await expect(search).toHaveValue("");
      await expect(search).not.toBeFocused();
    }
  });
  await test.step("Enter and N step through the program's blocks, the largest first", async () => {
    const word = "dropout";
    const found = blocksOf(REAL).filter(({ frames }) =>
      frames.some(({ name, file }) => name.includes(word) || file.includes(word)),
    );
    const sizes = new Map(found.map((block) => [referenceOf(block), block.bytes]));
    await search.fill(word);
    // Enter makes a filter of the word. In the empty box, it steps as N does.
    await search.press("Enter");
    await expect.poll(async () => (await viewer.state()).filter).toBe(word);
    const seen: string[] = [];
    const next = async (press: () => Promise<void>) => {
      const before = await selectedOf(viewer);
      await press();
      await expect.poll(() => selectedOf(viewer)).not.toBe(before);
      seen.push((await selectedOf(viewer)) ?? "");
    };
    await next(() => search.press("Enter"));
    await next(() => search.press("Enter"));
    await viewer.canvas.focus();
    await next(() => page.keyboard.press("n"));
    await expect(page.getByTestId("chips-found")).toContainText(`3 of ${found.length}`);
    expect(new Set(seen).size).toBe(seen.length);
    const largest = [...sizes.values()].toSorted((a, b) => b - a);
    expect(seen.map((reference) => sizes.get(reference))).toEqual(largest.slice(0, seen.length));
  });
  await test.step("the palette runs a command, and the sheet lists the keys", async () => {
    const palette = await openPalette(page);
    await palette.getByRole("combobox").fill("code call path");
    await expect(palette.getByRole("option").first()).toContainText("Call path");
    await page.keyboard.press("Enter");
    await expect(palette).toHaveCount(0);
    await expectPlace(page, "flame", "main");
    await page.keyboard.press("?");
    const sheet = page.getByRole("dialog");
    await expect(sheet.getByRole("heading", { name: "Keys and gestures" })).toBeVisible();
    expect(await sheet.locator("kbd").count()).toBeGreaterThan(50);
    await page.keyboard.press("?");
    await expect(sheet).toHaveCount(0);
  });
  await test.step("a dialog that is closed and opened again at once has the keyboard", async () => {
    const dialog = page.getByRole("dialog", { name: "Commands" });
    await openPalette(page);
    // Keys queue while the page is busy, so they arrive without a frame between them.
    const busy = page.evaluate(() => {
      const until = performance.now() + 300;
      while (performance.now() < until);
    });
    await Promise.all([busy, ...["Escape", ">", "m"].map((each) => page.keyboard.press(each))]);
    // A dialog reports its closing in a task, at the latest in the next frame but one.
    await page.evaluate(
      () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
    );
    await expect(dialog.getByRole("combobox")).toHaveValue("m");
    await page.keyboard.press("Escape");
    await expect(dialog).toHaveCount(0);
  });
  await test.step("Ctrl+C copies the call stack, or the text that is selected", async () => {
    const text = () => page.evaluate(() => navigator.clipboard.readText());
    const block = middling(blocksOf(REAL), deviceOf(REAL).events);
    await select(viewer, referenceOf(block));
    await page.keyboard.press("2");
    await viewer.canvas.focus();
    await page.keyboard.press("Control+c");
    await expect.poll(text).toContain(block.address);
    expect((await text()).replaceAll(",", "")).toMatch(new RegExp(`\\b${block.bytes}\\b`));
    for (const { name } of block.frames) expect(await text()).toContain(name);
    await page.getByRole("heading", { name: "Call stack", exact: true }).click({ clickCount: 3 });
    await page.keyboard.press("Control+c");
    await expect.poll(text).toMatch(/^\s*call stack\s*$/i);
  });
  await test.step("Ctrl+O opens the file dialog", async () => {
    const asked = page.waitForEvent("filechooser");
    // A round trip makes sure that Playwright listens for the dialog before the key arrives.
    await page.evaluate(() => undefined);
    await page.keyboard.press("Control+o");
    const chooser = await asked;
    expect(chooser.isMultiple()).toBe(true);
    const other = testData("scenarios/f02.pickle");
    await chooser.setFiles(other);
    const { peak } = deviceOf(other).requested_bytes;
    await expect(viewer.peak).toHaveAttribute("data-value", String(peak));
  });
});
