// Two snapshots compared, against the report of `vramscope diff`.
// It is long because each part of the report has a test with its own values.

import { execFileSync } from "node:child_process";
import { copyFileSync } from "node:fs";
import type { Locator, Page } from "@playwright/test";
import { deviceOf, print, program } from "../lib/cli.js";
import { renamed, testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";
import type { Viewer } from "../lib/viewer.js";
import { Views } from "../lib/views.js";
import { answering, expectPlace, pane, work } from "../lib/work.js";

const SMALL = "recorded/t26/gpt_small.pickle.gz";
const LEAK = "recorded/gpt_leak.pickle.gz";
const OLD = "recorded/t20/gpt_small.pickle.gz";

interface Change {
  a: number;
  b: number;
  change: number;
}
interface Diff {
  pairs: [
    Record<
      "requested_bytes" | "active_bytes" | "allocated_bytes" | "reserved_bytes",
      { peak: Change; end: Change }
    > & {
      ooms: Change;
      findings: Change;
      categories: (Change & { category: string })[];
      stacks: (Change & {
        site: string;
        matched: string;
        frames: { name: string; line: number }[];
      })[];
    },
  ];
}

const diffOf = (a: string, b: string, ...more: string[]) =>
  (print(testData(""), ["diff", a, b, ...more]) as Diff).pairs[0];

/** The call stacks that changed; the others are folded. */
const changed = ({ stacks }: Diff["pairs"][0]) =>
  stacks.filter(({ change, matched }) => change !== 0 || matched.startsWith("only"));

const groupOf = ({ change, matched }: Diff["pairs"][0]["stacks"][0]) => {
  if (matched === "only_a") return "gone";
  if (matched === "only_b") return "new";
  if (change === 0) return "unchanged";
  return change > 0 ? "grown" : "shrunk";
};

const values = (cells: Locator) =>
  cells.evaluateAll((all) => all.map((cell) => Number(cell.getAttribute("data-value"))));

const peakOf = (file: string) => deviceOf(file).requested_bytes.peak;

/** The index of the file with the median peak. */
function medianOf(files: string[]): number {
  const sorted = files.toSorted((x, y) => peakOf(x) - peakOf(y));
  return files.indexOf(sorted[Math.floor((sorted.length - 1) / 2)] ?? "");
}

/** Opens these files and waits until all views show the last of them. */
async function open(viewer: Viewer, ...files: [name: string, from: string][]): Promise<void> {
  await viewer.open(files.map(([name, from]) => renamed(from, name)));
  for (const [name] of files) await viewer.expectRow(name, "ready");
  const [last] = files.at(-1) ?? [""];
  await viewer.row(last).click();
  await expect(viewer.row(last)).toHaveAttribute("aria-selected", "true");
  await answering(viewer.page);
}

/** A number of the totals. */
const total = (page: Page, key: string, column: string) =>
  page.getByTestId("compare-totals").locator(`[data-key="${key}"] [data-column=${column}]`);

async function expectTotals(page: Page, diff: Diff["pairs"][0]): Promise<void> {
  const bands = ["requested_bytes", "active_bytes", "allocated_bytes", "reserved_bytes"] as const;
  for (const band of bands) {
    for (const when of ["peak", "end"] as const) {
      for (const column of ["a", "b", "change"] as const) {
        await expect(total(page, `${band}.${when}`, column)).toHaveAttribute(
          "data-value",
          String(diff[band][when][column]),
        );
      }
    }
  }
}

test("totals and call stacks are the command line's, and fit beside the details", async ({
  viewer,
  page,
}) => {
  await open(viewer, ["a.gz", SMALL], ["b.gz", LEAK]);
  await page.keyboard.press("6");
  await expectPlace(page, "compare", "main");
  await test.step("numbers", async () => {
    // B is the selected rank, A the other one.
    const diff = diffOf(SMALL, LEAK);
    await expectTotals(page, diff);
    await expect(total(page, "findings", "change")).toHaveText("+1");
    for (const { category, change } of diff.categories) {
      await expect(total(page, category, "change")).toHaveAttribute("data-value", String(change));
    }
    const stacks = page.getByTestId("compare-stacks");
    await expect(stacks).toHaveAttribute("data-total", String(changed(diff).length));
    for (const column of ["a", "b", "change"] as const) {
      const shown = await values(stacks.locator(`.table-row [data-column=${column}]`));
      expect(shown.length).toBeGreaterThan(5);
      expect(shown).toEqual(diff.stacks.slice(0, shown.length).map((stack) => stack[column]));
    }
    await expect(
      pane(page, "compare").getByRole("listitem").filter({ hasText: "Only in B Growth" }),
    ).toHaveCount(1);

    await page.getByTestId("compare-band").selectOption("reserved_bytes");
    const reserved = diffOf(SMALL, LEAK, "--band", "reserved_bytes");
    await expect(stacks).toHaveAttribute("data-total", String(changed(reserved).length));
    await expect(stacks.locator(".table-row [data-column=change]").first()).toHaveAttribute(
      "data-value",
      String(reserved.stacks[0]?.change),
    );
  });
  await test.step("columns fit, and heads are aligned with them", async () => {
    const table = page.getByTestId("compare-stacks");
    await expect(table.locator(".table-row").first()).toBeVisible();
    await new Views(viewer).setState({ filter: "category:activation" });
    await expect(viewer.details).toBeVisible();
    const beyond = await pane(page, "compare").evaluate((view) =>
      [...view.querySelectorAll(".table, .compare-body, .compare-totals, .toolbar")].flatMap(
        (one) =>
          one.scrollWidth > one.clientWidth + 1
            ? [`${one.className}: ${one.scrollWidth} in ${one.clientWidth}`]
            : [],
      ),
    );
    expect(beyond).toEqual([]);
    const rights = (row: Locator) =>
      row
        .locator("> *")
        .evaluateAll((all) =>
          all
            .map((one) => one.getBoundingClientRect())
            .flatMap(({ width, right }) => (width > 0 ? [Math.round(right)] : [])),
        );
    const heads = await rights(table.locator(".table-head"));
    expect(heads.length).toBeGreaterThanOrEqual(4);
    expect(await rights(table.locator(".table-row").first())).toEqual(heads);
  });
  await test.step("a call stack opens in the details, and words filter the list", async () => {
    await page.getByTestId("compare-band").selectOption("requested_bytes");
    const [most] = diffOf(SMALL, LEAK).stacks;
    const rows = page.getByTestId("compare-stacks").locator(".table-row");
    await rows.first().click();
    await expect(rows.first()).toHaveAttribute("aria-selected", "true");
    await expect(viewer.details.locator("#details-title")).toHaveAttribute(
      "data-value",
      String(most?.change),
    );
    await expect(viewer.details).toContainText("only in B");
    await expect(viewer.details).toContainText(most?.frames[0]?.name ?? "?");
    // Arrow keys move from row to row.
    await page.getByTestId("compare-stacks").locator(".table-body").focus();
    await page.keyboard.press("ArrowDown");
    await expect(rows.nth(1)).toHaveAttribute("aria-selected", "true");

    await page.getByTestId("compare-filter").fill("p_gpt.py:31");
    await expect(page.getByTestId("compare-stacks-text")).toContainText(/^\d+ of \d+ call stacks/);
    await expect(rows.first()).toContainText("p_gpt.py:31");
    await page.getByTestId("compare-filter").fill("no such word");
    await expect(rows).toHaveCount(0);
  });
});

test("a link and a reload restore both sides", async ({ viewer, page }) => {
  const three: [string, string][] = [
    ["rank0.gz", SMALL],
    ["rank1.gz", LEAK],
    ["rank2.gz", OLD],
  ];
  const [a, b] = [page.getByTestId("compare-a"), page.getByTestId("compare-b")];
  const chosen = (select: Locator) => select.locator("option:checked");
  await open(viewer, ...three);
  await page.keyboard.press("6");
  // The state does not keep the usual baseline.
  const usual = `rank ${medianOf(three.map(([, from]) => from))}`;
  await expect(chosen(a)).toHaveText(usual);
  expect((await viewer.state()).a).toBeUndefined();
  await b.selectOption({ label: "rank 1" });
  await a.selectOption({ label: "rank 2" });
  await expectTotals(page, diffOf(OLD, LEAK));
  await expect.poll(() => page.url()).toMatch(/path=rank1\.gz&.*&a=rank2\.gz&/);
  const state = await viewer.state();

  await page.reload();
  await page.waitForFunction(() => "vramscope" in window);
  // Not with `open`, which expects the overview: the view that the link names wins over it.
  await page
    .getByTestId("open-files")
    .setInputFiles(three.map(([name, from]) => renamed(from, name)));
  await expectPlace(page, "compare", "main");
  await expect(chosen(a)).toHaveText("rank 2");
  await expect(chosen(b)).toHaveText("rank 1");
  await expectTotals(page, diffOf(OLD, LEAK));
  expect((await viewer.state()).a).toBe(state.a);

  await page.evaluate(() => window.vramscope.setState({ path: "rank2.gz", a: "rank0.gz" }));
  await expectTotals(page, diffOf(SMALL, OLD));
  // A side that is not open is replaced by the usual baseline.
  await page.evaluate(() => window.vramscope.setState({ a: "rank7.gz" }));
  await expect(chosen(a)).toHaveText(usual);
  expect((await viewer.state()).a).toBeUndefined();
});

test("a link can name a snapshot within a file", async ({ viewer, page }) => {
  await page.evaluate(() => {
    location.hash = "v=1&view=compare&path=trace_plot.html&a=trace_plot.html&aPart=1";
  });
  await page.getByTestId("open-files").setInputFiles(testData("containers/trace_plot.html"));
  await expect(viewer.rows).toHaveCount(2);
  await expect(page.getByTestId("compare-a")).toHaveValue("1");
  await expect(page.getByTestId("compare-b")).toHaveValue("0");
  await expect(total(page, "requested_bytes.peak", "a")).toHaveAttribute("data-value", "1000");
  await expect(total(page, "requested_bytes.peak", "b")).toHaveAttribute("data-value", "1500");
  expect(await viewer.state()).toMatchObject({ a: "trace_plot.html", aPart: 1 });
  await page.evaluate(() => {
    location.hash = "v=1&a=trace_plot.html&aPart=first";
  });
  await expect(page.getByTestId("compare-pinned")).toBeVisible();
});

test("the backslash pins and swaps the sides, and curves align by event, time and step", async ({
  viewer,
  page,
}) => {
  await open(viewer, ["rank0.gz", SMALL], ["rank1.gz", LEAK], ["rank2.gz", OLD]);
  await test.step("alignment", async () => {
    await page.keyboard.press("6");
    // The recording of rank 2 has no times.
    const plot = page.getByTestId("compare-curves");
    const by = (name: string) =>
      page.getByRole("group", { name: "Aligned by" }).getByRole("button", { name });
    await page.getByTestId("compare-a").selectOption({ label: "rank 0" });
    await page.getByTestId("compare-b").selectOption({ label: "rank 2" });
    // By step, because both recordings have steps and nothing else was chosen.
    await expect(plot).toHaveAttribute("data-align", "step");
    await expect(by("time")).toBeDisabled();
    await expect(by("time")).toHaveAttribute("title", "B was recorded without times");
    await viewer.row("rank1.gz").click();
    await expect(by("time")).toBeEnabled();
    const paths = new Set<string>();
    for (const align of ["event", "time", "step"]) {
      await by(align).click();
      await expect(plot).toHaveAttribute("data-align", align);
      await expect(by(align)).toHaveAttribute("aria-pressed", "true");
      for (const side of ["A", "B"]) {
        const path = (await plot.locator(`path[data-side=${side}]`).getAttribute("d")) ?? "";
        expect(path).toMatch(/^M[\d.]+ [\d.]+[HV]/);
        paths.add(path);
      }
    }
    expect(paths.size, "each axis has its own picture").toBe(6);
    await expect(plot.getByText("step 2", { exact: true })).toBeVisible();
  });
  await test.step("backslash, swap and lists", async () => {
    const [a, b] = [page.getByTestId("compare-a"), page.getByTestId("compare-b")];
    const chosen = (select: Locator) => select.locator("option:checked");
    await page.keyboard.press("2");
    await viewer.row("rank0.gz").click();
    await page.keyboard.press("\\");
    await expectPlace(page, "compare", "main");
    await expect(page.getByTestId("compare-pinned")).toContainText("is A");
    await expect(chosen(a)).toHaveText("rank 0");
    await page.keyboard.press("]");
    await expect(chosen(b)).toHaveText("rank 1");
    await expectTotals(page, diffOf(SMALL, LEAK));
    await page.keyboard.press("\\");
    await expect(chosen(a)).toHaveText("rank 1");
    await expect(chosen(b)).toHaveText("rank 0");
    await expectTotals(page, diffOf(LEAK, SMALL));
    await expect(viewer.row("rank0.gz")).toHaveAttribute("aria-selected", "true");
    await page.getByRole("button", { name: "Swap A and B" }).click();
    await expect(chosen(b)).toHaveText("rank 1");
    await expectTotals(page, diffOf(SMALL, LEAK));
    // Choose from the lists.
    await a.selectOption({ label: "rank 2" });
    await expectTotals(page, diffOf(OLD, LEAK));
    await b.selectOption({ label: "rank 0" });
    await expectTotals(page, diffOf(OLD, SMALL));
  });
});

test("with one snapshot the view asks for another, and adds it", async ({ viewer, page }) => {
  await work(viewer, renamed(SMALL, "one.gz"));
  // Keys and tabs lead there with several files only; a link may do so before.
  await page.evaluate(() => window.vramscope.setState({ view: "compare" }));
  await expect(pane(page, "compare")).toContainText("Add a second snapshot");
  await page.getByTestId("compare-add").setInputFiles([renamed(LEAK, "two.gz")]);
  await expect(viewer.rows).toHaveCount(2);
  await viewer.expectRow("one.gz", "ready");
  await viewer.expectRow("two.gz", "ready");
  await expectPlace(page, "compare", "main");
  await viewer.row("two.gz").click();
  await expectTotals(page, diffOf(SMALL, LEAK));
});

test("a rank that was unloaded is read again for the comparison", async ({ viewer, page }) => {
  await page.evaluate(() => window.vramscope.setState({ sheet: "none" }));
  const names = Array.from({ length: 11 }, (_, rank) => `rank${rank}.gz`);
  await open(
    viewer,
    ...names.map((name, rank): [string, string] => [name, rank === 0 ? LEAK : SMALL]),
  );
  await page.keyboard.press("6");
  await page.getByTestId("compare-a").selectOption({ label: "rank 0" });
  await expectTotals(page, diffOf(LEAK, SMALL));
});

test("the first file is the baseline, and what changed comes first", async ({ viewer, page }) => {
  await viewer.open([renamed(SMALL, "a.gz"), renamed(LEAK, "b.gz")]);
  for (const name of ["a.gz", "b.gz"]) await viewer.expectRow(name, "ready");
  await answering(page);
  await page.keyboard.press("6");
  const chosen = (side: string) => page.getByTestId(`compare-${side}`).locator("option:checked");
  await test.step("whichever file is in focus", async () => {
    for (const name of ["a.gz", "b.gz", "a.gz"]) {
      await viewer.row(name).click();
      await expect(chosen("a")).toHaveText("a");
      await expect(chosen("b")).toHaveText("b");
    }
  });
  const diff = diffOf(SMALL, LEAK);
  await test.step("groups of call stacks", async () => {
    const groups = page.getByRole("group", { name: "Groups of call stacks" });
    const of = (key: string) => diff.stacks.filter((stack) => groupOf(stack) === key);
    const table = page.getByTestId("compare-stacks");
    for (const key of ["new", "gone", "grown", "shrunk", "unchanged"]) {
      const stacks = of(key);
      const button = groups.locator(`[data-group=${key}]`);
      await expect(button).toHaveCount(stacks.length > 0 ? 1 : 0);
      if (stacks.length === 0) continue;
      await expect(button).toHaveAttribute("data-value", String(stacks.length));
      await button.click();
      await expect(table).toHaveAttribute("data-total", String(stacks.length));
      await button.click();
      await expect(table).toHaveAttribute("data-total", String(changed(diff).length));
    }
  });
  await test.step("equal rows are folded behind their number", async () => {
    const same = diff.categories.filter(({ change }) => change === 0);
    expect(same.length).toBeGreaterThan(0);
    const row = page.getByTestId("compare-totals").locator(`[data-key=${same[0]?.category}]`);
    await expect(row).toBeHidden();
    await page
      .getByRole("button", { name: `${same.length} unchanged` })
      .first()
      .click();
    await expect(row).toBeVisible();
  });
  await test.step("the difference is an area with its sign", async () => {
    const area = page.getByTestId("compare-difference");
    await expect(area.locator("[data-at=most]")).toHaveText(/^\+[\d.]+ [KMG]iB$/);
    await expect(area.locator("path[data-side=B]")).toHaveAttribute("d", /^M0 [\d.]+H.*Z$/);
  });
});

test("settings, steps and inputs that differ come first", async ({ viewer, page }) => {
  const SPLIT = "recorded/gpt_max_split.pickle.gz";
  await open(viewer, ["a.gz", SMALL], ["b.gz", SPLIT]);
  await page.keyboard.press("6");
  const rows = page.getByTestId("compare-recording").locator("tbody tr");
  const { pairs } = print(testData(""), ["diff", SMALL, SPLIT]) as {
    pairs: { settings: { key: string; a: string | null; b: string | null }[] }[];
  };
  const settings = pairs[0]?.settings.filter(({ a, b }) => a !== null && b !== null) ?? [];
  expect(settings.length).toBeGreaterThan(0);
  for (const { key, a, b } of settings) {
    await expect(rows.and(page.locator(`[data-key="${key}"]`)).locator("td")).toHaveText([
      a ?? "",
      b ?? "",
    ]);
  }
});

test("the comparison is copied as the Markdown that the program prints", async ({
  viewer,
  page,
  context,
}, info) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await open(viewer, ["a.pickle.gz", SMALL], ["b.pickle.gz", LEAK]);
  await page.keyboard.press("6");
  await page.getByTestId("compare-markdown").click();
  await expect(page.getByTestId("compare-markdown")).toHaveText("Copied");
  const folder = info.outputPath();
  copyFileSync(testData(SMALL), info.outputPath("a.pickle.gz"));
  copyFileSync(testData(LEAK), info.outputPath("b.pickle.gz"));
  const printed = execFileSync(
    program,
    ["diff", "a.pickle.gz", "b.pickle.gz", "--format", "markdown"],
    { cwd: folder, encoding: "utf8" },
  );
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(printed);
});

