// Apps that use the published package, built by bundlers and by none.

import { test as base, expect } from "@playwright/test";
import { deviceOf } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { drawn, example } from "../lib/examples.js";
import { serveFolder } from "../lib/folder.js";
import { Viewer } from "../lib/viewer.js";
import { answering } from "../lib/work.js";

const GPT = testData("recorded/t26/gpt_small.pickle.gz");

/** Fails on whatever a page logs as an error. */
const test = base.extend<{ wrong: string[] }>({
  wrong: [
    async ({ page }, use) => {
      const wrong: string[] = [];
      page.on("pageerror", (error) => wrong.push(`uncaught: ${error.message}`));
      page.on(
        "console",
        (message) => message.type() === "error" && wrong.push(`console: ${message.text()}`),
      );
      await use(wrong);
      expect(wrong).toEqual([]);
    },
    { auto: true },
  ],
});

for (const name of ["vite", "webpack", "esbuild", "plain"]) {
  test(`${name}: the package finds its wasm and its worker, shows a file, tells of it, and goes without a trace`, async ({
    page,
  }) => {
    const served = await serveFolder(example(name));
    await page.goto(served.at("/"));
    const viewer = new Viewer(page);
    await page.getByLabel("Snapshots").setInputFiles(GPT);
    await drawn(page);
    await expect(viewer.peak).toHaveAttribute(
      "data-value",
      String(deviceOf(GPT).requested_bytes.peak),
    );
    await expect(page.locator("output").first()).toHaveText(
      "gpt_small.pickle.gz is open, 0 to come",
    );
    // The second module and the other views, too.
    await answering(page);
    expect(page.workers().length).toBeGreaterThan(0);
    await page.getByRole("button", { name: "Take it away" }).click();
    await expect(page.locator("vramscope-viewer")).toHaveCount(0);
    await expect.poll(() => page.workers().length).toBe(0);
    await served.stop();
  });
}

test("the package leaves no name on the page", async ({ page }) => {
  const served = await serveFolder(example("plain"), {
    pages: { "/bare": "<!doctype html><link rel=icon href=data:,>" },
  });
  const names = () => page.evaluate(() => Object.getOwnPropertyNames(window).toSorted());
  await page.goto(served.at("/bare"));
  const bare = await names();
  await page.goto(served.at("/"));
  await page.getByLabel("Snapshots").setInputFiles(GPT);
  await answering(page);
  const added = (await names()).filter((name) => !bare.includes(name));
  // Elements that have a name are properties of a window; this page has none.
  expect(added).toEqual([]);
  await served.stop();
});
