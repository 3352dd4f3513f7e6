// What to change: chosen changes add up by a replay, for a GPU, and unfolded over the page.

import { readFile } from "node:fs/promises";
import type { Locator, Page } from "@playwright/test";
import { expectNoBarrier, THEMES } from "../lib/barriers.js";
import { cli } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";
import type { Viewer } from "../lib/viewer.js";
import { Views } from "../lib/views.js";

const SMALL = "recorded/t26/gpt_small.pickle.gz";
const NO_HISTORY = "recorded/misc/norecord.pickle";
const EXPANDABLE = "expandable_segments:True";

/** The summary of a file, with its levers. */
async function open(viewer: Viewer, file = SMALL): Promise<Views> {
  const views = new Views(viewer);
  await views.open(testData(file));
  const place = await views.main("Summary");
  await expect(place.getByTestId("levers-waiting")).toHaveCount(0, { timeout: 60_000 });
  return views;
}

const row = (page: Page, id: string) => page.locator(`[data-testid=lever][data-id="${id}"]`);
const needsOf = (row: Locator) => row.locator(".number[data-value]");

const firstOf = (...more: string[]) => {
  const [scenario] = cli("what-if", SMALL, ...more).scenarios;
  if (!scenario) throw new Error("no scenario");
  return scenario;
};

test("ticked changes are one replay, and stay in the link", async ({ viewer, page }) => {
  await open(viewer);
  const rows = page.getByTestId("lever");
  const sum = page.getByTestId("levers-sum");
  const state = () => page.evaluate(() => window.vramscope.getState().whatIf);
  await expect(sum).toHaveCount(0);
  const recipes = await rows.evaluateAll((all) =>
    all.map((one) => one.getAttribute("data-question") ?? ""),
  );
  const batch = recipes.find((recipe) => recipe.startsWith("batch:"));
  const other = recipes.find((recipe) => recipe !== "" && !/^(batch|expandable)/.test(recipe));
  if (!batch || !other) throw new Error(`no two changes: ${recipes}`);
  await test.step("one says nothing that its row does not say", async () => {
    await page.locator(`[data-question="${other}"] input`).check();
    await expect.poll(state).toBe(other);
    await expect(sum).toHaveCount(0);
    const alone = firstOf("--apply", other).least_device_memory;
    await expect(needsOf(page.locator(`[data-question="${other}"]`))).toHaveAttribute(
      "data-value",
      String(alone),
    );
    // The history remembers a view that rests.
    await page.waitForTimeout(700);
  });
  await test.step("two are replayed together", async () => {
    await page.locator(`[data-question="${batch}"] input`).check();
    const both = firstOf("--apply", `${other},${batch}`).least_device_memory;
    await expect(sum.locator("[data-value]")).toHaveAttribute("data-value", String(both));
    await expect(sum).toContainText("With these 2:");
    await expect.poll(state).toBe(`${other},${batch}`);
  });
  await test.step("the history goes back, and forward again", async () => {
    await page.keyboard.press("z");
    await expect.poll(state).toBe(other);
    await page.keyboard.press("Shift+Z");
    await expect.poll(state).toBe(`${other},${batch}`);
  });
  await test.step("a wrong change of a link is named", async () => {
    await page.evaluate(() => window.vramscope.setState({ whatIf: "faster" }));
    await expect(sum).toContainText("`faster` is no change of the program");
  });
});

test("a GPU gives verdicts, and what is typed for it is kept or refused", async ({
  viewer,
  page,
}) => {
  const views = await open(viewer);
  const now = page.getByTestId("as-recorded");
  const needs = Number(await needsOf(now).getAttribute("data-value"));
  await expect(now).not.toHaveAttribute("data-outcome", /./);
  await views.gpu("H100");
  await expect(now).toHaveAttribute("data-outcome", "fits");
  await expect(now).toContainText("to spare");
  await expect(page.getByTestId("levers")).toContainText("x the batch or more fits");
  const field = await views.gpu(`${Math.floor(needs / 2 ** 20) - 8} MiB`);
  await expect(now).toHaveAttribute("data-outcome", "short");
  await expect(now).toContainText("short");
  await expect(page.locator("[data-testid=lever][data-outcome=fits]").first()).toBeVisible();
  await field.fill("many");
  await field.press("Enter");
  await expect(field).toHaveAttribute("aria-invalid", "true");
  await expect(page.getByTestId("gpu")).toHaveAttribute("title", /`many` is no size/);
});

