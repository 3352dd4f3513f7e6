// The summary: what it says is what `vramscope diagnose` says of the file, and its parts lead on.

import { cpSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Locator, Page } from "@playwright/test";
import { expectNoBarrier, THEMES } from "../lib/barriers.js";
import { cli, print } from "../lib/cli.js";
import { renamed, testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";
import type { Viewer } from "../lib/viewer.js";
import { Views } from "../lib/views.js";

const OOM = "recorded/t26/oom_observer.pickle.gz";
const LEAK = "recorded/gpt_leak.pickle.gz";
const CALM = "recorded/t26/gpt_small.pickle.gz";
const ONE_EVENT = "recorded/gpt_state_only.pickle";
const STATE = "recorded/misc/norecord.pickle";
const NOTHING = "recorded/misc/nothing.pickle";

interface Lever {
  id: string;
  text: string;
  recipe: string;
  conf: string | null;
  outcome: string | null;
  cures: string | null;
  needs_bytes: number;
}

interface Diagnosis {
  findings: { id: string; title: string; severity: string; kind: string; fixes?: Lever[] }[];
  headlines: { severity: string | null; finding: string | null }[];
  memory: {
    event: number;
    reserved: number;
    capacity: number | null;
    request: number | null;
    parts: Record<string, number>;
  };
  peak: { bytes: number; lines?: { site: string; bytes: number; text?: string }[] };
  levers: Lever[];
  blind_spots: { text: string }[];
}

const diagnosisOf = (...files: string[]) =>
  print(testData(""), ["diagnose", ...files]) as unknown as Diagnosis;

/** Opens the place. */
async function summaryOf(page: Page): Promise<Locator> {
  const state = { view: "summary", sheet: "none" };
  await page.evaluate((change) => {
    const { vramscope } = window;
    vramscope.setState({ ...vramscope.getState(), ...change } as never);
  }, state);
  const place = page.getByTestId("place-summary");
  await expect(place).toBeVisible();
  await expect(place.getByTestId("verdict")).toHaveAttribute("aria-busy", "false", {
    timeout: 30_000,
  });
  return place;
}

/** Opens a file, and the place once changes were replayed. */
async function open(viewer: Viewer, file: string): Promise<Locator> {
  await new Views(viewer).open(testData(file));
  const place = await summaryOf(viewer.page);
  await expect(place.getByTestId("levers-waiting")).toHaveCount(0, { timeout: 60_000 });
  return place;
}

const attributes = (all: Locator, name: string) =>
  all.evaluateAll((each, key) => each.map((one) => one.getAttribute(key)), name);

test.beforeEach(({ page }) => page.setViewportSize({ width: 1440, height: 900 }));

for (const file of [OOM, LEAK, CALM]) {
  test(`it says what diagnose says of ${file}`, async ({ viewer }) => {
    const { headlines, findings, memory, blind_spots } = diagnosisOf(file);
    const place = await open(viewer, file);
    const verdict = place.getByTestId("verdict");
    const { severity, finding } = headlines[0] ?? {};
    const title = place.locator("[data-headline]");
    const main = finding === null ? undefined : findings[0];
    // The list of lines has the bytes of the largest.
    await expect(title).toHaveText(main?.title ?? /^Peak .*: \d+ % .*, largest line \S+$/);
    expect(await verdict.getAttribute("data-severity")).toBe(severity ?? null);
    expect(await verdict.getAttribute("data-finding")).toBe(finding ?? null);

    const rows = place.getByTestId("lever");
    // The record for scripts is cut to 8 kB; --all has the whole list.
    const all = diagnosisOf(file, "--all");
    const whole = all.findings.find(({ id }) => id === finding);
    const levers = (main?.kind === "oom" ? whole?.fixes : all.levers) ?? [];
    const ids = await attributes(rows, "data-id");
    expect(ids[0]).toBe(levers[0]?.id);
    // One change has one number. Of what does not help, the page shows one.
    for (const lever of levers.filter(({ outcome }) => outcome !== "short")) {
      const row = place.locator(`[data-testid=lever][data-id="${lever.id}"]`);
      await expect(row.locator("[data-value]"), lever.id).toHaveAttribute(
        "data-value",
        String(lever.needs_bytes),
      );
      if (lever.outcome) await expect(row).toHaveAttribute("data-outcome", lever.outcome);
    }

    const bar = place.getByTestId("memory-bar");
    await expect(bar).toHaveAttribute("data-reserved", String(memory.reserved));
    const parts = bar.locator(".memory-part");
    const [names, bytes] = [
      await attributes(parts, "data-part"),
      await attributes(parts, "data-value"),
    ];
    const { device_free: under = 0, ...known } = memory.parts;
    const shown = memory.request === null && under > 0 ? memory.parts : known;
    expect(Object.fromEntries(names.map((name, i) => [name, Number(bytes[i])]))).toEqual(shown);

    const cured = new Set(levers.map(({ cures }) => cures));
    const others = findings
      .filter(({ id }) => id !== finding && !cured.has(id))
      .map(({ id }) => id);
    const cards = await attributes(place.getByTestId("finding"), "data-id");
    // A failed allocation tells of the free memory that it could not use.
    const isTold = (id: string) => main?.kind === "oom" && id.startsWith("reserved");
    expect(cards).toEqual(others.filter((id) => !isTold(id)));
    // Folded at first.
    const blind = place.getByTestId("blind-spots").locator("li");
    await expect(blind).toHaveText(blind_spots.map(({ text }) => text));
  });
}

test("a request that failed reaches over the limit", async ({ viewer }) => {
  const { memory } = diagnosisOf(OOM);
  const place = await open(viewer, OOM);
  const request = place.locator(".memory-request");
  const capacity = place.locator(".memory-capacity");
  await expect(request).toHaveAttribute("data-value", String(memory.request));
  await expect(capacity).toHaveAttribute("data-value", String(memory.capacity));
  const [asked, limit] = [await request.boundingBox(), await capacity.boundingBox()];
  if (!asked || !limit) throw new Error("the bar is not drawn");
  expect(asked.x).toBeLessThan(limit.x);
  expect(asked.x + asked.width).toBeGreaterThan(limit.x);
});

test("each number of the bar stands in it or in the legend, and nothing is cut", async ({
  viewer,
  page,
}) => {
  const place = await open(viewer, OOM);
  for (const width of [1440, 1000, 420]) {
    await page.setViewportSize({ width, height: 900 });
    const parts = place.locator(".memory-part");
    await expect
      .poll(() =>
        parts.evaluateAll((all) =>
          all.every((one) => {
            const words = one.firstElementChild;
            return !words || words.getBoundingClientRect().width <= one.clientWidth + 1;
          }),
        ),
      )
      .toBe(true);
    const inside = (await parts.allTextContents()).filter((text) => text !== "");
    const legend = await place.locator(".memory-legend .num").allTextContents();
    const numbers = inside.map((text) => text.match(/[\d.]+ \w+$/)?.[0]);
    for (const number of legend) expect(numbers).not.toContain(number.trim());
    const beyond = await place.evaluate((one) => one.scrollWidth - one.clientWidth);
    expect(beyond, `${width} px`).toBeLessThanOrEqual(0);
  }
});

test("without a finding it says what holds the peak, and the largest saving", async ({
  viewer,
}) => {
  const place = await open(viewer, CALM);
  const [line] = diagnosisOf(CALM).peak.lines ?? [];
  const first = place.getByTestId("summary-lines").locator("tbody tr").first();
  // Equal neighbors are one row.
  await expect(first.getByRole("button")).toContainText(line?.site ?? "no line");
  await expect(first).toHaveAttribute("title", new RegExp(line?.text ?? "no text"));
  const bytes = Number(await first.locator("[data-value]").getAttribute("data-value"));
  expect(bytes).toBeGreaterThanOrEqual(line?.bytes ?? Number.POSITIVE_INFINITY);
  await expect(place).toContainText("What to change");
  await expect(place).not.toContainText(/nothing wrong|no problem/i);
});

test("a file without history speaks of the end", async ({ viewer }) => {
  const { peak } = diagnosisOf(STATE);
  expect(peak.bytes).toBeGreaterThan(0);
  const place = await open(viewer, STATE);
  await expect(place.locator("[data-headline]")).toContainText("in use at the end");
  await expect(place.getByRole("button", { name: "Open the timeline" })).toHaveCount(0);
  await expect(place).not.toContainText("before the window");
  await place.page().keyboard.press("2");
  await expect(place.page().getByTestId("view-timeline")).not.toContainText("before the window");
});

test("one event is no history", async ({ viewer }) => {
  const place = await open(viewer, ONE_EVENT);
  await expect(place.locator("[data-headline]")).toContainText("in use at the end");
  await expect(place).toContainText("reserved when the snapshot was taken");
  await expect(place).not.toContainText("at the peak, before the window");
  await expect(place).not.toContainText("in the recorded part");
});

test("a file without a device says so", async ({ viewer, page }) => {
  await new Views(viewer).open(testData(NOTHING));
  const place = await summaryOf(page);
  await expect(place.locator("[data-headline]")).toHaveText(
    "This snapshot is empty: recording was off, or nothing ran on a GPU",
  );
});

test("the line of the headline, of a lever and of a row opens in Code", async ({
  viewer,
  page,
}) => {
  const place = await open(viewer, OOM);
  for (const link of [
    place.getByTestId("verdict").locator(".place"),
    place.getByTestId("lever").nth(1).locator(".place"),
    place.getByTestId("summary-lines").locator(".place").first(),
  ]) {
    const site = (await link.textContent()) ?? "";
    await link.click();
    await expect(page.getByTestId("view-source")).toBeVisible();
    const line = site.match(/:(\d+)/)?.[1];
    await expect.poll(async () => (await viewer.state()).source).toMatch(new RegExp(`^${line}:`));
    await page.keyboard.press("1");
  }
});

test("the failed step is shown on the timeline, with the cursor on the event", async ({
  viewer,
}) => {
  const { memory } = diagnosisOf(OOM);
  const { steps } = cli("steps", OOM);
  const views = new Views(viewer);
  const place = await open(viewer, OOM);
  await place.getByRole("button", { name: "Open the timeline" }).click();
  await views.expectCursor(memory.event);
  const { x0, x1 } = await views.settledRange();
  const failed = steps.findLast(({ begin }) => begin <= memory.event);
  if (!failed) throw new Error("no step");
  expect(x0).toBeLessThanOrEqual(failed.begin + 1);
  expect(x1).toBeGreaterThan(memory.event + 1);
  // The step with a margin, not the whole window.
  expect(x1 - x0).toBeLessThan(1.4 * (memory.event - failed.begin));
});

test("parts of the bar are filters, and one stop of the Tab key", async ({ viewer, page }) => {
  const place = await open(viewer, CALM);
  const parts = place.locator("button.memory-part");
  await expect(place.locator('button.memory-part[tabindex="0"]')).toHaveCount(1);
  await parts.first().focus();
  await page.keyboard.press("ArrowRight");
  await expect(parts.nth(1)).toBeFocused();
  await place.locator(".memory-part[data-part=parameter]").click();
  await expect
    .poll(() => attributes(page.locator(".filter-chip"), "data-term"))
    .toEqual(["category:parameter"]);
});

test("the plot has the moment of the bar, and nothing jumps when levers come", async ({
  viewer,
  page,
}) => {
  await page.evaluate(() => {
    const shifts: number[] = [];
    (window as unknown as { shifts: number[] }).shifts = shifts;
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) {
        const { value, hadRecentInput } = entry as PerformanceEntry & {
          value: number;
          hadRecentInput: boolean;
        };
        if (!hadRecentInput) shifts.push(value);
      }
    }).observe({ type: "layout-shift" });
  });
  const place = await open(viewer, LEAK);
  const { memory } = diagnosisOf(LEAK);
  const name = place.locator(".plot-name");
  await expect(name).toHaveText(`peak, #${memory.event.toLocaleString("en")}`);
  await expect(place.locator(".plot-box path").first()).toHaveAttribute("d", /^M/);
  const shifts = await page.evaluate(() => (window as unknown as { shifts: number[] }).shifts);
  expect(shifts.reduce((sum, value) => sum + value, 0)).toBeLessThan(0.05);
});

