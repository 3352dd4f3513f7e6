// Long because it is the list of faults that other viewers have, a test each.
// What other viewers of these files get wrong. Each test would catch one such mistake here.

import { readFileSync } from "node:fs";
import type { Page } from "@playwright/test";
import { renamed, testData } from "../lib/data.js";
import { life, type Made, made, onDisk } from "../lib/made.js";
import { Plot } from "../lib/plot.js";
import { anomaliesOf, blocksOf, cli, deviceOf, devicesOf, referenceOf, stateOf } from "../lib/reports.js";
import { expect, test } from "../lib/test.js";
import type { Viewer } from "../lib/viewer.js";
import {
  answering,
  bandOf,
  expectCursor,
  inside,
  marks,
  pane,
  rangeOf,
  restedRange,
  select,
  selectedOf,
  still,
  work,
} from "../lib/work.js";

const REAL = testData("recorded/t26/gpt_small.pickle.gz");
const LATE = testData("recorded/gpt_ring10000.pickle.gz");
const OOMS = testData("recorded/oom_expandable.pickle.gz");
const GROWS = testData("recorded/gpt_leak.pickle.gz");
const scenario = (name: string) => testData(`scenarios/${name}.pickle`);

/** What the page says is under a point of the timeline. */
const under = (page: Page, x: number, y: number) =>
  page.evaluate(([px = 0, py = 0]) => window.memstrata.pick("timeline", px, py), [x, y]);

/** The pixels and rows of the segments view. */
async function segmentRows(viewer: Viewer): Promise<{ plot: Plot; middle: (bytes: number) => Promise<number> }> {
  const { page } = viewer;
  await page.keyboard.press("3");
  const plot = new Plot(page, page.getByTestId("segments-canvas"));
  await expect(page.locator(".segment-label").first()).toBeVisible();
  const middle = async (bytes: number) => {
    const [canvas, label] = [
      await plot.box(),
      await page.locator(`.segment-label[data-value="${bytes}"]`).boundingBox(),
    ];
    if (label === null) throw new Error(`no segment of ${bytes} bytes`);
    return Math.round(label.y + label.height / 2 - canvas.y);
  };
  return { plot, middle };
}

/** The blocks table, whole, as its own export has it. */
async function exported(page: Page): Promise<{ bytes: number }[]> {
  const download = page.waitForEvent("download");
  await pane(page, "blocks").getByRole("button", { name: "JSON" }).click();
  const text = readFileSync(await (await download).path(), "utf8");
  const value = JSON.parse(text) as { blocks: { bytes: number }[] } | { bytes: number }[];
  return Array.isArray(value) ? value : value.blocks;
}

test("a block that is allocated and freed in one microsecond does not live on", async ({ viewer, page }, info) => {
  const events: Made[] = [
    // Freed in the first microsecond of the window, and older than it.
    { at: 0, action: "free_requested", addr: 0x9000, size: 700 },
    { at: 0, action: "free_completed", addr: 0x9000, size: 700 },
    ...life(0x1000, 1000, 0),
    ...life(0x2000, 4000, 50, 50, "brief"),
    ...life(0x3000, 10, 100, 101),
  ];
  const file = made("brief.json", events, [
    {
      address: 0x1000,
      size: 0x10000,
      blocks: [{ address: 0x1000, size: 1024, requested: 1000, state: "active_allocated" }],
    },
  ]);
  const { requested_bytes } = deviceOf(onDisk(file, info.outputPath("brief.json")));
  expect(requested_bytes.end).toBe(1000);
  await viewer.show(file);
  await expect(viewer.peak).toHaveAttribute("data-value", String(requested_bytes.peak));
  for (const axis of ["time", "event"] as const) {
    await page.getByRole("button", { name: axis, exact: true }).click();
    await expect.poll(async () => (await viewer.state()).axis).toBe(axis);
    await viewer.plot.drawn();
    const { left, width } = await inside(viewer);
    const { y } = await viewer.plot.scale();
    const last = left + width - 3;
    expect(await under(page, last, y(500)), `the block that stays, along ${axis}`).toMatchObject({
      reference: "0:0x1000@2",
    });
    for (const bytes of [1300, 3000, 4900])
      expect(await under(page, last, y(bytes)), `${bytes} bytes up, along ${axis}`).toBeNull();
  }
});

