// What hands do in the workspace, and what there is to read in it.

import { expect, type Locator, type Page } from "@playwright/test";
import type { Picked, Viewer } from "./viewer.js";

export interface Range {
  x0: number;
  x1: number;
}

/** A promise and who keeps it. */
export function later<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => undefined;
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

/** What is in view along x. */
export async function rangeOf(viewer: Viewer): Promise<Range> {
  const { x0, x1 } = await viewer.state();
  if (x0 === undefined || x1 === undefined) throw new Error("nothing is shown");
  return { x0, x1 };
}

export const widthOf = ({ x0, x1 }: Range) => x1 - x0;

/** Reads until it no longer changes: jumps are eased, answers come later. */
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

/** Opens one file and waits until all views are there and answer. */
export async function work(viewer: Viewer, file: Picked): Promise<void> {
  await viewer.show(file);
  await answering(viewer.page);
}

/** All views are there and have been answered for the trace in focus. */
export async function answering(page: Page): Promise<void> {
  await expect(page.locator(".minimap-fill")).toBeAttached();
}

/** Shuts the drawer: one canvas is drawn faster than two. */
export async function alone(viewer: Viewer): Promise<void> {
  await viewer.page.evaluate(() => window.vramscope.setState({ drawer: "none" }));
  await expect(viewer.page.locator("[data-place=drawer]")).toHaveCount(0);
  await restedRange(viewer);
}

/** The event of the time cursor, by what the state at it says. */
export async function cursorOf(page: Page): Promise<number | null> {
  const text = await page
    .getByTestId("moment")
    .getAttribute("data-event", { timeout: 2000 })
    .catch(() => null);
  return text === null ? null : Number(text);
}

export const expectCursor = (page: Page, event: number) =>
  expect(page.getByTestId("moment")).toHaveAttribute("data-event", String(event));

/** A line of the state at the cursor. */
export const bandOf = (page: Page, name: string) =>
  page.getByTestId("moment").locator(`[data-key=${name}] dd`);

/** The pane of a view. */
export const pane = (page: Page, view: string) => page.getByTestId(`view-${view}`);

export const expectPlace = (page: Page, view: string, place: "main" | "drawer" | "none") =>
  expect(pane(page, view)).toHaveAttribute("data-place", place);

/** What lies over the timeline, by its kind. */
export const marks = (page: Page, kind: string) =>
  pane(page, "timeline").locator(`.mark[data-kind=${kind}]`);

/** Where the plot is in the canvas, whatever the axis says. */
export async function inside(
  viewer: Viewer,
): Promise<{ left: number; bottom: number; width: number }> {
  return viewer.canvas.evaluate(async (canvas) => {
    // A canvas that has just got another size is measured in this frame, and drawn and told of in
    // the next ones.
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

/** Moves over the canvas to a place in its parts, and gives that place. */
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

/** Selects a block by its name. */
export async function select(viewer: Viewer, reference: string): Promise<void> {
  expect(await viewer.page.evaluate((name) => window.vramscope.select(name), reference)).toBe(true);
  await expect(viewer.details.locator("[data-reference]")).toHaveAttribute(
    "data-reference",
    reference,
  );
}

/** The selected block's name; null when nothing is. */
export const selectedOf = async (viewer: Viewer) => (await viewer.state()).sel ?? null;

/** A line is round a thing that has the keyboard. */
export async function expectFocusSeen(focused: Locator): Promise<void> {
  const seen = await focused.evaluate((element) => {
    const shown = (of: Element) => {
      const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(of);
      return (
        (outlineStyle !== "none" && Number.parseFloat(outlineWidth) > 0) || boxShadow !== "none"
      );
    };
    // An input that is out of sight shows its focus by what is around it.
    return shown(element) || (element.parentElement !== null && shown(element.parentElement));
  });
  expect(seen, "the focus can be seen").toBe(true);
}

/** What the page says is under a point of the timeline. */
export const under = (page: Page, x: number, y: number) =>
  page.evaluate(([px = 0, py = 0]) => window.vramscope.pick("timeline", px, py), [x, y]);
