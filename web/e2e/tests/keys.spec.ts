// Long because every key of the sheet has a test of its own.
// Every key of the sheet does what the sheet says. The last test reads the sheet and asks whether each of its keys is
// among those tested here.

import type { Locator, Page } from "@playwright/test";
import { renamed, testData } from "../lib/data.js";
import { anomaliesOf, blocksOf, type CliBlock, deviceOf, referenceOf, stateOf } from "../lib/reports.js";
import { expect, test } from "../lib/test.js";
import type { Viewer } from "../lib/viewer.js";
import {
  alone,
  answering,
  bandOf,
  cursorOf,
  drag,
  expectCursor,
  expectPlace,
  hoverAt,
  inside,
  marks,
  pane,
  rangeOf,
  restedRange,
  select,
  selectedOf,
  still,
  widthOf,
  work,
} from "../lib/work.js";

const REAL = testData("recorded/t26/gpt_small.pickle.gz");
const OOMS = testData("recorded/oom_expandable.pickle.gz");
const GROWS = testData("recorded/gpt_leak.pickle.gz");
const LATE = testData("recorded/gpt_late.pickle.gz");

// Small, since it is drawn in software.
test.use({ viewport: { width: 1100, height: 700 } });

/** Keys as the sheet prints them, of all tests in this file; and those of tables and tabs (access.spec), of the flame graph. */
const TESTED = new Set<string>(["↑ ↓", "← →", "Backspace"]);

type Body = (hands: { viewer: Viewer; page: Page }) => Promise<void>;

/** A test of these keys of the sheet. */
function keys(shown: string[], name: string, body: Body): void {
  for (const key of shown) TESTED.add(key);
  test(name, async ({ viewer, page }) => body({ viewer, page }));
}

/** Holds a key, with Shift where it is told, until something has come of it. */
async function hold(page: Page, key: string, done: () => Promise<boolean>): Promise<void> {
  const [name = "", shift] = key.split("+").toReversed();
  if (shift) await page.keyboard.down(shift);
  await page.keyboard.down(name);
  await expect.poll(done, { intervals: [30] }).toBe(true);
  await page.keyboard.up(name);
  if (shift) await page.keyboard.up(shift);
}

/** The palette, once it has the keyboard. */
async function openPalette(page: Page): Promise<Locator> {
  const palette = page.getByRole("dialog", { name: "Commands" });
  await page.keyboard.press(">");
  await expect(palette.getByRole("combobox")).toBeFocused();
  return palette;
}

/** A block that is neither short nor the whole trace, so that there is something to fit. */
function middling(
  blocks: CliBlock[],
  events: number,
): CliBlock & { alloc_event: number; free_completed_event: number } {
  for (const block of blocks) {
    const { alloc_event, free_completed_event } = block;
    if (alloc_event === null || free_completed_event === null) continue;
    const life = free_completed_event - alloc_event;
    if (life > events / 20 && life < events / 4) return { ...block, alloc_event, free_completed_event };
  }
  throw new Error("no such block");
}

/** How bytes lie on the screen: pixels a MiB, and where zero is. */
async function heights(viewer: Viewer): Promise<{ zoom: number; zero: number }> {
  const { y } = await viewer.plot.scale();
  return { zoom: y(0) - y(1 << 20), zero: y(0) };
}

keys(["W", "+", "S", "-"], "W and + zoom in at the pointer, S and - out", async ({ viewer, page }) => {
  await work(viewer, REAL);
  await alone(viewer);
  const whole = await restedRange(viewer);
  const at = await hoverAt(viewer, 0.25);
  const { left } = await viewer.plot.scale();
  const { width } = await viewer.plot.box();
  const slot = ({ x0, x1 }: typeof whole) => x0 + ((x1 - x0) * (at.x - left)) / (width - left);
  for (const [closer, further] of [
    ["w", "s"],
    ["Shift+Equal", "-"],
  ] as const) {
    const before = await restedRange(viewer);
    await hold(page, closer, async () => widthOf(await rangeOf(viewer)) < widthOf(before) * 0.8);
    const near = await restedRange(viewer);
    expect(Math.abs(slot(near) - slot(before)), `${closer}: what is under the pointer stays`).toBeLessThan(
      widthOf(whole) * 0.02,
    );
    await hold(page, further, async () => widthOf(await rangeOf(viewer)) > widthOf(near) * 1.1);
    await restedRange(viewer);
  }
});

keys(["A", "D", "←", "→"], "A and the arrow pan left, D and its arrow right", async ({ viewer, page }) => {
  await work(viewer, REAL);
  await alone(viewer);
  await page.evaluate(() => window.memstrata.setState({ x0: 2000, x1: 3000 }));
  await expect.poll(async () => (await rangeOf(viewer)).x0).toBe(2000);
  await viewer.canvas.focus();
  for (const [key, way] of [
    ["d", 1],
    ["a", -1],
    ["ArrowRight", 1],
    ["ArrowLeft", -1],
  ] as const) {
    const before = await restedRange(viewer);
    await hold(page, key, async () => ((await rangeOf(viewer)).x0 - before.x0) * way > 20);
    const after = await restedRange(viewer);
    expect(widthOf(after), `${key} does not zoom`).toBeCloseTo(widthOf(before), 3);
  }
});

keys(
  ["Shift W", "Shift S", "Shift D", "↑", "Shift A", "↓"],
  "with Shift the same keys are for bytes, and arrows pan up and down",
  async ({ viewer, page }) => {
    await work(viewer, REAL);
    await alone(viewer);
    const whole = await restedRange(viewer);
    await hoverAt(viewer, 0.5);
    for (const [closer, further] of [
      ["Shift+KeyW", "Shift+KeyS"],
      ["Shift+ArrowUp", "Shift+ArrowDown"],
    ] as const) {
      const { zoom } = await still(() => heights(viewer));
      await hold(page, closer, async () => (await heights(viewer)).zoom > zoom * 1.5);
      const near = await still(() => heights(viewer));
      await hold(page, further, async () => (await heights(viewer)).zoom < near.zoom * 0.9);
    }
    await hold(page, "Shift+KeyW", async () => (await heights(viewer)).zoom > 0.5);
    for (const [key, way] of [
      ["Shift+KeyD", 1],
      ["Shift+KeyA", -1],
      ["ArrowUp", 1],
      ["ArrowDown", -1],
    ] as const) {
      const before = await still(() => heights(viewer));
      // Higher bytes come into view as the ground sinks.
      await hold(page, key, async () => ((await heights(viewer)).zero - before.zero) * way > 10);
      expect((await still(() => heights(viewer))).zoom, `${key} does not zoom`).toBeCloseTo(before.zoom, 3);
    }
    expect(await restedRange(viewer)).toEqual(whole);
  },
);

