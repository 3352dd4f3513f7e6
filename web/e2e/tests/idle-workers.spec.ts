// A browser may stop a worker that does nothing, without a word to the page. A file that is opened
// then is read by new workers.

import { testData } from "../lib/data.js";
import { warmed } from "../lib/faults.js";
import { expect, test } from "../lib/test.js";

/** The questions to idle workers take two seconds. There are two: one for files, one for runs. */
const NOTICED_MS = 10_000;

test("a file is read although all idle workers have ended", async ({ viewer, page }) => {
  // The worker for files warms up when it has its module. The coordinator was started before it.
  await expect.poll(() => warmed(page), { timeout: 30_000 }).toBe(1);
  const idle = page.workers();
  expect(idle).toHaveLength(2);
  // The answer may not come: the worker has closed itself.
  await Promise.all(
    idle.map((worker) => worker.evaluate(() => self.close()).catch(() => undefined)),
  );
  await viewer.open(testData("scenarios/f01.pickle"));
  await expect(viewer.row("f01.pickle")).toHaveAttribute("data-state", "ready", {
    timeout: NOTICED_MS,
  });
  await viewer.plot.drawn();
  await expect(page.getByRole("alert")).toHaveCount(0);
});
