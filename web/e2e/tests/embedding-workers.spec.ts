// What an element in somebody else's page starts and makes, and that all of it ends with the
// element.

import { expect } from "@playwright/test";
import { bare, open, test } from "../lib/embedded.js";
import { drawn } from "../lib/examples.js";
import { contexts, warmed, workers } from "../lib/faults.js";
import { later } from "../lib/work.js";

test("twenty viewers come and go, and leave neither workers nor GL contexts", async ({
  page,
  host,
  wrong,
}) => {
  test.setTimeout(180_000);
  const alive = await contexts(page);
  const its = await workers(page);
  await bare(page, host);
  for (let round = 0; round < 20; round += 1) {
    await open(page, "a", ["/data/scenarios/f01.pickle"]);
    await drawn(page);
    // Segments have a canvas of their own, below.
    await expect.poll(alive).toBe(2);
    const before = await page.evaluate(() => {
      const { started } = (window as unknown as { workers: { started: number } }).workers;
      const viewer = document.querySelector("vramscope-viewer");
      // Both ways to end one.
      viewer?.destroy();
      viewer?.remove();
      return started;
    });
    await expect(page.locator("vramscope-viewer")).toHaveCount(0);
    await expect.poll(alive).toBe(0);
    // Ending starts none, not even to end it at once. What has ended is counted a moment later.
    await expect.poll(its).toEqual({ started: before, alive: 0 });
  }
  // That there are too many contexts is a warning of the browser's.
  expect(wrong).toEqual([]);
});

test("a page that is not all its own loses no GL context to a viewer without a file", async ({
  page,
  host,
}) => {
  const alive = await contexts(page);
  await bare(page, host);
  await page.evaluate(async () => {
    const viewer = document.createElement("vramscope-viewer");
    document.getElementById("a")?.append(viewer);
    await viewer.ready;
  });
  // All that is made early has been made.
  await expect.poll(() => warmed(page)).toBe(1);
  expect(await alive()).toBe(0);
});

test("a viewer that has gone before its wasm fails to come starts no worker any more", async ({
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
