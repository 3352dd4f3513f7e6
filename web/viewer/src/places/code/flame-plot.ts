// A flame graph on a canvas: x is weight, one row per frame.

import type { Hit as ViewHit } from "../../../wasm/vramscope_view.js";
import type { RankClient } from "../../client/rank-client.js";
import {
  type DeviceRef,
  type FlameInfo,
  type FlameSpec,
  ROW_UNITS,
} from "../../generated/protocol.js";
import { CanvasPlot, type GestureOptions, type PlotEvents } from "../../plot/canvas-plot.js";
import type { Surface } from "../../plot/surface.js";
import type { Tip } from "../../ui/tooltip.js";

/** Height of a row in CSS pixels. */
export const FLAME_ROW = 20;

/** A flame graph to draw. */
export interface DrawableFlame {
  client: RankClient;
  target: DeviceRef;
  flame: FlameSpec;
  info: FlameInfo;
}

export class FlamePlot extends CanvasPlot<Tip> {
  #drawn: DrawableFlame | null = null;
  /** The node under the pointer, and what the worker says of it. */
  #hovered: { of: DrawableFlame; node: number; answer: Promise<Tip | null> } | null = null;

  constructor(surface: Surface, events: PlotEvents, options: GestureOptions) {
    super("flame", surface, events, options);
  }

  show(flame: DrawableFlame | null): void {
    const before = this.#drawn;
    this.#drawn = flame;
    if (flame === null) {
      this.setSource(null);
    } else if (
      before?.client === flame.client &&
      before.target.device === flame.target.device &&
      JSON.stringify({ ...before.flame, search: "" }) ===
        JSON.stringify({ ...flame.flame, search: "" }) &&
      this.source
    ) {
      this.#attach(flame);
      this.forgetTiles();
      this.view.refresh();
    } else {
      this.#open();
    }
    this.draw();
  }

  /** Asks once for each node that the pointer enters: these queries queue, and so do clicks. */
  protected override confirm({ block: node }: ViewHit): Promise<Tip | null> {
    const of = this.#drawn;
    if (of === null) return Promise.resolve(null);
    if (this.#hovered?.of !== of || this.#hovered.node !== node)
      this.#hovered = { of, node, answer: this.#ask(of, node) };
    return this.#hovered.answer;
  }

  async #ask({ client, target, flame }: DrawableFlame, block: number): Promise<Tip | null> {
    const node = await client.view(target, "flameNode", { flameNode: { flame, node: block } });
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
    const drawn = this.#drawn;
    if (drawn === null) return;
    this.forgetTiles();
    this.#attach(drawn);
    const { extent, rows } = drawn.info;
    const axis = { kind: "weight" as const, extent, origin: 0, peak: 0 };
    this.view.open(
      axis,
      0,
      { rows: { units: rows * ROW_UNITS, rowUnits: ROW_UNITS, least: FLAME_ROW, most: FLAME_ROW } },
      0,
    );
  }

  #attach({ client, target, flame }: DrawableFlame): void {
    this.setSource({ client, target, axis: "event", layer: { flame: { flame } } });
  }
}
