// The plots that are mounted, and what all of them need: canvases, gestures, and a way to start
// again when drawing fails.

import { type Signal, signal } from "@preact/signals";
import type { Modules } from "./client/wasm.js";
import type { Failure } from "./generated/protocol.js";
import type { MapPlot } from "./places/allocator/map-plot.js";
import type { SegmentsPlot } from "./places/allocator/segments-plot.js";
import type { FlamePlot } from "./places/code/flame-plot.js";
import type { GestureOptions } from "./plot/canvas-plot.js";
import { Surfaces } from "./plot/surface.js";
import type { TimelinePlot } from "./plot/timeline-plot.js";
import { failureOf } from "./run.js";
import type { ViewSelection } from "./view-selection.js";

export interface PlotsEvents {
  failed(failure: Failure): void;
  /** All canvases are about to be replaced. */
  redrawing(): void;
}

export class Plots {
  readonly timeline: Signal<TimelinePlot | null> = signal(null);
  readonly segments: Signal<SegmentsPlot | null> = signal(null);
  readonly map: Signal<MapPlot | null> = signal(null);
  readonly flame: Signal<FlamePlot | null> = signal(null);
  /** Why nothing can be drawn, whatever the file. */
  readonly failure: Signal<Failure | null> = signal(null);
  /** Increases when all canvases are replaced. */
  readonly generation: Signal<number> = signal(0);
  /** The ruler that is drawn while its key is held. */
  readonly ruling: Signal<"x" | "y" | null> = signal(null);
  readonly surfaces = new Surfaces();
  readonly gestureOptions: GestureOptions;
  readonly #modules: Modules;
  readonly #events: PlotsEvents;
  #ended = false;

  constructor(modules: Modules, { wheelScrolls, dragZooms }: ViewSelection, events: PlotsEvents) {
    this.#modules = modules;
    this.#events = events;
    this.gestureOptions = {
      wheelScrolls: () => wheelScrolls.peek(),
      dragZooms: () => dragZooms.peek(),
      ruling: () => this.ruling.peek(),
    };
  }

  /** Resolves once a plot can be made. */
  get ready(): Promise<unknown> {
    return this.#modules.view;
  }

  /** Makes a spare canvas ahead of its use. */
  prepare(): void {
    if (!this.#ended) this.surfaces.prepare();
  }

  /** The browser gives no canvas that Rust can draw on. Numbers and tables still work. */
  fail(error: unknown): void {
    this.failure.value = failureOf(error);
    this.#events.failed(this.failure.value);
  }

  /** Replaces all canvases after a context was lost or refused. */
  redraw(): void {
    this.#events.redrawing();
    this.failure.value = null;
    this.generation.value += 1;
  }

  destroy(): void {
    this.#ended = true;
    this.surfaces.destroy();
  }
}
