// Drives a Rust view of one canvas: gives it tiles, draws a frame when there is something new, and
// tells the page what it has to show as text over the canvas. What the plot is of, its subclasses
// know.

import { type Signal, signal } from "@preact/signals";
import type { Labels, TimelineView, Hit as ViewHit } from "../../wasm/vramscope_view.js";
import type { LayerKind, Range, RankClient, TileReply } from "../client/rank-client.js";
import type { AxisKind, DeviceRef, Layer, Query, TileKey } from "../generated/protocol.js";
import { type Draft, Gestures, type Marked } from "./gestures.js";
import { discard, type Surface } from "./surface.js";

/** Where tiles come from. */
export interface TileSource {
  /** Null while the file's worker is being brought back. */
  client: RankClient | null;
  target: DeviceRef;
  axis: AxisKind;
  layer: Layer;
}

/**
 * The pointer over something. `hit` is of an earlier point until the worker has answered for this
 * one.
 */
export interface Hover<H> {
  x: number;
  y: number;
  block: number;
  hit: H | null;
  stale: boolean;
}

export interface PlotEvents {
  /** A click, at a point of the canvas. */
  click(x: number, y: number, event: PointerEvent): void;
  doubleClick(x: number, y: number): void;
  /** A drag that marks something has ended. */
  marked(marked: Marked): void;
  /** A frame could not be drawn. */
  failed(error: unknown): void;
}

/** How the hand is read. */
export interface HandOptions {
  wheelScrolls(): boolean;
  dragZooms(): boolean;
  ruling(): "x" | "y" | null;
}

/** In bytes, or in units of rows. */
export interface Heights {
  y0: number;
  y1: number;
}

const NO_BOXES = new Float64Array();

const sameKey = (a: TileKey, b: TileKey) =>
  a.kx === b.kx && a.ky === b.ky && a.ix === b.ix && a.iy === b.iy;

export abstract class CanvasPlot<H> {
  readonly labels: Signal<Labels | null> = signal(null);
  readonly hover: Signal<Hover<H> | null> = signal(null);
  /** The visible range along x; null while nothing is shown. */
  readonly range: Signal<Range | null> = signal(null);
  /** The visible heights, from the lower to the upper edge; null while nothing is shown. */
  readonly heights: Signal<Heights | null> = signal(null);
  /** What is being dragged out, in CSS pixels of the canvas. */
  readonly draft: Signal<Draft | null> = signal(null);
  /** Index, left, top, width and height of every box that is in view: see `setBoxes`. */
  readonly boxes: Signal<Float64Array> = signal(NO_BOXES);
  /** The browser has taken the GL context, and has not given it back. */
  readonly lost: Signal<boolean> = signal(false);
  readonly canvas: HTMLCanvasElement;
  protected readonly view: TimelineView;
  readonly #surface: Surface;
  protected source: TileSource | null = null;
  readonly #kind: LayerKind;
  readonly #events: PlotEvents;
  readonly #gestures: Gestures;
  /**
   * What was asked for last and has not come: a new list replaces it, a new worker is asked for it
   * again.
   */
  #outstanding: TileKey[] = [];
  #frame = 0;
  #pointer: { x: number; y: number } | null = null;
  #picks = 0;

  constructor(kind: LayerKind, surface: Surface, events: PlotEvents, hand: HandOptions) {
    this.#kind = kind;
    const { canvas, view } = surface;
    this.#surface = surface;
    this.canvas = canvas;
    this.view = view;
    this.#events = events;
    this.#gestures = new Gestures(canvas, this, events, hand);
  }

  /** What is known of a strip under the pointer. */
  protected abstract confirm(hit: ViewHit): Promise<H | null>;

  resize(width: number, height: number): void {
    this.view.resize(width, height, globalThis.devicePixelRatio);
    this.draw();
  }

  setTheme(dark: boolean): void {
    this.view.setTheme(dark);
    this.draw();
  }

