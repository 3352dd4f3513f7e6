// The segments view: one row per address, in step with the timeline.
// It is long because every control of the view has a test.

import type { Locator } from "@playwright/test";
import { cli, deviceOf, type SegmentRow } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";
import type { Viewer } from "../lib/viewer.js";
import { Views } from "../lib/views.js";

const REAL = "recorded/t26/gpt_small.pickle.gz";

interface Label {
  segment: number;
  address: string;
  bytes: number;
  top: number;
  height: number;
}

/** The rendered labels, from the top. */
async function labelsOf(pane: Locator): Promise<Label[]> {
  const labels = await pane.locator(".segment-label").evaluateAll((all) =>
    all.map((label) => ({
      segment: Number(label.getAttribute("data-segment")),
      address:
        /0x[\da-f_]+/.exec(label.getAttribute("aria-label") ?? "")?.[0].replaceAll("_", "") ?? "",
      bytes: Number(label.getAttribute("data-value")),
      top: label.getBoundingClientRect().top,
      height: label.getBoundingClientRect().height,
    })),
  );
  return labels.toSorted((a, b) => a.top - b.top);
}

async function openSegments(viewer: Viewer, file: string) {
  const views = new Views(viewer);
  await views.open(testData(file));
  const pane = await views.main("Segments");
  await expect(pane.locator(".segment-label").first()).toBeVisible();
  return { views, pane };
}

const place = ({ address, total_size }: SegmentRow) => `${address} ${total_size}`;

test("segments that were freed have rows, and segments at one address share a row", async ({
  viewer,
  page,
}) => {
  await test.step("freed segments", async () => {
    const file = "scenarios/f16.pickle";
    const events = deviceOf(file).events;
    const ever = new Set<string>();
    for (let event = -1; event < events; event += 1) {
      for (const segment of cli("segments", file, "--at", String(event)).segments)
        ever.add(place(segment));
    }
    const atEnd = cli("segments", file, "--at", "end").segments;
    expect(ever.size, "more than are there at the end").toBeGreaterThan(atEnd.length);
    const { pane } = await openSegments(viewer, file);
    await expect(pane.locator(".segment-label")).toHaveCount(ever.size);
    const labels = await labelsOf(pane);
    expect(labels.map(({ address, bytes }) => `${address} ${bytes}`).toSorted()).toEqual(
      [...ever].toSorted(),
    );
    await expect(pane.getByTestId("rows-bar"), "all have room").toHaveCount(0);
  });
  await test.step("segments at one address, and the card of the one at the cursor", async () => {
    const views = new Views(viewer);
    await views.main("Timeline");
    await views.show(again(5));
    const pane = await views.track();
    await expect(pane.locator(".segment-label")).toHaveCount(1);
    await expect(pane.getByTestId("segments-text")).toContainText("5 segments in 1 row · ");
    await expect(pane.locator(".segment-label")).toHaveAttribute(
      "title",
      /5 .*segments at 0x.* from #0 to #19/,
    );
    await views.cursor(1);
    await pane.locator(".segment-label").click();
    const card = viewer.details.locator("[data-kind=Segment]");
    await expect(card).toBeVisible();
    const shows = async (turn: number, active: number | null) => {
      await expect(views.fact("turn")).toHaveAttribute("data-value", String(turn));
      if (active === null) await expect(views.fact("now")).toHaveText("already released");
      else
        await expect(views.fact("active_bytes")).toHaveAttribute(
          "data-value",
          String(active * 2 ** 20),
        );
    };
    await shows(1, 2);
    // The card follows the cursor, also where no segment is reserved.
    await views.cursor(9);
    await shows(3, 4);
    await views.cursor(10);
    await shows(3, 0);
    await views.cursor(11);
    await shows(3, null);
    // A click on free memory moves the cursor to the fourth segment, before its block exists.
    const box = await viewer.plot.box();
    const scale = await viewer.plot.scale();
    const row = await pane.locator(".segment-label").boundingBox();
    if (!row) throw new Error("the row is out of sight");
    await page.mouse.click(box.x + scale.x(12.5), row.y + row.height * 0.4);
    await shows(4, 0);
    // A closed card stays closed when the cursor moves.
    await page.keyboard.press("Escape");
    await expect(card).toHaveCount(0);
    await views.cursor(17);
    await expect(card).toHaveCount(0);
  });
});

