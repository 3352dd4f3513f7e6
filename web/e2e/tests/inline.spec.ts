// inline.js: the viewer in one script, in a page that is opened from disk and in a frame without an
// origin, as trackers and notebooks show reports.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { expect, type FrameLocator, type Page, test } from "@playwright/test";
import type { VramscopeViewer } from "vramscope-viewer";
import { blocksOf, deviceOf, written } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { site, wasmOf } from "../lib/examples.js";

const F01 = testData("scenarios/f01.pickle");

/** A page with the viewer and a file, as its author would write it. */
function report(file: string): string {
  const data = (bytes: Buffer) => JSON.stringify(bytes.toString("base64"));
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>A report</title>
<style>body { height: 100vh; margin: 0 }</style><body>
<script>${readFileSync(join(site, "inline.js"), "utf8")}</script>
<script>
const { fromBase64, openViewer } = vramscope;
const file = { name: "f01.pickle", buffer: fromBase64(${data(readFileSync(file))}).buffer };
openViewer(document.body, {
  mode: "embedded",
  files: [file],
  wasm: {
    view: fromBase64(${data(gzipSync(new Uint8Array(wasmOf("view"))))}),
    worker: Promise.resolve(fromBase64(${data(wasmOf("worker"))}).buffer),
  },
});
</script>`;
}

/** Everything that the page asks for or reports, other than itself and its blobs. */
function heard(page: Page): string[] {
  const all: string[] = [];
  page.on("request", (request) => all.push(request.url()));
  page.on("pageerror", (error) => all.push(`uncaught: ${error.message}`));
  page.on("console", (message) => all.push(`${message.type()}: ${message.text()}`));
  return all;
}

/** How many blocks the timeline shows. */
const strips = (page: Page | FrameLocator) =>
  page
    .locator("vramscope-viewer")
    .evaluate((element) => (element as VramscopeViewer).stats().strips);

/** Compares the picture and the views with the program. */
async function shows(page: Page | FrameLocator): Promise<void> {
  const peak = String(deviceOf(F01).requested_bytes.peak);
  await page.getByRole("tab", { name: "Timeline" }).click();
  await expect(page.getByTestId("peak-value")).toHaveAttribute("data-value", peak);
  await expect(page.getByTestId("timeline-canvas")).toBeVisible();
  await expect.poll(() => strips(page)).toBeGreaterThan(0);
  // The views are in the script, too.
  await page.getByRole("button", { name: "Lists" }).click();
  await page.getByRole("tab", { name: "Blocks" }).click();
  const cells = page.getByTestId("blocks-table").locator("[role=gridcell][data-column=address]");
  await expect(cells.first()).toBeVisible();
  const addresses = new Set(blocksOf(F01).map(written));
  for (const text of await cells.allTextContents()) expect(addresses).toContain(text);
}

test("a page from disk shows a file without a request", async ({ page }) => {
  const folder = mkdtempSync(join(tmpdir(), "inline-"));
  const path = join(folder, "report.html");
  writeFileSync(path, report(F01));
  const all = heard(page);
  await page.goto(pathToFileURL(path).href);
  await shows(page);
  const others = all.filter((line) => !/^(blob:null\/|file:.*report\.html$)/.test(line));
  expect(others).toEqual([]);
  rmSync(folder, { recursive: true });
});

test("a frame without an origin shows a file", async ({ page }) => {
  const all = heard(page);
  const html = report(F01).replaceAll("&", "&amp;").replaceAll('"', "&quot;");
  const style = "width: 1400px; height: 800px";
  await page.setContent(
    `<iframe sandbox="allow-scripts" style="${style}" srcdoc="${html}"></iframe>`,
  );
  await shows(page.frameLocator("iframe"));
  expect(all.filter((line) => !/^(blob:null\/|about:srcdoc)/.test(line))).toEqual([]);
});
