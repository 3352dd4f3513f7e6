// The gallery: ten recorded cases, each a page with its story and its recording in the viewer.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { VramscopeViewer } from "vramscope-viewer";
import { expectNoBarrier, THEMES } from "../lib/barriers.js";
import { expect, test } from "../lib/test.js";

interface Case {
  name: string;
  title: string;
  files: string[];
  view: string;
  story: string[];
}

const CASES = JSON.parse(
  readFileSync(fileURLToPath(new URL("../../site/gallery/cases.json", import.meta.url)), "utf8"),
) as Case[];

test("the gallery is linked, lists ten cases, and fits a phone", async ({ viewer, page }) => {
  await expect(viewer.page.getByTestId("drop-zone")).toBeVisible();
  await page.getByRole("link", { name: "Ten recorded cases" }).click();
  await expect(page).toHaveURL(/\/gallery\/$/);
  const titles = page.locator(".cases h2");
  expect(CASES.length).toBe(10);
  await expect(titles).toHaveText(CASES.map(({ title }) => title));
  await page.setViewportSize({ width: 420, height: 900 });
  for (const theme of THEMES) {
    await page.emulateMedia({ colorScheme: theme });
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(420);
    await expectNoBarrier(page, theme, "the gallery");
  }
  await titles.first().click();
  await expect(page.locator("main > h1")).toHaveText(CASES[0]?.title ?? "");
});

for (const { name, title, files, view, story } of CASES) {
  test(`the case ${name} shows its story and its recording`, async ({ page, baseURL }) => {
    const foreign: string[] = [];
    page.on("request", (request) => {
      const url = request.url();
      if (!url.startsWith(`${baseURL}/`) && !/^(blob|data):/.test(url)) foreign.push(url);
    });
    await page.goto(`/gallery/${name}/`);
    await expect(page.locator("main > h1")).toHaveText(title);
    await expect(page.locator(".story p")).toHaveText(story);
    const element = page.locator("vramscope-viewer");
    const ranks = () => element.evaluate((of) => (of as VramscopeViewer).stats().ranks.length);
    await expect.poll(ranks).toBe(files.length);
    const state = () => element.evaluate((of) => (of as VramscopeViewer).getState().view);
    await expect.poll(state).toBe(view);
    await expect(element.getByTestId("notice")).toHaveCount(0);
    expect(foreign).toEqual([]);
    const downloads = page.getByRole("main").locator("a[download]");
    expect(await downloads.count()).toBe(files.length);
    const size = await page.request.get(
      new URL((await downloads.first().getAttribute("href")) ?? "", page.url()).href,
    );
    expect(size.ok()).toBe(true);
  });
}

test("a case opens on the whole page", async ({ page }) => {
  const [of] = CASES;
  await page.goto(`/gallery/${of?.name}/`);
  await page.getByRole("link", { name: "open it on the whole page" }).click();
  await expect(page).toHaveURL(/\/open\//);
  const element = page.locator("vramscope-viewer");
  const ranks = () => element.evaluate((at) => (at as VramscopeViewer).stats().ranks.length);
  await expect.poll(ranks).toBe(of?.files.length);
});
