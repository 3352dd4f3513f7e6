// The segments: a row for each place in memory, blocks at their place in it, along the same axis as
// the timeline.

import type { Hit as ViewHit } from "../../wasm/vramscope_view.js";
import type { ColorBy, Hit, SegmentSpec, SegmentsInfo } from "../generated/protocol.js";
import { ROW_UNITS } from "../generated/protocol.js";
import { CanvasPlot, type HandOptions, type PlotEvents } from "../plot/canvas-plot.js";
import type { Surface } from "../plot/surface.js";
import { GUTTER, type Shown } from "../plot/timeline-plot.js";

export interface SegmentsLook {
  color: ColorBy;
  search: string;
  spec: SegmentSpec;
  info: SegmentsInfo;
}

/** CSS pixels of a row: the least, and the most when all have room. */
const LEAST = 14;
const MOST = 34;

export class SegmentsPlot extends CanvasPlot<Hit> {
  #shown: Shown | null = null;
  #look: SegmentsLook | null = null;

  constructor(surface: Surface, events: PlotEvents, hand: HandOptions) {
    super("segments", surface, events, hand);
  }

  /** Draws these rows of this trace; what is in view stays where the rows are the same ones. */
  show(shown: Shown | null, look: SegmentsLook | null): void {
    const before = this.#shown;
    const info = this.#look?.info;
    this.#shown = shown;
    this.#look = look;
    if (shown === null || look === null || !shown.client) {
      this.setSource(null);
      this.draw();
      return;
    }
    const same =
      before?.file === shown.file &&
      before.target.device === shown.target.device &&
      before.target.part === shown.target.part &&
      before.axis.kind === shown.axis.kind;
    if (same && this.source) {
      const { units, grown } = look.info;
      // The row of the selected block is brought into view once: from there the hand may scroll
      // away.
      const [low, high] = (info !== look.info && grown) || [];
      this.#attach(shown, look);
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

  protected override async confirm({ block }: ViewHit): Promise<Hit | null> {
    const shown = this.#shown;
    return (await shown?.client?.view(shown.target, "hit", { hit: { block } })) ?? null;
  }

  #open(): void {
    const [shown, look] = [this.#shown, this.#look];
    if (!shown || !look) return;
    this.forgetTiles();
    this.#attach(shown, look);
    const rows = { units: look.info.units, rowUnits: ROW_UNITS, least: LEAST, most: MOST };
    this.view.open(shown.axis, 0, { rows }, GUTTER);
  }

  #attach({ client, target, axis }: Shown, { color, search, spec }: SegmentsLook): void {
    this.setSource({
      client,
      target,
      axis: axis.kind,
      layer: { segments: { color, rows: spec, search } },
    });
  }
}
