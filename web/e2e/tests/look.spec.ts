// How the timeline is drawn: colors, lines, search, and saved pictures.

import type { Page } from "@playwright/test";
import { PNG } from "pngjs";
import { cli, deviceOf } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import type { Picture } from "../lib/plot.js";
import { expect, test } from "../lib/test.js";
import type { Viewer } from "../lib/viewer.js";
import { type Main, Views } from "../lib/views.js";

const REAL = "recorded/t26/gpt_small.pickle.gz";
const SUMMARY = deviceOf(REAL);
const PEAK = SUMMARY.requested_bytes;

async function openTimeline(viewer: Viewer) {
  const views = new Views(viewer);
  await views.show(testData(REAL));
  // The whole height, so that a pixel is few bytes.
  await views.setState({ sheet: "none" });
  return { views, bands: views.line("reserved") };
}

/** Colors of sampled columns, below the marks at the top. Two pictures are compared by them. */
function columns(picture: Picture, bottom: number): string[] {
  const seen: string[] = [];
  for (let x = 80; x < picture.width - 20; x += 40) {
    const column: string[] = [];
    for (let y = 12; y < bottom; y += 3) column.push(String(picture.color(x, y)));
    seen.push(column.join(" "));
  }
  return seen;
}

const differing = (a: string[], b: string[]) =>
  a.filter((column, index) => column !== b[index]).length;

/** Takes pictures until two in a row are equal. */
async function rest(
  viewer: Viewer,
  bottom: number,
): Promise<{ picture: Picture; columns: string[] }> {
  let picture = await viewer.plot.picture();
  await expect
    .poll(async () => {
      const next = await viewer.plot.picture();
      const same = differing(columns(picture, bottom), columns(next, bottom)) === 0;
      picture = next;
      return same;
    })
    .toBe(true);
  return { picture, columns: columns(picture, bottom) };
}

test("each coloring draws another picture of the same height, with a legend", async ({
  viewer,
  page,
}) => {
  const { views, bands } = await openTimeline(viewer);
  // Without the lines of the bands, the top of the stack is the topmost drawn pixel.
  await bands.click();
  await expect(bands).toHaveAttribute("aria-pressed", "false");
  await page.keyboard.press("0");
  await views.settledRange();
  await viewer.canvas.hover({ position: { x: 5, y: 5 } });
  const bottom = Math.floor((await viewer.plot.scale()).bottom) - 2;
  const pictures = new Map<string, string[]>();
  for (const color of ["stack", "category", "size", "age", "stream", "segment"]) {
    await page.getByTestId("color-by").selectOption(color);
    await expect.poll(async () => (await viewer.state()).color ?? "category").toBe(color);
    const before = [...pictures.values()].at(-1);
    if (before) {
      await expect
        .poll(async () => differing(columns(await viewer.plot.picture(), bottom), before))
        .toBeGreaterThan(0);
    }
    const now = await rest(viewer, bottom);
    // The height of the plot depends on the legend.
    const scale = await viewer.plot.scale();
    const x = Math.round(scale.x(PEAK.peak_event + 0.5));
    const wanted = scale.y(PEAK.peak);
    // The background, and the mark that points down at the peak.
    const ground = [
      now.picture.color(Math.ceil(scale.left) + 2, 20),
      now.picture.color(x, Math.round(wanted) - 5),
    ];
    const tops = [x - 2, x - 1, x, x + 1, x + 2].map((column) =>
      now.picture.top(column, bottom, ground),
    );
    expect(Math.abs(Math.min(...tops) - wanted), `the peak, by ${color}`).toBeLessThanOrEqual(1.5);
    for (const [other, seen] of pictures) {
      expect(differing(seen, now.columns), `${color} and ${other}`).toBeGreaterThan(
        seen.length / 4,
      );
    }
    pictures.set(color, now.columns);
  }
  await page.getByTestId("color-by").selectOption("category");
  const legend = page.getByTestId("legend");
  for (const { category, bytes } of cli("peak", REAL).categories) {
    const entry = legend.locator(`[data-term="category:${category}"] .legend-bytes`);
    await expect(entry, category).toHaveAttribute("data-value", String(bytes));
  }
});

