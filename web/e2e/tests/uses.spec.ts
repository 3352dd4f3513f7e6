// The strip of bytes that are never read again, above the timeline.

import { cli } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";

const KEPT = "beside/uses_kept/rank0_memory_snapshot.pickle.gz";

test("a traced step has a strip of bytes that are never read again", async ({ viewer, page }) => {
  await page.getByLabel("Open folder").first().setInputFiles(testData("beside/uses_kept"));
  await viewer.expectRow("uses_kept/rank0_memory_snapshot.pickle.gz", "ready");
  await viewer.settled();
  await viewer.place("Timeline");
  await viewer.plot.drawn();
  const lane = page.getByTestId("dead-lane");
  await expect(lane).toBeVisible();
  const report = cli("peak", KEPT, "--by", "use") as unknown;
  const { groups } = report as { groups: { group: string; bytes: number }[] };
  const atPeak = groups.find(({ group }) => group === "dead")?.bytes ?? 0;
  // Elsewhere in the step more can be dead than at its peak.
  const top = Number(await lane.getAttribute("data-value"));
  expect(top).toBeGreaterThanOrEqual(atPeak);
  await expect(lane).toHaveAttribute("title", /no operation of step 3 uses again/);
});

test("a file without a traced step has no such strip", async ({ viewer, page }) => {
  await page.getByLabel("Open folder").first().setInputFiles(testData("beside/exit"));
  await viewer.expectRow("exit/rank3_memory_snapshot.pickle", "ready");
  await viewer.settled();
  await viewer.place("Timeline");
  await viewer.plot.drawn();
  await expect(page.getByTestId("dead-lane")).toHaveCount(0);
});
