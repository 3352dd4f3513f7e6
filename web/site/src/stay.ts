// Registers the service worker (sw.ts), which makes the page work offline. Under `/isolated/` it
// also makes the page cross-origin isolated.

/// <reference types="vite/client" />

import type { VramscopeViewer } from "vramscope-viewer";

const RELOADED = "vramscope isolated";

/**
 * Whether the page can work offline: not `/open/`, which needs the network, and not a page of
 * `vramscope serve`, whose address differs each time.
 */
const canStay = (viewer: VramscopeViewer) =>
  import.meta.env.PROD &&
  "serviceWorker" in navigator &&
  document.querySelector("link[rel=manifest]") !== null &&
  !viewer.hasAttribute("run");

/** Registers the service worker when the page is idle. */
export async function stay(viewer: VramscopeViewer): Promise<void> {
  if (!canStay(viewer)) return;
  const wantsIsolation = "isolate" in document.documentElement.dataset && !crossOriginIsolated;
  if (!wantsIsolation) {
    await viewer.ready;
    await new Promise((resolve) => setTimeout(resolve, 2000));
  }
  await navigator.serviceWorker.register("./sw.js");
  if (!wantsIsolation) return;
  await navigator.serviceWorker.ready;
  // Reloads once only: if that does not isolate the page, it works without threads.
  if (sessionStorage.getItem(RELOADED) !== null) return;
  sessionStorage.setItem(RELOADED, "");
  location.reload();
}
