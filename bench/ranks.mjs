// A run of many ranks in a headless browser: `node bench/ranks.mjs FOLDER`, after `cargo xtask
// build`. All files of the folder are opened at once. Prints the seconds until the last has been
// read, what memory the workers hold then, and how long a rank that has been released takes to be
// there again.

import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { argv, stdout } from "node:process";
import { withPages } from "./page.mjs";

const folder = argv[2];
const files = readdirSync(folder).map((name) => join(folder, name));
const bytes = files.reduce((sum, file) => sum + statSync(file).size, 0);

await withPages(false, async (open) => {
  const page = await open();
  const started = performance.now();
  await page.getByTestId("open-files").setInputFiles(files);
  const rows = page.getByTestId("rank-row");
  const settled = async () => (await rows.and(page.locator("[data-state=ready], [data-state=error]")).count()) === files.length;
  while (!(await settled())) await page.waitForTimeout(100);
  const all = (performance.now() - started) / 1000;
  const failed = await rows.and(page.locator("[data-state=error]")).count();
  const held = () => page.evaluate(() => window.vramscope.stats().ranks.filter(({ wasmBytes }) => wasmBytes > 0));
  const kept = await held();
  const mebibytes = kept.reduce((sum, { wasmBytes }) => sum + wasmBytes, 0) / 2 ** 20;
  stdout.write(`${files.length} files, ${bytes} bytes: read in ${all.toFixed(1)} s, ${failed} failed\n`);
  stdout.write(`${kept.length} workers stay, with ${mebibytes.toFixed(0)} MiB\n`);
  const paths = new Set(kept.map(({ path }) => path));
  const count = await rows.count();
  for (let row = 0; row < count; row += 1) {
    const path = await rows.nth(row).getAttribute("data-path");
    if (paths.has(path)) continue;
    const chosen = performance.now();
    await rows.nth(row).click();
    while (!(await held()).some((rank) => rank.path === path)) await page.waitForTimeout(10);
    await page.waitForFunction(() => window.vramscope.stats().strips > 0);
    stdout.write(`a released rank is there again after ${(performance.now() - chosen).toFixed(0)} ms\n`);
    break;
  }
});
