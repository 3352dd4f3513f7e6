// The state at the cursor, the changes over a range, and how the file was recorded.

import type { Locator } from "@playwright/test";
import { cli, deviceOf } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";
import { Views } from "../lib/views.js";

const REAL = "recorded/t26/gpt_small.pickle.gz";
const SUMMARY = deviceOf(REAL);

test("the peak and its blocks are the command line's", async ({ viewer, page }) => {
  const peak = cli("peak", REAL);
  const views = new Views(viewer);
  await views.open(testData(REAL));
  await test.step("P moves the cursor to the peak", async () => {
    await views.main("Timeline");
    await page.keyboard.press("p");
    await views.expectCursor(peak.event);
    expect(peak.event).toBe(SUMMARY.requested_bytes.peak_event);
    const band = views.band("requested_bytes");
    await expect(band).toHaveAttribute("data-value", String(peak.total));
    await expect(views.moment).toHaveAttribute(
      "title",
      new RegExp(`${peak.blocks.toLocaleString("en")} blocks live`),
    );
    await views.expectCategories(peak.categories);
    await views.expectBands(cli("state", REAL, "--at", String(peak.event)));
    await expect(views.pane("Timeline").locator(".mark[data-kind=cursor]")).toBeVisible();
  });
  await test.step("the cursor opens no panel, and Escape clears it", async () => {
    await expect(viewer.details).toHaveCount(0);
    await page.keyboard.press("Escape");
    await expect.poll(async () => (await viewer.state()).at).toBeUndefined();
    await expect(views.moment).toContainText("peak");
  });
  await test.step("a block of a call stack, and with a full stop its next use", async () => {
    const { blocks } = cli("blocks", REAL);

    await views.cursor(2000);
    const live = cli("state", REAL, "--at", "2000").blocks;
    const stackOf = (frames: unknown) => JSON.stringify(frames);
    const usesOf = (frames: unknown) =>
      blocks.filter((block) => stackOf(block.frames) === stackOf(frames)).length;
    const liveAt2000 = blocks
      .filter(
        ({ alloc_event: from, free_completed_event: to }) =>
          (from ?? -1) <= 2000 && (to ?? Number.POSITIVE_INFINITY) > 2000,
      )
      .filter(({ frames }) => usesOf(frames) > 2)
      .toSorted((a, b) => b.bytes - a.bytes);
    const [{ site, bytes } = { site: "", bytes: 0 }] = liveAt2000;
    await views.setState({ filter: `"site:${site}"` });
    await expect(viewer.details.getByTestId("group")).toBeVisible();
    await views.expectCursor(2000);
    // The largest of its blocks that are live here.
    const { filter } = await viewer.state();
    await views.setState({ filter: `${filter} live@2000` });
    // Two chips are shown without the keyboard focus.
    await page.getByTestId("search").focus();
    await expect(page.getByTestId("chips").locator("[data-term='live@2000']")).toBeVisible();
    await viewer.canvas.focus();
    await page.keyboard.press("n");
    await expect.poll(async () => (await viewer.state()).sel).toBeDefined();
    const selected = async () => {
      const { sel } = await viewer.state();
      return blocks.find(({ address, alloc_event }) => `0:${address}@${alloc_event}` === sel);
    };
    const first = await selected();
    const stack = JSON.stringify(first?.frames);
    const ofStack = blocks
      .filter(({ frames }) => JSON.stringify(frames) === stack)
      .toSorted((a, b) => (a.alloc_event ?? 0) - (b.alloc_event ?? 0));
    const there = ofStack.filter(({ address }) => live.some((block) => block.address === address));
    expect(there.map((block) => block.bytes)).toContain(first?.bytes);
    expect(first?.bytes ?? 0).toBeLessThanOrEqual(bytes);
    await expect(viewer.details.locator("h2[data-value]")).toHaveAttribute(
      "data-value",
      String(first?.bytes),
    );

    const at = ofStack.findIndex(({ alloc_event }) => alloc_event === first?.alloc_event);
    const after = ofStack[at + 1] ?? ofStack[at - 1];
    expect(after, "another use of the stack").toBeDefined();
    await page.keyboard.press(ofStack[at + 1] ? "." : ",");
    await expect.poll(async () => (await selected())?.alloc_event).toBe(after?.alloc_event);
    await views.expectCursor(after?.alloc_event ?? Number.NaN);
  });
});

