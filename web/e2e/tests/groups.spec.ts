// Grouped stacks on the timeline: bands, their labels, and what they agree with.

import type { Page } from "@playwright/test";
import type { ViewState } from "vramscope-viewer";
import { blocksOf, cli, referenceOf } from "../lib/cli.js";
import { LABELS, testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";

const SMALL = "recorded/t26/gpt_small.pickle.gz";

type Group = NonNullable<ViewState["group"]>;

interface Label {
  text: string;
  bytes: number;
  left: number;
  top: number;
  right: number;
  bottom: number;
  /** Beside the peak, and not in the band. */
  beside: boolean;
}

/** The labels of bands, in CSS pixels of the page. */
async function labelsOf(page: Page): Promise<Label[]> {
  const labels = page.locator(".mark[data-kind=group]");
  await expect.poll(() => labels.count()).toBeGreaterThan(1);
  return labels.evaluateAll((all) =>
    all.map((one) => {
      const text = one.querySelector(".mark-text") ?? one;
      const { left, top, right, bottom } = text.getBoundingClientRect();
      const { value, side } = (one as HTMLElement).dataset;
      const beside = side !== undefined;
      const bytes = Number(value);
      return { text: text.textContent ?? "", bytes, left, top, right, bottom, beside };
    }),
  );
}

const group = (page: Page, by: Group) => page.getByTestId("group-by").selectOption(by);

const setState = (page: Page, state: ViewState) =>
  page.evaluate((wanted) => window.vramscope.setState(wanted), state);

test("labels name categories with at least their bytes at the peak", async ({ viewer, page }) => {
  await viewer.show(testData(SMALL));
  const { categories } = cli("peak", SMALL);
  await group(page, "category");
  const atPeak = new Map(categories.map(({ category, bytes }) => [LABELS[category], bytes]));
  const labels = await labelsOf(page);
  for (const { text, bytes } of labels) {
    const [name = "", size = ""] = text.split(" · ");
    const known = atPeak.get(name) ?? 0;
    // A constant band has one size.
    if (size.startsWith("up to ")) expect(bytes).toBeGreaterThanOrEqual(known);
    else expect(bytes).toBe(known);
  }
  expect(labels.length).toBeGreaterThanOrEqual(3);
});

test("a band has blocks of its category, and groups do not change the total", async ({
  viewer,
  page,
}) => {
  await viewer.show(testData(SMALL));
  await page.evaluate(() => window.vramscope.setState({ color: "category" }));
  const blocks = new Map(blocksOf(SMALL).map((block) => [referenceOf(block), block]));
  const tops: number[][] = [];
  for (const by of ["block", "category", "line", "module"] as const) {
    await group(page, by);
    await viewer.plot.drawn();
    const picture = await viewer.plot.picture();
    const { bottom } = await viewer.plot.scale();
    const ground = [picture.color(picture.width - 2, 2)];
    tops.push(
      Array.from({ length: 40 }, (_, i) => picture.top(100 + i * 20, Math.round(bottom), ground)),
    );
    if (by !== "category") continue;
    const box = await viewer.plot.box();
    const inside = (await labelsOf(page)).filter(({ beside }) => !beside);
    expect(inside.length).toBeGreaterThan(1);
    for (const { text, left, top, right, bottom: low } of inside) {
      const name = text.split(" · ")[0];
      const at = [(left + right) / 2 - box.x, (top + low) / 2 - box.y] as const;
      const picked = await page.evaluate(([x, y]) => window.vramscope.pick("timeline", x, y), at);
      const block = blocks.get(picked?.reference ?? "");
      expect(LABELS[block?.category ?? ""], text).toBe(name);
    }
  }
  for (const other of tops.slice(1)) expect(other).toEqual(tops[0]);
});

test("the grouping is in the link, and the control gives the keyboard back", async ({
  viewer,
  page,
}) => {
  await viewer.show(testData(SMALL));
  expect(await viewer.state()).not.toHaveProperty("group");
  const control = page.getByTestId("group-by");
  await group(page, "line");
  await expect(control).not.toBeFocused();
  expect(await viewer.state()).toMatchObject({ group: "line" });
  await setState(page, { group: "module" });
  await expect(control).toHaveValue("module");
  await group(page, "block");
  await expect(page.locator(".mark[data-kind=group]")).toHaveCount(0);
});

test("labels do not overlap, and each is inside the plot", async ({ viewer, page }) => {
  await viewer.show(testData(SMALL));
  for (const width of [1440, 1000, 420]) {
    await page.setViewportSize({ width, height: 800 });
    for (const by of ["category", "line", "module"] as const) {
      await setState(page, { group: by });
      await viewer.plot.drawn();
      const box = await viewer.plot.box();
      const isClear = (a: Label, b: Label) =>
        a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
      await expect
        .poll(async () => {
          const labels = await page
            .locator(".mark[data-kind=group]")
            .evaluateAll((all) => all.map((one) => one.getBoundingClientRect().toJSON() as Label));
          const inside = labels.every(
            ({ left, right }) => left >= box.x - 1 && right <= box.x + box.width + 1,
          );
          return inside && labels.every((a, i) => labels.slice(i + 1).every((b) => isClear(a, b)));
        }, `${by} at ${width} px`)
        .toBe(true);
    }
  }
});
