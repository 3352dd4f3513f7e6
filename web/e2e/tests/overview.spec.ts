// The overview of all ranks: numbers are the command line's, and rows open their ranks.

import { cpSync, mkdirSync } from "node:fs";
import { basename, join } from "node:path";
import type { TestInfo } from "@playwright/test";
import { cliIn } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { life, made, onDisk } from "../lib/made.js";
import { expect, test } from "../lib/test.js";
import type { Viewer } from "../lib/viewer.js";
import { Views, valuesOf } from "../lib/views.js";

const MIB = 2 ** 20;
/** Four ranks with equal weights. The cache of the last is five times as large as usual. */
const SKEWED = [100, 100, 100, 500].map((cache) =>
  made(
    "skewed.json",
    [
      ...life(0x10000000, 200 * MIB, 1, undefined, "weights"),
      ...life(0x40000000, cache * MIB, 2, undefined, "cache"),
      ...life(0x80000000, MIB, 3, 4, "batch"),
    ],
    [],
  ),
);
/** Three equal ranks, and one that keeps its logits. */
const FSDP = ["rank2", "rank2", "rank2", "rank3"].map(
  (rank) => `recorded/ranks_fsdp/${rank}_memory_snapshot.pickle.gz`,
);
/** Four runs of one program. One leaks, and one uses mixed precision. */
const GPT = ["t26/gpt_small", "gpt_amp", "gpt_max_split", "gpt_leak"].map(
  (name) => `recorded/${name}.pickle.gz`,
);

/** Opens files as the ranks of a run, and copies them to a folder for the command line. */
async function openRun(
  viewer: Viewer,
  info: TestInfo,
  files: readonly (string | ReturnType<typeof made>)[],
) {
  const folder = info.outputPath("run");
  mkdirSync(folder, { recursive: true });
  const paths = files.map((file, rank) => {
    const path = join(folder, `rank${rank}_memory_snapshot.pickle.gz`);
    if (typeof file !== "string") return onDisk(file, path.replace("pickle.gz", "json"));
    cpSync(testData(file), path);
    return path;
  });
  const views = new Views(viewer);
  await views.open(paths);
  const names = paths.map((path) => basename(path));
  const pane = await views.main("Ranks");
  const rows = pane.getByTestId("overview-row");
  await expect(rows).toHaveCount(files.length);
  const row = (path: string) => pane.locator(`[data-testid=overview-row][data-path="${path}"]`);
  const summaries = new Map(
    cliIn(folder, "summary", ...names).files.flatMap(({ path, devices: [device] }) =>
      device ? [[path, device] as const] : [],
    ),
  );
  const { findings } = cliIn(folder, "diagnose", "--all", ...names);
  return { views, folder, names, pane, rows, row, summaries, findings };
}

const pathsOf = (rows: ReturnType<Viewer["row"]>) =>
  rows.evaluateAll((all) => all.map((row) => row.getAttribute("data-path") ?? ""));

test("numbers and bars are those of the command line", async ({ viewer }, info) => {
  const { row, folder, names, summaries } = await openRun(viewer, info, FSDP);
  await test.step("numbers and bars", async () => {
    for (const [path, device] of summaries) {
      const cell = (column: string) => row(path).locator(`[data-column=${column}]`);
      await expect(cell("peak")).toHaveAttribute("data-value", String(device.requested_bytes.peak));
      await expect(cell("reserved")).toHaveAttribute(
        "data-value",
        String(device.reserved_bytes.peak),
      );
      await expect(cell("end")).toHaveAttribute("data-value", String(device.requested_bytes.end));
    }
    for (const path of names.slice(2)) {
      const { categories } = cliIn(folder, "peak", path);
      const parts = row(path).locator("[data-category]");
      await expect(parts).toHaveCount(categories.length);
      for (const { category, bytes } of categories) {
        await expect(row(path).locator(`[data-category=${category}]`)).toHaveAttribute(
          "data-value",
          String(bytes),
        );
      }
      const widths = await parts.evaluateAll((all) =>
        all.map((part) => ({
          width: Number(part.getAttribute("width")),
          value: Number(part.getAttribute("data-value")),
        })),
      );
      const most = widths.reduce((a, b) => (b.value > a.value ? b : a));
      expect(most.width).toBeGreaterThan(0);
      for (const { width, value } of widths)
        expect(width / most.width).toBeCloseTo(value / most.value, 2);
    }
  });
});

