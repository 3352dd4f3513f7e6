// The entry of `inline.js`: the viewer in one script, for pages that have no server and for
// notebooks. It is a classic script that declares `vramscope`, so that it can stand in a page as it
// is, and at the head of a module. It fetches nothing and imports nothing.

import type { Bytes } from "./client/wasm.js";
import script from "./client/worker.txt";
import type { VramscopeViewer } from "./element.js";
import { openViewer as open, type ViewerOptions } from "./host/open-viewer.js";

export { bindAddress } from "./host/url-state.js";

/** The options of `openViewer()`, with the bytes of the wasm files. */
export interface InlineOptions extends Omit<ViewerOptions, "wasmUrl" | "workerUrl" | "parts"> {
  /** `vramscope_view_bg.wasm` and `vramscope_worker_bg.wasm`, plain or gzipped. */
  wasm: { view: Bytes; worker: Bytes };
}

/** `openViewer()` of the package, without a request. */
export function openViewer(
  container: Element,
  { wasm, ...options }: InlineOptions,
): Promise<VramscopeViewer> {
  return open(container, { ...options, parts: { worker: script, wasm } });
}

/** The bytes that a base64 text stands for. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}