const DIVISIONS = "roundup_power2_divisions.";

test("settings and provenance are those of the command line", async ({ viewer }) => {
  const views = new Views(viewer);
  for (const file of [
    REAL,
    "recorded/gpt_max_split.pickle.gz",
    "recorded/t20/gpt_small.pickle.gz",
  ]) {
    const [info] = cli("info", file).files;
    const [device] = info?.devices ?? [];
    if (!info || !device) throw new Error("no device");
    await views.open(testData(file));
    const pane = await views.main("Summary");
    const row = (key: string) => pane.locator(`.row[data-key=${key}] dd`);
    await expect(row("recorded")).toHaveText(device.provenance);
    const number = (key: string, value: number) =>
      expect(row(key)).toHaveAttribute("data-value", String(value));
    await number("events", device.events);
    await number("steps", device.steps);
    await number("stacks", info.stacks);
    await number("frames", info.frames);
    await number("devices", info.devices.length);
    await number(
      "annotations",
      Object.values(info.annotations).reduce((a, b) => a + b, 0),
    );
    await number(
      "warnings",
      info.warnings.reduce((sum, { count }) => sum + count, 0),
    );
    if (device.window_us === null) await expect(row("clock")).toContainText("none");
    else await number("clock", device.window_us);
    // The page says "complete" for a history that the command line calls "whole".
    const coverage = device.coverage === "whole" ? "complete" : device.coverage;
    await expect(row("coverage")).toContainText(coverage);

    // All roundup divisions share one line.
    const plain = info.settings.filter(([key]) => !key.startsWith(DIVISIONS));
    const all = plain.length + (plain.length < info.settings.length ? 1 : 0);
    await expect(pane.locator(".setting")).toHaveCount(all);
    for (const [key, json] of plain) {
      const setting = pane.locator(`.setting[data-key="${key}"]`);
      await expect(setting.locator("dd")).not.toBeEmpty();
      // A limit in bytes is formatted, and an empty value reads "(empty)".
      if (key === "max_split_size") continue;
      await expect(setting.locator(".setting-value")).toHaveText(
        json.replaceAll('"', "") || "(empty)",
      );
    }
    if (info.settings.length === 0)
      await expect(pane).toContainText("do not contain allocator settings");
  }
});

