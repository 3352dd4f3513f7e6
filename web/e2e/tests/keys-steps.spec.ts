// Keys that step through events, ranks, peaks and markers.

import { blocksOf, deviceOf, referenceOf, stateOf } from "../lib/cli.js";
import { renamed, testData } from "../lib/data.js";
import { middling } from "../lib/keys.js";
import { expect, test } from "../lib/test.js";
import {
  bandOf,
  cursorOf,
  expectCursor,
  hoverAt,
  marks,
  rangeOf,
  restedRange,
  select,
  still,
  work,
} from "../lib/work.js";

const REAL = testData("recorded/t26/gpt_small.pickle.gz");

// A small canvas, because Mesa draws it in software.
test.use({ viewport: { width: 1100, height: 700 } });

test("I, full stop, comma and P move the cursor", async ({ viewer, page }) => {
  await work(viewer, REAL);
  await test.step("I moves the cursor to the pointer and opens the details", async () => {
    await page.getByRole("button", { name: "Details", exact: true }).click();
    await expect(viewer.details).toHaveCount(0);
    await hoverAt(viewer, 0.4);
    await page.keyboard.press("i");
    await expect(viewer.details).toBeVisible();
    await expect(page.getByTestId("moment")).toBeVisible();
    const event = (await cursorOf(page)) ?? -2;
    expect(event).toBeGreaterThan(deviceOf(REAL).events * 0.3);
    expect(event).toBeLessThan(deviceOf(REAL).events * 0.5);
    const state = stateOf(REAL, event);
    for (const band of ["requested_bytes", "active_bytes", "reserved_bytes"] as const)
      await expect(bandOf(page, band)).toHaveAttribute("data-value", String(state[band]));
    await expect(page.getByTestId("moment").getByText(/ blocks live$/)).toHaveAttribute(
      "data-value",
      String(state.blocks.length),
    );
  });
  await test.step("a full stop steps to the next event, a comma to the one before", async () => {
    const last = deviceOf(REAL).events - 1;
    for (const [start, key, event] of [
      [1000, ".", 1001],
      [1000, ",", 999],
      [last, ".", last],
      [-1, ",", -1],
    ] as const) {
      await page.evaluate((at) => window.vramscope.setState({ at }), start);
      await expectCursor(page, start);
      await page.keyboard.press(key);
      await expectCursor(page, event);
    }
  });
  await test.step("a held full stop plays until its release or until blur", async () => {
    const cursor = () => cursorOf(page);
    await page.evaluate(() => window.vramscope.setState({ at: 1000 }));
    await expectCursor(page, 1000);
    for (const [key, way, stop] of [
      [".", 1, () => page.keyboard.up(".")],
      [",", -1, () => page.keyboard.up(",")],
      [".", 1, () => page.evaluate(() => window.dispatchEvent(new Event("blur")))],
    ] as const) {
      const from = (await cursor()) ?? 0;
      await page.keyboard.down(key);
      await page.keyboard.down(key);
      await expect.poll(async () => (((await cursor()) ?? 0) - from) * way).toBeGreaterThan(3);
      await stop();
      await still(cursor);
      await page.keyboard.up(key);
    }
  });
  await test.step("P moves the cursor to the peak, Shift+P to lower peaks", async () => {
    const { peak, peak_event } = deviceOf(REAL).requested_bytes;
    await page.evaluate(() => window.vramscope.setState({ x0: 100, x1: 600 }));
    await expect.poll(async () => (await rangeOf(viewer)).x0).toBe(100);
    await page.keyboard.press("p");
    await expectCursor(page, peak_event);
    await expect(bandOf(page, "requested_bytes")).toHaveAttribute("data-value", String(peak));
    const { x0, x1 } = await restedRange(viewer);
    expect(x0).toBeLessThan(peak_event);
    expect(x1).toBeGreaterThan(peak_event);
    const seen = [peak_event];
    let height = peak;
    for (let i = 0; i < 3; i += 1) {
      await page.keyboard.press("Shift+P");
      await expect
        .poll(async () => seen.includes((await cursorOf(page)) ?? -2), "another peak")
        .toBe(false);
      const event = (await cursorOf(page)) ?? -2;
      const { requested_bytes } = stateOf(REAL, event);
      await expect(bandOf(page, "requested_bytes")).toHaveAttribute(
        "data-value",
        String(requested_bytes),
      );
      expect(requested_bytes).toBeLessThanOrEqual(height);
      // A peak is at least as high as the event before it.
      expect(requested_bytes).toBeGreaterThanOrEqual(stateOf(REAL, event - 1).requested_bytes);
      height = requested_bytes;
      seen.push(event);
    }
  });
});