test("a part of a rank's bar selects the rank and its category", async ({ viewer, page }, info) => {
  const { views, row, folder, names } = await openRun(viewer, info, GPT);
  const [first = "", second = ""] = names;
  const part = (path: string, category: string) => row(path).locator(`[data-category=${category}]`);
  const chips = () =>
    page
      .locator(".filter-chip")
      .evaluateAll((all) => all.map((one) => one.getAttribute("data-term")));
  const { categories } = cliIn(folder, "peak", second);
  const largest = categories.toSorted((a, b) => b.bytes - a.bytes)[0]?.category ?? "";
  for (const path of [second, first]) {
    // The same category of another rank stays chosen.
    await part(path, largest).click();
    await expect(row(path)).toHaveAttribute("aria-selected", "true");
    await expect.poll(chips).toEqual([`category:${largest}`]);
    await expect(part(path, largest)).toHaveAttribute("data-chosen", "true");
    await expect(row(path).locator("[data-chosen=false]")).toHaveCount(
      cliIn(folder, "peak", path).categories.length - 1,
    );
    await expect(views.pane("Ranks")).toHaveAttribute("data-place", "main");
  }
  const of = cliIn(folder, "blocks", first).blocks.filter(({ category }) => category === largest);
  await views.sheet("Blocks");
  await views.table("blocks").expectTotal(of.length);
  await views.main("Ranks");
  await part(first, largest).click();
  await expect.poll(chips).toEqual([]);
});

test("a rank that holds more is an outlier in the overview and a finding", async ({
  viewer,
  page,
}, info) => {
  const { views, pane, rows, row, names, findings } = await openRun(viewer, info, SKEWED);
  const outliers = findings.filter(({ kind }) => kind === "rank_skew");
  const odd = new Set(outliers.map(({ path }) => path));
  expect(outliers.length, "one rank is an outlier").toBeGreaterThan(0);
  expect(odd.size).toBeLessThan(names.length);
  await expect(rows).toHaveCount(names.length);
  for (const path of names) {
    await expect(row(path)).toHaveAttribute("data-outlier", String(odd.has(path)));
    await expect(row(path).getByText("outlier", { exact: true })).toHaveCount(
      odd.has(path) ? 1 : 0,
    );
  }
  const lines = pane.getByRole("list", { name: "Differences between ranks" }).getByRole("button");
  await expect(lines).toHaveCount(outliers.length);
  expect((await lines.allTextContents()).toSorted()).toEqual(
    outliers.map(({ title, text }) => `${title} ${text}`).toSorted(),
  );

  await lines.first().click();
  await expect(views.pane("Timeline")).toHaveAttribute("data-place", "main");
  await expect.poll(async () => odd.has((await viewer.state()).path ?? "")).toBe(true);
  await views.main("Summary");
  for (const { id, bytes } of outliers) {
    await expect(page.locator(`[data-testid=rank-finding][data-id="${id}"]`)).toHaveAttribute(
      "data-value",
      String(bytes),
    );
  }
});

