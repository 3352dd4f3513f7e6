// From an empty page to the first file: what is prepared early, and what a slow or failed download
// leaves usable.

import type { Page } from "@playwright/test";
import { deviceOf } from "../lib/cli.js";
import { renamed, testData } from "../lib/data.js";
import { contexts, warmed } from "../lib/faults.js";
import { expect, test } from "../lib/test.js";
import { answering, later, rangeOf, restedRange, widthOf } from "../lib/work.js";

const F01 = testData("scenarios/f01.pickle");
const REAL = testData("recorded/t26/gpt_small.pickle.gz");
/** The chunk of all views but the timeline. */
const WORKSPACE = /workspace[^/]*\.js$/;

/** Waits for a canvas each for timeline and segments, and for a warm worker. */
async function prepared(page: Page, alive: () => Promise<number>): Promise<void> {
  await expect.poll(alive).toBe(2);
  await expect.poll(() => warmed(page)).toBe(1);
}

test("canvases and a worker are prepared before a file is open, and replaced if lost", async ({
  viewer,
  page,
}) => {
  const alive = await contexts(page);
  await test.step("the first file uses the prepared canvases", async () => {
    await page.reload();
    await prepared(page, alive);
    await viewer.show(F01);
    await answering(page);
    await page.keyboard.press("4");
    await expect(page.getByTestId("map-canvas")).toBeVisible();
    expect(await alive()).toBe(2);
  });
  await test.step("canvases that were lost before their use are replaced", async () => {
    await page.reload();
    await prepared(page, alive);
    await page.evaluate(() => {
      const { made } = window as unknown as { made: Set<WebGL2RenderingContext> };
      for (const context of made) context.getExtension("WEBGL_lose_context")?.loseContext();
    });
    expect(await alive()).toBe(0);
    await viewer.show(F01);
    await answering(page);
    await page.keyboard.press("4");
    await expect.poll(alive).toBe(2);
    await page.keyboard.press("2");
    await viewer.plot.drawn();
  });
});

test("a file that is dropped before the worker's module has arrived waits on its row", async ({
  viewer,
  page,
}) => {
  const module = later<void>();
  await page.route(/vramscope_worker[^/]*\.wasm$/, async (route) => {
    await module.promise;
    await route.continue();
  });
  await page.reload();
  await page.waitForFunction(() => "vramscope" in window);
  await page.getByTestId("open-files").setInputFiles(F01);
  await viewer.expectRow("f01.pickle", "queued");
  module.resolve();
  await viewer.expectRow("f01.pickle", "ready");
  await viewer.settled();
  await viewer.place("Timeline");
  await viewer.plot.drawn();
  await expect(viewer.peak).toHaveAttribute(
    "data-value",
    String(deviceOf(F01).requested_bytes.peak),
  );
  await answering(page);
});

test("without the chunk of the other views the page says so, and the timeline works", async ({
  viewer,
  page,
}) => {
  viewer.expectedErrors.push("Failed to load resource", "ERR_FAILED");
  await page.route(WORKSPACE, (route) => route.abort());
  const failed = page.waitForEvent("requestfailed");
  await page.reload();
  await page.waitForFunction(() => "vramscope" in window);
  await failed;
  await viewer.show([
    renamed("scenarios/f01.pickle", "rank0.pickle"),
    renamed("recorded/t26/gpt_small.pickle.gz", "rank1.pickle.gz"),
  ]);
  await viewer.expectRow("rank0.pickle", "ready");
  await viewer.expectRow("rank1.pickle.gz", "ready");
  await viewer.row("rank0.pickle").click();
  await viewer.plot.drawn();
  await expect(viewer.peak).toHaveAttribute(
    "data-value",
    String(deviceOf(F01).requested_bytes.peak),
  );
  await viewer.chooseAll();
  const scale = await viewer.plot.scale();
  const box = await viewer.plot.box();
  await page.mouse.click(box.x + scale.x(2.5), box.y + scale.y(500));
  await expect(viewer.details.locator("[data-reference]")).toHaveAttribute(
    "data-reference",
    "0:0x1000@1",
  );
  await expect(page.getByRole("alert")).toContainText(
    /views.*(could not|cannot) be (loaded|fetched)/i,
  );
  // The pane of a missing view shows the error too, instead of waiting.
  await viewer.place("Ranks");
  await expect(page.getByTestId("view-ranks")).not.toContainText(/loading/i);
  await viewer.place("Timeline");
  // The key sheet is missing too, so its key must not take the keyboard from the timeline.
  await viewer.row("rank1.pickle.gz").click();
  await viewer.plot.drawn();
  const whole = await restedRange(viewer);
  await viewer.canvas.focus();
  await page.keyboard.press("?");
  await page.keyboard.press("Escape");
  await page.keyboard.down("w");
  await expect.poll(async () => widthOf(await rangeOf(viewer))).toBeLessThan(widthOf(whole));
  await page.keyboard.up("w");
});

test("a search and the palette are not lost before the other views have arrived", async ({
  viewer,
  page,
}) => {
  const chunk = later<void>();
  await page.route(WORKSPACE, async (route) => {
    await chunk.promise;
    await route.continue();
  });
  await page.reload();
  await page.waitForFunction(() => "vramscope" in window);
  await page.getByTestId("open-files").setInputFiles(REAL);
  await viewer.plot.drawn();
  await page.getByTestId("search").fill("forward");
  await page.getByTestId("search").blur();
  await page.keyboard.press(">");
  chunk.resolve();
  await answering(page);
  await expect(page.getByRole("combobox", { name: "Command" })).toBeFocused();
  await page.keyboard.press("Escape");
  await expect(page.getByTestId("search")).toHaveValue("forward");
  await expect.poll(async () => (await viewer.state()).find).toBe("forward");
});
