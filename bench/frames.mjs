// What the page's module does in a frame, counted: instructions, draw calls, instances, and bytes
// for the GPU. It draws into a context that takes everything, and is asked and told in each frame
// what the page's plot asks and tells it (web/viewer/src/plot/canvas-plot.ts).

import { readFileSync } from "node:fs";
import { join } from "node:path";

const NAME = "vramscope_view";
/**
 * A timeline's canvas in a window of 1440 by 900 with the details beside it, and the room for
 * labels on its left: CSS pixels.
 */
const [WIDTH, HEIGHT, GUTTER] = [1136, 700, 64];
const FRAMES = 60;
/** The hand's way from one frame to the next, in CSS pixels, and a turn of the wheel. */
const [STEP, TURN] = [40, -30];
/** A view that still wants tiles after so many frames will never have enough. */
const PATIENCE = 1000;

class Context {}
class Canvas {}

/**
 * A context that draws nothing. `sent` is told of each call that draws or brings data: whether it
 * draws, and how many bytes it has.
 */
function context(sent) {
  const answers = { getParameter: "WebGL 2.0", getSupportedExtensions: [], getExtension: null, getError: 0 };
  const calls = {};
  const call = (name) => {
    if (name in answers) return () => answers[name];
    if (/^(get|is)/.test(name)) return () => true;
    if (name.startsWith("create")) return () => ({});
    const draws = name.startsWith("draw");
    const bytes = (given) => given.filter(ArrayBuffer.isView).reduce((sum, { byteLength }) => sum + byteLength, 0);
    return (...given) => sent(draws, bytes(given));
  };
  const get = (_, name) => {
    calls[name] ??= call(name);
    return calls[name];
  };
  return new Proxy(new Context(), { get });
}

/**
 * Counts into `counts` what frames take at most, when the picture comes, rests, is zoomed and is
 * panned. `tilesOf` makes the tiles with these keys: key and columns of each.
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
  const view = new TimelineView(Object.assign(new Canvas(), { width: 0, height: 0, getContext: () => gl }));
  let now = 0;
  let tiles = [];

  /**
   * One frame, after what the hand did and with the tiles that have come; true when there is more
   * to do.
   */
  const frame = (situation, hand) => {
    Object.assign(sent, { draws: 0, bytes: 0 });
    now += 1000 / FRAMES;
    const before = instructions.value;
    hand();
    for (const { key, columns } of tiles) view.putTile(key, columns.positions, columns.colors, columns.blocks);
    const goesOn = view.frame(now);
    const wanted = view.wanted();
    view.labels();
    view.boxes();
    view.getView();
    const took = Number(instructions.value - before);
    const instances = sent.draws > 0 ? view.stats().instances : 0;
    const all = { instructions: took, "draw calls": sent.draws, instances, "bytes for the GPU": sent.bytes };
    for (const [what, amount] of Object.entries(all)) {
      const row = `a frame ${situation}: ${what}`;
      counts[row] = Math.max(counts[row] ?? 0, amount);
    }
    tiles = [...tilesOf(wanted)];
    return goesOn || tiles.length > 0;
  };
  const settle = (situation) => {
    for (let left = PATIENCE; frame(situation, () => {}); left -= 1) {
      if (left === 0) throw new Error(`after ${PATIENCE} frames the view still wants something`);
    }
  };
  const many = (situation, hand) => {
    for (let i = 1; i <= FRAMES; i += 1) frame(situation, () => hand(i));
    settle(situation);
  };

  const [x, y] = [GUTTER + (WIDTH - GUTTER) / 2, HEIGHT / 2];
  view.resize(WIDTH, HEIGHT, 1);
  view.open(axis, peak, "bytes", GUTTER);
  settle("when the picture comes");
  many("at rest", () => {});
  many("of zooming", () => view.wheel(x, y, 0, TURN, 0, false, false));
  view.beginDrag(x, y);
  many("of panning", (i) => view.drag(x + STEP * i, y));
  view.endDrag();
  view.free();
}