  /** Asks for a frame. */
  draw(): void {
    if (this.#frame === 0) this.#frame = requestAnimationFrame((now) => this.#tick(now));
  }

  /** Lets the view change, then draws. */
  act(change: (view: TimelineView) => void): void {
    if (this.source === null) return;
    change(this.view);
    this.draw();
  }

  /**
   * The axis that the picture is along right now: while a range is mapped to another one, it is
   * still the old.
   */
  get axis(): AxisKind | null {
    return this.source?.axis ?? null;
  }

  /**
   * What is in view right now: `range` tells of it with the next frame. Null while nothing is
   * shown.
   */
  get current(): Range | null {
    return this.source && this.view.getView();
  }

  /** Moves the visible range; what is above and below stays. */
  setRange(range: Range): void {
    this.act((view) => view.setRange(range.x0, range.x1));
  }

  /**
   * HTML that goes along with the picture: four numbers a box (x0, x1, y0, y1), whose places come
   * in `boxes`.
   */
  setBoxes(boxes: Float64Array): void {
    this.view.setBoxes(boxes);
    // At once, so that nothing is seen at the place of what was there before.
    this.boxes.value = this.view.boxes();
    this.draw();
  }

  /** The pointer is here. */
  point(x: number, y: number): void {
    this.#pointer = { x, y };
    this.#hoverAt(x, y);
    this.draw();
  }

  /** The pointer has gone, or is busy dragging. */
  clearHover(): void {
    this.#pointer = null;
    this.view.pointerLeft();
    this.#noHover();
    this.draw();
  }

  /** True when there was a drag to let go of. */
  cancelDrag(): boolean {
    const { dragging } = this.#gestures;
    this.#gestures.cancel();
    return dragging;
  }

  /** Where keys act: at the pointer, else in the middle of the plot. */
  focusPoint(): { x: number; y: number } {
    if (this.#pointer) return this.#pointer;
    const { left, top, width, height } = this.view.labels().plot;
    return { x: left + width / 2, y: top + height / 2 };
  }

  /** What is drawn at a point of the canvas, confirmed by the worker. */
  async pick(x: number, y: number): Promise<H | null> {
    const hit = this.source && this.view.hit(x, y);
    return hit ? this.confirm(hit) : null;
  }

  /** The strip at a point, as it is drawn. */
  hitAt(x: number, y: number): ViewHit | null {
    return this.source && this.view.hit(x, y);
  }

  /** Blocks that have room for words: index, x0, x1, y0 and y1 of each, the largest first. */
  roomy(width: number, height: number, most: number): Float64Array {
    return this.view.roomy(width, height, most);
  }

  /** True while a hand or a jump moves the picture. */
  get moving(): boolean {
    return this.#gestures.dragging || this.#frame !== 0;
  }

  /** The place under a point, in data units. */
  placeAt(x: number, y: number): { x: number; y: number } {
    return this.view.place(x, y);
  }

  /** What a ruler between two points says. */
  measure(along: "x" | "y", from: { x: number; y: number }, to: { x: number; y: number }): string {
    return this.measured(along, this.view.place(from.x, from.y), this.view.place(to.x, to.y));
  }

  /** The same between two places in data units. */
  measured(along: "x" | "y", from: { x: number; y: number }, to: { x: number; y: number }): string {
    return along === "x" ? this.view.measureX(to.x - from.x) : this.view.measureY(to.y - from.y);
  }

  /** What is in view, for who draws it elsewhere; null while nothing is shown. */
  picture(): Omit<Extract<Query, { picture: unknown }>["picture"], "dark"> | null {
    if (this.source === null) return null;
    const { layer, axis } = this.source;
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

  /** From here on tiles are of this. */
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

  /** What was asked for and has not come is asked for again: the worker is a new one. */
  protected askAgain(): void {
    this.#ask(this.#outstanding);
  }

  /** Asks for what is missing at once: the worker can begin before the next frame. */
  protected askNow(): void {
    const wanted = this.view.wanted();
    if (wanted.length > 0) this.#ask(wanted);
  }

  /** All that was asked for has come. */
  protected tilesCame(): void {
    // Nobody waits for it here.
  }

  protected forgetTiles(): void {
    this.#outstanding = [];
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
    if (this.view.frame(now)) this.draw();
    if (this.source === null) {
      this.labels.value = null;
      return;
    }
    this.askNow();
    this.labels.value = this.view.labels();
    this.boxes.value = this.view.boxes();
    const { x0, x1, y0, y1 } = this.view.getView();
    const heights = this.heights.peek();
    if (heights?.y0 !== y0 || heights.y1 !== y1) this.heights.value = { y0, y1 };
    const range = this.range.peek();
    if (range?.x0 === x0 && range.x1 === x1) return;
    this.range.value = { x0, x1 };
    // What is under a resting pointer has moved.
    if (this.#pointer) this.#hoverAt(this.#pointer.x, this.#pointer.y);
  }

  #ask(tiles: TileKey[]): void {
    this.#outstanding = tiles;
    const { client, target, axis, layer } = this.source ?? {};
    if (client && target && axis && layer && tiles.length > 0)
      client.tiles(this.#kind, target, axis, layer, tiles);
  }

  #tile(tile: TileReply): void {
    const { source } = this;
    const { positions, colors, blocks } = tile.columns;
    if (source === null || !positions || !colors || !blocks) return;
    const { part, device } = source.target;
    if (tile.axis !== source.axis || tile.target.part !== part || tile.target.device !== device)
      return;
    this.#outstanding = this.#outstanding.filter((key) => !sameKey(key, tile.key));
    this.view.putTile(tile.key, positions, colors, blocks);
    if (this.#outstanding.length === 0) this.tilesCame();
    this.draw();
  }

  #hoverAt(x: number, y: number): void {
    const hit = this.source && this.view.hit(x, y);
    const before = this.hover.peek();
    if (!hit) {
      this.#noHover();
      return;
    }
    this.view.setHover(hit.block);
    this.hover.value = {
      x,
      y,
      block: hit.block,
      hit: before?.hit ?? null,
      stale: before?.block !== hit.block,
    };
    void this.#confirmHover(hit);
  }

  #noHover(): void {
    this.#picks += 1;
    this.view.setHover(undefined);
    this.hover.value = null;
  }

  async #confirmHover(at: ViewHit): Promise<void> {
    this.#picks += 1;
    const asked = this.#picks;
    const hit = await this.confirm(at);
    const hover = this.hover.peek();
    if (asked !== this.#picks || hover === null) return;
    if (hit === null) this.#noHover();
    else this.hover.value = { ...hover, hit, stale: false };
  }
}
