// Segments: a row each, in step with the timeline above them, and full as the command line says.

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

/** The labels in sight, from the top. */
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

test("segments that were given back have rows too", async ({ viewer }) => {
  const file = "scenarios/f16.pickle";
  const events = deviceOf(file).events;
  const ever = new Set<string>();
  for (let event = -1; event < events; event += 1) {
    for (const segment of cli("segments", file, "--event", String(event)).segments)
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

test("the rows are the segments of the command line, in the order that is chosen", async ({
  viewer,
  page,
}) => {
  expect(Object.keys(deviceOf(REAL).actions), "none is given back in this file").not.toContain(
    "segment_free",
  );
  const { segments } = cli("segments", REAL, "--at", "end");
  const { views, pane } = await openSegments(viewer, REAL);
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

  await page.getByTestId("segment-sort").selectOption("occupancy");
  const seen = new Set<string>();
  for (const event of [2000, 3843]) {
    const there = cli("segments", REAL, "--event", String(event)).segments;
    const parts = new Map(
      there.map((segment) => [segment.address, segment.active / segment.total_size]),
    );
    await views.cursor(event);
    const first = async () =>
      (await labelsOf(pane)).map(({ address }) => address).slice(0, there.length);
    const inOrder = async () => (await first()).map((address) => parts.get(address) ?? Number.NaN);
    await expect
      .poll(inOrder, `the emptiest after #${event}`)
      .toEqual([...parts.values()].toSorted((a, b) => a - b));
    seen.add((await first()).join());
  }
  expect(seen.size, "another order at another event").toBe(2);
});

test("a row's label shows the segment as it is at the cursor", async ({ viewer, page }) => {
  const { views, pane } = await openSegments(viewer, REAL);
  const fact = (key: string) => views.fact(key);
  for (const event of [400, 3843]) {
    await views.cursor(event);
    const { segments } = cli("segments", REAL, "--event", String(event));
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

test("a block that is selected in the timeline makes its segment's row grow", async ({
  viewer,
  page,
}) => {
  const { peak_event } = deviceOf(REAL).requested_bytes;
  const { segments, blocks } = cli("state", REAL, "--event", String(peak_event));
  const views = new Views(viewer);
  await views.show(testData(REAL));
  const pane = await views.drawer("Segments");
  await expect(pane.locator(".segment-label").first()).toBeVisible();
  const before = await labelsOf(pane);
  const plain = before[0]?.height ?? Number.NaN;
  for (const { height } of before) expect(height).toBeLessThanOrEqual(plain + 1);
  const grown = async () => (await labelsOf(pane)).filter(({ height }) => height > 1.5 * plain);

  // At the peak, from the bottom of the stack up, where each event is wide.
  await views.zoomTo(peak_event - 20, peak_event + 20);
  await views.settledRange();
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
    const segment = segments.find((each) => each.blocks.some((block) => block.address === address));
    await expect
      .poll(async () => (await grown()).map((label) => label.address))
      .toEqual([segment?.address]);
    clicked.add(segment?.address ?? "");
  }
  expect(clicked.size, "rows that grew").toBeGreaterThan(1);
  await page.keyboard.press("Escape");
  await expect.poll(async () => (await grown()).length).toBe(0);
});

test("a click on a block in its segment selects it everywhere", async ({ viewer, page }) => {
  const { peak_event } = deviceOf(REAL).requested_bytes;
  const views = new Views(viewer);
  await views.show(testData(REAL));
  const pane = await views.drawer("Segments");
  const canvas = views.plot("segments-canvas");
  await expect(pane.locator(".segment-label").first()).toBeVisible();
  const { segments } = cli("segments", REAL, "--event", String(peak_event));
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

/**
 * One place that is reserved and given back so many times, four events a turn, with a block of one
 * more MiB in it each time.
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

test("segments at one place share a row, and its card is of the one at the cursor", async ({
  viewer,
  page,
}) => {
  const views = new Views(viewer);
  await views.show(again(5));
  const pane = await views.drawer("Segments");
  await expect(pane.locator(".segment-label")).toHaveCount(1);
  await expect(pane.getByTestId("segments-text")).toContainText("5 segments in 1 row, ");
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
    if (active === null) await expect(views.fact("now")).toHaveText("given back already");
    else
      await expect(views.fact("active_bytes")).toHaveAttribute(
        "data-value",
        String(active * 2 ** 20),
      );
  };
  await shows(1, 2);
  // It goes with the cursor, also where nothing is reserved.
  await views.cursor(9);
  await shows(3, 4);
  await views.cursor(10);
  await shows(3, 0);
  await views.cursor(11);
  await shows(3, null);
  // A click on what is free takes the cursor along: to the fourth, in the upper half, before its
  // block is there.
  const box = await viewer.plot.box();
  const scale = await viewer.plot.scale();
  const row = await pane.locator(".segment-label").boundingBox();
  if (!row) throw new Error("the row is in sight");
  await page.mouse.click(box.x + scale.x(12.5), row.y + row.height * 0.4);
  await shows(4, 0);
  // Once it is closed, the cursor does not bring it back.
  await page.keyboard.press("Escape");
  await expect(card).toHaveCount(0);
  await views.cursor(17);
  await expect(card).toHaveCount(0);
});

const MANY = 3000;

/**
 * So many segments that come and go, one after the other and each smaller than the one before, with
 * a block in each.
 */
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

test("of thousands of segments those near the view have labels, and a selected block brings its own into view", async ({
  viewer,
  page,
}) => {
  const views = new Views(viewer);
  await views.open(many());
  const pane = await views.main("Segments");
  const box = await views.plot("segments-canvas").box();
  /** Which rows are in sight: each is as large as its place says. */
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
  // With the block of a segment far down its row comes, four times as high.
  const far = 2000;
  await views.setState({ sel: `0:0x${((far + 1) * 2 ** 34).toString(16)}@${4 * far + 1}` });
  const own = pane.locator(`.segment-label[data-value="${(MANY + 1 - far) * 2 ** 21}"]`);
  await expect(own).toBeInViewport();
  const middle = await seen();
  expect(middle).toEqual(middle.map((_, at) => (middle[0] ?? 0) + at));
  expect(middle).toContain(far);
  const height = async () => (await own.boundingBox())?.height ?? 0;
  await expect.poll(height).toBeGreaterThan(45);
  // It is low again, and nothing has moved, when nothing is selected.
  await page.keyboard.press("Escape");
  await expect.poll(height).toBeLessThan(20);
  await expect.poll(async () => from(middle[0] ?? -1)(await seen())).toBe(true);
  // The bar beside the rows says where they are, and takes them to the last one.
  const bar = pane.getByTestId("rows-bar");
  const place = () => bar.evaluate(({ scrollTop, scrollHeight }) => scrollTop / scrollHeight);
  expect(await place()).toBeCloseTo((middle[0] ?? 0) / MANY, 2);
  await bar.hover();
  await page.mouse.wheel(0, 1e6);
  await expect.poll(async () => (await seen()).at(-1)).toBe(MANY - 1);
  await page.mouse.wheel(0, -1e6);
  await expect.poll(async () => from(0)(await seen())).toBe(true);
});

/** Where the labels below a plot are, and what they say. */
const ticksOf = (pane: Locator) =>
  pane
    .locator(".tick-x")
    .evaluateAll((all) =>
      all.map((tick) => `${tick.textContent} ${getComputedStyle(tick).getPropertyValue("--x")}`),
    );

test("the timeline and the segments have one x range", async ({ viewer, page }) => {
  const views = new Views(viewer);
  await views.show(testData(REAL));
  const segments = await views.drawer("Segments");
  const whole = await views.settledRange();
  const same = () =>
    expect
      .poll(async () => {
        const [above, below] = [await ticksOf(views.pane("Timeline")), await ticksOf(segments)];
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
