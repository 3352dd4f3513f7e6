// Filters: rows choose groups of blocks, chips show and remove them, and every view follows. The
// numbers are the program's.

import type { Page } from "@playwright/test";
import { type BlockRow, cli } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";
import { Views, valuesOf } from "../lib/views.js";

const REAL = "recorded/t26/gpt_small.pickle.gz";

const sumOf = (blocks: readonly BlockRow[]) => blocks.reduce((sum, { bytes }) => sum + bytes, 0);
const chip = (page: Page, term: string) =>
  page.getByTestId("chips").locator(`[data-term="${term}"]`);

test("a row chooses its blocks in every view, and the cursor stays", async ({ viewer, page }) => {
  const peak = cli("peak", REAL);
  const { blocks } = cli("blocks", REAL);
  const views = new Views(viewer);
  await views.open(testData(REAL));
  const group = viewer.details.getByTestId("group");
  await page.keyboard.press("p");
  const held = page.getByTestId("legend");
  const entry = (category: string) => held.locator(`[data-term="category:${category}"] button`);
  const of = (category: string) => blocks.filter((block) => block.category === category);

  await test.step("a category", async () => {
    const [first] = peak.categories.toSorted((a, b) => b.bytes - a.bytes);
    if (!first) throw new Error("nothing is live at the peak");
    await entry(first.category).click();
    await expect(chip(page, `category:${first.category}`)).toBeVisible();
    await expect(group.locator("h2")).toHaveAttribute("data-value", String(first.bytes));
    const chosen = of(first.category);
    const fact = (key: string) => group.locator(`[data-key=${key}] dd`);
    await expect(group.locator("[data-key=blocks]")).toHaveAttribute(
      "data-value",
      String(chosen.length),
    );
    await expect(fact("allocated")).toHaveAttribute("data-value", String(sumOf(chosen)));
    await expect(fact("end")).toHaveAttribute(
      "data-value",
      String(sumOf(chosen.filter(({ live_at_end }) => live_at_end))),
    );
    await expect(fact("largest")).toHaveAttribute(
      "data-value",
      String(Math.max(...chosen.map(({ bytes }) => bytes))),
    );
    await expect(page.getByTestId("chips-found")).toHaveAttribute(
      "data-value",
      String(chosen.length),
    );
    expect((await viewer.state()).at).toBe(peak.event);
    await views.sheet("Blocks");
    await views.table("blocks").expectTotal(chosen.length);
    const pane = await views.main("Flame");
    await expect(pane.getByTestId("flame-matched")).toHaveAttribute(
      "data-value",
      String(first.bytes),
    );
    await views.main("Timeline");
    // The same row again clears.
    await entry(first.category).click();
    await expect(page.getByTestId("chips")).toHaveCount(0);
    await views.table("blocks").expectTotal(blocks.length);
  });

  await test.step("with Ctrl, a second category adds to the first", async () => {
    await entry("activation").click();
    await entry("parameter").click({ modifiers: ["Control"] });
    const both = [...of("activation"), ...of("parameter")];
    await expect(page.getByTestId("chips-found")).toHaveAttribute(
      "data-value",
      String(both.length),
    );
    await chip(page, "category:activation").getByRole("button").click();
    await expect(page.getByTestId("chips-found")).toHaveAttribute(
      "data-value",
      String(of("parameter").length),
    );
    await page.keyboard.press("Escape");
    await expect(page.getByTestId("chips")).toHaveCount(0);
  });

  await test.step("a call site, from the link and back", async () => {
    const [stack] = peak.stacks;
    if (!stack) throw new Error("nothing is live at the peak");
    const { site, bytes } = stack;
    const filter = `"site:${site}"`;
    await page.evaluate((text) => window.vramscope.setState({ filter: text }), filter);
    const chosen = blocks.filter((block) => block.site === site);
    expect(chosen.length).toBeGreaterThan(0);
    await expect(group.locator("[data-key=blocks]")).toHaveAttribute(
      "data-value",
      String(chosen.length),
    );
    const title = Number(await group.locator("h2").getAttribute("data-value"));
    expect(title).toBeGreaterThanOrEqual(bytes);
    await page.evaluate(() => window.vramscope.setState({ filter: "" }));
    await expect(group).toHaveCount(0);
    await page.evaluate((text) => window.vramscope.setState({ filter: text }), filter);
    await expect(group.locator("h2")).toHaveAttribute("data-value", String(title));
  });
});

test("the bars of a group are its most bytes in each step, and choose the step", async ({
  viewer,
  page,
}) => {
  const { steps } = cli("steps", REAL);
  const { blocks } = cli("blocks", REAL);
  const views = new Views(viewer);
  await views.open(testData(REAL));
  await page.evaluate(() => window.vramscope.setState({ filter: "category:activation" }));
  const bars = viewer.details.getByTestId("step-bars").getByRole("button");
  await expect(bars).toHaveCount(steps.length);
  const chosen = blocks.filter(({ category }) => category === "activation");
  const liveAfter = (event: number) =>
    sumOf(
      chosen.filter(
        ({ alloc_event, free_completed_event }) =>
          (alloc_event ?? -1) <= event && event < (free_completed_event ?? Infinity),
      ),
    );
  const most = steps.map(({ begin, end }) => {
    let largest = 0;
    for (let event = begin; event < end; event += 1) largest = Math.max(largest, liveAfter(event));
    return largest;
  });
  expect(await valuesOf(bars)).toEqual(most);
  const [, second] = steps;
  if (!second) throw new Error("no second step");
  await bars.nth(1).click();
  await expect(chip(page, `step:${second.step}`)).toBeVisible();
  const inStep = chosen.filter(
    ({ alloc_event }) =>
      alloc_event !== null && second.begin <= alloc_event && alloc_event < second.end,
  );
  await expect(page.getByTestId("chips-found")).toHaveAttribute(
    "data-value",
    String(inStep.length),
  );
});
