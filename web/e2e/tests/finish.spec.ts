// Details of the page that make it calm: the drawer, selects, tooltips, menus, names, the hint.

import { blocksOf, cli, referenceOf } from "../lib/cli.js";
import { renamed, testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";
import { Views } from "../lib/views.js";
import {
  answering,
  drag,
  expectPlace,
  hoverAt,
  pane,
  restedRange,
  select,
  under,
  work,
} from "../lib/work.js";

const REAL = "recorded/t26/gpt_small.pickle.gz";
const LEAK = "recorded/gpt_leak.pickle.gz";

test("a select gives the keyboard back, and keys still step through it", async ({
  viewer,
  page,
}) => {
  await work(viewer, testData(REAL));
  const color = page.getByTestId("color-by");
  await color.selectOption("size");
  await expect(color).not.toBeFocused();
  const before = await restedRange(viewer);
  await page.keyboard.press("w");
  await expect.poll(async () => (await viewer.state()).x0).not.toBe(before.x0);
  await expect(color).toHaveValue("size");
  await page.keyboard.press("0");
  // Someone who steps through the choices with arrow keys is not thrown out of the list.
  await color.focus();
  await page.keyboard.press("ArrowDown");
  await expect(color).not.toHaveValue("size");
  await expect(color).toBeFocused();
});

test("after a zoom the tooltip is about the block under the pointer", async ({ viewer, page }) => {
  await work(viewer, testData(REAL));
  await hoverAt(viewer, 0.5, 0.9);
  await expect(viewer.tooltip).toBeVisible();
  const box = await viewer.plot.box();
  const [width, height] = [box.width, box.height];
  await drag(viewer, [width * 0.35, height * 0.45], [width * 0.75, height * 0.85], "Shift");
  await restedRange(viewer);
  await viewer.plot.drawn();
  const at = { x: width * 0.75, y: height * 0.85 };
  const block = await under(page, at.x, at.y);
  if (block === null) await expect(viewer.tooltip).toHaveCount(0);
  else {
    await expect(viewer.tooltip.locator("[data-value]")).toHaveAttribute(
      "data-value",
      block.bytes.raw,
    );
  }
  await test.step("keys that move the view pick again", async () => {
    await hoverAt(viewer, 0.5, 0.9);
    await page.keyboard.press("0");
    await restedRange(viewer);
    await viewer.plot.drawn();
    const { x, y } = await hoverAt(viewer, 0.5, 0.9);
    const now = await under(page, x, y);
    await expect(viewer.tooltip.locator("[data-value]")).toHaveAttribute(
      "data-value",
      now?.bytes.raw ?? "",
    );
  });
  await test.step("it is gone when another view takes its place", async () => {
    await hoverAt(viewer, 0.5, 0.9);
    await expect(viewer.tooltip).toBeVisible();
    await page.keyboard.press("4");
    await expectPlace(page, "map", "main");
    const tooltip = pane(page, "timeline").getByTestId("tooltip");
    await expect(tooltip).toHaveCount(0);
    await page.keyboard.press("2");
    await expectPlace(page, "timeline", "main");
    await expect(tooltip).toHaveCount(0);
  });
});

test("one menu opens files, and a switch chooses the axis", async ({ viewer, page }) => {
  await work(viewer, testData(REAL));
  const menu = page.getByRole("button", { name: "Open files or a folder" });
  await expect(page.getByTestId("open-files")).toBeHidden();
  await menu.click();
  for (const name of ["Open files…", "Open a folder…", "Add files to this run…"])
    await expect(page.locator(".menu-item", { hasText: name })).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(page.locator(".menu-item:visible")).toHaveCount(0);
  await expect(menu).toBeFocused();
  await menu.click();
  await page.mouse.click(500, 400);
  await expect(page.locator(".menu-item:visible")).toHaveCount(0);
  const axis = page.getByRole("group", { name: "X axis" });
  await expect(axis).toHaveText(/events\s*time/);
  await axis.getByRole("button", { name: "time" }).click();
  await expect.poll(async () => (await viewer.state()).axis).toBe("time");
});

test("the flag of the cursor is in the band of the axis, and never cut", async ({
  viewer,
  page,
}) => {
  const views = new Views(viewer);
  await work(viewer, testData(REAL));
  const [first, last] = [0, cli("summary", REAL).files[0]?.devices[0]?.events ?? 0];
  for (const event of [first, Math.floor(last / 2), last - 1]) {
    await views.cursor(event);
    const flag = pane(page, "timeline").locator(".mark[data-kind=cursor] .mark-text");
    await expect(flag).toBeVisible();
    await expect
      .poll(async () => {
        const { bottom } = await viewer.plot.scale();
        const [place, box] = [await flag.boundingBox(), await viewer.plot.box()];
        if (!place) return "no flag";
        const inBand = place.y >= box.y + bottom && place.y + place.height <= box.y + box.height;
        const whole = place.x >= box.x - 0.5 && place.x + place.width <= box.x + box.width + 0.5;
        return { inBand, whole };
      })
      .toEqual({ inBand: true, whole: true });
  }
});

test("a call stack shows the user's frames, and one switch shows all", async ({ viewer, page }) => {
  const file = "recorded/t29/gpt_small_all.pickle.gz";
  await work(viewer, testData(file));
  const block = blocksOf(file).find(
    ({ frames, of_free }) =>
      !of_free && frames.length > 20 && frames.some(({ file: f }) => f.endsWith("gpt.py")),
  );
  if (!block) throw new Error("no block with a long stack");
  await select(viewer, referenceOf(block));
  const frames = viewer.details.locator(".frame");
  const all = viewer.details.getByTestId("all-frames");
  await expect(all).toHaveText(/^\s*\d+ (native|framework) frames?$/);
  await expect(viewer.details.locator(".frame[data-framework=true]")).toHaveCount(0);
  const own = await frames.count();
  expect(own).toBeGreaterThan(0);
  await all.click();
  await expect(frames).toHaveCount(block.frames.length);
  expect(own).toBeLessThan(block.frames.length);
  const names = await frames.locator(".frame-name").allTextContents();
  expect(names.filter((name) => name.startsWith("at::_ops::"))).toEqual([]);
  expect(names.filter((name) => /^aten::\w+$/.test(name)).length).toBeGreaterThan(0);
  // The whole name is in the tooltip.
  await expect(viewer.details.locator(".frame[title^='at::_ops::']").first()).toBeAttached();
  // The switch holds for the next block.
  const other = blocksOf(file).findLast(
    ({ frames: f, of_free }) => !of_free && f.length > 20 && f.length !== block.frames.length,
  );
  if (!other) throw new Error("no other block");
  await select(viewer, referenceOf(other));
  await expect(frames).toHaveCount(other.frames.length);
  await viewer.details.getByTestId("all-frames").click();
  await expect(viewer.details.locator(".frame[data-framework=true]")).toHaveCount(0);
  expect(await page.locator(".fold").count()).toBe(0);
});

test("addresses are as PyTorch prints them, and sizes near 1 GiB are in GiB", async ({
  viewer,
}) => {
  await work(viewer, testData(LEAK));
  const reused = blocksOf(LEAK).find(({ reuse, preexisting }) => reuse === 1 && !preexisting);
  if (!reused) throw new Error("no block at a reused address");
  await select(viewer, referenceOf(reused));
  await expect(viewer.fact("address")).toHaveText(`${reused.address} (2nd block here)`);
  const end = cli("summary", LEAK).files[0]?.devices[0]?.requested_bytes.end ?? 0;
  expect(end).toBeGreaterThan(0.95 * 2 ** 30);
  expect(end).toBeLessThan(2 ** 30);
  await viewer.page.getByRole("button", { name: "Go to" }).click();
  await viewer.page.getByRole("button", { name: "End of the recording" }).click();
  await expect(
    viewer.page.getByTestId("moment").locator(`[data-key=requested_bytes][data-value="${end}"]`),
  ).toHaveText(`${(end / 2 ** 30).toFixed(2)} GiB`);
});

test("a long setting wraps inside of its column", async ({ viewer, page }) => {
  const views = new Views(viewer);
  await page.setViewportSize({ width: 1000, height: 700 });
  await work(viewer, testData("recorded/late_max_split_26.pickle.gz"));
  const settings = await views.main("Summary");
  await settings.getByText("Details of the recording").click();
  const wide = await settings.evaluate((view) => {
    const root = view.querySelector(".setting-list");
    const value = root?.querySelector<HTMLElement>(".setting-value");
    if (!root || !value) throw new Error("no settings");
    value.textContent = "expandable_segments:True,garbage_collection_threshold:0.8,".repeat(4);
    const column = value.closest(".setting")?.getBoundingClientRect();
    return value.getBoundingClientRect().right - (column?.right ?? 0);
  });
  expect(wide).toBeLessThanOrEqual(0.5);
});

test("the landing page has an example, code to copy, and a hint at the first run", async ({
  viewer,
  page,
  context,
}) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  for (const [label, copied] of [
    ["Copy the command", "vramscope record -o runs/42 train.py"],
    ["Copy the lines of Python", "torch.cuda.memory._record_memory_history()"],
  ] as const) {
    await page.getByRole("button", { name: label }).click();
    await expect(page.getByTestId("copy-code").filter({ hasText: "Copied" }).last()).toBeVisible();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toContain(copied);
  }
  const hint = page.getByTestId("hint");
  const open = async () => {
    await page.getByTestId("start-oom").click();
    await expect(viewer.rows).toHaveCount(1);
    await answering(page);
  };
  await open();
  await expectPlace(page, "summary", "main");
  const file = "recorded/t26/oom_observer.pickle.gz";
  const peak = cli("summary", file).files[0]?.devices[0]?.requested_bytes.peak;
  await expect(viewer.rows.first().locator("[data-value]").first()).toHaveAttribute(
    "data-value",
    String(peak),
  );
  // The example has changes that fit.
  await expect(page.getByTestId("lever").first()).toBeVisible();
  await page.keyboard.press("2");
  await expect(hint).toContainText("Wheel zooms, drag pans, ? for keys");
  await hint.getByRole("button", { name: "Hide this line" }).click();
  // Dismissed once, it stays away.
  await page.reload();
  await page.waitForFunction(() => "vramscope" in window);
  await open();
  await page.keyboard.press("2");
  await viewer.plot.drawn();
  await expect(hint).toHaveCount(0);
});

test("a long name keeps its end", async ({ viewer, page }) => {
  await page.setViewportSize({ width: 1000, height: 700 });
  const name = "a-very-long-name-of-an-experiment-that-does-not-fit-snapshot-17.pickle";
  await viewer.open([renamed(REAL, name), renamed(LEAK, "b.pickle")]);
  await viewer.expectRow(name, "ready");
  const label = viewer.row(name).locator(".rank-label");
  // The names share their ending, which is cut.
  await expect(label).toHaveText(name.replace(".pickle", ""));
  const end = label.locator(".middle-cut > :last-child");
  const [row, box] = [await viewer.row(name).boundingBox(), await end.boundingBox()];
  expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThanOrEqual((row?.x ?? 0) + (row?.width ?? 0));
  expect(await end.evaluate((of) => of.scrollWidth - of.clientWidth)).toBeLessThanOrEqual(0);
});