test("requested bytes are requested bytes, before the window and after it", async ({ viewer, page }) => {
  const file = scenario("f03");
  const { start, peak } = deviceOf(file).requested_bytes;
  const [largest] = blocksOf(file);
  if (!largest) throw new Error("no block");
  expect(largest.block_bytes, "a block that is rounded up").toBeGreaterThan(largest.bytes);
  await work(viewer, file);
  await expect(viewer.peak).toHaveAttribute("data-value", String(peak));
  await expect(viewer.details.getByText("at the start").locator("xpath=following-sibling::dd")).toHaveAttribute(
    "data-value",
    String(start),
  );
  await page.evaluate(() => window.memstrata.setState({ drawer: "blocks", at: -1 }));
  await expect(bandOf(page, "requested_bytes")).toHaveAttribute("data-value", String(start));
  const row = page.getByTestId("blocks-table").locator(".table-row").first();
  await expect(row.locator("[data-column=size]")).toHaveAttribute("data-value", String(largest.bytes));
  await expect(row.locator("[data-column=blockSize]")).toHaveAttribute("data-value", String(largest.block_bytes));
});

test("memory from before the window has its stack, in the selection, the flame graph and the table", async ({
  viewer,
  page,
}) => {
  const old = blocksOf(LATE).filter(({ preexisting }) => preexisting);
  const known = old.find(({ frames, of_free }) => frames.length > 2 && !of_free);
  if (!known) throw new Error("nothing is known of what was there before");
  await work(viewer, LATE);
  await select(viewer, referenceOf(known));
  await expect(viewer.details.locator(".frames")).toContainText(known.frames.at(-1)?.name ?? "none");
  await page.evaluate(() => window.memstrata.setState({ view: "flame", drawer: "blocks" }));
  await expect(page.getByTestId("flame-total")).toHaveAttribute(
    "data-value",
    String(deviceOf(LATE).requested_bytes.peak),
  );
  await expect(page.getByTestId("blocks-table")).toHaveAttribute("data-total", String(blocksOf(LATE).length));
  await expect(
    page.getByTestId("blocks-table").locator(".table-row[aria-selected=true] [data-column=size]"),
  ).toHaveAttribute("data-value", String(known.bytes));
  // By its frame the flame graph finds at least what is old and live at the peak.
  const { stacks } = cli<{ stacks: { bytes: number; frames: { file: string; line: number }[] }[] }>("peak", LATE);
  const own = known.frames.find(({ file }) => file.startsWith("/train/"));
  const word = `${own?.file}:${own?.line}`;
  const bytes = stacks
    .filter(({ frames }) => frames.some(({ file, line }) => `${file}:${line}`.includes(word)))
    .reduce((sum, each) => sum + each.bytes, 0);
  expect(bytes).toBeGreaterThanOrEqual(known.bytes);
  await page.getByTestId("search").fill(word);
  await expect(page.getByTestId("flame-matched")).toHaveAttribute("data-value", String(bytes));
});

test("what waits for its free at the dump was there before, and is there at the end", async ({ viewer, page }) => {
  const file = scenario("f08");
  const { start, end } = deviceOf(file).requested_bytes;
  const pending = blocksOf(file).find(({ preexisting }) => preexisting);
  if (!pending) throw new Error("nothing is pending");
  expect(start).toBe(pending.bytes);
  await work(viewer, file);
  await select(viewer, referenceOf(pending));
  await expect(viewer.details.locator("h2[data-value]")).toHaveAttribute("data-value", String(start));
  await expect(viewer.details).toContainText(/pending/);
  await page.evaluate(([at = 0]) => window.memstrata.setState({ at }), [deviceOf(file).events - 1]);
  await expect(bandOf(page, "requested_bytes")).toHaveAttribute("data-value", String(end));
  await expect(bandOf(page, "active_bytes")).toHaveAttribute(
    "data-value",
    String(stateOf(file, deviceOf(file).events - 1).active_bytes),
  );
});

