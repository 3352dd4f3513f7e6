// The page's address as a place to keep what is on screen: `#v=1&path=..&axis=..`. Only a page that
// is all ours calls this; an embedded element leaves its host's address alone.

import type { VramscopeEvents, VramscopeViewer } from "../element.js";
import { formatState, parseState } from "../view-state.js";

/** Browsers refuse more than about a hundred changes of the address in half a minute. */
const WRITE_MS = 300;

/** What else a fragment may say stays in it: which files to open, and what the page looks like. */
function besides(fragment: string): string {
  const all = new URLSearchParams(fragment.slice(1));
  const kept = ["url", "mode"].flatMap((name) => all.getAll(name).map((value) => [name, value]));
  return kept.length === 0 ? "" : `&${new URLSearchParams(kept)}`;
}

/** Reads the address into the viewer, and follows both ways. Gives back what ends it. */
export function bindAddress(viewer: VramscopeViewer): () => void {
  const listening = new AbortController();
  const { signal } = listening;
  let waiting = 0;
  const write = (event: CustomEvent<VramscopeEvents["vramscope-state"]>) => {
    const state = event.detail;
    // A landing page keeps its address, which may be a link that still waits for its files.
    if (state.path === undefined) return;
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      history.replaceState(history.state, "", formatState(state) + besides(location.hash));
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
    // What was about to be written is of before; it may even have been written by now.
    clearTimeout(waiting);
    apply(new URL(newURL).hash);
  };
  window.addEventListener("hashchange", read, { signal });
  return () => {
    clearTimeout(waiting);
    listening.abort();
  };
}
