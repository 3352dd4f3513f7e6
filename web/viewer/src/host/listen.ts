// The door for messages from the window that has opened or embedded this page. What is behind it is
// fetched only where there is such a window.

import type { LoadInput } from "../client/files.js";
import type { VramscopeViewer } from "../element.js";
import type { ViewState } from "../view-state.js";

/**
 * What a host posts, its buffers in the transfer list: a question whether somebody listens, or
 * files to show.
 */
export type ToViewer =
  | "PING"
  | ArrayBuffer
  | {
      vramscope: {
        files?: readonly Extract<LoadInput, File | { name: string }>[];
        /** What stands in the header for these files. */
        title?: string;
        /** What `getState()` gave, or the fragment of a link. */
        state?: ViewState | string;
      };
    };

/** What comes back. */
export type FromViewer =
  | "PONG"
  | { vramscope: { kind: "loaded"; paths: string[]; failed: { path: string; message: string }[] } }
  | { vramscope: { kind: "error"; message: string } };

/**
 * Lets the opener or the parent of this page, if it has one, show files in `viewer`. Gives back
 * what ends it.
 */
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
