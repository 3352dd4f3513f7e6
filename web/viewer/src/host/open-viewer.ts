// A viewer by one call, for scripts that would rather not write the element and its attributes.

import type { LoadInput } from "../client/files.js";
import type { VramscopeViewer } from "../element.js";
import type { View } from "../linked.js";
import { register, TAG } from "../tag.js";
import type { Theme, ViewState } from "../view-state.js";

/**
 * What a viewer begins with; all of it may be missing. The names are those of the attributes and
 * methods.
 */
export interface ViewerOptions {
  /**
   * What to open. The viewer is there before it is read: wait for `viewer.load()` instead to know
   * when it is.
   */
  files?: Iterable<LoadInput>;
  /** What stands in the header for these files. */
  title?: string;
  theme?: Theme;
  view?: View;
  state?: ViewState;
  readonly?: boolean;
  mode?: "embedded";
  /** The folder of the wasm files, where the bundler has not put them somewhere itself. */
  wasmUrl?: string | URL;
  /** The worker's script, likewise. */
  workerUrl?: string | URL;
}

/**
 * Puts a viewer into `container`, which it fills. Rejects, and takes it away again, when its
 * WebAssembly cannot be had.
 */
export async function openViewer(
  container: Element,
  options: ViewerOptions = {},
): Promise<VramscopeViewer> {
  register();
  const viewer = document.createElement(TAG);
  const { files, title, state, readonly, theme, view, mode, wasmUrl, workerUrl } = options;
  const attributes = { theme, view, mode, "wasm-url": wasmUrl, "worker-url": workerUrl };
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined) viewer.setAttribute(name, String(value));
  }
  viewer.toggleAttribute("readonly", readonly === true);
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
