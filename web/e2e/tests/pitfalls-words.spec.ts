// Mistakes of other viewers in names, units and shares: each test would catch one of them here.

import type { ViewState } from "vramscope-viewer";
import { deviceOf, findingsOf } from "../lib/cli.js";
import { renamed, testData } from "../lib/data.js";
import { life, made, onDisk } from "../lib/made.js";
import { expect, test } from "../lib/test.js";
import { answering, inside, pane, rangeOf, restedRange, still, under, work } from "../lib/work.js";

const GROWS = testData("recorded/gpt_leak.pickle.gz");

test("names in angle brackets are whole, and bytes × time has its own unit", async ({
  viewer,
  page,
}) => {
  const file = made(
    "brackets.json",
    [
      ...life(0x1000, 4096, 0, 2_000_000, "<lambda>"),
      ...life(0x4000, 4096, 5, undefined, "<listcomp>"),
    ],
    [
      {
        address: 0x1000,
        size: 0x10000,
        blocks: [{ address: 0x4000, size: 4096, requested: 4096, state: "active_allocated" }],
      },
    ],
  );
  await work(viewer, file);
  await page.evaluate(() => window.vramscope.setState({ view: "flame" }));
  for (const name of ["<module>", "<lambda>", "<listcomp>"])
    await expect(page.locator(".flame-name", { hasText: name }).first()).toBeVisible();
  await pane(page, "flame").getByRole("button", { name: "bytes × time" }).click();
  const total = page.getByTestId("flame-total");
  await expect(total).toContainText(/B·s|·\s?s\b|second/i);
  expect(await total.getAttribute("title")).not.toMatch(/\d bytes$/);
  await pane(page, "flame").getByRole("button", { name: "allocations" }).click();
  await expect(total).toHaveAttribute("data-value", "2");
  await expect(total).not.toContainText(/[KMG]iB/);
});

test("no text counts seconds from 1970", async ({ viewer, page }) => {
  await work(viewer, GROWS);
  const growth = findingsOf(GROWS).find(({ kind }) => kind === "growth");
  await page.evaluate(() => window.vramscope.setState({ view: "summary", sheet: "events" }));
  await expect(page.getByTestId("verdict")).toHaveAttribute("data-finding", growth?.id ?? "none");
  await page.keyboard.press("2");
  await expect(page.getByTestId("events-table").locator(".table-row").first()).toBeVisible();
  const epoch = /1[67][\d,_. ]{8,}\s?(s|µs|us|ms)\b|1\.[67]\d*e\+?9|\b1[67]\d{8}\b/;
  await expect(page.locator(".panes")).not.toContainText(epoch);
  await page.keyboard.press("1");
  await page.getByRole("button", { name: "Open the timeline" }).click();
  await expect(page.getByTestId("view-timeline")).toBeVisible();
  await expect(viewer.details).not.toContainText(epoch);
});

test("no share of reserved bytes exceeds 100 %", async ({ viewer, page }, info) => {
  const file = made(
    "emptied.json",
    [
      { at: 0, action: "segment_alloc", addr: 0x100000, size: 1 << 20 },
      ...life(0x100000, 1_000_000, 1, 10),
      { at: 11, action: "segment_free", addr: 0x100000, size: 1 << 20 },
      ...life(0x1000, 100, 12),
    ],
    [
      {
        address: 0x1000,
        size: 4096,
        blocks: [{ address: 0x1000, size: 512, requested: 100, state: "active_allocated" }],
      },
    ],
  );
  const { requested_bytes, reserved_bytes } = deviceOf(
    onDisk(file, info.outputPath("emptied.json")),
  );
  expect(requested_bytes.peak).toBeGreaterThan(reserved_bytes.end);
  await work(viewer, file);
  for (const view of ["segments", "summary"] as const) {
    await page.evaluate((to) => window.vramscope.setState({ view: to }), view);
    await expect(pane(page, view)).toBeVisible();
    const text = await page.evaluate(
      () => window.vramscope.shadowRoot?.querySelector(".app")?.textContent ?? "",
    );
    const shares = [...text.matchAll(/(\d+(?:\.\d+)?) ?%/g)].map(([, share]) => Number(share));
    expect(Math.max(0, ...shares), `in ${view}`).toBeLessThanOrEqual(100);
  }
  await viewer.open([file, { ...file, name: "again.json" }]);
  await page.keyboard.press("5");
  await expect(page.getByTestId("overview-row")).toHaveCount(2);
  const bars = await page
    .getByTestId("overview-row")
    .locator("td.bar-cell rect")
    .evaluateAll((all) =>
      all.map((bar) => Number(bar.getAttribute("x") ?? 0) + Number(bar.getAttribute("width"))),
    );
  expect(bars.length).toBeGreaterThan(1);
  for (const end of bars) expect(end).toBeLessThanOrEqual(1.000001);
});

