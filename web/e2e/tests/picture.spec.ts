// The picture of the timeline: lines, legend, steps, reserved bytes, and allocations that failed.

import { readFileSync } from "node:fs";
import { cli, deviceOf, stateOf } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { life, made } from "../lib/made.js";
import { expect, test } from "../lib/test.js";
import type { Viewer } from "../lib/viewer.js";
import { Views } from "../lib/views.js";
import { work } from "../lib/work.js";

const SMALL = "recorded/t26/gpt_small.pickle.gz";
const SEED = "recorded/t26/linear_seed_python.pickle";
const DWARFED = "recorded/ranks_fsdp/rank3_memory_snapshot.pickle.gz";
const OOM = "recorded/t26/oom_observer.pickle.gz";

async function openTimeline(viewer: Viewer, file: string): Promise<Views> {
  const views = new Views(viewer);
  await views.show(testData(file));
  await views.setState({ sheet: "none" });
  await viewer.plot.drawn();
  return views;
}

test("the lines of the bands never paint over the stack", async ({ viewer }) => {
  const views = await openTimeline(viewer, SEED);
  const lines = (["reserved", "active", "allocated"] as const).map((name) => views.line(name));
  const pressed = () => Promise.all(lines.map((line) => line.getAttribute("aria-pressed")));
  expect(await pressed(), "reserved bytes only").toEqual(["true", "false", "false"]);
  await viewer.canvas.hover({ position: { x: 5, y: 5 } });
  await viewer.plot.drawn();
  const without = await viewer.plot.picture();
  // The same scale, and two lines more.
  for (const line of lines.slice(1)) await line.click();
  expect(await pressed()).toEqual(["true", "true", "true"]);
  const scale = await viewer.plot.scale();
  const bottom = Math.floor(scale.bottom) - 1;
  // In the middle of an event there is no jump: two lines with their casings, as high as they are
  // at any zoom.
  const changed = async () => {
    const picture = await viewer.plot.picture();
    const events = Array.from({ length: 30 }, (_, event) => Math.round(scale.x(event + 0.5)));
    return events.map((x) => {
      let rows = 0;
      for (let y = 12; y < bottom; y += 1)
        if (picture.differs(x, y, [without.color(x, y)])) rows += 1;
      return rows;
    });
  };
  await expect.poll(async () => Math.max(...(await changed()))).toBeGreaterThan(1);
  const rows = await changed();
  expect(Math.max(...rows), `changed rows of each column: ${rows}`).toBeLessThanOrEqual(2 * 5);
});

test("the legend names everything in view, with bytes at the cursor, and isolates", async ({
  viewer,
  page,
}) => {
  const views = await openTimeline(viewer, SMALL);
  const legend = page.getByTestId("legend");
  const bytes = (category: string) =>
    legend.locator(`[data-term="category:${category}"] .legend-bytes`);
  const { peak_event: peak } = deviceOf(SMALL).requested_bytes;
  await test.step("at the peak, also what is not live there", async () => {
    for (const { category, bytes: at } of cli("peak", SMALL).categories)
      await expect(bytes(category), category).toHaveAttribute("data-value", String(at));
    await expect(bytes("gradient")).toBeVisible();
    await expect(page.locator(".legend-at")).toContainText(`#${peak.toLocaleString("en")}`);
  });
  await test.step("at the cursor", async () => {
    const event = Math.floor(peak / 2);
    await views.cursor(event);
    for (const { category, bytes: at } of stateOf(SMALL, event).categories)
      await expect(bytes(category), category).toHaveAttribute("data-value", String(at));
    await expect(page.locator(".legend-at")).toContainText(`at #${event.toLocaleString("en")}`);
  });
  await test.step("only colors in view", async () => {
    const all = await legend.getByRole("listitem").count();
    await views.zoomTo(0, 4);
    await expect.poll(() => legend.getByRole("listitem").count()).toBeLessThan(all);
    await page.keyboard.press("0");
    await expect(legend.getByRole("listitem")).toHaveCount(all);
  });
  await test.step("a click isolates, another entry replaces, the same clears", async () => {
    const entry = (category: string) =>
      legend.locator(`[data-term="category:${category}"]`).getByRole("button");
    await entry("activation").click();
    await expect.poll(async () => (await viewer.state()).filter).toBe("category:activation");
    await expect(entry("activation")).toHaveAttribute("aria-pressed", "true");
    await entry("parameter").click();
    await expect.poll(async () => (await viewer.state()).filter).toBe("category:parameter");
    await expect(page.locator('.filter-chip[data-term="category:parameter"]')).toBeVisible();
    await entry("parameter").click();
    await expect.poll(async () => (await viewer.state()).filter).toBeUndefined();
  });
});