test("rows are the command line's segments in the selected order, with their cards", async ({
  viewer,
  page,
}) => {
  // All rows are in sight.
  await page.setViewportSize({ width: 1440, height: 1000 });
  const { views, pane } = await openSegments(viewer, REAL);
  await test.step("rows and their order", async () => {
    expect(Object.keys(deviceOf(REAL).actions), "no segment is freed in this file").not.toContain(
      "segment_free",
    );
    const { segments } = cli("segments", REAL, "--at", "end");

    await expect(pane.locator(".segment-label")).toHaveCount(segments.length);
    const labels = await labelsOf(pane);
    expect(labels.map(({ address, bytes }) => `${address} ${bytes}`).toSorted()).toEqual(
      segments.map(place).toSorted(),
    );
    await expect(pane.getByTestId("segments-text")).toContainText(`${segments.length} segments`);
    const sizes = segments.map(({ total_size }) => total_size).toSorted((a, b) => b - a);
    expect(labels.map(({ bytes }) => bytes)).toEqual(sizes);

    await page.getByTestId("segment-sort").selectOption("address");
    const addresses = segments
      .map(({ address }) => address)
      .toSorted((a, b) => Number(BigInt(a) - BigInt(b)));
    await expect
      .poll(async () => (await labelsOf(pane)).map(({ address }) => address))
      .toEqual(addresses);
  });
  await test.step("the card of a row at the cursor", async () => {
    const fact = (key: string) => views.fact(key);
    for (const event of [400, 3843]) {
      await views.cursor(event);
      const { segments } = cli("segments", REAL, "--at", String(event));
      const segment = segments.reduce((a, b) =>
        b.free * (b.active && 1) > a.free * (a.active && 1) ? b : a,
      );
      const label = (await labelsOf(pane)).find(({ address }) => address === segment.address);
      await pane.locator(`.segment-label[data-segment="${label?.segment}"]`).click();
      await expect(viewer.details.locator("[data-kind=Segment]")).toBeVisible();
      await expect(viewer.details.locator("h2")).toHaveAttribute(
        "data-value",
        String(segment.total_size),
      );
      const facts = {
        allocated_bytes: segment.allocated,
        active_bytes: segment.active,
        requested_bytes: segment.requested,
        free: segment.free,
        largest_free: segment.largest_free,
      };
      for (const [key, bytes] of Object.entries(facts)) {
        await expect(fact(key), `${key} at ${event}`).toHaveAttribute("data-value", String(bytes));
      }
    }
    await page.keyboard.press("Escape");
    await expect(viewer.details.locator("[data-kind=Segment]")).toHaveCount(0);
  });
});

/**
 * One address that is reserved and freed `turns` times, four events per turn. The block in it grows
 * by 1 MiB per turn.
 */
function again(turns: number) {
  const at = { addr: 2 ** 34, stream: 0, frames: [] };
  const trace = Array.from({ length: turns }, (_, turn) => [
    { ...at, action: "segment_alloc", size: 2 ** 25 },
    { ...at, action: "alloc", size: (turn + 2) * 2 ** 20 },
    { ...at, action: "free_completed", size: (turn + 2) * 2 ** 20 },
    { ...at, action: "segment_free", size: 2 ** 25 },
  ]).flat();
  const json = JSON.stringify({ segments: [], device_traces: [trace] });
  return { name: "again.json", mimeType: "application/json", buffer: Buffer.from(json) };
}

const MANY = 3000;

/** `MANY` segments, one after the other, each smaller than the one before and with one block. */
function many() {
  const trace = Array.from({ length: MANY }, (_, segment) => {
    const at = { addr: (segment + 1) * 2 ** 34, stream: 0, frames: [] };
    const [size, block] = [(MANY + 1 - segment) * 2 ** 21, 2 ** 20];
    return [
      { ...at, action: "segment_alloc", size },
      { ...at, action: "alloc", size: block },
      { ...at, action: "free_completed", size: block },
      { ...at, action: "segment_free", size },
    ];
  }).flat();
  const json = JSON.stringify({ segments: [], device_traces: [trace] });
  return { name: "many.json", mimeType: "application/json", buffer: Buffer.from(json) };
}

