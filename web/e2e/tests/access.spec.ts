// Accessibility: violations that axe finds, the Tab key, and keys that replace the mouse.

import type { Page } from "@playwright/test";
import { expectNoBarrier, THEMES } from "../lib/barriers.js";
import { blocksOf, deviceOf, referenceOf } from "../lib/cli.js";
import { renamed, testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";
import { answering, expectFocusSeen, expectPlace, flameOfBoth, select, work } from "../lib/work.js";

const REAL = testData("recorded/t26/gpt_small.pickle.gz");
const GROWS = renamed("recorded/ranks_fsdp/rank3_memory_snapshot.pickle.gz", "rank3.pickle.gz");

const SKEWED = "findings/ranks_fsdp2_skew/RANK_memory_snapshot.pickle.gz";

/** Every view, and every sheet below the timeline. */
const SHOWN = [
  ...(["summary", "segments", "flame", "compare", "map", "modules", "source"] as const).map(
    (view) => [view, "none"] as const,
  ),
  ...(["blocks", "events", "steps", "ab", "peak"] as const).map(
    (sheet) => ["timeline", sheet] as const,
  ),
  ["ranks", "none"],
  ["matrix", "none"],
] as const;

test("no serious barrier on the landing page and in every view", async ({ viewer, page }) => {
  // Twenty-four runs of axe.
  test.setTimeout(240_000);
  const expectNone = async (what: string, which: "any" | "serious" = "serious") => {
    for (const theme of THEMES) {
      await page.emulateMedia({ colorScheme: theme });
      await expectNoBarrier(page, theme, what, which);
    }
  };
  await expectNone("landing", "any");
  await viewer.open([renamed("recorded/t26/gpt_small.pickle.gz", "rank0.pickle"), GROWS]);
  await viewer.expectRow("rank0.pickle", "ready");
  await viewer.expectRow("rank3.pickle.gz", "ready");
  await answering(page);
  const [block] = blocksOf(REAL);
  if (!block) throw new Error("no block");
  await viewer.row("rank0.pickle").click();
  await answering(page);
  await select(viewer, referenceOf(block));
  await page.keyboard.press("p");
  await expect(page.getByTestId("moment")).toBeVisible();
  for (const [view, sheet] of SHOWN) {
    await page.evaluate((state) => window.vramscope.setState(state), { view, sheet });
    await expectPlace(page, view, "main");
    if (sheet !== "none") await expectPlace(page, sheet, "sheet");
    await expect(page.locator("[data-place=sheet]")).toHaveCount(sheet === "none" ? 0 : 1);
    await expect(
      page.locator(".pane:not([data-place=none])", { hasText: /loading|looking for/i }),
    ).toHaveCount(0);
    await expectNone(`${view} over ${sheet}`);
    if (view === "compare") await expectNone(await flameOfBoth(page));
  }
});

test("labels on the categories of the summary's bar can be read", async ({ viewer, page }) => {
  await viewer.open([0, 1].map((rank) => testData(SKEWED.replace("RANK", `rank${rank}`))));
  await answering(page);
  await page.evaluate(() => window.vramscope.setState({ view: "summary", sheet: "none" }));
  await expect(page.locator('.memory-part[data-part="input"]')).toBeVisible();
  for (const theme of THEMES) {
    await page.emulateMedia({ colorScheme: theme });
    await expectNoBarrier(page, theme, "summary", "serious");
  }
});

test("no serious barrier in the key sheet and in the palette", async ({ viewer, page }) => {
  await work(viewer, REAL);
  for (const theme of THEMES) {
    await page.emulateMedia({ colorScheme: theme });
    for (const key of ["?", ">"]) {
      await expect(async () => {
        await page.keyboard.press(key);
        await expect(page.getByRole("dialog")).toBeVisible({ timeout: 200 });
      }).toPass();
      await expectNoBarrier(page, theme, key);
      await page.keyboard.press("Escape");
      await expect(page.getByRole("dialog")).toHaveCount(0);
    }
  }
});

/** The focused element, through shadow roots; null for the page itself. */
const focused = (page: Page) =>
  page.evaluate(() => {
    let at = document.activeElement;
    while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
    if (at === null || at === document.body || at.shadowRoot) return null;
    const { outlineStyle, outlineWidth, boxShadow, backgroundImage } = getComputedStyle(at);
    const around = at.parentElement && getComputedStyle(at.parentElement);
    const ring = (style: string, width: string) => style !== "none" && Number.parseFloat(width) > 0;
    const box = at.getBoundingClientRect();
    return {
      name: [
        at.getAttribute("role") ?? at.tagName.toLowerCase(),
        at.getAttribute("aria-label") ?? at.textContent?.trim().slice(0, 40) ?? "",
      ].join(" "),
      seen:
        ring(outlineStyle, outlineWidth) ||
        boxShadow !== "none" ||
        backgroundImage !== "none" ||
        (around !== null &&
          (ring(around.outlineStyle, around.outlineWidth) || around.boxShadow !== "none")),
      inside:
        box.width > 0 &&
        box.right > 0 &&
        box.bottom > 0 &&
        box.left < innerWidth &&
        box.top < innerHeight,
    };
  });

test("Tab goes through the first page from top to bottom, and the focus is visible", async ({
  viewer: _,
  page,
}) => {
  await page.getByRole("button", { name: /^Theme/ }).focus();
  const stops: string[] = [];
  for (let i = 0; i < 10; i += 1) {
    await page.keyboard.press("Tab");
    const at = await focused(page);
    expect(at, at?.name).toMatchObject({ seen: true, inside: true });
    stops.push(at?.name.trim() ?? "");
  }
  expect(stops).toEqual([
    "button Keys and gestures",
    "input Open files",
    "input Open folder",
    "button Try an out-of-memory example",
    "textarea",
    "a How to record one",
    "button Copy the command",
    "button Copy the lines of Python",
    "button Try the sample run",
    "a Gallery of ten cases",
  ]);
});

test("Tab reaches every control, and the focus is visible", async ({ viewer, page }) => {
  await viewer.open([
    renamed("scenarios/f01.pickle", "rank0.pickle"),
    renamed("scenarios/f02.pickle", "rank1.pickle"),
  ]);
  await viewer.expectRow("rank1.pickle", "ready");
  await answering(page);
  await page.evaluate(() => window.vramscope.setState({ sheet: "blocks" }));
  await expect(page.getByTestId("blocks-table").locator("[data-key]").first()).toBeVisible();
  const stops: string[] = [];
  // The browser may start anywhere on the page, so count the stops between two ends of the page.
  let ends = 0;
  for (let i = 0; i < 160 && ends < 2; i += 1) {
    await page.keyboard.press("Tab");
    const at = await focused(page);
    if (at === null && (ends > 0 ? stops.length > 0 : i > 0)) ends += 1;
    if (at === null || ends === 0) continue;
    expect(at, at.name).toMatchObject({ seen: true, inside: true });
    stops.push(at.name);
  }
  expect(ends).toBe(2);
  expect(stops.length).toBeLessThan(80);
  for (const stop of [
    /^option .*rank [01]/,
    /button time/,
    /^input Search/,
    /^button Open files or a folder/,
    /^button Theme/,
    /^button Keys/,
    /^tab 2 ?Timeline/,
    /^canvas Memory timeline/,
    /^select/,
    /^button reserved/,
    /^button Share/,
    /^separator Height of the sheet/,
    /^tab Blocks/,
    /^button requested/,
    /^rowgroup Blocks/,
    /^button Close the sheet/,
  ])
    expect(stops.join("\n")).toMatch(new RegExp(stop.source, "m"));
});

test("keys replace the mouse: tabs, splitter and buttons", async ({ viewer, page }) => {
  await work(viewer, REAL);
  await test.step("arrow keys move along the tabs, and Enter opens one", async () => {
    const tabs = page.getByRole("tablist", { name: "Places" });
    await tabs.getByRole("tab", { name: "Timeline" }).focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    await expect(tabs.getByRole("tab", { name: "Allocator" })).toBeFocused();
    await expectFocusSeen(tabs.getByRole("tab", { name: "Allocator" }));
    await page.keyboard.press("Enter");
    await expectPlace(page, "map", "main");
    await page.keyboard.press("q");
    const sheet = page.getByRole("tablist", { name: "Sheet" });
    await sheet.getByRole("tab", { selected: true }).focus();
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("Space");
    await expect(sheet.getByRole("tab", { selected: true })).toHaveText("Steps");
  });
  await test.step("Tab or arrow keys reach every button", async () => {
    await page.evaluate(() => window.vramscope.setState({ view: "segments" }));
    await expect(page.getByTestId("segments-canvas")).toBeVisible();
    await expect(page.locator(".segment-label").first()).toBeAttached();
    // Tab skips a button only in a group whose buttons the arrow keys reach.
    const left = await page.evaluate(() => {
      const root = document.querySelector("vramscope-viewer")?.shadowRoot;
      const all = [
        ...(root?.querySelectorAll<HTMLElement>(
          "button[tabindex='-1'], [role=button][tabindex='-1']",
        ) ?? []),
      ];
      const alone = all.filter(
        (button) =>
          button.closest("[role=tablist], [role=listbox], [role=toolbar], [role=menu]") === null,
      );
      return [...new Set(alone.map(({ className }) => className))];
    });
    expect(left).toEqual([]);
  });
  await test.step("arrow keys move the splitter", async () => {
    await page.keyboard.press("2");
    await page.evaluate(() => window.vramscope.setState({ sheet: "blocks" }));
    await expectPlace(page, "blocks", "sheet");
    const splitter = page.getByRole("separator", { name: "Height of the sheet" });
    const height = async () => (await page.getByTestId("view-blocks").boundingBox())?.height ?? 0;
    const [value, before] = [Number(await splitter.getAttribute("aria-valuenow")), await height()];
    await splitter.focus();
    for (let i = 0; i < 3; i += 1) await page.keyboard.press("ArrowUp");
    await expect(splitter).toHaveAttribute("aria-valuenow", String(value + 12));
    await expect.poll(height).toBeGreaterThan(before + 40);
    const high = await height();
    await page.keyboard.press("ArrowDown");
    await expect.poll(height).toBeLessThan(high);
    for (let i = 0; i < 40; i += 1) await page.keyboard.press("ArrowDown");
    await expect(splitter).toHaveAttribute(
      "aria-valuenow",
      (await splitter.getAttribute("aria-valuemin")) ?? "none",
    );
  });
  await test.step("a screen reader hears the event of the peak", async () => {
    // Collect every status, because a later one may replace the peak at once.
    await page.evaluate(() => {
      const heard: string[] = [];
      Object.assign(window, { heard });
      const root = document.querySelector("vramscope-viewer")?.shadowRoot;
      if (!root) throw new Error("the viewer is missing");
      new MutationObserver(() => {
        heard.push(
          ...[...root.querySelectorAll("[role=status]")].map((status) => status.textContent ?? ""),
        );
      }).observe(root, { childList: true, characterData: true, subtree: true });
    });
    await page.keyboard.press("p");
    const peak = `#${deviceOf(REAL).requested_bytes.peak_event.toLocaleString("en")}`;
    const heard = () => page.evaluate(() => (Reflect.get(window, "heard") as string[]).join("\n"));
    await expect.poll(heard).toContain(peak);
  });
});
