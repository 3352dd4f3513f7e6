// The tag's name, and its registration.

import { VramscopeViewer } from "./element.js";

export const TAG = "vramscope-viewer";

/** Registers the tag, unless it is registered: of two copies of this package the first one wins. */
export function register(): void {
  if (!customElements.get(TAG)) customElements.define(TAG, VramscopeViewer);
}

declare global {
  interface HTMLElementTagNameMap {
    "vramscope-viewer": VramscopeViewer;
  }
}