test("the stack of a free is not passed off as that of the allocation", async ({ viewer, page }) => {
  const file = scenario("f04");
  const block = blocksOf(file).find(({ of_free }) => of_free);
  if (!block) throw new Error("no stack of a free");
  await work(viewer, file);
  await select(viewer, referenceOf(block));
  await expect(viewer.details.locator(".stack-note")).toContainText(/free/i);
  // In the flame graph and in the state at the cursor too.
  await page.evaluate(() => window.memstrata.setState({ view: "flame", at: 0 }));
  await expect(page.locator(".flame-name", { hasText: /free/i }).first()).toBeVisible();
  await expect(page.getByTestId("moment").locator(`button[title*="free"]`)).toHaveCount(1);
  await page.evaluate(() => window.memstrata.setState({ view: "timeline" }));
  await select(viewer, referenceOf({ ...block, preexisting: false, alloc_event: 0, address: "0x1400" }));
  await expect(viewer.details.locator(".stack-note")).toHaveCount(0);
});

test("nothing vanishes: the blocks of the table that are live at the peak add up to it", async ({ viewer, page }) => {
  await work(viewer, REAL);
  const { blocks, total } = cli<{ blocks: number; total: number }>("peak", REAL);
  await page.evaluate(() => window.memstrata.setState({ drawer: "blocks" }));
  await page.keyboard.press("p");
  await expectCursor(page, deviceOf(REAL).requested_bytes.peak_event);
  await pane(page, "blocks").getByRole("button", { name: "live at cursor" }).click();
  await expect(page.getByTestId("blocks-table")).toHaveAttribute("data-total", String(blocks));
  const rows = await exported(page);
  expect(rows).toHaveLength(blocks);
  expect(rows.reduce((sum, { bytes }) => sum + Number(bytes), 0)).toBe(total);
});

test("the table has every block, the largest first, and each can be selected", async ({ viewer, page }) => {
  await work(viewer, REAL);
  await page.evaluate(() => window.memstrata.setState({ drawer: "blocks" }));
  const table = page.getByTestId("blocks-table");
  const all = blocksOf(REAL);
  expect(all.length).toBeGreaterThan(1000);
  await expect(table).toHaveAttribute("data-total", String(all.length));
  const sizes = () =>
    table
      .locator(".table-row [data-column=size]")
      .evaluateAll((cells) => cells.map((cell) => Number(cell.getAttribute("data-value"))));
  const largest = all.map(({ bytes }) => bytes).toSorted((a, b) => b - a);
  await expect.poll(async () => (await sizes()).slice(0, 20)).toEqual(largest.slice(0, 20));
  // And the smallest, at the very end.
  await table.getByRole("rowgroup").evaluate((body) => body.scrollTo(0, body.scrollHeight));
  await expect.poll(async () => (await sizes()).at(-1)).toBe(largest.at(-1));
  const last = table.locator(".table-row").last();
  await last.click();
  await expect(viewer.details.locator("h2[data-value]")).toHaveAttribute("data-value", String(largest.at(-1)));
});

test("two devices in one file are two curves, two peaks and two selections", async ({ viewer, page }) => {
  const file = testData("edge/two_devices.pickle");
  await work(viewer, file);
  for (const { device, requested_bytes, events } of devicesOf(file)) {
    await viewer.device.selectOption(String(device));
    await answering(page);
    await expect(viewer.peak).toHaveAttribute("data-value", String(requested_bytes.peak));
    await page.keyboard.press("p");
    await expectCursor(page, requested_bytes.peak_event);
    await expect(bandOf(page, "requested_bytes")).toHaveAttribute("data-value", String(requested_bytes.peak));
    // Both use the address 0x1000.
    const block = blocksOf(file, "--device", String(device)).find(({ address }) => address === "0x1000");
    if (!block) throw new Error("no block there");
    await select(viewer, referenceOf(block, device));
    await expect(viewer.details.locator("h2[data-value]")).toHaveAttribute("data-value", String(block.bytes));
    await page.evaluate(() => window.memstrata.setState({ drawer: "events" }));
    await expect(page.getByTestId("events-table")).toHaveAttribute("data-total", String(events));
  }
});