test("call stacks, streams and segments have a list, size and age a ramp", async ({
  viewer,
  page,
}) => {
  await openTimeline(viewer, SMALL);
  const legend = page.getByTestId("legend");
  const color = (by: string) => page.getByTestId("color-by").selectOption(by);
  await color("stack");
  await expect(legend.getByRole("listitem")).toHaveCount(11);
  const { total } = cli("peak", SMALL);
  const values = await legend
    .locator("[data-value]")
    .evaluateAll((all) => all.map((one) => Number(one.getAttribute("data-value"))));
  expect(values.reduce((sum, value) => sum + value, 0)).toBe(total);
  const swatches = await legend
    .locator(".swatch")
    .evaluateAll((all) => all.map((one) => getComputedStyle(one).backgroundColor));
  expect(new Set(swatches).size, "distinct colors").toBe(11);
  for (const by of ["size", "age"]) {
    await color(by);
    await expect(legend.locator(".ramp")).toBeVisible();
  }
  await color("stream");
  await expect(legend.getByRole("listitem")).toHaveCount(1);
  await color("segment");
  await expect(legend.getByRole("listitem").first()).toContainText(/^0x[0-9a-f_]+/);
});

test("reserved bytes that dwarf the stack have a strip of their own", async ({ viewer, page }) => {
  const views = await openTimeline(viewer, DWARFED);
  const { requested_bytes, reserved_bytes } = deviceOf(DWARFED);
  expect(reserved_bytes.peak).toBeGreaterThan(1.6 * requested_bytes.peak);
  const lane = page.getByTestId("reserved-lane");
  await expect(lane.locator("figcaption")).toHaveAttribute(
    "data-value",
    String(reserved_bytes.peak),
  );
  // The stack has nearly the whole height of the plot.
  const scale = await viewer.plot.scale();
  const share = (scale.bottom - scale.y(requested_bytes.peak)) / scale.bottom;
  expect(share).toBeGreaterThan(0.85);
  const [strip, plot] = [await lane.boundingBox(), await viewer.plot.box()];
  expect((strip?.y ?? 0) + (strip?.height ?? 0)).toBeLessThanOrEqual(plot.y + 1);
  await views.line("reserved").click();
  await expect(lane).toHaveCount(0);
  // Where they do not, they are a line over the stack.
  await views.open(testData(SMALL));
  await views.line("reserved").click();
  await viewer.plot.drawn();
  await expect(lane).toHaveCount(0);
});

test("steps are a lane above the plot, and every second step has another ground", async ({
  viewer,
  page,
}) => {
  await openTimeline(viewer, DWARFED);
  const steps = page.locator('.phases .track[data-phase="step"]');
  const count = cli("info", DWARFED).files[0]?.devices[0]?.steps ?? 0;
  expect(count).toBeGreaterThan(3);
  await expect.poll(() => steps.count()).toBeGreaterThanOrEqual(count);
  await expect(steps.nth(1)).toHaveText("step 1");
  const box = await viewer.plot.box();
  const picture = await viewer.plot.picture();
  const grounds: string[] = [];
  for (let step = 0; step < count; step += 1) {
    const place = await steps.nth(step).boundingBox();
    if (place === null) throw new Error(`step ${step} is not shown`);
    expect(place.y + place.height, "above the plot").toBeLessThanOrEqual(box.y + 1);
    const x = Math.round(place.x + place.width - 6 - box.x);
    grounds.push(String(picture.color(x, 14)));
  }
  const [even, odd] = grounds;
  expect(even).not.toBe(odd);
  expect(grounds).toEqual(grounds.map((_, step) => (step % 2 === 0 ? even : odd)));
});

test("a failed allocation lies on the stack, below what PyTorch could have", async ({ viewer }) => {
  const views = await openTimeline(viewer, OOM);
  const oom = deviceOf(OOM).ooms[0];
  if (!oom) throw new Error("no allocation failed");
  const state = stateOf(OOM, oom.event);
  const finding = cli("diagnose", OOM, "--all").findings.find(({ kind }) => kind === "oom");
  const pane = views.pane("Timeline");
  const request = pane.locator(".mark[data-kind=request]");
  await expect(request).toBeVisible();
  const bytes = /asked for ([\d.]+) MiB/.exec((await request.textContent()) ?? "")?.[1];
  expect(finding?.text).toContain(`${bytes} MiB`);
  const [scale, box, place] = [
    await viewer.plot.scale(),
    await viewer.plot.box(),
    await request.boundingBox(),
  ];
  if (place === null) throw new Error("the request is not drawn");
  const high = state.requested_bytes + Number(bytes) * 2 ** 20;
  expect(Math.abs(place.y + place.height - box.y - scale.y(state.requested_bytes))).toBeLessThan(2);
  expect(Math.abs(place.y - box.y - scale.y(high))).toBeLessThan(2);
  expect(Math.abs(place.x + place.width - box.x - scale.x(oom.event))).toBeLessThan(3);
  // The label of the peak gives way.
  const [asked, peak] = [request.locator(".mark-text"), pane.locator(".peak-mark")];
  if (await peak.isVisible()) {
    const [one, other] = [await asked.boundingBox(), await peak.boundingBox()];
    if (!one || !other) throw new Error("no labels");
    const covers = ([a, b]: [typeof one, typeof one]) =>
      a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
    expect(covers([one, other]) || covers([place, other])).toBe(false);
  }
  const capacity = pane.locator(".mark[data-kind=capacity]");
  await expect(capacity).toContainText("available to PyTorch");
  const line = await capacity.boundingBox();
  // Reserved bytes, and what the driver had left.
  const known = cli("what-if", OOM).calibration?.capacity.bytes;
  if (!known) throw new Error("the file does not show the capacity");
  expect(Math.abs((line?.y ?? 0) - box.y - scale.y(known))).toBeLessThan(2);
  await test.step("a given size replaces it", async () => {
    await new Views(viewer).gpu("8");
    await expect(capacity).toHaveText("GPU memory 8.00 GiB");
  });
});

