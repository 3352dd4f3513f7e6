// The palette, the sheet of keys, and keys with Ctrl. One test reads the sheet and asks whether
// each of its keys is tested.

import { blocksOf, deviceOf, referenceOf } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { keys, middling, openPalette, testedKeys } from "../lib/keys.js";
import { expect, test } from "../lib/test.js";
import {
  drag,
  expectCursor,
  expectPlace,
  marks,
  rangeOf,
  restedRange,
  select,
  still,
  work,
} from "../lib/work.js";

const REAL = testData("recorded/t26/gpt_small.pickle.gz");

// Small, since it is drawn in software.
test.use({ viewport: { width: 1100, height: 700 } });

test(
  "the palette comes by >, by > in the search and by Ctrl+Shift+P",
  keys(">"),
  async ({ viewer, page }) => {
    await work(viewer, REAL);
    const palette = page.getByRole("dialog", { name: "Commands" });
    const command = palette.getByRole("combobox");
    await viewer.canvas.focus();
    await page.keyboard.press(">");
    await expect(command).toBeFocused();
    await command.fill("views: flame");
    await expect(palette.getByRole("option")).toHaveCount(1);
    await page.keyboard.press("Enter");
    await expect(palette).toHaveCount(0);
    await expectPlace(page, "flame", "main");
    await page.keyboard.press("/");
    await page.keyboard.press(">");
    await expect(command).toBeFocused();
    await command.fill("color by category");
    await palette.getByRole("option").click();
    await expect.poll(async () => (await viewer.state()).color).toBe("category");
    await page.keyboard.press("Control+Shift+P");
    await expect(command).toBeFocused();
    await page.keyboard.press("ArrowDown");
    const second = palette.getByRole("option").nth(1);
    await expect(second).toHaveAttribute("aria-selected", "true");
    await expect(command).toHaveAttribute(
      "aria-activedescendant",
      (await second.getAttribute("id")) ?? "none",
    );
    await page.keyboard.press("Escape");
    await expect(palette).toHaveCount(0);
    await expectPlace(page, "flame", "main");
  },
);

test("the palette lists what every key does, and runs it", async ({ viewer, page }) => {
  await work(viewer, REAL);
  await page.keyboard.press("?");
  const said = page.getByRole("dialog").locator(".sheet-row");
  const texts = await said.locator("dd").allTextContents();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toHaveCount(0);
  const palette = await openPalette(page);
  await expect(palette.getByRole("option").first()).toBeVisible();
  const commands = await palette.getByRole("option").locator("span:first-child").allTextContents();
  // What is done with the hand is no command, and neither is what lasts while a key is held.
  const hands =
    /^(Search: next|Flame graph: up|Tables:|Tabs:|Pan|Zoom|Select a block, move|Mark a range:|Measure)/;
  for (const text of texts.filter((line) => !hands.test(line)))
    expect(commands.join("\n"), `a command for: ${text}`).toContain(text);
  await page.keyboard.press("Escape");
  await expect(palette).toHaveCount(0);
  const run = async (words: string) => {
    await openPalette(page);
    await palette.getByRole("combobox").fill(words);
    await expect(palette.getByRole("option")).toHaveCount(1);
    await page.keyboard.press("Enter");
    await expect(palette).toHaveCount(0);
  };
  await run("jump to peak");
  await expectCursor(page, deviceOf(REAL).requested_bytes.peak_event);
  await run("add a marker");
  await expect(marks(page, "marker")).toHaveCount(1);
  await run("open or close the drawer");
  await expect.poll(async () => (await viewer.state()).drawer).toBe("none");
  await run("show shortcuts");
  await expect(page.getByRole("heading", { name: "Keys and gestures" })).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toHaveCount(0);
  await run("show: search");
  await expect(page.getByTestId("search")).toBeFocused();
});

