// A run of 128 ranks.

import { readFileSync } from "node:fs";
import type { Route } from "@playwright/test";
import { deviceOf } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";
import { answering, later } from "../lib/work.js";

const RANKS = 128;
/** Files with different peaks. */
const FILES = ["f01", "f02", "f03", "f05", "f06", "f13", "f14", "f15", "f18"].map((name) =>
  testData(`scenarios/${name}.pickle`),
);
const fileOf = (rank: number) => FILES[(rank * 5) % FILES.length] ?? "";

test("128 ranks are read, counted and sorted while the page answers", async ({ viewer, page }) => {
  const peaks = new Map(FILES.map((file) => [file, deviceOf(file).requested_bytes.peak]));
  const peakOf = (rank: number) => peaks.get(fileOf(rank)) ?? Number.NaN;
  await page.evaluate(() => {
    window.vramscope.setState({ view: "ranks", sheet: "none" });
    const beat = { last: performance.now(), longest: 0 };
    const counted: [said: string, ready: number][] = [];
    Object.assign(window, { beat, counted });
    setInterval(() => {
      const now = performance.now();
      beat.longest = Math.max(beat.longest, now - beat.last);
      beat.last = now;
    }, 10);
    // Record the shown count next to the number of rows that are ready.
    const root = window.vramscope.shadowRoot;
    if (root === null) throw new Error("no shadow root");
    new MutationObserver(() => {
      const said = root.querySelector("[data-testid=view-ranks] [role=status]")?.textContent;
      const ready = root.querySelectorAll("[data-testid=rank-row][data-state=ready]").length;
      if (said && counted.at(-1)?.[0] !== said) counted.push([said, ready]);
    }).observe(root, { subtree: true, childList: true, characterData: true, attributes: true });
  });
  const bytes = FILES.map((file) => [...readFileSync(file)]);
  const started = Date.now();
  await page.evaluate(
    ([files, ranks]) => {
      const inputs = Array.from({ length: ranks }, (_, rank) => ({
        name: `iteration_1/rank${rank}`,
        buffer: Uint8Array.from(files[(rank * 5) % files.length] ?? []).buffer,
      }));
      void window.vramscope.load(inputs);
    },
    [bytes, RANKS] as const,
  );
  await expect(viewer.rows).toHaveCount(RANKS);
  // A rank that is selected while others load is read next.
  await viewer.row("iteration_1/rank100").click();
  await expect(viewer.row("iteration_1/rank100")).toHaveAttribute("aria-selected", "true");
  await expect(viewer.peak).toHaveAttribute("data-value", String(peakOf(100)));

  const lines = page.getByTestId("overview-row");
  await expect(lines).toHaveCount(RANKS, { timeout: 60_000 });
  const all = Date.now() - started;
  await expect(page.locator("[data-testid=rank-row][data-state=ready]")).toHaveCount(RANKS);
  test.info().annotations.push({ type: "128 ranks", description: `${all} ms` });

  const { counted, longest } = await page.evaluate(() => {
    const { beat, counted } = window as unknown as {
      beat: { longest: number };
      counted: [string, number][];
    };
    return { counted, longest: beat.longest };
  });
  expect(longest, "the longest pause").toBeLessThan(Math.max(1000, all / 3));
  // The count moves up to ten times a second.
  expect(counted.length, "steps of the count").toBeGreaterThan(3);
  let before = 0;
  for (const [said, ready] of counted) {
    const [, read, of] = /^(\d+) of (\d+) read$/.exec(said) ?? [];
    expect(Number(of), said).toBe(RANKS);
    expect(Number(read), `${said}, after ${before}`).toBeGreaterThanOrEqual(before);
    expect(Number(read), `${said}, while ${ready} are ready`).toBeLessThanOrEqual(ready);
    before = Number(read);
  }
  await expect(page.getByTestId("view-ranks").getByRole("status")).toHaveCount(0);

  const column = () =>
    lines.evaluateAll((rows) =>
      rows.map((row) => ({
        path: row.getAttribute("data-path"),
        peak: Number(row.querySelector("[data-column=peak]")?.getAttribute("data-value")),
      })),
    );
  expect(await column()).toEqual(
    Array.from({ length: RANKS }, (_, rank) => ({
      path: `iteration_1/rank${rank}`,
      peak: peakOf(rank),
    })),
  );
  const ascending = Array.from({ length: RANKS }, (_, rank) => peakOf(rank)).toSorted(
    (a, b) => a - b,
  );
  const head = page.getByTestId("view-ranks").locator("th", { hasText: /^peak$/ });
  await head.getByRole("button").click();
  await expect(head).toHaveAttribute("aria-sort", "descending");
  expect((await column()).map(({ peak }) => peak)).toEqual(ascending.toReversed());
  await head.getByRole("button").click();
  await expect(head).toHaveAttribute("aria-sort", "ascending");
  await expect.poll(async () => (await column()).map(({ peak }) => peak)).toEqual(ascending);

  // A rank whose worker was ended is read again.
  for (const rank of [3, 77]) {
    await page.locator(`[data-testid=overview-row][data-path="iteration_1/rank${rank}"]`).click();
    await expect(viewer.peak).toHaveAttribute("data-value", String(peakOf(rank)));
    await page.keyboard.press("2");
    await viewer.plot.drawn();
    await page.keyboard.press("5");
  }
  const { ranks } = await page.evaluate(() => window.vramscope.stats());
  expect(ranks).toHaveLength(RANKS);
  const alive = ranks.filter(({ wasmBytes }) => wasmBytes > 0).length;
  expect(alive, "workers at the end").toBeGreaterThan(0);
  expect(alive, "workers at the end").toBeLessThanOrEqual(9);
});

test("a rank that was unloaded is drawn once it has been read again", async ({ viewer, page }) => {
  const fulfil = (route: Route) => route.fulfill({ path: fileOf(0) });
  await page.route("**/rank*.pickle", fulfil);
  const count = 11;
  const paths = Array.from({ length: count }, (_, rank) => `/rank${rank}.pickle`);
  await page.evaluate((urls) => window.vramscope.load(urls), paths);
  await expect(viewer.rows).toHaveCount(count);
  await viewer.settled();
  await viewer.place("Timeline");
  await viewer.plot.drawn();
  const [released = ""] = await page.evaluate(() =>
    window.vramscope.stats().ranks.flatMap(({ path, wasmBytes }) => (wasmBytes === 0 ? path : [])),
  );
  expect(released).not.toBe("");
  const asked = later<Route>();
  await page.route(`**/${released}`, asked.resolve);
  await viewer.row(released).click();
  const route = await asked.promise;
  // Picture and views send queries before the worker can answer.
  await expect(viewer.peak).toBeVisible();
  await page.evaluate(
    () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
  );
  expect(await viewer.plot.strips()).toBe(0);
  await fulfil(route);
  await viewer.plot.drawn();
  await answering(page);
});