test("a microsecond is a microsecond after half an hour, also in tick labels", async ({
  viewer,
  page,
}) => {
  const LONG = 1_800_000_000;
  const [a, b] = [1_700_000_001, 1_700_000_006];
  const file = made(
    "long.json",
    [
      ...life(0x1000, 1000, 0),
      ...life(0x2000, 3000, a, a + 2, "early"),
      ...life(0x3000, 3000, b, b + 2, "late"),
      ...life(0x4000, 8, LONG),
    ],
    [
      {
        address: 0x1000,
        size: 0x10000,
        blocks: [
          { address: 0x1000, size: 1024, requested: 1000, state: "active_allocated" },
          { address: 0x4000, size: 512, requested: 8, state: "active_allocated" },
        ],
      },
    ],
  );
  await work(viewer, file);
  await page.getByRole("button", { name: "time", exact: true }).click();
  await expect.poll(async () => (await viewer.state()).axis).toBe("time");
  const whole = await restedRange(viewer);
  // The margins before and after the window are equal.
  const origin = Math.round((whole.x1 - LONG) / 2);
  const view = { x0: origin + a - 5, x1: origin + a + 15 };
  await page.evaluate((range) => window.vramscope.setState(range), view);
  await expect.poll(async () => Math.round((await rangeOf(viewer)).x1 - view.x1)).toBe(0);
  await viewer.plot.drawn();
  const { left, width } = await inside(viewer);
  const { y } = await viewer.plot.scale();
  const at = (slot: number) => left + ((slot - view.x0) / (view.x1 - view.x0)) * width;
  const seen: string[] = [];
  // A block that is live at a microsecond fills the slot of that microsecond.
  for (let us = a - 2; us <= b + 4; us += 1)
    seen.push((await under(page, at(origin + us + 0.5), y(2500)))?.reference ?? "-");
  const early = seen.indexOf("0:0x2000@1");
  const late = seen.findIndex((name) => name.startsWith("0:0x3000@"));
  expect(late - early, seen.join(" ")).toBe(b - a);
  expect(seen.filter((name) => name === seen[early])).toHaveLength(
    seen.filter((name) => name === seen[late]).length,
  );
  expect(seen[late - 1], "nothing is live between them").toBe("-");
  // The picture and pick() agree to the pixel.
  const picture = await viewer.plot.picture();
  const row = Math.round(y(2500));
  const edge = Math.round(at(origin + a - 2 + late));
  const ground = [picture.color(edge - 6, row)];
  expect(picture.differs(edge + 3, row, ground)).toBe(true);
  expect(picture.differs(edge - 3, row, ground)).toBe(false);
  const ticks = await page.getByTestId("view-timeline").locator(".tick-x").allTextContents();
  expect(ticks.length).toBeGreaterThan(2);
  expect(new Set(ticks).size, ticks.join(" | ")).toBe(ticks.length);
});

/** Visible texts that are cut and have no title with the whole text. */
function uncovered(root: ParentNode): string[] {
  return [...root.querySelectorAll("*")].flatMap((element) => {
    if (element.shadowRoot) return uncovered(element.shadowRoot);
    const cut = element.clientWidth > 1 && element.scrollWidth > element.clientWidth + 1;
    // Tooltips show the names of the flame graph, of the treemap and of phases.
    const shown = "[title], .flame-name, .treemap, .phases, svg, .visually-hidden, .busy";
    if (!cut || element.closest(shown)) return [];
    const { overflowX } = getComputedStyle(element);
    const { top, bottom, left, right } = element.getBoundingClientRect();
    const seen = top < innerHeight && bottom > 0 && left < innerWidth && right > 0;
    return seen && ["hidden", "clip"].includes(overflowX) ? [element.textContent ?? ""] : [];
  });
}

test("text that is cut is whole in a title, in a wide and in a narrow window", async ({
  viewer,
  page,
}) => {
  const names = [
    "rank0_memory_snapshot.pickle.gz",
    "rank1_with_a_name_of_its_own_memory_snapshot.pickle.gz",
  ] as const;
  await viewer.open([
    renamed("recorded/t26/gpt_small.pickle.gz", names[0]),
    renamed("recorded/gpt_leak.pickle.gz", names[1]),
  ]);
  for (const name of names) await viewer.expectRow(name, "ready");
  await answering(page);
  for (const width of [1440, 420]) {
    await page.setViewportSize({ width, height: 900 });
    for (const view of ["ranks", "segments", "summary", "compare", "blocks", "events"] as const) {
      const state: ViewState =
        view === "blocks" || view === "events" ? { view: "timeline", sheet: view } : { view };
      await page.evaluate((to) => window.vramscope.setState(to), state);
      await expect(pane(page, view)).toBeVisible();
      await still(() => pane(page, view).innerText());
      expect(
        await page.evaluate(`(${uncovered.toString()})(document)`),
        `${view}, ${width}`,
      ).toEqual([]);
    }
  }
});
