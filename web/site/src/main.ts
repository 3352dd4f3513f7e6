// The page: registers the element, keeps the view state in the address, listens to a page that
// opened or embeds this one, and exposes the element as `window.vramscope`.

import { bindAddress, listen, register, type VramscopeViewer } from "vramscope-viewer";
import workerAddress from "vramscope-viewer/worker.js?worker&url";
import { stay } from "./stay.js";

declare global {
  interface Window {
    vramscope: VramscopeViewer;
  }
}

/**
 * A blob address that imports the worker's script. A worker from a normal address has the content
 * security policy of its own response, and static hosts send none. A worker from a blob has the
 * page's policy, so it cannot send data anywhere.
 */
function confined(address: string): string {
  const script = `import ${JSON.stringify(new URL(address, document.baseURI).href)};`;
  return URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
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
