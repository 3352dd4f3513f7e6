// Mistakes of other viewers about blocks and bytes: each test would catch one of them here.

import { blocksOf, cli, deviceOf, referenceOf, stateOf } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { life, type Made, made, onDisk } from "../lib/made.js";
import { expect, test } from "../lib/test.js";
import { Views } from "../lib/views.js";
import { bandOf, inside, marks, select, under, work } from "../lib/work.js";

const LATE = testData("recorded/gpt_ring10000.pickle.gz");
const OOMS = testData("recorded/oom_expandable.pickle.gz");
const scenario = (name: string) => testData(`scenarios/${name}.pickle`);

test("a block that is allocated and freed in one microsecond is not drawn as live", async ({
  viewer,
  page,
}, info) => {
  const events: Made[] = [
    // A block from before the window, freed in its first microsecond.
    { at: 0, action: "free_requested", addr: 0x9000, size: 700 },
    { at: 0, action: "free_completed", addr: 0x9000, size: 700 },
    ...life(0x1000, 1000, 0),
    ...life(0x2000, 4000, 50, 50, "brief"),
    ...life(0x3000, 10, 100, 101),
  ];
  const file = made("brief.json", events, [
    {
      address: 0x1000,
      size: 0x10000,
      blocks: [{ address: 0x1000, size: 1024, requested: 1000, state: "active_allocated" }],
    },
  ]);
  const { requested_bytes } = deviceOf(onDisk(file, info.outputPath("brief.json")));
  expect(requested_bytes.end).toBe(1000);
  await viewer.show(file);
  await expect(viewer.peak).toHaveAttribute("data-value", String(requested_bytes.peak));
  for (const axis of ["time", "event"] as const) {
    const name = axis === "event" ? "events" : axis;
    await page.getByRole("button", { name, exact: true }).click();
    await expect.poll(async () => (await viewer.state()).axis).toBe(axis);
    await viewer.plot.drawn();
    const { left, width } = await inside(viewer);
    const { y } = await viewer.plot.scale();
    const last = left + width - 3;
    expect(await under(page, last, y(500)), `the block that stays, along ${axis}`).toMatchObject({
      reference: "0:0x1000@2",
    });
    for (const bytes of [1300, 3000, 4900])
      expect(await under(page, last, y(bytes)), `${bytes} bytes up, along ${axis}`).toBeNull();
  }
});

test("blocks from before the window keep size, state and call stack", async ({ viewer, page }) => {
  await test.step("requested bytes are not rounded", async () => {
    const file = scenario("f03");
    const { start, peak } = deviceOf(file).requested_bytes;
    const [largest] = blocksOf(file);
    if (!largest) throw new Error("no block");
    expect(largest.block_bytes, "a block that is rounded up").toBeGreaterThan(largest.bytes);
    await work(viewer, file);
    await expect(viewer.peak).toHaveAttribute("data-value", String(peak));
    await page.evaluate(() => window.vramscope.setState({ sheet: "blocks", at: -1 }));
    await expect(bandOf(page, "requested_bytes")).toHaveAttribute("data-value", String(start));
    const row = page.getByTestId("blocks-table").locator(".table-row").first();
    await expect(row.locator("[data-column=size]")).toHaveAttribute(
      "data-value",
      String(largest.bytes),
    );
    await expect(row.locator("[data-column=blockSize]")).toHaveAttribute(
      "data-value",
      String(largest.block_bytes),
    );
  });
  await test.step("the call stack of a free is labeled as such", async () => {
    const file = scenario("f04");
    const block = blocksOf(file).find(({ of_free }) => of_free);
    if (!block) throw new Error("no stack of a free");
    await page.evaluate(() => window.vramscope.setState({ view: "timeline", sheet: "none" }));
    await work(viewer, file);
    await viewer.chooseAll();
    const box = await viewer.plot.box();
    const scale = await viewer.plot.scale();
    await page.mouse.click(box.x + scale.left + 6, box.y + scale.y(350));
    await expect(viewer.details.locator("[data-reference]")).toHaveAttribute(
      "data-reference",
      "0:0x1000@pre",
    );
    await expect(viewer.details.locator("h2[data-value]")).toHaveAttribute("data-value", "700");
    await expect(viewer.details).toContainText("free_1");
    await select(viewer, referenceOf(block));
    await expect(viewer.details.locator(".stack-note")).toContainText(/free/i);
    // The flame graph labels it too.
    await page.evaluate(() => window.vramscope.setState({ view: "flame", at: 0 }));
    await expect(page.locator(".flame-name", { hasText: /free/i }).first()).toBeVisible();
    await page.evaluate(() => window.vramscope.setState({ view: "timeline" }));
    await select(
      viewer,
      referenceOf({ ...block, preexisting: false, alloc_event: 0, address: "0x1400" }),
    );
    await expect(viewer.details.locator(".stack-note")).toHaveCount(0);
  });
});

