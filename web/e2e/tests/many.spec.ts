// A folder of 5,000 files. A file costs the same in a run of any size: only the rows near the
// visible part are rendered, and what depends on all files is done a few times a second.

import { linkSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Locator } from "@playwright/test";
import { deviceOf } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";

const FILES = 5000;
/** Files per measurement of the cost. */
const SLICE = 500;
/** Files with different peaks. */
const SCENARIOS = ["f01", "f02", "f03", "f05", "f06", "f13", "f14", "f15", "f18"].map(
  (name) => `scenarios/${name}.pickle`,
);
const scenarioOf = (rank: number) => SCENARIOS[rank % SCENARIOS.length] ?? "";
const pathOf = (rank: number) => `run/rank${rank}.pickle`;

const median = (values: readonly number[]) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

/**
 * Scrolls until an element is rendered and in view. `share` of the content is brought to the
 * middle. Panels above the list can arrive after a scroll and make the list lower.
 */
async function reach(scroller: Locator, share: number, wanted: Locator): Promise<void> {
  await expect(async () => {
    await scroller.evaluate((element, to) => {
      element.scrollTo({ top: element.scrollHeight * to - element.clientHeight / 2 });
    }, share);
    await expect(wanted).toBeInViewport({ timeout: 1000 });
  }).toPass({ timeout: 30_000 });
}

test("5,000 files open in little time, and each costs the same", async ({ viewer, page }, info) => {
  test.setTimeout(300_000);
  const run = info.outputPath("run");
  mkdirSync(run, { recursive: true });
  for (let rank = 0; rank < FILES; rank += 1)
    linkSync(testData(scenarioOf(rank)), join(run, `rank${rank}.pickle`));
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("Performance.enable");
  const worked = async () => {
    const { metrics } = await cdp.send("Performance.getMetrics");
    const of = (wanted: string) => metrics.find(({ name }) => name === wanted)?.value ?? 0;
    return (of("ScriptDuration") + of("LayoutDuration") + of("RecalcStyleDuration")) * 1000;
  };
  await page.evaluate(() => {
    const times = { from: 0, elements: 0 };
    const root = window.vramscope.shadowRoot;
    if (root === null) throw new Error("no shadow root");
    Object.assign(window, { read: 0, times });
    root.addEventListener(
      "change",
      () => {
        times.from = performance.now();
      },
      { capture: true, once: true },
    );
    window.vramscope.addEventListener("vramscope-loaded", () => {
      Object.assign(window, { read: (window as unknown as { read: number }).read + 1 });
    });
    setInterval(() => {
      times.elements = Math.max(times.elements, root.querySelectorAll("*").length);
    }, 500);
  });
  await page.getByLabel("Open folder").first().setInputFiles(run);

  const costs: number[] = [];
  let [read, before] = [0, await worked()];
  while (read < FILES) {
    const next = Math.min(FILES, read + SLICE);
    await page.waitForFunction(
      (wanted) => (window as unknown as { read: number }).read >= wanted,
      next,
      { timeout: 120_000, polling: 20 },
    );
    const [now, at] = await Promise.all([
      worked(),
      page.evaluate(() => (window as unknown as { read: number }).read),
    ]);
    costs.push((now - before) / (at - read));
    [read, before] = [at, now];
  }
  const overview = page.getByTestId("view-ranks");
  await expect(overview.getByRole("status")).toHaveCount(0);
  await expect(overview.getByTestId("overview-row").first()).toBeVisible();
  const { all, elements } = await page.evaluate(() => {
    const { times } = window as unknown as { times: { from: number; elements: number } };
    return { all: performance.now() - times.from, elements: times.elements };
  });
  info.annotations.push({ type: "5,000 files", description: `${Math.round(all)} ms` });
  info.annotations.push({ type: "cost", description: costs.map((ms) => ms.toFixed(2)).join(" ") });

  await test.step("cost", async () => {
    expect(elements, "elements of the page").toBeLessThan(5000);
    expect(all, "from the choice of the folder").toBeLessThan(60_000);
    // The first files also pay for the first picture.
    const [, ...steady] = costs;
    const half = Math.ceil(steady.length / 2);
    const [first, second] = [steady.slice(0, half), steady.slice(half)];
    expect(median(second), costs.join(" ")).toBeLessThan(1.5 * median(first) + 0.1);
  });

  await test.step("the table has all rows", async () => {
    const table = overview.getByRole("table", { name: "Ranks", exact: true });
    await expect(table).toHaveAttribute("aria-rowcount", String(FILES + 1));
    const line = (rank: number) =>
      overview.locator(`[data-testid=overview-row][data-path="${pathOf(rank)}"]`);
    const scroller = overview.locator(".grid-scroll");
    for (const rank of [FILES - 1, Math.round(FILES / 2)]) {
      await reach(scroller, (rank + 0.5) / FILES, line(rank));
      await expect(line(rank)).toHaveAttribute("aria-rowindex", String(rank + 2));
      await expect(line(rank).locator("[data-column=peak]")).toHaveAttribute(
        "data-value",
        String(deviceOf(scenarioOf(rank)).requested_bytes.peak),
      );
    }
    const largest = Math.max(
      ...SCENARIOS.map((scenario) => deviceOf(scenario).requested_bytes.peak),
    );
    await overview
      .locator("th", { hasText: /^peak$/ })
      .getByRole("button")
      .click();
    await scroller.evaluate((element) => element.scrollTo({ top: 0 }));
    await expect(
      overview.getByTestId("overview-row").first().locator("[data-column=peak]"),
    ).toHaveAttribute("data-value", String(largest));
  });

  await test.step("keys move through all rows of the list", async () => {
    const list = page.getByRole("listbox");
    const chosen = list.getByRole("option", { selected: true });
    const last = viewer.row(pathOf(FILES - 1));
    await reach(list, 1, last);
    await expect(last).toHaveAttribute("aria-setsize", String(FILES));
    await expect(last).toHaveAttribute("aria-posinset", String(FILES));
    await last.click();
    await expect(last).toHaveAttribute("aria-selected", "true");
    for (let rank = FILES - 2; rank > FILES - 100; rank -= 1) {
      await page.keyboard.press("ArrowUp");
      await expect(chosen).toHaveAttribute("data-path", pathOf(rank));
      await expect(chosen).toBeFocused();
    }
    await expect(chosen).toBeInViewport();
    // The row with the focus stays when it is scrolled out of view.
    await reach(list, 0, viewer.row(pathOf(0)));
    await expect(chosen).toBeFocused();
  });
});
