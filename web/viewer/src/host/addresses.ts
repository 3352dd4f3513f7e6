// Snapshots named by the page's address: `#url=https://..&url=..`.

import type { VramscopeViewer } from "../element.js";

/**
 * Where `page`, which opens what its address names, shows the snapshots that a pasted text names,
 * and their hosts. Null if the text has more than addresses.
 */
export function linkTo(page: string, text: string): { href: string; hosts: string } | null {
  const urls = text.trim().split(/\s+/);
  if (!urls.every((url) => /^https?:/.test(url) && URL.canParse(url))) return null;
  const hosts = new Set(urls.map((url) => new URL(url).host));
  const fragment = new URLSearchParams(urls.map((url) => ["url", url]));
  return { href: `${page}#${fragment}`, hosts: [...hosts].join(", ") };
}

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
