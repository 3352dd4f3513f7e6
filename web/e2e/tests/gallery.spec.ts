// The gallery: its index, and each case with the viewer at the place of the answer.
// crates/vramscope-cli/tests/gallery.rs checks the figures of the stories.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { VramscopeViewer } from "vramscope-viewer";
import { expectNoBarrier, THEMES } from "../lib/barriers.js";
import { expect, test } from "../lib/test.js";

interface Case {
  slug: string;
  title: string;
  /** A text of the viewer at its view. */
  shows: string;
  files: string[];
  view: string;
}

const path = (name: string) => fileURLToPath(new URL(`../../site/${name}`, import.meta.url));
const CASES: Case[] = JSON.parse(readFileSync(path("gallery/cases.json"), "utf8"));

test("the index links every case, and is linked from the landing page", async ({
  page,
  viewer,
}) => {
  await viewer.page.getByRole("link", { name: "Gallery" }).click();
  await expect(page).toHaveURL(/\/gallery\/$/);
  const links = page.locator(".cards a");
  await expect(links).toHaveCount(CASES.length);
  await expect(links.locator(".title")).toHaveText(CASES.map(({ title }) => title));
  await page.setViewportSize({ width: 420, height: 900 });
  for (const theme of THEMES) {
    await page.emulateMedia({ colorScheme: theme });
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(
      420,
    );
    await expectNoBarrier(page, theme, "gallery");
  }
  await page.getByRole("link", { name: CASES[0]?.title ?? "" }).click();
  await expect(page.locator("main > h1")).toHaveText(CASES[0]?.title ?? "");
});

for (const { slug, files, view, shows } of CASES) {
  test(`the case ${slug} opens at its place`, async ({ page, viewer }) => {
    await page.addInitScript(() => {
      const failures: unknown[] = [];
      Object.assign(window, { failures });
      document.addEventListener("vramscope-error", (event) =>
        failures.push((event as CustomEvent).detail),
      );
    });
    await page.goto(`/gallery/${slug}/`);
    const pane = page.locator(`vramscope-viewer [data-view=${view}]`);
    await expect(pane).toHaveAttribute("data-place", "main");
    await expect
      .poll(() =>
        page.evaluate(
          () =>
            document.querySelector<VramscopeViewer>("vramscope-viewer")?.stats().ranks.length ?? 0,
        ),
      )
      .toBe(files.length);
    await expect(pane).toContainText(shows);
    expect(await page.evaluate(() => (window as unknown as { failures: [] }).failures)).toEqual([]);
    await expectNoBarrier(page, "light", slug);
    await expect(page.locator(".repeat figure button")).toHaveText("Copy");

    await page.setViewportSize({ width: 420, height: 900 });
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(
      420,
    );
    await page.getByRole("link", { name: "Open on the whole page" }).click();
    await expect(page).toHaveURL(/\/open\//);
    await expect(viewer.page.getByTestId("peak-value").first()).toBeAttached();
  });
}