keys(["0", "Home"], "0 and Home show all, along and up", async ({ viewer, page }) => {
  await work(viewer, REAL);
  await alone(viewer);
  const whole = await restedRange(viewer);
  const high = await heights(viewer);
  for (const key of ["0", "Home"]) {
    await hoverAt(viewer, 0.3);
    await hold(page, "w", async () => widthOf(await rangeOf(viewer)) < widthOf(whole) / 2);
    await hold(page, "Shift+KeyW", async () => (await heights(viewer)).zoom > high.zoom * 2);
    await page.keyboard.press(key);
    await expect.poll(() => rangeOf(viewer)).toEqual(whole);
    await expect.poll(async () => (await heights(viewer)).zoom).toBeCloseTo(high.zoom, 3);
  }
});

keys(["F"], "F brings the selection to the middle, and fits it when pressed again", async ({ viewer, page }) => {
  await work(viewer, REAL);
  const { events } = deviceOf(REAL);
  const block = middling(blocksOf(REAL), events);
  const { alloc_event: from, free_completed_event: to } = block;
  await select(viewer, referenceOf(block));
  // Somewhere else, as wide as the block and a little more.
  const wide = (to - from) * 1.4;
  const view = { x0: events - wide, x1: events };
  await page.evaluate((range) => window.memstrata.setState(range), view);
  await expect.poll(async () => (await rangeOf(viewer)).x0).toBeCloseTo(view.x0, 3);
  await page.keyboard.press("f");
  const centred = await restedRange(viewer);
  expect(widthOf(centred), "centring does not zoom").toBeCloseTo(wide, 1);
  expect(Math.abs((centred.x0 + centred.x1) / 2 - (from + to) / 2)).toBeLessThan(wide / 50);
  await page.keyboard.press("f");
  await expect.poll(async () => widthOf(await rangeOf(viewer))).not.toBeCloseTo(wide, 1);
  const fitted = await restedRange(viewer);
  expect(widthOf(fitted)).toBeLessThan(wide);
  expect(fitted.x0).toBeLessThanOrEqual(from + 1);
  expect(fitted.x1).toBeGreaterThanOrEqual(to);
});

test("F fits a block at the very beginning too", async ({ viewer, page }) => {
  await work(viewer, REAL);
  const short = blocksOf(REAL).find(
    ({ alloc_event, free_completed_event }) =>
      alloc_event !== null && alloc_event < 150 && free_completed_event !== null && free_completed_event < 400,
  );
  if (!short) throw new Error("no such block");
  await select(viewer, referenceOf(short));
  await expect(async () => {
    await page.keyboard.press("f");
    const { x0, x1 } = await restedRange(viewer);
    expect(x1 - x0).toBeLessThan(((short.free_completed_event ?? 0) - (short.alloc_event ?? 0)) * 2);
    expect(x0).toBeLessThanOrEqual((short.alloc_event ?? 0) + 1);
  }).toPass({ timeout: 5000 });
});

keys(["Z", "Shift Z"], "Z goes back through what was looked at, Shift+Z forward", async ({ viewer, page }) => {
  await work(viewer, REAL);
  // A view is remembered once it has rested for half a second, which nothing on the page tells.
  const rest = () => page.waitForTimeout(650);
  const whole = await restedRange(viewer);
  await rest();
  await page.evaluate(() => window.memstrata.setState({ x0: 2000, x1: 3000 }));
  await expect.poll(async () => (await rangeOf(viewer)).x0).toBe(2000);
  await rest();
  await page.keyboard.press("4");
  await expectPlace(page, "flame", "main");
  await page.keyboard.press("z");
  await expectPlace(page, "timeline", "main");
  expect((await restedRange(viewer)).x0).toBeCloseTo(2000, 0);
  await page.keyboard.press("z");
  await expect.poll(() => rangeOf(viewer)).toEqual(whole);
  await page.keyboard.press("Shift+Z");
  await expect.poll(async () => (await rangeOf(viewer)).x0).toBeCloseTo(2000, 0);
  await page.keyboard.press("Shift+Z");
  await expectPlace(page, "flame", "main");
});

test("Z takes back a search, a colour, a cursor and a selection", async ({ viewer, page }) => {
  await work(viewer, REAL);
  await page.waitForTimeout(650);
  const before = await viewer.state();
  await page.getByTestId("colour-by").selectOption("category");
  await page.getByTestId("search").fill("optimizer");
  await expect(page.locator(".found")).toHaveAttribute("data-value", /^\d+$/);
  await page.getByTestId("search").blur();
  await select(viewer, referenceOf(middling(blocksOf(REAL), deviceOf(REAL).events)));
  await page.keyboard.press("p");
  await expectCursor(page, deviceOf(REAL).requested_bytes.peak_event);
  // On a slow machine some of the steps to here have rested long enough to be remembered by themselves.
  await expect(async () => {
    await page.keyboard.press("z");
    await expect.poll(() => viewer.state(), { timeout: 1000 }).toEqual(before);
  }).toPass();
});

test("Z keeps the markers and the rulers", async ({ viewer, page }) => {
  await work(viewer, REAL);
  await page.waitForTimeout(650);
  await page.keyboard.press("p");
  await expectCursor(page, deviceOf(REAL).requested_bytes.peak_event);
  await page.keyboard.press("m");
  await expect(marks(page, "marker")).toHaveCount(1);
  await page.keyboard.press("4");
  await expectPlace(page, "flame", "main");
  await page.keyboard.press("z");
  await expectPlace(page, "timeline", "main");
  await expect(marks(page, "marker")).toHaveCount(1);
});

keys(["Enter", "Click"], "Enter and a click select the block at the cursor", async ({ viewer, page }) => {
  await viewer.show(testData("scenarios/f01.pickle"));
  await answering(page);
  const scale = await viewer.plot.scale();
  await viewer.plot.moveTo(scale.x(2.5), scale.y(500));
  await page.keyboard.press("Enter");
  await expect.poll(() => selectedOf(viewer)).toBe("0:0x1000@1");
  await expectCursor(page, 2);
  const box = await viewer.plot.box();
  await page.mouse.click(box.x + scale.x(2.5), box.y + scale.y(1250));
  await expect.poll(() => selectedOf(viewer)).toBe("0:0x1400@2");
  // Empty ground clears it.
  await page.mouse.click(box.x + scale.x(2.5), box.y + scale.y(1500) - 12);
  await expect.poll(() => selectedOf(viewer)).toBeNull();
});

