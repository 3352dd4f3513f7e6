// Importing this registers <memstrata-viewer>.

import { MemstrataViewer } from "./element.js";

export const TAG = "memstrata-viewer";

if (!customElements.get(TAG)) customElements.define(TAG, MemstrataViewer);

declare global {
  interface HTMLElementTagNameMap {
    "memstrata-viewer": MemstrataViewer;
  }
}
