// The apps of web/examples, which use the published package.

import { test as base, expect } from "@playwright/test";
import { deviceOf } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { drawn, example } from "../lib/examples.js";
import { serveFolder } from "../lib/folder.js";
import { Viewer } from "../lib/viewer.js";
import { answering } from "../lib/work.js";

const GPT = testData("recorded/t26/gpt_small.pickle.gz");

/** Fails a test when its page logs an error. */
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
  test(`${name}: the package finds its files, shows a snapshot, and leaves no worker`, async ({
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
      "Loaded gpt_small.pickle.gz, 0 remaining",
    );
    await answering(page);
    expect(page.workers().length).toBeGreaterThan(0);
    await page.getByRole("button", { name: "Remove viewer" }).click();
    await expect(page.locator("vramscope-viewer")).toHaveCount(0);
    await expect.poll(() => page.workers().length).toBe(0);
    await served.stop();
  });
}

test("the package defines no global name", async ({ page }) => {
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
  // Named elements are properties of the window too. This page has none.
  expect(added).toEqual([]);
  await served.stop();
});
