import { beforeEach, expect, test, vi } from "vitest";
import {
  BLOCK,
  EVENTS,
  type FakeStores,
  fakeStores,
  stubDocument,
} from "../../test/fake-stores.js";
import { PLACE_IDS } from "../places/index.js";
import { VIEW_SHORTCUTS } from "../views/shortcuts.js";
import { SHORTCUTS } from "./keymap.js";

const GROUPS = [...SHORTCUTS, ...VIEW_SHORTCUTS];
const ALL = GROUPS.flatMap(({ shortcuts }) => shortcuts);

let fake: FakeStores;

beforeEach(() => {
  stubDocument();
  fake = fakeStores();
});

const shortcutOf = (key: string) => {
  const found = ALL.find(({ keys }) => keys.includes(key));
  if (!found) throw new Error(`no shortcut has the key ${key}`);
  return found;
};

/** Presses keys one after another. */
function press(...keys: string[]): void {
  for (const key of keys) shortcutOf(key).press?.(fake.stores, key);
}

/** The path of the row in focus. */
const focused = () => fake.selection.focus.value?.file.path;

test("each key has one shortcut, and each shortcut a text of its own", () => {
  const keys = ALL.flatMap((shortcut) => shortcut.keys);
  expect(keys.filter((key, at) => keys.indexOf(key) !== at)).toEqual([]);
  const texts = GROUPS.flatMap(({ title, shortcuts }) =>
    shortcuts.map(({ text }) => `${title}: ${text}`),
  );
  expect(texts.filter((text, at) => texts.indexOf(text) !== at)).toEqual([]);
});

test("digits open the places in their order, and letters two views", () => {
  for (const [at, place] of PLACE_IDS.entries()) {
    press(String(at + 1));
    expect(fake.navigation.place.value).toBe(place);
  }
  press("l");
  expect(fake.navigation.shownSheet.value).toBe("peak");
  expect(fake.viewSelection.cursor.value).toBe(2);
  press("c");
  expect(fake.navigation.view.value).toBe("source");
});

test("digits of places of several files do nothing with one", () => {
  fake.runs.rows.value = fake.rows.slice(0, 1);
  press("5", "6");
  expect(fake.navigation.place.value).toBe("timeline");
});

test("Q opens and closes the sheet", () => {
  const { shownSheet } = fake.navigation;
  press("q");
  expect(shownSheet.value).toBe("blocks");
  press("q");
  expect(shownSheet.value).toBeNull();
});

test("E isolates the call site of the selected block, and again shows all", () => {
  fake.selection.select({ ...BLOCK, terms: ["site:gpt.py:43"] });
  press("e");
  expect(fake.views.groups.choose).toHaveBeenCalledExactlyOnceWith(["site:gpt.py:43"]);
  fake.filters.set(["site:gpt.py:43"]);
  press("e");
  expect(fake.filters.terms.value).toEqual([]);
});

test.each(["0", "Home"])("%s shows everything", (key) => {
  press(key);
  expect(fake.plot.view.fit).toHaveBeenCalledOnce();
});

test("P goes to the peak along the axis in view", () => {
  const { goto } = fake.plot.view;
  fake.viewSelection.peak.value = 3;
  press("p");
  expect(goto).toHaveBeenLastCalledWith(3);
  expect([fake.viewSelection.cursor.value, fake.viewSelection.peak.value]).toEqual([2, 0]);
  press("x", "p");
  expect(goto).toHaveBeenLastCalledWith(30);
  expect(fake.viewSelection.cursor.value).toBe(2);
});

test("X changes the axis and back", () => {
  press("x");
  expect(fake.selection.axis.value).toBe("time");
  press("x");
  expect(fake.selection.axis.value).toBe("event");
});

test("Enter selects the lit block at the pointer, and puts the cursor there", async () => {
  fake.filters.set(["site:gpt.py:43"]);
  press("Enter");
  await vi.waitFor(() => expect(fake.selection.block.value).toBe(BLOCK));
  expect(fake.viewSelection.cursor.value).toBe(29);
});