keys(["I"], "I tells the state at the pointer as the program does", async ({ viewer, page }) => {
  await work(viewer, REAL);
  await page.getByRole("button", { name: "Details", exact: true }).click();
  await expect(viewer.details).toHaveCount(0);
  await hoverAt(viewer, 0.4);
  await page.keyboard.press("i");
  await expect(viewer.details).toBeVisible();
  await expect(page.getByTestId("moment")).toBeVisible();
  const event = (await cursorOf(page)) ?? -2;
  expect(event).toBeGreaterThan(deviceOf(REAL).events * 0.3);
  expect(event).toBeLessThan(deviceOf(REAL).events * 0.5);
  const state = stateOf(REAL, event);
  for (const band of ["requested_bytes", "active_bytes", "reserved_bytes"] as const)
    await expect(bandOf(page, band)).toHaveAttribute("data-value", String(state[band]));
  await expect(page.getByTestId("moment").getByText(/ blocks live$/)).toHaveAttribute(
    "data-value",
    String(state.blocks.length),
  );
});

keys([".", ","], "the full stop and the comma step through events", async ({ viewer, page }) => {
  const file = testData("scenarios/f01.pickle");
  await work(viewer, file);
  const last = deviceOf(file).events - 1;
  await page.keyboard.press(".");
  await expectCursor(page, 0);
  for (let event = 1; event <= last; event += 1) {
    await page.keyboard.press(".");
    await expectCursor(page, event);
    await expect(bandOf(page, "requested_bytes")).toHaveAttribute(
      "data-value",
      String(stateOf(file, event).requested_bytes),
    );
  }
  await page.keyboard.press(".");
  await expectCursor(page, last);
  for (let event = last - 1; event >= -1; event -= 1) {
    await page.keyboard.press(",");
    await expectCursor(page, event);
  }
  await page.keyboard.press(",");
  await expectCursor(page, -1);
});

test("held down, the full stop plays, until it goes up or the window loses the keyboard", async ({ viewer, page }) => {
  await work(viewer, REAL);
  const cursor = () => cursorOf(page);
  await page.evaluate(() => window.memstrata.setState({ at: 1000 }));
  await expectCursor(page, 1000);
  for (const [key, way, stop] of [
    [".", 1, () => page.keyboard.up(".")],
    [",", -1, () => page.keyboard.up(",")],
    [".", 1, () => page.evaluate(() => window.dispatchEvent(new Event("blur")))],
  ] as const) {
    const from = (await cursor()) ?? 0;
    await page.keyboard.down(key);
    await page.keyboard.down(key);
    await expect.poll(async () => (((await cursor()) ?? 0) - from) * way).toBeGreaterThan(3);
    await stop();
    await still(cursor);
    await page.keyboard.up(key);
  }
});

test("with a selection the full stop goes to the next use of its stack", async ({ viewer, page }) => {
  const blocks = blocksOf(REAL);
  const stackOf = ({ frames }: CliBlock) => JSON.stringify(frames);
  const first = middling(blocks, deviceOf(REAL).events);
  const uses = blocks
    .filter((block) => stackOf(block) === stackOf(first) && !block.of_free)
    .toSorted((a, b) => (a.alloc_event ?? -1) - (b.alloc_event ?? -1));
  const at = uses.findIndex((block) => block.alloc_event === first.alloc_event);
  expect(uses.length, "a stack that is used more than once").toBeGreaterThan(1);
  await work(viewer, REAL);
  await select(viewer, referenceOf(first));
  const next = uses[(at + 1) % uses.length];
  const before = uses[at];
  if (!next || !before) throw new Error("no next use");
  await page.evaluate(([event = 0]) => window.memstrata.setState({ at: event }), [first.alloc_event]);
  await expectCursor(page, first.alloc_event);
  await page.keyboard.press(".");
  await expect.poll(() => selectedOf(viewer)).toBe(referenceOf(next));
  await expectCursor(page, next.alloc_event ?? -1);
  await page.keyboard.press(",");
  await expect.poll(() => selectedOf(viewer)).toBe(referenceOf(before));
});

keys(
  ["[", "]", "Shift [", "Shift ]"],
  "brackets go from rank to rank, with Shift to the ends",
  async ({ viewer, page }) => {
    const names = ["rank0.pickle", "rank1.pickle", "rank2.pickle", "rank3.pickle"];
    await viewer.open(names.map((name, index) => renamed(`scenarios/f0${index + 1}.pickle`, name)));
    for (const name of names) await viewer.expectRow(name, "ready");
    await viewer.row("rank1.pickle").click();
    for (const [key, rank] of [
      ["]", 2],
      ["[", 1],
      ["{", 0],
      ["[", 0],
      ["}", 3],
      ["]", 3],
      ["[", 2],
    ] as const) {
      await page.keyboard.press(key);
      await expect(viewer.row(`rank${rank}.pickle`), `after ${key}`).toHaveAttribute("aria-selected", "true");
      await expect.poll(async () => (await viewer.state()).path).toBe(`rank${rank}.pickle`);
    }
  },
);

keys(["P", "Shift P"], "P goes to the peak, Shift+P to lower ones", async ({ viewer, page }) => {
  await work(viewer, REAL);
  const { peak, peak_event } = deviceOf(REAL).requested_bytes;
  await page.evaluate(() => window.memstrata.setState({ x0: 100, x1: 600 }));
  await expect.poll(async () => (await rangeOf(viewer)).x0).toBe(100);
  await page.keyboard.press("p");
  await expectCursor(page, peak_event);
  await expect(bandOf(page, "requested_bytes")).toHaveAttribute("data-value", String(peak));
  const { x0, x1 } = await restedRange(viewer);
  expect(x0).toBeLessThan(peak_event);
  expect(x1).toBeGreaterThan(peak_event);
  const seen = [peak_event];
  let height = peak;
  for (let i = 0; i < 3; i += 1) {
    await page.keyboard.press("Shift+P");
    await expect.poll(async () => seen.includes((await cursorOf(page)) ?? -2), "another peak").toBe(false);
    const event = (await cursorOf(page)) ?? -2;
    const { requested_bytes } = stateOf(REAL, event);
    await expect(bandOf(page, "requested_bytes")).toHaveAttribute("data-value", String(requested_bytes));
    expect(requested_bytes).toBeLessThanOrEqual(height);
    // A peak stands out of what is around it.
    expect(requested_bytes).toBeGreaterThanOrEqual(stateOf(REAL, event - 1).requested_bytes);
    height = requested_bytes;
    seen.push(event);
  }
});

