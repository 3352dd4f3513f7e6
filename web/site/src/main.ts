// The page: registers the element, keeps the view state in the address, listens to a page that
// opened or embeds this one, and exposes the element as `window.vramscope`.

import { bindAddress, listen, register, type VramscopeViewer } from "vramscope-viewer";
import workerAddress from "vramscope-viewer/worker.js?worker&url";
import { confined } from "./confined.js";
import { stay } from "./stay.js";

declare global {
  interface Window {
    vramscope: VramscopeViewer;
  }
}

const viewer = document.querySelector("vramscope-viewer");
if (viewer) {
  viewer.setAttribute("worker-url", confined(workerAddress));
  register();
  window.vramscope = viewer;
  bindAddress(viewer);
  listen(viewer);
  stay(viewer).catch((error: unknown) => {
    // A browser may refuse to cache the page for offline use. The page works without the cache.
    // biome-ignore lint/suspicious/noConsole: a background task failed, no user action
    console.info("vramscope cannot be cached for offline use:", error);
  });
}
