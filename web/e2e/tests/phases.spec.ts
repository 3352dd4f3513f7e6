// The lane of steps and their phases below the timeline.

import { cli } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";
import { Views } from "../lib/views.js";

const LEAK = "recorded/gpt_leak.pickle.gz";
const SMALL = "recorded/t26/gpt_small.pickle.gz";

test("the lane has all steps and phases, on both axes, and a click marks one", async ({
  viewer,
  page,
}) => {
  const views = new Views(viewer);
  await views.open(testData(SMALL));
  const steps = cli("info", SMALL).files[0]?.devices[0]?.steps ?? 0;
  expect(steps).toBeGreaterThan(2);
  const lane = page.getByRole("region", { name: "Phases of steps" });
  const items = lane.getByRole("button");
  const names = () => items.evaluateAll((all) => all.map((one) => one.ariaLabel ?? ""));
  for (const axis of ["event", "time"] as const) {
    await views.setState({ axis });
    await expect
      .poll(async () => {
        const named = (await names()).map((name) => {
          const [, from, to = from] =
            /^steps? (\d+)(?: to (\d+))?[,:].*, peak .*iB$/.exec(name) ?? [];
          return [Number(from), Number(to)] as const;
        });
        const isThere = (step: number) => named.some(([from, to]) => from <= step && step <= to);
        return Array.from({ length: steps }, (_, step) => step).filter((step) => !isThere(step));
      }, `steps without an item on the ${axis} axis`)
      .toEqual([]);
  }
  await views.setState({ axis: "event" });
  const backward = lane.getByRole("button", { name: /^step 1, backward: events #/ });
  const name = (await backward.getAttribute("aria-label")) ?? "";
  await test.step("hovering tells the step, the phase and the peak", async () => {
    await backward.hover();
    await expect(page.getByTestId("lane-tip")).toHaveText(name);
    await page.getByTestId("search").hover();
    await expect(page.getByTestId("lane-tip")).toHaveCount(0);
  });
  await test.step("a click marks its events", async () => {
    const [, first = "", last = ""] = /events #([\d,]+) to #([\d,]+),/.exec(name) ?? [];
    await backward.click();
    const number = (text: string) => Number(text.replaceAll(",", ""));
    // From the state before its first event to the state after its last one.
    await expect(views.fact("from")).toHaveAttribute("data-value", String(number(first) - 1));
    await expect(views.fact("to")).toHaveAttribute("data-value", String(number(last)));
    await expect(views.fact("peak")).toContainText(/, peak (.*)$/.exec(name)?.[1] ?? "a peak");
  });
  await test.step("arrow keys move between phases", async () => {
    await backward.focus();
    await page.keyboard.press("ArrowRight");
    await expect(lane.locator(":focus")).toHaveAttribute("aria-label", /^step 1, /);
    await page.keyboard.press("Enter");
    await expect(views.fact("from")).toHaveAttribute("data-value", /\d+/);
  });
});

test("zoomed out, narrow phases share items; without phases there is no lane", async ({
  viewer,
  page,
}) => {
  const views = new Views(viewer);
  await page.setViewportSize({ width: 420, height: 800 });
  await views.open(testData(LEAK));
  await views.main("Timeline");
  const items = page.locator(".phases .track");
  await expect(items.first()).toBeVisible();
  expect(await items.count()).toBeLessThan(200);
  const merged = page.locator(".phases .track[data-phase='']");
  await expect(merged).not.toHaveCount(0);
  expect(await merged.first().getAttribute("aria-label")).toMatch(/^steps? \d/);
  await page.setViewportSize({ width: 1440, height: 900 });
  await viewer.open(testData("recorded/misc/norecord.pickle"));
  await viewer.expectRow("norecord.pickle", "ready");
  await expect(items).toHaveCount(0);
});
