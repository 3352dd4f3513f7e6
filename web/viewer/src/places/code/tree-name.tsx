// The name of a row in a tree table, with the button that folds it.

import type { ComponentChildren } from "preact";
import { Icon } from "../../ui/icons.js";

interface TreeNameProperties {
  label: string;
  depth: number;
  /** Whether the rows below are listed; null without any. */
  open: boolean | null;
  toggle: () => void;
  children?: ComponentChildren;
}

export function TreeName({ label, depth, open, toggle, children }: TreeNameProperties) {
  return (
    <span class="code-name" style={{ "--depth": depth }}>
      {open === null ? (
        <span class="code-leaf" />
      ) : (
        <button
          type="button"
          class="code-toggle"
          tabIndex={-1}
          aria-expanded={open}
          aria-label={`${open ? "Fold" : "Unfold"} ${label}`}
          onClick={(event) => {
            event.stopPropagation();
            toggle();
          }}
        >
          <Icon name={open ? "down" : "forward"} />
        </button>
      )}
      {label}
      {children}
    </span>
  );
}
