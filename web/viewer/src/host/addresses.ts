// Snapshots named by the page's address: `#url=https://..&url=..`.

import type { VramscopeViewer } from "../element.js";

const named = () => new URLSearchParams(location.hash.slice(1)).getAll("url");

/**
 * Opens the snapshots that the address names, now and after each change. Relative addresses are
 * resolved against the page, and no credentials are added. Returns a function that stops it.
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