test("of 3,000 segments those in sight have labels, and a selected block shows its row", async ({
  viewer,
  page,
}) => {
  const views = new Views(viewer);
  await views.open(many());
  const pane = await views.main("Segments");
  const box = await views.plot("segments-canvas").box();
  /** Numbers of the rows in sight, derived from their sizes. */
  const seen = async () => {
    const labels = await labelsOf(pane);
    const inSight = labels.filter(
      ({ top, height }) => top + height > box.y && top < box.y + box.height,
    );
    return inSight.map(({ bytes }) => MANY + 1 - bytes / 2 ** 21);
  };
  const from = (first: number) => (rows: number[]) =>
    rows.length > 20 && rows.every((row, at) => row === first + at);
  await expect.poll(async () => from(0)(await seen())).toBe(true);
  await expect(pane.getByTestId("segments-text")).toContainText("3,000 segments");
  expect(await pane.locator(".segment-label").count()).toBeLessThan(100);
  // A selected block scrolls its row into view and makes it four times as high.
  const far = 2000;
  await views.setState({ sel: `0:0x${((far + 1) * 2 ** 34).toString(16)}@${4 * far + 1}` });
  const own = pane.locator(`.segment-label[data-value="${(MANY + 1 - far) * 2 ** 21}"]`);
  await expect(own).toBeInViewport();
  const middle = await seen();
  expect(middle).toEqual(middle.map((_, at) => (middle[0] ?? 0) + at));
  expect(middle).toContain(far);
  const height = async () => (await own.boundingBox())?.height ?? 0;
  await expect.poll(height).toBeGreaterThan(45);
  // Without a selection the row is low again, and the view does not scroll. The row of such a large
  // segment is twice as high as that of 2 MiB.
  await page.keyboard.press("Escape");
  await expect.poll(height).toBeLessThanOrEqual(20.5);
  await expect.poll(async () => from(middle[0] ?? -1)(await seen())).toBe(true);
  // The scroll bar shows the position, and scrolls to the last row.
  const bar = pane.getByTestId("rows-bar");
  const place = () => bar.evaluate(({ scrollTop, scrollHeight }) => scrollTop / scrollHeight);
  // Rows of large segments are higher: a quarter for each factor of four, up to twice as high.
  const height4 = (row: number) =>
    4 + Math.min(4, Math.floor(Math.floor(Math.log2(MANY + 1 - row)) / 2));
  const above = (rows: number) =>
    Array.from({ length: rows }, (_, row) => height4(row)).reduce((sum, one) => sum + one, 0);
  expect(await place()).toBeCloseTo(above(middle[0] ?? 0) / above(MANY), 2);
  await bar.hover();
  await page.mouse.wheel(0, 1e6);
  await expect.poll(async () => (await seen()).at(-1)).toBe(MANY - 1);
  await page.mouse.wheel(0, -1e6);
  await expect.poll(async () => from(0)(await seen())).toBe(true);
});

/** Text and position of the labels below a plot. */
const ticksOf = (pane: Locator) =>
  pane
    .locator(".tick-x")
    .evaluateAll((all) =>
      all.map((tick) => `${tick.textContent} ${getComputedStyle(tick).getPropertyValue("--x")}`),
    );

