// Drives the Rust view of one canvas: gives it tiles, draws a frame when something changed, and
// tells the page which text to show over the canvas. Subclasses know what the plot shows.
// Long because requesting, holding and drawing tiles share their state with frame and pointer.

import { type Signal, signal } from "@preact/signals";
import type { Labels, TimelineView, Hit as ViewHit } from "../../wasm/vramscope_view.js";
import type { LayerKind, Range, RankClient, TileReply } from "../client/rank-client.js";
import type { AxisKind, DeviceRef, Layer, Query, TileKey } from "../generated/protocol.js";
import { type Draft, Gestures, type Marked } from "./gestures.js";
import { type Hover, PointerHover } from "./pointer-hover.js";
import { discard, type Surface } from "./surface.js";

/** Where tiles come from. */
export interface TileSource {
  /** Null while the file is loaded again, and where the tiles are not of one file. */
  client: RankClient | null;
  target: DeviceRef;
  axis: AxisKind;
  /** Null where the tiles are not of one file. */
  layer: Layer | null;
}

export interface PlotEvents {
  /** A click at a point of the canvas. */
  click(x: number, y: number, event: PointerEvent): void;
  doubleClick(x: number, y: number): void;
  /** A drag has marked a range or a ruler. */
  marked(marked: Marked): void;
  /** A frame could not be drawn. */
  failed(error: unknown): void;
}

/** How wheel and drags are interpreted. */
export interface GestureOptions {
  wheelScrolls(): boolean;
  dragZooms(): boolean;
  ruling(): "x" | "y" | null;
}

/** The visible range along y, in bytes or in units of rows. */
export interface Heights {
  y0: number;
  y1: number;
}

const NO_BOXES = new Float64Array();

const isSameKey = (a: TileKey, b: TileKey) =>
  a.kx === b.kx && a.ky === b.ky && a.ix === b.ix && a.iy === b.iy;

export abstract class CanvasPlot<H> {
  readonly labels: Signal<Labels | null> = signal(null);
  readonly hover: Signal<Hover<H> | null>;
  /** The visible range along x; null without a source. */
  readonly range: Signal<Range | null> = signal(null);
  /** The visible range along y; null without a source. */
  readonly heights: Signal<Heights | null> = signal(null);
  /** The box, range or ruler that is being dragged, in CSS pixels of the canvas. */
  readonly draft: Signal<Draft | null> = signal(null);
  /** Index, left, top, width and height of every visible box: see `setBoxes`. */
  readonly boxes: Signal<Float64Array> = signal(NO_BOXES);
  /** Whether the browser has taken the GL context away. */
  readonly lost: Signal<boolean> = signal(false);
  readonly canvas: HTMLCanvasElement;
  protected readonly view: TimelineView;
  protected source: TileSource | null = null;
  readonly #surface: Surface;
  readonly #kind: LayerKind;
  readonly #events: PlotEvents;
  readonly #gestures: Gestures;
  readonly #pointer: PointerHover<H>;
  /** Requested tiles that have not come. A new worker is asked for them again. */
  #outstanding: TileKey[] = [];
  /** Tiles that wait for the outstanding ones, so that all are shown in one frame; else null. */
  #held: (() => void)[] | null = null;
  /** Whether other strips may be under a resting pointer than at the last frame. */
  #changed = false;
  /** Whether the last frame asked for another: strips move on with the next one. */
  #moves = false;
  #frame = 0;

