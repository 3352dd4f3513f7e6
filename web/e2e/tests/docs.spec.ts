// The documents: every link has a target, the search finds sections, and both work offline.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { test as base } from "@playwright/test";
import { expectNoBarrier, THEMES } from "../lib/barriers.js";
import { type Hosted, host, kept } from "../lib/folder.js";
import { expect, test } from "../lib/test.js";

const DIST = fileURLToPath(new URL("../../site/dist", import.meta.url));
const PAGES = [
  "docs",
  ...readdirSync(join(DIST, "docs"), { withFileTypes: true })
    .filter((entry) => existsSync(join(DIST, "docs", entry.name, "index.html")))
    .map(({ name }) => `docs/${name}`),
];
const text = (page: string) => readFileSync(join(DIST, page, "index.html"), "utf8");
const all = (html: string, of: RegExp) => [...html.matchAll(of)].map(([, found]) => found ?? "");

const IDS = new Map(PAGES.map((page) => [page, new Set(all(text(page), / id="([^"]+)"/g))]));

/** Whether a link of a page leads to a file of the site, and to a heading if it names one. */
function leads(page: string, href: string): boolean {
  const [path = "", anchor] = href.split("#");
  const there = path === "" ? page : posix.join(page, path).replace(/\/$/, "");
  const known = IDS.get(there);
  return existsSync(join(DIST, there)) && (!anchor || !known || known.has(anchor));
}

test("each link within the documents has a target", () => {
  expect(PAGES.length).toBeGreaterThan(20);
  const broken = PAGES.flatMap((page) =>
    all(text(page), / href="([^"]+)"/g)
      .filter((href) => !/^[a-z]+:/.test(href) && !leads(page, href))
      .map((href) => `${page}: ${href}`),
  );
  expect(broken).toEqual([]);
});

test("the documents fit a phone in both themes, without a serious barrier", async ({ page }) => {
  await page.setViewportSize({ width: 420, height: 900 });
  for (const path of ["docs", "docs/oom", "docs/findings", "docs/json"]) {
    await page.goto(`/${path}/`);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    expect(width, path).toBeLessThanOrEqual(420);
    if (path === "docs/json") continue;
    for (const theme of THEMES) {
      await page.emulateMedia({ colorScheme: theme });
      await expectNoBarrier(page, theme, path.replace("/", "-"));
    }
  }
});

test("words of PyTorch's message lead to the page of the finding", async ({ page }) => {
  const other: string[] = [];
  page.on("request", (request) => {
    if (new URL(request.url()).hostname !== "127.0.0.1") other.push(request.url());
  });
  await page.goto("/docs/oom/");
  await page.keyboard.press("/");
  await page.keyboard.type("reserved but unallocated");
  await expect(page.locator("#results strong").first()).toHaveText("Findings › reserved");
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/\/docs\/findings\/#reserved$/);
  await expect(page.locator("#reserved")).toBeInViewport();
  for (const [words, first] of [
    ["memory leak", "Findings › growth"],
    ["lost_free", "Warnings and errors › lost_free"],
    ["kubernetes", "Clusters and fleets › Kubernetes"],
    ["vramscope_peak", "Python › In tests"],
  ] as const) {
    await page.getByRole("searchbox").fill(words);
    await expect(page.locator("#results strong").first()).toHaveText(first);
  }
  await page.getByRole("searchbox").fill("qqqqqqqq");
  await expect(page.locator("#results")).toHaveText("Nothing found.");
  await page.keyboard.press("Escape");
  await expect(page.locator("#results")).toBeHidden();
  expect(other).toEqual([]);
});

const hosted = base.extend<{ site: Hosted }>({
  // biome-ignore lint/correctness/noEmptyPattern: Playwright reads fixture names from the pattern
  site: async ({}, use) => {
    const site = await host("some/where");
    await use(site);
    await site.stop();
  },
});
hosted.use({ serviceWorkers: "allow" });

hosted("the documents and their search work offline", async ({ page, site }) => {
  await page.goto(site.address);
  await kept(page);
  await page.context().setOffline(true);
  await page.goto(`${site.address}docs/`);
  await page.getByRole("searchbox").fill("ring buffer");
  await expect(page.locator("#results a").first()).toBeVisible();
  await page.locator("#results a").first().click();
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
});
