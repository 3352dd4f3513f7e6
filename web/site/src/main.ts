// The page: registers the element, keeps the address current, opens the door for a page that has opened or embedded this
// one, and names the element for tools.

import { bindAddress, listen, type MemstrataViewer, register } from "memstrata-viewer";
import workerAddress from "memstrata-viewer/worker.js?worker&url";
import { stay } from "./stay.js";

declare global {
  interface Window {
    memstrata: MemstrataViewer;
  }
}

/**
 * A worker of an address has only the content security policy that comes with its script, and a static host sends none. One
 * that begins as a blob has the page's: nothing leaves a worker either.
 */
function confined(address: string): string {
  const script = `import ${JSON.stringify(new URL(address, document.baseURI).href)};`;
  return URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
}

const viewer = document.querySelector("memstrata-viewer");
if (viewer) {
  viewer.setAttribute("worker-url", confined(workerAddress));
  register();
  window.memstrata = viewer;
  bindAddress(viewer);
  listen(viewer);
  // A browser may refuse to keep anything; the page works without.
  // biome-ignore lint/suspicious/noConsole: nothing that anybody has asked for has failed
  stay(viewer).catch((error: unknown) => console.info("memstrata will need the network the next time:", error));
}
