// Opens a run of many ranks in a headless browser: `node bench/ranks.mjs FOLDER`, after `cargo
// xtask build`. Opens all files of the folder at once. Prints the seconds until the last file is
// read, the memory of the remaining workers, and the time to reload a rank that was released.

import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { argv, stdout } from "node:process";
import { withPages } from "./page.mjs";

const folder = argv[2];
const files = readdirSync(folder).map((name) => join(folder, name));
const bytes = files.reduce((sum, file) => sum + statSync(file).size, 0);

await withPages(false, async (open) => {
  const page = await open();
  // Handing thousands of files to the browser takes seconds of its own.
  await page.getByTestId("open-files").evaluate((input) => {
    const begin = () => {
      window.openedAt = performance.now();
    };
    input.getRootNode().addEventListener("change", begin, { capture: true, once: true });
  });
  await page.getByTestId("open-files").setInputFiles(files);
  const rows = page.getByTestId("rank-row");
  // The overview counts the files until all are read. Long lists render only some rows.
  const counting = page.getByTestId("reading-cards");
  await counting.waitFor();
  await counting.waitFor({ state: "detached", timeout: 600_000 });
  const all = await page.evaluate(() => (performance.now() - window.openedAt) / 1000);
  const read = await page.evaluate(
    () => window.vramscope.stats().ranks.filter(({ loadMs }) => loadMs > 0).length,
  );
  const failed = files.length - read;
  const held = () =>
    page.evaluate(() => window.vramscope.stats().ranks.filter(({ wasmBytes }) => wasmBytes > 0));
  const kept = await held();
  const mebibytes = kept.reduce((sum, { wasmBytes }) => sum + wasmBytes, 0) / 2 ** 20;
  const what = `${files.length} files, ${bytes} bytes`;
  stdout.write(`${what}: read in ${all.toFixed(1)} s, ${failed} failed\n`);
  stdout.write(`${kept.length} workers remain, with ${mebibytes.toFixed(0)} MiB\n`);
  const paths = new Set(kept.map(({ path }) => path));
  const count = await rows.count();
  for (let row = 0; row < count; row += 1) {
    const path = await rows.nth(row).getAttribute("data-path");
    if (paths.has(path)) continue;
    const chosen = performance.now();
    await rows.nth(row).click();
    // Many files open on the overview, which draws no block.
    await page.evaluate(() => window.vramscope.setState({ view: "timeline" }));
    while (!(await held()).some((rank) => rank.path === path)) await page.waitForTimeout(10);
    await page.waitForFunction(() => window.vramscope.stats().strips > 0);
    const reload = performance.now() - chosen;
    stdout.write(`a released rank is shown again after ${reload.toFixed(0)} ms\n`);
    break;
  }
});
