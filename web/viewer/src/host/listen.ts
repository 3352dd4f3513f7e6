// Lets the window that opened or embeds this page show files. The code that handles its messages is
// imported only if there is such a window.

import type { LoadInput } from "../client/files.js";
import type { VramscopeViewer } from "../element.js";
import type { ViewState } from "../view-state.js";

/** Messages to the viewer: a ping, or files to show, whose buffers should be transferred. */
export type ToViewer =
  | "PING"
  | ArrayBuffer
  | {
      vramscope: {
        files?: readonly Extract<LoadInput, File | { name: string }>[];
        /** The run's title in the header. */
        title?: string;
        /** A result of `getState()`, or the fragment of a link. */
        state?: ViewState | string;
      };
    };

/** Answers of the viewer. */
export type FromViewer =
  | "PONG"
  | { vramscope: { kind: "loaded"; paths: string[]; failed: { path: string; message: string }[] } }
  | { vramscope: { kind: "error"; message: string } };

/** Lets the opener or the parent of this page show files. Returns a function that stops it. */
export function listen(viewer: VramscopeViewer): () => void {
  const around: (Window | null)[] = [window.opener, window.parent];
  const hosts = around.filter((host): host is Window => host !== null && host !== window);
  if (hosts.length === 0) return () => undefined;
  const gone = new AbortController();
  void import("./door.js").then(({ Door }) => {
    if (!gone.signal.aborted) new Door(viewer, hosts, gone.signal);
  });
  return () => gone.abort();
}
