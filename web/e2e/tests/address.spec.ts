// The page's address keeps what is on screen, and a reload brings it back.

import type { Page } from "@playwright/test";
import type { ViewState } from "vramscope-viewer";
import { blocksOf, referenceOf } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";
import {
  answering,
  drag,
  expectCursor,
  expectPlace,
  marks,
  restedRange,
  select,
  work,
} from "../lib/work.js";

const REAL = testData("recorded/t26/gpt_small.pickle.gz");
const TWO = testData("recorded/t26/two_devices.pickle.gz");

/** A block of the second device, with events around it. */
function blockOfTheSecond(): { reference: string; event: number } {
  const block = blocksOf(TWO, "--device", "1").find(
    ({ alloc_event }) => alloc_event !== null && alloc_event > 5,
  );
  if (!block || block.alloc_event === null) throw new Error("no such block");
  return { reference: referenceOf(block, 1), event: block.alloc_event };
}

/** Nothing selected, nothing searched, no range marked. */
async function clear(page: Page): Promise<void> {
  await page.evaluate(() => window.vramscope.select(null));
  for (const _ of ["search", "details", "range"]) await page.keyboard.press("Escape");
}

test("a reload brings back view, drawer, device, axis, range, selection, cursor, search, color and theme", async ({
  viewer,
  page,
}) => {
  await work(viewer, TWO);
  const { reference, event } = blockOfTheSecond();
  await viewer.device.selectOption("1");
  await answering(page);
  await page.getByRole("button", { name: "time", exact: true }).click();
  await expect.poll(async () => (await viewer.state()).axis).toBe("time");
  const whole = await restedRange(viewer);
  const width = whole.x1 - whole.x0;
  await select(viewer, reference);
  await page.evaluate((state) => window.vramscope.setState(state), {
    view: "flame",
    drawer: "events",
    x0: Math.round(whole.x0 + width / 4),
    x1: Math.round(whole.x0 + width / 2),
    at: event,
    range: "time:250000.5:300000",
    find: "forward",
    color: "size",
    theme: "dark",
  } satisfies ViewState);
  await expectCursor(page, event);
  await restedRange(viewer);
  const before = await viewer.state();
  expect(before).toMatchObject({
    device: 1,
    axis: "time",
    sel: reference,
    at: event,
    range: "time:250000.5:300000",
    view: "flame",
  });
  await expect.poll(() => page.url()).toMatch(/color=size.*theme=dark/);

  await page.reload();
  await page.waitForFunction(() => "vramscope" in window);
  await viewer.open(TWO);
  await expect.poll(() => viewer.state()).toEqual(before);
  await expectPlace(page, "flame", "main");
  await expectPlace(page, "events", "drawer");
  await expect(page.locator("[data-theme=dark]")).toBeVisible();
  await expect(viewer.details.locator("[data-reference]")).toHaveAttribute(
    "data-reference",
    reference,
  );
  await expectCursor(page, event);
  await expect(page.getByTestId("search")).toHaveValue("forward");
  await page.getByRole("tab", { name: "Timeline" }).click();
  await expectPlace(page, "timeline", "main");
  expect(
    await restedRange(viewer),
    "a timeline that was out of sight is where it was asked to be",
  ).toEqual({
    x0: before.x0,
    x1: before.x1,
  });
  await expect(page.getByTestId("color-by")).toHaveValue("size");
  await expect(page.locator(".mark[data-kind=range]")).toHaveCount(1);
  await expect(viewer.device).toHaveValue("1");
  await expect(page.getByRole("button", { name: "time", exact: true })).toHaveAttribute(
    "aria-pressed",
    "true",
  );
});

