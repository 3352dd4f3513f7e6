// Keyboard shortcuts of the views. The sheet and the palette list them with the others.

import { WEIGHTS } from "../places/code/flame-weights.js";
import { PLACE_IDS, PLACES, type View } from "../places/index.js";
import type { Stores } from "../stores.js";
import { goToPeak, type Shortcut, type ShortcutGroup } from "../ui/keymap.js";
import { placesOf } from "../ui/place-bar.js";
import type { ViewStores } from "./workspace.js";

const withViews =
  (act: (stores: Stores & ViewStores) => unknown) =>
  (stores: Stores): void => {
    const workspace = stores.workspace.peek();
    if (workspace) void act({ ...stores, ...workspace.stores });
  };

/** The keys of the places. A place of several ranks has no use for one file. */
const places = PLACE_IDS.map(
  (id, index): Shortcut => ({
    keys: [String(index + 1)],
    shown: [String(index + 1)],
    text: PLACES[id].title,
    press: (stores) => {
      if (placesOf(stores).includes(id)) stores.navigation.openPlace(id);
    },
  }),
);

const view = (key: string, to: View, text: string): Shortcut => ({
  keys: [key],
  shown: [key.toUpperCase()],
  text,
  press: ({ navigation }) => navigation.open(to),
});

/** Sets A or B, the moments of the view "A to B". */
const setEnd = (end: "a" | "b", key: string): Shortcut => ({
  keys: [key],
  shown: [key],
  text: `Set ${end.toUpperCase()} at the cursor`,
  press: ({ viewSelection, status }) => {
    const isSet = viewSelection.setEnd(end);
    const name = end.toUpperCase();
    status.announce(isSet ? `${name} is at the cursor` : "There is no time cursor");
  },
});

