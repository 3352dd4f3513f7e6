// Snapshots that the page's own address names: `#url=https://..&url=..`.

import type { VramscopeViewer } from "../element.js";

const named = () => new URLSearchParams(location.hash.slice(1)).getAll("url");

/**
 * Opens what the address names, now and whenever it comes to name something else. Relative ones are
 * of the page; nothing is sent along but what the browser sends to everybody. Gives back what ends
 * it.
 */
export function openAddresses(viewer: VramscopeViewer): () => void {
  let open = "";
  const read = () => {
    const urls = named();
    if (urls.length === 0 || urls.join(" ") === open) return;
    open = urls.join(" ");
    void viewer.load(urls);
  };
  read();
  window.addEventListener("hashchange", read);
  return () => window.removeEventListener("hashchange", read);
}
