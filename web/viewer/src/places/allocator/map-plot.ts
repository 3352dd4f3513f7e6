// The map of segments on a canvas: x is the bytes of a line, one row per line.

import type { Hit as ViewHit } from "../../../wasm/vramscope_view.js";
import {
  type ColorBy,
  type Hit,
  type MapInfo,
  type MapSpec,
  ROW_UNITS,
} from "../../generated/protocol.js";
import { CanvasPlot, type GestureOptions, type PlotEvents } from "../../plot/canvas-plot.js";
import type { Surface } from "../../plot/surface.js";
import { blockTip, type DrawableTrace } from "../../plot/timeline-plot.js";

/** Height of a line in CSS pixels. Lines grow to the maximum if all of them fit. */
const MIN_LINE = 14;
const MAX_LINE = 44;

/** Display options of the map, and the lines that they result in. */
export interface MapLook {
  color: ColorBy;
  search: string;
  spec: MapSpec;
  info: MapInfo;
}

export class MapPlot extends CanvasPlot<Hit> {
  #drawn: DrawableTrace | null = null;
  #look: MapLook | null = null;

  constructor(surface: Surface, events: PlotEvents, options: GestureOptions) {
    super("map", surface, events, options);
  }

  /** Draws the map of a trace. The view is kept while its lines stay as long. */
  show(trace: DrawableTrace | null, look: MapLook | null): void {
    const [before, bytes] = [this.#drawn, this.#look?.info.lineBytes];
    this.#drawn = trace;
    this.#look = look;
    if (trace === null || look === null || !trace.client) {
      this.setSource(null);
    } else if (
      before?.file === trace.file &&
      before.target.device === trace.target.device &&
      before.target.part === trace.target.part &&
      bytes === look.info.lineBytes &&
      this.source
    ) {
      this.#attach(trace, look);
      this.forgetTiles();
      this.view.setRows(look.info.units);
    } else {
      this.#open(trace, look);
    }
    this.draw();
  }

  setSelected(block: number | null): void {
    this.act((view) => view.setSelected(block ?? undefined));
  }

  /** The tooltip, in the color that is drawn. */
  protected override confirm(hit: ViewHit): Promise<Hit | null> {
    return blockTip(this.#drawn, hit);
  }

  #open(trace: DrawableTrace, look: MapLook): void {
    this.forgetTiles();
    this.#attach(trace, look);
    const { units, lineBytes: extent } = look.info;
    const axis = { kind: "weight" as const, extent, origin: 0, peak: 0 };
    const rows = { units, rowUnits: ROW_UNITS, least: MIN_LINE, most: MAX_LINE };
    this.view.open(axis, 0, { rows }, 0);
  }

  #attach({ client, target }: DrawableTrace, { color, search, spec }: MapLook): void {
    this.setSource({ client, target, axis: "event", layer: { map: { color, map: spec, search } } });
  }
}
