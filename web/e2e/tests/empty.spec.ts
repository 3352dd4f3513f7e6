// Files without history, device, allocations or times: every view opens and says why it is empty.
// Files with two devices: every view follows the device that is selected.

import { blocksOf, cli, deviceOf, devicesOf, referenceOf } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";
import { type Main, type SheetTab, Views, valuesOf } from "../lib/views.js";
import { select } from "../lib/work.js";

const MAIN: readonly Main[] = ["Summary", "Segments", "Flame", "Timeline"];
const SHEETS: readonly SheetTab[] = ["Blocks", "Events"];

const ascending = (numbers: number[]) => numbers.toSorted((a, b) => a - b);

test("a file without history says so, and the other views show its final state", async ({
  viewer,
}) => {
  const views = new Views(viewer);
  const file = "recorded/misc/norecord.pickle";
  const summary = deviceOf(file);

  await views.open(testData(file));
  await test.step("numbers and settings", async () => {
    expect(summary.events).toBe(0);
    await views.main("Timeline");
    await expect(views.pane("Timeline")).toContainText(/no history was recorded/i);
    await expect(viewer.peak).toHaveAttribute("data-value", String(summary.requested_bytes.peak));
    const flame = await views.main("Flame");
    await expect(flame.getByTestId("flame-total")).toHaveAttribute(
      "data-value",
      String(cli("flame", file).total),
    );
    await expect(await views.main("Summary")).toContainText("in use at the end");
    await views.sheet("Blocks");
    await views.table("blocks").expectTotal(cli("blocks", file).total);
    const recording = await views.main("Summary");
    const provenance = cli("info", file).files[0]?.devices[0]?.provenance;
    await expect(recording.locator(".row[data-key=recorded] dd")).toHaveText(provenance ?? "");
  });
  await test.step("segments", async () => {
    const { segments } = cli("segments", file);
    expect(segments.length).toBeGreaterThan(0);

    const pane = await views.main("Segments");
    await expect(pane.getByTestId("segments-text")).toContainText(`${segments.length} segment`);
    const labels = pane.locator(".segment-label");
    await expect(labels).toHaveCount(segments.length);
    expect(ascending(await valuesOf(labels))).toEqual(
      ascending(segments.map(({ total_size }) => total_size)),
    );
  });
  await test.step("events", async () => {
    const pane = await views.sheet("Events");
    await views.table("events").expectTotal(0);
    await expect(pane).toContainText(/no (history|events)/i);
  });
});

test("a file without a device: every view opens and says so", async ({ viewer }) => {
  const views = new Views(viewer);
  await views.open(testData("recorded/misc/nothing.pickle"));
  for (const [name, place] of [
    ["Summary", "summary"],
    ["Code", "code"],
    ["Allocator", "allocator"],
    ["Timeline", "timeline"],
  ] as const) {
    await viewer.place(name);
    const shown = viewer.page.getByTestId(`place-${place}`);
    await expect.soft(shown, name).toContainText(/is empty|nothing was/i, { timeout: 3000 });
  }
  // Without a timeline there is nothing to list below it, and no control.
  await viewer.place("Timeline");
  await expect(views.pane("Timeline").locator("button, select, input")).toHaveCount(0);
  await expect(viewer.page.getByRole("button", { name: "Lists" })).toHaveCount(0);
});