test("timeline and segments share range and selection", async ({ viewer, page }) => {
  const views = new Views(viewer);
  await views.show(testData(REAL));
  const pane = await views.track();
  await expect(pane.locator(".segment-label").first()).toBeVisible();
  const { peak_event } = deviceOf(REAL).requested_bytes;
  await test.step("one range", async () => {
    const whole = await views.settledRange();
    const same = () =>
      expect
        .poll(async () => {
          const [above, below] = [await ticksOf(views.pane("Timeline")), await ticksOf(pane)];
          return above.length > 1 && above.join() === below.join();
        })
        .toBe(true);
    await same();
    const over = async (testid: string) => {
      const plot = views.plot(testid);
      const { width, height } = await plot.box();
      await plot.moveTo(width * 0.6, height / 2);
    };
    await over("segments-canvas");
    await page.mouse.wheel(0, -480);
    await expect
      .poll(async () => (await views.range()).x1 - (await views.range()).x0)
      .toBeLessThan((whole.x1 - whole.x0) * 0.9);
    const near = await views.settledRange();
    await same();
    await over("timeline-canvas");
    await page.mouse.wheel(0, -480);
    await expect
      .poll(async () => (await views.range()).x1 - (await views.range()).x0)
      .toBeLessThan((near.x1 - near.x0) * 0.9);
    await views.settledRange();
    await same();
    await page.getByTestId("segments-canvas").focus();
    await page.keyboard.press("0");
    await expect.poll(async () => (await views.range()).x1).toBeCloseTo(whole.x1, 1);
    await views.settledRange();
    await same();
  });
  const heightsOf = async () =>
    new Map((await labelsOf(pane)).map(({ address, height }) => [address, height]));
  const plain = await heightsOf();
  await test.step("a click on a block in its segment selects it", async () => {
    const canvas = views.plot("segments-canvas");

    const { segments } = cli("segments", REAL, "--at", String(peak_event));
    const full = new Set(
      segments.filter(({ active, total_size }) => active === total_size).map((one) => one.address),
    );
    const label = (await labelsOf(pane)).find(({ address }) => full.has(address));
    if (!label) throw new Error("no full segment at the peak in sight");
    const scale = await viewer.plot.scale();
    const box = await canvas.box();
    await page.mouse.click(box.x + scale.x(peak_event + 0.5), label.top + label.height / 2);
    await expect.poll(async () => (await viewer.state()).sel).toContain(`0:${label.address}@`);
    await expect(viewer.details.locator("[data-reference]")).toBeVisible();
    const at = (await viewer.state()).at ?? Number.NaN;
    expect(Math.abs(at - peak_event), "the cursor is where the click was").toBeLessThanOrEqual(8);
  });
  await test.step("a block selected in the timeline enlarges the row of its segment", async () => {
    const { segments, blocks } = cli("state", REAL, "--at", String(peak_event));

    await page.keyboard.press("Escape");
    await expect.poll(async () => (await viewer.state()).sel).toBeUndefined();
    // The row that the click enlarged is low again some time after the selection has gone.
    await expect.poll(heightsOf).toEqual(plain);
    const grown = async () =>
      (await labelsOf(pane)).filter(
        ({ address, height }) => height > 1.3 * (plain.get(address) ?? Number.NaN),
      );

    // At the peak, zoomed in so that each event is wide, from the bottom of the stack up.
    await views.zoomTo(peak_event - 20, peak_event + 20);
    await views.settledRange();
    await viewer.chooseAll();
    const scale = await viewer.plot.scale();
    const box = await viewer.plot.box();
    const clicked = new Set<string>();
    for (const share of [0.02, 0.5, 0.95]) {
      const total = blocks.reduce((sum, { bytes }) => sum + bytes, 0);
      const { sel } = await viewer.state();
      await page.mouse.click(box.x + scale.x(peak_event + 0.5), box.y + scale.y(total * share));
      await expect.poll(async () => (await viewer.state()).sel).not.toBe(sel);
      const address = /0:(0x[\da-f]+)@/.exec((await viewer.state()).sel ?? "")?.[1] ?? "";
      expect(blocks.map((block) => block.address)).toContain(address);
      const segment = segments.find((each) =>
        each.blocks.some((block) => block.address === address),
      );
      await expect
        .poll(async () => (await grown()).map((label) => label.address))
        .toEqual([segment?.address]);
      clicked.add(segment?.address ?? "");
    }
    expect(clicked.size, "rows that grew").toBeGreaterThan(1);
    await page.keyboard.press("Escape");
    await expect.poll(async () => (await grown()).length).toBe(0);
  });
});