test("cursor, range and minimap agree with the command line", async ({ viewer, page }) => {
  const views = new Views(viewer);
  await views.show(testData(REAL));
  await views.track();
  await test.step("a query that a newer one replaces is not waited for", async () => {
    await page.evaluate(() => {
      const markers: number[] = [];
      for (let event = 100; event < 150; event += 1) {
        markers.push(event);
        window.vramscope.setState({ at: event, markers: markers.join(",") });
      }
    });
    await expect(views.pane("Timeline").locator(".mark[data-kind=marker]")).toHaveCount(50);
    await views.expectCursor(149);
  });
  await test.step("the cursor is one line through timeline, segments and minimap", async () => {
    await page.evaluate(() => window.vramscope.setState({ markers: "" }));
    for (const event of [1000, 5000]) {
      await views.cursor(event);
      const x = async (locator: Locator) => (await locator.boundingBox())?.x ?? Number.NaN;
      const [above, below] = [views.pane("Timeline"), views.pane("Segments")].map((pane) =>
        pane.locator(".mark[data-kind=cursor]"),
      );
      if (!above || !below) throw new Error("no panes");
      // The slot of an event starts with the state after it.
      const wanted = (await viewer.plot.box()).x + (await viewer.plot.scale()).x(event);
      await expect.poll(async () => Math.abs((await x(above)) - wanted)).toBeLessThan(2);
      await expect.poll(async () => Math.abs((await x(below)) - (await x(above)))).toBeLessThan(1);
      await expect
        .poll(async () => Math.abs((await x(page.locator(".minimap-cursor"))) - (await x(above))))
        .toBeLessThan(2);
    }
  });
  await test.step("the brush on the minimap shows and moves the range", async () => {
    const whole = await views.settledRange();
    const box = await page.getByTestId("minimap").boundingBox();
    if (!box) throw new Error("no minimap");
    const slots = whole.x1 - whole.x0;
    const slot = slots / box.width;
    const y = box.y + box.height / 2;
    const drag = async (from: number, to: number) => {
      await page.mouse.move(box.x + box.width * from, y);
      await page.mouse.down();
      await page.mouse.move(box.x + box.width * ((from + to) / 2), y);
      await page.mouse.move(box.x + box.width * to, y);
      await page.mouse.up();
    };
    const expectRange = async (from: number, to: number) => {
      await expect
        .poll(async () => {
          const { x0, x1 } = await views.range();
          return Math.max(Math.abs(x0 - from * slots), Math.abs(x1 - to * slots));
        })
        .toBeLessThan(2 * slot);
      const brush = await views.brush.boundingBox();
      expect(Math.abs((brush?.x ?? 0) - box.x - from * box.width)).toBeLessThan(3);
      expect(Math.abs((brush?.width ?? 0) - (to - from) * box.width)).toBeLessThan(4);
    };
    await drag(0.2, 0.5);
    await expectRange(0.2, 0.5);
    // A drag that starts inside the brush moves it.
    await drag(0.3, 0.6);
    await expectRange(0.5, 0.8);
    // A drag that starts outside draws a new brush.
    await drag(0.45, 0.1);
    await expectRange(0.1, 0.45);
    await page.mouse.dblclick(box.x + box.width * 0.9, y);
    await expect.poll(async () => (await views.range()).x1).toBeCloseTo(whole.x1, 1);
  });
  await test.step("start of a range plus allocated less freed is its end", async () => {
    await views.zoomTo(1000, 2000);
    await views.settledRange();
    const raw = async (key: string) => Number(await views.fact(key).getAttribute("data-value"));
    for (const [x0, x1] of [
      [1300, 1500],
      // Dragged from right to left.
      [1900, 1100],
    ] as const) {
      // The card of the first range takes room.
      await viewer.plot.drawn();
      const scale = await viewer.plot.scale();
      await views.drag("timeline-canvas", [scale.x(x0), 70], [scale.x(x1), 90], "Alt");
      await expect
        .poll(async () => Math.abs((await raw("from")) - Math.min(x0, x1)))
        .toBeLessThan(5);
      const [from, to] = [await raw("from"), await raw("to")];
      expect(Math.abs(to - Math.max(x0, x1))).toBeLessThan(5);
      const start = cli("state", REAL, "--at", String(from)).requested_bytes;
      const end = cli("state", REAL, "--at", String(to)).requested_bytes;
      expect(await raw("requested_from")).toBe(start);
      expect(await raw("requested_to")).toBe(end);
      expect(await raw("allocated")).toBeGreaterThan(0);
      expect(start + (await raw("allocated")) - (await raw("freed"))).toBe(end);
      const kept = cli("blocks", REAL).blocks.filter(
        ({ alloc_event, free_completed_event }) =>
          alloc_event !== null &&
          from < alloc_event &&
          alloc_event <= to &&
          (free_completed_event === null || free_completed_event > to),
      );
      expect(await raw("survived")).toBe(kept.reduce((sum, { bytes }) => sum + bytes, 0));
      await expect(viewer.details.locator("h2")).toHaveAttribute("data-value", String(end - start));
      await expect(views.pane("Timeline").locator(".mark[data-kind=range]")).toBeVisible();
    }
    await viewer.details.getByRole("button", { name: "Close the range" }).click();
    await expect(views.pane("Timeline").locator(".mark[data-kind=range]")).toHaveCount(0);
  });
  await test.step("no progress line is left", async () => {
    // The line appears after 300 ms. A replaced query would have kept it until here.
    await expect(page.getByRole("progressbar", { name: "Computing" })).toHaveCount(0);
  });
});
