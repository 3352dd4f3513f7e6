// The events of the element.

import type { BlockDetail, Failure } from "../generated/protocol.js";
import type { SourceLine } from "../run.js";
import type { ViewState } from "../view-state.js";

/** The details of the element's events. */
export interface VramscopeEvents {
  "vramscope-progress": { path: string; fraction: number; text: string };
  "vramscope-loaded": { path: string; remaining: number };
  "vramscope-select": { reference: string | null; detail: BlockDetail | null };
  "vramscope-finding": { id: string | null };
  "vramscope-error": { path: string | null; failure: Failure };
  /**
   * The user has opened a line of source. If the event's default is prevented, the viewer does not
   * show the line.
   */
  "vramscope-frame": SourceLine;
  /** The result of `getState()` has changed. */
  "vramscope-state": ViewState;
}
