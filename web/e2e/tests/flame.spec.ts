// The flame graph: sums of call stacks equal those of the command line.

import { basename } from "node:path";
import type { Locator } from "@playwright/test";
import { cli } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";
import type { Viewer } from "../lib/viewer.js";
import { Views } from "../lib/views.js";

const REAL = "recorded/t26/gpt_small.pickle.gz";

type Node = ReturnType<typeof treeOf>[number];

/** Nodes of the command line's graph, each with the titles of its breadcrumb. */
function treeOf(...rest: string[]) {
  const { nodes } = cli("flame", REAL, ...rest);
  const paths: string[][] = [];
  return nodes.map((node, index) => {
    const title = node.file === "" ? node.name : `${basename(node.file)}:${node.line} ${node.name}`;
    const path = index === 0 ? [title] : [...(paths[node.parent] ?? []), title];
    paths.push(path);
    return { ...node, path };
  });
}

async function openFlame(viewer: Viewer) {
  const views = new Views(viewer);
  await views.open(testData(REAL));
  const pane = await views.main("Flame");
  const total = pane.getByTestId("flame-total");
  const expectTotal = (value: number) => expect(total).toHaveAttribute("data-value", String(value));
  // The command line counts framework frames too.
  const hide = pane.getByRole("button", { name: "hide framework" });
  await hide.click();
  await expect(hide).toHaveAttribute("aria-pressed", "false");
  // The graph takes all of the view.
  const table = pane.getByRole("button", { name: "table", exact: true });
  if ((await table.getAttribute("aria-pressed")) === "true") await table.click();
  await expect(table).toHaveAttribute("aria-pressed", "false");
  await expect(pane.locator(".flame-name").first()).toBeVisible();
  return { views, pane, total, expectTotal };
}

/** Titles of the breadcrumb, from the outermost. Opens the frames that it folds. */
async function pathOf(pane: Locator): Promise<string[]> {
  const path = pane.getByRole("navigation", { name: "Path" });
  for (const folded of await path.getByRole("button", { name: /^\d+ frames$/ }).all())
    await folded.click();
  return (await path.getByRole("listitem").allTextContents()).map((one) => one.trim());
}

