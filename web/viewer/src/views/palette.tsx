// The command palette: shortcuts, views and colorings by name.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { ColorBy, ExportFormat } from "../generated/protocol.js";
import { KEYED_VIEWS, VIEW_TITLES, VIEWS } from "../navigation.js";
import { rowName } from "../run.js";
import type { Stores } from "../stores.js";
import { SHORTCUTS } from "../ui/keymap.js";
import { COLORS } from "../view-selection.js";
import { Modal } from "./modal.js";
import { saveConverted } from "./save.js";
import { VIEW_SHORTCUTS } from "./shortcuts.js";
import type { ViewUses } from "./workspace.js";

interface Command {
  text: string;
  keys: string[];
  run: () => void;
}

/** All commands, each with its own text. */
export function commandsOf(stores: Stores & ViewUses<"pins">): Command[] {
  const { navigation, viewSelection } = stores;
  const views = VIEWS.filter((view) => !KEYED_VIEWS.includes(view)).map((view) => ({
    text: `View: ${VIEW_TITLES[view]}`,
    keys: [],
    run: () => navigation.openDrawer(view),
  }));
  const colors = (Object.entries(COLORS) as [ColorBy, string][]).map(([color, text]) => ({
    text: `Color by ${text}`,
    keys: [],
    run: () => {
      viewSelection.color.value = color;
    },
  }));
  const keyed = [...SHORTCUTS, ...VIEW_SHORTCUTS].flatMap(({ title, shortcuts }) =>
    shortcuts.flatMap(({ text, shown, keys, press, repeat, release }) => {
      const [key] = keys;
      // Actions that last while a key is held are no commands.
      if (!press || key === undefined || (release && !repeat)) return [];
      return [{ text: `${title}: ${text}`, keys: shown, run: () => press(stores, key) }];
    }),
  );
  const ends = [
    { text: "Swap A and B", keys: [], run: () => viewSelection.swapEnds() },
    { text: "Clear A and B", keys: [], run: () => viewSelection.clearEnds() },
  ];
  return [...views, ...colors, ...exportsOf(stores), ...pinsOf(stores), ...ends, ...keyed];
}

/** Rows with commands of their own. Of more rows, the one in focus is pinned with its key. */
const MAX_PINNABLE = 64;

/** Ranks to pin below the timeline. */
function pinsOf({ runs, pins }: Stores & ViewUses<"pins">): Command[] {
  const rows = runs.rows.peek();
  if (rows.length < 2) return [];
  const each = rows.slice(0, MAX_PINNABLE).map((row) => ({
    text: `${pins.isPinned(row) ? "Unpin" : "Pin"} ${rowName(row)} below the timeline`,
    keys: [],
    run: () => pins.toggle(row),
  }));
  const none = { text: "Unpin all ranks", keys: [], run: () => pins.clear() };
  return pins.rows.peek().length > 0 ? [none, ...each] : each;
}

/** Saves the focused device for other tools. Call stacks count as in the flame graph. */
function exportsOf({ selection, viewSelection, host, navigation }: Stores): Command[] {
  const counted = () => {
    const { weight } = viewSelection.flame.peek();
    return { weight, event: viewSelection.cursor.peek() ?? -1 };
  };
  const save = (tool: string, suffix: string, format: () => ExportFormat) => ({
    text: `Save for ${tool}`,
    keys: [],
    run: () => void saveConverted(selection, format(), suffix),
  });
  const report = {
    text: "Save as one HTML file",
    keys: [],
    run: () => {
      navigation.reportOpen.value = true;
    },
  };
  return [
    ...(host.report === null ? [] : [report]),
    save("Perfetto: counters, steps, annotations, OOMs", "perfetto.json", () => ({ perfetto: {} })),
    save("speedscope: call stacks", "speedscope.json", () => ({ speedscope: counted() })),
    save("flamegraph.pl: folded stacks", "folded.txt", () => ({ folded: counted() })),
  ];
}

export function Palette(stores: Stores & ViewUses<"pins">) {
  const open = stores.navigation.paletteOpen.value;
  return open ? <Dialog {...stores} /> : null;
}

function Dialog(stores: Stores & ViewUses<"pins">) {
  const list = useRef<HTMLDivElement>(null);
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the stores never change
  const all = useMemo(() => commandsOf(stores), []);
  const words = text.toLowerCase().split(/\s+/);
  const shown = all.filter((command) =>
    words.every((word) => command.text.toLowerCase().includes(word)),
  );
  const current = Math.min(at, shown.length - 1);
  useEffect(() => {
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  });
  const close = () => {
    stores.navigation.paletteOpen.value = false;
  };
  const run = (command: Command | undefined) => {
    close();
    // After the dialog has returned the focus, because the command may move it.
    if (command) requestAnimationFrame(() => command.run());
  };
  const keydown = (event: KeyboardEvent) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by !== undefined) {
      event.preventDefault();
      setAt((current + by + shown.length) % Math.max(1, shown.length));
    } else if (event.key === "Enter") {
      event.preventDefault();
      run(shown[current]);
    }
  };
  return (
    <Modal class="sheet palette" name={{ "aria-label": "Commands" }} close={close}>
      <input
        type="text"
        role="combobox"
        aria-label="Command"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={shown[current] ? `command-${current}` : undefined}
        placeholder="Type a command"
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={keydown}
      />
      <div
        ref={list}
        id="palette-list"
        {...(shown.length > 0 && { role: "listbox", "aria-label": "Commands" })}
      >
        {shown.map((command, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the combobox takes the keys
          <div
            key={command.text}
            id={`command-${index}`}
            role="option"
            tabIndex={-1}
            class="command"
            aria-selected={index === current}
            onClick={() => run(command)}
          >
            <span>{command.text}</span>
            <span>
              {command.keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </span>
          </div>
        ))}
        {shown.length === 0 && <p class="quiet">No matching command</p>}
      </div>
    </Modal>
  );
}
