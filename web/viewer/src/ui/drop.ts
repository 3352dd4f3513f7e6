// Drag and drop of files and folders, on the element or the whole page.

import type { ReadonlySignal } from "@preact/signals";
import { fromDrop } from "../client/files.js";
import type { Dropping } from "../run.js";
import type { Uses } from "../stores.js";

const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;

type DropOwners = Uses<"runs" | "loader">;

/** Dropped files are added to the open run, unless they are over the bar that replaces it. */
function becoming({ runs }: DropOwners, event: DragEvent): Dropping {
  const instead = event
    .composedPath()
    .some((node) => node instanceof HTMLElement && "instead" in node.dataset);
  return runs.run.peek() === null || instead ? "open" : "add";
}

export class DropTarget {
  readonly #listening = new AbortController();
  /** Enter and leave events fire for every element on the way, enter first. */
  #depth = 0;

  constructor(owners: DropOwners, target: EventTarget, off: ReadonlySignal<boolean>) {
    const { dropping } = owners.runs;
    const on = (type: string, act: (event: DragEvent) => void) => {
      const listen = (event: Event) => {
        if (event instanceof DragEvent && hasFiles(event) && !off.peek()) act(event);
      };
      target.addEventListener(type, listen, { signal: this.#listening.signal });
    };
    const depth = (value: number, event: DragEvent) => {
      this.#depth = value;
      dropping.value = value > 0 ? becoming(owners, event) : null;
    };
    on("dragenter", (event) => depth(this.#depth + 1, event));
    on("dragleave", (event) => depth(this.#depth - 1, event));
    on("dragover", (event) => {
      event.preventDefault();
      dropping.value = becoming(owners, event);
      if (event.dataTransfer) event.dataTransfer.dropEffect = "copy";
    });
    on("drop", (event) => {
      event.preventDefault();
      depth(0, event);
      const { dataTransfer } = event;
      if (dataTransfer) void owners.loader[becoming(owners, event)](fromDrop(dataTransfer));
    });
  }

  destroy(): void {
    this.#listening.abort();
  }
}