test("with ranks it names those that have a finding", async ({ viewer, page }, info) => {
  const folder = info.outputPath("run");
  mkdirSync(folder, { recursive: true });
  const names = [0, 1, 2, 3].map((rank) => `rank${rank}_memory_snapshot.pickle.gz`);
  for (const [rank, name] of names.entries()) {
    const of = rank === 3 ? 3 : 2;
    cpSync(testData(`recorded/ranks_fsdp/rank${of}_memory_snapshot.pickle.gz`), join(folder, name));
  }
  const { findings } = print(folder, ["diagnose", "--all", ...names]) as unknown as {
    findings: { kind: string; path: string; bytes: number }[];
  };
  const views = new Views(viewer);
  await views.open(names.map((name) => join(folder, name)));
  for (const name of names) await viewer.expectRow(name, "ready");
  const place = await summaryOf(page);
  const card = place.getByTestId("ranks-with-findings");
  const reserved = findings
    .filter(({ kind }) => kind === "reserved")
    .toSorted((a, b) => b.bytes - a.bytes || a.path.localeCompare(b.path));
  expect(reserved.length).toBeGreaterThan(1);
  const of = card.locator(`li[data-ranks="${reserved.length}"]`).first();
  await expect(of).toContainText(`on ${reserved.length} of ${names.length} ranks`);
  const links = of.locator("[data-rank]");
  expect((await attributes(links, "data-rank")).toSorted()).toEqual(
    reserved.map(({ path }) => path).toSorted(),
  );
  const last = await links.last().getAttribute("data-rank");
  await links.last().click();
  await expect.poll(async () => (await viewer.state()).path).toBe(last);
});