test("what is reserved, what ran out and whose pool it is are all there", async ({ viewer, page }) => {
  await work(viewer, OOMS);
  const ooms = anomaliesOf(OOMS).filter(({ kind }) => kind === "oom");
  const { reserved_bytes } = deviceOf(OOMS);
  await expect(marks(page, "oom")).toHaveCount(ooms.length);
  await expect(page.locator(".facts [title^='peak of reserved']")).toHaveAttribute(
    "data-value",
    String(reserved_bytes.peak),
  );
  // The line of what is reserved is drawn where the program says that it is.
  const [first] = ooms.flatMap(({ events }) => events);
  if (first === undefined) throw new Error("no event");
  const { x, y } = await viewer.plot.scale();
  const picture = await viewer.plot.picture();
  const [at, height] = [Math.round(x(first)), y(stateOf(OOMS, first).reserved_bytes)];
  const ground = picture.colour(at - 20, 3);
  const drawn = Array.from({ length: 7 }, (_, i) => picture.differs(at, Math.round(height) - 3 + i, [ground]));
  expect(drawn).toContain(true);

  const pools = scenario("f13");
  await work(viewer, pools);
  const own = blocksOf(pools).find(({ address }) => address === "0x10000");
  if (!own) throw new Error("no block in the private pool");
  await select(viewer, referenceOf(own));
  await expect(viewer.fact("pool")).toContainText(/private|0, ?1|\(0 1\)/i);
  await expect(viewer.fact("pool")).not.toContainText(/default/);
});

test("a segment is there from its creation to its end, and not before or after", async ({ viewer, page }) => {
  const file = scenario("f17");
  await work(viewer, file);
  const { plot, middle } = await segmentRows(viewer);
  await expect(page.locator(".segment-label")).toHaveCount(3);
  const { x } = await plot.scale();
  // Event 0 makes the one of 2,048 bytes, event 1 that of 1,000, and event 2 takes it away.
  const [always, later, brief] = [await middle(4096), await middle(2048), await middle(1000)];
  await expect
    .poll(async () => {
      const picture = await plot.picture();
      const ground = picture.colour(Math.round(x(0.5)), brief);
      const free = picture.colour(Math.round(x(1.5)), always);
      const there = (row: number) =>
        [-0.5, 0.5, 1.5, 2.5].map((at) => String(picture.colour(Math.round(x(at)), row)) === String(free));
      return {
        different: String(ground) !== String(free),
        always: there(always),
        later: there(later),
        brief: there(brief),
      };
    })
    .toEqual({
      different: true,
      always: [true, true, true, true],
      later: [false, true, true, true],
      brief: [false, false, true, false],
    });
});

