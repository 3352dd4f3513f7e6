// What is fetched when: the first picture waits for little, and is there whatever becomes of the
// rest.

import type { Page, Route } from "@playwright/test";
import { deviceOf } from "../lib/cli.js";
import { renamed, testData } from "../lib/data.js";
import { contexts, warmed } from "../lib/faults.js";
import { expect, test } from "../lib/test.js";
import { answering, later, rangeOf, restedRange, widthOf } from "../lib/work.js";

const F01 = testData("scenarios/f01.pickle");
/** The chunk of the workspace. */
const VIEWS = /workspace[^/]*\.js$/;

test("nothing of the views is asked for before the page is ready", async ({ viewer, page }) => {
  // The page that was here may still be asking for things of its own.
  await page.goto("about:blank");
  // The first module is kept back, so that what comes before it is told from what comes after.
  const first = later<Route>();
  await page.route(/vramscope_worker_bg[^/]*\.wasm$/, (route) => first.resolve(route));
  const order: string[] = [];
  page.on("request", (request) =>
    order.push(new URL(request.url()).pathname.split("/").at(-1) ?? ""),
  );
  const viewModule = page.waitForResponse(/vramscope_view_bg[^/]*\.wasm$/);
  await page.goto("/");
  await page.waitForFunction(() => "vramscope" in window);
  await page.evaluate(() => {
    Object.assign(window, { readyAt: Number.POSITIVE_INFINITY });
    void window.vramscope.ready.then(() => Object.assign(window, { readyAt: performance.now() }));
  });
  await (await viewModule).finished();
  const route = await first.promise;
  expect(order.filter((name) => VIEWS.test(name))).toEqual([]);
  await route.continue();
  await page.evaluate(() => window.vramscope.ready);
  // And then they come by themselves, while a visitor looks for his files.
  await expect.poll(() => order.filter((name) => VIEWS.test(name)).length).toBeGreaterThan(0);
  const early = await page.evaluate(() => {
    const { readyAt } = window as unknown as { readyAt: number };
    const entries = performance.getEntriesByType("resource");
    return entries.filter(({ startTime }) => startTime < readyAt).map(({ name }) => name);
  });
  expect(early.length).toBeGreaterThan(2);
  expect(early.filter((name) => VIEWS.test(name))).toEqual([]);
  await viewer.show(F01);
});

/** Both canvases, and a worker that is warm. */
async function prepared(page: Page, alive: () => Promise<number>): Promise<void> {
  await expect.poll(alive).toBe(2);
  await expect.poll(() => warmed(page)).toBe(1);
}

test("what the first file needs is made while nobody has chosen one", async ({ viewer, page }) => {
  const alive = await contexts(page);
  await page.reload();
  await prepared(page, alive);
  await viewer.show(F01);
  await answering(page);
  await expect(page.getByTestId("segments-canvas")).toBeVisible();
  expect(await alive()).toBe(2);
});

test("blocks are asked for before all else, and lines when they are there", async ({
  viewer,
  page,
}) => {
  const alive = await contexts(page);
  await page.addInitScript(() => {
    const { postMessage } = Worker.prototype;
    const asked: unknown[] = [];
    Object.assign(window, { asked });
    Worker.prototype.postMessage = function (this: Worker, ...what: unknown[]) {
      const [message] = what as [{ kind: string; request: unknown }];
      if (message.kind === "ask") asked.push(message.request);
      Reflect.apply(postMessage, this, what);
    } as typeof postMessage;
  });
  await page.reload();
  await prepared(page, alive);
  await viewer.show(F01);
  await answering(page);
  type Asked = { tiles?: { layer: { timeline?: { bands: boolean } } } };
  const asked = await page.evaluate(() => (window as unknown as { asked: Asked[] }).asked);
  const bands = asked.flatMap(({ tiles }) => tiles?.layer.timeline?.bands ?? []);
  expect(asked[0]?.tiles?.layer.timeline).toMatchObject({ bands: false });
  expect(bands.at(-1)).toBe(true);
  expect(bands.indexOf(true)).toBe(bands.lastIndexOf(false) + 1);
});

test("a canvas that was lost before its use is replaced", async ({ viewer, page }) => {
  const alive = await contexts(page);
  await page.reload();
  await prepared(page, alive);
  await page.evaluate(() => {
    const { made } = window as unknown as { made: Set<WebGL2RenderingContext> };
    for (const context of made) context.getExtension("WEBGL_lose_context")?.loseContext();
  });
  expect(await alive()).toBe(0);
  await viewer.show(F01);
  await answering(page);
  await expect.poll(alive).toBe(2);
  expect(await page.evaluate(() => window.vramscope.stats().strips)).toBeGreaterThan(0);
});