test("files without allocations, without times or with odd content open in every view", async ({
  viewer,
  page,
}) => {
  const views = new Views(viewer);
  await test.step("no allocation", async () => {
    const file = "scenarios/f17.pickle";
    const summary = deviceOf(file);
    expect(cli("blocks", file).total).toBe(0);

    await views.open(testData(file));
    await page.keyboard.press("p");
    await views.expectCursor(summary.requested_bytes.peak_event);
    await views.expectBands(cli("state", file, "--at", "peak"));
    const flame = await views.main("Flame");
    await expect(flame).toContainText("No allocations here.");
    await views.sheet("Blocks");
    await views.table("blocks").expectTotal(0);
    await expect(page.getByTestId("blocks-text")).toContainText("0 blocks");
    await views.sheet("Events");
    await views.table("events").expectTotal(summary.events);
  });
  await test.step("no times: every view counts in events", async () => {
    const file = "edge/no_time.pickle";
    await page.keyboard.press("2");
    const summary = deviceOf(file);
    await views.open(testData(file));
    const flame = await views.main("Flame");
    await flame.getByRole("button", { name: "bytes × time" }).click();
    await expect(flame.getByTestId("flame-total")).toHaveAttribute(
      "data-value",
      String(cli("flame", file, "--weight", "byte-seconds").total),
    );
    await expect(flame.getByTestId("flame-total")).toContainText("events of life");
    await views.sheet("Events");
    await views.table("events").expectTotal(summary.events);
    await expect
      .poll(async () => new Set(await views.table("events").texts("time")))
      .toEqual(new Set([""]));
    await views.sheet("Blocks");
    await expect
      .poll(async () => (await views.table("blocks").texts("lifetime"))[0])
      .toMatch(/^[\d,]+ events?$/);
    const settings = await views.main("Summary");
    await expect(settings.locator(".row[data-key=clock] dd")).toContainText("none");
    await page.keyboard.press("x");
    expect((await viewer.state()).axis).toBe("event");
    await expect(page.getByRole("button", { name: "time", exact: true })).toHaveCount(0);
  });
  await test.step("unusual content", async () => {
    for (const file of [
      "edge/trace_only.pickle",
      "edge/state_only.pickle",
      "edge/kineto.pickle",
      "edge/unknown.pickle",
    ]) {
      const summary = deviceOf(file);
      await views.open(testData(file));
      await expect(viewer.peak).toHaveAttribute("data-value", String(summary.requested_bytes.peak));
      for (const tab of MAIN.slice(0, 3)) await expect(await views.main(tab)).toBeVisible();
      for (const tab of SHEETS) await expect(await views.sheet(tab)).toBeVisible();
      await views.table("events").expectTotal(summary.events);
      await views.sheet("Blocks");
      await views.table("blocks").expectTotal(cli("blocks", file).total);
    }
  });
});

test("another device is another trace in every view, also where both use one address", async ({
  viewer,
  page,
}) => {
  const file = "recorded/t26/two_devices.pickle.gz";
  const views = new Views(viewer);
  await views.open(testData(file));
  await viewer.plot.drawn();
  const flame = await views.main("Flame");
  const seen = new Set<string>();
  for (const device of [1, 0]) {
    const of = ["--device", String(device)];
    const summary = deviceOf(file, device);
    await viewer.device.selectOption(String(device));
    await expect.poll(async () => (await viewer.state()).device).toBe(device);
    expect((await viewer.state()).at, "the cursor goes with its trace").toBeUndefined();
    await expect(viewer.peak).toHaveAttribute("data-value", String(summary.requested_bytes.peak));
    await expect(flame.getByTestId("flame-total")).toHaveAttribute(
      "data-value",
      String(cli("flame", file, ...of).total),
    );
    await views.sheet("Blocks");
    const { blocks, total } = cli("blocks", file, "--sort", "size", ...of);
    await views.table("blocks").expectTotal(total);
    const [first] = blocks;
    await expect
      .poll(async () => (await views.table("blocks").values("size"))[0])
      .toBe(first?.bytes);
    await views.sheet("Events");
    await views.table("events").expectTotal(summary.events);
    const segments = await views.track();
    const ever = Object.entries(summary.actions).find(
      ([action]) => action === "segment_alloc",
    )?.[1];
    await expect(segments.getByTestId("segments-text")).toContainText(`${ever} segments`);
    const settings = await views.main("Summary");
    await expect(settings.locator(".row[data-key=events] dd")).toHaveAttribute(
      "data-value",
      String(summary.events),
    );
    await views.main("Flame");
    await page.keyboard.press("p");
    await views.expectCursor(summary.requested_bytes.peak_event);
    await views.main("Timeline");
    await views.expectBands(cli("state", file, "--at", "peak", ...of));
    seen.add(`${total} ${summary.events} ${summary.requested_bytes.peak}`);
  }
  expect(seen.size, "two different traces").toBe(2);
  // In this file both devices use the address 0x1000.
  const same = "edge/two_devices.pickle";
  await views.open(testData(same));
  for (const { device, requested_bytes } of devicesOf(same)) {
    await viewer.device.selectOption(String(device));
    await expect(viewer.peak).toHaveAttribute("data-value", String(requested_bytes.peak));
    const block = blocksOf(same, "--device", String(device)).find(
      ({ address }) => address === "0x1000",
    );
    if (!block) throw new Error(`no block at 0x1000 on device ${device}`);
    await select(viewer, referenceOf(block, device));
    await expect(viewer.details.locator("h2[data-value]")).toHaveAttribute(
      "data-value",
      String(block.bytes),
    );
  }
});
