// Annotated ranges below the timeline: as many elements as can be seen, and none made anew while
// the picture moves.

import type { Locator, Page } from "@playwright/test";
import { expect, test } from "../lib/test.js";
import type { Viewer } from "../lib/viewer.js";
import { Views } from "../lib/views.js";

const STEPS = 20_000;
/**
 * Microseconds of a step: its first half is annotated as forward, and one range goes all the way.
 */
const STEP = 100;

/** One block a step, and a range that takes half of it. */
function annotated() {
  const stack = [{ filename: "train.py", line: 1, name: "step" }];
  const trace = Array.from({ length: STEPS }, (_, step) => {
    const at = { addr: 4096 + (step % 64) * 512, size: 512, stream: 0, frames: stack };
    return [
      { ...at, action: "alloc", time_us: step * STEP },
      { ...at, action: "free_completed", time_us: step * STEP + 60, frames: [] },
    ];
  }).flat();
  const range = (name: string, from: number, to: number) => [
    { device: 0, time_us: from, name, stage: "START" },
    { device: 0, time_us: to, name, stage: "END" },
  ];
  const ranges = Array.from({ length: STEPS }, (_, step) =>
    range("forward", step * STEP, step * STEP + STEP / 2),
  ).flat();
  const external_annotations = [...range("training", 0, STEPS * STEP), ...ranges];
  return {
    name: "annotated.json",
    mimeType: "application/json",
    buffer: Buffer.from(
      JSON.stringify({ segments: [], device_traces: [trace], external_annotations }),
    ),
  };
}

const tracks = (page: Page) => page.locator(".track");

/** How many ranges there are elements for, whether or not they are in view. */
const counted = (page: Page) =>
  tracks(page).evaluateAll((all) =>
    all.reduce(
      (sum, { ariaLabel }) =>
        sum + Number(/^([\d,]+) ranges$/.exec(ariaLabel ?? "")?.[1]?.replaceAll(",", "") ?? 1),
      0,
    ),
  );

const edges = (box: { x: number; width: number } | null) => [
  box?.x ?? Number.NaN,
  (box?.x ?? Number.NaN) + (box?.width ?? 0),
];

test("twenty thousand ranges are some hundred elements, and none is lost", async ({
  viewer,
  page,
}) => {
  const views = new Views(viewer);
  await views.open(annotated());
  await expect(tracks(page).first()).toBeVisible();
  expect(await counted(page)).toBe(STEPS + 1);
  expect(await tracks(page).count()).toBeLessThan(600);
  // What lasts for the whole run has its name, though nothing of its beginning is in view.
  await page.evaluate(() => window.vramscope.setState({ x0: 20_000, x1: 20_100 }));
  const whole = page.getByRole("button", { name: "training" });
  await expect(whole.locator("span")).toBeInViewport();
  // Near enough each range has an element of its own, and lies where marking it says that it lies.
  const one = page.getByRole("button", { name: "forward" });
  await expect.poll(() => one.count()).toBeGreaterThan(50);
  const inView = one.nth(Math.floor((await one.count()) / 2));
  await inView.click();
  const mark = views.pane("Timeline").locator(".mark[data-kind=range]");
  await expect(mark).toBeVisible();
  const [from = 0, to = 0] = edges(await inView.boundingBox());
  const [left = 0, right = 0] = edges(await mark.boundingBox());
  expect(Math.abs(from - left)).toBeLessThanOrEqual(1);
  expect(Math.abs(to - right)).toBeLessThanOrEqual(1);
});

/** Ranges that have an element each, a hundred slots of the trace in view. */
async function near(viewer: Viewer): Promise<Locator> {
  await new Views(viewer).open(annotated());
  await viewer.page.evaluate(() => window.vramscope.setState({ x0: 20_000, x1: 20_100 }));
  const one = viewer.page.getByRole("button", { name: "forward" });
  await expect.poll(() => one.count()).toBeGreaterThan(50);
  return one;
}

