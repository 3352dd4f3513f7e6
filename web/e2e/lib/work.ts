// Actions in the workspace, and readings of its state.

import { expect, type Locator, type Page } from "@playwright/test";
import type { Picked, Viewer } from "./viewer.js";

export interface Range {
  x0: number;
  x1: number;
}

/** A promise with its resolve function. */
export function later<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => undefined;
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

/** The range in view along x. */
export async function rangeOf(viewer: Viewer): Promise<Range> {
  const { x0, x1 } = await viewer.state();
  if (x0 === undefined || x1 === undefined) throw new Error("nothing is shown");
  return { x0, x1 };
}

export const widthOf = ({ x0, x1 }: Range) => x1 - x0;

/** Reads until the value is stable: jumps are eased, and answers arrive later. */
export async function still<T>(read: () => Promise<T>): Promise<T> {
  let before: T = await read();
  let same = 0;
  await expect
    .poll(
      async () => {
        const now = await read();
        same = JSON.stringify(now) === JSON.stringify(before) ? same + 1 : 0;
        before = now;
        return same;
      },
      { intervals: [60] },
    )
    .toBeGreaterThan(2);
  return before;
}

export const restedRange = (viewer: Viewer) => still(() => rangeOf(viewer));

/** Opens one file and waits until all views show it. */
export async function work(viewer: Viewer, file: Picked): Promise<void> {
  await viewer.show(file);
  await answering(viewer.page);
}

/** Waits until all views are loaded and show the selected trace. */
export async function answering(page: Page): Promise<void> {
  await expect(page.locator(".minimap-fill")).toBeAttached();
}

/** Closes the drawer: one canvas is drawn faster than two. */
export async function alone(viewer: Viewer): Promise<void> {
  await viewer.page.evaluate(() => window.vramscope.setState({ sheet: "none" }));
  await expect(viewer.page.locator("[data-place=sheet]")).toHaveCount(0);
  await restedRange(viewer);
}

/** The event of the cursor. */
export const cursorOf = async (page: Page): Promise<number | null> =>
  (await page.evaluate(() => window.vramscope.getState())).at ?? null;

export const expectCursor = (page: Page, event: number) =>
  expect.poll(() => cursorOf(page)).toBe(event);

/** Bytes of a line at the cursor, in the legend. */
export const bandOf = (page: Page, name: string) => page.locator(`.legend-bytes[data-key=${name}]`);

/** The pane of a view. */
export const pane = (page: Page, view: string) => page.getByTestId(`view-${view}`);

export const expectPlace = (page: Page, view: string, place: "main" | "track" | "sheet" | "none") =>
  expect(pane(page, view)).toHaveAttribute("data-place", place);

/** Marks over the timeline, by kind. */
export const marks = (page: Page, kind: string) =>
  pane(page, "timeline").locator(`.mark[data-kind=${kind}]`);

/** Position of the plot in the canvas, independent of the axis labels. */
export async function inside(
  viewer: Viewer,
): Promise<{ left: number; bottom: number; width: number }> {
  return viewer.canvas.evaluate(async (canvas) => {
    // A resized canvas is measured in this frame, and drawn and reported in the next ones.
    for (let frame = 0; frame < 3; frame += 1)
      await new Promise((resolve) => requestAnimationFrame(resolve));
    const read = (selector: string, name: string) => {
      const element = canvas.closest(".timeline")?.querySelector(selector);
      return element
        ? Number.parseFloat(getComputedStyle(element).getPropertyValue(name))
        : Number.NaN;
    };
    return {
      left: read(".minimap", "--left"),
      width: read(".minimap", "--width"),
      bottom: read(".tick-x", "--y"),
    };
  });
}

/** Moves the pointer to a fraction of the plot's width and height, and returns the position. */
export async function hoverAt(
  viewer: Viewer,
  part: number,
  height = 0.5,
): Promise<{ x: number; y: number }> {
  const { left, bottom, width } = await inside(viewer);
  const at = { x: left + width * part, y: bottom * height };
  await viewer.plot.moveTo(at.x, at.y);
  return at;
}

/** A drag over the canvas, between points in CSS pixels of it. */
export async function drag(
  viewer: Viewer,
  from: [number, number],
  to: [number, number],
  key?: string,
): Promise<void> {
  const { page } = viewer;
  const { x, y } = await viewer.plot.box();
  await page.mouse.move(x + from[0], y + from[1]);
  if (key !== undefined) await page.keyboard.down(key);
  await page.mouse.down();
  await page.mouse.move(x + to[0], y + to[1], { steps: 4 });
  await page.mouse.up();
  if (key !== undefined) await page.keyboard.up(key);
}

/** Selects a block by its reference. */
export async function select(viewer: Viewer, reference: string): Promise<void> {
  expect(await viewer.page.evaluate((name) => window.vramscope.select(name), reference)).toBe(true);
  await expect(viewer.details.locator("[data-reference]")).toHaveAttribute(
    "data-reference",
    reference,
  );
}

/** The reference of the selected block, or null. */
export const selectedOf = async (viewer: Viewer) => (await viewer.state()).sel ?? null;

/** Expects a visible focus ring. */
export async function expectFocusSeen(focused: Locator): Promise<void> {
  const seen = await focused.evaluate((element) => {
    const shown = (of: Element) => {
      const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(of);
      return (
        (outlineStyle !== "none" && Number.parseFloat(outlineWidth) > 0) || boxShadow !== "none"
      );
    };
    // A visually hidden input shows its focus on its parent.
    return shown(element) || (element.parentElement !== null && shown(element.parentElement));
  });
  expect(seen, "the focus is visible").toBe(true);
}

/** The block under a point of the timeline, by the element's method. */
export const under = (page: Page, x: number, y: number) =>
  page.evaluate(([px = 0, py = 0]) => window.vramscope.pick("timeline", px, py), [x, y]);

/** Shows the flame graph in Compare, until its frames are drawn. Returns its name. */
export async function flameOfBoth(page: Page): Promise<string> {
  await page.getByRole("button", { name: "flame graph", exact: true }).click();
  await expect(page.locator(".compare-flame .flame-name").first()).toBeVisible();
  return "flame graph of both";
}