test("the capacity and the reserved bytes are lines at their heights", async ({ viewer, page }) => {
  const { views, bands } = await openTimeline(viewer);
  await test.step("a capacity is read from text, and other text is refused", async () => {
    const line = views.pane("Timeline").locator(".mark[data-kind=capacity]");
    await expect(line).toHaveCount(0);
    for (const [typed, gib, said] of [
      ["A10G", 22071 / 1024, "21.55 GiB"],

      [".5 GiB", 0.5, "512.0 MiB"],
    ] as const) {
      await views.gpu(typed);
      await expect(line).toHaveText(`GPU memory ${said}`);
      await page.getByTestId("timeline-canvas").focus();
      await page.keyboard.press("0");
      await expect
        .poll(async () => {
          const [scale, box, place] = [
            await viewer.plot.scale(),
            await viewer.plot.box(),
            await line.boundingBox(),
          ];
          return Math.abs((place?.y ?? 0) - box.y - scale.y(gib * 2 ** 30));
        }, typed)
        .toBeLessThanOrEqual(2);
    }
    await views.main("Summary");
    const field = page.getByTestId("capacity");
    // Text without a usable amount is marked invalid and keeps the capacity.
    for (const typed of ["much", "99999999 TiB"]) {
      await field.fill(typed);
      await field.press("Enter");
      await expect(field, typed).toHaveAttribute("aria-invalid", "true");
      await expect(field).toHaveValue(typed);
    }
    // A capacity from a link or a script is shown with its unit.
    await page.evaluate(() => window.vramscope.setState({ capacity: 0.75 }));
    await expect(field).toHaveValue("0.75 GiB");
    await expect(field).toHaveAttribute("aria-invalid", "false");
    const room = await field.evaluate((input: HTMLInputElement) => {
      input.value = "";
      input.style.width = "0";
      input.value = input.placeholder;
      const wanted = input.scrollWidth;
      input.value = "0.75 GiB";
      input.style.width = "";
      return input.clientWidth - wanted;
    });
    expect(room, "the placeholder and its arrow fit").toBeGreaterThan(16);
    await views.main("Timeline");
    await expect(line).toHaveText("GPU memory 768.0 MiB");
    await views.gpu("");
    await expect(line).toHaveCount(0);
  });
  await test.step("the line of reserved bytes can be hidden", async () => {
    // A fixed height, with or without the lines of the bands.
    await views.gpu("4");
    await viewer.canvas.focus();
    await page.keyboard.press("0");
    const bottom = Math.floor((await viewer.plot.scale()).bottom) - 2;
    const withLines = await rest(viewer, bottom);
    const scale = await viewer.plot.scale();
    // Beside the top of the stack, where only the line of reserved bytes is drawn.
    const { peak, peak_event } = SUMMARY.reserved_bytes;
    const x = Math.round(scale.x(peak_event + 40));
    const ground = [withLines.picture.color(Math.ceil(scale.left) + 2, 20)];
    const drawnAt = (picture: Picture, y: number) =>
      [-2, -1, 0, 1, 2].some((by) => picture.differs(x, Math.round(y) + by, ground));
    expect(peak).toBeGreaterThan(PEAK.peak);
    expect(drawnAt(withLines.picture, scale.y(peak)), "a line at the peak of reserved bytes").toBe(
      true,
    );
    await expect(bands).toHaveAttribute("aria-pressed", "true");
    await bands.click();
    await expect(bands).toHaveAttribute("aria-pressed", "false");
    await expect
      .poll(async () => differing(columns(await viewer.plot.picture(), bottom), withLines.columns))
      .toBeGreaterThan(0);
    const without = await rest(viewer, bottom);
    expect((await viewer.plot.scale()).y(peak)).toBeCloseTo(scale.y(peak), 1);
    expect(drawnAt(without.picture, scale.y(peak)), "no line").toBe(false);
    await bands.click();
    await expect
      .poll(async () => differing((await rest(viewer, bottom)).columns, withLines.columns))
      .toBe(0);
  });
});

/** Mean difference of the largest and smallest channel between two rows: 0 is gray. */
function colorful(picture: Picture, y0: number, y1: number): number {
  let sum = 0;
  let count = 0;
  for (let x = 80; x < picture.width - 20; x += 7) {
    for (let y = y0; y < y1; y += 3) {
      const rgb = picture.color(x, y);
      sum += Math.max(...rgb) - Math.min(...rgb);
      count += 1;
    }
  }
  return sum / count;
}

