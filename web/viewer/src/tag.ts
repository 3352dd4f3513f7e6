// The tag's name, and its registration.

import { MemstrataViewer } from "./element.js";

export const TAG = "memstrata-viewer";

/** Registers the tag, unless something has: of two copies of this package on a page the first one is used. */
export function register(): void {
  if (!customElements.get(TAG)) customElements.define(TAG, MemstrataViewer);
}

declare global {
  interface HTMLElementTagNameMap {
    "memstrata-viewer": MemstrataViewer;
  }
}
