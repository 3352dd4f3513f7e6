// The timeline: the stack of blocks of one trace, along events or time.

import type { Hit as ViewHit } from "../../wasm/vramscope_view.js";
import type { Range, RankClient } from "../client/rank-client.js";
import type { RankFile } from "../client/rank-file.js";
import type {
  Axis,
  Bands,
  BlockDetail,
  ColorBy,
  DeviceRef,
  DeviceSummary,
  GroupBy,
  Hit,
  Layer,
} from "../generated/protocol.js";
import { DEFAULT_COLOR, DEFAULT_GROUP } from "../view-selection.js";
import { CanvasPlot, type GestureOptions, type PlotEvents } from "./canvas-plot.js";
import type { Surface } from "./surface.js";

/** Width of the labels on the left, in CSS pixels. */
export const GUTTER = 64;

/** A trace and the axis to draw it along. */
export interface DrawableTrace {
  file: RankFile;
  /** Null while the file is loaded again. */
  client: RankClient | null;
  target: DeviceRef;
  device: DeviceSummary;
  axis: Axis;
}

/** Display options of the timeline. */
export interface Look {
  group: GroupBy;
  color: ColorBy;
  bands: Bands;
  search: string;
  /** Bytes of the line of the GPU's memory; null without one. */
  capacity: number | null;
  /** The most bytes of marks that must be in view; 0 without any. */
  marksTop: number;
  fromBaseline: boolean;
  /** The most bytes of a simulated line; 0 without one. */
  simulatedTop: number;
}

/**
 * The stages of a new picture: the outline of the stack, for which nothing but the file is needed;
 * its blocks, when their categories are known; the lines of other bytes over them.
 */
export type Stage = "outline" | "blocks" | "whole";

/** The block to outline. */
export type Outlined = Pick<BlockDetail, "block"> & Partial<Pick<BlockDetail, "spans">>;

const isSameTrace = (a: DrawableTrace, b: DrawableTrace) =>
  a.file === b.file && a.target.part === b.target.part && a.target.device === b.target.device;

const NO_BANDS: Bands = { reserved: false, active: false, allocated: false, pools: false };

const isSameBands = (a: Bands, b: Bands) =>
  a.reserved === b.reserved &&
  a.active === b.active &&
  a.allocated === b.allocated &&
  a.pools === b.pools;

const PLAIN: Look = {
  group: DEFAULT_GROUP,
  color: DEFAULT_COLOR,
  bands: NO_BANDS,
  search: "",
  capacity: null,
  marksTop: 0,
  fromBaseline: false,
  simulatedTop: 0,
};

/** The breaks of the time axis, as the view takes them. */
export const breaksOf = ({ breaks }: DeviceSummary) =>
  new Float64Array(breaks.flatMap(({ x0, x1, time }) => [x0, x1, time]));

/** The tooltip of a drawn block, in the color that is drawn. */
export async function blockTip(
  drawn: DrawableTrace | null,
  { block, color }: ViewHit,
): Promise<Hit | null> {
  const hit = (await drawn?.client?.view(drawn.target, "hit", { hit: { block } })) ?? null;
  return hit && { ...hit, color };
}

export class TimelinePlot extends CanvasPlot<Hit> {
  #drawn: DrawableTrace | null = null;
  #look: Look = PLAIN;
  /** The trace that was requested last. Differs from the drawn one while a range is mapped. */
  #latest: DrawableTrace | null = null;
  #outlined: Outlined | null = null;
  /** What is requested. Each stage takes the worker longer than the one before. */
  #stage: Stage = "whole";

  constructor(surface: Surface, events: PlotEvents, options: GestureOptions) {
    super("timeline", surface, events, options);
  }

  /** Whether blocks are drawn, or only the outline of the stack. */
  get hasBlocks(): boolean {
    return this.#stage === "whole";
  }

  /** Draws a trace. The view is kept when only the axis changes. */
  show(trace: DrawableTrace | null): void {
    const before = this.#drawn;
    this.#latest = trace;
    if (before && trace && isSameTrace(before, trace) && before.axis.kind !== trace.axis.kind) {
      void this.#changeAxis(before, trace);
      return;
    }
    this.#drawn = trace;
    if (trace === null) {
      this.setSource(null);
    } else if (before === null || !isSameTrace(before, trace)) {
      this.clearHover();
      this.#outlined = null;
      this.#open();
      this.askNow();
    } else if (before.client !== trace.client) {
      this.#attach(trace);
      this.askAgain();
    }
    this.draw();
  }

