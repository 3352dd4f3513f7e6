// The main path in Firefox: open files, visit all views, select a block.

import { expect, test } from "@playwright/test";
import { PNG } from "pngjs";
import puppeteer, { type Browser, type ElementHandle, type Page } from "puppeteer-core";
import { deviceOf } from "../lib/cli.js";
import { testData } from "../lib/data.js";

// Declares `window.vramscope`.
import type {} from "../lib/viewer.js";

const REAL = "recorded/t26/gpt_small.pickle.gz";
const OTHER = "scenarios/f01.pickle";

const { FIREFOX } = process.env;

/** A page of Firefox with its errors, and queries through the viewer's shadow root. */
class Firefox {
  readonly errors: string[] = [];

  constructor(readonly page: Page) {
    page.on("pageerror", (error) => this.errors.push(`uncaught: ${String(error)}`));
    page.on(
      "console",
      (message) => message.type() === "error" && this.errors.push(`console: ${message.text()}`),
    );
  }

  async find(selector: string): Promise<ElementHandle> {
    const found = await this.page.waitForSelector(`>>> ${selector}`, { timeout: 30_000 });
    if (!found) throw new Error(`${selector} is missing`);
    return found;
  }

  async attribute(selector: string, name: string): Promise<string | null> {
    const found = await this.find(selector);
    return found.evaluate((element, of) => element.getAttribute(of), name);
  }

  /** Number of colors in the picture of a canvas. */
  async colors(testid: string): Promise<number> {
    const canvas = await this.find(`[data-testid=${testid}]`);
    const box = await canvas.boundingBox();
    if (!box) return 0;
    const { x, y, width, height } = box;
    // Cut off the labels on the left and below.
    const clip = { x: x + 70, y: y + 4, width: width - 80, height: height - 40 };
    const { data } = PNG.sync.read(Buffer.from(await this.page.screenshot({ clip })));
    const seen = new Set<number>();
    for (let at = 0; at < data.length; at += 4) seen.add(data.readUInt32BE(at));
    return seen.size;
  }
}

let browser: Browser;

test.beforeAll(async () => {
  if (FIREFOX === undefined) throw new Error("set FIREFOX to the path of Firefox");
  browser = await puppeteer.launch({ browser: "firefox", executablePath: FIREFOX, headless: true });
});

test.afterAll(async () => browser?.close());

test("files open, every view shows its content, and a click selects a block", async ({
  baseURL,
}) => {
  const page = await browser.newPage();
  const firefox = new Firefox(page);
  await page.setViewport({ width: 1440, height: 900 });
  await page.goto(`${baseURL}/`);
  await page.waitForFunction(() => "vramscope" in window);
  await page.evaluate(() => window.vramscope.ready);

  const input = (await firefox.find("[data-testid=open-files]")) as ElementHandle<HTMLInputElement>;
  await input.uploadFile(testData(REAL), testData(OTHER));
  for (const path of ["gpt_small.pickle.gz", "f01.pickle"]) {
    const row = `[data-testid=rank-row][data-path="${path}"]`;
    await expect.poll(() => firefox.attribute(row, "data-state"), { message: path }).toBe("ready");
  }
  await (await firefox.find('[data-testid=rank-row][data-path="gpt_small.pickle.gz"]')).click();
  const { peak } = deviceOf(REAL).requested_bytes;
  await expect
    .poll(() => firefox.attribute("[data-testid=peak-value]", "data-value"))
    .toBe(String(peak));
  await page.keyboard.press("2");
  await expect.poll(() => page.evaluate(() => window.vramscope.stats().strips)).toBeGreaterThan(0);
  await firefox.find("[data-testid=color-by]");

  await page.evaluate(() => window.vramscope.setState({ sheet: "none" }));
  const expectView = async (view: string, shown: string) => {
    await expect
      .poll(() => firefox.attribute(`[data-testid=view-${view}]`, "data-place"))
      .toBe("main");
    if (shown.endsWith("canvas"))
      await expect.poll(() => firefox.colors(shown), view).toBeGreaterThan(8);
    else await firefox.find(shown);
  };
  for (const [key, view, shown] of [
    ["1", "summary", "[data-testid=memory-bar]"],
    ["2", "timeline", "timeline-canvas"],
    ["3", "modules", "[data-testid=modules-text]"],
    ["4", "map", "map-canvas"],
    ["5", "ranks", "[data-testid=overview-row] [data-column=peak]"],
    ["6", "compare", "[data-testid=compare-totals] [data-column=change]"],
  ] as const) {
    await page.keyboard.press(key);
    await expectView(view, shown);
  }
  for (const view of ["flame", "segments"] as const) {
    await page.evaluate((to) => window.vramscope.setState({ view: to }), view);
    await expectView(view, `${view}-canvas`);
  }
  expect(await page.$$(">>> [role=alert]")).toHaveLength(0);

  await page.keyboard.press("2");
  await expect
    .poll(() => firefox.attribute("[data-testid=view-timeline]", "data-place"))
    .toBe("main");
  // Among chosen blocks a click selects one.
  await page.evaluate(() => window.vramscope.setState({ filter: ">=0B" }));
  const canvas = await (await firefox.find("[data-testid=timeline-canvas]")).boundingBox();
  if (!canvas) throw new Error("the timeline has no canvas");
  // Low in the stack, where a block is live in the middle of the trace.
  const [x, y] = [Math.round(canvas.width / 2), Math.round(canvas.height - 60)];
  await expect
    .poll(() => page.evaluate((...at) => window.vramscope.pick("timeline", ...at), x, y))
    .not.toBeNull();
  const hit = await page.evaluate((...at) => window.vramscope.pick("timeline", ...at), x, y);
  await page.mouse.click(canvas.x + x, canvas.y + y);
  await expect
    .poll(() => firefox.attribute("[data-testid=details] [data-reference]", "data-reference"))
    .toBe(hit?.reference);
  expect(await page.evaluate(() => window.vramscope.getState().sel)).toBe(hit?.reference);
  expect(firefox.errors).toEqual([]);
});