test("memory from before the window has its call stack in details, flame graph and table", async ({
  viewer,
  page,
}) => {
  const old = blocksOf(LATE).filter(({ preexisting }) => preexisting);
  const known = old.find(({ frames, of_free }) => frames.length > 2 && !of_free);
  if (!known) throw new Error("no block from before the window has a call stack");
  await work(viewer, LATE);
  await select(viewer, referenceOf(known));
  await expect(viewer.details.locator(".frames")).toContainText(
    known.frames.at(-1)?.name ?? "none",
  );
  await page.evaluate(() => window.vramscope.setState({ view: "flame" }));
  await expect(page.getByTestId("flame-total")).toHaveAttribute(
    "data-value",
    String(deviceOf(LATE).requested_bytes.peak),
  );
  await page.evaluate(() => window.vramscope.setState({ view: "timeline", sheet: "blocks" }));
  await expect(page.getByTestId("blocks-table")).toHaveAttribute(
    "data-total",
    String(blocksOf(LATE).length),
  );
  await expect(
    page.getByTestId("blocks-table").locator(".table-row[aria-selected=true] [data-column=size]"),
  ).toHaveAttribute("data-value", String(known.bytes));
  // A search for its frame finds at least this block, which is live at the peak.
  const { stacks } = cli("peak", LATE);
  const own = known.frames.find(({ file }) => file.startsWith("/train/"));
  const word = `${own?.file}:${own?.line}`;
  const bytes = stacks
    .filter(({ frames }) => frames.some(({ file, line }) => `${file}:${line}`.includes(word)))
    .reduce((sum, each) => sum + each.bytes, 0);
  expect(bytes).toBeGreaterThanOrEqual(known.bytes);
  await page.getByTestId("search").fill(word);
  await expect(page.getByTestId("flame-matched")).toHaveAttribute("data-value", String(bytes));
});

test("reserved bytes, out-of-memory events and private pools are shown", async ({
  viewer,
  page,
}) => {
  await work(viewer, OOMS);
  const { ooms } = deviceOf(OOMS);
  await expect(marks(page, "oom")).toHaveCount(ooms.length);
  // The line of reserved bytes is drawn at the height that the program reports. It is flat here.
  const flat = 5000;
  expect(stateOf(OOMS, flat).reserved_bytes).toBe(stateOf(OOMS, flat + 500).reserved_bytes);
  const { x, y } = await viewer.plot.scale();
  const picture = await viewer.plot.picture();
  const [at, height] = [Math.round(x(flat)), y(stateOf(OOMS, flat).reserved_bytes)];
  const ground = picture.color(at - 20, 3);
  const drawn = Array.from({ length: 7 }, (_, i) =>
    picture.differs(at, Math.round(height) - 3 + i, [ground]),
  );
  expect(drawn).toContain(true);

  const pools = scenario("f13");
  await work(viewer, pools);
  const own = blocksOf(pools).find(({ address }) => address === "0x10000");
  if (!own) throw new Error("no block in the private pool");
  await select(viewer, referenceOf(own));
  await expect(viewer.fact("pool")).toContainText("CUDA graph pool 1");
  await expect(viewer.fact("pool")).not.toContainText(/default/);
});

test("another file with as many blocks is drawn again", async ({ viewer, page }) => {
  const of = (sizes: [number, number]) =>
    made(
      "same.json",
      [...life(0x1000, sizes[0], 0), ...life(0x8000, sizes[1], 10), ...life(0x20000, 1, 20)],
      [
        {
          address: 0x1000,
          size: 0x40000,
          blocks: [
            { address: 0x1000, size: 4096, requested: sizes[0], state: "active_allocated" },
            { address: 0x8000, size: 4096, requested: sizes[1], state: "active_allocated" },
            { address: 0x20000, size: 512, requested: 1, state: "active_allocated" },
          ],
        },
      ],
    );
  const between: number[] = [];
  const bands = new Views(viewer).line("reserved");
  for (const sizes of [
    [3000, 1000],
    [1000, 3000],
  ] as [number, number][]) {
    await work(viewer, of(sizes));
    await expect(viewer.peak).toHaveAttribute("data-value", "4001");
    // Without the line of reserved bytes the two blocks fill the plot.
    if ((await bands.getAttribute("aria-pressed")) === "true") await bands.click();
    await viewer.plot.drawn();
    const { x, y } = await viewer.plot.scale();
    const at = Math.round(x(1.5));
    for (const [bytes, size] of [
      [500, sizes[0]],
      [3500, sizes[1]],
    ] as const)
      expect((await under(page, at, y(bytes)))?.bytes.raw).toBe(String(size));
    // The row of pixels between the two blocks.
    const picture = await viewer.plot.picture();
    const lower = picture.color(at, Math.round(y(500)));
    let row = Math.round(y(500));
    while (row > 0 && !picture.differs(at, row, [lower])) row -= 1;
    expect(
      Math.abs(row - y(sizes[0])),
      `drawn to row ${row}, ${sizes[0]} bytes are at ${y(sizes[0])}`,
    ).toBeLessThan(4);
    between.push(row);
  }
  expect(between[0]).not.toBe(between[1]);
});
