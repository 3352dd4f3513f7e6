// Everything that the palette finds: places, files, findings, call sites and commands.

import type { Category, ColorBy, GroupBy } from "../generated/protocol.js";
import {
  PLACES,
  SHEET_VIEWS,
  SHEETS,
  type SheetView,
  titleOf,
  VIEWS,
  type View,
  viewsOf,
} from "../places/index.js";
import { rowName } from "../run.js";
import type { Stores } from "../stores.js";
import { SHORTCUTS } from "../ui/keymap.js";
import { placesOf } from "../ui/place-bar.js";
import { COLORS, GROUPS } from "../view-selection.js";
import { LAST_EVENT } from "./cards.js";
import { waysToShare } from "./share.js";
import { VIEW_SHORTCUTS } from "./shortcuts.js";
import type { ViewStores } from "./workspace.js";

/** One thing that the palette finds. */
export interface Command {
  /** What kind of thing it is, as it is shown beside the text. */
  kind: "place" | "file" | "finding" | "category" | "call site" | "share" | "command";
  text: string;
  /** Other words that find it. */
  words: string;
  keys: readonly string[];
  run: () => void;
}

export type CommandOwners = Stores & ViewStores;

/** Words of one view or list, beside those of its place. */
const OWN_WORDS: Partial<Record<View | SheetView, string>> = {
  summary:
    "levers change cheaper save bf16 fp16 8-bit optimizer checkpointing batch fsdp lora offload",
  modules: "layer block",
  holders: "who holds variable",
  map: "fragments free",
  ab: "diff difference compare before after",
};

/** Words of categories, beside their names. */
const CATEGORY_WORDS: Partial<Record<Category, string>> = {
  cache: "kv key value",
  gradient: "grads",
  optimizer_state: "adam moments",
  parameter: "weights",
};

const THEMES = ["dark", "light", "auto"] as const;

/** Rows with commands of their own. Of more rows, the one in focus is pinned with its key. */
const MAX_ROWS = 64;

/** All things to find in the open run. */
export function commandsOf(stores: CommandOwners): Command[] {
  return [
    ...placesFound(stores),
    ...filesFound(stores),
    ...findingsFound(stores),
    ...categoriesFound(stores),
    ...sitesFound(stores),
    ...waysToShare(stores).map((way) => ({ kind: "share" as const, keys: [], ...way })),
    ...choices(stores),
    ...keyed(stores),
  ];
}

function placesFound(stores: CommandOwners): Command[] {
  const { navigation } = stores;
  const shown = placesOf(stores);
  const places = shown.flatMap((id) =>
    viewsOf(id).map(([view], _, all) => ({
      kind: "place" as const,
      text: titleOf(view),
      words: `go to view ${PLACES[id].answers} ${PLACES[id].words} ${OWN_WORDS[view] ?? ""}`,
      keys: all.length === 1 ? [String(Object.keys(PLACES).indexOf(id) + 1)] : [],
      run: () => navigation.open(view),
    })),
  );
  const sheets = SHEET_VIEWS.map((sheet) => ({
    kind: "place" as const,
    text: `Timeline: ${SHEETS[sheet]}`,
    words: `list table sheet below the plot csv ${OWN_WORDS[sheet] ?? ""}`,
    keys: [],
    run: () => navigation.openSheet(sheet),
  }));
  return [...places, ...sheets];
}

function filesFound({ runs, selection, pins, loader }: CommandOwners): Command[] {
  const rows = runs.rows.peek();
  const each = rows.slice(0, MAX_ROWS);
  const files = each.map((row) => ({
    kind: "file" as const,
    text: rowName(row),
    words: `rank file ${row.file.path}`,
    keys: [],
    run: () => selection.look(row),
  }));
  const closing = each.map((row) => ({
    kind: "file" as const,
    text: `Close ${rowName(row)}`,
    words: `remove file ${row.file.path}`,
    keys: [],
    run: () => void loader.close(row.file),
  }));
  if (rows.length < 2) return [...files, ...closing];
  const pinning = each.map((row) => ({
    kind: "file" as const,
    text: `${pins.isPinned(row) ? "Unpin" : "Pin"} ${rowName(row)} below the timeline`,
    words: "rank compare track",
    keys: [],
    run: () => pins.toggle(row),
  }));
  const none = {
    kind: "file" as const,
    text: "Unpin all ranks",
    words: "",
    keys: [],
    run: () => pins.clear(),
  };
  return [...files, ...closing, ...(pins.rows.peek().length > 0 ? [none] : []), ...pinning];
}

