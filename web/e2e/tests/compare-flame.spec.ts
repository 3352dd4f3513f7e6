// The flame graph of two snapshots, against the tree of `vramscope diff`.

import type { Page } from "@playwright/test";
import { print } from "../lib/cli.js";
import { renamed, testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";
import type { Viewer } from "../lib/viewer.js";
import { answering, pane } from "../lib/work.js";

const SMALL = "recorded/t26/gpt_small.pickle.gz";
const LEAK = "recorded/gpt_leak.pickle.gz";

interface Node {
  parent: number;
  name: string;
  a: number;
  b: number;
  change: number;
}

/** The nodes of the tree, in the order of the page's graph with the widths of B. */
const treeOf = (a: string, b: string): Node[] =>
  (print(testData(""), ["diff", a, b]) as { pairs: [{ tree: Node[] }] }).pairs[0].tree;

/** Opens both files, then their flame graph with all frames. */
async function open(viewer: Viewer, a: string, b: string) {
  const { page } = viewer;
  await viewer.open([renamed(a, "a.gz"), renamed(b, "b.gz")]);
  for (const name of ["a.gz", "b.gz"]) await viewer.expectRow(name, "ready");
  await answering(page);
  await page.keyboard.press("6");
  const view = pane(page, "compare");
  await view.getByRole("button", { name: "flame graph" }).click();
  // The command line has framework frames, too.
  await view.getByRole("button", { name: "hide framework" }).click();
  const total = view.getByTestId("compare-flame-text");
  const expectTotal = (value: number | undefined) =>
    expect(total).toHaveAttribute("data-value", String(value));
  return { view, expectTotal };
}

const nameOf = (page: Page, node: number) => page.locator(`.flame-name[data-node="${node}"]`);

/** The indices of the nodes that have a name, also while the panel takes some of the width. */
const named = (page: Page) =>
  page
    .locator(".flame-name")
    .evaluateAll((all) =>
      all.flatMap((one) =>
        one.getBoundingClientRect().width > 60 ? [Number(one.getAttribute("data-node"))] : [],
      ),
    );

test("nodes have the numbers of both sides, their colors, and narrow the table", async ({
  viewer,
  page,
}) => {
  const tree = treeOf(SMALL, LEAK);
  const { view, expectTotal } = await open(viewer, SMALL, LEAK);
  await expectTotal(tree[0]?.b);
  await expect(view.getByTestId("compare-missing")).toHaveCount(0);
  await expect.poll(async () => (await named(page)).length).toBeGreaterThan(10);
  const details = viewer.details;
  const scale = view.getByTestId("compare-scale").locator("[style]");
  const colors = await scale.evaluateAll((all) =>
    all.map((one) => getComputedStyle(one).backgroundColor),
  );
  expect(new Set(colors).size).toBe(9);
  const rows = view.getByTestId("compare-stacks");
  const all = Number(await rows.getAttribute("data-total"));

  const seen = new Set<number>();
  const wide = (await named(page)).filter((node) => node > 0).slice(0, 12);
  for (const index of wide) {
    const node = tree[index];
    if (!node) throw new Error(`no node ${index}`);
    await test.step(`${node.name}: ${node.a} to ${node.b}`, async () => {
      await nameOf(page, index).hover();
      const tip = page.getByTestId("tooltip");
      await expect(tip.locator("[data-value]")).toHaveAttribute("data-value", String(node.change));
      const color = await tip
        .locator(".swatch")
        .evaluate((one) => getComputedStyle(one).backgroundColor);
      const level = colors.indexOf(color) - 4;
      expect(Math.sign(level), color).toBe(Math.sign(node.change));
      seen.add(Math.sign(level));
      await nameOf(page, index).click();
      await expectTotal(node.b);
      await expect(details.locator("#details-title")).toHaveAttribute(
        "data-value",
        String(node.change),
      );
      for (const side of ["a", "b"] as const)
        await expect(details.locator(`[data-key=${side}] dd`)).toHaveAttribute(
          "data-value",
          String(node[side]),
        );
      // The rows that are left add up to the node.
      await expect
        .poll(async () => {
          const changes = await rows
            .locator(".table-row [data-column=change]")
            .evaluateAll((cells) => cells.map((cell) => Number(cell.getAttribute("data-value"))));
          return changes.reduce((sum, change) => sum + change, 0);
        })
        .toBe(node.change);
      expect(Number(await rows.getAttribute("data-total"))).toBeLessThanOrEqual(all);
      // The outermost step of the breadcrumb shows everything again.
      await view.getByRole("navigation", { name: "Path" }).getByRole("button").first().click();
      await expectTotal(tree[0]?.b);
      await expect(rows).toHaveAttribute("data-total", String(all));
    });
  }
  expect([...seen].toSorted(), "less, equal and more").toEqual([-1, 0, 1]);
});

test("what only A holds is drawn with the widths of A", async ({ viewer, page }) => {
  const tree = treeOf(LEAK, SMALL);
  const gone = tree.filter(({ a, b, parent }) => b === 0 && a > 0 && (tree[parent]?.b ?? 0) > 0);
  const bytes = gone.reduce((sum, { a }) => sum + a, 0);
  expect(bytes, "something is gone").toBeGreaterThan(0);
  const { view, expectTotal } = await open(viewer, LEAK, SMALL);
  await expectTotal(tree[0]?.b);
  const missing = view.getByTestId("compare-missing");
  await expect(missing).toHaveAttribute("data-value", String(bytes));
  await expect(missing).toContainText("only A holds");
  const drawn = await named(page);
  expect(drawn.filter((node) => (tree[node]?.b ?? 0) === 0)).toEqual([]);
  await view.getByRole("button", { name: "widths of A" }).click();
  await expectTotal(tree[0]?.a);
  const largest = gone.toSorted((x, y) => y.a - x.a)[0];
  const name = view.getByRole("button", { name: new RegExp(`^${largest?.name} `) });
  await expect
    .poll(async () => {
      const changes: (string | null)[] = [];
      for (const one of await name.all()) {
        await one.hover();
        changes.push(
          await page.getByTestId("tooltip").locator("[data-value]").getAttribute("data-value"),
        );
      }
      return changes;
    })
    .toContain(String(largest?.change));
});

test("keys walk through the graph, and the other picture shows all stacks", async ({
  viewer,
  page,
}) => {
  const tree = treeOf(SMALL, LEAK);
  const { view, expectTotal } = await open(viewer, SMALL, LEAK);
  const rows = view.getByTestId("compare-stacks");
  await expectTotal(tree[0]?.b);
  const all = await rows.getAttribute("data-total");
  await expect(nameOf(page, 0)).toBeVisible();
  await nameOf(page, 0).focus();
  await page.keyboard.press("ArrowRight");
  const focused = await page.evaluate(() =>
    Number(document.activeElement?.shadowRoot?.activeElement?.getAttribute("data-node") ?? -1),
  );
  expect(focused).toBeGreaterThan(0);
  await page.keyboard.press("Enter");
  await expectTotal(tree[focused]?.b);
  await page.keyboard.press("v");
  await expectTotal(tree[0]?.b);
  await expect(view.getByRole("button", { name: "leaf first" })).toHaveAttribute(
    "aria-pressed",
    "true",
  );
  await page.keyboard.press("v");
  await nameOf(page, focused).click();
  await expectTotal(tree[focused]?.b);
  await page.keyboard.press("Backspace");
  await expectTotal(tree[tree[focused]?.parent ?? 0]?.b);
  await nameOf(page, focused).click();
  await expectTotal(tree[focused]?.b);
  await view.getByRole("button", { name: "over time" }).click();
  await expect(view.getByTestId("compare-curves")).toBeVisible();
  await expect(rows).toHaveAttribute("data-total", all ?? "");
});
