// Keys for views, the search and the history of views.

import { blocksOf, deviceOf, referenceOf } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { middling } from "../lib/keys.js";
import { expect, test } from "../lib/test.js";
import {
  expectCursor,
  expectPlace,
  marks,
  pane,
  rangeOf,
  restedRange,
  select,
  selectedOf,
  work,
} from "../lib/work.js";

const REAL = testData("recorded/t26/gpt_small.pickle.gz");

// A small canvas, because Mesa draws it in software.
test.use({ viewport: { width: 1100, height: 800 } });

test("Z restores the previous view, Shift+Z the next one, and both keep markers", async ({
  viewer,
  page,
}) => {
  await work(viewer, REAL);
  // A view enters the history after half a second without a change. Nothing on the page shows that.
  const rest = () => page.waitForTimeout(650);
  await test.step("range and view", async () => {
    const whole = await restedRange(viewer);
    await rest();
    await page.evaluate(() => window.vramscope.setState({ x0: 2000, x1: 3000 }));
    await expect.poll(async () => (await rangeOf(viewer)).x0).toBe(2000);
    await rest();
    await page.keyboard.press("4");
    await expectPlace(page, "flame", "main");
    await page.keyboard.press("z");
    await expectPlace(page, "timeline", "main");
    expect((await restedRange(viewer)).x0).toBeCloseTo(2000, 0);
    await page.keyboard.press("z");
    await expect.poll(() => rangeOf(viewer)).toEqual(whole);
    await page.keyboard.press("Shift+Z");
    await expect.poll(async () => (await rangeOf(viewer)).x0).toBeCloseTo(2000, 0);
    await page.keyboard.press("Shift+Z");
    await expectPlace(page, "flame", "main");
  });
  await test.step("search, color, cursor and selection", async () => {
    await page.keyboard.press("2");
    await rest();
    const before = await viewer.state();
    await page.getByTestId("color-by").selectOption("stack");
    await page.getByTestId("search").fill("optimizer");
    await expect(page.locator(".found")).toHaveAttribute("data-value", /^\d+$/);
    await page.getByTestId("search").blur();
    await select(viewer, referenceOf(middling(blocksOf(REAL), deviceOf(REAL).events)));
    await page.keyboard.press("p");
    await expectCursor(page, deviceOf(REAL).requested_bytes.peak_event);
    // On a slow machine intermediate states enter the history too.
    await expect(async () => {
      await page.keyboard.press("z");
      await expect.poll(() => viewer.state(), { timeout: 1000 }).toEqual(before);
    }).toPass();
  });
  await test.step("markers stay", async () => {
    await page.keyboard.press("0");
    await restedRange(viewer);
    await rest();
    await page.keyboard.press("p");
    await expectCursor(page, deviceOf(REAL).requested_bytes.peak_event);
    await page.keyboard.press("m");
    await expect(marks(page, "marker")).toHaveCount(1);
    await page.keyboard.press("4");
    await expectPlace(page, "flame", "main");
    await page.keyboard.press("z");
    await expectPlace(page, "timeline", "main");
    await expect(marks(page, "marker")).toHaveCount(1);
  });
});

test("/ and Ctrl+F focus the search, and N selects the blocks that it finds", async ({
  viewer,
  page,
}) => {
  await work(viewer, REAL);
  const search = page.getByTestId("search");
  const before = await viewer.state();
  for (const way of ["/", "Control+f"]) {
    await viewer.canvas.focus();
    await page.keyboard.press(way);
    await expect(search).toBeFocused();
    const word = "wsadpfxyqmihvbzon0?[].,12";
    await page.keyboard.type(word);
    await expect(search).toHaveValue(word);
    await expect.poll(async () => (await viewer.state()).find).toBe(word);
    await expect(page.getByRole("dialog")).toHaveCount(0);
    await page.keyboard.press("Escape");
    await expect(search).toHaveValue("");
    await expect.poll(() => viewer.state()).toEqual(before);
    await expect(search).not.toBeFocused();
  }
  await test.step("N selects the next block that the search finds, the largest first", async () => {
    const word = "dropout";
    const found = blocksOf(REAL).filter(({ frames }) =>
      frames.some(({ name, file }) => name.includes(word) || file.includes(word)),
    );
    const all = found.map((block) => referenceOf(block));
    const sizes = new Map(found.map((block) => [referenceOf(block), block.bytes]));
    expect(all.length).toBeGreaterThan(3);

    await search.fill(word);
    await expect(page.locator(".found")).toHaveAttribute("data-value", String(all.length));
    const seen: string[] = [];
    const next = async (press: () => Promise<void>) => {
      const before = await selectedOf(viewer);
      await press();
      await expect.poll(() => selectedOf(viewer)).not.toBe(before);
      return (await selectedOf(viewer)) ?? "";
    };
    // Enter makes a filter of the word. In the empty box, it steps as N does.
    await search.press("Enter");
    await expect(search).toHaveValue("");
    await expect.poll(async () => (await viewer.state()).filter).toBe(word);
    const place = page.getByTestId("chips-found");
    for (let i = 0; i < 3; i += 1) seen.push(await next(() => search.press("Enter")));
    await expect(place).toContainText(`3 of ${all.length}`);
    expect(await next(() => search.press("Shift+Enter"))).toBe(seen[1]);
    await viewer.canvas.focus();
    expect(await next(() => page.keyboard.press("n"))).toBe(seen[2]);
    seen.push(await next(() => page.keyboard.press("n")));
    await expect(place).toContainText(`4 of ${all.length}`);
    expect(await next(() => page.keyboard.press("Shift+N"))).toBe(seen[2]);
    expect(new Set(seen).size).toBe(seen.length);
    const steps = seen.map((reference) => sizes.get(reference) ?? -1);
    const largest = [...sizes.values()].toSorted((a, b) => b - a);
    expect(steps).toEqual(largest.slice(0, steps.length));
  });
});

test("number keys choose the view, and Q opens and closes the drawer", async ({ viewer, page }) => {
  await work(viewer, REAL);
  await test.step("Q opens and closes the drawer", async () => {
    await expectPlace(page, "segments", "drawer");
    await page.keyboard.press("q");
    await expectPlace(page, "segments", "none");
    expect((await viewer.state()).drawer).toBe("none");
    await page.keyboard.press("q");
    await expectPlace(page, "segments", "drawer");
    await page.keyboard.press("3");
    await expectPlace(page, "segments", "main");
    await page.keyboard.press("q");
    await expect.poll(async () => (await viewer.state()).drawer).not.toBe("none");
    await page.keyboard.press("q");
    await expect.poll(async () => (await viewer.state()).drawer).toBe("none");
  });
  await test.step("number keys choose the view in the center", async () => {
    for (const [index, view] of [
      "overview",
      "timeline",
      "segments",
      "flame",
      "anomalies",
      "compare",
    ].entries()) {
      await page.keyboard.press(String(index + 1));
      await expectPlace(page, view, "main");
      await expect(pane(page, view)).toBeVisible();
      await expect(
        page.getByRole("tablist", { name: "Views" }).getByRole("tab", { selected: true }),
      ).toHaveText(new RegExp(`^${view}`, "i"));
      expect((await viewer.state()).view).toBe(view);
    }
  });
});
