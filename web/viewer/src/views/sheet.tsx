// The sheet of keys and gestures.

import { useEffect, useRef } from "preact/hooks";
import type { Session } from "../session.js";
import { Icon } from "../ui/icons.js";
import { SHORTCUTS } from "../ui/keymap.js";
import { IN_PLACE, MORE_SHORTCUTS, POINTER } from "./shortcuts.js";

export function Sheet({ session }: { session: Session }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const open = session.sheetOpen.value;
  useEffect(() => {
    if (open) dialog.current?.showModal();
    else dialog.current?.close();
  }, [open]);
  const close = () => {
    session.sheetOpen.value = false;
  };
  // Not left to the dialog: it tells of its closing a task later, and a key may come before that.
  const keydown = (event: KeyboardEvent) => {
    if (event.key !== "Escape" && event.key !== "?") return;
    event.preventDefault();
    dialog.current?.close();
    close();
  };
  return (
    <dialog
      class="sheet"
      aria-labelledby="sheet-title"
      ref={dialog}
      onClose={close}
      onClick={(event) => event.target === event.currentTarget && close()}
      onKeyDown={keydown}
    >
      <div class="sheet-body">
        <div class="sheet-head">
          <h2 id="sheet-title">Keys and gestures</h2>
          <button type="button" class="button plain" aria-label="Close" onClick={close}>
            <Icon name="close" />
          </button>
        </div>
        <div class="sheet-columns">
          <Group title="Pointer" rows={POINTER.map(([shown, text]) => [[shown], text])} />
          <Group title="In one place" rows={IN_PLACE.map(([shown, text]) => [[shown], text])} />
          {[...SHORTCUTS, ...MORE_SHORTCUTS].map(({ title, shortcuts }) => (
            <Group key={title} title={title} rows={shortcuts.map(({ shown, text }) => [shown, text])} />
          ))}
        </div>
      </div>
    </dialog>
  );
}

function Group({ title, rows }: { title: string; rows: [keys: string[], text: string][] }) {
  return (
    <section>
      <h3>{title}</h3>
      <dl>
        {rows.map(([keys, text]) => (
          <div class="sheet-row" key={text}>
            <dt>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
