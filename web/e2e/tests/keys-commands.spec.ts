// The palette, the key sheet, and keys with Ctrl.

import { blocksOf, deviceOf, referenceOf } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { middling, openPalette } from "../lib/keys.js";
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

// A small canvas, because Mesa draws it in software.
test.use({ viewport: { width: 1100, height: 800 } });

test("the palette lists and runs every command", async ({ viewer, page }) => {
  await work(viewer, REAL);
  await test.step("> opens the palette outside the search, and so does Ctrl+Shift+P", async () => {
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
    await page.keyboard.type(">1GiB");
    await expect(palette).toHaveCount(0);
    await expect(page.getByTestId("search")).toHaveValue(">1GiB");
    await page.keyboard.press("Escape");
    await viewer.canvas.focus();
    await page.keyboard.press(">");
    // The state names a color only where it is not the usual one.
    await command.fill("color by size");
    await palette.getByRole("option").click();
    await expect.poll(async () => (await viewer.state()).color).toBe("size");
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
  });
  await test.step("every line of the key sheet has a command", async () => {
    await page.keyboard.press("2");
    await expectPlace(page, "timeline", "main");
    await page.keyboard.press("?");
    const said = page.getByRole("dialog").locator(".sheet-row");
    const texts = await said.locator("dd").allTextContents();
    await page.keyboard.press("Escape");
    await expect(page.getByRole("dialog")).toHaveCount(0);
    const palette = await openPalette(page);
    await expect(palette.getByRole("option").first()).toBeVisible();
    const commands = await palette
      .getByRole("option")
      .locator("span:first-child")
      .allTextContents();
    // Gestures and actions of a held key have no command.
    const gestures = [
      "Search: make filters",
      "Rows: add to the filters",
      "Flame graph: up",
      "Tables:",
      "Trees:",
      "Tabs:",
      "Pan",
      "Zoom",
      "Select a block, move",
      "Mark a range:",
      "Measure",
    ];
    const isGesture = (line: string) => gestures.some((start) => line.startsWith(start));
    for (const text of texts.filter((line) => !isGesture(line)))
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
  await test.step("a drag after the ruler command pans again", async () => {
    await page.keyboard.press("Escape");
    await page.keyboard.press("2");
    await expectPlace(page, "timeline", "main");
    const palette = await openPalette(page);
    await palette.getByRole("combobox").fill("measure bytes");
    const commands = await palette.getByRole("option").count();
    if (commands > 0) await page.keyboard.press("Enter");
    else await page.keyboard.press("Escape");
    await expect(palette).toHaveCount(0);
    // A ruler needs a held key, and none is held: at most one drag may draw a ruler.
    await drag(viewer, [300, 100], [500, 250]);
    const rulers = await marks(page, "ruler-y").count();
    await page.evaluate(() => window.vramscope.setState({ x0: 2000, x1: 3000 }));
    await expect.poll(async () => (await rangeOf(viewer)).x0).toBe(2000);
    await drag(viewer, [300, 100], [500, 250]);
    await expect.poll(async () => (await rangeOf(viewer)).x0).not.toBe(2000);
    await expect(marks(page, "ruler-y")).toHaveCount(rulers);
  });
});

test("Ctrl+C copies the selection, Ctrl+Shift+C a link, and the browser keeps its keys", async ({
  viewer,
  page,
  context,
}) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await work(viewer, REAL);
  const block = middling(blocksOf(REAL), deviceOf(REAL).events);
  await select(viewer, referenceOf(block));
  const text = () => page.evaluate(() => navigator.clipboard.readText());
  await test.step("Ctrl+C copies the call stack and the exact bytes", async () => {
    await viewer.canvas.focus();
    await page.keyboard.press("Control+c");

    await expect.poll(text).toContain(block.address);
    const copied = await text();
    expect(copied.replaceAll(",", "")).toMatch(new RegExp(`\\b${block.bytes}\\b`));
    for (const { name, file, line } of block.frames) {
      expect(copied).toContain(name);
      if (file !== "") expect(copied).toContain(`${file}:${line}`);
    }
  });
  await test.step("Ctrl+C copies text that is selected on the page", async () => {
    await page.getByRole("heading", { name: "Call stack" }).click({ clickCount: 3 });
    await page.keyboard.press("Control+c");
    await expect.poll(text).toMatch(/^\s*call stack\s*$/i);
  });
  await test.step("Ctrl+Shift+C copies a link to the view", async () => {
    await viewer.canvas.focus();
    await page.evaluate(() =>
      window.vramscope.setState({ x0: 2000, x1: 3000, at: 2500, color: "size", find: "forward" }),
    );
    await page.keyboard.press("4");
    await expect.poll(async () => (await viewer.state()).at).toBe(2500);
    await restedRange(viewer);
    await page.keyboard.press("Control+Shift+C");
    await expect(page.getByRole("status").filter({ hasText: "Link copied" })).toBeAttached();
    // The address follows the state, and address.spec.ts reloads it.
    await expect.poll(async () => (await text()) === page.url()).toBe(true);
    expect(page.url()).toMatch(/sel=.*at=2500/);
  });
  await test.step("the browser keeps Ctrl+A, Ctrl+S, Ctrl+D and others", async () => {
    await page.keyboard.press("2");
    await expectPlace(page, "timeline", "main");
    await restedRange(viewer);
    const before = await viewer.state();
    await page.evaluate(() => {
      const taken: string[] = [];
      Object.assign(window, { taken });
      window.addEventListener(
        "keydown",
        (event) => event.defaultPrevented && taken.push(event.key),
      );
    });
    await viewer.canvas.focus();
    for (const key of ["a", "s", "d", "w", "z", "x", "e"]) {
      // Synthetic events reach the page but do not start the browser's own action.
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
});

test("? lists the keys, a dialog can be reopened at once, and Ctrl+O opens files", async ({
  viewer,
  page,
}) => {
  await work(viewer, testData("scenarios/f01.pickle"));
  await test.step("the sheet lists keys and chords", async () => {
    await page.keyboard.press("?");
    const sheet = page.getByRole("dialog");
    await expect(sheet.getByRole("heading", { name: "Keys and gestures" })).toBeVisible();
    const listed = await sheet.locator("kbd").allTextContents();
    expect(listed.length).toBeGreaterThan(50);
    const text = listed.join(" | ");
    for (const chord of [
      /Ctrl\W*C\b/,
      /Ctrl\W*Shift\W*C\b|Shift\W*Ctrl\W*C\b/,
      /Ctrl\W*F\b/,
      /Ctrl\W*O\b/,
      /Ctrl\W*Shift\W*P\b|Shift\W*Ctrl\W*P\b/,
    ])
      expect(text).toMatch(chord);
    await page.keyboard.press("?");
    await expect(sheet).toHaveCount(0);
  });
  await test.step("a dialog that is closed and opened again at once has the keyboard", async () => {
    for (const [key, name] of [
      [">", "Commands"],
      ["?", "Keys and gestures"],
    ] as const) {
      const dialog = page.getByRole("dialog", { name });
      await page.keyboard.press(key);
      await expect(dialog).toBeVisible();
      // Keys queue while the page is busy, so they arrive without a frame between them.
      const busy = page.evaluate(() => {
        const until = performance.now() + 300;
        while (performance.now() < until);
      });
      await Promise.all([busy, ...["Escape", key, "m"].map((each) => page.keyboard.press(each))]);
      // A dialog reports its closing in a task, at the latest in the next frame but one.
      await page.evaluate(
        () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
      );
      await expect(dialog).toBeVisible();
      if (name === "Commands") await expect(dialog.getByRole("combobox")).toHaveValue("m");
      await page.keyboard.press("Escape");
      await expect(dialog).toHaveCount(0);
    }
  });
  await test.step("Ctrl+O opens the file dialog", async () => {
    const asked = page.waitForEvent("filechooser");
    // A round trip makes sure that Playwright listens for the dialog before the key arrives.
    await page.evaluate(() => undefined);
    await page.keyboard.press("Control+o");
    const chooser = await asked;
    expect(chooser.isMultiple()).toBe(true);
    const other = testData("scenarios/f02.pickle");
    await chooser.setFiles(other);
    await expect(viewer.peak).toHaveAttribute(
      "data-value",
      String(deviceOf(other).requested_bytes.peak),
    );
  });
});
