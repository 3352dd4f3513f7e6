// Messages between the webview, which draws, and this machine, which has the files. Only answers
// of the workers pass: a file is read where it lies.

import type { FromWorker, ToWorker } from "../../web/viewer/dist/client/messages.js";

export type { FromWorker, ToWorker };

export type FromView =
  /** A worker for a file, or for all files. The webview counts its workers. */
  | { kind: "start"; worker: number }
  | { kind: "post"; worker: number; message: ToWorker }
  | { kind: "end"; worker: number }
  /** The text at an address of the run: its index, or a source file. */
  | { kind: "fetch"; id: number; url: string }
  /** A line of source that the user has opened. */
  | { kind: "line"; file: string; line: number };

export type ToView =
  | { kind: "message"; worker: number; message: FromWorker }
  /** A worker has ended by itself. */
  | { kind: "failed"; worker: number; words: string }
  /** `body` is null if the run has no such address. */
  | { kind: "fetched"; id: number; body: string | null };

/** The address of a run. The webview asks this machine for what lies below. */
export const RUN = "vramscope://run/";
/** The index of the run's files, of the form that `vramscope serve` writes. */
export const INDEX = `${RUN}index.json`;
/** Before the path of a source file, as call stacks name it. */
export const SOURCE = `${RUN}source/`;