test("after a command of the palette a drag is a drag again", async ({ viewer, page }) => {
  await work(viewer, REAL);
  const palette = await openPalette(page);
  await palette.getByRole("combobox").fill("measure bytes");
  const commands = await palette.getByRole("option").count();
  if (commands > 0) await page.keyboard.press("Enter");
  else await page.keyboard.press("Escape");
  await expect(palette).toHaveCount(0);
  // A ruler lasts as long as its key is held, and no key is held here: at most one drag may be a
  // ruler.
  await drag(viewer, [300, 100], [500, 250]);
  const rulers = await marks(page, "ruler-y").count();
  await page.evaluate(() => window.vramscope.setState({ x0: 2000, x1: 3000 }));
  await expect.poll(async () => (await rangeOf(viewer)).x0).toBe(2000);
  await drag(viewer, [300, 100], [500, 250]);
  await expect.poll(async () => (await rangeOf(viewer)).x0).not.toBe(2000);
  await expect(marks(page, "ruler-y")).toHaveCount(rulers);
});

test("Ctrl+C copies the stack and the exact bytes of the selection", async ({
  viewer,
  page,
  context,
}) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await work(viewer, REAL);
  const block = middling(blocksOf(REAL), deviceOf(REAL).events);
  await select(viewer, referenceOf(block));
  await viewer.canvas.focus();
  await page.keyboard.press("Control+c");
  const text = () => page.evaluate(() => navigator.clipboard.readText());
  await expect.poll(text).toContain(block.address);
  const copied = await text();
  expect(copied.replaceAll(",", "")).toMatch(new RegExp(`\\b${block.bytes}\\b`));
  for (const { name, file, line } of block.frames) {
    expect(copied).toContain(name);
    if (file !== "") expect(copied).toContain(`${file}:${line}`);
  }
});

test("Ctrl+C leaves text that is selected to the browser", async ({ viewer, page, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await work(viewer, REAL);
  await select(viewer, referenceOf(middling(blocksOf(REAL), deviceOf(REAL).events)));
  await page.getByRole("heading", { name: "Call stack" }).click({ clickCount: 3 });
  await page.keyboard.press("Control+c");
  await expect
    .poll(() => page.evaluate(() => navigator.clipboard.readText()))
    .toMatch(/^\s*call stack\s*$/i);
});

test("Ctrl+Shift+C copies a link that brings everything back", async ({
  viewer,
  page,
  context,
}) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await work(viewer, REAL);
  const block = middling(blocksOf(REAL), deviceOf(REAL).events);
  await select(viewer, referenceOf(block));
  await page.evaluate(() =>
    window.vramscope.setState({ x0: 2000, x1: 3000, at: 2500, color: "size", find: "forward" }),
  );
  await page.keyboard.press("4");
  await expect.poll(async () => (await viewer.state()).at).toBe(2500);
  await restedRange(viewer);
  const before = await viewer.state();
  await viewer.page.keyboard.press("Control+Shift+C");
  await expect(page.getByRole("status").filter({ hasText: "Link copied" })).toBeAttached();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  await page.goto("about:blank");
  await page.goto(link);
  await page.waitForFunction(() => "vramscope" in window);
  await viewer.open(REAL);
  await expect.poll(() => viewer.state()).toEqual(before);
});

test("Ctrl+O opens the file dialog, before and after a file is open", async ({ viewer, page }) => {
  for (const opened of [false, true]) {
    if (opened) await work(viewer, testData("scenarios/f01.pickle"));
    const asked = page.waitForEvent("filechooser");
    // A key may overtake the word that somebody waits for the dialog.
    await page.evaluate(() => undefined);
    await page.keyboard.press("Control+o");
    const chooser = await asked;
    expect(chooser.isMultiple()).toBe(true);
    if (opened) await chooser.setFiles(testData("scenarios/f02.pickle"));
  }
  await expect(viewer.peak).toHaveAttribute(
    "data-value",
    String(deviceOf(testData("scenarios/f02.pickle")).requested_bytes.peak),
  );
});

