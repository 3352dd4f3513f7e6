// The layout of the page in small windows.

import { testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";
import { Views } from "../lib/views.js";

test("in small and narrow windows nothing is cut off, and the selected tab is in view", async ({
  viewer,
  page,
}) => {
  await test.step("1000 x 700 pixels", async () => {
    await page.setViewportSize({ width: 1000, height: 700 });
    await viewer.show(testData("recorded/t26/two_devices.pickle.gz"));
    const over = await page.evaluate(() => {
      const { scrollWidth, clientWidth, scrollHeight, clientHeight } = document.documentElement;
      return { x: scrollWidth - clientWidth, y: scrollHeight - clientHeight };
    });
    expect(over).toEqual({ x: 0, y: 0 });
    const box = await viewer.plot.box();
    expect(box.width).toBeGreaterThan(400);
    // Above it are the verdict, the legend and the lanes of steps, below it the drawer.
    expect(box.height).toBeGreaterThan(180);
  });
  await test.step("760 pixels wide", async () => {
    await page.setViewportSize({ width: 760, height: 900 });
    const views = new Views(viewer);

    for (const title of ["Compare", "Flame", "Timeline", "Segments", "Overview"] as const) {
      const pane = await views.main(title);
      const tab = page.getByRole("tablist", { name: "Views" }).getByRole("tab", { name: title });
      const inView = () =>
        tab.evaluate((one) => {
          const [list, at] = [
            one.parentElement?.getBoundingClientRect(),
            one.getBoundingClientRect(),
          ];
          return list !== undefined && list.left <= at.left && at.right <= list.right + 0.5;
        });
      await expect.poll(inView, title).toBe(true);
      const cut = await pane
        .locator(".toolbar .segmented, .toolbar .button, .toolbar .toggle")
        .evaluateAll((all) =>
          all.filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent),
        );
      expect(cut, title).toEqual([]);
    }
  });
});
