// The content security policy of the page holds in its workers too.

import { serveFolder } from "../lib/folder.js";
import { expect, test } from "../lib/test.js";

test("neither the page nor its workers reach another origin", async ({ viewer, page }) => {
  const other = await serveFolder(null, { headers: { "Access-Control-Allow-Origin": "*" } });
  viewer.expectedErrors.push("Content Security Policy", "asked another origin");
  const elsewhere = other.at("/data/scenarios/f01.pickle", "localhost");
  const answer = await page.evaluate(
    (url) =>
      fetch(url).then(
        () => "answered",
        (error: Error) => error.name,
      ),
    elsewhere,
  );
  expect(answer).toBe("TypeError");
  await page.evaluate(async (url) => window.vramscope.load([url]), elsewhere);
  await expect(viewer.rows).toHaveAttribute("data-state", "error");
  expect(other.asked).toEqual([]);
  // The address is valid: the server answers a request that no policy blocks.
  expect((await page.request.get(other.at("/data/scenarios/f01.pickle"))).ok()).toBe(true);
  await other.stop();
});
