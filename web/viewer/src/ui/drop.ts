// Drag and drop of files and folders, on the element or on the whole page.

import type { ReadonlySignal } from "@preact/signals";
import { fromDrop } from "../client/files.js";
import type { Session } from "../session.js";

const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;

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
    const depth = (value: number) => {
      this.#depth = value;
      session.dropping.value = value > 0;
    };
    on("dragenter", () => depth(this.#depth + 1));
    on("dragleave", () => depth(this.#depth - 1));
    on("dragover", (event) => {
      event.preventDefault();
      if (event.dataTransfer) event.dataTransfer.dropEffect = "copy";
    });
    on("drop", (event) => {
      event.preventDefault();
      depth(0);
      if (event.dataTransfer) void session.open(fromDrop(event.dataTransfer));
    });
  }

  destroy(): void {
    this.#listening.abort();
  }
}
