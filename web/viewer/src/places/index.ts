// The six places of the page, each with its key, its views and what it needs. Navigation, keys,
// palette and links read this list.

/** What an open run must have for a place to be there. */
type Need = "file" | "history" | "device" | "ranks";

interface Place {
  title: string;
  need: Need;
  /** What the place answers, for the palette. */
  answers: string;
  /** Other words that people search it by. */
  words: string;
  /** Its views with the labels of their switch; the first one opens first. */
  views: Readonly<Record<string, string>>;
}

export const PLACES = {
  summary: {
    title: "Summary",
    need: "file",
    answers: "what is so, what to change, does it fit",
    words: `findings verdict diagnose overview oom leak settings recording what if simulate gpu
      batch checkpointing plan expandable_segments`,
    views: { summary: "Summary" },
  },
  timeline: {
    title: "Timeline",
    need: "file",
    answers: "when, who, until when",
    words: "plot memory over time steps",
    views: { timeline: "Timeline" },
  },
  code: {
    title: "Code",
    need: "device",
    answers: "which module, call path, line, variable",
    words: "flame graph modules source file shapes tree stack holder reference drop leak",
    views: {
      modules: "Module",
      flame: "Call path",
      source: "File and line",
      shapes: "Shape",
      holders: "Holder",
    },
  },
  allocator: {
    title: "Allocator",
    need: "device",
    answers: "why reserved exceeds what is in use",
    words: "segments map pools streams fragmentation reserved cached",
    views: { map: "At the cursor", segments: "Over time" },
  },
  ranks: {
    title: "Ranks",
    need: "ranks",
    answers: "which rank differs, and where",
    words: "overview table clusters iterations outlier",
    views: { ranks: "Table", matrix: "Matrix" },
  },
  compare: {
    title: "Compare",
    need: "ranks",
    answers: "what changed",
    words: "diff difference before after files",
    views: { compare: "Files" },
  },
} as const satisfies Record<string, Place>;

export type PlaceId = keyof typeof PLACES;
export const PLACE_IDS = Object.keys(PLACES) as readonly PlaceId[];

type Keys<T> = T extends T ? keyof T : never;
/** A view: what a place shows. */
export type View = Keys<(typeof PLACES)[PlaceId]["views"]>;

const PLACED = new Map(
  PLACE_IDS.flatMap((id) => Object.keys(PLACES[id].views).map((view) => [view as View, id])),
);
export const VIEWS: readonly View[] = [...PLACED.keys()];

/** The place that shows a view. */
export const placeOf = (view: View): PlaceId => PLACED.get(view) ?? "timeline";

/** The views of a place with the labels of their switch. */
export const viewsOf = (place: PlaceId) => Object.entries(PLACES[place].views) as [View, string][];

/** The name of a view: its place, with the switch if there is one. */
export const titleOf = (view: View): string => {
  const place = placeOf(view);
  const views = viewsOf(place);
  const label = views.find(([id]) => id === view)?.[1];
  return views.length === 1 ? PLACES[place].title : `${PLACES[place].title}: ${label}`;
};

/** Tracks below the plot of the timeline, which fold. */
export const TRACKS = {
  annotations: "Annotations",
  free: "Largest free block",
  segments: "Segments",
} as const;
export type Track = keyof typeof TRACKS;
export const TRACK_IDS = Object.keys(TRACKS) as readonly Track[];
/** The tracks that are unfolded at first. */
export const FIRST_TRACKS: readonly Track[] = ["annotations"];

/** What the sheet below the timeline lists. */
export const SHEETS = {
  blocks: "Blocks",
  events: "Events",
  ab: "A to B",
  peak: "Peak",
  steps: "Steps",
} as const;
export type SheetView = keyof typeof SHEETS;
export const SHEET_VIEWS = Object.keys(SHEETS) as readonly SheetView[];

/** Views with a canvas: they stay mounted once they are opened, because a canvas is expensive. */
export const CANVAS_VIEWS: ReadonlySet<View> = new Set<View>([
  "timeline",
  "segments",
  "map",
  "flame",
]);
