// Input from outside stays text: names of files, frames and ranges, addresses, links. Long texts do
// not break the layout.

import type { Page } from "@playwright/test";
import { misfits } from "../lib/fit.js";
import { expect, test } from "../lib/test.js";

const TAG = `<img src="x" onerror="window.hurt=1"><script>window.hurt=1</script>`;
const NASTY = [
  TAG,
  `"><svg onload="window.hurt=1">`,
  "javascript:window.hurt=1",
  "\u202egpj.elif\u2066",
  "__proto__",
  "constructor",
  "{{constructor.constructor('window.hurt=1')()}}",
  "\u0000\u0007\u001b[31m",
  "x".repeat(10_000),
  "\ud83d\udca9".repeat(300),
];

/** A snapshot in JSON with a hostile text in every field. */
function snapshot(): Buffer {
  const frames = NASTY.map((name, i) => ({
    name,
    filename: NASTY[(i + 3) % NASTY.length],
    line: i,
  }));
  const trace = NASTY.flatMap((name, i) => {
    const addr = 4096 * (i + 1);
    const event = {
      addr,
      size: 1 << 20,
      stream: 0,
      time_us: 1000 + i,
      frames: [...frames.slice(i), ...frames.slice(0, i)],
    };
    return [
      { ...event, action: "alloc", user_metadata: name },
      ...(i % 2 === 0
        ? []
        : [
            { ...event, action: "free_requested" },
            { ...event, action: "free_completed" },
          ]),
    ];
  });
  const external_annotations = NASTY.flatMap((name, i) => [
    { device: 0, time_us: 1000 + i, name, stage: "START" },
    { device: 0, time_us: 1005 + i, name, stage: "END" },
  ]);
  const allocator_settings = Object.fromEntries(NASTY.map((name) => [name, name]));
  return Buffer.from(
    JSON.stringify({
      segments: [],
      device_traces: [trace],
      external_annotations,
      allocator_settings,
    }),
  );
}

async function unhurt(page: Page): Promise<void> {
  const found = await page.evaluate(() => {
    const root = document.querySelector("vramscope-viewer")?.shadowRoot;
    return {
      hurt: "hurt" in window,
      polluted: "polluted" in {},
      elements: root?.querySelectorAll("img, script, iframe, object, [onerror], [onload]").length,
      // Nothing is wider than the window.
      over: document.documentElement.scrollWidth - innerWidth,
      links: [...(root?.querySelectorAll("a") ?? [])].filter((a) =>
        /^(javascript|data):/i.test(a.href),
      ).length,
    };
  });
  expect(found).toEqual({ hurt: false, polluted: false, elements: 0, over: 0, links: 0 });
}

test("texts of a snapshot are only text, in every view and in a saved picture", async ({
  viewer,
  page,
}) => {
  await test.step("views", async () => {
    await viewer.open({
      name: `${TAG}/\u202e.json`,
      mimeType: "application/json",
      buffer: snapshot(),
    });
    await viewer.plot.drawn();
    for (const name of ["Summary", "Code", "Allocator", "Timeline"]) {
      await viewer.place(name);
      await unhurt(page);
    }
    await page.getByRole("button", { name: "Lists" }).click();
    for (const name of ["Blocks", "Events", "Peak"]) {
      await page.getByRole("tab", { name }).click();
      await unhurt(page);
    }
    // Select a block by key and by pointer: call stack, tooltip and labels in blocks.
    await viewer.chooseAll();
    await viewer.canvas.focus();
    await page.keyboard.press("Enter");
    const { x, y, width, height } = await viewer.plot.box();
    await page.mouse.move(x + width * 0.9, y + height * 0.8);
    await page.mouse.click(x + width * 0.9, y + height * 0.8);
    // No frame is of Python.
    await viewer.details.locator(".frames-folded").click();
    await expect(viewer.details).toContainText("constructor");
    await unhurt(page);
    await page.getByTestId("search").fill(TAG);
    await page.keyboard.press("Enter");
    await unhurt(page);
  });
  await test.step("picture", async () => {
    await viewer.place("Timeline");
    const waiting = page.waitForEvent("download");
    await page.getByTestId("share").click();
    await page.locator(".menu-item:visible", { hasText: "Picture of the timeline, SVG" }).click();
    const path = await (await waiting).path();
    const parsed = await page.evaluate(
      (svg) => {
        const document_ = new DOMParser().parseFromString(svg, "image/svg+xml");
        const attributes = [...document_.querySelectorAll("*")].flatMap((element) => [
          ...element.attributes,
        ]);
        return {
          broken: document_.querySelectorAll("parsererror").length,
          code: document_.querySelectorAll("script, foreignObject, image").length,
          handlers: attributes.filter(({ name }) => name.startsWith("on")).length,
        };
      },
      (await import("node:fs")).readFileSync(path, "utf8"),
    );
    expect(parsed).toEqual({ broken: 0, code: 0, handlers: 0 });
  });
  await test.step("narrow window", async () => {
    await page.setViewportSize({ width: 420, height: 800 });
    await unhurt(page);
  });
});

