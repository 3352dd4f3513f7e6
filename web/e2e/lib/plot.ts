// Pictures of a plot, and the positions of bytes and slots in it.

import { expect, type Locator, type Page } from "@playwright/test";
import { PNG } from "pngjs";

/** Minimum difference of two colors, summed over the channels: at most 3 x 255. */
const DISTINCT = 24;

/** Width of a stripe and a gap of a hatch, in pixels. */
const HATCH = 6;

const UNITS: Record<string, number> = {
  B: 1,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
};

interface Tick {
  at: number;
  value: number;
}

/** Positions in CSS pixels of the canvas. */
export interface Scale {
  left: number;
  bottom: number;
  /** Left edge of the slot of an event. */
  x(event: number): number;
  y(bytes: number): number;
}

type Color = readonly [number, number, number];

export class Picture {
  constructor(readonly png: PNG) {}

  get width(): number {
    return this.png.width;
  }

  color(x: number, y: number): Color {
    const at = 4 * (y * this.png.width + x);
    const [r = 0, g = 0, b = 0] = this.png.data.subarray(at, at + 3);
    return [r, g, b];
  }

  /** Whether a pixel differs from all of these colors. */
  differs(x: number, y: number, colors: readonly Color[]): boolean {
    const [r, g, b] = this.color(x, y);
    return colors.every(
      (c) => Math.abs(c[0] - r) + Math.abs(c[1] - g) + Math.abs(c[2] - b) > DISTINCT,
    );
  }

  /** The colors in a row of pixels, as wide as a stripe and a gap of a hatch. */
  run(x: number, y: number): Set<string> {
    const from = Math.round(x) - HATCH / 2;
    return new Set(Array.from({ length: HATCH }, (_, by) => String(this.color(from + by, y))));
  }

  /** Topmost drawn row of a column. Three rows in a run are needed, so grid lines do not count. */
  top(x: number, bottom: number, background: readonly Color[]): number {
    let run = 0;
    for (let y = 0; y < bottom; y += 1) {
      run = this.differs(x, y, background) ? run + 1 : 0;
      if (run === 3) return y - 2;
    }
    return bottom;
  }

  /** Share of drawn pixels in a rectangle. */
  share(x0: number, y0: number, x1: number, y1: number, background: readonly Color[]): number {
    let drawn = 0;
    for (let y = y0; y < y1; y += 1)
      for (let x = x0; x < x1; x += 1) if (this.differs(x, y, background)) drawn += 1;
    return drawn / ((x1 - x0) * (y1 - y0));
  }
}

export class Plot {
  constructor(
    readonly page: Page,
    readonly canvas: Locator,
  ) {}

  /** Waits until the number of drawn strips no longer changes. */
  async drawn(): Promise<void> {
    await expect.poll(() => this.strips(), { timeout: 30_000 }).toBeGreaterThan(0);
    let before = -1;
    await expect
      .poll(
        async () => {
          const now = await this.strips();
          const same = now === before;
          before = now;
          return same;
        },
        { intervals: [200, 200, 300], timeout: 30_000 },
      )
      .toBe(true);
  }

  strips(): Promise<number> {
    return this.page.evaluate(() => window.vramscope.stats().strips);
  }

  /** A picture of the canvas without the texts over it. */
  async picture(): Promise<Picture> {
    const over = (shown: boolean) =>
      this.canvas.evaluate(
        (canvas, visibility) => {
          for (const other of canvas.closest(".plot")?.children ?? []) {
            if (!other.contains(canvas) && other instanceof HTMLElement)
              other.style.visibility = visibility;
          }
        },
        shown ? "" : "hidden",
      );
    await over(false);
    // The browser snaps a canvas to whole pixels.
    const { x, y, width, height } = await this.box();
    const clip = {
      x: Math.round(x),
      y: Math.round(y),
      width: Math.round(width),
      height: Math.round(height),
    };
    const png = await this.page.screenshot({ clip });
    await over(true);
    return new Picture(PNG.sync.read(png));
  }

  /** The scale, read from the tick labels. */
  async scale(): Promise<Scale> {
    const found = await this.canvas.evaluate((canvas) => {
      const number = (element: Element, name: string) =>
        Number.parseFloat(getComputedStyle(element).getPropertyValue(name));
      const all = (selector: string) => [
        ...(canvas.closest(".plot")?.querySelectorAll(selector) ?? []),
      ];
      const ticks = (selector: string, name: string) =>
        all(selector).map((tick) => ({ at: number(tick, name), text: tick.textContent ?? "" }));
      const [left] = all(".tick-y");
      const [below] = all(".tick-x");
      return {
        x: ticks(".tick-x", "--x"),
        y: ticks(".tick-y", "--y"),
        left: left ? number(left, "--x") : Number.NaN,
        bottom: below ? number(below, "--y") : Number.NaN,
      };
    });
    const { left, bottom } = found;
    // Labels are parsed on use, because labels of the time axis are no event numbers.
    return {
      left,
      bottom,
      x: (at) => along(found.x, event)(at),
      y: (at) => along(found.y, bytes)(at),
    };
  }

  /** Moves the mouse to a point of the canvas. */
  async moveTo(x: number, y: number): Promise<void> {
    const box = await this.box();
    await this.page.mouse.move(box.x + x, box.y + y);
  }

  async box(): Promise<{ x: number; y: number; width: number; height: number }> {
    const box = await this.canvas.boundingBox();
    if (box === null) throw new Error("the canvas is not shown");
    return box;
  }
}

/** Maps a value to its position by the two outermost ticks. */
function along(
  ticks: { at: number; text: string }[],
  read: (text: string) => number,
): (value: number) => number {
  const known: Tick[] = ticks
    .map(({ at, text }) => ({ at, value: read(text) }))
    .sort((a, b) => a.value - b.value);
  const [low, high] = [known.at(0), known.at(-1)];
  if (!low || !high || low === high)
    throw new Error(`too few ticks: ${ticks.map(({ text }) => text).join(", ")}`);
  return (value) => low.at + ((value - low.value) * (high.at - low.at)) / (high.value - low.value);
}

/** Parses `1.5 GiB`. */
function bytes(text: string): number {
  const [number = "", unit = "B"] = text.trim().split(/\s+/);
  return exactly(text, Number(number.replaceAll(",", "")) * (UNITS[unit] ?? Number.NaN));
}

/** Parses `#10,000`. */
function event(text: string): number {
  return exactly(text, Number(text.replace(/[#,]/g, "")));
}

function exactly(text: string, value: number): number {
  if (Number.isNaN(value)) throw new Error(`not a tick: ${text}`);
  return value;
}
