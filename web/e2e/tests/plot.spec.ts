// What the timeline draws and what a click on it means: groups and blocks, hits of a search, labels
// of what is lit, touch.

import type { CDPSession, Page } from "@playwright/test";
import type { ViewState } from "vramscope-viewer";
import { blocksOf, deviceOf } from "../lib/cli.js";
import { LABELS, testData } from "../lib/data.js";
import type { Picture } from "../lib/plot.js";
import { expect, test } from "../lib/test.js";
import type { Viewer } from "../lib/viewer.js";

const SMALL = "recorded/t26/gpt_small.pickle.gz";
const OOM = "recorded/oom_expandable.pickle.gz";

const setState = (page: Page, state: ViewState) =>
  page.evaluate((wanted) => window.vramscope.setState(wanted), state);

/** Clicks at a slot and a height of the plot as it lies now. */
async function clickAt({ plot, page }: Viewer, slot: number, bytes: number): Promise<void> {
  const [scale, box] = [await plot.scale(), await plot.box()];
  await page.mouse.click(box.x + scale.x(slot), box.y + scale.y(bytes));
}

/** A smaller difference of the channels is that of gray on a shaded ground. */
const LEAST_HUE = 12;

/**
 * What is lit in each column, in order of time: pixels by their hue, as a share of `high` pixels.
 * The dimmed blocks, the lines and the ground are gray.
 */
function litShares(picture: Picture, [left, right]: number[], bottom: number, high: number) {
  const hue = (x: number, y: number) => {
    const color = picture.color(x, y);
    const found = Math.max(...color) - Math.min(...color);
    return found < LEAST_HUE ? 0 : found;
  };
  const column = (x: number) =>
    Array.from({ length: bottom }, (_, y) => hue(x, y)).reduce((sum, found) => sum + found, 0);
  const [from = 0, to = 0] = [left, right];
  return Array.from({ length: to - from }, (_, at) => column(from + at) / high);
}

const mean = (values: readonly number[]) =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

// Merged strips took the color of their largest block: hits came and went with the height.
test("hits show the same share at every height", async ({ viewer, page }) => {
  await viewer.show(testData(SMALL));
  await setState(page, { find: "adamw.py:171", sheet: "none" });
  const { peak } = deviceOf(SMALL).requested_bytes;
  const found: number[][] = [];
  for (const height of [900, 1000, 1100]) {
    await page.setViewportSize({ width: 1440, height });
    await viewer.plot.drawn();
    await page.mouse.move(2, 2);
    const scale = await viewer.plot.scale();
    const box = await viewer.plot.box();
    const picture = await viewer.plot.picture();
    const [left, right] = [Math.ceil(scale.left) + 8, Math.floor(box.width) - 24];
    const high = scale.y(0) - scale.y(peak);
    const shares = litShares(picture, [left, right], Math.floor(scale.bottom), high);
    // Columns of 24 pixels.
    const wide = Array.from({ length: Math.floor(shares.length / 24) }, (_, at) =>
      mean(shares.slice(at * 24, (at + 1) * 24)),
    );
    found.push(wide);
  }
  const most = Math.max(...found.flat());
  expect(most).toBeGreaterThan(3);
  const [low = [], ...higher] = found;
  for (const shares of higher)
    for (const [at, share] of shares.entries())
      expect(Math.abs(share - (low[at] ?? 0)), `column ${at}`).toBeLessThan(0.06 * most);
});

