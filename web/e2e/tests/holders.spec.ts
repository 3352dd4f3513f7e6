// What holds memory at the end, by the file beside a snapshot, as the program says it.

import { cpSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { blocksOf, cli, findingsOf, referenceOf } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";
import { Views } from "../lib/views.js";
import { select } from "../lib/work.js";

const LEAKED = 'local "leaked" (list of 12) of main(), p_gpt.py:40';

/** A folder with a recording and the file beside it, and the path of the recording. */
function run(folder: string): string {
  mkdirSync(folder);
  const path = join(folder, "gpt_leak.pickle.gz");
  cpSync(testData("recorded/gpt_leak.pickle.gz"), path);
  cpSync(testData("holders/gpt_leak.vramscope.json"), join(folder, "gpt_leak.vramscope.json"));
  return path;
}

test("the summary, a block and the table of holders name what holds the memory", async ({
  viewer,
  page,
}, info) => {
  const folder = info.outputPath("run");
  const path = run(folder);
  const views = new Views(viewer);
  await page.getByLabel("Open folder").first().setInputFiles(folder);
  await viewer.expectRow("run/gpt_leak.pickle.gz", "ready");

  await test.step("the finding", async () => {
    await viewer.place("Summary");
    const growth = findingsOf(path).find(({ kind }) => kind === "growth");
    expect(growth?.action).toContain('Dropping "leaked" frees all of it.');
    await expect(page.getByTestId("verdict")).toContainText(`Memory is held by ${LEAKED}.`);
  });

  await test.step("a block", async () => {
    await viewer.place("Timeline");
    await viewer.plot.drawn();
    const block = blocksOf(path).find(({ holders }) => holders?.[0]?.text === LEAKED);
    const [holder] = block?.holders ?? [];
    if (!block || !holder?.path || !holder.drop) throw new Error("no holder");
    await select(viewer, referenceOf(block));
    await expect(viewer.fact("holder")).toHaveText(LEAKED);
    await expect(viewer.fact("holder_path")).toHaveText(holder.path);
    await expect(viewer.fact("holder_drop")).toHaveText(holder.drop);
    await page.keyboard.press("Escape");
  });

  await test.step("the table", async () => {
    const pane = await views.main("Holders");
    const told = cli("holders", path);
    const rows = pane.getByTestId("holders-table").locator(".table-row[aria-rowindex]");
    await expect(rows).toHaveCount(told.rows.length);
    for (const { holder, bytes, end_bytes, frees_bytes, blocks } of told.rows) {
      const row = rows.filter({ hasText: holder });
      const values = { total: bytes, end: end_bytes, frees: frees_bytes, blocks };
      for (const [column, value] of Object.entries(values))
        if (value !== null)
          await expect(
            row.locator(`[data-column=${column}]`),
            `${column} of ${holder}`,
          ).toHaveAttribute("data-value", String(value));
    }
  });

  await test.step("a row chooses its blocks", async () => {
    const pane = views.pane("Holders");
    await pane.getByTestId("holders-table").locator(".table-row", { hasText: "leaked" }).click();
    const chip = page.getByTestId("chips").locator("[data-term='holder:leaked of main()']");
    await expect(chip).toBeVisible();
    await views.sheet("Blocks");
    await views.table("blocks").expectTotal(12);
  });
});

test("without the file, the table says what would tell it", async ({ viewer }) => {
  const views = new Views(viewer);
  await views.show(testData("recorded/gpt_leak.pickle.gz"));
  const pane = await views.main("Holders");
  await expect(pane).toContainText("No file beside the snapshot tells what holds memory.");
  await expect(pane.getByTestId("holders-table")).toHaveCount(0);
});