test("a search grays out other blocks, and a mark lets clicks through to the block below", async ({
  viewer,
  page,
}) => {
  const { views, bands } = await openTimeline(viewer);
  await test.step("a search grays out blocks that do not match", async () => {
    await bands.click();
    await expect(bands).toHaveAttribute("aria-pressed", "false");
    const bottom = Math.floor((await viewer.plot.scale()).bottom) - 2;
    const look = async () => colorful(await viewer.plot.picture(), bottom - 60, bottom);
    const plain = colorful((await rest(viewer, bottom)).picture, bottom - 60, bottom);
    await views.search("there is no such frame");
    await expect(page.locator("output.found")).toHaveAttribute("data-value", "0");
    await expect.poll(look).toBeLessThan(plain / 3);
    const none = colorful((await rest(viewer, bottom)).picture, bottom - 60, bottom);
    // Constructors allocate the parameters, which lie at the bottom.
    await views.search("__init__");
    await expect.poll(look).toBeGreaterThan(2 * none);
    expect(await look()).toBeLessThan(plain);
    await views.search(">=0B");
    // Blocks that are low are merged with those of other groups, and have no edge between them.
    await expect.poll(async () => Math.abs((await look()) - plain)).toBeLessThan(0.01 * plain);
    await page.keyboard.press("Escape");
    await expect.poll(async () => (await viewer.state()).find).toBeUndefined();
    await expect.poll(look).toBeCloseTo(plain, 1);
  });
  await test.step("a click through a mark selects the block below", async () => {
    const finding = cli("diagnose", REAL, "--all").findings.find(
      ({ kind, events }) => kind !== "oom" && events.length > 0,
    );
    const [event] = finding?.events ?? [];
    if (event === undefined) throw new Error("no finding with an event");

    await views.zoomTo(event - 30, event + 30);
    await views.settledRange();
    await viewer.chooseAll();
    const mark = views.pane("Timeline").locator(".mark[data-kind=finding]");
    const place = await mark.boundingBox();
    const box = await viewer.plot.box();
    const x = (place?.x ?? 0) + (place?.width ?? 0) / 2;
    // Low in the stack, far from the handle of the mark.
    const y = (await viewer.plot.scale()).y(
      cli("state", REAL, "--at", String(event)).requested_bytes / 20,
    );
    const below = await page.evaluate(
      ([px = 0, py = 0]) => window.vramscope.pick("timeline", px, py),
      [x - box.x, y],
    );
    await page.mouse.click(x, box.y + y);
    await expect.poll(async () => (await viewer.state()).sel).toBe(below?.reference);
    expect(below).not.toBeNull();
  });
});

/** Element names, texts and fills of an SVG document. */
const parsed = (page: Page, svg: Buffer) =>
  page.evaluate((text) => {
    const document = new DOMParser().parseFromString(text, "image/svg+xml");
    return {
      error: document.querySelector("parsererror")?.textContent ?? null,
      root: document.documentElement.localName,
      kinds: [
        ...new Set([...document.querySelectorAll("*")].map((element) => element.localName)),
      ].toSorted(),
      colors: document.querySelectorAll("path[fill]").length,
      title: document.querySelector("title")?.textContent ?? "",
      texts: [...document.querySelectorAll("text")].map((element) => element.textContent ?? ""),
    };
  }, svg.toString("utf8"));

test("each plot is saved as SVG with labels, and the timeline as PNG at twice the size", async ({
  viewer,
  page,
}) => {
  // High enough for several labels of the axes.
  await page.setViewportSize({ width: 1440, height: 1050 });
  const { views } = await openTimeline(viewer);
  await test.step("PNG", async () => {
    const share = async (form: "PNG" | "SVG") => {
      await page.getByTestId("share").click();
      const item = page.locator(".menu-item:visible", {
        hasText: `Picture of the timeline, ${form}`,
      });
      return views.download(item);
    };
    const svg = await share("SVG");
    const [, width, height] =
      /<svg [^>]*width="([\d.]+)" height="([\d.]+)"/.exec(svg.bytes.toString("utf8")) ?? [];
    const { name, bytes } = await share("PNG");
    expect(name).toBe("gpt_small-timeline.png");
    const png = PNG.sync.read(bytes);
    expect(png.width).toBe(2 * Number(width));
    expect(png.height).toBe(2 * Number(height));
    expect(png.width).toBeGreaterThan((await viewer.plot.box()).width);
    const colors = new Set<string>();
    for (let at = 0; at < png.data.length; at += 4 * 97)
      colors.add(String(png.data.subarray(at, at + 3)));
    expect(colors.size).toBeGreaterThan(8);
  });
  await test.step("SVG", async () => {
    const save = async (tab: Main) => {
      if (tab === "Timeline") await page.getByTestId("share").click();
      const { name, bytes } = await views.download(
        tab === "Timeline"
          ? page.locator(".menu-item:visible", { hasText: "Picture of the timeline, SVG" })
          : views.pane(tab).getByRole("button", { name: "SVG" }),
      );
      expect(name).toBe(`gpt_small-${tab.toLowerCase()}.svg`);
      const found = await parsed(page, bytes);
      expect(found.error).toBeNull();
      expect(found.root).toBe("svg");
      expect(found.title).toContain("gpt_small.pickle.gz");
      expect(found.colors).toBeGreaterThan(8);
      return found.texts;
    };
    const bytes = (texts: string[]) =>
      texts.filter((text) => /^[\d.,]+ ([KMGT]i)?B$/.test(text)).length;
    const events = (texts: string[]) => texts.filter((text) => /^#[\d,]+$/.test(text)).length;
    const timeline = await save("Timeline");
    expect(bytes(timeline)).toBeGreaterThan(2);
    expect(events(timeline)).toBeGreaterThan(2);
    await views.main("Segments");
    await expect(views.pane("Segments").locator(".segment-label").first()).toBeVisible();
    const segments = await save("Segments");
    expect(bytes(segments)).toBe(cli("segments", REAL, "--at", "end").segments.length);
    expect(events(segments)).toBeGreaterThan(2);
    const flame = await views.main("Flame");
    await expect(flame.getByRole("button", { name: "(all)", exact: true })).toBeVisible();
    expect(await save("Flame")).toContain("(all)");
  });
});
