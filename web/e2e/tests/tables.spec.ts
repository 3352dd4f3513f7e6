// The tables of blocks and events: all rows, with the order and the numbers of the command line.
// It is long because both tables are compared with the program, column by column.

import { execFileSync } from "node:child_process";
import { basename, dirname } from "node:path";
import { type BlockRow, cli, deviceOf, program, withFrames, written } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { openPalette } from "../lib/keys.js";
import { expect, test } from "../lib/test.js";
import type { Viewer } from "../lib/viewer.js";
import { Views } from "../lib/views.js";

const REAL = "recorded/t26/gpt_small.pickle.gz";
const SUMMARY = deviceOf(REAL);

async function openTable(viewer: Viewer, what: "Blocks" | "Events") {
  const views = new Views(viewer);
  await views.open(testData(REAL));
  const pane = await views.sheet(what);
  const table = views.table(what === "Blocks" ? "blocks" : "events");
  await expect(table.rows.first()).toBeVisible();
  return { views, pane, table };
}

const SHOWN = 20;

test("only call sites are cut in the blocks table, and a narrow window scrolls it", async ({
  viewer,
  page,
}) => {
  await page.setViewportSize({ width: 1440, height: 900 });
  const views = new Views(viewer);
  const streams = "recorded/t26/streams.pickle.gz";
  await views.open(testData(streams));
  await views.sheet("Blocks");
  const { grid, rows } = views.table("blocks");
  await expect(rows.first()).toBeVisible();
  const cut = () =>
    grid
      .locator("[role=gridcell], [role=columnheader]")
      .evaluateAll((cells) =>
        cells
          .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)
          .map(({ textContent }) => textContent),
      );
  expect(await cut()).toEqual([]);
  // The ends of the handles tell streams apart.
  const { blocks } = cli("blocks", streams, "--sort", "size");
  const cells = grid.locator("[data-column=stream]");
  const [texts, handles] = [
    await cells.allInnerTexts(),
    await cells.evaluateAll((all) => all.map((cell) => cell.getAttribute("title"))),
  ];
  expect(new Set(texts).size).toBe(
    new Set(blocks.slice(0, texts.length).map(({ stream }) => stream)).size,
  );
  for (const [index, text] of texts.entries()) {
    const handle = BigInt((handles[index] ?? "").replaceAll("_", ""));
    expect(handle).toBe(BigInt(blocks[index]?.stream ?? -1));
    expect(handle.toString(16).endsWith(text.replace("…", ""))).toBe(true);
  }
  await page.setViewportSize({ width: 600, height: 800 });
  expect(await cut()).toEqual([]);
  await grid.evaluate((table) => {
    table.scrollLeft = table.scrollWidth;
  });
  const [pane, cell] = [await grid.boundingBox(), await cells.first().boundingBox()];
  expect((cell?.x ?? 0) + (cell?.width ?? 0)).toBeLessThanOrEqual(
    (pane?.x ?? 0) + (pane?.width ?? 0),
  );
  // The background of a row covers all its cells.
  const row = await rows.first().boundingBox();
  expect((row?.x ?? 0) + (row?.width ?? 0)).toBeGreaterThanOrEqual(
    (cell?.x ?? 0) + (cell?.width ?? 0),
  );
});

