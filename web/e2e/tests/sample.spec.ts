// The sample run of the landing page.

import { sample } from "../lib/data.js";
import { expect, test } from "../lib/test.js";
import { Views } from "../lib/views.js";

test("the sample run has the oracle's peaks, in order of rank and in its pictures", async ({
  viewer,
  page,
}) => {
  await test.step("peaks of all ranks", async () => {
    await expect(page.getByTestId("drop-zone")).toBeVisible();
    const started = Date.now();
    await page.getByTestId("open-sample").click();
    await expect(viewer.rows).toHaveCount(8);
    await viewer.settled();
    await viewer.place("Timeline");
    await viewer.plot.drawn();
    const firstPicture = Date.now() - started;
    for (const [path, expected] of Object.entries(sample)) {
      await viewer.expectRow(path, "ready");
      await expect(viewer.row(path)).toHaveAttribute("data-rank", String(expected.rank));
      await expect(viewer.rowPeak(path)).toHaveAttribute(
        "data-value",
        String(expected.requested_bytes.peak_bytes),
      );
    }
    test.info().annotations.push({ type: "first picture", description: `${firstPicture} ms` });
  });
  await test.step("order of rows, and selection", async () => {
    const ranks = await viewer.rows.evaluateAll((rows) =>
      rows.map((row) => row.getAttribute("data-rank")),
    );
    expect(ranks).toEqual(["0", "1", "2", "3", "4", "5", "6", "7"]);
    for (const path of ["rank5_memory_snapshot.pickle", "rank2_memory_snapshot.pickle"]) {
      await viewer.expectRow(path, "ready");
      await viewer.row(path).click();
      const peak = sample[path]?.requested_bytes.peak_bytes;
      await expect(viewer.peak).toHaveAttribute("data-value", String(peak));
      await expect.poll(async () => (await viewer.state()).path).toBe(path);
      await expect(viewer.row(path)).toHaveAttribute("aria-selected", "true");
    }
  });
  await test.step("many colors in both themes", async () => {
    await viewer.row("rank0_memory_snapshot.pickle").click();
    await viewer.plot.drawn();
    for (const theme of ["dark", "light"] as const) {
      await page.emulateMedia({ colorScheme: theme });
      await expect(page.locator(`[data-theme=${theme}]`)).toBeVisible();
      await page.screenshot({ path: `out/sample-${theme}.png` });
      const picture = await viewer.plot.picture();
      const scale = await viewer.plot.scale();
      const peak = sample["rank0_memory_snapshot.pickle"]?.requested_bytes;
      if (!peak) throw new Error("no rank 0 in sample_expected.json");
      const x = Math.round(scale.x(peak.peak_event + 0.5));
      const seen = new Set<string>();
      for (let y = Math.round(scale.y(peak.peak_bytes)) + 1; y < scale.bottom - 1; y += 1)
        seen.add(String(picture.color(x, y)));
      expect(seen.size, `colors at the peak, ${theme}`).toBeGreaterThan(8);
      const [r, g, b] = picture.color(x, 1);
      expect((r + g + b) / 3 > 128, `the background is ${theme}`).toBe(theme === "light");
    }
  });
  await test.step("the picture is as high as the peak", async () => {
    // The lines of the bands would cover the top of the stack.
    await new Views(viewer).line("reserved").click();
    for (const [path, expected] of Object.entries(sample).slice(0, 3)) {
      await viewer.row(path).click();
      await expect.poll(async () => (await viewer.state()).path).toBe(path);
      await viewer.plot.drawn();
      const scale = await viewer.plot.scale();
      const picture = await viewer.plot.picture();
      const { peak_bytes, peak_event } = expected.requested_bytes;
      const x = Math.round(scale.x(peak_event + 0.5));
      const wanted = scale.y(peak_bytes);
      const bottom = Math.floor(scale.bottom) - 1;
      // The background, and the mark that points down at the peak.
      const background = [picture.color(x, 1), picture.color(x, Math.round(wanted) - 5)];

      const share = picture.share(
        Math.ceil(scale.left) + 1,
        Math.ceil(wanted),
        picture.width - 20,
        bottom,
        background,
      );
      expect(share, "share of the plot that is drawn").toBeGreaterThan(0.1);
      const columns = [x - 2, x - 1, x, x + 1, x + 2];
      const top = Math.min(...columns.map((column) => picture.top(column, bottom, background)));
      expect(
        Math.abs(top - wanted),
        `drawn from row ${top}, the peak is at ${wanted}`,
      ).toBeLessThanOrEqual(1);
    }
  });
});