test("columns sort ranks, a click selects a rank, and a double click opens its timeline", async ({
  viewer,
  page,
}, info) => {
  const { views, pane, rows, row, names, summaries, findings } = await openRun(viewer, info, GPT);
  await test.step("sorting", async () => {
    const numbers = (of: (path: string) => number) => names.map(of).toSorted((a, b) => b - a);
    const of = (path: string) => {
      const device = summaries.get(path);
      if (!device) throw new Error(`no summary of ${path}`);
      return device;
    };
    const columns: Record<string, number[]> = {
      peak: numbers((path) => of(path).requested_bytes.peak),
      reserved: numbers((path) => of(path).reserved_bytes.peak),
      end: numbers((path) => of(path).requested_bytes.end),
      findings: numbers(
        (path) => findings.filter((each) => each.path === path && each.kind !== "rank_skew").length,
      ),
    };
    for (const [column, sorted] of Object.entries(columns)) {
      const head = pane.getByRole("columnheader", { name: column, exact: true });
      const cells = rows.locator(`[data-column=${column}]`);
      await head.getByRole("button").click();
      await expect(head).toHaveAttribute("aria-sort", "descending");
      await expect.poll(() => valuesOf(cells), column).toEqual(sorted);
      await head.getByRole("button").click();
      await expect(head).toHaveAttribute("aria-sort", "ascending");
      await expect.poll(() => valuesOf(cells), column).toEqual(sorted.toReversed());
    }
    const rank = pane.getByRole("columnheader", { name: /^rank/ });
    await rank.getByRole("button").click();
    await expect(rank).toHaveAttribute("aria-sort", "ascending");
    await expect.poll(() => pathsOf(rows)).toEqual(names);
    await rank.getByRole("button").click();
    await expect.poll(() => pathsOf(rows)).toEqual(names.toReversed());
  });
  await test.step("selecting", async () => {
    const [, second = "", third = ""] = names;
    const expectSelected = async (path: string) => {
      await expect(row(path)).toHaveAttribute("aria-selected", "true");
      await expect(viewer.row(path)).toHaveAttribute("aria-selected", "true");
      await expect(page.locator("[data-testid=rank-row][aria-selected=true]")).toHaveCount(1);
      await expect(page.locator(".stepper-label")).toHaveText(
        `rank ${names.indexOf(path)} of ${names.length}`,
      );
      await expect(viewer.peak).toHaveAttribute(
        "data-value",
        String(summaries.get(path)?.requested_bytes.peak),
      );
      await expect.poll(async () => (await viewer.state()).path).toBe(path);
    };
    await row(second).locator("[data-column=peak]").click();
    await expectSelected(second);
    await expect(views.pane("Ranks")).toHaveAttribute("data-place", "main");
    await viewer.row(third).click();
    await expectSelected(third);

    await row(second).locator("[data-column=end]").dblclick();
    await expect(views.pane("Timeline")).toHaveAttribute("data-place", "main");
    await expect.poll(async () => (await viewer.state()).path).toBe(second);
    await viewer.plot.drawn();
    await views.main("Ranks");
    // The first click may make the verdict taller, so that the second one meets another row.
    await row(third).locator("[data-column=end]").dispatchEvent("click", { detail: 1 });
    await row(second).locator("[data-column=end]").dispatchEvent("click", { detail: 2 });
    await expect(views.pane("Timeline")).toHaveAttribute("data-place", "main");
    await expect.poll(async () => (await viewer.state()).path).toBe(third);
    await views.main("Ranks");
    await row(second).getByRole("button").click();
    await expect(views.pane("Timeline")).toHaveAttribute("data-place", "main");
    await expect.poll(async () => (await viewer.state()).path).toBe(second);
    await views.main("Ranks");
    await row(third).getByRole("button").click();
    await expect(views.pane("Timeline")).toHaveAttribute("data-place", "main");
    await expect.poll(async () => (await viewer.state()).path).toBe(third);
  });
});

test("each finding above low of a rank that ran out of memory is counted once", async ({
  viewer,
}, info) => {
  const { row, names, findings } = await openRun(viewer, info, [
    "recorded/oom_expandable.pickle.gz",
    "recorded/t26/gpt_small.pickle.gz",
  ]);
  for (const path of names) {
    const own = findings.filter((each) => each.path === path && each.severity !== "low");
    await expect(row(path).locator("[data-column=findings]")).toHaveAttribute(
      "data-value",
      String(own.length),
    );
  }
});
