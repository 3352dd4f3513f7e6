// Canvases with their GL context and shader programs. The first one of a page takes long, because
// the browser loads a driver and compiles shaders. So a full page makes spare ones before a file is
// opened.

import { TimelineView } from "../../wasm/vramscope_view.js";

/** A canvas, and the Rust view that draws on it. */
export interface Surface {
  readonly canvas: HTMLCanvasElement;
  readonly view: TimelineView;
}

/** The view's wasm must be initialized. */
function make(): Surface {
  const canvas = document.createElement("canvas");
  return { canvas, view: new TimelineView(canvas) };
}

/** Draws an invisible strip: drivers finish a shader program at its first use. */
function draw({ view }: Surface): void {
  view.resize(64, 64, 1);
  view.open({ kind: "event", extent: 1, origin: 0, peak: 0 }, 1, "bytes", 0);
  view.frame(0);
  for (const key of view.wanted()) {
    view.putTile(key, new Float32Array([0, 1, 0, 1]), new Uint32Array(1), new Uint32Array(1));
  }
  view.frame(0);
  view.close();
  view.frame(0);
}

/** Frees a surface and its context now. Browsers limit the number of contexts per page. */
export function discard({ canvas, view }: Surface): void {
  view.destroy();
  view.free();
  canvas.getContext("webgl2")?.getExtension("WEBGL_lose_context")?.loseContext();
}

/** Spare surfaces. */
export class Surfaces {
  readonly #spare: Surface[] = [];

  /** Makes a spare surface. Errors are left to `take`. */
  prepare(): void {
    try {
      const surface = make();
      this.#spare.push(surface);
      draw(surface);
    } catch {
      // Without WebGL there is no spare, and `take` throws the reason.
    }
  }

  /**
   * A surface that can draw.
   * @throws when the browser has no WebGL 2.
   */
  take(): Surface {
    const surface = this.#spare.shift();
    if (surface === undefined) return make();
    // Browsers take contexts away when a page has too many.
    if (!surface.canvas.getContext("webgl2")?.isContextLost()) return surface;
    discard(surface);
    return this.take();
  }

  destroy(): void {
    for (const surface of this.#spare.splice(0)) discard(surface);
  }
}