test("a free that is pending is seen as such, along events and along time", async ({ viewer, page }) => {
  // Requested by event 1, completed by event 3.
  await work(viewer, scenario("f06"));
  const { plot, middle } = await segmentRows(viewer);
  const row = await middle(4096);
  const legend = await page
    .locator(".legend .key[data-key=pending]")
    .evaluate((key) => getComputedStyle(key).backgroundColor);
  const wanted = (legend.match(/\d+/g) ?? []).slice(0, 3).map(Number);
  /** Whether the colour of what is pending is in a column of the row. */
  const pending = async (column: number) => {
    const picture = await plot.picture();
    for (let y = row - 16; y <= row + 16; y += 1) {
      const colour = picture.colour(Math.round(column), y);
      if (colour.every((part, index) => Math.abs(part - (wanted[index] ?? 999)) < 24)) return true;
    }
    return false;
  };
  const { x } = await plot.scale();
  await expect
    .poll(async () => [await pending(x(0.5)), await pending(x(2.5)), await pending(x(3.5))])
    .toEqual([false, true, false]);
  await page.keyboard.press("x");
  await expect.poll(async () => (await viewer.state()).axis).toBe("time");
  // Requested after a millisecond, completed after two.
  const at = async (ms: number) => {
    const ticks = await pane(page, "segments")
      .locator(".tick-x")
      .evaluateAll((all) =>
        all.map(
          (tick) =>
            [
              Number.parseFloat(tick.textContent ?? ""),
              Number.parseFloat(getComputedStyle(tick).getPropertyValue("--x")),
            ] as const,
        ),
      );
    const [first, last] = [ticks.at(0), ticks.at(-1)];
    if (!first || !last) throw new Error("no ticks");
    return first[1] + ((ms - first[0]) * (last[1] - first[1])) / (last[0] - first[0]);
  };
  await expect.poll(async () => [await pending(await at(0.75)), await pending(await at(1.5))]).toEqual([false, true]);
});

/** Two lives of one address, and an event in each. */
const TWICE = scenario("f05");
const both = [
  ["0:0x1000@0", 0.5, 0],
  ["0:0x1000@3", 3.5, 3],
] as const;

/** Selects nothing. */
async function nothing(viewer: Viewer): Promise<void> {
  await viewer.page.evaluate(() => window.memstrata.select(null));
  await expect.poll(() => selectedOf(viewer)).toBeNull();
}

test("two blocks at one address are two in the plots", async ({ viewer, page }) => {
  expect(
    blocksOf(TWICE)
      .map((block) => referenceOf(block))
      .toSorted(),
  ).toEqual(both.map(([reference]) => reference));
  await work(viewer, TWICE);
  const { x, y } = await viewer.plot.scale();
  const box = await viewer.plot.box();
  for (const [reference, at] of both) {
    await page.mouse.click(box.x + x(at), box.y + y(50));
    await expect.poll(() => selectedOf(viewer), "a click on the timeline").toBe(reference);
    await viewer.plot.moveTo(x(at), y(50));
    await expect(viewer.tooltip.locator("[data-value]")).toHaveAttribute(
      "data-value",
      reference === both[0][0] ? "100" : "300",
    );
  }
  const { plot, middle } = await segmentRows(viewer);
  const canvas = await plot.box();
  const scale = await plot.scale();
  for (const [reference, at] of both) {
    await nothing(viewer);
    // The row of what is selected is higher than others.
    const row = await still(() => middle(4096));
    // The first eighth of the segment, wherever in its row it is drawn.
    const column = Math.round(scale.x(at));
    let there = -1;
    await expect
      .poll(async () => {
        const picture = await plot.picture();
        const free = [picture.colour(column, row), picture.colour(column, picture.png.height >> 1)];
        const rows = Array.from({ length: 40 }, (_, i) => row - 20 + i).filter((y) => y > 0);
        const coloured = rows.filter((y) => picture.differs(column, y, free));
        there = coloured[coloured.length >> 1] ?? -1;
        return there;
      })
      .toBeGreaterThan(0);
    await page.mouse.click(canvas.x + column, canvas.y + there);
    await expect.poll(() => selectedOf(viewer), "a click on the segment").toBe(reference);
  }
});

test("two blocks at one address are two in the tables and in the state at the cursor", async ({ viewer, page }) => {
  await work(viewer, TWICE);
  await page.evaluate(() => window.memstrata.setState({ drawer: "blocks" }));
  for (const [index, reference] of [both[1][0], both[0][0]].entries()) {
    await page.getByTestId("blocks-table").locator(".table-row").nth(index).click();
    await expect.poll(() => selectedOf(viewer), "a row of the blocks").toBe(reference);
  }
  await page.evaluate(() => window.memstrata.setState({ drawer: "events" }));
  for (const [reference, , event] of both) {
    await nothing(viewer);
    await page.getByTestId("events-table").locator(`.table-row[data-key="${event}"]`).click();
    await expect.poll(() => selectedOf(viewer), "a row of the events").toBe(reference);
  }
  for (const [reference, , event] of both) {
    await nothing(viewer);
    await page.evaluate(([at = 0]) => window.memstrata.setState({ at }), [event]);
    await expectCursor(page, event);
    await page.getByTestId("moment").locator("button.share").click();
    await expect.poll(() => selectedOf(viewer), "a stack of the state").toBe(reference);
  }
});

