// Opens a file that is too large for a browser tab: `node bench/part.mjs FILE [isolated]`, after
// `cargo xtask build`. Prints the seconds until the curve shows on which a range is chosen, the
// seconds until the offered range is drawn, and the memory of its worker. An isolated page may use
// threads.

import { statSync } from "node:fs";
import { argv, stdout } from "node:process";
import { withPages } from "./page.mjs";

const [file, kind = "plain"] = argv.slice(2);

await withPages(kind === "isolated", async (open) => {
  const page = await open();
  const offer = page.getByRole("button", { name: "Open this part" });
  const failed = page.getByTestId("rank-row").and(page.locator("[data-state=error]"));
  const isDrawn = () => page.evaluate(() => window.vramscope.stats().strips > 0);
  // Ten gigabytes from a disk take minutes, so there is no timeout.
  const until = async (is) => {
    while (!(await is())) await page.waitForTimeout(50);
  };
  const since = (start) => ((performance.now() - start) / 1000).toFixed(1);
  const dropped = performance.now();
  await page.getByTestId("open-files").setInputFiles(file);
  await until(async () => (await offer.isVisible()) || (await isDrawn()));
  if (await isDrawn()) throw new Error("the whole file fits into a tab");
  stdout.write(`${statSync(file).size} bytes: the curve shows after ${since(dropped)} s\n`);
  const values = ["First event", "Last event"].map((label) => page.getByLabel(label).inputValue());
  const ends = await Promise.all(values);
  const chosen = performance.now();
  await offer.click();
  await until(() => failed.isHidden());
  await until(async () => (await isDrawn()) || (await failed.isVisible()));
  if (!(await isDrawn())) throw new Error(await failed.innerText());
  stdout.write(`events ${ends.join(" to ")} are drawn after ${since(chosen)} s\n`);
  const { wasmBytes, threads } = await page.evaluate(() => window.vramscope.stats().ranks[0]);
  stdout.write(`wasm memory ${(wasmBytes / 2 ** 20).toFixed(0)} MiB, threads ${threads}\n`);
});