test("the browser keeps its own keys: Ctrl+A, Ctrl+S, Ctrl+D and others", async ({
  viewer,
  page,
}) => {
  await work(viewer, REAL);
  const before = await viewer.state();
  await page.evaluate(() => {
    const taken: string[] = [];
    Object.assign(window, { taken });
    window.addEventListener("keydown", (event) => event.defaultPrevented && taken.push(event.key));
  });
  await viewer.canvas.focus();
  for (const key of ["a", "s", "d", "w", "z", "x", "e"]) {
    // As the browser gives them to the page, without what it would then do itself.
    for (const modifier of ["ctrlKey", "metaKey", "altKey"] as const)
      await viewer.canvas.dispatchEvent("keydown", {
        key,
        code: `Key${key.toUpperCase()}`,
        [modifier]: true,
        bubbles: true,
      });
  }
  expect(await page.evaluate(() => (window as unknown as { taken: string[] }).taken)).toEqual([]);
  await page.keyboard.press("Control+a");
  expect(await still(() => viewer.state())).toEqual(before);
});

for (const [key, name] of [
  [">", "Commands"],
  ["?", "Keys and gestures"],
] as const) {
  test(`what is closed and opened again at once stays, and has the keyboard: ${name}`, async ({
    viewer,
    page,
  }) => {
    await work(viewer, testData("scenarios/f01.pickle"));
    const dialog = page.getByRole("dialog", { name });
    await page.keyboard.press(key);
    await expect(dialog).toBeVisible();
    // The keys wait for a page that is busy, so that nothing else comes between them.
    const busy = page.evaluate(() => {
      const until = performance.now() + 300;
      while (performance.now() < until);
    });
    await Promise.all([busy, ...["Escape", key, "m"].map((each) => page.keyboard.press(each))]);
    // A dialog tells of its closing in a task: by the next frame but one it has.
    await page.evaluate(
      () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
    );
    await expect(dialog).toBeVisible();
    if (name === "Commands") await expect(dialog.getByRole("combobox")).toHaveValue("m");
  });
}

test(
  "the sheet lists keys, and every one of them is tested here",
  keys("?"),
  async ({ viewer, page }) => {
    await work(viewer, testData("scenarios/f01.pickle"));
    await page.keyboard.press("?");
    const sheet = page.getByRole("dialog");
    await expect(sheet.getByRole("heading", { name: "Keys and gestures" })).toBeVisible();
    const listed = await sheet.locator("kbd").allTextContents();
    expect(listed.length).toBeGreaterThan(50);
    // Those of tables and tabs are tested in access.spec, that of the flame graph in flame.spec.
    const tested = new Set([...testedKeys(), "↑ ↓", "← →", "Backspace"]);
    const chords = /^(Ctrl|Cmd|⌘)/;
    expect(listed.filter((key) => !tested.has(key) && !chords.test(key))).toEqual([]);
    expect([...tested].filter((key) => !listed.includes(key))).toEqual([]);
    await page.keyboard.press("?");
    await expect(sheet).toHaveCount(0);
  },
);

test("the sheet lists the keys with Ctrl too", async ({ viewer, page }) => {
  await work(viewer, testData("scenarios/f01.pickle"));
  await page.keyboard.press("?");
  await expect(page.getByRole("dialog")).toBeVisible();
  const listed = (await page.getByRole("dialog").locator("kbd").allTextContents()).join(" | ");
  for (const chord of [
    /Ctrl\W*C\b/,
    /Ctrl\W*Shift\W*C\b|Shift\W*Ctrl\W*C\b/,
    /Ctrl\W*F\b/,
    /Ctrl\W*O\b/,
    /Ctrl\W*Shift\W*P\b|Shift\W*Ctrl\W*P\b/,
  ])
    expect(listed).toMatch(chord);
});
