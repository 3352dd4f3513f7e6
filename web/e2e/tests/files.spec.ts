// Opening files: good and bad ones, formats, folders, drops.

import { cpSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "@playwright/test";
import { renamed, testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";
import { work } from "../lib/work.js";

test("bad files show their reason on their rows, and good files beside them open", async ({
  viewer,
}) => {
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
    // The browser's gzip reads only the first of two members.
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

test("a file's content decides its format, and a page with two snapshots has two rows", async ({
  viewer,
}) => {
  await test.step("a page of trace_plot", async () => {
    await viewer.open(testData("containers/trace_plot.html"));
    await expect(viewer.rows).toHaveCount(2);
    await expect(viewer.rows.first().locator("[data-value]")).toHaveAttribute("data-value", "1500");
    await expect(viewer.rows.last().locator("[data-value]")).toHaveAttribute("data-value", "1000");
    await viewer.rows.last().click();
    await expect(viewer.peak).toHaveAttribute("data-value", "1000");
  });
  await test.step("JSON, a wrong name, protocol 0 and C++ pickles", async () => {
    for (const [name, peak] of [
      ["containers/snapshot.json", "1500"],
      ["containers/wrong_name.pickle", "1500"],
      ["protocols/unicode_p0.pickle", ""],
      ["edge/cpp_style.pickle", "510"],
    ] as const) {
      await viewer.show(testData(name));
      await expect(viewer.rows).toHaveCount(1);
      if (peak !== "") await expect(viewer.peak).toHaveAttribute("data-value", peak);
    }
  });
});

test("a folder is searched with its subfolders", async ({ viewer, page }, info) => {
  const run = info.outputPath("run");
  for (const [folder, rank, scenario] of [
    ["iteration_10", 0, "f01"],
    ["iteration_10", 1, "f02"],
    ["iteration_20", 0, "f18"],
  ] as const) {
    mkdirSync(join(run, folder), { recursive: true });
    cpSync(
      testData(`scenarios/${scenario}.pickle`),
      join(run, folder, `rank${rank}_memory_snapshot.pickle`),
    );
  }
  cpSync(testData("README.md"), join(run, "README.md"));
  await page.getByLabel("Open folder").first().setInputFiles(run);
  await expect(viewer.rows).toHaveCount(3);
  const path = "run/iteration_20/rank0_memory_snapshot.pickle";
  await viewer.expectRow(path, "ready");
  await expect(viewer.rowPeak(path)).toHaveAttribute("data-value", "1510");
  await expect(viewer.row(path)).toHaveAttribute("data-rank", "0");
});

test("foreign files of a folder are counted in one line, a damaged snapshot keeps its row", async ({
  viewer,
  page,
}, info) => {
  const run = info.outputPath("run");
  cpSync(testData("run_folder"), run, { recursive: true });
  cpSync(testData("damaged/truncated.pickle"), join(run, "rank1_memory_snapshot.pickle"));
  await page.getByLabel("Open folder").first().setInputFiles(run);
  const skipped = page.getByTestId("skipped-files");
  await expect(skipped).toHaveText("5 other files skipped");
  await expect(skipped).toHaveAttribute("data-value", "5");
  await expect(viewer.rows).toHaveCount(2);
  await viewer.expectRow("run/rank0_memory_snapshot.pickle", "ready");
  await viewer.expectRow("run/rank1_memory_snapshot.pickle", "error");
  // A file that is opened by itself, and is no snapshot, opens no run.
  await page.getByTestId("open-files").setInputFiles(testData("run_folder/report.html"));
  await expect(page.getByRole("alert")).toContainText("report.html: ");
  await expect(viewer.rows).toHaveCount(0);
});

/**
 * Drags a file over an element and drops it. The modification time depends only on the content, so
 * a second drop is the same file.
 */
async function drop(page: Page, from: string, name: string, place = "body"): Promise<void> {
  const dataTransfer = await page.evaluateHandle(
    ([file, bytes]) => {
      const data = new DataTransfer();
      data.items.add(
        new File([Uint8Array.from(bytes)], file, { lastModified: 1e12 + bytes.length }),
      );
      return data;
    },
    [name, [...renamed(from, name).buffer]] as const,
  );
  // The drop zones appear when something is dragged over the page.
  await page.dispatchEvent("body", "dragenter", { dataTransfer });
  for (const type of ["dragenter", "dragover", "drop"])
    await page.dispatchEvent(place, type, { dataTransfer });
}

test("drops open files anywhere, several at once, and others of an open name", async ({
  viewer,
  page,
}) => {
  await test.step("a drop on an empty page", async () => {
    await drop(page, "scenarios/f06.pickle", "dropped.pickle");
    await viewer.expectRow("dropped.pickle", "ready");
    await expect(viewer.peak).toHaveAttribute("data-value", "150");
  });
  await test.step("three drops at once", async () => {
    await viewer.open([renamed("scenarios/f01.pickle", "rank0.pickle")]);
    await viewer.expectRow("rank0.pickle", "ready");
    await Promise.all(
      [1, 2, 3].map((rank) => drop(page, "scenarios/f02.pickle", `rank${rank}.pickle`)),
    );
    await expect(viewer.rows).toHaveCount(4);
    for (const rank of [1, 2, 3]) await viewer.expectRow(`rank${rank}.pickle`, "ready");
  });
  await test.step("another file of the same name", async () => {
    await viewer.open([renamed("scenarios/f01.pickle", "rank0.pickle")]);
    await expect(viewer.rows).toHaveCount(1);
    await viewer.expectRow("rank0.pickle", "ready");
    await drop(page, "scenarios/f18.pickle", "rank0.pickle");
    await viewer.expectRow("2/rank0.pickle", "ready");
    await expect(viewer.rowPeak("rank0.pickle")).toHaveAttribute("data-value", "1500");
    await expect(viewer.rowPeak("2/rank0.pickle")).toHaveAttribute("data-value", "1510");
    await expect(viewer.row("2/rank0.pickle")).toHaveAttribute("data-rank", "0");
    await drop(page, "scenarios/f18.pickle", "rank0.pickle");
    await expect(viewer.row("2/rank0.pickle")).toHaveAttribute("aria-selected", "true");
    await expect(viewer.rows).toHaveCount(2);
  });
  await test.step("folders that tell files apart", async () => {
    const { buffer } = renamed("scenarios/f01.pickle", "");
    await page.evaluate(
      (bytes) =>
        window.vramscope.load(
          [0, 1].map((rank) => ({
            name: `run/rank${rank}.pickle`,
            buffer: Uint8Array.from(bytes).buffer,
          })),
        ),
      [...buffer],
    );
    await viewer.expectRow("run/rank0.pickle", "ready");
    await expect(viewer.rows).toHaveCount(2);
    await page.keyboard.press("5");
    const lines = page.getByTestId("overview-row");
    await expect(lines).toHaveCount(2);
    await expect(lines.locator(".group")).toHaveCount(0);
    await drop(page, "scenarios/f02.pickle", "rank0.pickle");
    await expect(lines).toHaveCount(3);
    // The first row of a group names it.
    await expect(lines.nth(1).locator(".group")).toHaveText("run / ");
    await expect(lines.locator(".group")).toHaveCount(1);
    await expect(page.locator(".rail-group")).toHaveText("run");
  });
});

test("a file dropped beside an open one is added, and the view stays", async ({ viewer, page }) => {
  await work(viewer, renamed("recorded/t26/gpt_small.pickle.gz", "rank1.gz"));
  await page.evaluate(() =>
    window.vramscope.setState({ view: "timeline", x0: 1000, x1: 3000, at: 2000, find: "forward" }),
  );
  await expect.poll(async () => (await viewer.state()).x0).toBe(1000);
  const before = await viewer.state();
  await page.evaluate(() => {
    const read: string[] = [];
    Object.assign(window, { read });
    window.vramscope.addEventListener("vramscope-loaded", (event) =>
      read.push((event as CustomEvent<{ path: string }>).detail.path),
    );
  });
  await drop(page, "scenarios/f02.pickle", "rank0.pickle");
  await expect(viewer.rows).toHaveCount(2);
  await viewer.expectRow("rank0.pickle", "ready");
  await expect(viewer.rows.first()).toHaveAttribute("data-path", "rank0.pickle");
  await expect(viewer.row("rank1.gz")).toHaveAttribute("aria-selected", "true");
  await expect(page.getByRole("heading", { name: "2 ranks" })).toBeVisible();
  expect(await viewer.state()).toEqual(before);
  // The first file is not read again.
  expect(await page.evaluate(() => (window as unknown as { read: string[] }).read)).toEqual([
    "rank0.pickle",
  ]);

  // The same file dropped again is selected, and gets no second row.
  await drop(page, "scenarios/f02.pickle", "rank0.pickle");
  await expect(viewer.row("rank0.pickle")).toHaveAttribute("aria-selected", "true");
  await expect(viewer.rows).toHaveCount(2);
  await page.keyboard.press("5");
  await expect(page.getByTestId("overview-row")).toHaveCount(2);
});

test("files that are no snapshots leave the landing page in place, with one line", async ({
  viewer,
  page,
}) => {
  const notice = page.getByRole("alert");
  const zone = page.getByTestId("drop-zone");
  const before = await zone.boundingBox();
  const wrong = [
    { name: "README.md", mimeType: "text/markdown", buffer: Buffer.from("# A program\n") },
    { name: "loss.png", mimeType: "image/png", buffer: Buffer.from("\x89PNG\r\n\x1a\n", "latin1") },
  ];
  for (const { files, said } of [
    { files: wrong.slice(0, 1), said: /^README\.md: this is not a snapshot: it starts with "# A/ },
    { files: wrong.slice(1), said: /^loss\.png: this is not a snapshot/ },
    { files: wrong, said: /^README\.md and others: this is not a snapshot/ },
  ]) {
    await page.getByTestId("open-files").setInputFiles(files);
    await expect(notice).toContainText(said);
    await expect(page.locator(".app")).toHaveAttribute("data-stage", "landing");
    await expect(viewer.rows).toHaveCount(0);
    // The message takes no room from the page.
    expect(await zone.boundingBox()).toEqual(before);
    const message = notice.locator("p");
    const [line, lines] = await message.evaluate((of) => {
      const hint = of.querySelector(".dim")?.getBoundingClientRect().height ?? 0;
      const { lineHeight } = getComputedStyle(of);
      return [Number.parseFloat(lineHeight), of.getBoundingClientRect().height - hint] as const;
    });
    expect(lines, "height of the message").toBeLessThan(1.5 * line);
  }
  await viewer.show(testData("scenarios/f06.pickle"));
  await expect(notice).toHaveCount(0);
});

test("a file that cannot be read opens no run, and other ways to open replace one", async ({
  viewer,
  page,
}) => {
  await test.step("the unreadable file", async () => {
    await drop(page, "damaged/text.pickle", "bad.pickle");
    const notice = page.getByRole("alert");
    await expect(notice).toContainText(/^bad\.pickle: .*starts with.*expected/);
    await expect(page.locator(".app")).toHaveAttribute("data-stage", "landing");
    await expect(viewer.rows).toHaveCount(0);
    await drop(page, "scenarios/f06.pickle", "good.pickle");
    await expect(viewer.row("good.pickle")).toHaveAttribute("aria-selected", "true");
    await expect(viewer.peak).toHaveAttribute("data-value", "150");
    await expect(notice).toHaveCount(0);
  });
  await test.step("the x beside a single file closes it", async () => {
    await page.getByTestId("close-file").click();
    await expect(page.locator(".app")).toHaveAttribute("data-stage", "landing");
    await drop(page, "scenarios/f06.pickle", "good.pickle");
    await expect(viewer.row("good.pickle")).toBeVisible();
  });
  await test.step("the bottom bar, the buttons and scripts", async () => {
    await drop(page, "scenarios/f06.pickle", "rank1.pickle", "[data-instead]");
    await expect(viewer.rows).toHaveCount(1);
    await expect(viewer.peak).toHaveAttribute("data-value", "150");
    await expect(page.locator(".veil")).toBeHidden();
    await viewer.open([renamed("scenarios/f02.pickle", "rank2.pickle")]);
    await expect(viewer.rows).toHaveCount(1);
    await viewer.expectRow("rank2.pickle", "ready");
    await page
      .getByTestId("add-files")
      .setInputFiles([renamed("scenarios/f01.pickle", "rank3.pickle")]);
    await expect(viewer.rows).toHaveCount(2);
    await viewer.expectRow("rank3.pickle", "ready");
    await page.evaluate(
      (bytes) =>
        window.vramscope.load([{ name: "rank4.pickle", buffer: Uint8Array.from(bytes).buffer }]),
      [...renamed("scenarios/f06.pickle", "").buffer],
    );
    await expect(viewer.rows).toHaveCount(1);
    await viewer.expectRow("rank4.pickle", "ready");
  });
});
