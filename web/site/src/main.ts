// The page: registers the element, keeps the address current, opens the door for a page that has
// opened or embedded this one, and names the element for tools.

import { bindAddress, listen, register, type VramscopeViewer } from "vramscope-viewer";
import workerAddress from "vramscope-viewer/worker.js?worker&url";
import { stay } from "./stay.js";

declare global {
  interface Window {
    vramscope: VramscopeViewer;
  }
}

/**
 * A worker of an address has only the content security policy that comes with its script, and a
 * static host sends none. One that begins as a blob has the page's: nothing leaves a worker either.
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