test("columns beside the rows say what is in use at the cursor, and pools have headers", async ({
  viewer,
  page,
}) => {
  const { views, pane } = await openSegments(viewer, REAL);
  const columns = page.getByTestId("segment-columns");
  const shown = () =>
    columns.locator(".segment-use[data-group=false]").evaluateAll((all) =>
      all.map((line) => {
        const value = (column: string) =>
          Number(line.querySelector(`[data-column=${column}]`)?.getAttribute("data-value"));
        const top = line.getBoundingClientRect().top;
        return { top, used: value("used"), free: value("free"), hole: value("hole") };
      }),
    );
  const { peak_event } = deviceOf(REAL).requested_bytes;
  await test.step("numbers at the peak, then at the cursor", async () => {
    for (const event of [peak_event, 5000]) {
      if (event !== peak_event) await views.cursor(event);
      const { segments } = cli("segments", REAL, "--at", String(event));
      const wanted = new Map(segments.map((segment) => [place(segment), segment]));
      await expect(columns).toContainText(`after #${event.toLocaleString("en")}`);
      const labels = await labelsOf(pane);
      const lines = (await shown()).toSorted((a, b) => a.top - b.top);
      expect(lines.length).toBeGreaterThan(10);
      for (const { top, ...use } of lines) {
        const label = labels.find((one) => Math.abs(one.top - top) < 1);
        const segment = wanted.get(`${label?.address} ${label?.bytes}`);
        expect(use, label?.address).toEqual({
          used: segment?.active,
          free: segment?.free,
          hole: segment?.largest_free,
        });
      }
    }
  });
  await test.step("larger segments have higher rows", async () => {
    // The lowest row in sight may be cut.
    const bySize = (await labelsOf(pane)).slice(0, -1).toSorted((a, b) => a.bytes - b.bytes);
    const [small, large] = [bySize[0], bySize.at(-1)];
    expect(large?.height).toBeGreaterThan(1.5 * (small?.height ?? Number.NaN));
    bySize.slice(1).forEach(({ height, bytes }, index) => {
      expect(height, String(bytes)).toBeGreaterThanOrEqual((bySize[index]?.height ?? 0) - 1.5);
    });
  });
  await test.step("a number takes one line", async () => {
    const before = page.viewportSize();
    await page.setViewportSize({ width: 1000, height: 700 });
    const number = columns.locator(".segment-use [data-column=used]").first();
    await expect(number).toBeVisible();
    const { width, lines } = await number.evaluate((one) => {
      const text = document.createRange();
      text.selectNodeContents(one);
      return { width: one.scrollWidth - one.clientWidth, lines: text.getClientRects().length };
    });
    expect({ width, lines }).toEqual({ width: 0, lines: 1 });
    if (before) await page.setViewportSize(before);
  });
  await test.step("a pool's header sums its segments", async () => {
    await page.getByTestId("segment-sort").selectOption("pool");
    const header = pane.locator(".segment-group").first();
    await expect(header).toContainText(/^default pool, default stream, \d+ segments?$/);
    const group = columns.locator(".segment-use[data-group=true]").first();
    const { segments } = cli("segments", REAL, "--at", "5000");
    const used = segments.reduce((sum, { active }) => sum + active, 0);
    await expect(group.locator("[data-column=used]")).toHaveAttribute("data-value", String(used));
  });
  await test.step("the drawer has the width of the timeline", async () => {
    await views.main("Timeline");
    await views.track();
    await expect(columns).toBeHidden();
    const [above, below] = [
      await viewer.canvas.boundingBox(),
      await page.getByTestId("segments-canvas").boundingBox(),
    ];
    expect(below?.width).toBe(above?.width);
  });
});

test("lanes show the largest free piece of each pool over time", async ({ viewer, page }) => {
  const views = new Views(viewer);
  await views.show(testData(REAL));
  await page.getByRole("button", { name: "Largest free block" }).click();
  const lanes = page.getByTestId("free-lane");
  const { events } = deviceOf(REAL);
  const { curve } = cli("segments", REAL, "--curve", String(events + 1));
  const wanted = curve?.largest_free ?? [];
  expect(wanted.length).toBeGreaterThan(1);
  await expect(lanes).toHaveCount(Math.min(4, wanted.length));
  // The order and the maxima are the program's.
  for (const [index, { most, segment_type }] of wanted.slice(0, 4).entries()) {
    const lane = lanes.nth(index);
    await expect(lane).toHaveAttribute("title", new RegExp(`${segment_type} segments: at most `));
    await expect(lane).toHaveAttribute("data-value", String(most));
  }
  // The values are those after the cursor's event.
  for (const event of [5000, 6000]) {
    await views.cursor(event);
    for (const [index, { bytes }] of wanted.slice(0, 4).entries())
      await expect(lanes.nth(index).locator("figcaption")).toHaveAttribute(
        "data-value",
        String(bytes[curve?.events.indexOf(event) ?? -1]),
      );
  }
  // The lanes have the x axis of the timeline.
  const path = () => lanes.first().locator("svg").getAttribute("viewBox");
  const before = await path();
  await page.getByTestId("timeline-canvas").hover();
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, -400);
  await page.keyboard.up("Control");
  await expect.poll(path).not.toBe(before);
});
