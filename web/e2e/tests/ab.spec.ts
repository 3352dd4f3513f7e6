// A to B: what came, went and stayed between two moments, with the numbers of
// `vramscope state --from --to`, and the same in color on the map.

import type { Page } from "@playwright/test";
import { CHANGES, changesOf, cli } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";
import { Views, valuesOf } from "../lib/views.js";

const FILE = "recorded/t26/gpt_small.pickle.gz";

/** Runs a command of the palette by its name. */
async function command(page: Page, text: string): Promise<void> {
  await page.keyboard.press(">");
  await page.getByRole("combobox", { name: "Command" }).fill(text);
  await page.keyboard.press("Enter");
}

/** The view shows what changed from one event to another. */
async function expectChanges(views: Views, from: number, to: number): Promise<void> {
  const pane = views.pane("A to B");
  const reversed = from > to;
  const wanted = reversed ? changesOf(FILE, to, from) : changesOf(FILE, from, to);
  const [came, went] = reversed ? (["went", "came"] as const) : (["came", "went"] as const);
  const source = { came, went, stayed: "stayed" } as const;
  await expect(pane.getByTestId("ab-a")).toHaveAttribute("data-event", String(from));
  await expect(pane.getByTestId("ab-b")).toHaveAttribute("data-event", String(to));
  for (const name of CHANGES) {
    const total = pane.locator(`.ab-totals [data-change=${name}]`);
    const { bytes, blocks } = wanted[source[name]];
    await expect(total.locator("b")).toHaveAttribute("data-value", String(bytes));
    await expect(total.locator("[data-blocks]")).toHaveAttribute("data-blocks", String(blocks));
  }
  const sign = reversed ? -1 : 1;
  const rows = [
    ["ab-by-category", wanted.by_category],
    ["ab-by-call-site", wanted.by_site],
  ] as const;
  for (const [testid, list] of rows) {
    const table = pane.getByTestId(testid);
    for (const name of CHANGES)
      expect(await valuesOf(table.locator(`td[data-column=${name}]`)), name).toEqual(
        list.map((row) => row[source[name]].bytes),
      );
    expect(await valuesOf(table.locator("td[data-column=net]"))).toEqual(
      list.map((row) => (row.net_bytes === 0 ? 0 : sign * row.net_bytes)),
    );
  }
}

test("A and B are set by keys, commands, a range and a drag, with the program's numbers", async ({
  viewer,
  page,
}) => {
  const views = new Views(viewer);
  await views.show(testData(FILE));
  await command(page, "a to b");
  const pane = views.pane("A to B");
  await expect(pane.getByTestId("ab-empty")).toContainText("Mark a range");

  await test.step("by keys at the cursor", async () => {
    await views.cursor(600);
    await page.keyboard.press("(");
    await views.cursor(2500);
    await page.keyboard.press(")");
    await expectChanges(views, 600, 2500);
    await expect(page.locator('.mark[data-end="A"]')).toBeVisible();
    await expect(page.locator('.mark[data-end="B"]')).toBeVisible();
  });
  await test.step("by commands", async () => {
    await command(page, "swap a and b");
    await expectChanges(views, 2500, 600);
    await expect(pane).toContainText("A is after B");
    await views.cursor(-1);
    await command(page, "set b at the cursor");
    await expectChanges(views, 2500, -1);
  });
  await test.step("the link keeps them", async () => {
    expect(await viewer.state()).toMatchObject({ from: 2500, to: -1, sheet: "ab" });
    await expect.poll(() => page.url()).toContain("from=2500&to=-1");
    await page.keyboard.press("Escape");
    await expect(pane.getByTestId("ab-empty")).toBeVisible();
    await views.setState({ from: 600, to: 99_999_999 });
    await expectChanges(views, 600, cli("state", FILE, "--at", "end").event);
  });
  await test.step("by a marked range", async () => {
    const box = await viewer.plot.box();
    const y = box.height / 2;
    await views.drag("timeline-canvas", [200, y], [500, y], "Alt");
    await expect.poll(async () => (await viewer.state()).from).not.toBe(600);
    const { from = 0, to = 0 } = await viewer.state();
    await expect(views.fact("from")).toHaveAttribute("data-value", String(from));
    await expect(views.fact("to")).toHaveAttribute("data-value", String(to));
    await expectChanges(views, from, to);
  });
  await test.step("by dragging a flag", async () => {
    const { from = 0, to = 0 } = await viewer.state();
    const flag = await page.locator('.mark[data-end="B"] .mark-text').boundingBox();
    if (!flag) throw new Error("B has a flag");
    const at = { x: flag.x + flag.width / 2, y: flag.y + flag.height / 2 };
    await page.mouse.move(at.x, at.y);
    await page.mouse.down();
    await page.mouse.move(at.x + 60, at.y);
    await page.mouse.move(at.x + 120, at.y);
    await page.mouse.up();
    await expect.poll(async () => (await viewer.state()).to).toBeGreaterThan(to);
    const { to: moved = 0 } = await viewer.state();
    await expectChanges(views, from, moved);
  });
});