test("a click in the flame graph goes to that node and no other of the same name", async ({ viewer, page }) => {
  await work(viewer, REAL);
  await page.keyboard.press("4");
  await expect(page.locator(".flame-name").first()).toBeVisible();
  const names = () =>
    page
      .locator(".flame-name")
      .evaluateAll((all) => all.map((name) => [name.textContent ?? "", name.getAttribute("data-node") ?? ""] as const));
  const shown = await still(names);
  const twice = shown.findLast(([text], index) => text !== "" && shown.findIndex((other) => other[0] === text) < index);
  if (!twice) throw new Error("no name is there twice");
  const { nodes } = cli<{ nodes: { name: string; total: number; parent: number }[] }>("flame", REAL);
  const same = nodes.filter(({ name }) => twice[0].includes(name)).map(({ total }) => String(total));
  const target = page.locator(`.flame-name[data-node="${twice[1]}"]`);
  await target.hover();
  const weight = await viewer.page
    .getByTestId("view-flame")
    .getByTestId("tooltip")
    .locator("[data-value]")
    .getAttribute("data-value");
  expect(same).toContain(weight);
  await target.click();
  await expect(page.getByTestId("flame-total")).toHaveAttribute("data-value", weight ?? "none");
  await expect(pane(page, "flame").locator(".breadcrumb [aria-current]")).toContainText(twice[0]);
});

test("names in angle brackets are whole, and bytes times time are not called bytes", async ({ viewer, page }) => {
  const file = made(
    "brackets.json",
    [...life(0x1000, 4096, 0, 2_000_000, "<lambda>"), ...life(0x4000, 4096, 5, undefined, "<listcomp>")],
    [
      {
        address: 0x1000,
        size: 0x10000,
        blocks: [{ address: 0x4000, size: 4096, requested: 4096, state: "active_allocated" }],
      },
    ],
  );
  await work(viewer, file);
  await page.keyboard.press("4");
  for (const name of ["<module>", "<lambda>", "<listcomp>"])
    await expect(page.locator(".flame-name", { hasText: name }).first()).toBeVisible();
  await pane(page, "flame").getByRole("button", { name: "bytes × time" }).click();
  const total = page.getByTestId("flame-total");
  await expect(total).toContainText(/B·s|·\s?s\b|second/i);
  expect(await total.getAttribute("title")).not.toMatch(/\d bytes$/);
  await pane(page, "flame").getByRole("button", { name: "allocations" }).click();
  await expect(total).toHaveAttribute("data-value", "2");
  await expect(total).not.toContainText(/[KMG]iB/);
});

test("no text counts seconds from 1970, and growth is not called a leak", async ({ viewer, page }) => {
  await work(viewer, GROWS);
  const growth = anomaliesOf(GROWS).find(({ kind }) => kind === "growth");
  await page.evaluate(() => window.memstrata.setState({ view: "anomalies", drawer: "events" }));
  await expect(page.locator(`[data-testid=finding][data-id="${growth?.id}"]`)).toHaveAttribute(
    "data-value",
    String(growth?.bytes),
  );
  await expect(page.getByTestId("events-table").locator(".table-row").first()).toBeVisible();
  const epoch = /1[67][\d,_. ]{8,}\s?(s|µs|us|ms)\b|1\.[67]\d*e\+?9|\b1[67]\d{8}\b/;
  await expect(page.locator(".panes")).not.toContainText(epoch);
  await expect(pane(page, "anomalies")).not.toContainText(/\bleak/i);
  await page.locator("[data-testid=finding]").first().click();
  await expect(page.getByTestId("view-timeline")).toBeVisible();
  await expect(viewer.details).not.toContainText(epoch);
});

