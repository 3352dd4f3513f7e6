// Keeps the view state in the page's address: `#v=1&path=..&axis=..`, with an entry of the
// browser's history for each view that is opened. Only a full page does this; an embedded element
// leaves its host's address alone.

import type { VramscopeViewer } from "../element.js";
import { formatState, parseState } from "../view-state.js";
import type { VramscopeEvents } from "./events.js";

/** Browsers refuse more than about 100 changes of the address in 30 seconds. */
const WRITE_MS = 300;

/** The fields of a fragment that are kept beside the state: addresses to open, and the mode. */
function kept(fragment: string): string {
  const all = new URLSearchParams(fragment.slice(1));
  const fields = ["url", "mode"].flatMap((name) => all.getAll(name).map((value) => [name, value]));
  return fields.length === 0 ? "" : `&${new URLSearchParams(fields)}`;
}

/** Applies the address to the viewer, then keeps both in sync. Returns a function that stops it. */
export function bindAddress(viewer: VramscopeViewer): () => void {
  const listening = new AbortController();
  const { signal } = listening;
  let timer = 0;
  /** The view of the newest entry; null before the first picture. */
  let shown: string | null = null;
  const write = (event: CustomEvent<VramscopeEvents["vramscope-state"]>) => {
    const state = event.detail;
    // The landing page keeps its address, which may be a link that waits for its files.
    if (state.path === undefined) return;
    clearTimeout(timer);
    timer = setTimeout(() => {
      const address = formatState(state) + kept(location.hash);
      const isOther = shown !== null && shown !== state.view;
      shown = state.view ?? null;
      if (isOther) history.pushState(null, "", address);
      else history.replaceState(history.state, "", address);
    }, WRITE_MS);
  };
  const apply = (fragment: string) => {
    const mode = new URLSearchParams(fragment.slice(1)).get("mode");
    if (mode !== null) viewer.setAttribute("mode", mode);
    viewer.setState(parseState(fragment));
  };
  apply(location.hash);
  viewer.addEventListener("vramscope-state", write as EventListener, { signal });
  const read = ({ newURL }: HashChangeEvent) => {
    // A pending write is older than the new address.
    clearTimeout(timer);
    const { hash } = new URL(newURL);
    // Back and forward go to an entry that is there.
    shown = parseState(hash).view ?? shown;
    apply(hash);
  };
  window.addEventListener("hashchange", read, { signal });
  return () => {
    clearTimeout(timer);
    listening.abort();
  };
}
