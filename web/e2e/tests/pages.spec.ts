// The site below a path, as GitHub Pages serves it for a repository, and with the headers that
// SITE.md names for other hosts.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, type Page, test } from "@playwright/test";
import { sample, testData } from "../lib/data.js";
import { host, kept } from "../lib/folder.js";
import { Viewer } from "../lib/viewer.js";

test.use({ serviceWorkers: "allow" });

const text = (name: string) =>
  readFileSync(fileURLToPath(new URL(`../../../${name}`, import.meta.url)), "utf8");
const VERSION: string = JSON.parse(text("web/viewer/package.json")).version;
const RANK = "rank5_memory_snapshot.pickle";
const GPT = testData("recorded/t26/gpt_small.pickle.gz");

/** Opens the sample run, and expects the oracle's peak of a rank. */
async function opensSample(page: Page): Promise<void> {
  const viewer = new Viewer(page);
  await page.getByTestId("open-sample").click();
  await expect(viewer.rows).toHaveCount(8);
  await viewer.settled();
  await viewer.row(RANK).click();
  const peak = String(sample[RANK]?.requested_bytes.peak_bytes);
  await expect(viewer.peak).toHaveAttribute("data-value", peak);
}

const isolated = (page: Page) => page.evaluate(() => crossOriginIsolated);

test("all pages work below a path, from relative addresses, without headers", async ({ page }) => {
  const hosted = await host("vramscope");
  const outside: string[] = [];
  page.on("request", (request) => {
    const own = request
      .url()
      .replace(/^blob:/, "")
      .startsWith(new URL(hosted.address).origin);
    if (!own) outside.push(request.url());
  });
  // A folder without its slash leads to the page, too.
  await page.goto(hosted.address.slice(0, -1));
  expect(page.url()).toBe(hosted.address);
  await expect(page.getByTestId("version")).toHaveText(`vramscope ${VERSION}`);
  expect(await isolated(page)).toBe(false);
  await opensSample(page);
  await page.getByRole("button", { name: "Keys and gestures" }).click();
  await expect(page.locator("[data-key=threads] dd").first()).toHaveText(
    "1 thread: this page is not cross-origin isolated",
  );
  await page.goto(`${hosted.address}record`);
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Record a memory snapshot");
  await page.getByRole("link", { name: "Open a snapshot" }).first().click();
  expect(page.url()).toBe(hosted.address);
  const from = encodeURIComponent(`${new URL(hosted.address).origin}/data/scenarios/f01.pickle`);
  await page.goto(`${hosted.address}open/#url=${from}`);
  await new Viewer(page).expectRow("f01.pickle", "ready");
  const missing = await page.goto(`${hosted.address}nothing/`);
  expect(missing?.status()).toBe(404);
  expect(outside).toEqual([]);
  const below = (path: string) => path.startsWith("/vramscope") || path.startsWith("/data/");
  expect(hosted.asked.filter((path) => !below(path))).toEqual([]);
  await hosted.stop();
});

test("the sample and the isolated page work below a path without network", async ({ page }) => {
  const hosted = await host("vramscope");
  await page.goto(hosted.address);
  await kept(page);
  await opensSample(page);
  await page.goto(`${hosted.address}isolated/`);
  await expect.poll(() => isolated(page).catch(() => false)).toBe(true);
  await kept(page);
  await opensSample(page);
  await hosted.stop();
  await page.goto(hosted.address);
  await opensSample(page);
  await page.goto(`${hosted.address}isolated/`);
  expect(await isolated(page)).toBe(true);
  await new Viewer(page).show(GPT);
});

/** Names and values of headers, by an expression with a group for each. */
const headersOf = (lines: string, pattern: RegExp) =>
  Object.fromEntries(
    Array.from(lines.matchAll(pattern), ([, name = "", value = ""]) => [name, value]),
  );

test("the headers that SITE.md names isolate every page", async ({ page }) => {
  const document = text("SITE.md");
  const forAll = /```text\n\/\*\n((?: {2}.+\n)+)/.exec(document)?.[1] ?? "";
  const headers = headersOf(forAll, /^ {2}(\S+): (.+)$/gm);
  expect(headersOf(document, /^add_header (\S+) (\S+);$/gm)).toEqual(headers);
  expect(Object.keys(headers)).toHaveLength(3);
  const hosted = await host("", headers);
  await page.goto(hosted.address);
  expect(await isolated(page)).toBe(true);
  await opensSample(page);
  for (const path of ["open/", "isolated/"]) {
    await page.goto(`${hosted.address}${path}`);
    expect(await isolated(page)).toBe(true);
    await new Viewer(page).show(GPT);
  }
  await hosted.stop();
});
