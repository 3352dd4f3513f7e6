// Keys, gestures and what the page remembers of how it is used.

import type { Uses } from "../stores.js";
import { Icon } from "../ui/icons.js";
import { SHORTCUTS } from "../ui/keymap.js";
import { Display } from "./display.js";
import { Modal } from "./modal.js";
import { CONTEXT_KEYS, POINTER, VIEW_SHORTCUTS } from "./shortcuts.js";

export function Help({
  navigation,
  runs,
  viewSelection,
}: Uses<"navigation" | "runs" | "viewSelection">) {
  if (!navigation.helpOpen.value) return null;
  const close = () => {
    navigation.helpOpen.value = false;
  };
  return (
    <Modal class="sheet" name={{ "aria-labelledby": "sheet-title" }} keys={["?"]} close={close}>
      <div class="sheet-body">
        <div class="sheet-head">
          <h2 id="sheet-title">Keys and gestures</h2>
          <button type="button" class="button plain" aria-label="Close" onClick={close}>
            <Icon name="close" />
          </button>
        </div>
        <div class="sheet-columns">
          <Group title="Pointer" rows={POINTER.map(([shown, text]) => [[shown], text])} />
          <Group title="Context" rows={CONTEXT_KEYS.map(([shown, text]) => [[shown], text])} />
          {[...SHORTCUTS, ...VIEW_SHORTCUTS].map(({ title, shortcuts }) => (
            <Group
              key={title}
              title={title}
              rows={shortcuts.map(({ shown, text }) => [shown, text])}
            />
          ))}
        </div>
        <Display runs={runs} viewSelection={viewSelection} />
      </div>
    </Modal>
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
