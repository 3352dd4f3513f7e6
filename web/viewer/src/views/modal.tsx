// A dialog over everything. It has the keyboard as soon as it is there, and gives the focus back to
// what had it when it goes.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

interface ModalProperties {
  class: string;
  /** Its name, or the id of what says it. */
  name: { "aria-label": string } | { "aria-labelledby": string };
  /** Keys that close it; Escape does, too. */
  keys?: readonly string[];
  close: () => void;
  children: ComponentChildren;
}

export function Modal({ class: name, name: label, keys = [], close, children }: ModalProperties) {
  const dialog = useRef<HTMLDialogElement>(null);
  // Before another key can come: what is typed at once belongs to it.
  useLayoutEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);
  // Not left to the dialog: it tells of its closing a task later, and a key may come before that.
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
      // What has gone tells of it when the next one may be open already.
      onClose={() => dialog.current && close()}
      onClick={(event) => event.target === event.currentTarget && close()}
      onKeyDown={keydown}
    >
      {children}
    </dialog>
  );
}
