// The page: registers the element, keeps the address current, and names the element for tools.

import "memstrata-viewer/element";
import { bindAddress, type MemstrataViewer } from "memstrata-viewer";

declare global {
  interface Window {
    memstrata: MemstrataViewer;
  }
}

const viewer = document.querySelector("memstrata-viewer");
if (viewer) {
  window.memstrata = viewer;
  bindAddress(viewer);
}
