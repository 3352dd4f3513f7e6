// Keys that go through events, ranks, peaks, findings and markers.

import {
  anomaliesOf,
  type BlockRow,
  blocksOf,
  deviceOf,
  referenceOf,
  stateOf,
} from "../lib/cli.js";
import { renamed, testData } from "../lib/data.js";
import { keys, middling } from "../lib/keys.js";
import { expect, test } from "../lib/test.js";
import {
  bandOf,
  cursorOf,
  expectCursor,
  hoverAt,
  marks,
  rangeOf,
  restedRange,
  select,
  selectedOf,
  still,
  work,
} from "../lib/work.js";

const REAL = testData("recorded/t26/gpt_small.pickle.gz");
const OOMS = testData("recorded/oom_expandable.pickle.gz");
const GROWS = testData("recorded/gpt_leak.pickle.gz");

// Small, since it is drawn in software.
test.use({ viewport: { width: 1100, height: 700 } });

test(
  "I tells the state at the pointer as the program does",
  keys("I"),
  async ({ viewer, page }) => {
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
  },
);

test(
  "the full stop and the comma step through events",
  keys(".", ","),
  async ({ viewer, page }) => {
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
  },
);

test("held down, the full stop plays, until it goes up or the window loses the keyboard", async ({
  viewer,
  page,
}) => {
  await work(viewer, REAL);
  const cursor = () => cursorOf(page);
  await page.evaluate(() => window.vramscope.setState({ at: 1000 }));
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

test("with a selection the full stop goes to the next use of its stack", async ({
  viewer,
  page,
}) => {
  const blocks = blocksOf(REAL);
  const stackOf = ({ frames }: BlockRow) => JSON.stringify(frames);
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
  await page.evaluate(
    ([event = 0]) => window.vramscope.setState({ at: event }),
    [first.alloc_event],
  );
  await expectCursor(page, first.alloc_event);
  await page.keyboard.press(".");
  await expect.poll(() => selectedOf(viewer)).toBe(referenceOf(next));
  await expectCursor(page, next.alloc_event ?? -1);
  await page.keyboard.press(",");
  await expect.poll(() => selectedOf(viewer)).toBe(referenceOf(before));
});

test(
  "brackets go from rank to rank, with Shift to the ends",
  keys("[", "]", "Shift [", "Shift ]"),
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
      await expect(viewer.row(`rank${rank}.pickle`), `after ${key}`).toHaveAttribute(
        "aria-selected",
        "true",
      );
      await expect.poll(async () => (await viewer.state()).path).toBe(`rank${rank}.pickle`);
    }
  },
);

test(
  "P goes to the peak, Shift+P to lower ones",
  keys("P", "Shift P"),
  async ({ viewer, page }) => {
    await work(viewer, REAL);
    const { peak, peak_event } = deviceOf(REAL).requested_bytes;
    await page.evaluate(() => window.vramscope.setState({ x0: 100, x1: 600 }));
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
      await expect
        .poll(async () => seen.includes((await cursorOf(page)) ?? -2), "another peak")
        .toBe(false);
      const event = (await cursorOf(page)) ?? -2;
      const { requested_bytes } = stateOf(REAL, event);
      await expect(bandOf(page, "requested_bytes")).toHaveAttribute(
        "data-value",
        String(requested_bytes),
      );
      expect(requested_bytes).toBeLessThanOrEqual(height);
      // A peak stands out of what is around it.
      expect(requested_bytes).toBeGreaterThanOrEqual(stateOf(REAL, event - 1).requested_bytes);
      height = requested_bytes;
      seen.push(event);
    }
  },
);

test(
  "O goes to each out-of-memory event, and then to the findings",
  keys("O"),
  async ({ viewer, page }) => {
    const anomalies = anomaliesOf(OOMS);
    const ooms = anomalies
      .flatMap(({ kind, events }) => (kind === "oom" ? events : []))
      .toSorted((a, b) => a - b);
    const others = anomalies.filter(({ kind }) => kind !== "oom").flatMap(({ events }) => events);
    expect(ooms.length).toBeGreaterThan(2);
    await work(viewer, OOMS);
    for (const event of ooms) {
      await page.keyboard.press("o");
      await expectCursor(page, event);
    }
    await page.keyboard.press("o");
    await expect
      .poll(async () => others.includes((await cursorOf(page)) ?? -2), "then a finding")
      .toBe(true);
  },
);

test("O goes to the findings where nothing ran out of memory", async ({ viewer, page }) => {
  const events = anomaliesOf(GROWS).flatMap((found) => found.events);
  await work(viewer, GROWS);
  await page.keyboard.press("o");
  await expect.poll(async () => events.includes((await cursorOf(page)) ?? -2)).toBe(true);
});

test(
  "N goes through the findings, Shift+N back",
  keys("N", "Shift N"),
  async ({ viewer, page }) => {
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
  },
);

test("with a search N goes through what it finds, and so does Enter in the search", async ({
  viewer,
  page,
}) => {
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

test(
  "M drops markers, ' goes from one to the next, Delete takes one away",
  keys("M", "'", "Del"),
  async ({ viewer, page }) => {
    await work(viewer, REAL);
    const events = [500, 1500, 2500];
    for (const event of events) {
      await page.evaluate(([at = 0]) => window.vramscope.setState({ at }), [event]);
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
      expect(
        Math.abs((places[index] ?? 0) - box.x - scale.x(event)),
        `marker ${event}`,
      ).toBeLessThan(4);
    await page.keyboard.press("Delete");
    await expect(marks(page, "marker")).toHaveCount(2);
    await page.keyboard.press("'");
    await expectCursor(page, 1500);
    await page.keyboard.press("Backspace");
    await expect(marks(page, "marker")).toHaveCount(1);
  },
);

test(
  "Shift+M marks the life of the selection as a range",
  keys("Shift M"),
  async ({ viewer, page }) => {
    await work(viewer, REAL);
    const block = middling(blocksOf(REAL), deviceOf(REAL).events);
    await select(viewer, referenceOf(block));
    await page.keyboard.press("Shift+M");
    await expect(viewer.details.locator("[data-kind=Range]")).toBeVisible();
    const scale = await viewer.plot.scale();
    const canvas = await viewer.plot.box();
    const box = await marks(page, "range").boundingBox();
    expect(Math.abs((box?.x ?? 0) - canvas.x - scale.x(block.alloc_event))).toBeLessThan(3);
    expect(
      Math.abs((box?.x ?? 0) + (box?.width ?? 0) - canvas.x - scale.x(block.free_completed_event)),
    ).toBeLessThan(3);
  },
);