test("brackets and arrow keys move between ranks, with Shift to the first and last", async ({
  viewer,
  page,
}) => {
  const names = ["rank0.pickle", "rank1.pickle", "rank2.pickle", "rank3.pickle"];
  await viewer.open(names.map((name, index) => renamed(`scenarios/f0${index + 1}.pickle`, name)));
  for (const name of names) await viewer.expectRow(name, "ready");
  await viewer.row("rank1.pickle").click();
  for (const [key, rank] of [
    ["]", 2],
    ["[", 1],
    ["{", 0],
    ["[", 0],
    ["}", 3],
    ["]", 3],
    ["[", 2],
  ] as const) {
    await page.keyboard.press(key);
    await expect(viewer.row(`rank${rank}.pickle`), `after ${key}`).toHaveAttribute(
      "aria-selected",
      "true",
    );
    await expect.poll(async () => (await viewer.state()).path).toBe(`rank${rank}.pickle`);
  }
  await viewer.row("rank1.pickle").click();
  await page.keyboard.press("ArrowDown");
  await expect(viewer.row("rank2.pickle")).toBeFocused();
  await expect(viewer.row("rank2.pickle")).toHaveAttribute("aria-selected", "true");
});

test("M drops markers, ' visits them, Delete removes them, Shift+M marks the selection", async ({
  viewer,
  page,
}) => {
  await work(viewer, REAL);
  await test.step("markers", async () => {
    const events = [500, 1500, 2500];
    for (const event of events) {
      await page.evaluate(([at = 0]) => window.vramscope.setState({ at }), [event]);
      await expectCursor(page, event);
      await page.keyboard.press("m");
    }
    await expect(marks(page, "marker")).toHaveCount(3);
    // The apostrophe starts after the last marker and wraps.
    for (const event of [500, 1500, 2500, 500]) {
      await page.keyboard.press("'");
      await expectCursor(page, event);
    }
    const scale = await viewer.plot.scale();
    const box = await viewer.plot.box();
    const places = await marks(page, "marker").evaluateAll((all) =>
      all.map((mark) => {
        const { left, right } = mark.getBoundingClientRect();
        return (left + right) / 2;
      }),
    );
    for (const [index, event] of events.entries())
      expect(
        Math.abs((places[index] ?? 0) - box.x - scale.x(event)),
        `marker ${event}`,
      ).toBeLessThan(4);
    await page.keyboard.press("Delete");
    await expect(marks(page, "marker")).toHaveCount(2);
    await page.keyboard.press("'");
    await expectCursor(page, 1500);
    await page.keyboard.press("Backspace");
    await expect(marks(page, "marker")).toHaveCount(1);
  });
  await test.step("Shift+M marks the life of the selection as a range", async () => {
    const block = middling(blocksOf(REAL), deviceOf(REAL).events);
    await select(viewer, referenceOf(block));
    await page.keyboard.press("Shift+M");
    await expect(viewer.details.locator("[data-kind=Range]")).toBeVisible();
    const scale = await viewer.plot.scale();
    const canvas = await viewer.plot.box();
    const box = await marks(page, "range").boundingBox();
    expect(Math.abs((box?.x ?? 0) - canvas.x - scale.x(block.alloc_event))).toBeLessThan(3);
    expect(
      Math.abs((box?.x ?? 0) + (box?.width ?? 0) - canvas.x - scale.x(block.free_completed_event)),
    ).toBeLessThan(3);
  });
});
