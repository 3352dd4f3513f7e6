// Large files: too little memory, many chunks, slow answers.

import { readFileSync, writeFileSync } from "node:fs";
import { cli, deviceOf } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";
import { pane, work } from "../lib/work.js";

const REAL = "recorded/gpt_leak.pickle.gz";
const NAME = "gpt_leak.pickle.gz";
/** Bytes: less than the whole file needs, enough for a part of it. */
const LIMIT = 1_350_000;

test("a file that needs too much memory says so, and a part of it opens", async ({
  viewer,
  page,
}) => {
  const { events, requested_bytes: whole } = deviceOf(REAL);

  await page.evaluate((limit) => window.vramscope.limitMemory(limit), LIMIT);
  await viewer.open(testData(REAL));
  await viewer.expectRow(NAME, "error");
  await expect(viewer.row(NAME)).toContainText("needs about");
  const form = page.getByTestId("part-form");
  await expect(form).toContainText("in a browser tab");
  await expect(form).toContainText(`vramscope summary ${NAME}`);
  await expect(page.getByTestId("part-events")).toHaveAttribute("data-value", String(events));
  // The curve covers all events.
  await expect(page.getByTestId("part-events")).toHaveText(
    `${events.toLocaleString("en-US")} events`,
  );

  // The other places do not repeat the error.
  await viewer.place("Allocator");
  await expect(pane(page, "map")).toHaveText(/^No part is open\s*Choose a part in the timeline\.$/);
  await viewer.place("Timeline");

  // The minimap takes no room.
  await expect(page.locator(".strip")).toBeHidden();

  // On a narrow screen the empty pane makes room for the form.
  const wide = page.viewportSize();
  await page.setViewportSize({ width: 700, height: 900 });
  await expect(form.getByRole("button", { name: "Open this part" })).toBeInViewport({ ratio: 1 });
  await expect(viewer.row(NAME).locator(".rank-error")).toBeInViewport({ ratio: 1 });
  if (wide) await page.setViewportSize(wide);

  // The proposed part lies around the peak.
  const [first, last] = [form.getByLabel("First event"), form.getByLabel("Last event")];
  const offered = async () =>
    [Number(await first.inputValue()), Number(await last.inputValue())] as const;
  const [from, to] = await offered();
  expect(from).toBeLessThanOrEqual(whole.peak_event);
  expect(to).toBeGreaterThanOrEqual(whole.peak_event);
  expect(to - from).toBeGreaterThan(50);
  expect(to - from).toBeLessThan(events - 1);

  // Dragging over the curve and typing choose a part.
  const curve = page.getByTestId("part-curve");
  const box = await curve.boundingBox();
  if (!box) throw new Error("the curve is missing");
  const x = (part: number) => box.x + box.width * part;
  const y = box.y + box.height / 2;
  const expectPart = (from: number, to: number) =>
    expect(async () => {
      const [left, right] = await offered();
      expect(Math.abs(left - events * from)).toBeLessThan(events * 0.02);
      expect(Math.abs(right - events * to)).toBeLessThan(events * 0.02);
    }).toPass({ timeout: 10_000 });
  await page.mouse.move(x(0.75), y);
  await page.mouse.down();
  await page.mouse.move(x(0.5), y, { steps: 4 });
  await page.mouse.up();
  await expectPart(0.5, 0.75);
  // A browser may drop the last pointermove: the position of pointerup counts.
  await page.mouse.move(x(0.1), y);
  await page.mouse.down();
  await curve.dispatchEvent("pointerup", { pointerId: 1, clientX: x(0.3), clientY: y });
  await page.mouse.up();
  await expectPart(0.1, 0.3);
  await first.fill("12000");
  await last.fill("12499");
  await form.getByRole("button", { name: "Open this part" }).click();
  await viewer.expectRow(NAME, "ready");

  // The program reports the same numbers for these events.
  const part = cli("summary", REAL, "--window", "12000..12500").files[0]?.devices[0];
  if (!part) throw new Error("the part has no device");
  expect(part.events).toBeLessThan(events);
  await expect(viewer.peak).toHaveAttribute("data-value", String(part.requested_bytes.peak));
  const line = page.getByTestId("part-line");
  await expect(line).toContainText("events #12,000 to #12,499 of");
  await expect(viewer.canvas).toBeVisible();
  await expect(page.locator(".strip")).toBeVisible();
  // The label of the part appears once.
  await expect(page.getByTestId("view-timeline").getByText("a part of the file")).toHaveCount(1);

  // Another part can be chosen.
  await line.getByRole("button", { name: "Choose another part" }).click();
  await expect(first).toHaveValue("12000");
  await first.fill("0");
  await last.fill(String(events - 1));
  await form.getByRole("button", { name: "Open this part" }).click();
  await expect(form).toContainText("This part of the snapshot needs about");
  await viewer.expectRow(NAME, "error");
});

test("a file for which threads start is read by one where the page has none", async ({
  viewer,
  page,
}, info) => {
  expect(await page.evaluate(() => crossOriginIsolated)).toBe(true);
  const large = info.outputPath("large.json");
  const json = readFileSync(testData("containers/snapshot.json"), "utf8");
  writeFileSync(large, json + " ".repeat(65 << 20));
  await viewer.open(large);
  await viewer.expectRow("large.json", "ready");
});

test("a file of 20 MiB is read in chunks, and damage in its last chunk is an error", async ({
  viewer,
  page,
}, info) => {
  const small = "containers/snapshot.json";
  // Whitespace after a JSON text is ignored: 20 MiB arrive in small and in large chunks.
  const json = readFileSync(testData(small), "utf8");
  const space = " ".repeat(20 << 20);
  const padded = info.outputPath("padded.json");
  writeFileSync(padded, json + space);
  await viewer.open(padded);
  await viewer.expectRow("padded.json", "ready");
  await expect(viewer.peak).toHaveAttribute(
    "data-value",
    String(deviceOf(small).requested_bytes.peak),
  );

  const cut = info.outputPath("cut.json");
  writeFileSync(cut, space + json.slice(0, -3));
  await page.getByTestId("open-files").setInputFiles(cut);
  const notice = page.getByRole("alert");
  await expect(notice).toContainText("cut.json: ");
  await expect(notice).not.toContainText("fault in vramscope");
});

test("a progress line shows while an answer takes long", async ({ viewer, page }) => {
  await page.evaluate(() => {
    const { postMessage } = Worker.prototype;
    Worker.prototype.postMessage = function (
      this: Worker,
      message: { kind?: string },
      ...rest: never[]
    ) {
      const late = Reflect.get(window, "late") && message.kind === "ask" ? 1500 : 0;
      const send = () => Reflect.apply(postMessage, this, [message, ...rest]);
      if (late) setTimeout(send, late);
      else send();
    };
  });
  await work(viewer, testData(REAL));
  const line = page.getByRole("progressbar", { name: "Computing" });
  await expect(line).toHaveCount(0);
  await page.evaluate(() => Object.assign(window, { late: true }));
  await page.keyboard.press("p");
  await expect(line).toBeVisible();
  await page.evaluate(() => Object.assign(window, { late: false }));
  await expect(line).toHaveCount(0);
});
