// Source with the memory of each line: from a folder, from the program, from the recording, and
// without any.

import { mkdirSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Locator, Page } from "@playwright/test";
import { blocksOf, cli, type PlaceNumbers, referenceOf } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { serve } from "../lib/served.js";
import { expect, test } from "../lib/test.js";
import { Viewer } from "../lib/viewer.js";
import { Views } from "../lib/views.js";
import { select } from "../lib/work.js";

const LEAK = "recorded/gpt_leak.pickle.gz";
const OOM = "beside/oom_1/rank3_memory_snapshot.pickle";
const EVENT = 9000;
const OLD = 1e9;
const NEW = 4e9;

const annotated = cli("source", LEAK, "--at", String(EVENT));

/** A file whose lines are in the functions that the recording names. */
function fitting(): string[] {
  const last = Math.max(...annotated.lines.map(({ line }) => line));
  const text: string[] = [];
  for (let line = 1; line <= last; line += 1) {
    const here = annotated.lines.find((one) => one.line === line);
    const name = here?.functions.find((one) => /^\w+$/.test(one));
    text.push(name ? `def ${name}(x): return ${line}` : `# ${line}`);
  }
  return text;
}

/** Writes a source file with a time of its last change. */
function put(path: string, lines: readonly string[], changed = OLD): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `${lines.join("\n")}\n`);
  utimesSync(path, changed, changed);
}

const table = (page: Page) => page.getByTestId("source-table");
const rowOf = (page: Page, line: number): Locator =>
  table(page).locator(`[role=row][data-key="${line}"]`);
const notes = (page: Page) => page.getByTestId("source-notes");

/** Expects the numbers of each line that is in sight. */
async function expectNumbers(
  page: Page,
  of: (line: PlaceNumbers) => Record<string, number | null | undefined>,
): Promise<void> {
  for (const line of annotated.lines) {
    const row = rowOf(page, line.line);
    for (const [column, value] of Object.entries(of(line)))
      if (value !== null && value !== undefined)
        await expect(
          row.locator(`[data-column=${column}]`),
          `${line.line} ${column}`,
        ).toHaveAttribute("data-value", String(value));
  }
}

test("lines, functions and files have the program's numbers, without any source", async ({
  viewer,
  page,
}) => {
  const views = new Views(viewer);
  await views.show(testData(LEAK));
  await views.cursor(EVENT);
  await page.keyboard.press("c");
  await views.table("source").expectTotal(annotated.lines.length);
  await expect(notes(page)).toContainText("The text of these lines is not known.");
  for (const sentence of annotated.text.slice(1)) await expect(notes(page)).toContainText(sentence);
  await expect(rowOf(page, 43)).toContainText("in forward");
  await test.step("own", () =>
    expectNumbers(page, (line) => ({
      peak: line.own_bytes,
      cursor: line.own_event_bytes,
      growth: line.own_bytes_per_step,
      blocks: line.own_blocks,
    })));
  const numbers = (list: string) =>
    page
      .getByTestId(list)
      .locator(".num")
      .evaluateAll((all) => all.map((one) => Number(one.getAttribute("data-value"))));
  expect(await numbers("source-files")).toEqual(annotated.files.map((file) => file.own_bytes));
  expect(await numbers("source-functions")).toEqual(
    annotated.functions.map((one) => one.own_bytes),
  );
  await test.step("with calls", async () => {
    await page.getByRole("button", { name: "with calls" }).click();
    await expect(rowOf(page, 42).locator("[data-column=peak]")).not.toHaveAttribute(
      "data-value",
      "0",
    );
    await expectNumbers(page, (line) => ({
      peak: line.bytes,
      cursor: line.event_bytes,
      growth: line.bytes_per_step,
      blocks: line.blocks,
    }));
  });
  await test.step("another file", async () => {
    const [, other] = annotated.files;
    const name = other?.file.split("/").at(-1) ?? "";
    await page.getByTestId("source-files").getByRole("button", { name }).click();
    const told = cli("source", LEAK, "--file", name);
    await views.table("source").expectTotal(told.lines.length);
    await expect.poll(async () => (await viewer.state()).source).toBe(`0:${other?.file}`);
  });
});

test("a click on a line or a function chooses its blocks", async ({ viewer, page }) => {
  const views = new Views(viewer);
  await views.show(testData(LEAK));
  await views.setState({ view: "source", source: "43:/train/gpt.py" });
  const peak = viewer.details.getByTestId("group").locator("h2");
  const chips = page.getByTestId("chips");
  const line = annotated.lines.find((one) => one.line === 43);
  await expect(rowOf(page, 43)).toHaveAttribute("aria-selected", "true");
  await rowOf(page, 43).click();
  await expect(chips.locator("[data-term='site:/train/gpt.py:43']")).toBeVisible();
  await expect(peak).toHaveAttribute("data-value", String(line?.own_bytes));
  // The other lines keep their numbers.
  await expectNumbers(page, (one) => ({ peak: one.own_bytes }));
  await page.getByRole("button", { name: "with calls" }).click();
  const calls = annotated.lines.find((one) => one.line === 31);
  await rowOf(page, 31).click();
  await expect(chips.locator("[data-term='via:/train/gpt.py:31']")).toBeVisible();
  await expect(chips.locator("[data-term^=site]")).toHaveCount(0);
  await expect(peak).toHaveAttribute("data-value", String(calls?.bytes));
  const [forward] = annotated.functions.filter((one) => one.function === "forward");
  await page.getByTestId("source-functions").getByRole("button", { name: "forward" }).click();
  await expect(chips.locator("[data-term='via:/train/gpt.py forward']")).toBeVisible();
  await expect(peak).toHaveAttribute("data-value", String(forward?.bytes));
});