keys(["O"], "O goes to each out-of-memory event, and then to the findings", async ({ viewer, page }) => {
  const anomalies = anomaliesOf(OOMS);
  const ooms = anomalies.flatMap(({ kind, events }) => (kind === "oom" ? events : [])).toSorted((a, b) => a - b);
  const others = anomalies.filter(({ kind }) => kind !== "oom").flatMap(({ events }) => events);
  expect(ooms.length).toBeGreaterThan(2);
  await work(viewer, OOMS);
  for (const event of ooms) {
    await page.keyboard.press("o");
    await expectCursor(page, event);
  }
  await page.keyboard.press("o");
  await expect.poll(async () => others.includes((await cursorOf(page)) ?? -2), "then a finding").toBe(true);
});

test("O goes to the findings where nothing ran out of memory", async ({ viewer, page }) => {
  const events = anomaliesOf(GROWS).flatMap((found) => found.events);
  await work(viewer, GROWS);
  await page.keyboard.press("o");
  await expect.poll(async () => events.includes((await cursorOf(page)) ?? -2)).toBe(true);
});

keys(["N", "Shift N"], "N goes through the findings, Shift+N back", async ({ viewer, page }) => {
  const ooms = anomaliesOf(OOMS).flatMap(({ kind, events }) => (kind === "oom" ? events : []));
  await work(viewer, OOMS);
  const seen: number[] = [];
  for (let i = 0; i <= ooms.length; i += 1) {
    const before = await cursorOf(page);
    await page.keyboard.press("n");
    await expect.poll(() => cursorOf(page)).not.toBe(before);
    seen.push((await cursorOf(page)) ?? -2);
  }
  expect(seen).toEqual(seen.toSorted((a, b) => a - b));
  for (const event of ooms) expect(seen).toContain(event);
  await page.keyboard.press("Shift+N");
  await expectCursor(page, seen.at(-2) ?? -2);
});

test("with a search N goes through what it finds, and so does Enter in the search", async ({ viewer, page }) => {
  await work(viewer, REAL);
  const word = "dropout";
  const found = blocksOf(REAL).filter(({ frames }) =>
    frames.some(({ name, file }) => name.includes(word) || file.includes(word)),
  );
  const all = found.map((block) => referenceOf(block));
  expect(all.length).toBeGreaterThan(3);
  const search = page.getByTestId("search");
  await search.fill(word);
  await expect(page.locator(".found")).toHaveAttribute("data-value", String(all.length));
  const seen: string[] = [];
  const next = async (press: () => Promise<void>) => {
    const before = await selectedOf(viewer);
    await press();
    await expect.poll(() => selectedOf(viewer)).not.toBe(before);
    return (await selectedOf(viewer)) ?? "";
  };
  await search.focus();
  for (let i = 0; i < 3; i += 1) seen.push(await next(() => search.press("Enter")));
  expect(await next(() => search.press("Shift+Enter"))).toBe(seen[1]);
  await viewer.canvas.focus();
  expect(await next(() => page.keyboard.press("n"))).toBe(seen[2]);
  seen.push(await next(() => page.keyboard.press("n")));
  expect(await next(() => page.keyboard.press("Shift+N"))).toBe(seen[2]);
  expect(new Set(seen).size).toBe(seen.length);
  for (const reference of seen) expect(all).toContain(reference);
});

keys(
  ["M", "'", "Del"],
  "M drops markers, ' goes from one to the next, Delete takes one away",
  async ({ viewer, page }) => {
    await work(viewer, REAL);
    const events = [500, 1500, 2500];
    for (const event of events) {
      await page.evaluate(([at = 0]) => window.memstrata.setState({ at }), [event]);
      await expectCursor(page, event);
      await page.keyboard.press("m");
    }
    await expect(marks(page, "marker")).toHaveCount(3);
    // From the last one on: round and round.
    for (const event of [500, 1500, 2500, 500]) {
      await page.keyboard.press("'");
      await expectCursor(page, event);
    }
    const scale = await viewer.plot.scale();
    const box = await viewer.plot.box();
    const places = await marks(page, "marker").evaluateAll((all) =>
      all.map((mark) => {
        const { left, right } = mark.getBoundingClientRect();
        return (left + right) / 2;
      }),
    );
    for (const [index, event] of events.entries())
      expect(Math.abs((places[index] ?? 0) - box.x - scale.x(event)), `marker ${event}`).toBeLessThan(4);
    await page.keyboard.press("Delete");
    await expect(marks(page, "marker")).toHaveCount(2);
    await page.keyboard.press("'");
    await expectCursor(page, 1500);
    await page.keyboard.press("Backspace");
    await expect(marks(page, "marker")).toHaveCount(1);
  },
);

keys(["Shift M"], "Shift+M marks the life of the selection as a range", async ({ viewer, page }) => {
  await work(viewer, REAL);
  const block = middling(blocksOf(REAL), deviceOf(REAL).events);
  await select(viewer, referenceOf(block));
  await page.keyboard.press("Shift+M");
  await expect(viewer.details.locator("[data-kind=Range]")).toBeVisible();
  const scale = await viewer.plot.scale();
  const canvas = await viewer.plot.box();
  const box = await marks(page, "range").boundingBox();
  expect(Math.abs((box?.x ?? 0) - canvas.x - scale.x(block.alloc_event))).toBeLessThan(3);
  expect(Math.abs((box?.x ?? 0) + (box?.width ?? 0) - canvas.x - scale.x(block.free_completed_event))).toBeLessThan(3);
});

keys(["X"], "X changes the axis and keeps the range and the selection", async ({ viewer, page }) => {
  await work(viewer, REAL);
  const block = middling(blocksOf(REAL), deviceOf(REAL).events);
  await select(viewer, referenceOf(block));
  const before = { x0: block.alloc_event - 300, x1: block.free_completed_event + 300 };
  await page.evaluate((range) => window.memstrata.setState(range), before);
  await expect.poll(async () => (await rangeOf(viewer)).x0).toBe(before.x0);
  await hold(page, "Shift+KeyW", async () => (await heights(viewer)).zoom > 0.5);
  const high = await still(() => heights(viewer));
  /** When what is at both edges happened. */
  const edges = async () => {
    const seen: number[] = [];
    const { width } = await inside(viewer);
    for (const part of [1 / width, 1 - 1 / width]) {
      await hoverAt(viewer, part);
      await page.keyboard.press("i");
      seen.push(stateOf(REAL, (await still(() => cursorOf(page))) ?? -2).time_us);
    }
    return seen;
  };
  const inEvents = await edges();
  await page.keyboard.press("x");
  await expect.poll(async () => (await viewer.state()).axis).toBe("time");
  const pixel = widthOf(await restedRange(viewer)) / (await inside(viewer)).width;
  const inTime = await edges();
  for (const [edge, at] of inEvents.entries())
    expect(Math.abs(at - (inTime[edge] ?? 0)), `edges ${inEvents}, along time ${inTime}`).toBeLessThan(4 * pixel);
  expect(await selectedOf(viewer)).toBe(referenceOf(block));
  expect((await heights(viewer)).zoom).toBeCloseTo(high.zoom, 3);
  await page.keyboard.press("x");
  await expect.poll(async () => (await viewer.state()).axis).toBe("event");
  const back = await restedRange(viewer);
  // Events of one microsecond are one place in time: what comes back may be another of them.
  const little = widthOf(before) * 0.1;
  expect(Math.abs(back.x0 - before.x0)).toBeLessThan(little);
  expect(Math.abs(back.x1 - before.x1)).toBeLessThan(little);
  expect(await selectedOf(viewer)).toBe(referenceOf(block));
});