export const VIEW_SHORTCUTS: ShortcutGroup[] = [
  {
    title: "Places",
    shortcuts: [
      ...places,
      {
        keys: ["l"],
        shown: ["L"],
        text: "Peak: its events and what is live",
        press: (stores) => {
          stores.navigation.openSheet("peak");
          goToPeak(stores);
        },
      },
      view("c", "source", "Code by file and line"),
      {
        keys: ["u"],
        shown: ["U"],
        text: "All changes and allocator settings (again: the summary)",
        press: ({ viewSelection: { leversUnfolded }, navigation }) => {
          leversUnfolded.value = navigation.place.peek() !== "summary" || !leversUnfolded.peek();
          navigation.open("summary");
        },
      },
      {
        keys: ["q"],
        shown: ["Q"],
        text: "Open or close the lists below the timeline",
        press: ({ navigation }) => navigation.toggleSheet(),
      },
      {
        keys: ["e"],
        shown: ["E"],
        text: "Isolate the call site of the selected block (again: all blocks)",
        press: withViews(({ selection, groups, filters }) => {
          const terms = selection.block.peek()?.terms ?? [];
          if (filters.terms.peek().length > 0) filters.clear();
          else groups.choose(terms);
        }),
      },
      {
        keys: ["z"],
        shown: ["Z"],
        text: "Undo zoom",
        press: withViews(({ history }) => history.go(-1)),
      },
      {
        keys: ["Shift+z"],
        shown: ["Shift Z"],
        text: "Redo zoom",
        press: withViews(({ history }) => history.go(1)),
      },
      {
        keys: ["k"],
        shown: ["K"],
        text: "Pin this rank below the timeline (again: unpin)",
        press: withViews(({ pins }) => pins.toggleFocused()),
      },
      {
        keys: ["\\"],
        shown: ["\\"],
        text: "Compare: pin this file as A (twice: swap A and B)",
        press: withViews(({ comparing, navigation }) => {
          comparing.pin();
          navigation.open("compare");
        }),
      },
    ],
  },
  {
    title: "Cursor and marks",
    shortcuts: [
      {
        keys: ["."],
        shown: ["."],
        text: "Next event (or next allocation from the selected stack); hold to play",
        press: withViews(({ steps }) => steps.step(1)),
        repeat: withViews(({ player }) => player.start(1)),
        release: withViews(({ player }) => player.stop()),
      },
      {
        keys: [","],
        shown: [","],
        text: "Previous event or allocation",
        press: withViews(({ steps }) => steps.step(-1)),
        repeat: withViews(({ player }) => player.start(-1)),
        release: withViews(({ player }) => player.stop()),
      },
      {
        keys: ["i"],
        shown: ["I"],
        text: "State at the pointer",
        press: ({ plots, selection }) => {
          const plot = plots.timeline.peek();
          const point = plot?.focusPoint();
          if (plot && point) void selection.cursorAt(plot.placeAt(point.x, point.y).x);
        },
      },
      {
        keys: ["Shift+p"],
        shown: ["Shift P"],
        text: "Next lower peak",
        press: withViews(({ steps }) => steps.nextPeak()),
      },
      {
        keys: ["o"],
        shown: ["O"],
        text: "Next out-of-memory event, then finding",
        press: withViews(({ steps }) => steps.nextFinding()),
      },
      {
        keys: ["n"],
        shown: ["N"],
        text: "Next block of search and filters (without them: next finding)",
        press: withViews(({ steps }) => steps.nextHit(false)),
      },
      {
        keys: ["Shift+n"],
        shown: ["Shift N"],
        text: "Previous block of search and filters, or finding",
        press: withViews(({ steps }) => steps.nextHit(true)),
      },
      {
        keys: ["m"],
        shown: ["M"],
        text: "Add a marker at the cursor",
        press: ({ viewSelection }) => viewSelection.addMarker(),
      },
      {
        keys: ["Shift+m"],
        shown: ["Shift M"],
        text: "Mark the selection as a range",
        press: withViews(({ selection, cards }) => {
          const block = selection.block.peek();
          const span = block && selection.spanOf(block);
          return span && cards.selectRange(span.x0, span.x1);
        }),
      },
      {
        keys: ["'"],
        shown: ["'"],
        text: "Next marker",
        press: withViews(({ steps }) => steps.nextMarker()),
      },
      setEnd("a", "("),
      setEnd("b", ")"),
      {
        keys: ["Delete", "Backspace"],
        shown: ["Del"],
        text: "Remove the last ruler, or the marker at the cursor",
        press: ({ viewSelection }) => viewSelection.removeLast(),
      },
      {
        keys: ["r"],
        shown: ["R drag"],
        text: "Measure bytes",
        press: ({ plots }) => {
          plots.ruling.value = "y";
        },
        release: ({ plots }) => {
          plots.ruling.value = null;
        },
      },
      {
        keys: ["t"],
        shown: ["T drag"],
        text: "Measure events or time",
        press: ({ plots }) => {
          plots.ruling.value = "x";
        },
        release: ({ plots }) => {
          plots.ruling.value = null;
        },
      },
    ],
  },
  {
    title: "Show",
    shortcuts: [
      {
        keys: ["/"],
        shown: ["/"],
        text: "Search",
        press: ({ host }) => host.focusSearch(),
      },
      {
        keys: ["y"],
        shown: ["Y"],
        text: "Start y axis at zero / at initial memory",
        press: ({ viewSelection: { fromBaseline } }) => {
          fromBaseline.value = !fromBaseline.peek();
        },
      },
      {
        keys: ["h"],
        shown: ["H"],
        text: "Hide framework frames",
        press: ({ viewSelection: { hideFramework, flame } }) => {
          hideFramework.value = !hideFramework.peek();
          flame.value = { ...flame.peek(), root: "" };
        },
      },
      {
        keys: ["v"],
        shown: ["V"],
        text: "Flame graph: leaf first",
        press: ({ viewSelection: { flame } }) => {
          const choice = flame.peek();
          flame.value = { ...choice, inverted: !choice.inverted, root: "" };
        },
      },
      {
        keys: ["b"],
        shown: ["B"],
        text: "Flame graph: next weight",
        press: ({ viewSelection: { flame } }) => {
          const choice = flame.peek();
          const at = WEIGHTS.findIndex(({ weight }) => weight === choice.weight);
          const next = WEIGHTS[(at + 1) % WEIGHTS.length]?.weight ?? "peak";
          flame.value = { ...choice, weight: next, root: "" };
        },
      },
    ],
  },
];

/** Keys that act in one place only, for the sheet. */
export const CONTEXT_KEYS: [shown: string, text: string][] = [
  ["Enter", "Search: make filters (empty: next block; with Shift: previous)"],
  ["Ctrl click", "Rows: add to the filters"],
  ["Backspace", "Flame graph: up (also Alt+click)"],
  ["↑ ↓", "Tables: previous or next row"],
  ["← →", "Trees: fold or unfold the row"],
  ["← →", "Tabs: previous or next tab"],
];

/** Pointer gestures, for the sheet. */
export const POINTER: [shown: string, text: string][] = [
  ["Wheel", "Zoom at the pointer"],
  ["Shift wheel", "Zoom bytes"],
  ["Drag", "Pan"],
  ["Shift drag", "Zoom to a box"],
  ["Alt drag", "Mark a range: bytes allocated, freed and kept in it"],
  ["Click", "Select a block, move the time cursor"],
  ["Double-click", "Zoom to the block (empty space: zoom to fit)"],
];