test("a click zooms to a node, Backspace zooms out, and the node's blocks add up to it", async ({
  viewer,
  page,
}) => {
  const { views, pane, expectTotal } = await openFlame(viewer);
  await test.step("zoom in and out", async () => {
    const tree = treeOf();
    const whole = cli("flame", REAL).total;
    expect(await pathOf(pane)).toEqual(["(all)"]);
    // Two nodes have this name, and each click must zoom to its own.
    const twins = tree.filter(({ name, depth }) => name === "main" && depth === 2);
    expect(twins.length, "two nodes of one name").toBe(2);
    const names = pane.getByRole("button", { name: /^main p_gpt\.py:\d+$/ });
    await expect(names).toHaveCount(twins.length);
    const seen: string[] = [];
    for (const index of twins.keys()) {
      await names.nth(index).click();
      await expect.poll(async () => (await pathOf(pane)).length).toBe(3);
      seen.push(
        `${await pathOf(pane)} ${await pane.getByTestId("flame-total").getAttribute("data-value")}`,
      );
      for (const length of [2, 1]) {
        await page.keyboard.press("Backspace");
        await expect.poll(async () => (await pathOf(pane)).length).toBe(length);
      }
      await expectTotal(whole);
    }
    expect(seen.toSorted()).toEqual(twins.map(({ path, total }) => `${path} ${total}`).toSorted());

    // Zoom in several times, and back by the path.
    let node = tree[0];
    while (node && node.depth < 4) {
      const above: Node = node;
      const index = tree.indexOf(above);
      node = tree
        .filter((child) => child.depth === above.depth + 1 && child.parent === index)
        .reduce((a, b) => (b.total > a.total ? b : a));
      // A box names the function first, a path the place.
      const box = node.file === "" ? node.name : `${node.name} ${basename(node.file)}:${node.line}`;
      await pane.getByRole("button", { name: box, exact: true }).first().click();
      await expect.poll(() => pathOf(pane)).toEqual(node.path);
      await expectTotal(node.total);
    }
    await pane.getByRole("navigation", { name: "Path" }).getByRole("button").first().click();
    await expect.poll(() => pathOf(pane)).toEqual(["(all)"]);
    await expectTotal(whole);
  });
  await test.step("a graph that is higher than its pane scrolls", async () => {
    const bar = pane.getByTestId("rows-bar");
    await expect(bar, "the whole graph fits").toHaveCount(0);
    await page.setViewportSize({ width: 1440, height: 300 });
    const root = pane.getByRole("button", { name: "(all)", exact: true });
    await expect(root).toBeVisible();
    await bar.hover();
    await page.mouse.wheel(0, 1e4);
    await expect(root).toHaveCount(0);
    await expect(pane.locator(".flame-name").first()).toBeVisible();
    await page.mouse.wheel(0, -1e4);
    await expect(root).toBeVisible();
  });
  await test.step("the blocks of a node", async () => {
    await page.setViewportSize({ width: 1440, height: 900 });
    const twins = treeOf().filter(({ name, depth }) => name === "main" && depth === 2);
    const main = twins.reduce((a, b) => (b.blocks < a.blocks ? b : a));
    // The wider node has more bytes.
    const rank = twins.filter(({ total }) => total < main.total).length;
    const names = pane.getByRole("button", { name: /^main p_gpt\.py:\d+$/ });
    const widths = await names.evaluateAll((all) =>
      all.map((one) => one.getBoundingClientRect().width),
    );
    await names.nth(widths.indexOf(widths.toSorted((a, b) => a - b)[rank] ?? 0)).click();
    await expectTotal(main.total);
    await pane.getByRole("button", { name: "Blocks of this node" }).click();
    await expect(views.pane("Blocks")).toHaveAttribute("data-place", "sheet");
    const table = views.table("blocks");
    await table.expectTotal(main.blocks);
    const rows = new Map<string, number>();
    // Scroll through all rows.
    await expect
      .poll(async () => {
        const found = await table.rows.evaluateAll((all) =>
          all.map((row) => [
            row.getAttribute("data-key") ?? "",
            Number(row.querySelector("[data-column=size]")?.getAttribute("data-value")),
          ]),
        );
        for (const [key, bytes] of found) rows.set(String(key), Number(bytes));
        await table.body.evaluate((body) => {
          body.scrollTop += body.clientHeight;
        });
        return rows.size;
      })
      .toBe(main.blocks);
    expect([...rows.values()].reduce((sum, bytes) => sum + bytes, 0)).toBe(main.total);

    // Without the filters the table lists all blocks.
    const chips = page.getByTestId("chips");
    await expect(chips.locator("[data-term^='path:']")).toHaveCount(1);
    await expect(chips.locator("[data-term='live@peak']")).toHaveCount(1);
    await expect(viewer.details.getByTestId("group").locator("h2")).toHaveAttribute(
      "data-value",
      String(main.total),
    );
    await chips.getByRole("button", { name: "Clear all" }).click();
    await table.expectTotal(cli("blocks", REAL).total);
  });
});

