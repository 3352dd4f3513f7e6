// The page without a network, and isolated where its host cannot say so: by the service worker in
// sw.ts.

/// <reference types="vite/client" />

import type { VramscopeViewer } from "vramscope-viewer";

const RELOADED = "vramscope isolated";

/**
 * Only a page that can be installed: not `/open/`, which needs the network, and not one that
 * `vramscope serve` has filled, which is at another address each time.
 */
const canStay = (viewer: VramscopeViewer) =>
  import.meta.env.PROD &&
  "serviceWorker" in navigator &&
  document.querySelector("link[rel=manifest]") !== null &&
  !viewer.hasAttribute("run");

/** Registers the service worker once the page has nothing else to do. */
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
  // Once: where it does not help, the page works without threads.
  if (sessionStorage.getItem(RELOADED) !== null) return;
  sessionStorage.setItem(RELOADED, "");
  location.reload();
}
