// The table of the code beside the flame graph: sums by module, file and line, callers and callees.

import { basename } from "node:path";
import { type BlockRow, cli } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";
import { Views } from "../lib/views.js";

const REAL = "recorded/t26/gpt_small.pickle.gz";

const sumOf = (blocks: readonly BlockRow[]) => blocks.reduce((sum, { bytes }) => sum + bytes, 0);

test("lines have the bytes of the stacks through them, and a click chooses their blocks", async ({
  viewer,
  page,
}) => {
  const { event } = cli("peak", REAL);
  const { blocks } = cli("blocks", REAL);
  const isLive = ({ alloc_event, free_completed_event, live_at_end }: BlockRow) =>
    (alloc_event ?? -1) <= event &&
    (live_at_end || (free_completed_event !== null && event < free_completed_event));
  const live = blocks.filter(isLive);
  const views = new Views(viewer);
  await views.open(testData(REAL));
  const pane = await views.main("Flame");
  const { grid, rows } = views.table("code");
  await expect(grid, "where both have room, the table is open").toBeVisible();
  const line = (text: string) => rows.filter({ hasText: text }).first();

  await test.step("modules unfold to files and lines", async () => {
    await expect(rows.first()).toBeVisible();
    for (const level of [1, 2]) {
      const folded = grid.locator(".code-toggle[aria-expanded=false]");
      const count = await folded.count();
      expect(count, `rows to unfold on level ${level}`).toBeGreaterThan(0);
      for (let left = count; left > 0; left -= 1) {
        await folded.first().click();
        await expect(folded).not.toHaveCount(left);
        if ((await folded.count()) === 0) break;
      }
    }
    // The worker answers once more than the view shows.
    await expect(line("43 forward")).toBeVisible();
  });

  await test.step("a line's numbers are the program's", async () => {
    const through = live.filter(
      ({ of_free, frames }) =>
        !of_free &&
        frames.some(
          ({ file, line: at, name }) =>
            basename(file) === "gpt.py" && at === 43 && name === "forward",
        ),
    );
    const own = live.filter(({ site }) => site === "gpt.py:43 forward");
    expect(through.length).toBeGreaterThan(0);
    const row = line("43 forward");
    await expect(row.locator("[data-column=total]")).toHaveAttribute(
      "data-value",
      String(sumOf(through)),
    );
    await expect(row.locator("[data-column=own]")).toHaveAttribute(
      "data-value",
      String(sumOf(own)),
    );
    await row.click();
    const chips = page.getByTestId("chips");
    await expect(chips.locator("[data-term='via:gpt.py:43 forward']")).toBeVisible();
    await expect(viewer.details.getByTestId("group").locator("h2")).toHaveAttribute(
      "data-value",
      String(sumOf(through)),
    );
    // The table still lists the other lines.
    await expect(line("44 forward")).toBeVisible();
    await expect(row).toHaveAttribute("aria-selected", "true");
  });

  await test.step("its callers and callees", async () => {
    const sandwich = pane.getByTestId("sandwich");
    await expect(sandwich.locator("h4")).toContainText("gpt.py:43 forward");
    const callers = sandwich.getByRole("region", { name: "Callers", exact: true });
    await expect(callers.locator("button.share").first()).toBeVisible();
    const sums = await callers
      .locator(".num")
      .evaluateAll((all) => all.map((one) => Number(one.getAttribute("data-value"))));
    const whole = Number(await sandwich.locator("h4 .num").getAttribute("data-value"));
    expect(sums.reduce((sum, bytes) => sum + bytes, 0)).toBe(whole);
  });

  await test.step("columns sort, and the table closes", async () => {
    await page.keyboard.press("Escape");
    await grid.getByRole("button", { name: "blocks" }).click();
    const values = () =>
      grid
        .locator("[role=row][data-key] [data-column=blocks]")
        .evaluateAll((all) => all.map((one) => Number(one.getAttribute("data-value"))));
    await expect.poll(async () => (await values()).length).toBeGreaterThan(3);
    const toggle = pane.getByRole("button", { name: "table", exact: true });
    await toggle.click();
    await expect(grid).toHaveCount(0);
    await expect(pane.locator(".flame-name").first()).toBeVisible();
  });
});
