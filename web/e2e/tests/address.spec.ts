// The page keeps its state in its address, and a reload restores it.

import type { ViewState } from "vramscope-viewer";
import { blocksOf, referenceOf } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";
import {
  answering,
  expectCursor,
  expectPlace,
  marks,
  restedRange,
  select,
  work,
} from "../lib/work.js";

const TWO = testData("recorded/t26/two_devices.pickle.gz");

/** A block of the second device that is allocated after event 5. */
function blockOfTheSecond(): { reference: string; event: number } {
  const block = blocksOf(TWO, "--device", "1").find(
    ({ alloc_event }) => alloc_event !== null && alloc_event > 5,
  );
  if (!block || block.alloc_event === null) throw new Error("no such block");
  return { reference: referenceOf(block, 1), event: block.alloc_event };
}

test("a reload restores the whole state, and a link with a bad field all other fields", async ({
  viewer,
  page,
}) => {
  await work(viewer, TWO);
  const { reference, event } = blockOfTheSecond();
  await viewer.device.selectOption("1");
  await answering(page);
  await page.getByRole("button", { name: "time", exact: true }).click();
  await expect.poll(async () => (await viewer.state()).axis).toBe("time");
  const whole = await restedRange(viewer);
  const width = whole.x1 - whole.x0;
  const third = Math.round(whole.x0 + width / 3);
  // Within the range in view, with a fraction of a microsecond.
  const range = `time:${third + 0.5}:${third + Math.round(width / 10)}`;
  await select(viewer, reference);
  await page.evaluate((state) => window.vramscope.setState(state), {
    view: "flame",
    sheet: "events",
    x0: Math.round(whole.x0 + width / 4),
    x1: Math.round(whole.x0 + width / 2),
    at: event,
    range,
    markers: "4,10",
    rulers: `x:event:1:3:0:0,x:time:${third}:${third + 1000}:0:0`,
    capacity: 1.5,
    find: "forward",
    color: "size",
    theme: "dark",
  } satisfies ViewState);
  await expectCursor(page, event);
  await restedRange(viewer);
  const before = await viewer.state();
  expect(before).toMatchObject({
    device: 1,
    axis: "time",
    sel: reference,
    at: event,
    range,
    view: "flame",
  });
  await expect.poll(() => page.url()).toMatch(/color=size.*theme=dark/);

  await page.reload();
  await page.waitForFunction(() => "vramscope" in window);
  await expect(page.getByTestId("wanted-file")).toBeVisible();
  await page.getByTestId("open-files").setInputFiles(TWO);
  await expect.poll(() => viewer.state()).toEqual(before);
  await expectPlace(page, "flame", "main");
  await viewer.place("Timeline");
  await expectPlace(page, "events", "sheet");
  await expect(page.locator("[data-theme=dark]")).toBeVisible();
  await expect(viewer.details.locator("[data-reference]")).toHaveAttribute(
    "data-reference",
    reference,
  );
  await expectCursor(page, event);
  await expect(page.getByTestId("search")).toHaveValue("forward");
  await page.getByRole("tab", { name: "Timeline" }).click();
  await expectPlace(page, "timeline", "main");
  expect(
    await restedRange(viewer),
    "the range of a timeline that was hidden during the reload",
  ).toEqual({ x0: before.x0, x1: before.x1 });
  await expect(page.getByTestId("color-by")).toHaveValue("size");
  await expect(page.locator(".mark[data-kind=range]")).toHaveCount(1);
  // A ruler along events has no place on the time axis.
  await expect(marks(page, "ruler-x")).toHaveCount(1);
  expect((await viewer.state()).capacity).toBe(1.5);
  await expect(viewer.device).toHaveValue("1");
  await expect(page.getByRole("button", { name: "time", exact: true })).toHaveAttribute(
    "aria-pressed",
    "true",
  );
  await page.evaluate(() => {
    location.hash = "v=1&view=segments&color=red&theme=light";
  });
  await expect.poll(() => viewer.state()).toMatchObject({ view: "segments", color: "size" });
  expect((await viewer.state()).theme).toBe("light");
});
