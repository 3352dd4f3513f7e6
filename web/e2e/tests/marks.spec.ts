// Marks of out-of-memory events and findings on the timeline, and the keys that visit them.

import { cli, deviceOf } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";
import { Views } from "../lib/views.js";

const OOM = "recorded/oom_expandable.pickle.gz";

test("out-of-memory events are findings and marks, which O, N and a click visit", async ({
  viewer,
  page,
}) => {
  const ooms = deviceOf(OOM).ooms.map(({ event }) => event);
  expect(ooms.length).toBeGreaterThan(1);
  const views = new Views(viewer);
  await views.show(testData(OOM));
  const others = cli("diagnose", OOM, "--all").findings.flatMap(({ kind, events }) =>
    kind === "oom" ? [] : events,
  );
  await views.setState({ at: -1 });
  await views.expectCursor(-1);
  await page.keyboard.press("0");
  const marks = views.pane("Timeline").locator("button.mark[data-kind=oom]");
  await expect(marks).toHaveCount(ooms.length);
  await expect(page.locator(".minimap-mark[data-kind=oom]")).toHaveCount(ooms.length);
  for (const event of ooms.toSorted((a, b) => a - b)) {
    await page.keyboard.press("o");
    await views.expectCursor(event);
  }
  await page.keyboard.press("o");
  await expect
    .poll(async () => others.includes((await viewer.state()).at ?? -2), "then a finding")
    .toBe(true);
  // Without filters, N visits the findings in order of their events, Shift+N goes back.
  await views.setState({ filter: "" });
  await views.setState({ at: -1 });
  await views.expectCursor(-1);
  const seen: number[] = [];
  for (let i = 0; i < 4; i += 1) {
    const { at: before } = await viewer.state();
    await page.keyboard.press("n");
    await expect.poll(async () => (await viewer.state()).at).not.toBe(before);
    seen.push((await viewer.state()).at ?? -2);
  }
  expect(seen).toEqual(seen.toSorted((a, b) => a - b));
  await page.keyboard.press("Shift+N");
  await views.expectCursor(seen.at(-2) ?? -2);
  await page.keyboard.press("0");
  await views.settledRange();
  await views.cursor(0);
  await expect(marks).toHaveCount(ooms.length);
  const lefts = await marks.evaluateAll((all) =>
    all.map((mark) => mark.getBoundingClientRect().left),
  );
  // Marks may overlap, so use the keyboard.
  await marks.nth(lefts.indexOf(Math.max(...lefts))).focus();
  await page.keyboard.press("Enter");
  await views.expectCursor(Math.max(...ooms));
});