test("weights, search and hidden frames add up as on the command line", async ({
  viewer,
  page,
}) => {
  const { views, pane, expectTotal } = await openFlame(viewer);
  await test.step("leaf first and without the framework the total is the whole", async () => {
    const { total } = cli("flame", REAL);
    const names = async () => (await pane.locator(".flame-name").allTextContents()).join();
    const plain = await names();
    await pane.getByRole("button", { name: "leaf first" }).click();
    await expect.poll(names).not.toBe(plain);
    await expectTotal(total);
    const inverted = await names();
    await pane.getByRole("button", { name: "hide framework" }).click();
    await expect.poll(names).not.toBe(inverted);
    await expectTotal(total);
    await page.getByTestId("flame-canvas").focus();
    await page.keyboard.press("v");
    await expect(pane.getByRole("button", { name: "leaf first" })).toHaveAttribute(
      "aria-pressed",
      "false",
    );
    await expect(pane.getByRole("button", { name: "hide framework" })).toHaveAttribute(
      "aria-pressed",
      "true",
    );
    await expectTotal(total);
    await expect(pane.getByRole("button", { name: /^_call_impl\b/ })).toHaveCount(0);
  });
  await test.step("H hides framework frames in call stacks too", async () => {
    const [block] = cli("blocks", REAL).blocks.filter(({ frames }) => frames.length > 4);
    const sel = `0:${block?.address}@${block?.alloc_event}`;
    expect(await page.evaluate((name) => window.vramscope.select(name), sel)).toBe(true);
    const hide = pane.getByRole("button", { name: "hide framework" });
    const folded = viewer.details.getByTestId("all-frames");
    await expect(hide).toHaveAttribute("aria-pressed", "true");
    await expect(folded).toHaveText(/^\s*\d+ (native|framework) frames?$/);
    await page.keyboard.press("h");
    await expect(hide).toHaveAttribute("aria-pressed", "false");
    await expect(folded).toHaveCount(0);
    await page.keyboard.press("Escape");
    await expect.poll(async () => (await viewer.state()).sel).toBeUndefined();
  });
  await test.step("a search sums the stacks that go through matching frames", async () => {
    const tree = treeOf();
    for (const word of ["gpt.py:44", "Linear.PY"]) {
      const lower = word.toLowerCase();
      const holds = ({ name, file, line }: Node) =>
        `${name} ${file}:${line}`.toLowerCase().includes(lower);
      const isBelowOne = (node: Node): boolean => {
        const above = node.depth === 0 ? undefined : tree[node.parent];
        return above !== undefined && (holds(above) || isBelowOne(above));
      };
      const matched = tree
        .filter((node) => holds(node) && !isBelowOne(node))
        .reduce((sum, { total }) => sum + total, 0);
      expect(matched, word).toBeGreaterThan(0);
      await views.search(word);
      await expect(pane.getByTestId("flame-matched")).toHaveAttribute(
        "data-value",
        String(matched),
      );
      await expectTotal(tree[0]?.total ?? 0);
    }
    await page.getByTestId("search").fill("");
    await expect(pane.getByTestId("flame-matched")).toHaveCount(0);
  });
  await test.step("each weight", async () => {
    await expectTotal(cli("flame", REAL, "--weight", "bytes").total);
    for (const [button, weight] of [
      ["bytes × time", "byte-seconds"],
      ["allocations", "count"],
      ["churn", "churn"],
      ["at peak", "bytes"],
    ] as const) {
      if (button === "bytes × time")
        await pane.getByRole("button", { name: button, exact: true }).click();
      else await page.keyboard.press("b");
      await expect(pane.getByRole("button", { name: button, exact: true })).toHaveAttribute(
        "aria-pressed",
        "true",
      );
      await expectTotal(cli("flame", REAL, "--weight", weight).total);
    }
    await pane.getByRole("button", { name: "at cursor", exact: true }).click();
    for (const event of [500, 3000]) {
      await views.cursor(event);
      await expectTotal(cli("flame", REAL, "--at", String(event)).total);
    }
    // The graph follows the cursor.
    await page.getByTestId("flame-canvas").focus();
    await page.keyboard.press(".");
    await views.expectCursor(3001);
    await expectTotal(cli("flame", REAL, "--at", "3001").total);
  });
});

test("a marked range limits what is counted", async ({ viewer }) => {
  const { views, pane, expectTotal } = await openFlame(viewer);
  await views.main("Timeline");
  await viewer.plot.drawn();
  await views.zoomTo(1000, 2000);
  await views.settledRange();
  const scale = await viewer.plot.scale();
  await views.drag("timeline-canvas", [scale.x(1200), 60], [scale.x(1800), 90], "Alt");
  await expect(viewer.details.locator("[data-kind=Range]")).toBeVisible();
  const raw = async (key: string) => Number(await views.fact(key).getAttribute("data-value"));
  const [from, to] = [await raw("from"), await raw("to")];
  const inside = cli("blocks", REAL).blocks.filter(
    ({ alloc_event }) => alloc_event !== null && from < alloc_event && alloc_event <= to,
  );
  expect(inside.length).toBeGreaterThan(10);
  const bytes = inside.reduce((sum, block) => sum + block.bytes, 0);
  expect(await raw("allocated")).toBe(bytes);
  await views.main("Flame");
  await pane.getByRole("button", { name: "allocations", exact: true }).click();
  await expectTotal(cli("flame", REAL, "--weight", "count").total);
  await pane.getByRole("button", { name: "in the range" }).click();
  await expectTotal(inside.length);
  await pane.getByRole("button", { name: "churn", exact: true }).click();
  await expectTotal(bytes);

  // "at peak" counts blocks that are live at the peak of the range. "at cursor" ignores the
  // range.
  const inRange = pane.getByRole("button", { name: "in the range" });
  await pane.getByRole("button", { name: "at cursor", exact: true }).click();
  await expect(inRange).toBeHidden();
  await pane.getByRole("button", { name: "at peak", exact: true }).click();
  await expect(pane.getByText(/live at the peak of the range, #/)).toBeVisible();
  await expectTotal(await raw("peak"));
  await inRange.click();
  await expectTotal(cli("flame", REAL).total);
});