test("a click chooses the category, the next one the block, and both can be seen", async ({
  viewer,
  page,
}) => {
  await viewer.show(testData(SMALL));
  const { peak, peak_event } = deviceOf(SMALL).requested_bytes;
  const low = peak / 30;
  await clickAt(viewer, peak_event + 0.5, low);
  await expect.poll(async () => (await viewer.state()).filter ?? "").toMatch(/^category:\w+$/);
  const { filter = "", sel } = await viewer.state();
  expect(sel).toBeUndefined();
  const category = filter.replace("category:", "");
  const group = blocksOf(SMALL).filter((block) => block.category === category);
  expect(group.length).toBeGreaterThan(0);
  const card = viewer.details.getByTestId("group");
  await expect(card.locator(".details-name")).toHaveText(LABELS[category] ?? "");
  await expect(card.locator("[data-key=blocks]")).toHaveAttribute(
    "data-value",
    String(group.length),
  );

  await viewer.plot.drawn();
  await clickAt(viewer, peak_event + 0.5, low);
  await expect.poll(async () => (await viewer.state()).sel).toBeDefined();
  expect((await viewer.state()).filter).toBe(filter);
  await expect(viewer.details.locator("[data-reference]")).toBeVisible();

  // However small, a selected block has a frame of at least 24 pixels.
  await setState(page, { filter: '"site:p_gpt.py:30 train_step"' });
  await viewer.plot.drawn();
  const frame = page.getByTestId("selected-block");
  for (let step = 0; step < 3; step += 1) {
    // Backwards from the largest: the smallest blocks.
    await page.keyboard.press("Shift+N");
    await viewer.plot.drawn();
    await expect(frame).toBeVisible();
    const box = await frame.boundingBox();
    expect(Math.min(box?.width ?? 0, box?.height ?? 0)).toBeGreaterThanOrEqual(24);
  }

  // Escape goes back from the block to the group, and to all.
  for (let left = 0; left < 3; left += 1) await page.keyboard.press("Escape");
  await expect.poll(async () => (await viewer.state()).filter).toBeUndefined();
});

test("in groups by line a click chooses the group, and neighbors have edges", async ({
  viewer,
  page,
}) => {
  await viewer.show(testData(SMALL));
  await setState(page, { group: "line", sheet: "none" });
  await viewer.plot.drawn();
  const { left, bottom } = await viewer.plot.scale();
  const lined = await viewer.plot.picture();
  const ground = lined.color(Math.ceil(left) + 2, 4);
  const x = Math.round(left + (lined.width - left) / 2);
  const edges = (picture: Picture) => {
    let count = 0;
    const top = picture.top(x, bottom, [ground]) + 2;
    for (let y = top; y < bottom - 2; y += 1) if (!picture.differs(x, y, [ground])) count += 1;
    return count;
  };
  expect(edges(lined)).toBeGreaterThan(2);
  await setState(page, { group: "block" });
  await viewer.plot.drawn();
  expect(edges(await viewer.plot.picture())).toBe(0);

  await setState(page, { group: "line" });
  await viewer.plot.drawn();
  const { peak, peak_event } = deviceOf(SMALL).requested_bytes;
  await clickAt(viewer, peak_event + 0.5, peak / 2);
  await expect.poll(async () => (await viewer.state()).filter ?? "").toMatch(/category:.*site:/);
});

test("labels name only what is lit, with its bytes", async ({ viewer, page }) => {
  await viewer.show(testData(SMALL));
  const labels = page.locator(".mark[data-kind=group]");
  await expect.poll(() => labels.count()).toBeGreaterThan(2);
  const site = "gpt.py:43 forward";
  await setState(page, { filter: `"site:${site}"` });
  await expect.poll(() => labels.count()).toBe(1);
  const blocks = blocksOf(SMALL).filter(({ site: of }) => of === site);
  const after = (event: number) =>
    blocks
      .filter(
        ({ alloc_event: from, free_completed_event: to }) =>
          (from ?? -1) <= event && (to === null || to > event),
      )
      .reduce((sum, block) => sum + block.bytes, 0);
  // The band is largest after one of its allocations.
  const most = Math.max(...blocks.map(({ alloc_event }) => after(alloc_event ?? -1)));
  await expect(labels.first()).toHaveAttribute("data-value", String(most));
});

test("Show at a failed allocation moves the cursor and dims nothing", async ({ viewer, page }) => {
  await viewer.show(testData(OOM));
  await viewer.place("Summary");
  await page.getByRole("button", { name: "Open the timeline" }).click();
  await expect.poll(async () => (await viewer.state()).at).toBeDefined();
  expect((await viewer.state()).filter).toBeUndefined();
});

