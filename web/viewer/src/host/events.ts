// The events of the element. The package's types have this file, so it imports no module that
// imports wasm: its types need a newer library than an app may have.

import type { BlockDetail, Failure } from "../generated/protocol.js";
import type { ViewState } from "../view-state.js";

/** A line of source, as a call stack names it. */
export interface SourceLine {
  file: string;
  line: number;
}

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
