// Segments on a canvas: one row per address range, blocks at their addresses, along the timeline's
// axis.

import type { Hit as ViewHit } from "../../../wasm/vramscope_view.js";
import type { ColorBy, Hit, SegmentSpec, SegmentsInfo } from "../../generated/protocol.js";
import { ROW_UNITS } from "../../generated/protocol.js";
import { CanvasPlot, type GestureOptions, type PlotEvents } from "../../plot/canvas-plot.js";
import type { Surface } from "../../plot/surface.js";
import { blockTip, breaksOf, type DrawableTrace, GUTTER } from "../../plot/timeline-plot.js";

/** Display options of the segments, and the rows that they result in. */
export interface SegmentsLook {
  color: ColorBy;
  search: string;
  spec: SegmentSpec;
  info: SegmentsInfo;
}

/** Height of a row in CSS pixels. Rows grow to the maximum if all of them fit. */
const MIN_ROW = 10;
const MAX_ROW = 34;

export class SegmentsPlot extends CanvasPlot<Hit> {
  #drawn: DrawableTrace | null = null;
  #look: SegmentsLook | null = null;

  constructor(surface: Surface, events: PlotEvents, options: GestureOptions) {
    super("segments", surface, events, options);
  }

  /** Draws the rows of a trace. The view is kept for the same trace and axis. */
  show(trace: DrawableTrace | null, look: SegmentsLook | null): void {
    const before = this.#drawn;
    const info = this.#look?.info;
    this.#drawn = trace;
    this.#look = look;
    if (trace === null || look === null || !trace.client) {
      this.setSource(null);
      this.draw();
      return;
    }
    const same =
      before?.file === trace.file &&
      before.target.device === trace.target.device &&
      before.target.part === trace.target.part &&
      before.axis.kind === trace.axis.kind;
    if (same && this.source) {
      const { units, grown } = look.info;
      // Scrolls to the row of the selected block once, so that scrolling away works afterwards.
      const [low, high] = (info !== look.info && grown) || [];
      this.#attach(trace, look);
      this.forgetTiles();
      this.view.setRows(units, low, high);
    } else {
      this.#open();
    }
    this.draw();
  }

  setSelected(block: number | null, x0?: number, x1?: number): void {
    this.act((view) => view.setSelected(block ?? undefined, x0, x1));
  }

  /** The tooltip, in the color that is drawn. */
  protected override confirm(hit: ViewHit): Promise<Hit | null> {
    return blockTip(this.#drawn, hit);
  }

  #open(): void {
    const [trace, look] = [this.#drawn, this.#look];
    if (!trace || !look) return;
    this.forgetTiles();
    this.#attach(trace, look);
    const rows = { units: look.info.units, rowUnits: ROW_UNITS, least: MIN_ROW, most: MAX_ROW };
    this.view.open(trace.axis, 0, { rows }, GUTTER);
    if (trace.axis.kind === "time") this.view.setBreaks(breaksOf(trace.device));
  }

  #attach({ client, target, axis }: DrawableTrace, { color, search, spec }: SegmentsLook): void {
    this.setSource({
      client,
      target,
      axis: axis.kind,
      layer: { segments: { color, rows: spec, search } },
    });
  }
}
