// The map: the segments at the cursor to scale, with the numbers of `vramscope segments`.

import { cli } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";
import { Views } from "../lib/views.js";

const FILE = "recorded/t26/gpt_small.pickle.gz";
/** An event after which few blocks keep several segments. */
const EVENT = 1373;

const columns = ["reserved", "active", "cached", "largest free piece"];

test("groups and pins are those of the program, at every cursor", async ({ viewer, page }) => {
  const views = new Views(viewer);
  await views.show(testData(FILE));
  await views.cursor(EVENT);
  await page.keyboard.press("4");
  const map = views.pane("Map");
  await expect(map).toHaveAttribute("data-place", "main");

  const shows = async (event: number) => {
    const { free, pins, segments } = cli("segments", FILE, "--at", String(event));
    await expect(map.getByTestId("map-text")).toContainText(
      `After #${event.toLocaleString("en-US")}: ${segments.length} segments`,
    );
    const groups = await map
      .getByTestId("map-group")
      .evaluateAll(
        (heads, names) =>
          heads.map((head) =>
            names.map((name) =>
              Number(head.querySelector(`[data-column="${name}"]`)?.getAttribute("data-value")),
            ),
          ),
        columns,
      );
    expect(groups.toSorted()).toEqual(
      free.map((row) => [row.reserved, row.active, row.free, row.largest_free]).toSorted(),
    );
    const rows = map.getByTestId("map-pins").getByRole("button");
    await expect(rows).toHaveCount(pins.length);
    for (const [index, { kept }] of pins.entries())
      await expect(rows.nth(index)).toHaveAttribute("data-value", String(kept));
    return pins;
  };

  const pins = await shows(EVENT);
  expect(pins.length).toBeGreaterThan(1);
  await test.step("it steps and plays", async () => {
    await page.keyboard.press(".");
    await shows(EVENT + 1);
    await page.keyboard.press(",");
    await shows(EVENT);
    const play = map.getByRole("button", { name: "Play" });
    await play.click();
    await expect(map.getByTestId("map-text")).not.toContainText("#1,373:");
    await map.getByRole("button", { name: "Pause" }).click();
    await expect(play).toHaveAttribute("aria-pressed", "false");
    await views.cursor(EVENT);
    await shows(EVENT);
  });
  await test.step("a pin chooses its block, and is marked on the map", async () => {
    await expect(map.locator(".map-pin")).toHaveCount(pins.length);
    await map.getByTestId("map-pins").getByRole("button").nth(1).click();
    const address = BigInt(pins[1]?.largest_block ?? 0).toString(16);
    await expect(viewer.details.locator("[data-reference]")).toHaveAttribute(
      "data-reference",
      new RegExp(`:0x${address}@`),
    );
  });
  await test.step("a block under the pointer has a tooltip, and a click selects it", async () => {
    await page.keyboard.press("Escape");
    // A parameter at the start of the first small segment, below the heading of its group.
    const head = await map.getByTestId("map-group").last().boundingBox();
    if (!head) throw new Error("a group has a heading");
    const at = { x: head.x + 4, y: head.y + head.height + 12 };
    await page.mouse.move(at.x, at.y);
    await page.mouse.move(at.x + 1, at.y);
    const tip = map.getByTestId("tooltip").locator("[data-value]");
    await expect(tip).toBeVisible();
    const bytes = await tip.getAttribute("data-value");
    await page.mouse.click(at.x + 1, at.y);
    await expect(viewer.details.locator("h2")).toHaveAttribute("data-value", bytes ?? "");
  });
});

test("the link keeps the map, and the palette opens it", async ({ viewer, page }) => {
  const views = new Views(viewer);
  await views.show(testData(FILE));
  await page.keyboard.press(">");
  await page.getByRole("combobox", { name: "Command" }).fill("allocator at the cursor");
  await page.keyboard.press("Enter");
  await expect(views.pane("Map")).toHaveAttribute("data-place", "main");
  await expect.poll(() => page.url()).toContain("view=map");
});

test("captures of graphs are those of the program", async ({ viewer, page }) => {
  const file = "serving/engine_own_pools.pickle.gz";
  const views = new Views(viewer);
  await views.show(testData(file));
  await page.keyboard.press("4");
  const { captures, sums } = cli("peak", file, "--by", "pool").ledger;
  const graphs = page.getByTestId("graphs");
  const [peak] = sums;
  if (!peak) throw new Error("expected the sum at the peak");
  const { weights, caches, graphs: pools, workspaces, activations, other, free } = peak;
  const parts = [weights, caches, pools, workspaces, activations, other, free];
  const uses = () =>
    graphs
      .getByRole("listitem")
      .evaluateAll((all) => all.map((one) => Number(one.getAttribute("data-value"))));
  await expect.poll(uses).toEqual(parts.filter((bytes) => bytes > 0));
  await graphs.locator("summary").click();
  const rows = await graphs
    .locator("tbody tr")
    .evaluateAll((all) =>
      all.map((row) =>
        [...row.querySelectorAll("td[data-value]")].map((cell) =>
          Number(cell.getAttribute("data-value")),
        ),
      ),
    );
  expect(rows).toEqual(captures.map((one) => [one.added, one.reused, one.kept]));
  await graphs.locator("tbody button").nth(1).click();
  await expect(page.getByTestId("place-timeline")).toBeVisible();
});