test("no share of what is reserved is over 100 %, whatever was given back", async ({ viewer, page }, info) => {
  const file = made(
    "emptied.json",
    [
      { at: 0, action: "segment_alloc", addr: 0x100000, size: 1 << 20 },
      ...life(0x100000, 1_000_000, 1, 10),
      { at: 11, action: "segment_free", addr: 0x100000, size: 1 << 20 },
      ...life(0x1000, 100, 12),
    ],
    [
      {
        address: 0x1000,
        size: 4096,
        blocks: [{ address: 0x1000, size: 512, requested: 100, state: "active_allocated" }],
      },
    ],
  );
  const { requested_bytes, reserved_bytes } = deviceOf(onDisk(file, info.outputPath("emptied.json")));
  expect(requested_bytes.peak).toBeGreaterThan(reserved_bytes.end);
  await work(viewer, file);
  await expect(page.locator(".facts [title^='peak of reserved']")).toHaveAttribute(
    "data-value",
    String(reserved_bytes.peak),
  );
  for (const view of ["overview", "segments", "anomalies"] as const) {
    await page.evaluate((to) => window.memstrata.setState({ view: to, drawer: "settings" }), view);
    await expect(pane(page, view)).toBeVisible();
    const text = await page.evaluate(() => window.memstrata.shadowRoot?.querySelector(".app")?.textContent ?? "");
    const shares = [...text.matchAll(/(\d+(?:\.\d+)?) ?%/g)].map(([, share]) => Number(share));
    expect(Math.max(0, ...shares), `in ${view}`).toBeLessThanOrEqual(100);
  }
  await page.keyboard.press("1");
  const bars = await page
    .getByTestId("overview-row")
    .locator("td.bar-cell rect")
    .evaluateAll((all) => all.map((bar) => Number(bar.getAttribute("x") ?? 0) + Number(bar.getAttribute("width"))));
  expect(bars.length).toBeGreaterThan(1);
  for (const end of bars) expect(end).toBeLessThanOrEqual(1.000001);
});

test("a microsecond is a microsecond after half an hour, and tick labels tell it", async ({ viewer, page }) => {
  const LONG = 1_800_000_000;
  const [a, b] = [1_700_000_001, 1_700_000_006];
  const file = made(
    "long.json",
    [
      ...life(0x1000, 1000, 0),
      ...life(0x2000, 3000, a, a + 2, "early"),
      ...life(0x3000, 3000, b, b + 2, "late"),
      ...life(0x4000, 8, LONG),
    ],
    [
      {
        address: 0x1000,
        size: 0x10000,
        blocks: [
          { address: 0x1000, size: 1024, requested: 1000, state: "active_allocated" },
          { address: 0x4000, size: 512, requested: 8, state: "active_allocated" },
        ],
      },
    ],
  );
  await work(viewer, file);
  await page.getByRole("button", { name: "time", exact: true }).click();
  await expect.poll(async () => (await viewer.state()).axis).toBe("time");
  const whole = await restedRange(viewer);
  // There is as much room before the window as after it.
  const origin = Math.round((whole.x1 - LONG) / 2);
  const view = { x0: origin + a - 5, x1: origin + a + 15 };
  await page.evaluate((range) => window.memstrata.setState(range), view);
  await expect.poll(async () => Math.round((await rangeOf(viewer)).x1 - view.x1)).toBe(0);
  await viewer.plot.drawn();
  const { left, width } = await inside(viewer);
  const { y } = await viewer.plot.scale();
  const at = (slot: number) => left + ((slot - view.x0) / (view.x1 - view.x0)) * width;
  const seen: string[] = [];
  // A block that is alive at a microsecond is so in the whole of its slot.
  for (let us = a - 2; us <= b + 4; us += 1)
    seen.push((await under(page, at(origin + us + 0.5), y(2500)))?.reference ?? "-");
  const early = seen.indexOf("0:0x2000@1");
  const late = seen.findIndex((name) => name.startsWith("0:0x3000@"));
  expect(late - early, seen.join(" ")).toBe(b - a);
  expect(seen.filter((name) => name === seen[early])).toHaveLength(seen.filter((name) => name === seen[late]).length);
  expect(seen[late - 1], "between them there is nothing").toBe("-");
  // What is drawn is what is picked, to the pixel.
  const picture = await viewer.plot.picture();
  const row = Math.round(y(2500));
  const edge = Math.round(at(origin + a - 2 + late));
  const ground = [picture.colour(edge - 6, row)];
  expect(picture.differs(edge + 3, row, ground)).toBe(true);
  expect(picture.differs(edge - 3, row, ground)).toBe(false);
  const ticks = await page.getByTestId("view-timeline").locator(".tick-x").allTextContents();
  expect(ticks.length).toBeGreaterThan(2);
  expect(new Set(ticks).size, ticks.join(" | ")).toBe(ticks.length);
});