test("a reload brings back markers, rulers and the device's memory, where they were", async ({
  viewer,
  page,
}) => {
  await work(viewer, REAL);
  for (const event of [3000, 500]) {
    await page.evaluate((at) => window.vramscope.setState({ at }), event);
    await expectCursor(page, event);
    await page.keyboard.press("m");
  }
  await page.getByTestId("capacity").fill("1.5");
  await page.getByTestId("capacity").press("Enter");
  await viewer.canvas.focus();
  await page.keyboard.press("0");
  await restedRange(viewer);
  await drag(viewer, [300, 300], [320, 200], "r");
  await drag(viewer, [300, 60], [500, 80], "t");
  await page.getByRole("button", { name: "time", exact: true }).click();
  await expect.poll(async () => (await viewer.state()).axis).toBe("time");
  await drag(viewer, [600, 60], [700, 80], "t");
  const laid = async () => {
    const all = ["marker", "ruler-y", "ruler-x", "capacity"].map(async (kind) => {
      const of = await marks(page, kind).all();
      return Promise.all(
        of.map(async (mark) => {
          const { x, y, width, height } = (await mark.boundingBox()) ?? {
            x: 0,
            y: 0,
            width: 0,
            height: 0,
          };
          const text = (await mark.getAttribute("aria-label")) ?? (await mark.innerText());
          return { kind, text, place: [x, y, width, height].map(Math.round) };
        }),
      );
    });
    return (await Promise.all(all)).flat();
  };
  // A ruler along events has no place on the axis of time.
  const kinds = ["marker", "marker", "ruler-y", "ruler-x", "capacity"].filter(
    (kind) => kind !== "ruler-y",
  );
  await expect.poll(async () => (await laid()).map(({ kind }) => kind)).toEqual(kinds);
  await restedRange(viewer);
  const before = { state: await viewer.state(), laid: await laid() };
  expect(before.state).toMatchObject({ markers: "500,3000", capacity: 1.5 });
  expect(before.state.rulers).toMatch(/^y:event:[^,]+,x:event:[^,]+,x:time:[^,]+$/);
  expect(before.laid.map(({ text }) => text)).toContain("GPU memory 1.50 GiB");
  await expect.poll(() => page.url()).toMatch(/markers=500,3000&rulers=y:event:.*&capacity=1\.5/);

  await page.reload();
  await page.waitForFunction(() => "vramscope" in window);
  await viewer.open(REAL);
  await expect.poll(() => viewer.state()).toMatchObject({ markers: "500,3000", capacity: 1.5 });
  await expect(page.getByTestId("capacity")).toHaveValue("1.5 GiB");
  await restedRange(viewer);
  await expect.poll(laid).toEqual(before.laid);
  await page.getByRole("button", { name: "event", exact: true }).click();
  await expect(marks(page, "ruler-y")).toHaveCount(1);
  await expect(marks(page, "ruler-x")).toHaveCount(1);
});

