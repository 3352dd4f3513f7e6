// The keys of all views but the timeline; the sheet and the palette show them beside those.

import type { View } from "../linked.js";
import type { Session } from "../session.js";
import type { Shortcut, ShortcutGroup } from "../ui/keymap.js";
import type { Workspace } from "./workspace.js";

const within =
  (act: (workspace: Workspace, session: Session) => unknown) =>
  (session: Session): void => {
    const workspace = session.workspace.peek();
    if (workspace) void act(workspace, session);
  };

const view = (key: string, to: View, text: string): Shortcut => ({
  keys: [key],
  shown: [key],
  text,
  press: within((workspace) => workspace.open(to)),
});

export const MORE_SHORTCUTS: ShortcutGroup[] = [
  {
    title: "Views",
    shortcuts: [
      view("1", "overview", "Overview of all ranks"),
      view("2", "timeline", "Timeline"),
      view("3", "segments", "Segments"),
      view("4", "flame", "Flame graph"),
      view("5", "anomalies", "Anomalies"),
      view("6", "compare", "Compare"),
      {
        keys: ["q"],
        shown: ["Q"],
        text: "Open or close the drawer",
        press: within((workspace) => workspace.toggleDrawer()),
      },
      {
        keys: ["z"],
        shown: ["Z"],
        text: "Back to the view before",
        press: within(({ history }) => history.go(-1)),
      },
      {
        keys: ["Shift+z"],
        shown: ["Shift Z"],
        text: "Forward again",
        press: within(({ history }) => history.go(1)),
      },
      {
        keys: ["\\"],
        shown: ["\\"],
        text: "Compare: pin this file as A; again: swap A and B",
        press: within((workspace) => {
          workspace.comparing.pin();
          workspace.open("compare");
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
        text: "Next event; with a selection the next use of its stack. Hold to play",
        press: within((workspace) => workspace.step(1)),
        repeat: within((workspace) => workspace.player.start(1)),
        release: within((workspace) => workspace.player.stop()),
      },
      {
        keys: [","],
        shown: [","],
        text: "Previous event, or use",
        press: within((workspace) => workspace.step(-1)),
        repeat: within((workspace) => workspace.player.start(-1)),
        release: within((workspace) => workspace.player.stop()),
      },
      {
        keys: ["i"],
        shown: ["I"],
        text: "State at the cursor",
        press: within((workspace, { plot, detailsOpen }) => {
          const point = plot.peek()?.focusPoint();
          detailsOpen.value = true;
          return point && workspace.cursorAt(plot.peek()?.placeAt(point.x, point.y).x ?? 0);
        }),
      },
      {
        keys: ["Shift+p"],
        shown: ["Shift P"],
        text: "Next lower peak",
        press: within((workspace) => workspace.nextPeak()),
      },
      {
        keys: ["o"],
        shown: ["O"],
        text: "Next out-of-memory event, then finding",
        press: within((workspace) => workspace.nextTrouble()),
      },
      {
        keys: ["n"],
        shown: ["N"],
        text: "Next search hit or finding",
        press: within((workspace) => workspace.nextHit(false)),
      },
      {
        keys: ["Shift+n"],
        shown: ["Shift N"],
        text: "Previous search hit or finding",
        press: within((workspace) => workspace.nextHit(true)),
      },
      {
        keys: ["m"],
        shown: ["M"],
        text: "Drop a marker at the cursor",
        press: within((workspace) => workspace.addMarker()),
      },
      {
        keys: ["Shift+m"],
        shown: ["Shift M"],
        text: "Mark the selection as a range",
        press: within((workspace, { selected, shown }) => {
          const kind = shown.peek()?.axis.kind;
          const span = selected.peek()?.spans.find((candidate) => candidate.kind === kind);
          return span && workspace.selectRange(span.x0, span.x1);
        }),
      },
      {
        keys: ["'"],
        shown: ["'"],
        text: "Next marker",
        press: within((workspace) => workspace.nextMarker()),
      },
      {
        keys: ["Delete", "Backspace"],
        shown: ["Del"],
        text: "Remove the last ruler, or the marker at the cursor",
        press: within((workspace) => workspace.removeLast()),
      },
      {
        keys: ["r"],
        shown: ["R drag"],
        text: "Ruler of bytes",
        press: ({ ruling }) => {
          ruling.value = "y";
        },
        release: ({ ruling }) => {
          ruling.value = null;
        },
      },
      {
        keys: ["t"],
        shown: ["T drag"],
        text: "Ruler of events or time",
        press: ({ ruling }) => {
          ruling.value = "x";
        },
        release: ({ ruling }) => {
          ruling.value = null;
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
        press: within(({ session }) => session.focusSearch()),
      },
      {
        keys: [">"],
        shown: [">"],
        text: "Commands",
        press: within((workspace) => {
          workspace.paletteOpen.value = true;
        }),
      },
      {
        keys: ["y"],
        shown: ["Y"],
        text: "Y from zero, or from what was there before the window",
        press: ({ linked }) => {
          linked.fromBaseline.value = !linked.fromBaseline.peek();
        },
      },
      {
        keys: ["h"],
        shown: ["H"],
        text: "Hide framework frames",
        press: ({ linked }) => {
          const hide = !linked.hideFramework.peek();
          linked.hideFramework.value = hide;
          linked.flame.value = { ...linked.flame.peek(), root: "" };
        },
      },
      {
        keys: ["v"],
        shown: ["V"],
        text: "Flame graph: leaf first",
        press: ({ linked }) => {
          const flame = linked.flame.peek();
          linked.flame.value = { ...flame, inverted: !flame.inverted, root: "" };
        },
      },
      {
        keys: ["b"],
        shown: ["B"],
        text: "Flame graph: the next weight",
        press: ({ linked }) => {
          const weights = ["peak", "cursor", "byteSeconds", "count", "churn"] as const;
          const flame = linked.flame.peek();
          const next = weights[(weights.indexOf(flame.weight) + 1) % weights.length] ?? "peak";
          linked.flame.value = { ...flame, weight: next, root: "" };
        },
      },
    ],
  },
];

/** Keys that belong to one place, for the sheet. */
export const IN_PLACE: [shown: string, text: string][] = [
  ["Enter", "In the search: next hit; with Shift the previous one"],
  ["Backspace", "In the flame graph: up; so does Alt+click"],
  ["↑ ↓", "In tables: the row before or after"],
  ["← →", "In tabs: the tab before or after"],
];

/** What a pointer does, for the sheet. */
export const POINTER: [shown: string, text: string][] = [
  ["Wheel", "Zoom at the pointer"],
  ["Shift wheel", "Zoom bytes"],
  ["Drag", "Pan"],
  ["Shift drag", "Zoom to a box"],
  ["Alt drag", "Mark a range: what is allocated, freed and kept in it"],
  ["Click", "Select a block, move the time cursor"],
  ["Double-click", "Fit the block; on empty ground show all"],
];