test("ranks of one number in different folders are apart", async ({ viewer, page }) => {
  await page.evaluate(
    ([one, two]) => {
      const file = (folder: string, bytes: number[]) => ({
        name: `${folder}/rank0.pickle`,
        buffer: Uint8Array.from(bytes).buffer,
      });
      void window.memstrata.load([file("iteration_2", one ?? []), file("iteration_5", two ?? [])]);
    },
    [[...renamed("scenarios/f01.pickle", "").buffer], [...renamed("scenarios/f02.pickle", "").buffer]],
  );
  for (const [folder, name] of [
    ["iteration_2", "f01"],
    ["iteration_5", "f02"],
  ] as const) {
    const path = `${folder}/rank0.pickle`;
    await viewer.expectRow(path, "ready");
    await viewer.row(path).click();
    await expect(viewer.peak).toHaveAttribute("data-value", String(deviceOf(scenario(name)).requested_bytes.peak));
  }
  await page.keyboard.press("1");
  await expect(page.getByTestId("overview-row")).toHaveCount(2);
});

test("another file with as many blocks is drawn anew", async ({ viewer, page }) => {
  const of = (sizes: [number, number]) =>
    made(
      "same.json",
      [...life(0x1000, sizes[0], 0), ...life(0x8000, sizes[1], 10), ...life(0x20000, 1, 20)],
      [
        {
          address: 0x1000,
          size: 0x40000,
          blocks: [
            { address: 0x1000, size: 4096, requested: sizes[0], state: "active_allocated" },
            { address: 0x8000, size: 4096, requested: sizes[1], state: "active_allocated" },
            { address: 0x20000, size: 512, requested: 1, state: "active_allocated" },
          ],
        },
      ],
    );
  const between: number[] = [];
  for (const sizes of [
    [3000, 1000],
    [1000, 3000],
  ] as [number, number][]) {
    await work(viewer, of(sizes));
    await expect(viewer.peak).toHaveAttribute("data-value", "4001");
    await viewer.plot.drawn();
    const { x, y } = await viewer.plot.scale();
    const at = Math.round(x(1.5));
    for (const [bytes, size] of [
      [500, sizes[0]],
      [3500, sizes[1]],
    ] as const)
      expect((await under(page, at, y(bytes)))?.bytes.raw).toBe(String(size));
    // Where one block ends and the other begins, in pixels.
    const picture = await viewer.plot.picture();
    const lower = picture.colour(at, Math.round(y(500)));
    let row = Math.round(y(500));
    while (row > 0 && !picture.differs(at, row, [lower])) row -= 1;
    expect(Math.abs(row - y(sizes[0])), `drawn to row ${row}, ${sizes[0]} bytes are at ${y(sizes[0])}`).toBeLessThan(4);
    between.push(row);
  }
  expect(between[0]).not.toBe(between[1]);
});
