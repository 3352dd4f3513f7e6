// Steps over each other, with the numbers of `vramscope steps`.

import { cli } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";
import { Views } from "../lib/views.js";

const LEAK = "recorded/gpt_leak.pickle.gz";

test("steps have the peaks and floors of the program, and choose their blocks", async ({
  viewer,
  page,
}) => {
  const views = new Views(viewer);
  await views.show(testData(LEAK));
  const pane = await views.sheet("Steps");
  const { steps, growth_text: text } = cli("steps", LEAK);
  expect(steps.length).toBeGreaterThan(8);
  await expect(pane.getByTestId("folded-text")).toHaveText(text.join(" "));
  expect(text[0]).toMatch(/^\+.* a step from step 1 to /);

  const rows = pane.locator("tbody tr");
  await expect(rows).toHaveCount(steps.length);
  const value = (step: number, column: string) =>
    pane.locator(`tr[data-step="${step}"] [data-column=${column}]`);
  for (const { step, peak_bytes, floor_bytes, change } of steps) {
    await expect(value(step, "peak")).toHaveAttribute("data-value", String(peak_bytes));
    await expect(value(step, "floor")).toHaveAttribute("data-value", String(floor_bytes));
    if (change !== null)
      await expect(value(step, "change")).toHaveAttribute("data-value", String(change));
  }
  await test.step("the last step is solid, and the one under the pointer", async () => {
    const solid = pane.locator("path.folded-last[data-step]");
    await expect(solid).toHaveAttribute("data-step", String(steps.length - 1));
    await expect(pane.locator(".folded-line")).toHaveCount(steps.length);
    await pane.locator('tr[data-step="9"]').hover();
    await expect(solid).toHaveAttribute("data-step", "9");
  });
  await test.step("a step is a filter", async () => {
    await pane.locator('tr[data-step="9"]').getByRole("button").click();
    await expect(page.getByTestId("chips").locator('[data-term="step:9"]')).toBeVisible();
  });
});

test("a window without steps says so", async ({ viewer }) => {
  const file = "scenarios/f05.pickle";
  const views = new Views(viewer);
  await views.show(testData(file));
  const pane = await views.sheet("Steps");
  await expect(pane).toContainText(cli("steps", file).growth_text.join(" "));
});