test("the time axis leaves out start-up and idle times, and keeps positions exact", async ({
  viewer,
  page,
}) => {
  // Two bursts of 100 blocks of 1 MiB, after 600 ms of start-up and with 300 ms between them.
  const MIB = 2 ** 20;
  const burst = (first: number, from: number) =>
    Array.from({ length: 100 }, (_, i) =>
      life((first + i) * 2 * MIB, MIB, from + i * 100, 925_000, `block${first + i}`),
    ).flat();
  const events = [...life(2 * MIB, 512, 0, 925_000), ...burst(10, 600_000), ...burst(200, 910_000)];
  await work(viewer, made("bursts.json", events, []));
  await page.evaluate(() => window.vramscope.setState({ sheet: "none", axis: "time" }));
  await expect.poll(async () => (await viewer.state()).axis).toBe("time");
  const breaks = page.locator(".mark[data-kind=break]");
  await expect(breaks).toHaveCount(2);
  // The second block is more than a hundredth of the peak.
  await expect(breaks.nth(0)).toHaveText("600 ms");
  await expect(breaks.nth(1)).toHaveText("300 ms");
  await viewer.plot.drawn();
  const box = await viewer.plot.box();
  const [start, gap] = [await breaks.nth(0).boundingBox(), await breaks.nth(1).boundingBox()];
  if (!start || !gap) throw new Error("the breaks are not shown");
  expect((start.width + gap.width) / box.width).toBeLessThan(0.1);
  // Each block is where its time says.
  const first = start.x + start.width;
  const second = gap.x + gap.width;
  const pixels = (gap.x - first) / 9800;
  const { y } = await viewer.plot.scale();
  for (const [left, shown, from, below] of [
    [first, 100, 10, 0],
    [second, 0, 200, 100],
  ] as const)
    for (const block of [10, 50, 90]) {
      const at = await page.evaluate(
        ([px = 0, py = 0]) => window.vramscope.pick("timeline", px, py),
        [left + (block * 100 + 50 - shown) * pixels - box.x, y((below + block + 0.5) * MIB)],
      );
      const address = ((from + block) * 2 * MIB).toString(16);
      expect(at?.reference, `block ${block}`).toContain(`0x${address}@`);
    }
  // The labels on both sides of the gap are the real times.
  const ticks = await page
    .getByTestId("view-timeline")
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
  for (const [ms, x] of ticks) {
    const [from, left] = ms > 700 ? [910, second] : [600.1, first];
    const wanted = left - box.x + (ms - from) * 1000 * pixels;
    expect(Math.abs(x - wanted), `${ms} ms`).toBeLessThan(3);
  }
  expect(ticks.some(([ms]) => ms >= 910) && ticks.some(([ms]) => ms < 700)).toBe(true);

  // A saved picture marks the breaks where the page does.
  const download = page.waitForEvent("download");
  await page.getByTestId("share").click();
  await page.locator(".menu-item:visible", { hasText: "Picture of the timeline, SVG" }).click();
  const svg = readFileSync(await (await download).path(), "utf8");
  const saved = [...svg.matchAll(/<g class="break"><rect x="([\d.]+)".*? width="([\d.]+)"/gs)];
  const [one, other] = saved.map(([, x, width]) => ({ x: Number(x), width: Number(width) }));
  if (!one || !other) throw new Error("no breaks in the picture");
  expect(saved).toHaveLength(2);
  expect(Math.abs(other.x - one.x - (gap.x - start.x))).toBeLessThan(2);
  expect(Math.abs(one.width - start.width)).toBeLessThan(2);
  expect(Math.abs(other.width - gap.width)).toBeLessThan(2);
  const texts = svg
    .split('<g class="break">')
    .slice(1)
    .map((part) => />([^<>]+)<\/text>/.exec(part)?.[1]);
  expect(texts).toEqual(["600 ms", "300 ms"]);
});