test("all blocks are listed and sorted, and arrow keys select them in every view", async ({
  viewer,
  page,
}) => {
  const { blocks, total } = cli("blocks", REAL, "--sort", "size");
  const { views, table } = await openTable(viewer, "Blocks");
  await test.step("a click and arrow keys select", async () => {
    const reference = (index: number) =>
      `0:${blocks[index]?.address}@${blocks[index]?.alloc_event}`;
    const expectSelected = async (index: number) => {
      await expect.poll(async () => (await viewer.state()).sel).toBe(reference(index));
      await expect(table.rows.and(page.locator("[aria-selected=true]"))).toHaveCount(1);
      await expect(table.rows.nth(index)).toHaveAttribute("aria-selected", "true");
      await expect(viewer.details.locator("h2[data-value]")).toHaveAttribute(
        "data-value",
        String(blocks[index]?.bytes),
      );
      await views.expectCursor(blocks[index]?.alloc_event ?? Number.NaN);
    };
    await table.rows.nth(2).click();
    await expectSelected(2);
    await table.body.focus();
    for (const [key, index] of [
      ["ArrowDown", 3],
      ["ArrowDown", 4],
      ["ArrowUp", 3],
    ] as const) {
      await page.keyboard.press(key);
      await expectSelected(index);
    }
  });
  await test.step("PageDown keeps the selected row in view", async () => {
    for (let i = 0; i < 12; i += 1) await page.keyboard.press("PageDown");
    await expect(table.grid.locator(".table-row[aria-selected=true]")).toBeInViewport();
    // A table follows the selected block when it is sorted.
    await page.keyboard.press("Escape");
    await expect.poll(async () => (await viewer.state()).sel).toBeUndefined();
    await table.scrollTo("top");
    await expect(table.rows.first()).toHaveAttribute("aria-rowindex", "2");
  });
  await test.step("sorted by size, to the last row, and in the other direction", async () => {
    await table.expectTotal(total);
    await expect(viewer.page.getByTestId("blocks-text")).toContainText(
      `${total.toLocaleString("en")} blocks`,
    );
    const first = blocks.slice(0, SHOWN);
    await expect
      .poll(async () => (await table.values("size")).slice(0, SHOWN))
      .toEqual(first.map(({ bytes }) => bytes));
    expect((await table.texts("address")).slice(0, SHOWN)).toEqual(first.map(written));
    expect((await table.values("blockSize")).slice(0, SHOWN)).toEqual(
      first.map(({ block_bytes }) => block_bytes),
    );
    expect((await table.texts("category")).slice(0, SHOWN)).toEqual(
      first.map(({ category }) => category),
    );
    await table.scrollTo("end");
    const last = table.grid.locator(`[aria-rowindex="${total + 1}"]`);
    await expect(last).toBeInViewport();
    await expect(last.locator("[data-column=size]")).toHaveAttribute(
      "data-value",
      String(blocks.at(-1)?.bytes),
    );
    await expect(table.grid.locator(`[aria-rowindex="${total + 2}"]`)).toHaveCount(0);
    await table.scrollTo("top");
    await expect(table.rows.first()).toHaveAttribute("aria-rowindex", "2");
    await table.sortBy("requested");
    await expect
      .poll(async () => (await table.values("size")).slice(0, SHOWN))
      .toEqual(
        blocks
          .toReversed()
          .slice(0, SHOWN)
          .map(({ bytes }) => bytes),
      );
  });
});

/** Rows of a CSV file, split at commas: the tested columns come before any quoted field. */
const csv = (bytes: Buffer) =>
  bytes
    .toString("utf8")
    .trimEnd()
    .split(/\r?\n/)
    .map((line) => line.split(","));

