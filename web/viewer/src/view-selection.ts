// What all views of a trace share: one time cursor, one range, one search, one coloring, and the
// display options.

import { type Signal, signal } from "@preact/signals";
import type {
  AxisKind,
  Bands,
  ColorBy,
  FlameSpec,
  GroupBy,
  MarkedRange,
  SegmentSort,
} from "./generated/protocol.js";

export const GIB = 2 ** 30;
/** Sanity limit for the GPU memory field, in GiB. */
export const MAX_CAPACITY_GIB = 2 ** 20;

/** What blocks can be colored by, with the labels. The type makes the list complete. */
export const COLORS: Readonly<Record<ColorBy, string>> = {
  category: "category",
  stack: "call stack",
  size: "size",
  age: "age",
  stream: "stream",
  segment: "segment",
};

/** The coloring that a link does not name. */
export const DEFAULT_COLOR: ColorBy = "category";

/** What blocks can be grouped by, with the labels. */
export const GROUPS: Readonly<Record<GroupBy, string>> = {
  category: "category",
  line: "line",
  module: "module",
  block: "none",
};

/** The grouping that a link does not name. */
export const DEFAULT_GROUP: GroupBy = "category";

/** Delay between a keystroke in the search box and the search. */
const TYPING_MS = 120;

/** A file as a link names it. It may not be open. */
export interface Pin {
  path: string;
  part: number;
}

/** A cell of the matrix of ranks. */
export interface MatrixPlace {
  /** The rank in digits. */
  rank: string;
  /** The call site. */
  site: string;
}

/** A line of a source file; 0 for none of its lines. */
export interface CodePlace {
  file: string;
  line: number;
}

/** A measured distance in data units, so that it keeps its place when the view moves. */
export interface Ruler {
  along: "x" | "y";
  axis: AxisKind;
  x0: number;
  x1: number;
  y0: number;
  y1: number;
}

/** The two moments that are compared, as events; -1 is before the first event. */
export interface Ends {
  a: number | null;
  b: number | null;
}

/** What the colors of the map show. */
export const MAP_COLORS = { blocks: "blocks", change: "A to B" } as const;
export type MapColor = keyof typeof MAP_COLORS;

/**
 * Half of the machine's memory in GiB. Browsers report at most 8 GiB, and not all of them report
 * it.
 */
function defaultMemory(): number {
  const { deviceMemory } = navigator as Navigator & { deviceMemory?: number };
  return (deviceMemory ?? 8) / 2;
}

/** The text of the field for the GPU. */
export interface TypedGpu {
  text: string;
  said: string;
  isBad: boolean;
  at: number | null;
}

/** The flame graph's own choices. Cursor and range are shared with the other views. */
export type FlameChoice = Pick<FlameSpec, "weight" | "inverted" | "root"> & { ranged: boolean };

