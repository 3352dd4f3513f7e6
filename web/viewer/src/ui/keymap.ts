// Every key, once: what acts on it and what the sheet says of it are the same table.

import type { Session } from "../session.js";

/** A movement that lasts while its key is held; the names are the view's. */
export type Movement = "zoom-in" | "zoom-out" | "left" | "right" | "y-in" | "y-out" | "up" | "down";

export interface Shortcut {
  /** As an event has them: `Shift+` only before names that do not change with it. */
  keys: string[];
  /** As they are printed. */
  shown: string[];
  text: string;
  hold?: Movement;
  press?: (session: Session, key: string) => void;
  /** When it is still down after a while. */
  repeat?: (session: Session) => void;
  /** When it goes up again, or the window loses the keyboard. */
  release?: (session: Session) => void;
}

export interface ShortcutGroup {
  title: string;
  shortcuts: Shortcut[];
}

/** First press brings the selection to the middle, the next one fits it. */
function focusSelection(session: Session): void {
  const kind = session.shown.peek()?.axis.kind;
  const span = session.selected.peek()?.spans.find((candidate) => candidate.kind === kind);
  const range = session.plot.peek()?.range.peek();
  if (!span || !range) return;
  const middle = (span.x0 + span.x1) / 2;
  // Near the ends of a trace it cannot be brought to the middle: what was asked for counts.
  const centerd =
    session.centerd === session.selected.peek() && middle >= range.x0 && middle <= range.x1;
  session.centerd = session.selected.peek();
  session.plot
    .peek()
    ?.act((view) => (centerd ? view.fitRange(span.x0, span.x1) : view.goto(middle)));
}

function selectAtCursor(session: Session): void {
  const point = session.plot.peek()?.focusPoint();
  if (point) void session.selectAt(point.x, point.y);
}

/** With Ctrl, or Cmd on a Mac. */
const CHORDS: ShortcutGroup = {
  title: "Clipboard and files",
  shortcuts: [
    {
      keys: ["Ctrl+c"],
      shown: ["Ctrl C"],
      text: "Copy the selection: exact bytes and its call stack",
      press: (session) => void session.copySelection(),
    },
    {
      keys: ["Ctrl+Shift+c"],
      shown: ["Ctrl Shift C"],
      text: "Copy a link to what is on screen",
      press: (session) => void session.copyLink(),
    },
    {
      keys: ["Ctrl+f"],
      shown: ["Ctrl F"],
      text: "Search",
      press: (session) => session.focusSearch(),
    },
    {
      keys: ["Ctrl+Shift+p"],
      shown: ["Ctrl Shift P"],
      text: "Commands",
      press: ({ workspace }) => {
        const views = workspace.peek();
        if (views) views.paletteOpen.value = true;
      },
    },
    {
      keys: ["Ctrl+o"],
      shown: ["Ctrl O"],
      text: "Open files",
      press: (session) => session.askForFiles(),
    },
  ],
};
export const SHORTCUTS: ShortcutGroup[] = [
  {
    title: "Along the trace",
    shortcuts: [
      { keys: ["w", "+", "="], shown: ["W", "+"], text: "Zoom in at the cursor", hold: "zoom-in" },
      { keys: ["s", "-"], shown: ["S", "-"], text: "Zoom out", hold: "zoom-out" },
      { keys: ["a", "ArrowLeft"], shown: ["A", "←"], text: "Pan left", hold: "left" },
      { keys: ["d", "ArrowRight"], shown: ["D", "→"], text: "Pan right", hold: "right" },
      {
        keys: ["p"],
        shown: ["P"],
        text: "Go to the peak",
        press: ({ plot, shown, linked, trace }) => {
          const slot = shown.peek()?.axis.peak;
          if (slot === undefined) return;
          plot.peek()?.act((view) => view.goto(slot));
          linked.cursor.value = Number(trace.peek()?.device?.peakEvent.raw);
        },
      },
      {
        keys: ["0", "Home"],
        shown: ["0", "Home"],
        text: "Show all",
        press: ({ plot }) => plot.peek()?.act((view) => view.fit()),
      },
      {
        keys: ["x"],
        shown: ["X"],
        text: "Events or time along the axis",
        press: (session) => session.toggleAxis(),
      },
    ],
  },
  {
    title: "Up and down",
    shortcuts: [
      {
        keys: ["Shift+w", "Shift+ArrowUp"],
        shown: ["Shift W"],
        text: "Zoom in on bytes",
        hold: "y-in",
      },
      { keys: ["Shift+s", "Shift+ArrowDown"], shown: ["Shift S"], text: "Zoom out", hold: "y-out" },
      { keys: ["Shift+d", "ArrowUp"], shown: ["Shift D", "↑"], text: "Pan up", hold: "up" },
      { keys: ["Shift+a", "ArrowDown"], shown: ["Shift A", "↓"], text: "Pan down", hold: "down" },
    ],
  },
  {
    title: "Blocks and ranks",
    shortcuts: [
      {
        keys: ["Enter"],
        shown: ["Enter"],
        text: "Select the block at the cursor",
        press: selectAtCursor,
      },
      {
        keys: ["f"],
        shown: ["F"],
        text: "Center the selection; again: fit it",
        press: focusSelection,
      },
      {
        keys: ["Escape"],
        shown: ["Esc"],
        text: "Cancel a drag, then the search, then the selection",
        press: (session) => session.escape(),
      },
      { keys: ["["], shown: ["["], text: "Previous rank", press: (session) => session.step(-1) },
      { keys: ["]"], shown: ["]"], text: "Next rank", press: (session) => session.step(1) },
      {
        keys: ["{", "}"],
        shown: ["Shift [", "Shift ]"],
        text: "First and last rank",
        press: (session, key) =>
          session.step(key === "{" ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY),
      },
      {
        keys: ["?"],
        shown: ["?"],
        text: "This sheet",
        press: (session) => {
          session.sheetOpen.value = true;
        },
      },
    ],
  },
  CHORDS,
];
