// A modal dialog. It takes the keyboard focus when it opens and returns it when it closes.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

interface ModalProperties {
  class: string;
  /** The dialog's label, or the id of its label. */
  name: { "aria-label": string } | { "aria-labelledby": string };
  /** Keys that close it, besides Escape. */
  keys?: readonly string[];
  close: () => void;
  children: ComponentChildren;
}

export function Modal({ class: name, name: label, keys = [], close, children }: ModalProperties) {
  const dialog = useRef<HTMLDialogElement>(null);
  // A layout effect, so that the dialog gets the next key already.
  useLayoutEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);
  // Handled here, because the dialog's own close event comes a task later, after another key.
  const keydown = (event: KeyboardEvent) => {
    if (event.key !== "Escape" && !keys.includes(event.key)) return;
    event.preventDefault();
    close();
  };
  return (
    <dialog
      class={name}
      {...label}
      ref={dialog}
      // A closed dialog may fire this event after the next one has opened.
      onClose={() => dialog.current && close()}
      onClick={(event) => event.target === event.currentTarget && close()}
      onKeyDown={keydown}
    >
      {children}
    </dialog>
  );
}