test("a file that is being read when the views come gets them too", async ({ viewer, page }) => {
  const views = later<void>();
  const asked = later<void>();
  const file = later<void>();
  await page.route(VIEWS, async (route) => {
    await views.promise;
    await route.continue();
  });
  await page.route("**/slow.pickle", async (route) => {
    asked.resolve();
    await file.promise;
    await route.fulfill({ path: F01 });
  });
  await page.reload();
  await page.waitForFunction(() => "vramscope" in window);
  await page.evaluate(() => window.vramscope.ready);
  await page.evaluate(() => void window.vramscope.load(["/slow.pickle"]));
  await asked.promise;
  views.resolve();
  await expect(page.getByTestId("color-by")).toBeAttached();
  file.resolve();
  await viewer.plot.drawn();
  await answering(page);
  await page.keyboard.press("p");
  await expect(page.getByTestId("moment")).toBeVisible();
});

test("without the views there is still a timeline, and the page says so", async ({
  viewer,
  page,
}) => {
  viewer.expectedErrors.push("Failed to load resource", "ERR_FAILED");
  await page.route(VIEWS, (route) => route.abort());
  const failed = page.waitForEvent("requestfailed");
  await page.reload();
  await page.waitForFunction(() => "vramscope" in window);
  await failed;
  await viewer.show([
    renamed("scenarios/f01.pickle", "rank0.pickle"),
    renamed("scenarios/f02.pickle", "rank1.pickle"),
  ]);
  await viewer.expectRow("rank0.pickle", "ready");
  await viewer.expectRow("rank1.pickle", "ready");
  await viewer.row("rank0.pickle").click();
  await viewer.plot.drawn();
  await expect(viewer.peak).toHaveAttribute(
    "data-value",
    String(deviceOf(F01).requested_bytes.peak),
  );
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
  // What belongs to a view says the same in its place, and does not wait for ever.
  await page.getByRole("tablist", { name: "Views" }).getByRole("tab", { name: "Overview" }).click();
  await expect(page.getByTestId("view-overview")).not.toContainText(/loading/i);
  await page.getByRole("tab", { name: "Timeline" }).click();
});

test("without the views the question mark takes the keyboard from nobody", async ({
  viewer,
  page,
}) => {
  viewer.expectedErrors.push("Failed to load resource", "ERR_FAILED");
  await page.route(VIEWS, (route) => route.abort());
  await page.reload();
  await page.waitForFunction(() => "vramscope" in window);
  await viewer.show(testData("recorded/t26/gpt_small.pickle.gz"));
  const whole = await restedRange(viewer);
  await viewer.canvas.focus();
  await page.keyboard.press("?");
  await page.keyboard.press("Escape");
  await page.keyboard.down("w");
  await expect.poll(async () => widthOf(await rangeOf(viewer))).toBeLessThan(widthOf(whole));
  await page.keyboard.up("w");
});

test("what is typed in the search before the views are there is not lost", async ({
  viewer,
  page,
}) => {
  const views = later<void>();
  await page.route(VIEWS, async (route) => {
    await views.promise;
    await route.continue();
  });
  await page.reload();
  await page.waitForFunction(() => "vramscope" in window);
  await viewer.show(testData("recorded/t26/gpt_small.pickle.gz"));
  await page.getByTestId("search").fill("forward");
  views.resolve();
  await answering(page);
  await expect(page.getByTestId("search")).toHaveValue("forward");
  await expect.poll(async () => (await viewer.state()).find).toBe("forward");
});

test("files opened before the viewer is loaded wait in their rows, and are read then", async ({
  viewer,
  page,
}) => {
  const module = later<void>();
  await page.route(/vramscope_worker_bg[^/]*\.wasm$/, async (route) => {
    await module.promise;
    await route.continue();
  });
  await page.reload();
  await viewer.open([
    renamed("scenarios/f02.pickle", "rank1.pickle"),
    renamed("scenarios/f01.pickle", "rank0.pickle"),
  ]);
  await viewer.expectRow("rank1.pickle", "queued");
  await expect(viewer.row("rank1.pickle")).toContainText("waiting");
  await viewer.row("rank1.pickle").click();
  await expect(page.getByText("Waiting for the viewer to load")).toBeVisible();
  module.resolve();
  await viewer.expectRow("rank0.pickle", "ready");
  await viewer.expectRow("rank1.pickle", "ready");
  await expect(viewer.row("rank1.pickle")).toHaveAttribute("aria-selected", "true");
  await expect(viewer.rows.first()).toHaveAttribute("data-rank", "0");
});
