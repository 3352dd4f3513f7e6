// All commands by name: what a key does, every view, every choice.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { VIEW_TITLES, VIEWS, type View } from "../linked.js";
import type { Session } from "../session.js";
import { SHORTCUTS } from "../ui/keymap.js";
import { Modal } from "./modal.js";
import { MORE_SHORTCUTS } from "./shortcuts.js";
import { COLORS } from "./tools.js";
import type { Workspace } from "./workspace.js";

interface Command {
  text: string;
  keys: string[];
  run: () => void;
}

const KEYED: ReadonlySet<View> = new Set<View>(VIEWS.slice(0, 6));

function commandsOf(session: Session, workspace: Workspace): Command[] {
  // Views with a key are among the keys.
  const views = VIEWS.filter((view) => !KEYED.has(view)).map((view) => ({
    text: `View: ${VIEW_TITLES[view]}`,
    keys: [],
    run: () => workspace.openDrawer(view),
  }));
  const colors = COLORS.map(([color, text]) => ({
    text: `Color by ${text}`,
    keys: [],
    run: () => {
      session.linked.color.value = color;
    },
  }));
  const keyed = [...SHORTCUTS, ...MORE_SHORTCUTS].flatMap(({ title, shortcuts }) =>
    shortcuts.flatMap(({ text, shown, keys, press, repeat, release }) => {
      const [key] = keys;
      // What lasts while a key is held is no command.
      if (!press || key === undefined || (release && !repeat)) return [];
      return [{ text: `${title}: ${text}`, keys: shown, run: () => press(session, key) }];
    }),
  );
  return [...views, ...colors, ...keyed];
}

export function Palette({ session, workspace }: { session: Session; workspace: Workspace }) {
  const open = workspace.paletteOpen.value;
  return open ? <Dialog session={session} workspace={workspace} /> : null;
}

function Dialog({ session, workspace }: { session: Session; workspace: Workspace }) {
  const list = useRef<HTMLDivElement>(null);
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const all = useMemo(() => commandsOf(session, workspace), [session, workspace]);
  const words = text.toLowerCase().split(/\s+/);
  const shown = all.filter((command) =>
    words.every((word) => command.text.toLowerCase().includes(word)),
  );
  const current = Math.min(at, shown.length - 1);
  useEffect(() => {
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  });
  const close = () => {
    workspace.paletteOpen.value = false;
  };
  const run = (command: Command | undefined) => {
    close();
    // The dialog gives the focus back to what had it; a command may want it elsewhere.
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
        {shown.length === 0 && <p class="quiet">No command has that name.</p>}
      </div>
    </Modal>
  );
}
