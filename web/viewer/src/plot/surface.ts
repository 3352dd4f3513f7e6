// Canvases with their GL context and programs. The first of a page takes a browser long (a driver
// is loaded, shaders are compiled), and the page waits for it; so the page of its own makes some
// while nobody has chosen a file.

import { TimelineView } from "../../wasm/vramscope_view.js";

/** A canvas, and the Rust view that draws on it. */
export interface Surface {
  readonly canvas: HTMLCanvasElement;
  readonly view: TimelineView;
}

/** The view's wasm must be there. */
function make(): Surface {
  const canvas = document.createElement("canvas");
  return { canvas, view: new TimelineView(canvas) };
}

/** Draws a strip that nobody sees: drivers finish a program when it is used. */
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

/**
 * Takes a surface away, with its context: that is else kept until the garbage is collected, and a
 * page may have few.
 */
export function discard({ canvas, view }: Surface): void {
  view.destroy();
  view.free();
  canvas.getContext("webgl2")?.getExtension("WEBGL_lose_context")?.loseContext();
}

/** Those that wait for their use. */
export class Surfaces {
  readonly #spare: Surface[] = [];

  /** Makes one. What goes wrong is told to who takes one. */
  prepare(): void {
    try {
      const surface = make();
      this.#spare.push(surface);
      draw(surface);
    } catch {
      // Without WebGL there is no spare, and `take` says why.
    }
  }

  /**
   * One that draws.
   * @throws in words, when the browser has no WebGL 2.
   */
  take(): Surface {
    const surface = this.#spare.shift();
    if (surface === undefined) return make();
    // The browser takes contexts away when there are too many.
    if (!surface.canvas.getContext("webgl2")?.isContextLost()) return surface;
    discard(surface);
    return this.take();
  }

  destroy(): void {
    for (const surface of this.#spare.splice(0)) discard(surface);
  }
}
