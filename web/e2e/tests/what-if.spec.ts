// Predictions: those of the program, as a table, a verdict and a line over the timeline.

import { readFile } from "node:fs/promises";
import type { Locator } from "@playwright/test";
import { expectNoBarrier, THEMES } from "../lib/barriers.js";
import { cli, type ScenarioRecord } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";
import { Views } from "../lib/views.js";

interface PlanRecord {
  needs_bytes: number;
}

const SMALL = "recorded/t26/gpt_small.pickle.gz";
const NO_HISTORY = "recorded/misc/norecord.pickle";

/** The table of the usual scenarios is that of the program with these arguments. */
async function expectUsual(view: Locator, ...more: string[]): Promise<void> {
  const { scenarios } = cli("what-if", SMALL, ...more);
  expect(scenarios.length).toBeGreaterThan(2);
  await expect(view.locator("tr[data-asked=false]")).toHaveCount(scenarios.length);
  for (const scenario of scenarios) {
    const row = view.locator(`tr[data-change="${scenario.change}"]`);
    await expectScenario(row, scenario);
    const needs = row.locator("[data-column=needs]");
    const least = scenario.least_device_memory;
    // Only some rows search for the least memory.
    if (least === null) await expect(needs).toBeEmpty();
    else await expect(needs).toHaveAttribute("data-value", String(least));
  }
}

/** A row states the numbers of a scenario. */
async function expectScenario(row: Locator, expected: ScenarioRecord): Promise<void> {
  const value = (column: string) => row.locator(`[data-column=${column}]`);
  await expect(value("reserved")).toHaveAttribute("data-value", String(expected.reserved_peak));
  await expect(value("active")).toHaveAttribute("data-value", String(expected.active_peak));
  await expect(value("flushes")).toHaveAttribute("data-value", String(expected.flushes));
  await expect(value("outcome")).toHaveAttribute("data-fits", String(expected.fits));
  const [first] = expected.ooms;
  if (first !== undefined)
    await expect(value("outcome")).toHaveAttribute("data-value", String(first));
}

test("states the program's numbers, and draws what a scenario reserves", async ({
  viewer,
  page,
}) => {
  const views = new Views(viewer);
  await views.show(testData(SMALL));
  await views.main("What if");
  const view = page.getByTestId("what-if");
  const asked = view.locator("tr[data-asked=true]");
  const line = page.getByTestId("simulated-line").locator("path");
  await test.step("the calibration comes first, then the usual scenarios", async () => {
    await expect(page.getByTestId("what-if-calibration")).toHaveText(
      "The model reproduces this recording to the byte.",
    );
    await expectUsual(view);
    await expect(asked).toHaveCount(0);
  });
  const first = (...more: string[]) => {
    const [scenario] = cli("what-if", SMALL, ...more).scenarios;
    if (!scenario) throw new Error("no scenario");
    return scenario;
  };
  await test.step("settings", async () => {
    await expect(line).toHaveCount(0);
    await page.getByTestId("what-if-expandable").click();
    await expectScenario(asked, first("--change", "expandable_segments:True"));
    await view.getByRole("button", { name: "Show on the timeline" }).click();
    await expect(line).toHaveAttribute("d", /^M/);
    const before = (await line.getAttribute("d")) ?? "";
    await views.main("What if");
    await page.getByTestId("what-if-roundup").selectOption("4");
    const both = "expandable_segments:True,roundup_power2_divisions:4";
    await expectScenario(asked, first("--change", both));
    await views.main("Timeline");
    await expect(line).toHaveAttribute("d", /^M/);
    await expect(line).not.toHaveAttribute("d", before);
    await views.main("What if");
    await expect(view).toContainText(`PYTORCH_CUDA_ALLOC_CONF=${both}`);
  });
  await test.step("no serious barrier", async () => {
    for (const theme of THEMES) {
      await page.emulateMedia({ colorScheme: theme });
      await expectNoBarrier(page, theme, "what-if", "serious");
    }
  });
  await test.step("a change of the program and a device", async () => {
    await page.getByRole("button", { name: "Back to the recording" }).click();
    await expect(asked).toHaveCount(0);
    await page.getByTestId("what-if-add").selectOption("batch:0.5");
    await expectScenario(asked, first("--apply", "batch:0.5"));
    // A changed program has other events.
    await views.main("Timeline");
    await expect(line).toHaveCount(0);
    await views.main("What if");
    const memory = page.getByTestId("capacity");
    await memory.fill("H100");
    await memory.press("Enter");
    await expectScenario(asked, first("--apply", "batch:0.5", "--device-memory", "H100"));
    await expect(page.getByTestId("what-if-verdict")).toContainText("Fits in ");
    await expectUsual(view, "--device-memory", "H100");
    const { plan } = cli("what-if", SMALL, "--plan", "H100") as { plan?: PlanRecord };
    await expect(page.getByTestId("plan")).toHaveAttribute("data-value", String(plan?.needs_bytes));
    await memory.fill("48MiB");
    await memory.press("Enter");
    await expectScenario(asked, first("--apply", "batch:0.5", "--pytorch-memory", "48MiB"));
    await expect(page.getByTestId("what-if-verdict")).toContainText("Runs out of memory in ");
    await memory.fill("many");
    await memory.press("Enter");
    await expect(memory).toHaveAttribute("aria-invalid", "true");
    await expect(page.getByTestId("gpu")).toHaveAttribute("title", /`many` is no size/);
  });
  await test.step("the recording as it is has no line", async () => {
    await page.getByRole("button", { name: "Back to the recording" }).click();
    await page.getByTestId("what-if-expandable").click();
    await views.main("Timeline");
    await expect(line).toHaveAttribute("d", /^M/);
    await views.main("What if");
    await page.getByRole("button", { name: "Back to the recording" }).click();
    await views.main("Timeline");
    await expect(line).toHaveCount(0);
  });
});

