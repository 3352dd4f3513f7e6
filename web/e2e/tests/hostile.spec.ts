// Input from outside stays text: names of files, frames and ranges, addresses, links. Long texts do
// not break the layout.

import type { Page } from "@playwright/test";
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
    for (const name of ["Summary", "Code", "Allocator", "What if", "Timeline"]) {
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
