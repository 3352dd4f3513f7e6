// The tag's name, and its registration.

import { VramscopeViewer } from "./element.js";

export const TAG = "vramscope-viewer";

/**
 * Registers the tag, unless something has: of two copies of this package on a page the first one is
 * used.
 */
export function register(): void {
  if (!customElements.get(TAG)) customElements.define(TAG, VramscopeViewer);
}

declare global {
  interface HTMLElementTagNameMap {
    "vramscope-viewer": VramscopeViewer;
  }
}
