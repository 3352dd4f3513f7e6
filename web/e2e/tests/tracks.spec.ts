// Annotated ranges below the timeline.

import type { Page } from "@playwright/test";
import { expect, test } from "../lib/test.js";
import { Views } from "../lib/views.js";

const STEPS = 20_000;
/** Microseconds of a step. Its first half is annotated; one range lasts for the whole run. */
const STEP = 100;

/** A trace with one block per step and a range over half of each step. */
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

const tracks = (page: Page) => page.locator(".tracks:not(.phases) .track");

/** The annotated ranges, not what else has their name. */
const forwards = (page: Page) => tracks(page).and(page.getByRole("button", { name: "forward" }));

/** Number of ranges that the elements stand for, in view or not. */
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

test("20,000 ranges need a few hundred elements, move with the picture, and take keys", async ({
  viewer,
  page,
}) => {
  const views = new Views(viewer);
  await views.open(annotated());
  await test.step("zoomed out, ranges share elements; zoomed in, each has its own", async () => {
    await expect(tracks(page).first()).toBeVisible();
    expect(await counted(page)).toBe(STEPS + 1);
    expect(await tracks(page).count()).toBeLessThan(600);
    // A range of the whole run shows its name, although its start is out of view.
    await page.evaluate(() => window.vramscope.setState({ x0: 20_000, x1: 20_040 }));
    const whole = page.getByRole("button", { name: "training" });
    await expect(whole.locator("span")).toBeInViewport();
    // At this zoom each range has its own element. It lies where the mark of the range lies.
    const one = forwards(page);
    await expect.poll(() => one.count()).toBeGreaterThan(20);
    const inView = one.nth(Math.floor((await one.count()) / 2));
    await inView.click();
    const mark = views.pane("Timeline").locator(".mark[data-kind=range]");
    await expect(mark).toBeVisible();
    // The panel that opens makes the plot narrower.
    const apart = async () => {
      const [range, marked] = [edges(await inView.boundingBox()), edges(await mark.boundingBox())];
      return Math.max(...range.map((edge, at) => Math.abs(edge - (marked[at] ?? Number.NaN))));
    };
    await expect.poll(apart).toBeLessThanOrEqual(1);
  });
  await test.step("ranges move with the picture", async () => {
    const one = forwards(page);
    await page.evaluate(() => window.vramscope.setState({ x0: 20_000, x1: 20_040 }));
    await expect.poll(() => one.count()).toBeGreaterThan(20);
    const before = await one.evaluateAll((all) =>
      all.map((each) => [each.getAttribute("title"), each.getBoundingClientRect().x]),
    );
    await page.evaluate(() => window.vramscope.setState({ x0: 20_002, x1: 20_042 }));
    const canvas = (await page.getByTestId("timeline-canvas").boundingBox())?.width ?? 0;
    await expect
      .poll(async () => (await one.first().boundingBox())?.x)
      .toBeLessThan(Number(before[0]?.[1]) - 10);
    const after = await one.evaluateAll((all) =>
      all.map((each) => [each.getAttribute("title"), each.getBoundingClientRect().x]),
    );
    expect(after).toHaveLength(before.length);
    // Every range moves by a twentieth of the plot, which is the canvas without its margins.
    const moved = Number(before[0]?.[1]) - Number(after[0]?.[1]);
    expect(moved).toBeGreaterThan(0.05 * (canvas - 100));
    expect(moved).toBeLessThan(0.05 * canvas);
    for (const [index, [, x]] of after.entries())
      expect(Number(before[index]?.[1]) - Number(x)).toBeCloseTo(moved, 0);
  });
  await test.step("arrow keys move between ranges and pan the picture", async () => {
    await page.evaluate(() => window.vramscope.setState({ x0: 20_000, x1: 20_040 }));
    await expect.poll(() => forwards(page).count()).toBeGreaterThan(20);
    await page.locator(".tracks:not(.phases) .track[tabindex='0']").focus();
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
});
