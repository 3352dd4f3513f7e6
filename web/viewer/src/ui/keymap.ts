// Keyboard shortcuts. The keyboard, the sheet and the palette read this table.

import { copyText } from "../host/clipboard.js";
import { CLIPBOARD_DENIED } from "../selection.js";
import type { Stores } from "../stores.js";

/** A movement that lasts while its key is held, by the Rust view's name. */
export type Movement = "zoom-in" | "zoom-out" | "left" | "right" | "y-in" | "y-out" | "up" | "down";

export interface Shortcut {
  /** Names of keys, as `nameOf` in keyboard.ts gives them. */
  keys: string[];
  /** The keys as they are printed. */
  shown: string[];
  text: string;
  hold?: Movement;
  press?: (stores: Stores, key: string) => void;
  /** Called while the key is held. */
  repeat?: (stores: Stores) => void;
  /** Called when the key is released, or the window loses the focus. */
  release?: (stores: Stores) => void;
}

export interface ShortcutGroup {
  title: string;
  shortcuts: Shortcut[];
}

function selectAtCursor({ plots, selection }: Stores): void {
  const point = plots.timeline.peek()?.focusPoint();
  if (point) void selection.selectAt(point.x, point.y);
}

export function goToPeak({ plots, selection, viewSelection }: Stores): void {
  const slot = selection.visibleTrace.peek()?.axis.peak;
  viewSelection.peak.value = 0;
  if (slot === undefined) return;
  plots.timeline.peek()?.act((view) => view.goto(slot));
  viewSelection.cursor.value = Number(selection.trace.peek()?.device?.peakEvent.raw);
}

export async function copyLink({ host, address, status }: Stores): Promise<void> {
  const done = await copyText(host.link(address.state()));
  status.announce(done ? "Link copied" : CLIPBOARD_DENIED);
}

/** Shortcuts with Ctrl, or Cmd on a Mac. */
const CHORDS: ShortcutGroup = {
  title: "Clipboard and files",
  shortcuts: [
    {
      keys: ["Ctrl+c"],
      shown: ["Ctrl C"],
      text: "Copy the selection: exact bytes and call stack",
      press: ({ selection }) => void selection.copy(),
    },
    {
      keys: ["Ctrl+Shift+c"],
      shown: ["Ctrl Shift C"],
      text: "Copy a link to this view",
      press: (stores) => void copyLink(stores),
    },
    {
      keys: ["Ctrl+f"],
      shown: ["Ctrl F"],
      text: "Search",
      press: ({ host }) => host.focusSearch(),
    },
    {
      keys: ["Ctrl+k", "Ctrl+Shift+p", ">"],
      shown: ["Ctrl K", ">"],
      text: "Find a place, file, finding, call site or command",
      // It shows as soon as the views have arrived.
      press: ({ navigation }) => {
        navigation.paletteOpen.value = true;
      },
    },
    {
      keys: ["Ctrl+o"],
      shown: ["Ctrl O"],
      text: "Open files",
      press: ({ host }) => host.askForFiles(),
    },
  ],
};
export const SHORTCUTS: ShortcutGroup[] = [
  {
    title: "Horizontal",
    shortcuts: [
      { keys: ["w", "+", "="], shown: ["W", "+"], text: "Zoom in at the cursor", hold: "zoom-in" },
      { keys: ["s", "-"], shown: ["S", "-"], text: "Zoom out", hold: "zoom-out" },
      { keys: ["a", "ArrowLeft"], shown: ["A", "←"], text: "Pan left", hold: "left" },
      { keys: ["d", "ArrowRight"], shown: ["D", "→"], text: "Pan right", hold: "right" },
      { keys: ["p"], shown: ["P"], text: "Jump to peak", press: goToPeak },
      {
        keys: ["0", "Home"],
        shown: ["0", "Home"],
        text: "Zoom to fit",
        press: ({ plots }) => plots.timeline.peek()?.act((view) => view.fit()),
      },
      {
        keys: ["x"],
        shown: ["X"],
        text: "X axis: events or time",
        press: ({ selection }) => selection.toggleAxis(),
      },
    ],
  },
  {
    title: "Vertical",
    shortcuts: [
      {
        keys: ["Shift+w", "Shift+ArrowUp"],
        shown: ["Shift W"],
        text: "Zoom in on bytes",
        hold: "y-in",
      },
      {
        keys: ["Shift+s", "Shift+ArrowDown"],
        shown: ["Shift S"],
        text: "Zoom out on bytes",
        hold: "y-out",
      },
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
        text: "Select the block at the pointer",
        press: selectAtCursor,
      },
      {
        keys: ["f"],
        shown: ["F"],
        text: "Center selection (twice: zoom to it)",
        press: ({ selection }) => selection.center(),
      },
      {
        keys: ["Escape"],
        shown: ["Esc"],
        text: "Cancel / clear",
        press: ({ selection }) => selection.escape(),
      },
      {
        keys: ["["],
        shown: ["["],
        text: "Previous rank",
        press: ({ selection }) => selection.step(-1),
      },
      { keys: ["]"], shown: ["]"], text: "Next rank", press: ({ selection }) => selection.step(1) },
      {
        keys: ["{", "}"],
        shown: ["Shift [", "Shift ]"],
        text: "First and last rank",
        press: ({ selection }, key) =>
          selection.step(key === "{" ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY),
      },
      {
        keys: ["?"],
        shown: ["?"],
        text: "Show shortcuts",
        press: ({ navigation }) => {
          navigation.helpOpen.value = true;
        },
      },
    ],
  },
  CHORDS,
];