test("a bad field of a link is left out, and takes no other with it", async ({ viewer, page }) => {
  await work(viewer, TWO);
  const { reference, event } = blockOfTheSecond();
  await viewer.device.selectOption("1");
  await answering(page);
  const good: Record<string, string> = {
    view: "segments",
    drawer: "events",
    axis: "time",
    sel: reference,
    at: String(event),
    range: "event:2:5",
    markers: "-1,4",
    rulers: "x:event:1:3:0:0",
    capacity: "2.5",
    find: "main",
    color: "age",
    theme: "light",
  };
  const wanted: Record<string, unknown> = { ...good, at: event, capacity: 2.5 };
  const bad: Record<string, string[]> = {
    view: ["nonsense", "<script>"],
    drawer: ["nowhere"],
    device: ["-1", "one", "1e3"],
    axis: ["weight"],
    x0: ["left"],
    x1: ["NaN"],
    sel: ["1:zz@3", "0x1000"],
    at: ["-2", "first"],
    range: ["event:5:2", "event:2", "weight:2:5", "event:a:b", "time:1..2:3"],
    markers: ["4,", "4,x", "1.5", "-2", "1e3"],
    rulers: [
      "x:event:1:3:0",
      "x:event:1:3:0:0:0",
      "z:event:1:3:0:0",
      "x:weight:1:3:0:0",
      "x:event:1:3:0:NaN",
      "x:event:1:3:0:0,",
    ],
    capacity: ["0", "-1", "much", "Infinity", "1e9"],
    color: ["red"],
    theme: ["blue"],
  };
  // What is there before each link, so that a field that is left out can be told from one that is
  // not.
  const reset = {
    view: "timeline",
    drawer: "none",
    axis: "event",
    color: "size",
    theme: "dark",
    device: 1,
  } as const;
  const bare = { find: "", at: 0, markers: "", rulers: "", capacity: 1 } as const;
  const gone = { sel: undefined, range: undefined, markers: undefined, rulers: undefined };
  const before: Record<string, unknown> = { ...reset, at: 0, capacity: 1, ...gone };
  for (const [field, values] of Object.entries(bad)) {
    for (const value of values) {
      await page.evaluate((state) => window.vramscope.setState(state), { ...reset, ...bare });
      await expectCursor(page, 0);
      await clear(page);
      const fields = { ...good, device: "1", [field]: value };
      await page.evaluate(
        (hash) => {
          location.hash = hash;
        },
        `v=1&${new URLSearchParams(fields)}`,
      );
      const others = Object.fromEntries(Object.entries(wanted).filter(([name]) => name !== field));
      await expect.poll(() => viewer.state(), `with ${field}=${value}`).toMatchObject(others);
      const state = await viewer.state();
      if (field in before)
        expect(state[field as keyof ViewState], `${field}=${value}`).toEqual(before[field]);
    }
  }
});

test("a bad field of a state that a script gives is left out, and a newer state changes nothing", async ({
  viewer,
  page,
}) => {
  await work(viewer, TWO);
  const set = (fields: Record<string, unknown>) =>
    page.evaluate((state) => window.vramscope.setState(state), fields);
  await set({ view: "timeline", drawer: "none", color: "size", find: "alloc", at: 3 });
  await set({
    view: "ranks",
    drawer: "blocks",
    color: 7,
    find: null,
    at: "first",
    device: {},
    x0: [],
    more: 1,
  });
  const kept = { view: "timeline", drawer: "blocks", color: "size", find: "alloc", at: 3 };
  await expect.poll(() => viewer.state()).toMatchObject(kept);
  await set({ v: 2, view: "flame" });
  expect((await viewer.state()).view).toBe("timeline");
  await set({ find: "" });
  expect((await viewer.state()).find).toBeUndefined();
});

test("a marked range comes back with what happens in it, and goes with a step back", async ({
  viewer,
  page,
}) => {
  await work(viewer, TWO);
  await page.evaluate(() => window.vramscope.setState({ range: "event:2:30" }));
  const title = viewer.details.locator("#details-title");
  await expect(viewer.details).toContainText("Range");
  const said = await title.textContent();
  await expect.poll(() => page.url()).toContain("range=event:2:30");
  await page.reload();
  await page.waitForFunction(() => "vramscope" in window);
  await viewer.open(TWO);
  await expect(page.locator(".mark[data-kind=range]")).toHaveCount(1);
  await expect(viewer.details).toContainText("Range");
  await expect(title).toHaveText(said ?? "");
  expect((await viewer.state()).range).toBe("event:2:30");

  // A step back from another range leads to this one, with what was said of it gone or not.
  await page.waitForTimeout(600);
  await page.evaluate(() => window.vramscope.setState({ range: "event:5:8" }));
  await expect(title).not.toHaveText(said ?? "");
  await page.waitForTimeout(600);
  await viewer.canvas.focus();
  await page.keyboard.press("z");
  await expect.poll(async () => (await viewer.state()).range).toBe("event:2:30");
});

test("a link of a version to come changes nothing", async ({ viewer, page }) => {
  await work(viewer, TWO);
  const before = await viewer.state();
  await page.evaluate(() => {
    location.hash = "v=2&view=flame&theme=dark&find=main";
  });
  await expect.poll(() => page.url()).toContain("v=2");
  // The address is written again once something changes: nothing has.
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)));
  expect(await viewer.state()).toEqual(before);
});
