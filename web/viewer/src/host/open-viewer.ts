// Makes a viewer with one call, for scripts that do not write the element themselves.

import type { LoadInput } from "../client/files.js";
import type { Parts } from "../client/wasm.js";
import type { VramscopeViewer } from "../element.js";
import type { View } from "../places/index.js";
import { register, TAG } from "../tag.js";
import type { Theme, ViewState } from "../view-state.js";

/** Initial options, named after the element's attributes and methods. */
export interface ViewerOptions {
  /** Files to open. The promise does not wait for them; `viewer.load()` does. */
  files?: Iterable<LoadInput>;
  /** The run's title in the header. */
  title?: string;
  theme?: Theme;
  view?: View;
  state?: ViewState;
  readonly?: boolean;
  mode?: "embedded";
  /** The folder of the wasm files, if the bundler does not resolve them. */
  wasmUrl?: string | URL;
  /** The worker's script, if the bundler does not resolve it. */
  workerUrl?: string | URL;
  /** The parts themselves, in place of their addresses. */
  parts?: Parts;
}

/**
 * Adds a viewer to `container`, which it fills. Removes it and rejects when its WebAssembly cannot
 * be loaded.
 */
export async function openViewer(
  container: Element,
  options: ViewerOptions = {},
): Promise<VramscopeViewer> {
  register();
  const viewer = document.createElement(TAG);
  const { files, title, state, readonly, theme, view, mode, wasmUrl, workerUrl, parts } = options;
  const attributes = { theme, view, mode, "wasm-url": wasmUrl, "worker-url": workerUrl };
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined) viewer.setAttribute(name, String(value));
  }
  viewer.toggleAttribute("readonly", readonly === true);
  if (parts) viewer.parts = parts;
  container.append(viewer);
  if (state) viewer.setState(state);
  if (files) void viewer.load(files, title);
  try {
    await viewer.ready;
  } catch (error) {
    viewer.remove();
    throw error;
  }
  return viewer;
}
