// Counts what the page's module does in a frame: instructions, draw calls, instances, and bytes for
// the GPU. The module draws into a context that draws nothing. Each frame makes the calls of the
// page's plot (web/viewer/src/plot/canvas-plot.ts).

import { readFileSync } from "node:fs";
import { join } from "node:path";

const NAME = "vramscope_view";
/**
 * The timeline's canvas in a window of 1440 by 900 with the details open, and the gutter of labels
 * on its left, in CSS pixels.
 */
const [WIDTH, HEIGHT, GUTTER] = [1136, 700, 64];
const FRAMES = 60;
/** The pointer's way per frame, in CSS pixels, and the delta of a wheel event. */
const [STEP, WHEEL] = [40, -30];
/** Limit of the frames until a view has all its tiles. */
const MAX_FRAMES = 1000;

class Context {}
class Canvas {}

/**
 * A context that draws nothing. Each call is reported to `sent`: whether it draws, and the bytes of
 * its data.
 */
function context(sent) {
  const answers = {
    getParameter: "WebGL 2.0",
    getSupportedExtensions: [],
    getExtension: null,
    getError: 0,
  };
  const calls = {};
  const call = (name) => {
    if (name in answers) return () => answers[name];
    if (/^(get|is)/.test(name)) return () => true;
    if (name.startsWith("create")) return () => ({});
    const draws = name.startsWith("draw");
    const bytes = (given) =>
      given.filter(ArrayBuffer.isView).reduce((sum, { byteLength }) => sum + byteLength, 0);
    return (...given) => sent(draws, bytes(given));
  };
  const get = (_, name) => {
    calls[name] ??= call(name);
    return calls[name];
  };
  return new Proxy(new Context(), { get });
}

/**
 * Adds the maxima of frames to `counts`: when the picture comes, at rest, of zooming and of
 * panning. `tilesOf` computes tiles by their keys.
 */
export async function frames(folder, counts, { axis, peak, tilesOf }) {
  Object.assign(globalThis, { WebGL2RenderingContext: Context, HTMLCanvasElement: Canvas });
  const { initSync, TimelineView } = await import(`../web/viewer/wasm/${NAME}.js`);
  const { instructions } = initSync({ module: readFileSync(join(folder, `${NAME}_bg.wasm`)) });
  const sent = { draws: 0, bytes: 0 };
  const gl = context((draws, bytes) => {
    sent.draws += Number(draws);
    sent.bytes += bytes;
  });
  const view = new TimelineView(
    Object.assign(new Canvas(), { width: 0, height: 0, getContext: () => gl }),
  );
  let now = 0;
  let tiles = [];

  /**
   * One frame, after an input and with the tiles that have come. True while the view changes or
   * misses tiles.
   */
  const frame = (situation, input) => {
    Object.assign(sent, { draws: 0, bytes: 0 });
    now += 1000 / FRAMES;
    const before = instructions.value;
    input();
    for (const { key, columns } of tiles) {
      view.putTile(key, columns.positions, columns.colors, columns.blocks);
    }
    const isMoving = view.frame(now);
    const wanted = view.wanted();
    view.labels();
    view.boxes();
    view.getView();
    const took = Number(instructions.value - before);
    const instances = sent.draws > 0 ? view.stats().instances : 0;
    const all = {
      instructions: took,
      "draw calls": sent.draws,
      instances,
      "bytes for the GPU": sent.bytes,
    };
    for (const [what, amount] of Object.entries(all)) {
      const row = `a frame ${situation}: ${what}`;
      counts[row] = Math.max(counts[row] ?? 0, amount);
    }
    tiles = [...tilesOf(wanted)];
    return isMoving || tiles.length > 0;
  };
  const settle = (situation) => {
    for (let left = MAX_FRAMES; frame(situation, () => {}); left -= 1) {
      if (left === 0) throw new Error(`the view still misses tiles after ${MAX_FRAMES} frames`);
    }
  };
  const many = (situation, input) => {
    for (let i = 1; i <= FRAMES; i += 1) frame(situation, () => input(i));
    settle(situation);
  };

  const [x, y] = [GUTTER + (WIDTH - GUTTER) / 2, HEIGHT / 2];
  view.resize(WIDTH, HEIGHT, 1);
  view.open(axis, peak, "bytes", GUTTER);
  settle("when the picture comes");
  many("at rest", () => {});
  many("of zooming", () => view.wheel(x, y, 0, WHEEL, 0, false, false));
  view.beginDrag(x, y);
  many("of panning", (i) => view.drag(x + STEP * i, y));
  view.endDrag();
  view.free();
}