  constructor(kind: LayerKind, surface: Surface, events: PlotEvents, options: GestureOptions) {
    this.#kind = kind;
    const { canvas, view } = surface;
    this.#surface = surface;
    this.canvas = canvas;
    this.view = view;
    this.#events = events;
    this.#pointer = new PointerHover(
      view,
      (hit) => this.confirm(hit, true),
      () => this.draw(),
    );
    this.hover = this.#pointer.hover;
    this.#gestures = new Gestures(canvas, this, events, options);
  }

  /** Asks the worker what a drawn strip is. While the pointer hovers, the next hover cancels it. */
  protected abstract confirm(hit: ViewHit, hover: boolean): Promise<H | null>;

  resize(width: number, height: number): void {
    this.view.resize(width, height, globalThis.devicePixelRatio);
    // The plot may have moved away from under the pointer.
    this.clearHover();
  }

  setTheme(dark: boolean): void {
    this.view.setTheme(dark);
    this.draw();
  }

  /** Requests a frame. */
  draw(): void {
    if (this.#frame === 0) this.#frame = requestAnimationFrame((now) => this.#tick(now));
  }

  /** Changes the view, then draws. */
  act(change: (view: TimelineView) => void): void {
    if (this.source === null) return;
    change(this.view);
    this.draw();
  }

  /** The axis that is drawn. While a range is mapped to another axis, it is still the old one. */
  get axis(): AxisKind | null {
    return this.source?.axis ?? null;
  }

  /** The visible range now; the signal `range` follows with the next frame. */
  get current(): Range | null {
    return this.source && this.view.getView();
  }

  /** The visible area now; null without a source. */
  get visible(): (Range & Heights) | null {
    return this.source && this.view.getView();
  }

  /** Moves the visible range along x. */
  setRange(range: Range): void {
    this.act((view) => view.setRange(range.x0, range.x1));
  }

  /** Sets boxes for HTML over the plot: x0, x1, y0, y1 each. `boxes` tells their places. */
  setBoxes(boxes: Float64Array): void {
    this.view.setBoxes(boxes);
    // Without waiting for a frame, in which new elements would be at the places of the old boxes.
    this.boxes.value = this.view.boxes();
    this.draw();
  }

  /** The pointer moved to a point of the canvas. */
  point(x: number, y: number): void {
    this.#pointer.move(x, y);
    this.draw();
  }

  /** The pointer left, or drags. */
  clearHover(): void {
    this.#pointer.clear();
    this.draw();
  }

  /** Cancels a drag. False when there was none. */
  cancelDrag(): boolean {
    const { dragging } = this.#gestures;
    this.#gestures.cancel();
    return dragging;
  }

  /** Where keys act: at the pointer, else in the middle of the plot. */
  focusPoint(): { x: number; y: number } {
    if (this.#pointer.pointer) return this.#pointer.pointer;
    const { left, top, width, height } = this.view.labels().plot;
    return { x: left + width / 2, y: top + height / 2 };
  }

  /** The block at a point of the canvas, confirmed by the worker. */
  async pick(x: number, y: number): Promise<H | null> {
    const hit = this.hitAt(x, y);
    return hit ? this.confirm(hit, false) : null;
  }

  /** The strip at a point, as drawn. */
  hitAt(x: number, y: number): ViewHit | null {
    return (this.source && this.view.hit(x, y)) ?? null;
  }

  /** Blocks with room for a label: index, x0, x1, y0 and y1 of each, the largest first. */
  roomy(width: number, height: number, most: number): Float64Array {
    return this.view.roomy(width, height, most);
  }

  /** True while the view moves. */
  get moving(): boolean {
    return this.#gestures.dragging || this.#frame !== 0;
  }

  /** The data coordinates of a point of the canvas. */
  placeAt(x: number, y: number): { x: number; y: number } {
    return this.view.place(x, y);
  }

  /** The text of a ruler between two points of the canvas. */
  measure(along: "x" | "y", from: { x: number; y: number }, to: { x: number; y: number }): string {
    return this.measured(along, this.view.place(from.x, from.y), this.view.place(to.x, to.y));
  }

  /** The text of a ruler between two data coordinates. */
  measured(along: "x" | "y", from: { x: number; y: number }, to: { x: number; y: number }): string {
    return along === "x" ? this.view.measureX(from.x, to.x) : this.view.measureY(to.y - from.y);
  }

  /** The view as a picture query, without its theme; null without a source. */
  picture(): Omit<Extract<Query, { picture: unknown }>["picture"], "dark" | "simulated"> | null {
    const { layer, axis } = this.source ?? {};
    if (!layer || !axis) return null;
    const { width, height } = this.view.labels().plot;
    return {
      layer,
      axis,
      ...this.view.getView(),
      width: Math.round(width),
      height: Math.round(height),
    };
  }

  stats(): ReturnType<TimelineView["stats"]> {
    return this.view.stats();
  }

  contextLost(): void {
    this.lost.value = true;
    this.view.contextLost();
  }

  contextRestored(): void {
    try {
      this.view.contextRestored();
      this.lost.value = false;
      this.draw();
    } catch (error) {
      this.#events.failed(error);
    }
  }

  destroy(): void {
    this.#gestures.destroy();
    cancelAnimationFrame(this.#frame);
    this.source?.client?.draw(this.#kind, null);
    this.source = null;
    discard(this.#surface);
  }

  /** Sets the source of all further tiles; null closes the view. */
  protected setSource(source: TileSource | null): void {
    const before = this.source?.client;
    if (before && before !== source?.client) before.draw(this.#kind, null);
    this.source = source;
    source?.client?.draw(this.#kind, (tile) => this.#tile(tile));
    if (source !== null) return;
    this.#outstanding = [];
    this.view.close();
    this.clearHover();
    this.range.value = null;
    this.heights.value = null;
  }

  /** Requests outstanding tiles again, from a new worker. */
  protected askAgain(): void {
    this.#ask(this.#outstanding);
  }

  /** Requests missing tiles before the next frame does. */
  protected askNow(): void {
    const wanted = this.view.wanted();
    if (wanted.length > 0) this.#ask(wanted);
  }

  /** Shows the tiles that come next in one frame, when all of them have come. */
  protected holdTiles(): void {
    this.#held = [];
  }

  /** Called when all requested tiles have come. */
  protected tilesCame(): void {
    // Only the timeline needs it.
  }

  protected forgetTiles(): void {
    this.#outstanding = [];
    this.#held = null;
  }

  #tick(now: number): void {
    this.#frame = 0;
    try {
      this.#drawFrame(now);
    } catch (error) {
      this.#events.failed(error);
    }
  }

  #drawFrame(now: number): void {
    const moves = this.view.frame(now);
    if (moves) this.draw();
    if (moves || this.#moves) this.#changed = true;
    this.#moves = moves;
    if (this.source === null) {
      this.labels.value = null;
      return;
    }
    this.askNow();
    this.labels.value = this.view.labels();
    this.boxes.value = this.view.boxes();
    const { x0, x1, y0, y1 } = this.view.getView();
    const [heights, range] = [this.heights.peek(), this.range.peek()];
    if (heights?.y0 !== y0 || heights?.y1 !== y1) {
      this.heights.value = { y0, y1 };
      this.#changed = true;
    }
    if (range?.x0 !== x0 || range?.x1 !== x1) {
      this.range.value = { x0, x1 };
      this.#changed = true;
    }
    this.#pointer.frame(true);
    if (this.#changed) this.#pointer.viewMoved(true);
    this.#changed = false;
  }

  #ask(tiles: TileKey[]): void {
    this.#outstanding = tiles;
    if (this.source !== null && tiles.length > 0) this.request(this.source, tiles);
  }

  #tile(tile: TileReply): void {
    const { source } = this;
    const { positions, colors, blocks } = tile.columns;
    if (source === null || !positions || !colors || !blocks) return;
    const { part, device } = source.target;
    if (tile.axis !== source.axis || tile.target.part !== part || tile.target.device !== device)
      return;
    this.put(tile.key, positions, colors, blocks);
  }

  /** Requests tiles of a source; `put` takes them. */
  protected request({ client, target, axis, layer }: TileSource, tiles: TileKey[]): void {
    if (client && layer) client.tiles(this.#kind, target, axis, layer, tiles);
  }

  protected put(
    tile: TileKey,
    positions: Float32Array,
    colors: Uint32Array,
    blocks: Uint32Array,
  ): void {
    this.#outstanding = this.#outstanding.filter((key) => !isSameKey(key, tile));
    const show = () => this.view.putTile(tile, positions, colors, blocks);
    if (this.#held === null) show();
    else this.#held.push(show);
    if (this.#outstanding.length === 0) {
      for (const held of this.#held ?? []) held();
      this.#held = null;
      this.tilesCame();
    }
    this.#changed = true;
    this.draw();
  }
}
