// The verdict above the views: its sentence, its bar and its actions are the program's, and its
// nouns lead somewhere.

import { execFileSync } from "node:child_process";
import { expect, type Locator, type Page } from "@playwright/test";
import { cli, print, program } from "../lib/cli.js";
import { renamed, testData } from "../lib/data.js";
import { test } from "../lib/test.js";
import { Views } from "../lib/views.js";

const OOM = "recorded/t26/oom_observer.pickle.gz";
const LEAK = "recorded/gpt_leak.pickle.gz";
const CALM = "recorded/t26/gpt_small.pickle.gz";

interface Diagnosis {
  findings: { title: string }[];
  headlines: { path: string; severity: string | null; finding: string | null; text: string }[];
  memory: {
    event: number;
    reserved: number;
    capacity: number | null;
    request: number | null;
    parts: Record<string, number>;
  };
}

const diagnosisOf = (file: string) =>
  print(testData(""), ["diagnose", file]) as unknown as Diagnosis;

/** The verdict once it is answered. */
async function answered(page: Page): Promise<Locator> {
  const verdict = page.getByTestId("verdict");
  await expect(verdict).toHaveAttribute("aria-busy", "false", { timeout: 30_000 });
  return verdict;
}

/** The bytes of the parts of the bar, by name. */
async function partsOf(verdict: Locator): Promise<Record<string, number>> {
  const parts = verdict.locator(".memory-part");
  const all = await parts.evaluateAll((each) =>
    each.map((one) => [one.getAttribute("data-part"), Number(one.getAttribute("data-value"))]),
  );
  return Object.fromEntries(all);
}

test.beforeEach(({ page }) => page.setViewportSize({ width: 1440, height: 900 }));

for (const file of [OOM, LEAK, CALM]) {
  test(`the verdict of ${file} is the program's`, async ({ viewer, page }) => {
    const { headlines, memory } = diagnosisOf(file);
    await viewer.show(testData(file));
    const verdict = await answered(page);
    const line = verdict.locator(".verdict-line");
    await expect(line).toHaveText(headlines[0]?.text ?? "a headline", { timeout: 30_000 });
    const { severity, finding } = headlines[0] ?? {};
    expect(await verdict.getAttribute("data-severity")).toBe(severity ?? null);
    expect(await verdict.getAttribute("data-finding")).toBe(finding ?? null);
    expect(await partsOf(verdict)).toEqual(memory.parts);
    await expect(verdict.getByTestId("memory-bar")).toHaveAttribute(
      "data-reserved",
      String(memory.reserved),
    );
    const request = verdict.locator(".memory-request");
    const capacity = verdict.locator(".memory-capacity");
    await expect(request).toHaveCount(memory.request === null ? 0 : 1);
    await expect(capacity).toHaveCount(memory.capacity === null ? 0 : 1);
    if (memory.request === null) return;
    await expect(request).toHaveAttribute("data-value", String(memory.request));
    await expect(capacity).toHaveAttribute("data-value", String(memory.capacity));
    // The request reaches over what PyTorch can have.
    const [asked, limit] = [await request.boundingBox(), await capacity.boundingBox()];
    if (!asked || !limit) throw new Error("the bar is not drawn");
    expect(asked.x).toBeLessThan(limit.x);
    expect(asked.x + asked.width).toBeGreaterThan(limit.x);
  });
}

test("the program prints the headline first", () => {
  const text = execFileSync(program, ["diagnose", testData(OOM)], { encoding: "utf8" });
  const [worst] = diagnosisOf(OOM).findings;
  // Behind the word of its kind the title goes on with a small letter.
  const line = `error[oom]: ${worst?.title}`.toLowerCase();
  expect(text.replaceAll("\n    ", " ").toLowerCase().startsWith(line)).toBe(true);
});

test("the proof of an out-of-memory error is its step, with the cursor on the event", async ({
  viewer,
  page,
}) => {
  const { memory } = diagnosisOf(OOM);
  const { steps } = cli("steps", OOM);
  const views = new Views(viewer);
  await viewer.show(testData(OOM));
  const verdict = await answered(page);
  await verdict.locator("[data-event]").first().click();
  await views.expectCursor(memory.event);
  const { x0, x1 } = await views.settledRange();
  const failed = steps.findLast(({ begin }) => begin <= memory.event);
  if (!failed) throw new Error("no step");
  expect(x0).toBeLessThanOrEqual(failed.begin + 1);
  expect(x1).toBeGreaterThan(memory.event + 1);
  // The step with a margin, not the whole window.
  expect(x1 - x0).toBeLessThan(1.4 * (memory.event - failed.begin));
});

test("the row of actions is there only with actions", async ({ viewer, page }) => {
  for (const file of [LEAK, "findings/s10_graph_capture.pickle.gz"]) {
    const has = cli("diagnose", file, "--all").findings.some(({ action }) => action !== "");
    expect(has).toBe(file === LEAK);
    await viewer.show(testData(file));
    const verdict = await answered(page);
    await expect(verdict.locator(".verdict-actions")).toHaveCount(has ? 1 : 0);
    await expect(verdict.getByRole("button", { name: "Show", exact: true })).toBeVisible();
    await expect(verdict.getByRole("button", { name: "What if" })).toBeVisible();
    // Nothing of the verdict is cut.
    const beyond = await verdict.evaluate((one) => one.scrollHeight - one.clientHeight);
    expect(beyond).toBeLessThanOrEqual(0);
  }
});

