// What all views share: which of them are open, one time cursor, one range, one search, and what
// colors say.

import { type Signal, signal } from "@preact/signals";
import type {
  AxisKind,
  ColorBy,
  FlameSpec,
  MarkedRange,
  SegmentSort,
} from "./generated/protocol.js";

/** The views, by the number of their key, then the tables. */
export const VIEWS = [
  "overview",
  "timeline",
  "segments",
  "flame",
  "anomalies",
  "compare",
  "blocks",
  "events",
  "settings",
] as const;
export type View = (typeof VIEWS)[number];

export const VIEW_TITLES: Record<View, string> = {
  overview: "Overview",
  timeline: "Timeline",
  segments: "Segments",
  flame: "Flame",
  anomalies: "Anomalies",
  compare: "Compare",
  blocks: "Blocks",
  events: "Events",
  settings: "Settings",
};

export const GIB = 2 ** 30;
/** No device has as much memory, in GiB. */
export const TOO_LARGE = 2 ** 20;

/** The row that others are compared with, as a link says it: it may not be open. */
export interface Pin {
  path: string;
  part: number;
}

/** A distance that was measured, in data units, so that it stays where it is. */
export interface Ruler {
  along: "x" | "y";
  axis: AxisKind;
  x0: number;
  x1: number;
  y0: number;
  y1: number;
}

/**
 * Half of what the browser says that the machine has, which is at most 8 GiB; not all browsers say
 * it.
 */
function defaultMemory(): number {
  const { deviceMemory } = navigator as Navigator & { deviceMemory?: number };
  return (deviceMemory ?? 8) / 2;
}

/** What makes a flame graph, beside the cursor and the range that are shared. */
export type FlameChoice = Pick<FlameSpec, "weight" | "inverted" | "root"> & { ranged: boolean };

export class Linked {
  /** The view that has the center. */
  readonly view: Signal<View> = signal("timeline");
  /** The view below it; null when the drawer is shut. */
  readonly drawer: Signal<View | null> = signal("segments");
  /**
   * The event after which the state is shown: -1 is before the window; null when there is no
   * cursor.
   */
  readonly cursor: Signal<number | null> = signal(null);
  readonly range: Signal<MarkedRange | null> = signal(null);
  readonly search: Signal<string> = signal("");
  /** A of a comparison, once it was chosen. */
  readonly pinned: Signal<Pin | null> = signal(null);
  readonly color: Signal<ColorBy> = signal("stack");
  /** Lines of allocated, active and reserved bytes over the stack. */
  readonly bands: Signal<boolean> = signal(true);
  /** The device's memory in bytes, as far as it is known. */
  readonly capacity: Signal<number | null> = signal(null);
  /** Whether y begins at what was live before the window. */
  readonly fromBaseline: Signal<boolean> = signal(false);
  readonly wheelScrolls: Signal<boolean> = signal(false);
  readonly dragZooms: Signal<boolean> = signal(false);
  /** Frames of PyTorch, Python and C++: folded in stacks, left out of the flame graph. */
  readonly hideFramework: Signal<boolean> = signal(true);
  /** GiB that the workers of all ranks may hold together. */
  readonly memory: Signal<number> = signal(defaultMemory());
  readonly segmentSort: Signal<SegmentSort> = signal("size");
  readonly flame: Signal<FlameChoice> = signal({
    weight: "peak",
    inverted: false,
    root: "",
    ranged: false,
  });
  readonly rulers: Signal<readonly Ruler[]> = signal([]);
  /** Events that were marked, in their order; -1 is before the window. */
  readonly markers: Signal<readonly number[]> = signal([]);
  /** The blocks table shows only what is below this node of the flame graph. */
  readonly node: Signal<{ flame: FlameSpec; node: number; title: string } | null> = signal(null);

  /** What belongs to one trace goes with it; choices stay. */
  reset(): void {
    this.cursor.value = null;
    this.range.value = null;
    this.rulers.value = [];
    this.markers.value = [];
    this.node.value = null;
    this.flame.value = { ...this.flame.peek(), root: "", ranged: false };
  }
}
