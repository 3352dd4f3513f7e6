// The page: registers the element, keeps the address current, and names the element for tools.

import "memstrata-viewer/element";
import { bindAddress, type MemstrataViewer } from "memstrata-viewer";
import { stay } from "./stay.js";

declare global {
  interface Window {
    memstrata: MemstrataViewer;
  }
}

const viewer = document.querySelector("memstrata-viewer");
if (viewer) {
  window.memstrata = viewer;
  bindAddress(viewer);
  // A browser may refuse to keep anything; the page works without.
  // biome-ignore lint/suspicious/noConsole: nothing that anybody has asked for has failed
  stay(viewer).catch((error: unknown) => console.info("memstrata will need the network the next time:", error));
}
