// The flame graph of two recordings on a canvas. Its tiles come from the coordinator.

import type { Hit as ViewHit } from "../../../wasm/vramscope_view.js";
import {
  type ComparedFlame,
  type ComparedNode,
  type ComparedTile,
  type ComparedTree,
  ROW_UNITS,
  type TileKey,
} from "../../generated/protocol.js";
import { CanvasPlot, type GestureOptions, type PlotEvents } from "../../plot/canvas-plot.js";
import type { Surface } from "../../plot/surface.js";
import type { Tip } from "../../ui/tooltip.js";
import { FLAME_ROW } from "../code/flame-plot.js";

/** A flame graph to draw. */
export interface DrawableTree {
  tree: ComparedTree;
  flame: ComparedFlame;
}

/** Asks the coordinator for parts of a graph; null when there is no comparison. */
export interface TreeSource {
  tiles(tree: ComparedTree, tiles: TileKey[]): Promise<ComparedTile[] | null>;
  node(tree: ComparedTree, node: number): Promise<ComparedNode | null>;
}

export class ComparePlot extends CanvasPlot<Tip> {
  readonly #from: TreeSource;
  #drawn: DrawableTree | null = null;

  constructor(surface: Surface, events: PlotEvents, options: GestureOptions, from: TreeSource) {
    super("flame", surface, events, options);
    this.#from = from;
  }

  show(drawn: DrawableTree | null): void {
    this.#drawn = drawn;
    if (drawn === null) {
      this.setSource(null);
    } else {
      const { extent, rows } = drawn.flame.info;
      this.forgetTiles();
      this.setSource({
        client: null,
        target: { part: 0, device: 0 },
        axis: "weight",
        layer: null,
      });
      this.view.open(
        { kind: "weight", extent, origin: 0, peak: 0 },
        0,
        {
          rows: { units: rows * ROW_UNITS, rowUnits: ROW_UNITS, least: FLAME_ROW, most: FLAME_ROW },
        },
        0,
      );
    }
    this.draw();
  }

  protected override request(_: unknown, tiles: TileKey[]): void {
    const drawn = this.#drawn;
    if (drawn === null) return;
    void this.#from.tiles(drawn.tree, tiles).then((made) => {
      if (drawn !== this.#drawn) return;
      for (const { key, positions, colors, blocks } of made ?? [])
        this.put(
          key,
          Float32Array.from(positions),
          Uint32Array.from(colors),
          Uint32Array.from(blocks),
        );
    });
  }

  protected override async confirm({ block }: ViewHit): Promise<Tip | null> {
    const drawn = this.#drawn;
    const node = drawn && (await this.#from.node(drawn.tree, block));
    if (!node) return null;
    const { title, text, color, card } = node;
    const lines = card.rows.flatMap(({ label, text: value, raw }) =>
      raw === null ? [] : [`${label}: ${value}`],
    );
    return { title: text, bytes: card.title, site: title, lines, color };
  }
}