  /** Changes the display options; the visible range stays. */
  setLook(look: Look): void {
    const before = this.#look;
    this.#look = look;
    if (this.#drawn === null) return;
    const sameTiles =
      before.group === look.group &&
      before.color === look.color &&
      isSameBands(before.bands, look.bands) &&
      before.search === look.search;
    this.#fitHeights(this.#drawn);
    if (!sameTiles) this.#redraw();
    this.draw();
  }

  override setRange(range: Range): void {
    // An explicit range wins over one that is still being mapped to another axis.
    if (this.#latest !== null && this.#latest !== this.#drawn) this.#switchAxis(this.#latest);
    super.setRange(range);
  }

  /** Outlines a block. With its spans, the outline closes at its allocation and free. */
  setSelected(block: Outlined | null): void {
    this.#outlined = block;
    const axis = this.#drawn?.axis;
    const span = block?.spans?.find(({ kind }) => kind === axis?.kind);
    this.act((view) => view.setSelected(block?.block, span?.x0, span?.x1));
  }

  /** The details of the block at a point. Its outline is drawn before they come. */
  async blockAt(x: number, y: number): Promise<BlockDetail | null> {
    const hit = this.hitAt(x, y);
    this.setSelected(hit);
    if (!hit || !this.#drawn?.client) return null;
    return this.#drawn.client.block(this.#drawn.target, hit.block);
  }

  /** The tooltip, in the color that is drawn. */
  protected override async confirm(strip: ViewHit, hover: boolean): Promise<Hit | null> {
    const { kx, ky, slot, bytes, color } = strip;
    const trace = this.#drawn;
    const point = trace && {
      target: trace.target,
      axis: trace.axis.kind,
      layer: this.#layer(trace.device),
      kx,
      ky,
      slot,
      bytes,
      hover,
    };
    const hit = point === null ? null : ((await trace?.client?.pick(point)) ?? null);
    return hit && { ...hit, color };
  }

  #open(): void {
    const trace = this.#drawn;
    if (trace === null) return;
    this.forgetTiles();
    this.#stage = "outline";
    this.#attach(trace);
    this.view.open(trace.axis, Number(trace.device.peak.raw), "bytes", GUTTER);
    if (trace.axis.kind === "time") this.view.setBreaks(breaksOf(trace.device));
    this.#fitHeights(trace);
    this.setSelected(this.#outlined);
  }

  #attach({ client, target, axis, device }: DrawableTrace): void {
    this.setSource({ client, target, axis: axis.kind, layer: this.#layer(device) });
  }

  #layer({ reservedApart }: DeviceSummary): Layer {
    if (this.#stage === "outline") return { outline: {} };
    const { group, color, bands, search } = this.#look;
    const reserved = bands.reserved && !reservedApart;
    const lines = this.#stage === "blocks" ? NO_BANDS : { ...bands, reserved };
    return { timeline: { group, color, bands: lines, search } };
  }

  protected override tilesCame(): void {
    if (this.#stage === "outline") {
      this.#stage = "blocks";
      this.#redraw();
      this.holdTiles();
    } else if (this.#stage === "blocks") {
      this.#stage = "whole";
      if (!isSameBands(this.#look.bands, NO_BANDS)) this.#redraw();
    }
  }

  /** Requests other tiles for the same view. */
  #redraw(): void {
    const trace = this.#drawn;
    if (trace === null) return;
    this.#attach(trace);
    this.forgetTiles();
    this.view.refresh();
    this.draw();
  }

  /** Sets the upper and lower end of the y axis. */
  #fitHeights({ device }: DrawableTrace): void {
    const { bands, capacity, marksTop, fromBaseline, simulatedTop } = this.#look;
    // Reserved bytes that dwarf the stack have a strip of their own.
    const hasLines = !device.reservedApart && !isSameBands(bands, NO_BANDS);
    const lines = hasLines ? Number(device.reservedPeak.raw) : 0;
    this.view.setTop(Math.max(lines, marksTop, simulatedTop));
    this.view.setCapacity(capacity ?? undefined);
    this.view.setBase(fromBaseline ? Number(device.start.raw) : 0);
  }

  async #changeAxis(from: DrawableTrace, to: DrawableTrace): Promise<void> {
    const { x0, x1, y0, y1 } = this.view.getView();
    const whole = x0 <= 0 && x1 >= from.axis.extent;
    const range = whole
      ? null
      : ((await to.client?.mapRange(to.target, from.axis.kind, { x0, x1 })) ?? null);
    if (this.#latest !== to || this.#drawn === to) return;
    this.#switchAxis(to);
    if (range) this.act((view) => view.setView({ x0: range.x0, x1: range.x1, y0, y1 }));
    this.draw();
  }

  #switchAxis(to: DrawableTrace): void {
    this.#drawn = to;
    this.#open();
  }
}
