// A flame graph on a canvas: x in weight, a row a frame.

import type { Hit as ViewHit } from "../../wasm/vramscope_view.js";
import type { RankClient } from "../client/rank-client.js";
import {
  type DeviceRef,
  type FlameInfo,
  type FlameSpec,
  ROW_UNITS,
} from "../generated/protocol.js";
import { CanvasPlot, type HandOptions, type PlotEvents } from "../plot/canvas-plot.js";
import type { Surface } from "../plot/surface.js";
import type { Tip } from "../ui/tooltip.js";

/** CSS pixels of a row. */
const ROW = 20;

export interface FlameShown {
  client: RankClient;
  target: DeviceRef;
  flame: FlameSpec;
  info: FlameInfo;
}

export class FlamePlot extends CanvasPlot<Tip> {
  #shown: FlameShown | null = null;

  constructor(surface: Surface, events: PlotEvents, hand: HandOptions) {
    super("flame", surface, events, hand);
  }

  show(shown: FlameShown | null): void {
    const before = this.#shown;
    this.#shown = shown;
    if (shown === null) {
      this.setSource(null);
    } else if (
      before?.client === shown.client &&
      before.target.device === shown.target.device &&
      JSON.stringify({ ...before.flame, search: "" }) ===
        JSON.stringify({ ...shown.flame, search: "" }) &&
      this.source
    ) {
      this.#attach(shown);
      this.forgetTiles();
      this.view.refresh();
    } else {
      this.#open();
    }
    this.draw();
  }

  protected override async confirm({ block }: ViewHit): Promise<Tip | null> {
    const shown = this.#shown;
    const node = await shown?.client.view(shown.target, "flameNode", {
      flameNode: { flame: shown.flame, node: block },
    });
    return node
      ? {
          title: node.total.text,
          bytes: node.total,
          site: node.title,
          lines: [node.text, node.file],
          color: node.color,
        }
      : null;
  }

  #open(): void {
    const shown = this.#shown;
    if (shown === null) return;
    this.forgetTiles();
    this.#attach(shown);
    const { extent, rows } = shown.info;
    const axis = { kind: "weight" as const, extent, origin: 0, peak: 0 };
    this.view.open(
      axis,
      0,
      { rows: { units: rows * ROW_UNITS, rowUnits: ROW_UNITS, least: ROW, most: ROW } },
      0,
    );
  }

  #attach({ client, target, flame }: FlameShown): void {
    this.setSource({ client, target, axis: "event", layer: { flame: { flame } } });
  }
}
