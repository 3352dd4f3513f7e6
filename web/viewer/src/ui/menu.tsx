// A button that opens a panel below it. The content stays in the document while the panel is
// closed, because scripts and tests use the file inputs in it.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Icon } from "./icons.js";

interface MenuProperties {
  /** The text of the button. */
  text: ComponentChildren;
  /** The name for assistive technology and the tooltip. */
  name: string;
  /** The side of the button at which the panel is aligned. */
  align: "start" | "end";
  class?: string;
  testid?: string;
  /** The items; a function makes them when the panel opens. */
  children: ComponentChildren | (() => ComponentChildren);
}

export function Menu({ text, name, align, class: look = "", testid, children }: MenuProperties) {
  const [open, setOpen] = useState(false);
  const menu = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return;
    // Presses anywhere else close the panel, in the page around the element too.
    const listening = new AbortController();
    const outside = (event: Event) => {
      if (menu.current && !event.composedPath().includes(menu.current)) setOpen(false);
    };
    document.addEventListener("pointerdown", outside, {
      capture: true,
      signal: listening.signal,
    });
    return () => listening.abort();
  }, [open]);
  const close = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || !open) return;
    event.preventDefault();
    event.stopPropagation();
    setOpen(false);
    menu.current?.querySelector("button")?.focus();
  };
  const left = ({ relatedTarget }: FocusEvent) => {
    if (relatedTarget instanceof Node && !menu.current?.contains(relatedTarget)) setOpen(false);
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: it only closes what is open
    <div class={`menu ${look}`} ref={menu} onKeyDown={close} onFocusOut={left}>
      <button
        type="button"
        class="button plain menu-button"
        data-testid={testid}
        aria-expanded={open}
        aria-label={name}
        title={name}
        onClick={() => setOpen(!open)}
      >
        {text}
        <Icon name="down" />
      </button>
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the items take keys themselves */}
      {/* biome-ignore lint/a11y/noStaticElementInteractions: an item that was used closes it */}
      <div class="menu-panel" data-align={align} hidden={!open} onClick={() => setOpen(false)}>
        {typeof children === "function" ? open && children() : children}
      </div>
    </div>
  );
}
