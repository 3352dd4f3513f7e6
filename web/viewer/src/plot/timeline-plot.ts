// Drives the Rust view of a timeline: gives it the canvas, the trace and the tiles, draws a frame when there is
// something new, and tells the page what it has to show as text over the canvas.

import { type Signal, signal } from "@preact/signals";
import { type Labels, TimelineView } from "../../wasm/memstrata_view.js";
import type { PickPoint, Range, RankClient, TileReply } from "../client/rank-client.js";
import type { RankFile } from "../client/rank-file.js";
import type { Axis, BlockDetail, DeviceRef, DeviceSummary, Hit, TileKey } from "../generated/protocol.js";
import { Gestures } from "./gestures.js";

/** What is to be drawn. */
export interface Shown {
  file: RankFile;
  /** Null while the file's worker is being brought back. */
  client: RankClient | null;
  target: DeviceRef;
  device: DeviceSummary;
  axis: Axis;
}

/** A block to outline. */
export type Selected = Pick<BlockDetail, "block"> & Partial<Pick<BlockDetail, "spans">>;

/** The pointer over a block. `hit` is of an earlier point until the worker has answered for this one. */
export interface Hover {
  x: number;
  y: number;
  block: number;
  hit: Hit | null;
  stale: boolean;
}

export interface PlotEvents {
  /** A click, at a point of the canvas. */
  click(x: number, y: number): void;
  /** A frame could not be drawn. */
  failed(error: unknown): void;
}

const sameKey = (a: TileKey, b: TileKey) => a.kx === b.kx && a.ky === b.ky && a.ix === b.ix && a.iy === b.iy;

const sameTrace = (a: Shown, b: Shown) =>
  a.file === b.file && a.target.part === b.target.part && a.target.device === b.target.device;

export class TimelinePlot {
  readonly labels: Signal<Labels | null> = signal(null);
  readonly hover: Signal<Hover | null> = signal(null);
  /** The visible range in slots; null while nothing is shown. */
  readonly range: Signal<Range | null> = signal(null);
  readonly #view: TimelineView;
  readonly #events: PlotEvents;
  readonly #gestures: Gestures;
  #shown: Shown | null = null;
  /** What was asked for last; differs from what is shown while a range is being mapped to another axis. */
  #latest: Shown | null = null;
  /** What was asked for last and has not come: a new list replaces it, a new worker is asked for it again. */
  #outstanding: TileKey[] = [];
  #selected: Selected | null = null;
  #frame = 0;
  #pointer: { x: number; y: number } | null = null;
  #picks = 0;

  constructor(canvas: HTMLCanvasElement, events: PlotEvents) {
    this.#view = new TimelineView(canvas);
    this.#events = events;
    this.#gestures = new Gestures(canvas, this, (x, y) => events.click(x, y));
  }

  /** Draws this trace; the view is kept where it is the same trace on another axis. */
  show(shown: Shown | null): void {
    const before = this.#shown;
    if (before?.client && before.client !== shown?.client) before.client.ontile = null;
    this.#latest = shown;
    if (before && shown && sameTrace(before, shown) && before.axis.kind !== shown.axis.kind) {
      void this.#changeAxis(before, shown);
      return;
    }
    this.#shown = shown;
    if (shown?.client) shown.client.ontile = (tile) => this.#tile(tile);
    if (shown === null) {
      this.#outstanding = [];
      this.#view.close();
      this.clearHover();
      this.range.value = null;
    } else if (before === null || !sameTrace(before, shown)) {
      this.clearHover();
      this.#selected = null;
      this.#open(shown);
    } else if (before.client !== shown.client) {
      this.#ask(this.#outstanding);
    }
    this.draw();
  }

  resize(width: number, height: number): void {
    this.#view.resize(width, height, globalThis.devicePixelRatio);
    this.draw();
  }

  setTheme(dark: boolean): void {
    this.#view.setTheme(dark);
    this.draw();
  }