test("among ranks the median is compared with the one that differs most", async ({
  viewer,
  page,
}) => {
  const files = ["recorded/t26/gpt_small.pickle.gz", OLD, "recorded/gpt_amp.pickle.gz", LEAK];
  await viewer.open(files.map((from, rank) => renamed(from, `rank${rank}.pickle.gz`)));
  for (const rank of files.keys()) await viewer.expectRow(`rank${rank}.pickle.gz`, "ready");
  await answering(page);
  await page.keyboard.press("6");
  const median = medianOf(files);
  const usual = peakOf(files[median] ?? "");
  const far = files
    .map((file, rank) => ({ rank, by: Math.abs(peakOf(file) - usual) }))
    .toSorted((x, y) => y.by - x.by)[0];
  const chosen = (side: string) => page.getByTestId(`compare-${side}`).locator("option:checked");
  await expect(chosen("a")).toHaveText(`rank ${median}`);
  await expect(chosen("b")).toHaveText(`rank ${far?.rank}`);
  // A rank that is chosen is compared with the median.
  const other = [...files.keys()].find((rank) => rank !== median && rank !== far?.rank) ?? 0;
  await viewer.row(`rank${other}.pickle.gz`).click();
  await expect(chosen("a")).toHaveText(`rank ${median}`);
  await expect(chosen("b")).toHaveText(`rank ${other}`);
});
