// Everybody can use every view: what axe knows of, the Tab key, and keys in place of the mouse.

import type { Page } from "@playwright/test";
import { expectNoBarrier, THEMES } from "../lib/barriers.js";
import { blocksOf, deviceOf, referenceOf } from "../lib/cli.js";
import { renamed, testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";
import { answering, expectFocusSeen, expectPlace, select, still, work } from "../lib/work.js";

const REAL = testData("recorded/t26/gpt_small.pickle.gz");
const GROWS = renamed("recorded/ranks_fsdp/rank3_memory_snapshot.pickle.gz", "rank3.pickle.gz");

/** Every view, some of them in the drawer below another one. */
const PAIRS = [
  ["overview", "blocks"],
  ["timeline", "events"],
  ["segments", "anomalies"],
  ["flame", "settings"],
  ["compare", "none"],
] as const;

for (const theme of THEMES) {
  test(`no serious barrier in any view, ${theme}`, async ({ viewer, page }) => {
    await page.emulateMedia({ colorScheme: theme });
    await expectNoBarrier(page, theme, "landing");
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
    for (const [view, drawer] of PAIRS) {
      await page.evaluate((state) => window.vramscope.setState(state), { view, drawer });
      await expectPlace(page, view, "main");
      if (drawer !== "none") await expectPlace(page, drawer, "drawer");
      await expect(page.locator("[data-place=drawer]")).toHaveCount(drawer === "none" ? 0 : 1);
      await expect(
        page.locator(".pane:not([data-place=none])", { hasText: /loading|looking for/i }),
      ).toHaveCount(0);
      await expectNoBarrier(page, theme, `${view} over ${drawer}`);
    }
  });
}

test("no serious barrier in the sheet and in the palette", async ({ viewer, page }) => {
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

/** What has the focus, however deep, in a few words; null for the page itself. */
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

test("the Tab key goes through everything, and one can see where it is", async ({
  viewer,
  page,
}) => {
  await viewer.open([
    renamed("scenarios/f01.pickle", "rank0.pickle"),
    renamed("scenarios/f02.pickle", "rank1.pickle"),
  ]);
  await viewer.expectRow("rank1.pickle", "ready");
  await answering(page);
  await page.evaluate(() => window.vramscope.setState({ drawer: "blocks" }));
  await expect(page.getByTestId("blocks-table").locator("[data-key]").first()).toBeVisible();
  const stops: string[] = [];
  // Where the browser begins depends on what had the place of the views before, so it goes from the
  // page's end to its end.
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
    /^option .*rank 0/,
    /button time/,
    /^input Search/,
    /^input Open files/,
    /^input Open folder/,
    /^button Details/,
    /^button Theme/,
    /^button Keys/,
    /^tab Timeline/,
    /^canvas Memory timeline/,
    /^select/,
    /^button Lines/,
    /^button SVG/,
    /^separator Height of the drawer/,
    /^tab Blocks/,
    /^button requested/,
    /^rowgroup Blocks/,
    /^button Close the drawer/,
  ])
    expect(stops.join("\n")).toMatch(new RegExp(stop.source, "m"));
});

test("what can be clicked can be reached without a mouse", async ({ viewer, page }) => {
  await work(viewer, REAL);
  await page.keyboard.press("3");
  await expect(page.getByTestId("segments-canvas")).toBeVisible();
  await expect(page.locator(".segment-label").first()).toBeAttached();
  // A button that Tab leaves out is one of several of which another has the focus, and arrow keys
  // go between them.
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

test("arrow keys go along the tabs, Enter opens one", async ({ viewer, page }) => {
  await work(viewer, REAL);
  const tabs = page.getByRole("tablist", { name: "Views" });
  await tabs.getByRole("tab", { name: "Timeline" }).focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await expect(tabs.getByRole("tab", { name: "Flame" })).toBeFocused();
  await expectFocusSeen(tabs.getByRole("tab", { name: "Flame" }));
  await page.keyboard.press("Enter");
  await expectPlace(page, "flame", "main");
  const drawer = page.getByRole("tablist", { name: "Drawer" });
  await drawer.getByRole("tab", { selected: true }).focus();
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("Space");
  await expect(drawer.getByRole("tab", { selected: true })).toHaveText(/settings/i);
});

test("arrow keys move the splitter", async ({ viewer, page }) => {
  await work(viewer, REAL);
  const splitter = page.getByRole("separator", { name: "Height of the drawer" });
  const height = async () => (await page.getByTestId("view-segments").boundingBox())?.height ?? 0;
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

test("arrow keys go through a table, and select what they come to", async ({ viewer, page }) => {
  await work(viewer, REAL);
  await page.evaluate(() => window.vramscope.setState({ drawer: "blocks" }));
  const table = page.getByTestId("blocks-table");
  await expect(table.locator("[data-key]").first()).toBeVisible();
  await table.getByRole("rowgroup").focus();
  const largest = blocksOf(REAL)
    .map(({ bytes }) => bytes)
    .toSorted((a, b) => b - a);
  const current = table.locator(".table-row[aria-selected=true] [data-column=size]");
  for (const place of [0, 1, 2]) {
    await page.keyboard.press("ArrowDown");
    await expect(current).toHaveAttribute("data-value", String(largest[place]));
    await expect(viewer.details.locator("h2[data-value]")).toHaveAttribute(
      "data-value",
      String(largest[place]),
    );
  }
  await page.keyboard.press("ArrowUp");
  await expect(current).toHaveAttribute("data-value", String(largest[1]));
  for (let i = 0; i < 12; i += 1) await page.keyboard.press("PageDown");
  await expect(table.locator(".table-row[aria-selected=true]")).toBeInViewport();
});

test("arrow keys go through the ranks", async ({ viewer, page }) => {
  await viewer.open([
    renamed("scenarios/f01.pickle", "rank0.pickle"),
    renamed("scenarios/f02.pickle", "rank1.pickle"),
  ]);
  await viewer.expectRow("rank0.pickle", "ready");
  await viewer.expectRow("rank1.pickle", "ready");
  await viewer.row("rank0.pickle").click();
  await page.keyboard.press("ArrowDown");
  await expect(viewer.row("rank1.pickle")).toBeFocused();
  await expect(viewer.row("rank1.pickle")).toHaveAttribute("aria-selected", "true");
});

test("what the minimap does with the mouse, keys do on the timeline", async ({ viewer, page }) => {
  await work(viewer, REAL);
  await viewer.canvas.focus();
  const brush = async () => {
    const box = await page.getByTestId("brush").boundingBox();
    return { x: Math.round(box?.x ?? 0), width: Math.round(box?.width ?? 0) };
  };
  const whole = await still(brush);
  await page.keyboard.down("w");
  await expect.poll(async () => (await brush()).width).toBeLessThan(whole.width / 2);
  await page.keyboard.up("w");
  const near = await still(brush);
  await page.keyboard.down("d");
  await expect.poll(async () => (await brush()).x).toBeGreaterThan(near.x + 10);
  await page.keyboard.up("d");
  await still(brush);
  await page.keyboard.press("0");
  await expect.poll(brush).toEqual(whole);
  // And a screen reader hears of the peak, whatever it hears of next.
  await page.evaluate(() => {
    const heard: string[] = [];
    Object.assign(window, { heard });
    const root = document.querySelector("vramscope-viewer")?.shadowRoot;
    if (!root) throw new Error("the viewer is there");
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