test("blocks are filtered by category, search and cursor, and saved as filtered", async ({
  viewer,
}) => {
  const { blocks } = cli("blocks", REAL, "--sort", "size");
  const { views, pane, table } = await openTable(viewer, "Blocks");
  await test.step("CSV and JSON", async () => {
    const all = await views.download(pane.getByRole("button", { name: "CSV", exact: true }));
    expect(all.name).toBe("gpt_small-blocks.csv");
    const [head = [], ...lines] = csv(all.bytes);
    expect(lines).toHaveLength(blocks.length);
    const column = head.indexOf("requested_bytes");
    expect(lines.map((line) => Number(line[column]))).toEqual(blocks.map(({ bytes }) => bytes));

    await pane.getByRole("combobox", { name: "Category" }).selectOption("parameter");
    const wanted = blocks.filter(({ category }) => category === "parameter");
    await views.table("blocks").expectTotal(wanted.length);
    const some = await views.download(pane.getByRole("button", { name: "JSON", exact: true }));
    expect(some.name).toBe("gpt_small-blocks.json");
    const saved = JSON.parse(some.bytes.toString("utf8")) as { blocks: BlockRow[] };
    expect(withFrames(saved).blocks).toEqual(wanted);
  });
  await test.step("category, search, live at the cursor", async () => {
    const select = pane.getByRole("combobox", { name: "Category" });
    await select.selectOption("activation");
    const wanted = blocks.filter(({ category }) => category === "activation");
    await table.expectTotal(wanted.length);
    await expect
      .poll(async () => new Set(await table.texts("category")))
      .toEqual(new Set(["activation"]));
    expect((await table.values("size")).slice(0, SHOWN)).toEqual(
      wanted.slice(0, SHOWN).map(({ bytes }) => bytes),
    );
    await select.selectOption("");
    await table.expectTotal(blocks.length);

    const found = blocks.filter(({ frames }) =>
      frames.some(({ name, file, line }) => `${name} ${file}:${line}`.includes("gpt.py:43")),
    );
    expect(found.length).toBeGreaterThan(0);
    await views.search("gpt.py:43");
    await table.expectTotal(found.length);
    await expect(viewer.page.locator("output.found")).toHaveAttribute(
      "data-value",
      String(found.length),
    );
    await viewer.page.keyboard.press("Escape");
    await table.expectTotal(blocks.length);

    await pane.getByRole("button", { name: "live at cursor" }).click();
    for (const event of [300, 4000]) {
      const live = cli("state", REAL, "--at", String(event)).blocks;
      await views.cursor(event);
      await table.expectTotal(live.length);
      const sizes = live.map(({ bytes }) => bytes).toSorted((a, b) => b - a);
      await expect
        .poll(async () => (await table.values("size")).slice(0, SHOWN))
        .toEqual(sizes.slice(0, SHOWN));
    }
  });
});

test("all events are listed, and a click moves the cursor to the command line's state", async ({
  viewer,
  page,
}) => {
  const { views, pane, table } = await openTable(viewer, "Events");
  await test.step("a click, full stop and comma", async () => {
    const expectState = async (event: number) => {
      const state = cli("state", REAL, "--at", String(event));
      const sum = (numbers: number[]) => numbers.reduce((a, b) => a + b, 0);
      await views.expectBands({
        requested_bytes: sum(state.blocks.map(({ bytes }) => bytes)),
        active_bytes: sum(state.blocks.map(({ block_bytes }) => block_bytes)),
        allocated_bytes: state.allocated_bytes,
        reserved_bytes: sum(state.segments.map(({ total_size }) => total_size)),
      });
      await views.expectBands(state);
      await views.expectCategories(state.categories);
    };
    const row = table.grid.locator('[data-key="9"]');
    await row.click();
    await views.expectCursor(9);
    await expect(row).toHaveAttribute("aria-selected", "true");
    await expectState(9);
    for (const [key, event] of [
      [".", 10],
      [".", 11],
      [",", 10],
    ] as const) {
      await page.keyboard.press(key);
      await views.expectCursor(event);
      await expect(table.grid.locator(`[data-key="${event}"]`)).toHaveAttribute(
        "aria-selected",
        "true",
      );
    }
    await expectState(10);
    // The list follows the cursor.
    await views.cursor(5000);
    await expect(table.grid.locator('[data-key="5000"]')).toBeInViewport();
    await expectState(5000);

    // A click on an event of a block selects the block.
    const block = cli("blocks", REAL).blocks.find(
      ({ alloc_event }) => alloc_event !== null && alloc_event > 5000,
    );
    await views.cursor(block?.alloc_event ?? Number.NaN);
    await table.grid.locator(`[data-key="${block?.alloc_event}"]`).click();
    await expect
      .poll(async () => (await viewer.state()).sel)
      .toBe(`0:${block?.address}@${block?.alloc_event}`);
    await expect(viewer.details.locator("h2[data-value]")).toHaveAttribute(
      "data-value",
      String(block?.bytes),
    );
  });
  await test.step("all events, and those of one action", async () => {
    await page.keyboard.press("Escape");
    await table.scrollTo("top");
    await expect(table.rows.first()).toHaveAttribute("data-key", "0");
    await table.expectTotal(SUMMARY.events);
    await expect(table.rows.first()).toHaveAttribute("data-key", "0");
    const live = await table.values("live");
    for (const event of [0, 1, 7, 15]) {
      expect(live[event], `after #${event}`).toBe(
        cli("state", REAL, "--at", String(event)).requested_bytes,
      );
    }
    await table.scrollTo("end");
    const last = table.grid.locator(`[data-key="${SUMMARY.events - 1}"]`);
    await expect(last).toBeInViewport();
    await expect(last.locator("[data-column=live]")).toHaveAttribute(
      "data-value",
      String(SUMMARY.requested_bytes.end),
    );

    const select = pane.getByRole("combobox", { name: "Action" });
    await expect(select.locator("option")).toHaveCount(Object.keys(SUMMARY.actions).length + 1);
    const [action = "", count = 0] = Object.entries(SUMMARY.actions).at(-1) ?? [];
    await select.selectOption(action);
    await table.expectTotal(count);
    await expect.poll(async () => new Set(await table.texts("action"))).toEqual(new Set([action]));
    const { name, bytes } = await views.download(
      pane.getByRole("button", { name: "CSV", exact: true }),
    );
    expect(name).toBe("gpt_small-events.csv");
    expect(csv(bytes)).toHaveLength(count + 1);
  });
});