test("nouns and parts of the bar are filters", async ({ viewer, page }) => {
  await viewer.show(testData(CALM));
  const verdict = await answered(page);
  const terms = () =>
    page
      .locator(".filter-chip")
      .evaluateAll((all) => all.map((one) => one.getAttribute("data-term")));
  const noun = verdict.locator('.noun[data-filter^="category:"]').first();
  const wanted = await noun.getAttribute("data-filter");
  await noun.click();
  await expect.poll(terms).toEqual([wanted]);
  await page.getByRole("button", { name: `Remove ${wanted}` }).click();
  await expect.poll(terms).toEqual([]);
  await verdict.locator(".memory-part[data-part=parameter]").click();
  await expect.poll(terms).toEqual(["category:parameter"]);
});

test("an action leads to its finding", async ({ viewer, page }) => {
  await viewer.show(testData(LEAK));
  const verdict = await answered(page);
  const finding = (await verdict.getAttribute("data-finding")) ?? "";
  await verdict.getByTestId("verdict-action").first().click();
  await expect(page.getByTestId("view-findings")).toHaveAttribute("data-place", "main");
  const card = page.locator(`[data-testid=view-findings] [data-id="${finding}"]`);
  await expect(card.locator(".finding-open")).toBeFocused();
});

test("a simulated action opens What if with its question", async ({ viewer, page }) => {
  await viewer.show(testData(OOM));
  const verdict = await answered(page);
  const { findings } = cli("diagnose", OOM, "--all") as unknown as {
    findings: { fixes?: { text: string; recipe: string; outcome: string }[] }[];
  };
  const [fix] = findings.flatMap(({ fixes = [] }) => fixes);
  if (!fix) throw new Error("no change was tried");
  expect(fix.outcome).toBe("fits");
  const chip = verdict.getByTestId("verdict-action").filter({ hasText: fix.text });
  await chip.click({ timeout: 60_000 });
  await expect(page.getByTestId("view-what-if")).toHaveAttribute("data-place", "drawer");
  expect((await viewer.state()).whatIf).toBe(fix.recipe);
  await expect(page.getByTestId("what-if-verdict")).toContainText("Fits in ");
});

test("it folds, stays folded after a reload, and is one line where room is short", async ({
  viewer,
  page,
}) => {
  const views = new Views(viewer);
  await viewer.show(testData(OOM));
  const verdict = await answered(page);
  await expect(verdict).toHaveAttribute("data-open", "true");
  const bottom = async () => {
    const [above, tabs] = [
      await verdict.boundingBox(),
      await page.getByRole("tablist", { name: "Views", exact: true }).boundingBox(),
    ];
    if (!above || !tabs) throw new Error("nothing is shown");
    expect(above.y + above.height, "nothing is covered").toBeLessThanOrEqual(tabs.y + 1);
    return above.height;
  };
  const open = await bottom();
  await page.setViewportSize({ width: 1000, height: 640 });
  await expect(verdict).toHaveAttribute("data-open", "false");
  expect(await bottom()).toBeLessThan(40);
  await page.setViewportSize({ width: 1440, height: 900 });
  await expect(verdict).toHaveAttribute("data-open", "true");
  expect(await bottom()).toBe(open);
  await page.getByRole("button", { name: "Fold the verdict" }).click();
  await expect(verdict).toHaveAttribute("data-open", "false");
  await page.reload();
  await views.show(testData(OOM));
  await answered(page);
  await expect(verdict).toHaveAttribute("data-open", "false");
  await page.getByRole("button", { name: "Unfold the verdict" }).click();
  await expect(verdict).toHaveAttribute("data-open", "true");
});

test("several files show the overview, and the rank with the worst finding", async ({
  viewer,
  page,
}) => {
  const [calm, worst] = [renamed(CALM, "rank0.pickle.gz"), renamed(OOM, "rank1.pickle.gz")];
  await page.getByTestId("open-files").setInputFiles([calm, worst]);
  await expect(page.getByTestId("view-overview")).toHaveAttribute("data-place", "main");
  await expect(viewer.row("rank1.pickle.gz")).toHaveAttribute("aria-selected", "true");
  const verdict = await answered(page);
  await expect(verdict.locator(".verdict-line")).toContainText("rank 1: Out of memory", {
    timeout: 30_000,
  });
  // What the user chooses stays.
  await viewer.row("rank0.pickle.gz").click();
  await expect(verdict.locator(".verdict-line")).toContainText("rank 0: Peak");
});

test("a link's rank and view win over the first look", async ({ viewer, page }) => {
  const views = new Views(viewer);
  await views.setState({ view: "timeline", path: "rank0.pickle.gz" });
  await page
    .getByTestId("open-files")
    .setInputFiles([renamed(CALM, "rank0.pickle.gz"), renamed(OOM, "rank1.pickle.gz")]);
  await viewer.expectRow("rank1.pickle.gz", "ready");
  await viewer.plot.drawn();
  await answered(page);
  await expect(viewer.row("rank0.pickle.gz")).toHaveAttribute("aria-selected", "true");
  expect((await viewer.state()).view).toBe("timeline");
});
