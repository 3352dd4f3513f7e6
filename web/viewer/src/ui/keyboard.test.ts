import { beforeEach, expect, test, vi } from "vitest";
import {
  BLOCK,
  FakeElement,
  type FakeStores,
  fakeStores,
  type KeyInit,
  send,
  stubDocument,
} from "../../test/fake-stores.js";
import { Keyboard } from "./keyboard.js";

let copied: string[];
let page: EventTarget;
let fake: FakeStores;
let keyboard: Keyboard;

beforeEach(() => {
  copied = stubDocument();
  page = new EventTarget();
  fake = fakeStores();
  keyboard = new Keyboard(fake.stores, page);
});

const down = (key: string, init?: KeyInit) => send(page, "keydown", key, init);
const up = (key: string, init?: KeyInit) => send(page, "keyup", key, init);
const blur = () => window.dispatchEvent(new Event("blur"));

/** The movements that keys began (`+`) and ended (`-`). */
const moves = () =>
  fake.plot.view.key.mock.calls.map(([movement, isDown]) => `${isDown ? "+" : "-"}${movement}`);

test.each([
  ["w", {}, "zoom-in"],
  ["+", { shift: true }, "zoom-in"],
  ["=", {}, "zoom-in"],
  ["s", {}, "zoom-out"],
  ["-", {}, "zoom-out"],
  ["a", {}, "left"],
  ["ArrowLeft", {}, "left"],
  ["d", {}, "right"],
  ["ArrowRight", {}, "right"],
  ["W", { shift: true }, "y-in"],
  ["ArrowUp", { shift: true }, "y-in"],
  ["S", { shift: true }, "y-out"],
  ["ArrowDown", { shift: true }, "y-out"],
  ["D", { shift: true }, "up"],
  ["ArrowUp", {}, "up"],
  ["A", { shift: true }, "down"],
  ["ArrowDown", {}, "down"],
  // Caps Lock changes the letter, and is no Shift.
  ["W", {}, "zoom-in"],
])("%s %o moves the view while it is held: %s", (key, init, movement) => {
  expect(down(key, init).defaultPrevented).toBe(true);
  down(key, { ...init, repeat: true });
  expect(moves()).toEqual([`+${movement}`]);
  up(key, init);
  expect(moves()).toEqual([`+${movement}`, `-${movement}`]);
});

test("a movement with Shift ends with its letter, also if Shift is released first", () => {
  down("W", { shift: true });
  up("Shift");
  up("w");
  expect(moves()).toEqual(["+y-in", "-y-in"]);
});

test("held keys end when the window loses the focus", () => {
  down("d");
  down("r");
  down(".");
  down(".", { repeat: true });
  expect(fake.plots.ruling.value).toBe("y");
  blur();
  expect(fake.plot.view.releaseKeys).toHaveBeenCalledOnce();
  expect(fake.plots.ruling.value).toBeNull();
  expect(fake.views.player.stop).toHaveBeenCalledOnce();
  up("d");
  expect(moves()).toEqual(["+right"]);
});

test.each([
  [".", 1],
  [",", -1],
])("a held %s plays until its release", (key, by) => {
  fake.viewSelection.cursor.value = 50;
  down(key);
  expect(fake.viewSelection.cursor.value).toBe(50 + by);
  expect(fake.views.player.start).not.toHaveBeenCalled();
  down(key, { repeat: true });
  expect(fake.views.player.start).toHaveBeenCalledExactlyOnceWith(by);
  expect(fake.viewSelection.cursor.value).toBe(50 + by);
  up(key);
  expect(fake.views.player.stop).toHaveBeenCalledOnce();
});

test.each(["input", "textarea", "select"])("letters are text in %s", (name) => {
  for (const key of ["w", "4", "?", "Escape", "Enter", ">"])
    expect(down(key, { on: new FakeElement(name) }).defaultPrevented, key).toBe(false);
  expect(moves()).toEqual([]);
  expect(fake.navigation.view.value).toBe("timeline");
});

test.each(["button", "summary", "a", "[role=option]"])("Enter presses a focused %s", (name) => {
  const on = new FakeElement(name);
  expect(down("Enter", { on }).defaultPrevented).toBe(false);
  expect(down("w", { on }).defaultPrevented).toBe(true);
});

test("the browser keeps its keys with Ctrl, Meta and Alt", () => {
  for (const key of ["a", "s", "d", "w", "z", "x", "e", "r", "1"])
    for (const modifier of ["ctrl", "meta", "alt"] as const)
      expect(down(key, { [modifier]: true }).defaultPrevented, `${modifier} ${key}`).toBe(false);
  expect(moves()).toEqual([]);
  expect(fake.navigation.view.value).toBe("timeline");
});

test.each(["ctrl", "meta"] as const)("chords take %s", (modifier) => {
  expect(down("f", { [modifier]: true }).defaultPrevented).toBe(true);
  expect(fake.host.focusSearch).toHaveBeenCalledOnce();
  expect(down("o", { [modifier]: true }).defaultPrevented).toBe(true);
  expect(fake.host.askForFiles).toHaveBeenCalledOnce();
  down("P", { [modifier]: true, shift: true });
  expect(fake.navigation.paletteOpen.value).toBe(true);
});

test("Ctrl+C copies the selection, unless the browser has text to copy", async () => {
  fake.selection.select(BLOCK);
  for (const name of ["input", "selected"]) down("c", { ctrl: true, on: new FakeElement(name) });
  await new Promise((done) => setTimeout(done));
  expect(copied).toEqual([]);
  down("c", { ctrl: true });
  await vi.waitFor(() => expect(copied).toEqual([BLOCK.copy]));
});

test("Ctrl+Shift+C copies a link to the view", async () => {
  down("4");
  down("C", { ctrl: true, shift: true });
  await vi.waitFor(() => expect(fake.status.spoken.value).toBe("Link copied"));
  expect(copied).toEqual(["https://example.org/#view=map"]);
});

test.each(["helpOpen", "paletteOpen", "reportOpen"] as const)("%s takes the keys", (dialog) => {
  fake.navigation[dialog].value = true;
  for (const init of [{}, { ctrl: true }]) expect(down("f", init).defaultPrevented).toBe(false);
  expect(fake.host.focusSearch).not.toHaveBeenCalled();
});

test("without a run only ? and Ctrl+O act", () => {
  fake.runs.run.value = null;
  expect(down("4").defaultPrevented).toBe(false);
  expect(down("f", { ctrl: true }).defaultPrevented).toBe(false);
  expect(down("o", { ctrl: true }).defaultPrevented).toBe(true);
  expect(down("?", { shift: true }).defaultPrevented).toBe(true);
  expect(fake.navigation.helpOpen.value).toBe(true);
});

test("keys of the views act once their code has arrived", () => {
  keyboard.destroy();
  const views = fake.workspace.value;
  fake.workspace.value = null;
  keyboard = new Keyboard(fake.stores, page);
  expect(down("4").defaultPrevented).toBe(false);
  expect(down("w").defaultPrevented).toBe(true);
  fake.workspace.value = views;
  expect(down("4").defaultPrevented).toBe(true);
});

test("a key that another listener took does nothing", () => {
  page = new EventTarget();
  page.addEventListener("keydown", (event) => event.preventDefault());
  keyboard = new Keyboard(fake.stores, page);
  down("4");
  expect(fake.navigation.view.value).toBe("timeline");
});

test("a viewer that has left its document takes no keys", () => {
  down("d");
  keyboard.destroy();
  expect(fake.plot.view.releaseKeys).toHaveBeenCalledOnce();
  expect(down("4").defaultPrevented).toBe(false);
});