keys(["Y"], "Y begins the bytes at what was there before the window, and at zero again", async ({ viewer, page }) => {
  await work(viewer, LATE);
  const { start } = deviceOf(LATE).requested_bytes;
  expect(start).toBeGreaterThan(0);
  const ground = async () => {
    const { y, bottom } = await viewer.plot.scale();
    return { zero: Math.round(y(0) - bottom), start: Math.round(y(start) - bottom) };
  };
  expect((await still(ground)).zero).toBe(0);
  await page.keyboard.press("y");
  await page.keyboard.press("0");
  await expect.poll(async () => Math.abs((await ground()).start)).toBeLessThan(2);
  await page.keyboard.press("y");
  await page.keyboard.press("0");
  await expect.poll(async () => Math.abs((await ground()).zero)).toBeLessThan(2);
});

keys(["1", "2", "3", "4", "5", "6"], "the numbers give each view the centre", async ({ viewer, page }) => {
  await work(viewer, REAL);
  for (const [index, view] of ["overview", "timeline", "segments", "flame", "anomalies", "compare"].entries()) {
    await page.keyboard.press(String(index + 1));
    await expectPlace(page, view, "main");
    await expect(pane(page, view)).toBeVisible();
    await expect(page.getByRole("tablist", { name: "Views" }).getByRole("tab", { selected: true })).toHaveText(
      new RegExp(`^${view}`, "i"),
    );
    expect((await viewer.state()).view).toBe(view);
  }
});

keys(["/"], "the slash and Ctrl+F go to the search, where letters are only letters", async ({ viewer, page }) => {
  await work(viewer, REAL);
  const search = page.getByTestId("search");
  const before = await viewer.state();
  for (const way of ["/", "Control+f"]) {
    await viewer.canvas.focus();
    await page.keyboard.press(way);
    await expect(search).toBeFocused();
    const word = "wsadpfxyqmihvbzon0?[].,12";
    await page.keyboard.type(word);
    await expect(search).toHaveValue(word);
    await expect.poll(async () => (await viewer.state()).find).toBe(word);
    await expect(page.getByRole("dialog")).toHaveCount(0);
    await page.keyboard.press("Escape");
    await expect(search).toHaveValue("");
    await expect.poll(() => viewer.state()).toEqual(before);
    await expect(search).not.toBeFocused();
  }
});

keys([">"], "the palette comes by >, by > in the search and by Ctrl+Shift+P", async ({ viewer, page }) => {
  await work(viewer, REAL);
  const palette = page.getByRole("dialog", { name: "Commands" });
  const command = palette.getByRole("combobox");
  await viewer.canvas.focus();
  await page.keyboard.press(">");
  await expect(command).toBeFocused();
  await command.fill("views: flame");
  await expect(palette.getByRole("option")).toHaveCount(1);
  await page.keyboard.press("Enter");
  await expect(palette).toHaveCount(0);
  await expectPlace(page, "flame", "main");
  await page.keyboard.press("/");
  await page.keyboard.press(">");
  await expect(command).toBeFocused();
  await command.fill("colour by category");
  await palette.getByRole("option").click();
  await expect.poll(async () => (await viewer.state()).colour).toBe("category");
  await page.keyboard.press("Control+Shift+P");
  await expect(command).toBeFocused();
  await page.keyboard.press("ArrowDown");
  const second = palette.getByRole("option").nth(1);
  await expect(second).toHaveAttribute("aria-selected", "true");
  await expect(command).toHaveAttribute("aria-activedescendant", (await second.getAttribute("id")) ?? "none");
  await page.keyboard.press("Escape");
  await expect(palette).toHaveCount(0);
  await expectPlace(page, "flame", "main");
});

test("the palette lists what every key does, and runs it", async ({ viewer, page }) => {
  await work(viewer, REAL);
  await page.keyboard.press("?");
  const said = page.getByRole("dialog").locator(".sheet-row");
  const texts = await said.locator("dd").allTextContents();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toHaveCount(0);
  const palette = await openPalette(page);
  await expect(palette.getByRole("option").first()).toBeVisible();
  const commands = await palette.getByRole("option").locator("span:first-child").allTextContents();
  // What is done with the hand is no command, and neither is what lasts while a key is held.
  const hands = /^(In the |In tables|In tabs|Pan|Zoom|Select a block, move|Mark a range:|Fit the block|Ruler of)/;
  for (const text of texts.filter((line) => !hands.test(line)))
    expect(commands.join("\n"), `a command for: ${text}`).toContain(text);
  await page.keyboard.press("Escape");
  await expect(palette).toHaveCount(0);
  const run = async (words: string) => {
    await openPalette(page);
    await palette.getByRole("combobox").fill(words);
    await expect(palette.getByRole("option")).toHaveCount(1);
    await page.keyboard.press("Enter");
    await expect(palette).toHaveCount(0);
  };
  await run("go to the peak");
  await expectCursor(page, deviceOf(REAL).requested_bytes.peak_event);
  await run("drop a marker");
  await expect(marks(page, "marker")).toHaveCount(1);
  await run("open or close the drawer");
  await expect.poll(async () => (await viewer.state()).drawer).toBe("none");
  await run("this sheet");
  await expect(page.getByRole("heading", { name: "Keys and gestures" })).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toHaveCount(0);
  await run("show: search");
  await expect(page.getByTestId("search")).toBeFocused();
});

test("after a command of the palette a drag is a drag again", async ({ viewer, page }) => {
  await work(viewer, REAL);
  const palette = await openPalette(page);
  await palette.getByRole("combobox").fill("ruler of bytes");
  const commands = await palette.getByRole("option").count();
  if (commands > 0) await page.keyboard.press("Enter");
  else await page.keyboard.press("Escape");
  await expect(palette).toHaveCount(0);
  // A ruler lasts as long as its key is held, and no key is held here: at most one drag may be a ruler.
  await drag(viewer, [300, 100], [500, 250]);
  const rulers = await marks(page, "ruler-y").count();
  await page.evaluate(() => window.memstrata.setState({ x0: 2000, x1: 3000 }));
  await expect.poll(async () => (await rangeOf(viewer)).x0).toBe(2000);
  await drag(viewer, [300, 100], [500, 250]);
  await expect.poll(async () => (await rangeOf(viewer)).x0).not.toBe(2000);
  await expect(marks(page, "ruler-y")).toHaveCount(rulers);
});

