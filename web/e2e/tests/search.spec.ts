// The search: results by call site, terms, and filters that it writes. The numbers are the
// program's.

import { type BlockRow, cli } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";
import { Views } from "../lib/views.js";

const REAL = "recorded/t26/gpt_small.pickle.gz";
const MIB = 2 ** 20;

const sumOf = (blocks: readonly BlockRow[]) => blocks.reduce((sum, { bytes }) => sum + bytes, 0);

test("results are grouped by call site with their bytes at the peak", async ({ viewer, page }) => {
  const { event } = cli("peak", REAL);
  const { blocks } = cli("blocks", REAL);
  const isLive = ({ alloc_event, free_completed_event, live_at_end }: BlockRow) =>
    (alloc_event ?? -1) <= event &&
    (live_at_end || (free_completed_event !== null && event < free_completed_event));
  const views = new Views(viewer);
  await views.open(testData(REAL));
  const search = page.getByTestId("search");
  const results = page.getByTestId("results");
  const count = results.locator("output");

  await test.step("a word", async () => {
    const found = blocks.filter(({ frames }) => frames.some(({ name }) => name === "_init_group"));
    expect(found.length).toBeGreaterThan(0);
    await search.fill("_init_group");
    await expect(count).toHaveAttribute("data-value", String(found.length));
    const sites = new Map<string, number>();
    for (const block of found)
      sites.set(block.site, (sites.get(block.site) ?? 0) + (isLive(block) ? block.bytes : 0));
    const expected = [...sites.values()].toSorted((a, b) => b - a).slice(0, 12);
    const shown = await results
      .locator(".num")
      .evaluateAll((all) => all.map((one) => Number(one.getAttribute("data-value"))));
    expect(shown).toEqual(expected);
  });

  await test.step("Enter writes filters, and a row adds its call site", async () => {
    await search.fill("> 1 MiB live@peak");
    const large = blocks.filter((block) => block.bytes > MIB && isLive(block));
    await expect(count).toHaveAttribute("data-value", String(large.length));
    await search.press("Enter");
    await expect(search).toHaveValue("");
    const chips = page.getByTestId("chips");
    await expect(chips.locator("[data-term='>1 MiB']")).toBeVisible();
    await expect(chips.locator("[data-term='live@peak']")).toBeVisible();
    await search.fill("forward");
    await expect(count).not.toHaveAttribute("data-value", String(large.length));
    const first = results.locator("button.share").first();
    const site = await first.locator(".share-site").innerText();
    await first.click();
    // Two chips have room; with the focus in the box all are seen.
    await search.focus();
    await expect(chips.locator(`[data-term="site:${site}"]`)).toBeVisible();
    await expect(search).toHaveValue("");
    const chosen = large.filter((block) => block.site === site);
    await expect(viewer.details.getByTestId("group").locator("h2")).toHaveAttribute(
      "data-value",
      String(sumOf(chosen)),
    );
  });

  await test.step("an invalid search says what can be searched", async () => {
    await page.evaluate(() => window.vramscope.setState({ filter: "" }));
    await search.fill("category:nothing");
    await expect(results).toContainText("Terms: site:");
    await expect(page.locator(".found")).toHaveText("no match");
  });
});