function findingsFound({ queries, steps }: CommandOwners): Command[] {
  return (queries.cards.peek() ?? []).flatMap(({ members: [worst] }) =>
    worst === undefined
      ? []
      : [
          {
            kind: "finding" as const,
            text: worst.record.title,
            words: `problem ${worst.record.kind} ${worst.record.text}`,
            keys: [],
            run: () => void steps.openFinding(worst),
          },
        ],
  );
}

/** The state at the cursor, else at the peak. */
const stateOf = ({ queries }: CommandOwners) =>
  queries.stateAt.value.peek() ?? queries.peak.value.peek();

/** Blocks are seen in every place but the summary. */
function showBlocks({ navigation }: CommandOwners): void {
  if (navigation.place.peek() === "summary") navigation.open("timeline");
}

function categoriesFound(stores: CommandOwners): Command[] {
  return (stateOf(stores)?.categories ?? []).map(({ name, label, bytes }) => ({
    kind: "category" as const,
    text: `${label}, ${bytes.text}`,
    words: `show only ${CATEGORY_WORDS[name] ?? ""}`,
    keys: [],
    run: () => {
      stores.groups.choose([`category:${name}`]);
      showBlocks(stores);
    },
  }));
}

/** The call sites with most bytes. */
function sitesFound(stores: CommandOwners): Command[] {
  return (stateOf(stores)?.stacks ?? []).map(({ site, via, bytes, terms }) => ({
    kind: "call site" as const,
    text: `${site}${via === "" ? "" : ` via ${via}`}, ${bytes.text}`,
    words: "line function allocation",
    keys: [],
    run: () => {
      stores.groups.choose(terms);
      showBlocks(stores);
    },
  }));
}

/** Searches the blocks for a text that finds nothing else. */
export function searchFor(stores: CommandOwners, typed: string): Command {
  return {
    kind: "command",
    text: `Search the blocks for “${typed.trim()}”`,
    words: "",
    keys: ["/"],
    run: () => {
      stores.viewSelection.search.value = typed.trim();
      showBlocks(stores);
    },
  };
}

function choices({
  viewSelection,
  filters,
  navigation,
  steps,
  appearance,
}: CommandOwners): Command[] {
  const command = (text: string, words: string, run: () => void): Command => ({
    kind: "command",
    text,
    words,
    keys: [],
    run,
  });
  return [
    ...(Object.entries(COLORS) as [ColorBy, string][]).map(([color, text]) =>
      command(`Color by ${text}`, "", () => {
        viewSelection.color.value = color;
      }),
    ),
    ...(Object.entries(GROUPS) as [GroupBy, string][]).map(([group, text]) =>
      command(`Group by ${text}`, "", () => {
        viewSelection.group.value = group;
      }),
    ),
    command("What is live at the end", "left final deleted leak", () => {
      filters.set(["live@end"]);
      steps.goTo(LAST_EVENT);
      navigation.openSheet("blocks");
    }),
    ...THEMES.map((theme) =>
      command(`Theme: ${theme}`, "appearance mode", () => {
        appearance.theme.value = theme;
      }),
    ),
    command("Help: keys and gestures", "shortcuts", () => {
      navigation.helpOpen.value = true;
    }),
    command("Swap A and B", "", () => viewSelection.swapEnds()),
    command("Clear A and B", "", () => viewSelection.clearEnds()),
  ];
}

/** Shortcuts by their texts. Those of places are there already. */
function keyed(stores: CommandOwners): Command[] {
  const places = new Set(VIEWS.map(titleOf));
  return [...SHORTCUTS, ...VIEW_SHORTCUTS].flatMap(({ title, shortcuts }) =>
    shortcuts.flatMap(({ text, shown, keys, press, repeat, release }): Command[] => {
      const [key] = keys;
      // Actions that last while a key is held are no commands.
      if (!press || key === undefined || (release && !repeat) || places.has(text)) return [];
      return [{ kind: "command", text, words: title, keys: shown, run: () => press(stores, key) }];
    }),
  );
}

const wordsOf = (text: string) => text.toLowerCase().split(/[^\p{L}\p{N}]+/u);

/**
 * The commands of which each typed word begins a word: first where their own text has all of them.
 */
export function matching(all: readonly Command[], typed: string): Command[] {
  const asked = wordsOf(typed).filter((word) => word !== "");
  const has = (words: readonly string[], part: string) =>
    words.some((word) => word.startsWith(part));
  const found = all.flatMap((command) => {
    const own = wordsOf(command.text);
    const others = wordsOf(`${command.kind} ${command.words}`);
    if (!asked.every((part) => has(own, part) || has(others, part))) return [];
    return [{ command, isOwn: asked.every((part) => has(own, part)) }];
  });
  return [...found.filter(({ isOwn }) => isOwn), ...found.filter(({ isOwn }) => !isOwn)].map(
    ({ command }) => command,
  );
}
