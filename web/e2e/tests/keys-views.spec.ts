// Keys for the views, the search and the way back.

import { blocksOf, deviceOf, referenceOf } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { keys, middling } from "../lib/keys.js";
import { expect, test } from "../lib/test.js";
import {
  expectCursor,
  expectPlace,
  marks,
  pane,
  rangeOf,
  restedRange,
  select,
  still,
  work,
} from "../lib/work.js";

const REAL = testData("recorded/t26/gpt_small.pickle.gz");

// Small, since it is drawn in software.
test.use({ viewport: { width: 1100, height: 700 } });

test(
  "Z goes back through what was looked at, Shift+Z forward",
  keys("Z", "Shift Z"),
  async ({ viewer, page }) => {
    await work(viewer, REAL);
    // A view is remembered once it has rested for half a second, which nothing on the page tells.
    const rest = () => page.waitForTimeout(650);
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
  },
);

test("Z takes back a search, a color, a cursor and a selection", async ({ viewer, page }) => {
  await work(viewer, REAL);
  await page.waitForTimeout(650);
  const before = await viewer.state();
  await page.getByTestId("color-by").selectOption("category");
  await page.getByTestId("search").fill("optimizer");
  await expect(page.locator(".found")).toHaveAttribute("data-value", /^\d+$/);
  await page.getByTestId("search").blur();
  await select(viewer, referenceOf(middling(blocksOf(REAL), deviceOf(REAL).events)));
  await page.keyboard.press("p");
  await expectCursor(page, deviceOf(REAL).requested_bytes.peak_event);
  // On a slow machine some of the steps to here have rested long enough to be remembered by
  // themselves.
  await expect(async () => {
    await page.keyboard.press("z");
    await expect.poll(() => viewer.state(), { timeout: 1000 }).toEqual(before);
  }).toPass();
});

test("Z keeps the markers and the rulers", async ({ viewer, page }) => {
  await work(viewer, REAL);
  await page.waitForTimeout(650);
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

test(
  "the numbers give each view the center",
  keys("1", "2", "3", "4", "5", "6"),
  async ({ viewer, page }) => {
    await work(viewer, REAL);
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
  },
);

test(
  "the slash and Ctrl+F go to the search, where letters are only letters",
  keys("/"),
  async ({ viewer, page }) => {
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
  },
);

test(
  "Q shuts the drawer and opens it again, whatever has the center",
  keys("Q"),
  async ({ viewer, page }) => {
    await work(viewer, REAL);
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
  },
);

test(
  "H hides frames of the framework in stacks and in the flame graph",
  keys("H"),
  async ({ viewer, page }) => {
    await work(viewer, REAL);
    const block = middling(blocksOf(REAL), deviceOf(REAL).events);
    await select(viewer, referenceOf(block));
    await page.keyboard.press("4");
    const button = pane(page, "flame").getByRole("button", { name: "hide framework" });
    await expect(pane(page, "flame").locator(".flame-name").first()).toBeVisible();
    const names = () => pane(page, "flame").locator(".flame-name").allTextContents();
    // Both tell the same story, before and after.
    for (let i = 0; i < 3; i += 1) {
      const hidden = (await button.getAttribute("aria-pressed")) === "true";
      const folded = viewer.details.getByText(/framework frames/);
      if (hidden) await expect(folded.first()).toBeVisible();
      else await expect(folded).toHaveCount(0);
      const before = await still(names);
      expect(before.some((name) => name.includes("_call_impl"))).toBe(!hidden);
      await page.keyboard.press("h");
      await expect(button).toHaveAttribute("aria-pressed", String(!hidden));
      await expect.poll(names).not.toEqual(before);
    }
  },
);

test(
  "V turns the flame graph over, B goes through its weights",
  keys("V", "B"),
  async ({ viewer, page }) => {
    await work(viewer, REAL);
    await page.keyboard.press("4");
    const flame = pane(page, "flame");
    const names = flame.locator(".flame-name");
    const total = page.getByTestId("flame-total");
    await expect(total).toHaveAttribute("data-value", String(deviceOf(REAL).requested_bytes.peak));
    await expect(names.first()).toBeVisible();
    const outer = await still(() => names.allTextContents());
    await page.keyboard.press("v");
    await expect(flame.getByRole("button", { name: "leaf first" })).toHaveAttribute(
      "aria-pressed",
      "true",
    );
    await expect.poll(() => names.allTextContents()).not.toEqual(outer);
    await page.keyboard.press("v");
    await expect.poll(() => names.allTextContents()).toEqual(outer);
    for (const weight of ["at cursor", "bytes × time", "allocations", "churn", "at peak"]) {
      await page.keyboard.press("b");
      await expect(flame.getByRole("button", { name: weight })).toHaveAttribute(
        "aria-pressed",
        "true",
      );
      await expect(flame.locator("fieldset").first().locator("[aria-pressed=true]")).toHaveCount(1);
      if (weight === "allocations") {
        const allocations = blocksOf(REAL).filter(({ preexisting }) => !preexisting).length;
        await expect(total).toHaveAttribute("data-value", String(allocations));
      }
    }
    await expect(total).toHaveAttribute("data-value", String(deviceOf(REAL).requested_bytes.peak));
  },
);

test(
  "the backslash opens the comparison, with this file pinned (compare.spec has more)",
  keys("\\"),
  async ({ viewer, page }) => {
    await work(viewer, REAL);
    await page.keyboard.press("\\");
    await expectPlace(page, "compare", "main");
  },
);