test("a folder gives the text, and says where it may not be what ran", async ({
  viewer,
  page,
}, info) => {
  const views = new Views(viewer);
  await views.show(testData(LEAK));
  await page.keyboard.press("c");
  const folder = (name: string) => info.outputPath(name);
  const give = (name: string) => page.getByTestId("open-source").setInputFiles(folder(name));
  const lines = fitting();
  put(join(folder("a"), "gpt.py"), lines);
  await give("a");
  await expect(rowOf(page, 43).locator(".source-text")).toHaveText(lines[42] ?? "");
  await views.table("source").expectTotal(lines.length);
  await expect(table(page).locator(".source-mark")).toHaveCount(0);
  await expect(notes(page)).not.toContainText("changed");
  await test.step("only the lines around those with memory", async () => {
    await page.getByRole("button", { name: "all lines" }).click();
    await expect(rowOf(page, 43)).toBeVisible();
    await expect(rowOf(page, 1)).toHaveCount(0);
    await page.getByRole("button", { name: "all lines" }).click();
  });
  await test.step("a file that was changed later", async () => {
    put(join(folder("b"), "a", "gpt.py"), lines, NEW);
    await page.getByTestId("open-source").setInputFiles(join(folder("b"), "a"));
    await expect(rowOf(page, 43).locator(".source-mark")).toHaveText("?");
    await expect(notes(page)).toContainText("was changed after the recording");
    await expect(rowOf(page, 43).locator(".source-text")).toHaveText(lines[42] ?? "");
  });
  await test.step("a file that is not the one that ran", async () => {
    const short = ["def forward(x): pass", "def other(x):", "    pass"];
    put(join(folder("c"), "a", "gpt.py"), short);
    await page.getByTestId("open-source").setInputFiles(join(folder("c"), "a"));
    await expect(notes(page)).toContainText("is not the file that ran");
    await expect(rowOf(page, 43).locator(".source-mark")).toHaveText("!");
    await expect(rowOf(page, 43)).toContainText("in forward");
  });
  await test.step("two files that fit equally", async () => {
    put(join(folder("d"), "e", "gpt.py"), lines);
    await page.getByTestId("open-source").setInputFiles(join(folder("d"), "e"));
    await expect(notes(page)).toContainText("fit /train/gpt.py equally");
    await expect(rowOf(page, 43)).toContainText("in forward");
  });
});

test("recorded lines are under their frames, and lead to the source", async ({ viewer, page }) => {
  const told = cli("source", OOM);
  const [line] = told.lines;
  if (!line) throw new Error("no line");
  await page.getByLabel("Open folder").first().setInputFiles(testData("beside/oom_1"));
  await viewer.settled();
  await viewer.place("Timeline");
  await viewer.plot.drawn();
  const block = blocksOf(OOM).find(({ frames }) =>
    frames.some((frame) => frame.file === told.file.file && frame.line === line.line),
  );
  if (!block) throw new Error("no block");
  await select(viewer, referenceOf(block));
  const source = viewer.details.locator(".frame-source", { hasText: line.text ?? "" }).first();
  await source.click();
  const pane = page.getByTestId("view-source");
  await expect(pane).toHaveAttribute("data-place", "main");
  await expect(rowOf(page, line.line)).toHaveAttribute("aria-selected", "true");
  for (const { line: number, text } of told.lines)
    await expect(rowOf(page, number).locator(".source-text")).toHaveText(text ?? "");
  await expect
    .poll(async () => (await viewer.state()).source)
    .toBe(`${line.line}:${told.file.file}`);
});

test("the program serves the source of call stacks", async ({ page }, info) => {
  const lines = fitting();
  const folder = info.outputPath("train");
  put(join(folder, "gpt.py"), lines);
  const served = await serve({}, "--source", folder, testData(LEAK));
  try {
    await page.goto(served.address);
    const viewer = new Viewer(page);
    // The finding opens the summary.
    await viewer.settled();
    const [block] = blocksOf(LEAK).filter(({ site }) => site === "gpt.py:43 forward");
    if (!block) throw new Error("no block");
    await select(viewer, referenceOf(block));
    const frame = viewer.details.locator(".frame-row", { hasText: "gpt.py:43" }).first();
    await expect(frame.locator(".frame-source")).toHaveText(lines[42] ?? "");
    await page.keyboard.press("c");
    await expect(rowOf(page, 44).locator(".source-text")).toHaveText(lines[43] ?? "");
    await expect(notes(page)).not.toContainText("not known");
  } finally {
    await served.stop();
  }
});