test("the palette opens it, and without a history it says why there is no prediction", async ({
  viewer,
  page,
}) => {
  const views = new Views(viewer);
  await views.open(testData(NO_HISTORY));
  await page.keyboard.press(">");
  await page.getByRole("combobox", { name: "Command" }).fill("what if");
  await page.keyboard.press("Enter");
  const { declined } = cli("what-if", NO_HISTORY);
  await expect(page.getByTestId("what-if-declined")).toHaveText(declined ?? "a reason");
});

test("changes the program as the program does, and keeps the question in the link", async ({
  viewer,
  page,
}) => {
  const views = new Views(viewer);
  await views.show(testData(SMALL));
  await views.main("What if");
  const view = page.getByTestId("what-if");
  const asked = view.locator("tr[data-asked=true]");
  const add = page.getByTestId("what-if-add");
  const field = page.getByTestId("what-if-apply");
  const recipes = "optimizer:8bit,batch:0.5";
  await test.step("usual changes, beside a setting", async () => {
    await add.selectOption("optimizer:8bit");
    await expect(field).toHaveValue("optimizer:8bit");
    await add.selectOption("batch:0.5");
    await expect(field).toHaveValue(recipes);
    await expect(add).toHaveValue("");
    await page.getByTestId("what-if-expandable").click();
    const change = ["--change", "expandable_segments:True"];
    const [expected] = cli("what-if", SMALL, "--apply", recipes, ...change).scenarios;
    if (!expected) throw new Error("no scenario");
    await expectScenario(asked, expected);
    await expectUsual(view);
  });
  await test.step("no serious barrier", async () => {
    await expectNoBarrier(page, "light", "what-if", "serious");
  });
  const question = `expandable_segments:True,${recipes}` as const;
  const state = () => page.evaluate(() => window.vramscope.getState().whatIf);
  await test.step("the link has the question", async () => {
    expect(await state()).toBe(question);
    await expect(page).toHaveURL(/whatIf=expandable_segments:True,optimizer:8bit,batch:0\.5/);
  });
  await test.step("a change that does not exist is named, and can be removed", async () => {
    await field.fill(`${recipes},faster`);
    await field.press("Enter");
    await expect(view.getByRole("alert")).toContainText("`faster` is no change of the program");
    await expect(field).toHaveAttribute("aria-invalid", "true");
    await field.fill(recipes);
    await field.press("Enter");
    await expect(asked).toBeVisible();
  });
  await test.step("the history goes back to the recording, and forward again", async () => {
    await expect.poll(state).toBe(question);
    await page.getByRole("button", { name: "Back to the recording" }).click();
    await expect(asked).toHaveCount(0);
    expect(await state()).toBeUndefined();
    await page.keyboard.press("z");
    await expect.poll(state).toBe(question);
    await expect(field).toHaveValue(recipes);
    await page.keyboard.press("Shift+Z");
    await expect.poll(state).toBeUndefined();
  });
  await test.step("pictures have the line and its label", async () => {
    await page.evaluate(() => window.vramscope.setState({ whatIf: "expandable_segments:True" }));
    await views.main("Timeline");
    await expect(page.getByTestId("simulated-line")).toBeAttached();
    const download = page.waitForEvent("download");
    await views.share("Picture of the timeline, SVG");
    const svg = await readFile(await (await download).path(), "utf8");
    expect(svg).toContain('class="simulated"');
    expect(svg).toContain(">reserved, simulated: expandable_segments:True<");
    const png = page.waitForEvent("download");
    await views.share("Picture of the timeline, PNG");
    expect((await png).suggestedFilename()).toMatch(/\.png$/);
  });
});