test("no letter of a search is lost while an earlier one is searched", async ({ viewer, page }) => {
  await new Views(viewer).open(testData(REAL));
  const search = page.getByTestId("search");
  await search.focus();
  // Each letter arrives just before or after the search for the letters before it.
  const word = "optimizer step of the model";
  await page.evaluate((letters) => {
    const input = document
      .querySelector("vramscope-viewer")
      ?.shadowRoot?.querySelector("input[type=search]");
    if (!(input instanceof HTMLInputElement)) throw new Error("the search field is missing");
    const type = (letter: string) => {
      input.value += letter;
      input.dispatchEvent(new InputEvent("input", { bubbles: true }));
    };
    // Type in the task that starts the search, before the page draws.
    const { setTimeout: later } = window;
    const rest = [...letters];
    window.setTimeout = ((work: () => void, ms?: number) =>
      later(() => {
        work();
        const next = rest.shift();
        if (next !== undefined) type(next);
      }, ms)) as typeof window.setTimeout;
    type(rest.shift() ?? "");
  }, word);
  await expect(search).toHaveValue(word);
  await expect.poll(async () => (await viewer.state()).find).toBe(word);
});

test("the palette saves what the program exports for other tools", async ({ viewer, page }) => {
  const views = new Views(viewer);
  await views.open(testData(REAL));
  const folder = dirname(testData(REAL));
  for (const [command, format, suffix] of [
    ["save perfetto", "perfetto", "perfetto.json"],
    ["save speedscope", "speedscope", "speedscope.json"],
    ["save flamegraph.pl", "folded", "folded.txt"],
  ] as const) {
    const palette = await openPalette(page);
    await palette.getByRole("combobox").fill(command);
    const { name, bytes } = await views.download(palette.getByRole("option"));
    expect(name).toBe(`gpt_small-${suffix}`);
    const printed = execFileSync(program, ["export", basename(REAL), "--as", format], {
      cwd: folder,
      maxBuffer: 1 << 28,
    });
    expect(bytes.toString("utf8") === printed.toString("utf8"), format).toBe(true);
  }
});
