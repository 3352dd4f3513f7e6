// The file that `vramscope.record` writes beside a snapshot.

import { cpSync, mkdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type BlockRow, blocksOf, cli, deviceOf, findingsOf, referenceOf } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { serve } from "../lib/served.js";
import { expect, test } from "../lib/test.js";
import { Viewer } from "../lib/viewer.js";
import { Views } from "../lib/views.js";
import { select } from "../lib/work.js";

const NAME = "rank3_memory_snapshot";
const OOM = `beside/oom_1/${NAME}.pickle`;
const pair = (folder: string) =>
  ["pickle", "vramscope.json"].map((end) => testData(`beside/${folder}/${NAME}.${end}`));

/** A block of the program that holds a tensor of this kind, and lives at the end. */
function holder(kind: string): BlockRow & { tensor: NonNullable<BlockRow["tensor"]> } {
  const found = blocksOf(OOM).find(({ tensor, bytes }) => tensor?.kind === kind && bytes > 2 ** 20);
  if (!found?.tensor) throw new Error(`no ${kind}`);
  return { ...found, tensor: found.tensor };
}

test("blocks have the names, shapes and kinds of their tensors, and frames their source", async ({
  viewer,
  page,
}) => {
  const views = new Views(viewer);
  await page.getByLabel("Open folder").first().setInputFiles(testData("beside/oom_1"));
  await expect(viewer.rows).toHaveCount(1);
  await viewer.expectRow(`oom_1/${NAME}.pickle`, "ready");
  await expect(page.getByTestId("skipped-files")).toHaveCount(0);
  await viewer.settled();
  await viewer.place("Timeline");
  await viewer.plot.drawn();
  for (const kind of ["parameter", "gradient", "optimizer_state"]) {
    const block = holder(kind);
    const { name, shape, dtype } = block.tensor;
    await select(viewer, referenceOf(block));
    await expect(viewer.fact("tensor")).toHaveText(name);
    await expect(viewer.fact("shape")).toHaveText(`[${shape.join(", ")}]`);
    await expect(viewer.fact("dtype")).toHaveText(dtype);
    expect(block.category).toBe(kind);
    await expect(viewer.fact("category")).toHaveText(kind.replace("_", " "));
  }
  await test.step("a source line under its frame", async () => {
    const [stack] = cli("peak", OOM).stacks.filter(({ source }) => source !== undefined);
    if (stack?.source === undefined) throw new Error("no source");
    const block = blocksOf(OOM).find(({ site }) => site === stack.site);
    if (!block) throw new Error(`no block of ${stack.site}`);
    await select(viewer, referenceOf(block));
    const frame = viewer.details.locator(".frame-row", { hasText: stack.site.split(" ")[0] ?? "" });
    await expect(frame.locator(".frame-source")).toHaveText(stack.source);
  });
  await test.step("the table has a column for tensors, and a search finds names", async () => {
    const { tensor, ...block } = holder("optimizer_state");
    await views.sheet("Blocks");
    const table = views.table("blocks");
    await page.getByTestId("search").fill(tensor.name);
    const named = blocksOf(OOM).filter((each) => each.tensor?.name.includes(tensor.name));
    await table.expectTotal(named.length);
    const words = `${tensor.name}, ${tensor.dtype} [${tensor.shape.join(", ")}]`;
    expect(await table.texts("tensor")).toContain(words);
    expect(await table.texts("address")).toContain(block.address);
  });
  await test.step("a recording whose shapes nothing tells has no such column", async () => {
    await page.getByTestId("search").fill("");
    await views.open(testData("recorded/t26/linear_seed_python.pickle"));
    await views.sheet("Blocks");
    await expect(views.table("blocks").rows.first()).toBeVisible();
    await expect(views.table("blocks").grid.locator("[data-column=tensor]")).toHaveCount(0);
  });
});