test("a file name of ten thousand letters, or without letters, is only a name", async ({
  viewer,
  page,
}) => {
  const names = [
    `${"long".repeat(2500)}.json`,
    "\u202e\u2067rank3.json",
    " .json",
    "__proto__",
    "constructor",
  ];
  await viewer.open(
    names.map((name) => ({ name, mimeType: "application/json", buffer: snapshot() })),
  );
  await expect(viewer.rows).toHaveCount(names.length);
  for (const row of await viewer.rows.all())
    await expect(row).toHaveAttribute("data-state", "ready");
  await unhurt(page);
  await viewer.place("Ranks");
  await unhurt(page);
});

/** A snapshot in JSON with a block, whose frame has this file, and failed requests of 1 TiB. */
function failing(filename: string, failures: number): Buffer {
  const [addr, size, stream] = [4096, 1 << 20, 0];
  const frames = [{ name: "f", filename, line: 1 }];
  const failed = (index: number) => ({
    ...{ action: "oom", addr: 0, size: 2 ** 40, stream, frames },
    ...{ device_free: 1, time_us: 1002 + index },
  });
  const trace = [
    { action: "segment_alloc", addr, size, stream, time_us: 1000, frames },
    { action: "alloc", addr, size, stream, time_us: 1001, frames },
    ...Array.from({ length: failures }, (_, index) => failed(index)),
  ];
  return Buffer.from(JSON.stringify({ segments: [], device_traces: [trace] }));
}

test("a long file name, and a limit far below the request, leave all controls in reach", async ({
  viewer,
  page,
}) => {
  const buffer = failing("x".repeat(10_000), 1);
  await viewer.open({ name: "long.json", mimeType: "application/json", buffer });
  for (const [width, height] of [
    [1440, 900],
    [1000, 700],
    [420, 800],
  ] as const) {
    await page.setViewportSize({ width, height });
    for (const view of ["summary", "source"] as const) {
      await page.evaluate((to) => window.vramscope.setState({ view: to }), view);
      await expect(page.getByTestId(`view-${view}`)).toBeVisible();
      await expect
        .configure({ soft: true })
        .poll(() => misfits(page), { message: `${view} at ${width}`, timeout: 5000 })
        .toEqual([]);
    }
  }
});

test("ten thousand failed allocations, and a link with as many marks, are few elements", async ({
  viewer,
  page,
}) => {
  const numbers = Array.from({ length: 10_000 }, (_, index) => index);
  const rulers = numbers.map((x) => `x:event:${x}:${x + 1}:0:2048`).join(",");
  await page.goto(`/#v=1&part=99&markers=${numbers.join(",")}&rulers=${rulers}`);
  await page.reload();
  await page.waitForFunction(() => "vramscope" in window);
  const buffer = failing("a.py", 10_000);
  await viewer.open({ name: "failing.json", mimeType: "application/json", buffer });
  await viewer.plot.drawn();
  await expect(page.locator(".mark[data-kind=oom]").first()).toBeAttached();
  await expect(page.locator(".mark[data-kind=marker]").first()).toBeAttached();
  const elements = await page.evaluate(
    () => window.vramscope.shadowRoot?.querySelectorAll("*").length,
  );
  expect(elements).toBeLessThan(3000);
});

test("a link with nonsense in it opens the page", async ({ viewer, page }) => {
  const fragments = [
    [
      `v=1&path=${encodeURIComponent(TAG)}&view=__proto__&sel=0:0x0@${"9".repeat(400)}`,
      `x0=NaN&x1=-1e999&find=${"a".repeat(9000)}`,
    ].join("&"),
    "v=1&__proto__[polluted]=1&constructor.prototype.polluted=1&at=99999999999&device=-5&axis=<b>",
    "v=2&path=of+a+later+version",
    "%%%&&&===",
  ];
  for (const fragment of fragments) {
    await page.goto(`/#${fragment}`);
    await page.reload();
    await page.waitForFunction(() => "vramscope" in window);
    await page.evaluate(() => window.vramscope.ready);
    await unhurt(page);
  }
  await viewer.open({ name: "nasty.json", mimeType: "application/json", buffer: snapshot() });
  await viewer.plot.drawn();
  await unhurt(page);
});
