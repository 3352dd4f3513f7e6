// The peak lens: separate peaks, the events around one, and a treemap of the live set, with the
// numbers of `vramscope peak`.

import type { Locator } from "@playwright/test";
import { cli, stateOf } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";
import { Views, valuesOf } from "../lib/views.js";

const FILE = "recorded/t26/gpt_small.pickle.gz";

/** The view shows the separate peak with this number, from 1. */
async function expectPeak(pane: Locator, number: number): Promise<void> {
  const report = cli("peak", FILE, "--peak", String(number));
  const shown = report.peaks[number - 1];
  await expect(pane.getByTestId("peak-text")).toHaveText(shown?.text.join(" ") ?? "");
  await expect(pane.locator(".peak-choice[aria-pressed=true]")).toHaveAttribute(
    "data-event",
    String(report.event),
  );
  const rows = pane.getByTestId("peak-rows");
  await expect(rows.locator("[data-peak=true]")).toHaveAttribute(
    "data-event",
    String(report.event),
  );
  expect(await valuesOf(rows.locator("[data-column=bytes]"))).toEqual(
    report.around.map(({ bytes }) => bytes),
  );
  expect(await valuesOf(rows.locator("[data-column=total]"))).toEqual(
    report.around.map(({ requested_bytes }) => requested_bytes),
  );
  const map = pane.getByTestId("treemap");
  const categories = report.categories.filter(({ bytes }) => bytes > 0);
  await expect(map.locator(".treemap-ground")).toHaveCount(categories.length);
  expect(await valuesOf(map.locator(".treemap-ground"))).toEqual(
    categories.map(({ bytes }) => bytes),
  );
  const [largest] = report.sites;
  const cell = map.locator(`.treemap-site[data-label="${largest?.site}"]`).first();
  await expect(cell).toHaveAttribute("data-value", String(largest?.bytes));
  await expect(cell).toHaveAttribute("data-blocks", String(largest?.blocks));
}

test("peaks, their events and the live set are those of the program", async ({ viewer, page }) => {
  const views = new Views(viewer);
  await views.show(testData(FILE));
  await page.keyboard.press("l");
  const pane = views.pane("Peak");
  await expect(pane).toHaveAttribute("data-place", "sheet");
  await expect(page.getByRole("tab", { name: "Peak", selected: true })).toBeVisible();
  await expectPeak(pane, 1);
  const { peaks, event } = cli("peak", FILE);
  const choices = pane.locator(".peak-choice");
  await expect(choices).toHaveCount(peaks.length);
  expect(await valuesOf(choices)).toEqual(peaks.map(({ bytes }) => bytes));
  for (const [index, { next_lower_bytes: lower }] of peaks.entries())
    if (lower !== null)
      await expect(choices.nth(index)).toHaveAttribute("data-lower", String(lower));

  await test.step("buttons and keys go to the next peak and back", async () => {
    await pane.getByRole("button", { name: /^Next lower peak/ }).click();
    await expectPeak(pane, 2);
    await views.expectCursor(peaks[1]?.event ?? -2);
    await page.keyboard.press("Shift+P");
    await expectPeak(pane, 3);
    await expect.poll(() => page.url()).toContain("peak=3");
    await pane.getByRole("button", { name: "Previous peak" }).click();
    await expectPeak(pane, 2);
    await choices.nth(1).focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Enter");
    await expectPeak(pane, 3);
    await page.keyboard.press("p");
    await expectPeak(pane, 1);
    await views.expectCursor(event);
  });
  await test.step("the link keeps the peak", async () => {
    await views.setState({ peak: 2 });
    await expectPeak(pane, 2);
    await views.setState({ peak: 1 });
    await expectPeak(pane, 1);
  });
});

test("an event opens its block, by mouse and by keyboard", async ({ viewer, page }) => {
  const views = new Views(viewer);
  await views.show(testData(FILE));
  await page.keyboard.press("l");
  const pane = views.pane("Peak");
  await expect(pane).toHaveAttribute("data-place", "sheet");
  const { event, around } = cli("peak", FILE);
  const rows = pane.getByTestId("peak-rows");
  const at = around.findIndex((of) => of.event === event);
  const reference = viewer.details.locator("[data-reference]");
  const addressOf = (index: number) => new RegExp(`:${around[index]?.address}@`);
  await rows.locator(`[data-event="${event}"]`).click();
  await expect(reference).toHaveAttribute("data-reference", addressOf(at));
  await views.expectCursor(event);
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Enter");
  await expect(reference).toHaveAttribute("data-reference", addressOf(at - 1));
  await views.expectCursor(around[at - 1]?.event ?? -2);
  // A bar of the picture.
  const bar = pane.getByTestId("peak-picture").locator(`[data-event="${event}"]`);
  const box = await bar.boundingBox();
  if (!box) throw new Error("the peak has a bar");
  await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
  await expect(reference).toHaveAttribute("data-reference", addressOf(at));
});

test("a call site of the treemap is a filter, and the table says the same", async ({
  viewer,
  page,
}) => {
  const views = new Views(viewer);
  await views.show(testData(FILE));
  await page.keyboard.press("l");
  const pane = views.pane("Peak");
  await expect(pane).toHaveAttribute("data-place", "sheet");
  const map = pane.getByTestId("treemap");
  const { event, sites } = cli("peak", FILE);
  const [largest] = sites;
  const cell = map.locator(`.treemap-site[data-label="${largest?.site}"]`).first();
  await cell.hover();
  await expect(pane.getByTestId("treemap-tip").locator("[data-value]")).toHaveAttribute(
    "data-value",
    String(largest?.bytes),
  );
  await cell.click();
  const chips = page.getByTestId("chips");
  await expect(chips.locator(`[data-term="site:${largest?.site}"]`)).toBeVisible();
  await expect(chips.locator(`[data-term="category:${largest?.category}"]`)).toBeVisible();
  const blocks = stateOf(FILE, event).blocks.filter(
    ({ category }) => category === largest?.category,
  );
  expect(blocks.length).toBeGreaterThanOrEqual(largest?.blocks ?? 0);
  await test.step("by keyboard", async () => {
    await page.keyboard.press("Enter");
    await expect(chips.locator("[data-term]")).toHaveCount(0);
    const focused = () => page.evaluate(() => labelOf(document.activeElement));
    await page.evaluate(() => {
      // The element has an open shadow root.
      (window as unknown as { labelOf: unknown }).labelOf = (outer: Element | null) => {
        let at = outer;
        while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
        return at?.getAttribute("data-index");
      };
    });
    const before = await focused();
    const moved = new Set<string | null | undefined>();
    for (const key of ["ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp"]) {
      await page.keyboard.press(key);
      moved.add(await focused());
    }
    moved.delete(before);
    expect(moved.size).toBeGreaterThan(0);
    await page.keyboard.press("Enter");
    await expect(chips.locator("[data-term]").first()).toBeVisible();
    await page.keyboard.press("Enter");
    await expect(chips.locator("[data-term]")).toHaveCount(0);
  });
  await test.step("as a table", async () => {
    const cells = await valuesOf(map.locator(".treemap-ground, .treemap-site"));
    await pane.getByRole("button", { name: "table", exact: true }).click();
    const table = pane.getByTestId("treemap-table");
    expect(await valuesOf(table.locator("[data-column=bytes]"))).toEqual(cells);
    await table
      .getByRole("button", { name: largest?.site ?? "" })
      .first()
      .click();
    await expect(chips.locator(`[data-term="site:${largest?.site}"]`)).toBeVisible();
  });
});

declare function labelOf(element: Element | null): string | null | undefined;