test("an out-of-memory finding says what is outside of PyTorch", async ({ viewer, page }) => {
  const views = new Views(viewer);
  // Two files, but one snapshot: there is no overview of several.
  await page.getByTestId("open-files").setInputFiles(pair("oom_1"));
  await viewer.settled();
  await expect(viewer.rows).toHaveCount(1);
  const [oom] = findingsOf(OOM);
  expect(oom?.text).toContain("outside of PyTorch");
  const pane = await views.main("Summary");
  await expect(pane.locator("[data-headline]")).toHaveAttribute("title", oom?.text ?? "", {
    timeout: 30_000,
  });
});

test("a file beside a snapshot that comes later is read, too, with the device's limit", async ({
  viewer,
  page,
}, info) => {
  const views = new Views(viewer);
  const snapshot = testData("recorded/t26/gpt_small.pickle.gz");
  await views.show(snapshot);
  const capacity = views.pane("Timeline").locator(".mark[data-kind=capacity]");
  await expect(capacity).toHaveCount(0);
  const run = info.outputPath("run");
  mkdirSync(run);
  const copy = join(run, "gpt_small.pickle.gz");
  const beside = join(run, "gpt_small.vramscope.json");
  cpSync(snapshot, copy);
  const reserved = deviceOf(snapshot).reserved_bytes;
  const memory = { total_bytes: 2 * reserved.peak, reserved_bytes: reserved.end, other_bytes: 0 };
  const device = { device: 0, name: "A", free_bytes: reserved.peak - reserved.end, ...memory };
  writeFileSync(beside, JSON.stringify({ version: 1, devices: [device] }));
  await page.getByTestId("add-files").setInputFiles(beside);
  await expect(viewer.rows).toHaveCount(1);
  await expect(capacity).toContainText("available to PyTorch when the snapshot was written");
  const known = cli("what-if", copy).calibration?.capacity.bytes;
  if (!known) throw new Error("the capacity is unknown");
  const [scale, box] = [await viewer.plot.scale(), await viewer.plot.box()];
  const line = await capacity.boundingBox();
  expect(Math.abs((line?.y ?? 0) - box.y - scale.y(known))).toBeLessThan(2);
});

test("a broken file beside a snapshot is a warning", async ({ viewer, page }, info) => {
  const run = info.outputPath("run");
  mkdirSync(run);
  cpSync(testData(OOM), join(run, "rank0.pickle"));
  writeFileSync(join(run, "rank0.vramscope.json"), '{"version": 9}');
  writeFileSync(join(run, "rank1.vramscope.json"), "{}");
  await page.getByLabel("Open folder").first().setInputFiles(run);
  await viewer.expectRow("run/rank0.pickle", "ready");
  await expect(viewer.rows).toHaveCount(1);
  await expect(page.getByTestId("skipped-files")).toHaveCount(0);
  const warning = cli("summary", join(run, "rank0.pickle")).files[0]?.warnings[0];
  expect(warning?.code).toBe("sidecar");
  await viewer.settled();
  await viewer.place("Timeline");
  await viewer.plot.drawn();
  await expect(page.getByTestId("warnings")).toContainText(warning?.message ?? "no warning");
});

test("serve passes the file beside a snapshot", async ({ page }, info) => {
  const run = info.outputPath("run");
  mkdirSync(run);
  // An old modification time, so that the server takes the file for complete.
  const then = Date.now() / 1000 - 60;
  for (const [index, path] of pair("oom_1").entries()) {
    const to = join(run, index === 0 ? "rank3.pickle" : "rank3.vramscope.json");
    cpSync(path, to);
    utimesSync(to, then, then);
  }
  const served = await serve({}, run);
  try {
    await page.goto(served.address);
    const viewer = new Viewer(page);
    await expect(viewer.rows).toHaveCount(1);
    await viewer.settled();
    await viewer.place("Timeline");
    await viewer.plot.drawn();
    const block = holder("parameter");
    await select(viewer, referenceOf(block));
    await expect(viewer.fact("tensor")).toHaveText(block.tensor.name);
  } finally {
    await served.stop();
  }
});
