// What people drop: good and bad files, wrappings, folders.

import { cpSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { renamed, testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";

test("bad files say so on their own rows, and the good ones beside them work", async ({ viewer }) => {
  await viewer.open([
    renamed("scenarios/f01.pickle", "rank0.pickle"),
    renamed("damaged/flipped.pickle", "rank1.pickle"),
    renamed("containers/archive.zip", "rank2.zip"),
    renamed("damaged/empty.pickle", "rank3.pickle"),
    renamed("scenarios/f02.pickle", "rank4.pickle"),
    renamed("damaged/text.pickle", "rank5.pickle"),
    renamed("containers/cut.pickle.gz", "rank6.pickle.gz"),
    renamed("containers/snapshot.pickle.gz", "rank7.pickle.gz"),
    renamed("containers/members.gz", "rank8.pickle.gz"),
  ]);
  await expect(viewer.rows).toHaveCount(9);
  for (const [path, peak] of [
    ["rank0.pickle", "1500"],
    ["rank4.pickle", "600"],
    ["rank7.pickle.gz", "1500"],
  ] as const) {
    await viewer.expectRow(path, "ready");
    await expect(viewer.rowPeak(path)).toHaveAttribute("data-value", peak);
  }
  for (const [path, words] of [
    ["rank1.pickle", /opcode|byte/i],
    ["rank2.zip", /zip/i],
    ["rank3.pickle", /empty|no bytes/i],
    ["rank5.pickle", /not a|pickle/i],
    ["rank6.pickle.gz", /gzip.*cut off or damaged/i],
    // Two members: the browser's own gzip reads one.
    ["rank8.pickle.gz", /gzip.*several members/i],
  ] as const) {
    await viewer.expectRow(path, "error");
    await expect(viewer.row(path)).toContainText(words);
  }
  await viewer.row("rank2.zip").click();
  await expect(viewer.page.getByTestId("view-timeline")).toContainText(/zip/i);
  await viewer.row("rank4.pickle").click();
  await expect(viewer.peak).toHaveAttribute("data-value", "600");
  await viewer.plot.drawn();
});

for (const [name, peak] of [
  ["containers/snapshot.json", "1500"],
  ["containers/wrong_name.pickle", "1500"],
  ["protocols/unicode_p0.pickle", ""],
  ["edge/cpp_style.pickle", "510"],
] as const) {
  test(`${name} is told by its content`, async ({ viewer }) => {
    await viewer.show(testData(name));
    if (peak !== "") await expect(viewer.peak).toHaveAttribute("data-value", peak);
  });
}

test("a page of trace_plot with two snapshots has two rows", async ({ viewer }) => {
  await viewer.open(testData("containers/trace_plot.html"));
  await expect(viewer.rows).toHaveCount(2);
  await expect(viewer.rows.first().locator("[data-value]")).toHaveAttribute("data-value", "1500");
  await expect(viewer.rows.last().locator("[data-value]")).toHaveAttribute("data-value", "1000");
  await viewer.rows.last().click();
  await expect(viewer.peak).toHaveAttribute("data-value", "1000");
});

test("a folder is searched, nested ones too", async ({ viewer, page }, info) => {
  const run = info.outputPath("run");
  for (const [folder, rank, scenario] of [
    ["iteration_10", 0, "f01"],
    ["iteration_10", 1, "f02"],
    ["iteration_20", 0, "f18"],
  ] as const) {
    mkdirSync(join(run, folder), { recursive: true });
    cpSync(testData(`scenarios/${scenario}.pickle`), join(run, folder, `rank${rank}_memory_snapshot.pickle`));
  }
  cpSync(testData("README.md"), join(run, "README.md"));
  await page.getByLabel("Open folder").first().setInputFiles(run);
  await expect(viewer.rows).toHaveCount(3);
  const path = "run/iteration_20/rank0_memory_snapshot.pickle";
  await viewer.expectRow(path, "ready");
  await expect(viewer.rowPeak(path)).toHaveAttribute("data-value", "1510");
  await expect(viewer.row(path)).toHaveAttribute("data-rank", "0");
});

test("files dropped anywhere are opened", async ({ viewer, page }) => {
  const { name, buffer } = renamed("scenarios/f06.pickle", "dropped.pickle");
  const drop = await page.evaluateHandle(
    ([file, bytes]) => {
      const data = new DataTransfer();
      data.items.add(new File([Uint8Array.from(bytes)], file));
      return data;
    },
    [name, [...buffer]] as const,
  );
  for (const type of ["dragenter", "dragover", "drop"]) await page.dispatchEvent("body", type, { dataTransfer: drop });
  await viewer.expectRow("dropped.pickle", "ready");
  await expect(viewer.peak).toHaveAttribute("data-value", "150");
});

test("a file without history says why there is no timeline", async ({ viewer }) => {
  await viewer.open(testData("recorded/misc/nothing.pickle"));
  await viewer.expectRow("nothing.pickle", "ready");
  await expect(viewer.page.getByTestId("view-timeline")).toContainText(/no (timeline|device|history)/i);
});

test("the worst names are text, never markup", async ({ viewer, page }) => {
  await viewer.show(testData("edge/names.pickle"));
  const scale = await viewer.plot.scale();
  const box = await viewer.plot.box();
  await page.mouse.click(box.x + scale.x(2.5), box.y + scale.y(500));
  await expect(viewer.details).toContainText("<script>alert(1)</script>");
});