  /** Asks for a frame. */
  draw(): void {
    if (this.#frame === 0) this.#frame = requestAnimationFrame((now) => this.#tick(now));
  }

  /** Lets the view change, then draws. */
  act(change: (view: TimelineView, shown: Shown) => void): void {
    if (this.#shown === null) return;
    change(this.#view, this.#shown);
    this.draw();
  }

  /** Moves the visible range; what is above and below stays. */
  setRange(range: Range): void {
    // A range that is asked for wins over one that is still being mapped.
    if (this.#latest !== null && this.#latest !== this.#shown) this.#switchAxis(this.#latest);
    this.act((view) => view.setView({ ...view.getView(), x0: range.x0, x1: range.x1 }));
  }

  /** Outlines a block; with its spans the outline closes where it begins and ends. */
  setSelected(selected: Selected | null): void {
    this.#selected = selected;
    this.act((view, { axis }) => {
      const span = selected?.spans?.find(({ kind }) => kind === axis.kind);
      view.setSelected(selected?.block, span?.x0, span?.x1);
    });
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
    this.#view.pointerLeft();
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
    const { left, top, width, height } = this.#view.labels().plot;
    return { x: left + width / 2, y: top + height / 2 };
  }

  /** What is drawn at a point of the canvas, confirmed by the worker. */
  async pick(x: number, y: number): Promise<Hit | null> {
    const point = this.#pickPoint(x, y);
    return point === null ? null : ((await this.#shown?.client?.pick(point)) ?? null);
  }

  /** Everything about the block at a point. Its outline is drawn at once. */
  async blockAt(x: number, y: number): Promise<BlockDetail | null> {
    const hit = this.#shown && this.#view.hit(x, y);
    this.setSelected(hit);
    if (!hit || !this.#shown?.client) return null;
    return this.#shown.client.block(this.#shown.target, hit.block);
  }

  swatch(colour: number): string {
    return this.#view.swatch(colour);
  }

  stats(): ReturnType<TimelineView["stats"]> {
    return this.#view.stats();
  }

  contextLost(): void {
    this.#view.contextLost();
  }

  contextRestored(): void {
    try {
      this.#view.contextRestored();
      this.draw();
    } catch (error) {
      this.#events.failed(error);
    }
  }

  destroy(): void {
    this.#gestures.destroy();
    cancelAnimationFrame(this.#frame);
    if (this.#shown?.client) this.#shown.client.ontile = null;
    this.#shown = null;
    this.#view.destroy();
    this.#view.free();
  }

  #open(shown: Shown): void {
    this.#outstanding = [];
    this.#view.open(shown.axis, Number(shown.device.peak.raw));
  }

  async #changeAxis(from: Shown, to: Shown): Promise<void> {
    const { x0, x1, y0, y1 } = this.#view.getView();
    const whole = x0 <= 0 && x1 >= from.axis.extent;
    const range = whole ? null : ((await to.client?.mapRange(to.target, from.axis.kind, { x0, x1 })) ?? null);
    if (this.#latest !== to || this.#shown === to) return;
    this.#switchAxis(to);
    if (range) this.act((view) => view.setView({ x0: range.x0, x1: range.x1, y0, y1 }));
    this.draw();
  }

  #switchAxis(to: Shown): void {
    this.#shown = to;
    if (to.client) to.client.ontile = (tile) => this.#tile(tile);
    this.#open(to);
    this.setSelected(this.#selected);
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
    if (this.#view.frame(now)) this.draw();
    if (this.#shown === null) {
      this.labels.value = null;
      return;
    }
    const wanted = this.#view.wanted();
    if (wanted.length > 0) this.#ask(wanted);
    this.labels.value = this.#view.labels();
    const { x0, x1 } = this.#view.getView();
    const range = this.range.peek();
    if (range?.x0 === x0 && range.x1 === x1) return;
    this.range.value = { x0, x1 };
    // What is under a resting pointer has moved.
    if (this.#pointer) this.#hoverAt(this.#pointer.x, this.#pointer.y);
  }

  #ask(tiles: TileKey[]): void {
    this.#outstanding = tiles;
    const { client, target, axis } = this.#shown ?? {};
    if (client && target && axis && tiles.length > 0) client.tiles(target, axis.kind, tiles);
  }

  #tile(tile: TileReply): void {
    const shown = this.#shown;
    const { positions, colours, blocks } = tile.columns;
    if (shown === null || !positions || !colours || !blocks) return;
    const { part, device } = shown.target;
    if (tile.axis !== shown.axis.kind || tile.target.part !== part || tile.target.device !== device) return;
    this.#outstanding = this.#outstanding.filter((key) => !sameKey(key, tile.key));
    this.#view.putTile(tile.key, positions, colours, blocks);
    this.draw();
  }

  #pickPoint(x: number, y: number): PickPoint | null {
    const shown = this.#shown;
    const hit = shown && this.#view.hit(x, y);
    if (!hit) return null;
    const { kx, ky, slot, bytes } = hit;
    return { target: shown.target, axis: shown.axis.kind, kx, ky, slot, bytes };
  }

  #hoverAt(x: number, y: number): void {
    const hit = this.#shown && this.#view.hit(x, y);
    const before = this.hover.peek();
    if (!hit) {
      this.#noHover();
      return;
    }
    this.#view.setHover(hit.block);
    this.hover.value = { x, y, block: hit.block, hit: before?.hit ?? null, stale: before?.block !== hit.block };
    void this.#confirmHover(x, y);
  }

  #noHover(): void {
    this.#picks += 1;
    this.#view.setHover(undefined);
    this.hover.value = null;
  }

  async #confirmHover(x: number, y: number): Promise<void> {
    this.#picks += 1;
    const asked = this.#picks;
    const hit = await this.pick(x, y);
    const hover = this.hover.peek();
    if (asked !== this.#picks || hover === null) return;
    if (hit === null) this.#noHover();
    else this.hover.value = { ...hover, hit, stale: false };
  }
}
