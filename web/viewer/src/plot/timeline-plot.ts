// The timeline: the stack of blocks of one trace, along events or time.

import type { Hit as ViewHit } from "../../wasm/vramscope_view.js";
import type { Range, RankClient } from "../client/rank-client.js";
import type { RankFile } from "../client/rank-file.js";
import type {
  Axis,
  BlockDetail,
  ColorBy,
  DeviceRef,
  DeviceSummary,
  Hit,
  Layer,
} from "../generated/protocol.js";
import { CanvasPlot, type HandOptions, type PlotEvents } from "./canvas-plot.js";
import type { Surface } from "./surface.js";

/** Room for the labels on the left, in CSS pixels. */
export const GUTTER = 64;

/** What is to be drawn. */
export interface Shown {
  file: RankFile;
  /** Null while the file's worker is being brought back. */
  client: RankClient | null;
  target: DeviceRef;
  device: DeviceSummary;
  axis: Axis;
}

/** How it is to be drawn. */
export interface Look {
  color: ColorBy;
  bands: boolean;
  search: string;
  capacity: number | null;
  fromBaseline: boolean;
}

/** A block to outline. */
export type Selected = Pick<BlockDetail, "block"> & Partial<Pick<BlockDetail, "spans">>;

const sameTrace = (a: Shown, b: Shown) =>
  a.file === b.file && a.target.part === b.target.part && a.target.device === b.target.device;

const PLAIN: Look = {
  color: "stack",
  bands: false,
  search: "",
  capacity: null,
  fromBaseline: false,
};

export class TimelinePlot extends CanvasPlot<Hit> {
  #shown: Shown | null = null;
  #look: Look = PLAIN;
  /**
   * What was asked for last; differs from what is shown while a range is being mapped to another
   * axis.
   */
  #latest: Shown | null = null;
  #selected: Selected | null = null;
  /**
   * The first tiles have not all come. They are without lines, for which block sizes have to be
   * known: blocks are there sooner.
   */
  #plain = false;

  constructor(surface: Surface, events: PlotEvents, hand: HandOptions) {
    super("timeline", surface, events, hand);
  }

  /** What is drawn now. */
  get shown(): Shown | null {
    return this.#shown;
  }

  /** Draws this trace; the view is kept where it is the same trace on another axis. */
  show(shown: Shown | null): void {
    const before = this.#shown;
    this.#latest = shown;
    if (before && shown && sameTrace(before, shown) && before.axis.kind !== shown.axis.kind) {
      void this.#changeAxis(before, shown);
      return;
    }
    this.#shown = shown;
    if (shown === null) {
      this.setSource(null);
    } else if (before === null || !sameTrace(before, shown)) {
      this.clearHover();
      this.#selected = null;
      this.#open();
      this.askNow();
    } else if (before.client !== shown.client) {
      this.#attach(shown);
      this.askAgain();
    }
    this.draw();
  }

  /** Draws it in another way; what is in view stays. */
  setLook(look: Look): void {
    const before = this.#look;
    this.#look = look;
    if (this.#shown === null) return;
    const same =
      before.color === look.color && before.bands === look.bands && before.search === look.search;
    this.#fitHeights(this.#shown);
    if (!same) this.#redraw();
    this.draw();
  }

  override setRange(range: Range): void {
    // A range that is asked for wins over one that is still being mapped.
    if (this.#latest !== null && this.#latest !== this.#shown) this.#switchAxis(this.#latest);
    super.setRange(range);
  }

  /** Outlines a block; with its spans the outline closes where it begins and ends. */
  setSelected(selected: Selected | null): void {
    this.#selected = selected;
    const axis = this.#shown?.axis;
    const span = selected?.spans?.find(({ kind }) => kind === axis?.kind);
    this.act((view) => view.setSelected(selected?.block, span?.x0, span?.x1));
  }

  /** Everything about the block at a point. Its outline is drawn at once. */
  async blockAt(x: number, y: number): Promise<BlockDetail | null> {
    const hit = this.hitAt(x, y);
    this.setSelected(hit);
    if (!hit || !this.#shown?.client) return null;
    return this.#shown.client.block(this.#shown.target, hit.block);
  }

  protected override async confirm({ kx, ky, slot, bytes }: ViewHit): Promise<Hit | null> {
    const shown = this.#shown;
    const point = shown && { target: shown.target, axis: shown.axis.kind, kx, ky, slot, bytes };
    return point === null ? null : ((await shown?.client?.pick(point)) ?? null);
  }

  #open(): void {
    const shown = this.#shown;
    if (shown === null) return;
    this.forgetTiles();
    this.#plain = true;
    this.#attach(shown);
    this.view.open(shown.axis, Number(shown.device.peak.raw), "bytes", GUTTER);
    this.#fitHeights(shown);
    this.setSelected(this.#selected);
  }

  #attach({ client, target, axis }: Shown): void {
    this.setSource({ client, target, axis: axis.kind, layer: this.#layer() });
  }

  #layer(): Layer {
    const { color, bands, search } = this.#look;
    return { timeline: { color, bands: bands && !this.#plain, search } };
  }

  protected override tilesCame(): void {
    if (!this.#plain) return;
    this.#plain = false;
    if (this.#look.bands) this.#redraw();
  }

  /** The same view, with other tiles. */
  #redraw(): void {
    const shown = this.#shown;
    if (shown === null) return;
    this.#attach(shown);
    this.forgetTiles();
    this.view.refresh();
    this.draw();
  }

  /** How high and how low the whole view reaches. */
  #fitHeights({ device }: Shown): void {
    const { bands, capacity, fromBaseline } = this.#look;
    const tops = [bands ? Number(device.reservedPeak.raw) : 0, capacity ?? 0];
    this.view.setTop(Math.max(...tops));
    this.view.setCapacity(capacity ?? undefined);
    this.view.setBase(fromBaseline ? Number(device.start.raw) : 0);
  }

  async #changeAxis(from: Shown, to: Shown): Promise<void> {
    const { x0, x1, y0, y1 } = this.view.getView();
    const whole = x0 <= 0 && x1 >= from.axis.extent;
    const range = whole
      ? null
      : ((await to.client?.mapRange(to.target, from.axis.kind, { x0, x1 })) ?? null);
    if (this.#latest !== to || this.#shown === to) return;
    this.#switchAxis(to);
    if (range) this.act((view) => view.setView({ x0: range.x0, x1: range.x1, y0, y1 }));
    this.draw();
  }

  #switchAxis(to: Shown): void {
    this.#shown = to;
    this.#open();
  }
}
