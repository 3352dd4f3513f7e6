// Mistakes of other viewers about addresses and times: each test would catch one of them here.

import { blocksOf, referenceOf } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { Plot } from "../lib/plot.js";
import { expect, test } from "../lib/test.js";
import type { Viewer } from "../lib/viewer.js";
import { expectCursor, pane, selectedOf, still, work } from "../lib/work.js";

const scenario = (name: string) => testData(`scenarios/${name}.pickle`);

/** Opens the segments view; `middle` gives the center of a row in pixels. */
async function segmentRows(
  viewer: Viewer,
): Promise<{ plot: Plot; middle: (bytes: number) => Promise<number> }> {
  const { page } = viewer;
  await page.evaluate(() => window.vramscope.setState({ view: "segments" }));
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

const isSame = (a: ReadonlySet<string>, b: ReadonlySet<string>) =>
  a.size === b.size && [...a].every((color) => b.has(color));

test("a segment is drawn from its creation to its end", async ({ viewer, page }) => {
  const file = scenario("f17");
  await work(viewer, file);
  const { plot, middle } = await segmentRows(viewer);
  await expect(page.locator(".segment-label")).toHaveCount(3);
  const { x } = await plot.scale();
  // Event 0 adds the segment of 2,048 bytes, event 1 that of 1,000, and event 2 frees the latter.
  const [always, later, brief] = [await middle(4096), await middle(2048), await middle(1000)];
  await expect
    .poll(async () => {
      const picture = await plot.picture();
      const ground = picture.run(x(0.5), brief);
      const free = picture.run(x(1.5), always);
      const there = (row: number) =>
        [-0.5, 0.5, 1.5, 2.5].map((at) => isSame(picture.run(x(at), row), free));
      return {
        striped: ground.size === 1 && free.size === 2 && !isSame(ground, free),
        always: there(always),
        later: there(later),
        brief: there(brief),
      };
    })
    .toEqual({
      striped: true,
      always: [true, true, true, true],
      later: [false, true, true, true],
      brief: [false, false, true, false],
    });
});

test("a pending free is drawn as such, along events and along time", async ({ viewer, page }) => {
  // The free is requested by event 1 and completed by event 3.
  await work(viewer, scenario("f06"));
  const { plot, middle } = await segmentRows(viewer);
  const row = await middle(4096);
  const { x: first } = await plot.scale();
  let own = "";
  let inside = 0;
  // A row of the block, which has one color before its free is requested.
  await expect
    .poll(async () => {
      const picture = await plot.picture();
      const rows = Array.from({ length: 33 }, (_, by) => row - 16 + by);
      const ground = picture.run(first(0.5), 3);
      const solid = rows.filter((y) => {
        const run = picture.run(first(0.5), y);
        return run.size === 1 && !isSame(run, ground);
      });
      inside = solid[solid.length >> 1] ?? 0;
      own = String(picture.color(Math.round(first(0.5)), inside));
      return inside;
    })
    .toBeGreaterThan(0);
  /** Whether the block has stripes of its own color in a column. */
  const pending = async (column: number) => {
    const run = (await plot.picture()).run(column, inside);
    return run.size === 2 && run.has(own);
  };
  const { x } = await plot.scale();
  await expect
    .poll(async () => [await pending(x(0.5)), await pending(x(2.5)), await pending(x(3.5))])
    .toEqual([false, true, false]);
  await page.keyboard.press("x");
  await expect.poll(async () => (await viewer.state()).axis).toBe("time");
  // The free is requested after 1 ms and completed after 2 ms.
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
  await expect
    .poll(async () => [await pending(await at(0.75)), await pending(await at(1.5))])
    .toEqual([false, true]);
});

/** Two blocks at one address, with a slot and an event in the life of each. */
const TWICE = scenario("f05");
const both = [
  ["0:0x1000@0", 0.5, 0],
  ["0:0x1000@3", 3.5, 3],
] as const;

/** Clears the selection. */
async function nothing(viewer: Viewer): Promise<void> {
  await viewer.page.evaluate(() => window.vramscope.select(null));
  await expect.poll(() => selectedOf(viewer)).toBeNull();
}

test("two blocks at one address are two in plots, tables and the state at the cursor", async ({
  viewer,
  page,
}) => {
  await test.step("plots", async () => {
    expect(
      blocksOf(TWICE)
        .map((block) => referenceOf(block))
        .toSorted(),
    ).toEqual(both.map(([reference]) => reference));
    await work(viewer, TWICE);
    await viewer.chooseAll();
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
      // The row of the selected block is higher than others.
      const row = await still(() => middle(4096));
      // Find the block in the first eighth of the segment.
      const column = Math.round(scale.x(at));
      let there = -1;
      await expect
        .poll(async () => {
          const picture = await plot.picture();
          const stripes = Array.from({ length: 6 }, (_, by) => picture.color(column + by, row));
          const free = [...stripes, picture.color(column, picture.png.height >> 1)];
          const rows = Array.from({ length: 40 }, (_, i) => row - 20 + i).filter((y) => y > 0);
          const colored = rows.filter((y) => picture.differs(column, y, free));
          there = colored[colored.length >> 1] ?? -1;
          return there;
        })
        .toBeGreaterThan(0);
      await page.mouse.click(canvas.x + column, canvas.y + there);
      await expect.poll(() => selectedOf(viewer), "a click on the segment").toBe(reference);
    }
  });
  await test.step("tables and state", async () => {
    await page.keyboard.press("2");
    await page.evaluate(() => window.vramscope.setState({ sheet: "blocks" }));
    for (const [index, reference] of [both[1][0], both[0][0]].entries()) {
      await page.getByTestId("blocks-table").locator(".table-row").nth(index).click();
      await expect.poll(() => selectedOf(viewer), "a row of the blocks").toBe(reference);
    }
    await page.evaluate(() => window.vramscope.setState({ sheet: "events" }));
    for (const [reference, , event] of both) {
      await nothing(viewer);
      await page.getByTestId("events-table").locator(`.table-row[data-key="${event}"]`).click();
      await expect.poll(() => selectedOf(viewer), "a row of the events").toBe(reference);
    }
    for (const [reference, , event] of both) {
      await nothing(viewer);
      await page.evaluate(([at = 0]) => window.vramscope.setState({ at }), [event]);
      await expectCursor(page, event);
      await page.evaluate((state) => window.vramscope.setState(state), {
        filter: `live@${event}`,
      });
      await viewer.canvas.focus();
      await page.keyboard.press("n");
      await expect.poll(() => selectedOf(viewer), "a stack of the state").toBe(reference);
      await page.evaluate(() => window.vramscope.setState({ filter: "" }));
    }
  });
});
