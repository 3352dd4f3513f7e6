// The palette: finds places, files, findings, call sites and commands by name.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Command, type CommandOwners, commandsOf, matching, searchFor } from "./commands.js";
import { Modal } from "./modal.js";

/** Results that are shown. */
const MAX_SHOWN = 60;

export function Palette(stores: CommandOwners) {
  const open = stores.navigation.paletteOpen.value;
  return open ? <Dialog {...stores} /> : null;
}

function Dialog(stores: CommandOwners) {
  const list = useRef<HTMLDivElement>(null);
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the stores never change
  const all = useMemo(() => commandsOf(stores), []);
  const found = useMemo(() => matching(all, text).slice(0, MAX_SHOWN), [all, text]);
  const shown = found.length === 0 ? [searchFor(stores, text)] : found;
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
        placeholder="Find a place, file, finding, call site or command"
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={keydown}
      />
      <div ref={list} id="palette-list" role="listbox" aria-label="Commands">
        {shown.map((command, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the combobox takes the keys
          <div
            key={`${command.words} ${command.text}`}
            id={`command-${index}`}
            role="option"
            tabIndex={-1}
            class="command"
            aria-selected={index === current}
            onClick={() => run(command)}
          >
            <span class="command-text">{command.text}</span>
            <span class="dim">
              {command.keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
              {command.keys.length === 0 && command.kind}
            </span>
          </div>
        ))}
      </div>
    </Modal>
  );
}