test("I puts the cursor at the pointer", async () => {
  press("i");
  await vi.waitFor(() => expect(fake.viewSelection.cursor.value).toBe(29));
  expect(fake.selection.block.value).toBeNull();
});

test("F centers the selection, and fits it when it is centered", () => {
  const { goto, fitRange } = fake.plot.view;
  press("f");
  expect(goto).not.toHaveBeenCalled();
  fake.selection.select(BLOCK);
  press("f");
  expect(goto).toHaveBeenCalledExactlyOnceWith(30);
  fake.plot.range.value = { x0: 10, x1: 50 };
  press("f");
  expect(fitRange).toHaveBeenCalledExactlyOnceWith(20, 40);
  // After the view has moved away, the first F centers again.
  fake.plot.range.value = { x0: 60, x1: 90 };
  press("f");
  expect(goto).toHaveBeenCalledTimes(2);
});

test("Escape ends a drag, the search, the card, the block, filters, the range, A and B", () => {
  const { selection, viewSelection, filters, plot } = fake;
  plot.isDragging = true;
  viewSelection.search.value = "forward";
  selection.select(BLOCK);
  selection.card.value = { kind: "Range" } as never;
  filters.add("site:gpt.py:43");
  viewSelection.range.value = { axis: "event", x0: 1, x1: 2 };
  viewSelection.ends.value = { a: 1, b: null };
  const left = () => [
    plot.isDragging,
    viewSelection.search.value !== "",
    selection.card.value !== null,
    selection.block.value !== null,
    filters.terms.value.length > 0,
    viewSelection.range.value !== null,
    viewSelection.ends.value.a !== null,
  ];
  for (let ended = 0; ended <= left().length; ended += 1) {
    expect(left()).toEqual(left().map((_, index) => index >= ended));
    press("Escape");
  }
});

test("brackets move between ranks, with Shift to the first and last", () => {
  for (const [key, rank] of [
    ["]", 2],
    ["[", 1],
    ["{", 0],
    ["[", 0],
    ["}", 3],
    ["]", 3],
    ["[", 2],
  ] as const) {
    press(key);
    expect(focused(), `after ${key}`).toBe(`rank${rank}.pickle`);
  }
});

test("full stop and comma step by events, and stop at the ends of the trace", () => {
  const { cursor } = fake.viewSelection;
  for (const [start, key, event] of [
    [50, ".", 51],
    [50, ",", 49],
    [EVENTS - 1, ".", EVENTS - 1],
    [-1, ",", -1],
    [null, ".", 0],
    [null, ",", -1],
  ] as const) {
    cursor.value = start;
    press(key);
    expect(cursor.value, `${start} ${key}`).toBe(event);
  }
});

test("M marks the cursor, ' visits the markers, Delete removes the one at the cursor", () => {
  const { cursor, markers } = fake.viewSelection;
  press("m");
  for (const event of [75, 25, 50, 25]) {
    cursor.value = event;
    press("m");
  }
  expect(markers.value).toEqual([25, 50, 75]);
  cursor.value = 75;
  for (const event of [25, 50, 75, 25]) {
    press("'");
    expect(cursor.value).toBe(event);
  }
  press("Delete");
  expect(markers.value).toEqual([50, 75]);
  press("Delete", "'", "Backspace");
  expect(markers.value).toEqual([75]);
});

