// Words for what stops a worker, or keeps it from starting: each says what happened, and what can
// be done.

import type { Failure } from "../generated/protocol.js";

/** What a worker, or a thread of one, says of its end. */
export interface Stop {
  /** The browser's own words. */
  words: string;
  /** Those of a panic, which goes to the console just before; empty where there was none. */
  panic: string;
  /** WebAssembly has stopped, not the code around it. */
  trapped: boolean;
  /** Bytes of its WebAssembly memory. */
  bytes: number;
  /** That memory can grow no more. */
  full: boolean;
}

/** An error with words on what to do about it. */
export class Fault extends Error {
  readonly hint: string | null;

  constructor(message: string, hint: string | null = null) {
    super(message);
    this.hint = hint;
  }
}

/** A trap without words with more memory than this: there was no more to be had. */
const MUCH = 2 ** 30;

const OUTGROWN: Failure = {
  id: null,
  message: "Memory ran out: a browser tab has 4 GiB for a file.",
  hint: "The program has no such limit: vramscope summary FILE. It reads a part of a file with --events.",
};

const EXHAUSTED: Failure = {
  id: null,
  message: "Memory ran out: the browser gives this file no more.",
  hint: "Close other tabs or programs, then load it again. The program needs no browser: vramscope summary FILE.",
};

const FORBIDDEN: Failure = {
  id: null,
  message: "The page's Content-Security-Policy does not let WebAssembly run.",
  hint: "Its script-src needs 'wasm-unsafe-eval'.",
};

const OF_FILE = "This is a fault in vramscope, not in the file. The other files are not affected.";
const OF_RUN = "This is a fault in vramscope, not in the files. The next question starts it anew.";

const NO_MEMORY = /out of memory|allocation failed|could not allocate|cannot allocate/i;
/** A vector of more than half of all addresses. */
const TOO_LONG = /capacity overflow/;
const NO_EVAL = /content.security.policy|unsafe-eval|\bCSP\b/i;

export const wordsOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

/** Why a worker has stopped; `run`: it is that of no file, but of the run. */
export function stopped({ words, panic, trapped, bytes, full }: Stop, run = false): Failure {
  // A panic has words. What Rust cannot allocate ends without any.
  if (trapped && panic === "" && bytes > MUCH) return OUTGROWN;
  if (TOO_LONG.test(panic)) return OUTGROWN;
  if ((trapped && panic === "" && full) || NO_MEMORY.test(words)) return EXHAUSTED;
  if (NO_EVAL.test(words)) return FORBIDDEN;
  const said = (panic || words).replace(/\s+/g, " ");
  if (!trapped) return { id: null, message: said, hint: null };
  const at = run ? "over the run" : "on this file";
  return { id: null, message: `vramscope stopped ${at}: ${said}`, hint: run ? OF_RUN : OF_FILE };
}

/** Why a WebAssembly file, which has come with this type, cannot be used. */
export function refused(path: string, type: string, error: unknown): Fault {
  const words = wordsOf(error);
  if (!("WebAssembly" in globalThis))
    return new Fault(
      "This browser runs no WebAssembly: it is switched off.",
      "It may be so for safety, as in Lockdown Mode.",
    );
  if (NO_EVAL.test(words)) return new Fault(FORBIDDEN.message, FORBIDDEN.hint);
  if (type.startsWith("text/"))
    return new Fault(
      `${path} is no WebAssembly: the server answers with ${type}.`,
      "The file may be missing there.",
    );
  if (NO_MEMORY.test(words)) return new Fault(EXHAUSTED.message, EXHAUSTED.hint);
  return new Fault(
    `${path} cannot be used by this browser: ${words}`,
    "It needs WebAssembly with 128-bit SIMD: Chrome or Edge 91, Firefox 89, Safari 16.4 or later.",
  );
}

/** What a page can do about a file of its own that does not come. */
export const RELOAD = "Reload the page: its files may have been replaced by newer ones.";
export const NO_SCRIPT = `${RELOAD} Or its Content-Security-Policy lacks worker-src 'self' blob:.`;

/** What has stopped took nothing with it. */
export const UNHARMED = "Nothing else is affected.";