test("a row lights its blocks in all views", async ({ viewer, page }) => {
  const views = new Views(viewer);
  await views.show(testData(FILE));
  await views.setState({ sheet: "ab", from: 600, to: 2500 });
  const pane = views.pane("A to B");
  const [first] = changesOf(FILE, 600, 2500).by_site;
  const row = pane.getByTestId("ab-by-call-site").getByRole("button").first();
  await expect(row).toContainText(first?.site ?? "");
  await row.click();
  await expect(
    page.getByTestId("chips").locator(`[data-term="site:${first?.site}"]`),
  ).toBeVisible();
  await expect(pane.locator("tr[aria-selected=true]")).toHaveCount(1);
  await row.focus();
  await page.keyboard.press("Enter");
  await expect(page.getByTestId("chips").locator("[data-term]")).toHaveCount(0);
});

test("the map shows the state at B with what changed since A", async ({ viewer, page }) => {
  const views = new Views(viewer);
  await views.show(testData(FILE));
  await page.keyboard.press("4");
  const map = views.pane("Map");
  const color = map.getByRole("group", { name: "Color of the map" });
  await expect(color.getByRole("button", { name: "A to B" })).toBeDisabled();
  for (const [from, to] of [
    [600, 2500],
    [3843, 6000],
  ] as const) {
    await views.setState({ from, to });
    await color.getByRole("button", { name: "A to B" }).click();
    const wanted = changesOf(FILE, from, to);
    const legend = map.getByTestId("map-legend");
    for (const name of CHANGES)
      await expect(legend.locator(`[data-key=${name}]`)).toHaveAttribute(
        "data-value",
        String(wanted[name].bytes),
      );
    const { mapped_bytes, released_bytes } = wanted;
    await expect(legend.locator("[data-key=mapped]")).toHaveAttribute(
      "data-value",
      String(mapped_bytes),
    );
    await expect(legend.locator("[data-key=released]")).toHaveAttribute(
      "data-value",
      String(released_bytes),
    );
    await expect(map.getByTestId("map-text")).toContainText(
      `After #${to.toLocaleString("en-US")}: `,
    );
  }
  await expect.poll(() => page.url()).toContain("mapColor=change");
  await test.step("memory that was released is part of the map", async () => {
    const lines = async () => (await map.getByTestId("map-group").all()).length;
    const before = await lines();
    // Backwards, everything since the start was released.
    await views.setState({ from: 6000, to: -1 });
    await expect(map.getByTestId("map-text")).toContainText("Before the window: 0 segments");
    await expect.poll(lines).toBe(before);
    await expect(map.getByTestId("map-legend").locator("[data-key=released]")).toHaveAttribute(
      "data-value",
      String(changesOf(FILE, -1, 6000).mapped_bytes),
    );
  });
  await color.getByRole("button", { name: "blocks" }).click();
  await expect(map.getByTestId("map-legend")).toHaveCount(0);
});
