// What the page may fetch, its workers may not more than it.

import { serveFolder } from "../lib/folder.js";
import { expect, test } from "../lib/test.js";

test("no worker of the page reaches another origin, even one that would let it", async ({
  viewer,
  page,
}) => {
  const other = await serveFolder(null, { headers: { "Access-Control-Allow-Origin": "*" } });
  viewer.expectedErrors.push("Content Security Policy", "asked another origin");
  await page.evaluate(
    async (url) => window.vramscope.load([url]),
    other.at("/data/scenarios/f01.pickle", "localhost"),
  );
  await expect(viewer.rows).toHaveAttribute("data-state", "error");
  expect(other.asked).toEqual([]);
  // The address is good: the host answers who is not held back.
  expect((await page.request.get(other.at("/data/scenarios/f01.pickle"))).ok()).toBe(true);
  await other.stop();
});
