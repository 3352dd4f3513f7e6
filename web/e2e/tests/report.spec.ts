// Reports in one HTML file: what the program and the page write is the same, opens from disk, and
// is readable without a script.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import { gunzipSync } from "node:zlib";
import type { Browser, Page } from "@playwright/test";
import type { VramscopeViewer } from "vramscope-viewer";
import { blocksOf, deviceOf, findingsOf, program, written as writtenAddress } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";

const FILE = "beside/oom_1/rank3_memory_snapshot.pickle";
const BESIDE = "beside/oom_1/rank3_memory_snapshot.vramscope.json";

/** Names of the recorded program: its file and functions, its host, and a line of its source. */
const NAMES = ["train.py", "node7", "loss = model("];

let folder = "";
test.beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "report-"));
});
test.afterAll(() => rmSync(folder, { recursive: true }));

/** The report that the program writes. */
function written(name: string, ...more: string[]): string {
  const path = join(folder, name);
  execFileSync(program, ["export", testData(FILE), "--as", "html", "-o", path, ...more], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  return path;
}

/** The report of each device in a page's text. */
const sections = (html: string) =>
  [...html.matchAll(/<section class="device">.*?<\/section>/gs)].map(([text]) => text);

/** All that a report holds, unpacked. */
function contents(path: string): string {
  const html = readFileSync(path, "utf8");
  const data = [...html.matchAll(/data-file="[^"]*">([^<]*)</g)].map(([, text = ""]) => {
    const bytes = Uint8Array.from(Buffer.from(text, "base64"));
    const plain = bytes[0] === 0x1f ? Uint8Array.from(gunzipSync(bytes)) : bytes;
    return new TextDecoder("latin1").decode(plain);
  });
  return [html, ...data].join("\n");
}

/** A page that was opened from disk, and what it asks for or reports. */
async function opened(browser: Browser, path: string, javaScriptEnabled: boolean) {
  const context = await browser.newContext({
    javaScriptEnabled,
    viewport: { width: 1200, height: 800 },
  });
  const page = await context.newPage();
  const heard: string[] = [];
  page.on("request", (request) => heard.push(request.url()));
  page.on("pageerror", (error) => heard.push(`uncaught: ${error.message}`));
  page.on("console", (message) => heard.push(`${message.type()}: ${message.text()}`));
  await page.goto(pathToFileURL(path).href);
  return { context, page, heard };
}

/** The viewer of a report shows the recording, without a request. */
async function expectViewer(browser: Browser, path: string): Promise<void> {
  const { context, page, heard } = await opened(browser, path, true);
  await page.getByRole("button", { name: "Viewer" }).click();
  const peak = String(deviceOf(FILE).requested_bytes.peak);
  await expect(page.getByTestId("peak-value")).toHaveAttribute("data-value", peak);
  const strips = () =>
    page.locator("vramscope-viewer").evaluate((e) => (e as VramscopeViewer).stats().strips);
  await page.getByRole("tab", { name: "Timeline" }).click();
  await expect.poll(strips).toBeGreaterThan(0);
  const others = heard.filter((line) => !/^(blob:null\/|file:.*\.html$)/.test(line));
  expect(others).toEqual([]);
  await page.getByRole("button", { name: "Report" }).click();
  await expect(page.locator("article").first()).toBeVisible();
  await context.close();
}

/** The text of a report, without scripts. */
async function expectText(browser: Browser, path: string): Promise<void> {
  const { context, page } = await opened(browser, path, false);
  await expect(page.getByRole("button")).toHaveCount(0);
  const findings = findingsOf(FILE);
  // What a failed allocation tells is not told again by the reserved memory.
  const told = findings.filter(({ kind }) => kind !== "reserved");
  await expect(page.locator("article")).toHaveCount(told.length);
  await expect(page.locator("svg.curve path.requested")).toBeVisible();
  await expect(page.locator("article h4").first()).toContainText("Out of memory");
  await context.close();
}

/** Opens the dialog that saves a report. */
async function openDialog(page: Page) {
  await page.keyboard.press(">");
  await page.getByRole("combobox", { name: "Command" }).fill("html report");
  await page.keyboard.press("Enter");
  return page.getByRole("dialog", { name: "Save as one HTML file" });
}

/** Saves a report on the page. */
async function saved(page: Page): Promise<string> {
  const dialog = await openDialog(page);
  const list = dialog.getByTestId("report-contents");
  await expect(list).toContainText("rank3_memory_snapshot.pickle");
  await expect(list).toContainText("lines of source as these files have them");
  const download = page.waitForEvent("download");
  await dialog.getByRole("button", { name: "Save" }).click();
  const file = await download;
  const path = join(folder, `saved-${file.suggestedFilename()}`);
  await file.saveAs(path);
  await expect(dialog).toHaveCount(0);
  return path;
}

test("the program's report opens from disk, with and without scripts", async ({ browser }) => {
  const path = written("program.html");
  await expectText(browser, path);
  await expectViewer(browser, path);
  const html = readFileSync(path, "utf8");
  const told = findingsOf(FILE).filter(({ kind }) => kind !== "reserved");
  // Behind the word of its kind a title goes on with a small letter.
  for (const { title } of told) expect(html.toLowerCase()).toContain(title.toLowerCase());
  expect(html.includes("loss = model(")).toBe(false);
});

test("the page saves the program's report", async ({ viewer, page, browser }) => {
  await page.getByTestId("open-files").setInputFiles([testData(FILE), testData(BESIDE)]);
  await expect(viewer.peak).toBeVisible();
  const path = await saved(page);
  expect(basename(path)).toBe("saved-rank3_memory_snapshot-report.html");
  const html = readFileSync(path, "utf8");
  expect(sections(html)).toEqual(sections(readFileSync(written("again.html", "--source"), "utf8")));
  expect(sections(html)).toHaveLength(1);
  await expectText(browser, path);
  await expectViewer(browser, path);
});

test("a redacted report has the numbers and no name", async ({ browser }) => {
  const recorded = contents(written("source.html", "--source"));
  for (const name of NAMES) expect(recorded.includes(name), name).toBe(true);
  const path = written("redacted.html", "--redact");
  const all = contents(path);
  for (const name of [...NAMES, "memory_snapshot"]) expect(all.includes(name), name).toBe(false);
  await expectText(browser, path);
  await expectViewer(browser, path);
  const { context, page } = await opened(browser, path, true);
  await page.getByRole("button", { name: "Viewer" }).click();
  await page.getByRole("tab", { name: "Timeline" }).click();
  await page.getByRole("button", { name: "Lists" }).click();
  await page.getByRole("tab", { name: "Blocks" }).click();
  const table = page.getByTestId("blocks-table");
  const cells = table.locator("[role=gridcell][data-column=address]");
  await expect(cells.first()).toBeVisible();
  const addresses = new Set(blocksOf(FILE).map(writtenAddress));
  for (const text of await cells.allTextContents()) expect(addresses).toContain(text);
  await context.close();
});
