// What the page and its workers say to each other around the protocol of crates/vramscope-engine:
// how a worker gets its module and its bytes, and how a worker that stops says why.

import type { Failure, Request, Response, RunRequest, RunResponse } from "../generated/protocol.js";

/** Where a file's bytes come from: something on this machine, or an address to stream. */
export type Bytes = Blob | string;

/** The large part of an answer: its buffers are transferred, not copied. */
export interface Columns {
  positions?: Float32Array;
  colors?: Uint32Array;
  blocks?: Uint32Array;
}

/** The build with threads: its script, which fetches nothing, and its module. */
export interface ThreadsBuild {
  script: string;
  module: WebAssembly.Module;
  /** How many to start. */
  threads: number;
  /**
   * The channel on which a thread that stops says so: the page hears it, while the worker waits for
   * what the thread has not done, for ever.
   */
  alarm: string;
}

/** A part of the events of every trace, both ends counted. */
export interface EventRange {
  first: number;
  last: number;
}

/** What of a file is read, and how much memory that may take: all, unless told. */
export interface Bounds {
  events: EventRange | null;
  memory: number | null;
}

export type ToWorker =
  | {
      kind: "prepare";
      module: WebAssembly.Module;
      threaded: ThreadsBuild | null;
      /** There is time: no file is there yet. */
      early: boolean;
      version: string;
    }
  | { kind: "load"; path: string; bytes: number; source: Bytes; bounds: Bounds }
  | { kind: "ask"; request: Request }
  | { kind: "run"; request: RunRequest };

export type FromWorker =
  | { kind: "reply"; response: Response; columns: Columns; wasmBytes: number; threads: number }
  | { kind: "run"; response: RunResponse }
  | { kind: "crashed"; failure: Failure };