test("several files: the worst rank is first, and its line opens the summary", async ({
  viewer,
  page,
}) => {
  const [calm, worst] = [renamed(CALM, "rank0.pickle.gz"), renamed(OOM, "rank1.pickle.gz")];
  await page.getByTestId("open-files").setInputFiles([calm, worst]);
  await expect(viewer.row("rank1.pickle.gz")).toHaveAttribute("aria-selected", "true");
  const line = page.getByTestId("verdict");
  await expect(line).toContainText("Rank 1: Out of memory", { timeout: 30_000 });
  // What the user chooses stays.
  await viewer.row("rank0.pickle.gz").click();
  await expect(line).toContainText("Rank 0: Peak ");
  await line.click();
  await expect(page.getByTestId("place-summary")).toBeVisible();
});

test("a link's rank and view win over the first look", async ({ viewer, page }) => {
  const views = new Views(viewer);
  await views.setState({ view: "timeline", path: "rank0.pickle.gz" });
  await page
    .getByTestId("open-files")
    .setInputFiles([renamed(CALM, "rank0.pickle.gz"), renamed(OOM, "rank1.pickle.gz")]);
  await viewer.expectRow("rank1.pickle.gz", "ready");
  await viewer.plot.drawn();
  await expect(viewer.row("rank0.pickle.gz")).toHaveAttribute("aria-selected", "true");
  expect((await viewer.state()).view).toBe("timeline");
});

test("no barrier in both themes, at three widths", async ({ viewer, page }) => {
  test.setTimeout(120_000);
  const place = await open(viewer, OOM);
  for (const width of [1440, 1000, 420]) {
    await page.setViewportSize({ width, height: 900 });
    await expect(place).toBeVisible();
    for (const theme of THEMES) {
      await page.emulateMedia({ colorScheme: theme });
      await expectNoBarrier(page, theme, `summary, ${width}`, "any", ".summary");
    }
  }
});
