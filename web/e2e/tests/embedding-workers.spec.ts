// Workers and GL contexts of an embedded element, which end with the element.

import { expect } from "@playwright/test";
import { bare, open, test } from "../lib/embedded.js";
import { drawn } from "../lib/examples.js";
import { contexts, warmed, workers } from "../lib/faults.js";
import { later } from "../lib/work.js";

test("ten viewers come and go without leaving workers or GL contexts", async ({
  page,
  host,
  wrong,
}) => {
  const alive = await contexts(page);
  const its = await workers(page);
  await bare(page, host);
  for (let round = 0; round < 10; round += 1) {
    await open(page, "a", ["/data/scenarios/f01.pickle"]);
    await drawn(page);
    // The timeline has a canvas. Another place makes its own when it is opened.
    await expect.poll(alive).toBe(1);
    const before = await page.evaluate(() => {
      const { started } = (window as unknown as { workers: { started: number } }).workers;
      const viewer = document.querySelector("vramscope-viewer");
      // Both ways to end a viewer.
      viewer?.destroy();
      viewer?.remove();
      return started;
    });
    await expect(page.locator("vramscope-viewer")).toHaveCount(0);
    await expect.poll(alive).toBe(0);
    // No worker is started to be ended at once. The browser counts an ended worker a moment later.
    await expect.poll(its).toEqual({ started: before, alive: 0 });
  }
  // Chromium logs a warning when a page has more than 16 contexts.
  expect(wrong).toEqual([]);
});

test("a viewer without a file makes no GL context on the host's page", async ({ page, host }) => {
  const alive = await contexts(page);
  await bare(page, host);
  await page.evaluate(async () => {
    const viewer = document.createElement("vramscope-viewer");
    document.getElementById("a")?.append(viewer);
    await viewer.ready;
  });
  // The worker is warm, so everything that is prepared early exists.
  await expect.poll(() => warmed(page)).toBe(1);
  expect(await alive()).toBe(0);
});

test("a viewer that is removed before its wasm fails starts no other worker", async ({
  page,
  host,
}) => {
  const held = later<void>();
  await page.route("**/*_bg.wasm", async (route) => {
    await held.promise;
    await route.fulfill({ status: 404, body: "not here" });
  });
  const its = await workers(page);
  await bare(page, host);
  await page.evaluate(() => {
    const said = window.package.openViewer(document.body).catch((error: Error) => error.message);
    Object.assign(window, { said });
    document.querySelector("vramscope-viewer")?.remove();
  });
  const before = await its();
  expect(before.started).toBeGreaterThan(0);
  held.resolve();
  expect(
    await page.evaluate(() => (window as unknown as { said: Promise<string> }).said),
  ).toContain("answered 404");
  expect(await its()).toEqual(before);
});