test("R and T measure while they are held, and Delete removes the last ruler first", () => {
  const { ruling } = fake.plots;
  for (const [key, along] of [
    ["r", "y"],
    ["t", "x"],
  ] as const) {
    press(key);
    expect(ruling.value).toBe(along);
    shortcutOf(key).release?.(fake.stores);
    expect(ruling.value).toBeNull();
  }
  const { rulers, markers, cursor } = fake.viewSelection;
  const ruler = { along: "x", axis: "event", x0: 1, x1: 2, y0: 3, y1: 4 } as const;
  rulers.value = [ruler, { ...ruler, along: "y" }];
  markers.value = [5];
  cursor.value = 5;
  press("Delete");
  expect(rulers.value).toEqual([ruler]);
  press("Backspace");
  expect([rulers.value, markers.value]).toEqual([[], [5]]);
  press("Delete");
  expect(markers.value).toEqual([]);
});

test("Shift+M marks the life of the selection along the axis in view", () => {
  press("Shift+m");
  expect(fake.views.cards.selectRange).not.toHaveBeenCalled();
  fake.selection.select(BLOCK);
  press("Shift+m", "x", "Shift+m");
  expect(fake.views.cards.selectRange.mock.calls).toEqual([
    [20, 40],
    [200, 400],
  ]);
});

test("parentheses put A and B at the cursor", () => {
  press("(");
  expect(fake.status.spoken.value).toBe("There is no time cursor");
  fake.viewSelection.cursor.value = 4;
  press("(");
  fake.viewSelection.cursor.value = 8;
  press(")");
  expect(fake.viewSelection.ends.value).toEqual({ a: 4, b: 8 });
  expect(fake.status.spoken.value).toBe("B is at the cursor");
});

test("P, O and N visit peaks, out-of-memory events and findings, and wrap", () => {
  const { cursor } = fake.viewSelection;
  const mark = (kind: "oom" | "finding" | "peak", event: number) => ({
    ...{ kind, event, slot: event + 1 },
    ...{ text: `${kind} ${event}`, id: "" },
  });
  // The engine's order: by event, then the peaks, the highest first.
  fake.marks.value = [mark("finding", 10), mark("oom", 40), mark("finding", 60)].concat(
    mark("peak", 70),
    mark("peak", 20),
    mark("peak", 90),
  );
  const visited = (key: string, times: number) =>
    Array.from({ length: times }, () => {
      press(key);
      return cursor.value;
    });
  cursor.value = 70;
  expect(visited("Shift+p", 3)).toEqual([20, 90, 70]);
  expect(fake.plot.view.goto).toHaveBeenLastCalledWith(71);
  expect(fake.status.spoken.value).toBe("peak 70");
  expect(visited("o", 4)).toEqual([40, 10, 60, 40]);
  cursor.value = null;
  expect(visited("n", 4)).toEqual([10, 40, 60, 10]);
  expect(visited("Shift+n", 2)).toEqual([60, 40]);
});

test("Y, H, V and B change what plots show", () => {
  const { fromBaseline, hideFramework, flame } = fake.viewSelection;
  press("y");
  expect(fromBaseline.value).toBe(true);
  flame.value = { ...flame.value, root: "1.2" };
  press("h");
  expect([hideFramework.value, flame.value.root]).toEqual([false, ""]);
  press("v");
  expect(flame.value.inverted).toBe(true);
  const weights = new Set<string>();
  for (let at = 0; at < 10; at += 1) {
    press("b");
    weights.add(flame.value.weight);
  }
  expect(weights.size).toBe(5);
});

test("/ focuses the search, > opens the palette, ? the sheet", () => {
  press("/", ">", "?");
  expect(fake.host.focusSearch).toHaveBeenCalledOnce();
  const { paletteOpen, helpOpen } = fake.navigation;
  expect([paletteOpen.value, helpOpen.value]).toEqual([true, true]);
});

test("Z, K and the backslash reach the history, the pins and the comparison", () => {
  press("z", "Shift+z", "k", "\\");
  expect(fake.views.history.go.mock.calls).toEqual([[-1], [1]]);
  expect(fake.views.pins.toggleFocused).toHaveBeenCalledOnce();
  expect(fake.views.comparing.pin).toHaveBeenCalledOnce();
  expect(fake.navigation.view.value).toBe("compare");
});