test("Ctrl+C copies the stack and the exact bytes of the selection", async ({ viewer, page, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await work(viewer, REAL);
  const block = middling(blocksOf(REAL), deviceOf(REAL).events);
  await select(viewer, referenceOf(block));
  await viewer.canvas.focus();
  await page.keyboard.press("Control+c");
  const text = () => page.evaluate(() => navigator.clipboard.readText());
  await expect.poll(text).toContain(block.address);
  const copied = await text();
  expect(copied.replaceAll(",", "")).toMatch(new RegExp(`\\b${block.bytes}\\b`));
  for (const { name, file, line } of block.frames) {
    expect(copied).toContain(name);
    if (file !== "") expect(copied).toContain(`${file}:${line}`);
  }
});

test("Ctrl+C leaves text that is selected to the browser", async ({ viewer, page, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await work(viewer, REAL);
  await select(viewer, referenceOf(middling(blocksOf(REAL), deviceOf(REAL).events)));
  await page.getByRole("heading", { name: "Call stack" }).click({ clickCount: 3 });
  await page.keyboard.press("Control+c");
  await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toMatch(/^\s*call stack\s*$/i);
});

test("Ctrl+Shift+C copies a link that brings everything back", async ({ viewer, page, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await work(viewer, REAL);
  const block = middling(blocksOf(REAL), deviceOf(REAL).events);
  await select(viewer, referenceOf(block));
  await page.evaluate(() =>
    window.memstrata.setState({ x0: 2000, x1: 3000, at: 2500, colour: "size", find: "forward" }),
  );
  await page.keyboard.press("4");
  await expect.poll(async () => (await viewer.state()).at).toBe(2500);
  await restedRange(viewer);
  const before = await viewer.state();
  await viewer.page.keyboard.press("Control+Shift+C");
  await expect(page.getByRole("status").filter({ hasText: "Link copied" })).toBeAttached();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  await page.goto("about:blank");
  await page.goto(link);
  await page.waitForFunction(() => "memstrata" in window);
  await viewer.open(REAL);
  await expect.poll(() => viewer.state()).toEqual(before);
});

test("Ctrl+O opens the file dialog, before and after a file is open", async ({ viewer, page }) => {
  for (const opened of [false, true]) {
    if (opened) await work(viewer, testData("scenarios/f01.pickle"));
    const asked = page.waitForEvent("filechooser");
    await page.keyboard.press("Control+o");
    const chooser = await asked;
    expect(chooser.isMultiple()).toBe(true);
    if (opened) await chooser.setFiles(testData("scenarios/f02.pickle"));
  }
  await expect(viewer.peak).toHaveAttribute(
    "data-value",
    String(deviceOf(testData("scenarios/f02.pickle")).requested_bytes.peak),
  );
});

keys(["Q"], "Q shuts the drawer and opens it again, whatever has the centre", async ({ viewer, page }) => {
  await work(viewer, REAL);
  await expectPlace(page, "segments", "drawer");
  await page.keyboard.press("q");
  await expectPlace(page, "segments", "none");
  expect((await viewer.state()).drawer).toBe("none");
  await page.keyboard.press("q");
  await expectPlace(page, "segments", "drawer");
  await page.keyboard.press("3");
  await expectPlace(page, "segments", "main");
  await page.keyboard.press("q");
  await expect.poll(async () => (await viewer.state()).drawer).not.toBe("none");
  await page.keyboard.press("q");
  await expect.poll(async () => (await viewer.state()).drawer).toBe("none");
});

keys(["H"], "H hides frames of the framework in stacks and in the flame graph", async ({ viewer, page }) => {
  await work(viewer, REAL);
  const block = middling(blocksOf(REAL), deviceOf(REAL).events);
  await select(viewer, referenceOf(block));
  await page.keyboard.press("4");
  const button = pane(page, "flame").getByRole("button", { name: "hide framework" });
  await expect(pane(page, "flame").locator(".flame-name").first()).toBeVisible();
  const names = () => pane(page, "flame").locator(".flame-name").allTextContents();
  // Both tell the same story, before and after.
  for (let i = 0; i < 3; i += 1) {
    const hidden = (await button.getAttribute("aria-pressed")) === "true";
    const folded = viewer.details.getByText(/framework frames/);
    if (hidden) await expect(folded.first()).toBeVisible();
    else await expect(folded).toHaveCount(0);
    const before = await still(names);
    expect(before.some((name) => name.includes("_call_impl"))).toBe(!hidden);
    await page.keyboard.press("h");
    await expect(button).toHaveAttribute("aria-pressed", String(!hidden));
    await expect.poll(names).not.toEqual(before);
  }
});

keys(["V", "B"], "V turns the flame graph over, B goes through its weights", async ({ viewer, page }) => {
  await work(viewer, REAL);
  await page.keyboard.press("4");
  const flame = pane(page, "flame");
  const names = flame.locator(".flame-name");
  const total = page.getByTestId("flame-total");
  await expect(total).toHaveAttribute("data-value", String(deviceOf(REAL).requested_bytes.peak));
  await expect(names.first()).toBeVisible();
  const outer = await still(() => names.allTextContents());
  await page.keyboard.press("v");
  await expect(flame.getByRole("button", { name: "leaf first" })).toHaveAttribute("aria-pressed", "true");
  await expect.poll(() => names.allTextContents()).not.toEqual(outer);
  await page.keyboard.press("v");
  await expect.poll(() => names.allTextContents()).toEqual(outer);
  for (const weight of ["at cursor", "bytes × time", "allocations", "churn", "at peak"]) {
    await page.keyboard.press("b");
    await expect(flame.getByRole("button", { name: weight })).toHaveAttribute("aria-pressed", "true");
    await expect(flame.locator("fieldset").first().locator("[aria-pressed=true]")).toHaveCount(1);
    if (weight === "allocations") {
      const allocations = blocksOf(REAL).filter(({ preexisting }) => !preexisting).length;
      await expect(total).toHaveAttribute("data-value", String(allocations));
    }
  }
  await expect(total).toHaveAttribute("data-value", String(deviceOf(REAL).requested_bytes.peak));
});

keys(
  ["\\"],
  "the backslash opens the comparison, with this file pinned (compare.spec has more)",
  async ({ viewer, page }) => {
    await work(viewer, REAL);
    await page.keyboard.press("\\");
    await expectPlace(page, "compare", "main");
  },
);

keys(
  ["Esc", "Shift drag"],
  "Escape cancels the drag, then the search, then what is selected",
  async ({ viewer, page }) => {
    await work(viewer, REAL);
    const before = await restedRange(viewer);
    const block = middling(blocksOf(REAL), deviceOf(REAL).events);
    await select(viewer, referenceOf(block));
    await page.getByTestId("search").fill("forward");
    await expect.poll(async () => (await viewer.state()).find).toBe("forward");
    await viewer.canvas.focus();
    const { x, y } = await viewer.plot.box();
    await page.keyboard.down("Shift");
    await page.mouse.move(x + 200, y + 60);
    await page.mouse.down();
    await page.mouse.move(x + 400, y + 130, { steps: 3 });
    await expect(pane(page, "timeline").locator(".draft")).toBeVisible();
    await page.keyboard.up("Shift");
    await page.keyboard.press("Escape");
    await expect(pane(page, "timeline").locator(".draft")).toHaveCount(0);
    await page.mouse.up();
    expect(await restedRange(viewer), "the drag has done nothing").toEqual(before);
    expect((await viewer.state()).find).toBe("forward");
    await page.keyboard.press("Escape");
    await expect.poll(async () => (await viewer.state()).find).toBeUndefined();
    await expect(page.getByTestId("search")).toHaveValue("");
    expect(await selectedOf(viewer)).toBe(referenceOf(block));
    // A sheet over it goes first.
    await page.keyboard.press("?");
    await expect(page.getByRole("dialog")).toBeVisible();
    await page.keyboard.press("Escape");
    await expect(page.getByRole("dialog")).toHaveCount(0);
    expect(await selectedOf(viewer)).toBe(referenceOf(block));
    await page.keyboard.press("Escape");
    await expect.poll(() => selectedOf(viewer)).toBeNull();

    const { x: slot } = await viewer.plot.scale();
    const [from, to] = [2000, 4000];
    await drag(viewer, [slot(from), 40], [slot(to), 120], "Shift");
    await expect.poll(async () => widthOf(await rangeOf(viewer))).toBeLessThan(widthOf(before) / 2);
    const zoomed = await restedRange(viewer);
    const pixel = widthOf(before) / (await inside(viewer)).width;
    expect(Math.abs(zoomed.x0 - from)).toBeLessThan(3 * pixel);
    expect(Math.abs(zoomed.x1 - to)).toBeLessThan(3 * pixel);
  },
);

keys(["Alt drag"], "Alt and a drag mark a range, and say what happens in it", async ({ viewer, page }) => {
  await work(viewer, REAL);
  const { x } = await viewer.plot.scale();
  const [from, to] = [2000, 3000];
  await drag(viewer, [x(from), 80], [x(to), 120], "Alt");
  const range = viewer.details.locator("[data-kind=Range]");
  await expect(range).toBeVisible();
  const canvas = await viewer.plot.box();
  const box = await marks(page, "range").boundingBox();
  expect(Math.abs((box?.x ?? 0) - canvas.x - x(from))).toBeLessThan(2);
  expect(Math.abs((box?.x ?? 0) + (box?.width ?? 0) - canvas.x - x(to))).toBeLessThan(2);
  // A pixel is some events wide: what is allocated in it is what is allocated in the range, give or take those.
  const some = blocksOf(REAL).filter(
    ({ alloc_event }) => alloc_event !== null && alloc_event >= from && alloc_event < to,
  );
  const rows = await range
    .locator("[data-key]")
    .evaluateAll((all) =>
      all.map(
        (row) =>
          [row.getAttribute("data-key") ?? "", Number(row.querySelector("dd")?.getAttribute("data-value"))] as const,
      ),
    );
  const allocated = new Map(rows).get("allocated") ?? Number.NaN;
  const bytes = some.reduce((sum, block) => sum + block.bytes, 0);
  expect(Math.abs(allocated - bytes) / bytes, `allocated ${allocated}, by the program ${bytes}`).toBeLessThan(0.1);
  // The picture is where it was, and the range stays in its place when it moves.
  await page.keyboard.press("Escape");
  await expect(range).toHaveCount(0);
});

keys(
  ["Double-click", "Wheel", "Shift wheel", "Drag"],
  "a double click fits the block under it, and on empty ground all",
  async ({ viewer, page }) => {
    await work(viewer, REAL);
    const whole = await restedRange(viewer);
    const block = middling(blocksOf(REAL), deviceOf(REAL).events);
    const { x, bottom } = await viewer.plot.scale();
    const box = await viewer.plot.box();
    const at = x((block.alloc_event + block.free_completed_event) / 2);
    // Where it is drawn: the page says what is under a point.
    const under = (y: number) =>
      page.evaluate(([px = 0, py = 0]) => window.memstrata.pick("timeline", px, py), [at, y]);
    let found = -1;
    for (let y = 20; y < bottom && found < 0; y += 4) if ((await under(y))?.reference === referenceOf(block)) found = y;
    expect(found, "the block is in the picture").toBeGreaterThan(0);
    await page.mouse.dblclick(box.x + at, box.y + found);
    await expect.poll(async () => widthOf(await rangeOf(viewer))).toBeLessThan(widthOf(whole) * 0.6);
    const fitted = await restedRange(viewer);
    expect(fitted.x0).toBeLessThanOrEqual(block.alloc_event + 1);
    expect(fitted.x1).toBeGreaterThanOrEqual(block.free_completed_event);
    expect(await selectedOf(viewer)).toBe(referenceOf(block));

    await hoverAt(viewer, 0.5);
    await page.mouse.wheel(0, -240);
    await expect.poll(async () => widthOf(await rangeOf(viewer))).toBeLessThan(widthOf(fitted));
    const near = await restedRange(viewer);
    const { zoom } = await heights(viewer);
    await page.keyboard.down("Shift");
    await page.mouse.wheel(0, -240);
    await page.keyboard.up("Shift");
    await expect.poll(async () => (await heights(viewer)).zoom).toBeGreaterThan(zoom * 1.05);
    expect(await restedRange(viewer)).toEqual(near);
    await drag(viewer, [500, 100], [400, 100]);
    await expect.poll(async () => (await rangeOf(viewer)).x0).toBeGreaterThan(near.x0);
    expect(widthOf(await restedRange(viewer))).toBeCloseTo(widthOf(near), 3);

    await page.keyboard.press("0");
    await expect.poll(() => rangeOf(viewer)).toEqual(whole);
    await page.mouse.wheel(0, -480);
    await expect.poll(async () => widthOf(await rangeOf(viewer))).toBeLessThan(widthOf(whole));
    await restedRange(viewer);
    await page.mouse.dblclick(box.x + 500, box.y + 4);
    await expect.poll(() => rangeOf(viewer)).toEqual(whole);
  },
);

keys(
  ["R drag", "T drag"],
  "rulers say bytes and events, stay where they are in the data, and Delete takes the last one away",
  async ({ viewer, page }) => {
    await work(viewer, REAL);
    const before = await restedRange(viewer);
    const { x, y } = await viewer.plot.scale();
    const MIB = 2 ** 20;
    await drag(viewer, [400, y(500 * MIB)], [420, y(1000 * MIB)], "r");
    await drag(viewer, [x(2000), 60], [x(3000), 80], "t");
    const [bytes, events] = [marks(page, "ruler-y"), marks(page, "ruler-x")];
    await expect(bytes).toHaveCount(1);
    await expect(events).toHaveCount(1);
    expect(await restedRange(viewer), "a ruler moves nothing").toEqual(before);
    const said = [await bytes.innerText(), await events.innerText()];
    const mib = Number.parseFloat(said[0] ?? "");
    expect(said[0]).toMatch(/MiB/);
    expect(Math.abs(mib - 500)).toBeLessThan(10);
    const counted = Number((said[1] ?? "").replace(/,/g, "").match(/\d+/)?.[0]);
    expect(Math.abs(counted - 1000)).toBeLessThan(20);
    const place = async () => {
      const canvas = await viewer.plot.box();
      const [tall, wide] = [await bytes.boundingBox(), await events.boundingBox()];
      const scale = await viewer.plot.scale();
      if (!tall || !wide) throw new Error("no rulers");
      return {
        top: Math.abs(tall.y - canvas.y - scale.y(1000 * MIB)),
        bottom: Math.abs(tall.y + tall.height - canvas.y - scale.y(500 * MIB)),
        left: Math.abs(wide.x - canvas.x - scale.x(2000)),
        right: Math.abs(wide.x + wide.width - canvas.x - scale.x(3000)),
      };
    };
    for (const zoomed of [false, true]) {
      if (zoomed) {
        await page.evaluate(() => window.memstrata.setState({ x0: 1500, x1: 3500 }));
        await expect.poll(async () => (await rangeOf(viewer)).x0).toBe(1500);
      }
      for (const [edge, off] of Object.entries(await still(place)))
        expect(off, `${edge}, zoomed ${zoomed}`).toBeLessThan(4);
    }
    expect([await bytes.innerText(), await events.innerText()]).toEqual(said);
    await page.keyboard.press("Delete");
    await expect(events).toHaveCount(0);
    await expect(bytes).toHaveCount(1);
    await page.keyboard.press("Backspace");
    await expect(bytes).toHaveCount(0);
    // The key is up: a drag pans.
    await drag(viewer, [500, 100], [400, 100]);
    await expect.poll(async () => (await rangeOf(viewer)).x0).toBeGreaterThan(1500);
    await expect(bytes).toHaveCount(0);
  },
);

test("keys do not stick when the window loses the keyboard", async ({ viewer, page }) => {
  await work(viewer, REAL);
  await page.evaluate(() => window.memstrata.setState({ x0: 2000, x1: 3000 }));
  await expect.poll(async () => (await rangeOf(viewer)).x0).toBe(2000);
  await viewer.canvas.focus();
  for (const key of ["d", "w"]) {
    const before = await rangeOf(viewer);
    await page.keyboard.down(key);
    await expect.poll(async () => (await rangeOf(viewer)).x0).not.toBe(before.x0);
    await page.evaluate(() => window.dispatchEvent(new Event("blur")));
    await restedRange(viewer);
    await page.keyboard.up(key);
  }
  await page.keyboard.down("r");
  await page.evaluate(() => window.dispatchEvent(new Event("blur")));
  await drag(viewer, [500, 60], [400, 200]);
  await page.keyboard.up("r");
  await expect(marks(page, "ruler-y")).toHaveCount(0);
});

test("the browser keeps its own keys: Ctrl+A, Ctrl+S, Ctrl+D and others", async ({ viewer, page }) => {
  await work(viewer, REAL);
  const before = await viewer.state();
  await page.evaluate(() => {
    const taken: string[] = [];
    Object.assign(window, { taken });
    window.addEventListener("keydown", (event) => event.defaultPrevented && taken.push(event.key));
  });
  await viewer.canvas.focus();
  for (const key of ["a", "s", "d", "w", "z", "x", "e"]) {
    // As the browser gives them to the page, without what it would then do itself.
    for (const modifier of ["ctrlKey", "metaKey", "altKey"] as const)
      await viewer.canvas.dispatchEvent("keydown", {
        key,
        code: `Key${key.toUpperCase()}`,
        [modifier]: true,
        bubbles: true,
      });
  }
  expect(await page.evaluate(() => (window as unknown as { taken: string[] }).taken)).toEqual([]);
  await page.keyboard.press("Control+a");
  expect(await still(() => viewer.state())).toEqual(before);
});

keys(["?"], "the sheet lists keys, and every one of them is tested here", async ({ viewer, page }) => {
  await work(viewer, testData("scenarios/f01.pickle"));
  await page.keyboard.press("?");
  const sheet = page.getByRole("dialog");
  await expect(sheet.getByRole("heading", { name: "Keys and gestures" })).toBeVisible();
  const listed = await sheet.locator("kbd").allTextContents();
  expect(listed.length).toBeGreaterThan(50);
  const chords = /^(Ctrl|Cmd|⌘)/;
  expect(listed.filter((key) => !TESTED.has(key) && !chords.test(key))).toEqual([]);
  expect([...TESTED].filter((key) => !listed.includes(key))).toEqual([]);
  await page.keyboard.press("?");
  await expect(sheet).toHaveCount(0);
});

test("the sheet lists the keys with Ctrl too", async ({ viewer, page }) => {
  await work(viewer, testData("scenarios/f01.pickle"));
  await page.keyboard.press("?");
  await expect(page.getByRole("dialog")).toBeVisible();
  const listed = (await page.getByRole("dialog").locator("kbd").allTextContents()).join(" | ");
  for (const chord of [
    /Ctrl\W*C\b/,
    /Ctrl\W*Shift\W*C\b|Shift\W*Ctrl\W*C\b/,
    /Ctrl\W*F\b/,
    /Ctrl\W*O\b/,
    /Ctrl\W*Shift\W*P\b|Shift\W*Ctrl\W*P\b/,
  ])
    expect(listed).toMatch(chord);
});