test("U unfolds all changes: by cost, with edits, settings, and what is no lever", async ({
  viewer,
  page,
}) => {
  await open(viewer);
  const asRecorded = await needsOf(page.getByTestId("as-recorded")).getAttribute("data-value");
  await page.keyboard.press("u");
  const all = page.getByTestId("unfolded");
  await expect(all.getByTestId("lever").first()).toBeVisible({ timeout: 60_000 });
  expect((await viewer.state()).levers).toBe("all");
  await test.step("groups by cost, each by need", async () => {
    const groups = all.locator("section[data-cost]");
    const costs = await groups.evaluateAll((each) =>
      each.map((one) => one.getAttribute("data-cost")),
    );
    const order = ["none", "edit", "time", "precision", "batch"];
    expect(costs).toEqual(order.filter((cost) => costs.includes(cost)));
    for (const group of await groups.all()) {
      // What costs time comes by what it saves for each second.
      if ((await group.getAttribute("data-cost")) === "time") continue;
      const needs = await needsOf(group).evaluateAll((each) =>
        each.map((one) => Number(one.getAttribute("data-value"))),
      );
      expect(needs).toEqual(needs.toSorted((a, b) => a - b));
    }
  });
  await test.step("the edit of a row", async () => {
    const states = row(page, "optimizer:8bit");
    await states.locator("input").focus();
    await expect(page.getByTestId("lever-edit").locator("pre")).toContainText("AdamW8bit");
  });
  await test.step("settings: as recorded they need what the run needs", async () => {
    const first = page.getByTestId("lever-settings").locator("tbody tr").first();
    await expect(first.locator("td").first()).toHaveAttribute("data-value", String(asRecorded), {
      timeout: 60_000,
    });
  });
  await test.step("what is no lever has a reason", async () => {
    await expect(page.getByTestId("lever-others")).toContainText("not possible");
    await expect(page.getByTestId("lever-others")).toContainText("LoRA: the file has no adapters");
  });
  for (const theme of THEMES) {
    await page.emulateMedia({ colorScheme: theme });
    await expectNoBarrier(page, theme, "levers", "any", ".summary");
  }
  await page.keyboard.press("Escape");
  await expect(all).toHaveCount(0);
});

test("chosen settings are a line on the timeline and in pictures", async ({ viewer, page }) => {
  const views = await open(viewer);
  const line = page.getByTestId("simulated-line").locator("path");
  await page.evaluate((text) => window.vramscope.setState({ whatIf: text }), EXPANDABLE);
  await views.main("Timeline");
  await expect(line).toHaveAttribute("d", /^M/);
  const download = page.waitForEvent("download");
  await views.share("Picture of the timeline, SVG");
  const svg = await readFile(await (await download).path(), "utf8");
  expect(svg).toContain('class="simulated"');
  expect(svg).toContain(`>reserved, simulated: ${EXPANDABLE}<`);
  await test.step("a changed program has other events", async () => {
    await page.evaluate(() => window.vramscope.setState({ whatIf: "batch:0.5" }));
    await expect(line).toHaveCount(0);
  });
});

test("a link to the old place opens the whole list, and without history it says why", async ({
  viewer,
  page,
}) => {
  await page.evaluate(() => {
    window.location.hash = "#v=1&view=what-if";
  });
  await new Views(viewer).open(testData(NO_HISTORY));
  await page.keyboard.press("1");
  await expect(page.getByTestId("levers").or(page.getByTestId("unfolded"))).toContainText(
    cli("what-if", NO_HISTORY).declined?.slice(0, 20) ?? "a reason",
  );
});