export class ViewSelection {
  /** The event of the time cursor; -1 is before the first event; null without a cursor. */
  readonly cursor: Signal<number | null> = signal(null);
  readonly range: Signal<MarkedRange | null> = signal(null);
  /** The moments A and B. */
  readonly ends: Signal<Ends> = signal({ a: null, b: null });
  /** The peak of the view "Peak", among the separate peaks; 0 is the highest. */
  readonly peak: Signal<number> = signal(0);
  readonly mapColor: Signal<MapColor> = signal("blocks");
  readonly search: Signal<string> = signal("");
  /** Side A of a comparison; null until one is chosen. */
  readonly pinned: Signal<Pin | null> = signal(null);
  /** Files whose curves are below the timeline. */
  readonly pins: Signal<readonly Pin[]> = signal([]);
  /** The cursor in the matrix of ranks; null until it is set. */
  readonly cell: Signal<MatrixPlace | null> = signal(null);
  /** The filter of the ranks in the overview. */
  readonly rankFilter: Signal<string> = signal("");
  /** The digits of the iteration that the overview and the matrix show; null for the usual one. */
  readonly iteration: Signal<string | null> = signal(null);
  /** The sizes of the parallel groups as the user gives them: `64/4/4`. */
  readonly sizes: Signal<string> = signal("");
  /** Whether the rows of the matrix are steps. */
  readonly bySteps: Signal<boolean> = signal(false);
  readonly color: Signal<ColorBy> = signal(DEFAULT_COLOR);
  /** What the blocks of the timeline's stack are grouped by. */
  readonly group: Signal<GroupBy> = signal(DEFAULT_GROUP);
  /** The bytes that are drawn as lines. Active and allocated bytes mostly follow the stack. */
  readonly bands: Signal<Bands> = signal({
    reserved: true,
    active: false,
    allocated: false,
    pools: false,
  });
  /** The GPU's memory in bytes; null while unknown. */
  readonly capacity: Signal<number | null> = signal(null);
  /** What was typed for it last, what that means or lacks, and the bytes that were set then. */
  readonly gpu: Signal<TypedGpu> = signal({ text: "", said: "", isBad: false, at: null });
  /** Whether the y axis starts at the initial memory instead of zero. */
  readonly fromBaseline: Signal<boolean> = signal(false);
  readonly wheelScrolls: Signal<boolean> = signal(false);
  readonly dragZooms: Signal<boolean> = signal(false);
  /** Whether frames of PyTorch, Python and C++ are folded or left out. */
  readonly hideFramework: Signal<boolean> = signal(true);
  /** Whether call stacks show the frames that `hideFramework` folds. */
  readonly allFrames: Signal<boolean> = signal(false);
  /** Memory budget of the workers of all ranks, in GiB. */
  readonly memory: Signal<number> = signal(defaultMemory());
  readonly segmentSort: Signal<SegmentSort> = signal("size");
  readonly flame: Signal<FlameChoice> = signal({
    weight: "peak",
    inverted: false,
    root: "",
    ranged: false,
  });
  /** The chosen levers as a question to the model of the allocator. */
  readonly scenario: Signal<string> = signal("");
  /** Whether the levers were chosen by hand: then none is chosen at first. */
  readonly scenarioTouched: Signal<boolean> = signal(false);
  /** Whether all levers are listed, over the summary. */
  readonly leversUnfolded: Signal<boolean> = signal(false);
  /** The modules whose children are listed; null for the usual ones. */
  readonly openModules: Signal<readonly number[] | null> = signal(null);
  /** The file and line of the view "Source"; null for the file with most bytes. */
  readonly source: Signal<CodePlace | null> = signal(null);
  readonly rulers: Signal<readonly Ruler[]> = signal([]);
  /** Events with a marker, in ascending order; -1 is before the first event. */
  readonly markers: Signal<readonly number[]> = signal([]);
  #typing: ReturnType<typeof setTimeout> | undefined;

  /** Searches for a text once typing pauses. */
  searchSoon(text: string): void {
    clearTimeout(this.#typing);
    this.#typing = setTimeout(() => {
      this.search.value = text;
    }, TYPING_MS);
  }

  clearSearch(): void {
    clearTimeout(this.#typing);
    this.search.value = "";
  }

  /** Clears the values that belong to one trace; choices stay. */
  reset(): void {
    this.cursor.value = null;
    this.range.value = null;
    this.clearEnds();
    this.peak.value = 0;
    this.rulers.value = [];
    this.openModules.value = null;
    this.source.value = null;
    this.markers.value = [];
    this.flame.value = { ...this.flame.peek(), root: "", ranged: false };
  }

  /** Puts A or B at the time cursor. False without a cursor. */
  setEnd(end: keyof Ends): boolean {
    const event = this.cursor.peek();
    if (event !== null) this.ends.value = { ...this.ends.peek(), [end]: event };
    return event !== null;
  }

  swapEnds(): void {
    const { a, b } = this.ends.peek();
    this.ends.value = { a: b, b: a };
  }

  clearEnds(): void {
    this.ends.value = { a: null, b: null };
  }

  addMarker(): void {
    const event = this.cursor.peek();
    if (event === null) return;
    this.markers.value = [...new Set([...this.markers.peek(), event])].toSorted((a, b) => a - b);
  }

  /** Removes the last ruler; without rulers, the marker at the cursor. */
  removeLast(): void {
    const rulers = this.rulers.peek();
    if (rulers.length > 0) this.rulers.value = rulers.slice(0, -1);
    else this.markers.value = this.markers.peek().filter((event) => event !== this.cursor.peek());
  }
}