test("Escape and closing its card remove the marks of a range", async ({ viewer, page }) => {
  await viewer.show(testData(SMALL));
  const range = page.locator(".mark[data-kind=range]");
  const ends = page.locator(".mark[data-kind=end]");
  const mark = async () => {
    const box = await viewer.plot.box();
    await page.keyboard.down("Alt");
    await page.mouse.move(box.x + 300, box.y + 80);
    await page.mouse.down();
    await page.mouse.move(box.x + 500, box.y + 90, { steps: 4 });
    await page.mouse.up();
    await page.keyboard.up("Alt");
    await expect(range).toHaveCount(1);
    await expect(ends).toHaveCount(2);
    await expect(viewer.details.getByText("Range", { exact: true })).toBeVisible();
  };
  await mark();
  await page.keyboard.press("Escape");
  await expect(range).toHaveCount(0);
  await expect(ends).toHaveCount(0);
  await mark();
  await viewer.details
    .getByRole("button", { name: /close|clear|hide/i })
    .first()
    .click();
  await expect(range).toHaveCount(0);
  await expect(ends).toHaveCount(0);
});

test("two fingers zoom, one finger pans, and a swipe is left to the page", async ({
  viewer,
  page,
}) => {
  await viewer.show(testData(SMALL));
  const session = await page.context().newCDPSession(page);
  const box = await viewer.plot.box();
  const y = box.y + box.height / 2;
  const [middle, before] = [box.x + box.width / 2, await viewer.state()];
  const touch = (type: "touchStart" | "touchMove" | "touchEnd", xs: readonly number[]) =>
    touched(session, type, xs, y);
  await touch("touchStart", [middle - 40]);
  await touch("touchStart", [middle - 40, middle + 40]);
  for (let apart = 50; apart <= 160; apart += 10)
    await touch("touchMove", [middle - apart, middle + apart]);
  await touch("touchEnd", []);
  const width = ({ x0 = 0, x1 = 0 }: ViewState) => x1 - x0;
  await expect
    .poll(async () => width(await viewer.state()) / width(before))
    .toBeCloseTo(40 / 160, 1);
  expect((await viewer.state()).filter, "a pinch is no click").toBeUndefined();

  const zoomed = await viewer.state();
  await touch("touchStart", [middle]);
  for (let by = 10; by <= 100; by += 10) await touch("touchMove", [middle - by]);
  await touch("touchEnd", []);
  await expect.poll(async () => (await viewer.state()).x0 ?? 0).toBeGreaterThan(zoomed.x0 ?? 0);
  expect(width(await viewer.state())).toBeCloseTo(width(zoomed), 0);
  await expect(viewer.canvas).toHaveCSS("touch-action", "pan-y");
});

function touched(
  session: CDPSession,
  type: "touchStart" | "touchMove" | "touchEnd",
  xs: readonly number[],
  y: number,
): Promise<unknown> {
  const touchPoints = xs.map((x, id) => ({ x, y, id }));
  return session.send("Input.dispatchTouchEvent", { type, touchPoints });
}

test("the next rank keeps the zoom", async ({ viewer, page }) => {
  await viewer.open(
    ["rank2_memory_snapshot.pickle.gz", "rank3_memory_snapshot.pickle.gz"].map((name) =>
      testData(`recorded/ranks_fsdp/${name}`),
    ),
  );
  await viewer.plot.drawn();
  await page.keyboard.press("{");
  await viewer.plot.drawn();
  const whole = await viewer.state();
  const extent = whole.x1 ?? 0;
  await setState(page, { x0: extent * 0.4, x1: extent * 0.5 });
  await expect.poll(async () => (await viewer.state()).x0).toBeGreaterThan(0);
  await page.keyboard.press("]");
  await expect.poll(async () => (await viewer.state()).path).not.toBe(whole.path);
  await expect
    .poll(async () => {
      const { x0 = 0, x1 = 0 } = await viewer.state();
      return [x0 / extent, x1 / extent].map((share) => Math.round(share * 10) / 10);
    })
    .toEqual([0.4, 0.5]);
});

test("a move of the pointer changes styles about once", async ({ viewer, page }) => {
  await viewer.show(testData(SMALL));
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable");
  const recalculations = async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    return metrics.find(({ name }) => name === "RecalcStyleCount")?.value ?? Number.NaN;
  };
  const box = await viewer.plot.box();
  await viewer.plot.moveTo(300, box.height * 0.8);
  await expect(viewer.tooltip).toBeVisible();
  const before = await recalculations();
  const moves = 40;
  for (let move = 0; move < moves; move += 1) {
    await viewer.plot.moveTo(300 + 8 * move, box.height * 0.8);
    await page.waitForTimeout(50);
  }
  // The frame of the move, and that of the answer where it does not come in time. It was 5.
  expect((await recalculations()) - before).toBeLessThan(2.5 * moves);
});
