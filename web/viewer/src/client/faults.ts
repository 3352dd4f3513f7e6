// Messages for workers that crash or cannot start: the cause, then the remedy.

import type { Failure } from "../generated/protocol.js";

/** How a worker, or one of its threads, crashed. */
export interface Stop {
  /** The browser's message. */
  words: string;
  /** The panic message, which Rust writes to the console before the crash; empty without one. */
  panic: string;
  /** Whether WebAssembly trapped, and not the JavaScript around it. */
  trapped: boolean;
  /** Bytes of WebAssembly memory. */
  bytes: number;
  /** Whether the memory cannot grow. */
  full: boolean;
}

/** An error with a remedy. */
export class Fault extends Error {
  readonly hint: string | null;

  constructor(message: string, hint: string | null = null) {
    super(message);
    this.hint = hint;
  }
}

/** A trap without a message beyond this memory in bytes means that memory ran out. */
const LARGE_MEMORY = 2 ** 30;

const OUTGROWN: Failure = {
  id: null,
  message: "Memory ran out: a browser tab has 4 GiB for a file.",
  hint: "The command line has no such limit: vramscope summary FILE [--window A..B].",
};

const EXHAUSTED: Failure = {
  id: null,
  message: "Memory ran out: the browser refused to allocate more.",
  hint: "Close other tabs or programs, then load the file again. Or use vramscope summary FILE.",
};

const FORBIDDEN: Failure = {
  id: null,
  message: "The page's Content-Security-Policy does not let WebAssembly run.",
  hint: "Its script-src needs 'wasm-unsafe-eval'.",
};

const FILE_HINT = "This is a bug in vramscope, not in the file. Other files are not affected.";
const RUN_HINT =
  "This is a bug in vramscope, not in the files. The next query restarts the worker.";

const NO_MEMORY = /out of memory|allocation failed|could not allocate|cannot allocate/i;
/** Rust's message for a vector of more than half of the address space. */
const TOO_LONG = /capacity overflow/;
const NO_EVAL = /content.security.policy|unsafe-eval|\bCSP\b/i;

/** The message of any thrown value. */
export const wordsOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

/** Why a worker crashed. `run` is true for the coordinator. */
export function stopped({ words, panic, trapped, bytes, full }: Stop, run = false): Failure {
  // A panic has a message. A failed allocation in Rust traps without one.
  if (trapped && panic === "" && bytes > LARGE_MEMORY) return OUTGROWN;
  if (TOO_LONG.test(panic)) return OUTGROWN;
  if ((trapped && panic === "" && full) || NO_MEMORY.test(words)) return EXHAUSTED;
  if (NO_EVAL.test(words)) return FORBIDDEN;
  const message = (panic || words).replace(/\s+/g, " ");
  if (!trapped) return { id: null, message, hint: null };
  const at = run ? "over the run" : "on this file";
  return {
    id: null,
    message: `vramscope stopped ${at}: ${message}`,
    hint: run ? RUN_HINT : FILE_HINT,
  };
}

/** Why a WebAssembly file that was served with this content type cannot be used. */
export function refused(path: string, type: string, error: unknown): Fault {
  const words = wordsOf(error);
  if (!("WebAssembly" in globalThis))
    return new Fault(
      "WebAssembly is switched off in this browser.",
      "A security setting such as Lockdown Mode may be the reason.",
    );
  if (NO_EVAL.test(words)) return new Fault(FORBIDDEN.message, FORBIDDEN.hint);
  if (type.startsWith("text/"))
    return new Fault(
      `${path} is not WebAssembly: the server answers with ${type}.`,
      "The file may be missing on the server.",
    );
  if (NO_MEMORY.test(words)) return new Fault(EXHAUSTED.message, EXHAUSTED.hint);
  return new Fault(
    `${path} cannot be used by this browser: ${words}`,
    "WebAssembly with SIMD is required: Chrome 91, Edge 91, Firefox 89, Safari 16.4 or later.",
  );
}

/** Remedies when a file of the viewer itself cannot be loaded. */
export const RELOAD = "Reload the page: its files may have been replaced by newer ones.";
export const NO_SCRIPT = `${RELOAD} Or its Content-Security-Policy lacks worker-src 'self' blob:.`;

/** A worker that ended, or hangs, and did not say so. */
export const SILENT: Failure = {
  id: null,
  message: "A worker has not answered for a minute: the browser may have stopped it.",
  hint: "Load the file again. Other files are not affected.",
};

/** The hint when a crash has no other consequences. */
export const UNHARMED = "Nothing else is affected.";