test("the picture takes the ranges along without making or placing one anew", async ({
  viewer,
  page,
}) => {
  const one = await near(viewer);
  await page.locator(".tracks-laid").evaluate((laid) => {
    const seen = { made: 0, placed: 0 };
    Object.assign(window, { seen });
    new MutationObserver((changes) => {
      for (const { type, target } of changes) {
        if (type === "childList") seen.made += 1;
        else if (target instanceof HTMLButtonElement) seen.placed += 1;
      }
    }).observe(laid, { childList: true, subtree: true, attributes: true });
  });
  const before = await one.evaluateAll((all) =>
    all.map((each) => [each.getAttribute("title"), each.getBoundingClientRect().x]),
  );
  await page.evaluate(() => window.vramscope.setState({ x0: 20_002, x1: 20_102 }));
  const canvas = (await page.getByTestId("timeline-canvas").boundingBox())?.width ?? 0;
  await expect
    .poll(async () => (await one.first().boundingBox())?.x)
    .toBeLessThan(Number(before[0]?.[1]) - 10);
  const after = await one.evaluateAll((all) =>
    all.map((each) => [each.getAttribute("title"), each.getBoundingClientRect().x]),
  );
  expect(after).toHaveLength(before.length);
  // All by two hundredths of the plot, which is the canvas without its margins.
  const moved = Number(before[0]?.[1]) - Number(after[0]?.[1]);
  expect(moved).toBeGreaterThan(0.02 * (canvas - 100));
  expect(moved).toBeLessThan(0.02 * canvas);
  for (const [index, [, x]] of after.entries())
    expect(Number(before[index]?.[1]) - Number(x)).toBeCloseTo(moved, 0);
  expect(await page.evaluate(() => Reflect.get(window, "seen"))).toEqual({ made: 0, placed: 0 });
});

test("the next stretch makes only what comes, and what stays is not touched", async ({
  viewer,
  page,
}) => {
  const one = await near(viewer);
  const count = await one.count();
  await page.locator(".tracks-laid").evaluate((laid) => {
    const seen = { made: 0, gone: 0, touched: 0 };
    const stays = new Set(laid.children);
    Object.assign(window, { seen });
    new MutationObserver((changes) => {
      const here = changes.filter(({ target }) => target === laid);
      seen.made += here.reduce((sum, { addedNodes }) => sum + addedNodes.length, 0);
      seen.gone += here.reduce((sum, { removedNodes }) => sum + removedNodes.length, 0);
      // What goes all the way is cut elsewhere.
      seen.touched += changes.filter(
        ({ target }) => target !== laid && stays.has(target as Element),
      ).length;
    }).observe(laid, {
      childList: true,
      subtree: true,
      attributes: true,
      attributeFilter: ["style"],
    });
  });
  await page.evaluate(() => window.vramscope.setState({ x0: 20_040, x1: 20_140 }));
  const seen = () =>
    page.evaluate(
      () => Reflect.get(window, "seen") as { made: number; gone: number; touched: number },
    );
  await expect.poll(async () => (await seen()).made).toBeGreaterThan(5);
  const { made, gone, touched } = await seen();
  expect(made).toBeLessThan(count / 2);
  expect(gone).toBeLessThan(count / 2);
  expect(touched).toBeLessThan(5);
});

test("keys enter the ranges at one that is in view, and the picture goes along", async ({
  viewer,
  page,
}) => {
  const views = new Views(viewer);
  await views.open(annotated());
  await page.evaluate(() => window.vramscope.setState({ x0: 20_000, x1: 20_040 }));
  await expect
    .poll(() => page.getByRole("button", { name: "forward" }).count())
    .toBeGreaterThan(20);
  await page.locator(".track[tabindex='0']").focus();
  const focused = page.locator(".track:focus");
  await expect(focused).toBeInViewport();
  const range = async () => {
    const { x0, x1 } = await viewer.state();
    return { x0: Number(x0), x1: Number(x1) };
  };
  const before = await range();
  for (let step = 0; step < 30; step += 1) await page.keyboard.press("ArrowRight");
  await expect(focused).toBeInViewport();
  await expect.poll(async () => (await range()).x0).toBeGreaterThan(before.x0);
  const now = await range();
  expect(now.x1 - now.x0).toBeCloseTo(before.x1 - before.x0, 6);
});
