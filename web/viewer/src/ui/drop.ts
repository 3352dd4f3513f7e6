// Drag and drop of files and folders, on the element or on the whole page.

import type { ReadonlySignal } from "@preact/signals";
import { fromDrop } from "../client/files.js";
import type { Dropping } from "../run.js";
import type { Session } from "../session.js";

const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;

/** Files come beside what is open, unless they are over the place that opens them instead. */
function becoming(session: Session, event: DragEvent): Dropping {
  const instead = event
    .composedPath()
    .some((node) => node instanceof HTMLElement && "instead" in node.dataset);
  return session.run.peek() === null || instead ? "open" : "add";
}

export class DropTarget {
  readonly #listening = new AbortController();
  /** Enter and leave come for every element on the way, enter first. */
  #depth = 0;

  constructor(session: Session, target: EventTarget, off: ReadonlySignal<boolean>) {
    const on = (type: string, act: (event: DragEvent) => void) => {
      const listen = (event: Event) => {
        if (event instanceof DragEvent && hasFiles(event) && !off.peek()) act(event);
      };
      target.addEventListener(type, listen, { signal: this.#listening.signal });
    };
    const depth = (value: number, event: DragEvent) => {
      this.#depth = value;
      session.dropping.value = value > 0 ? becoming(session, event) : null;
    };
    on("dragenter", (event) => depth(this.#depth + 1, event));
    on("dragleave", (event) => depth(this.#depth - 1, event));
    on("dragover", (event) => {
      event.preventDefault();
      session.dropping.value = becoming(session, event);
      if (event.dataTransfer) event.dataTransfer.dropEffect = "copy";
    });
    on("drop", (event) => {
      event.preventDefault();
      depth(0, event);
      if (event.dataTransfer) void session[becoming(session, event)](fromDrop(event.dataTransfer));
    });
  }

  destroy(): void {
    this.#listening.abort();
  }
}
