// Messages between the page and its workers, around the generated protocol: a worker's module, the
// bytes of a file, and crashes.

import type { Failure, Request, Response, RunRequest, RunResponse } from "../generated/protocol.js";

/** Where a file's bytes come from: a local file or buffer, or an address to stream. */
export type Bytes = Blob | string;

/** The large part of an answer. Its buffers are transferred, not copied. */
export interface Columns {
  positions?: Float32Array;
  colors?: Uint32Array;
  blocks?: Uint32Array;
}

/** The build with threads: its script's address and its compiled module. */
export interface ThreadsBuild {
  script: string;
  module: WebAssembly.Module;
  /** Number of threads to start. */
  threads: number;
  /**
   * Name of the channel on which a thread reports its crash. The worker cannot report it, because
   * it blocks until the thread has finished.
   */
  alarm: string;
}

/** A range of events, inclusive. */
export interface EventRange {
  first: number;
  last: number;
}

/** Limits of a load: null reads all events, or uses all memory of the worker. */
export interface Bounds {
  events: EventRange | null;
  memory: number | null;
}

export type ToWorker =
  | {
      kind: "prepare";
      /** Null for a worker that has its module. */
      module: WebAssembly.Module | null;
      threaded: ThreadsBuild | null;
      /** No file waits for this worker, so it may warm up. */
      early: boolean;
      version: string;
    }
  | {
      kind: "load";
      path: string;
      bytes: number;
      source: Bytes;
      /** The file beside the snapshot. */
      beside: Bytes | null;
      /** Dimensions of the model that the user gives. */
      dims: string | null;
      bounds: Bounds;
    }
  | { kind: "ask"; request: Request }
  | { kind: "run"; request: RunRequest }
  /** Lines of an index, for the coordinator. `first` begins another index. */
  | { kind: "index"; id: number; source: Bytes; first: boolean }
  | { kind: "ping" };

export type FromWorker =
  | { kind: "reply"; response: Response; columns: Columns; wasmBytes: number; threads: number }
  | { kind: "run"; response: RunResponse }
  /** `unused`: it ended before it began what it was given, so another worker can do that. */
  | { kind: "crashed"; failure: Failure; unused?: boolean }
  /** The answer to a ping, and the sign that the module is ready. */
  | { kind: "alive"; idle: boolean };
