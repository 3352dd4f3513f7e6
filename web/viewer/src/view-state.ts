// The view state as a value for links. Every field is optional, and an invalid field is dropped
// alone.

import type { AxisKind, ColorBy, GroupBy, MarkedRange } from "./generated/protocol.js";
import {
  SHEET_VIEWS,
  type SheetView,
  TRACK_IDS,
  type Track,
  VIEWS,
  type View,
} from "./places/index.js";
import {
  COLORS,
  type CodePlace,
  GROUPS,
  MAP_COLORS,
  MAX_CAPACITY_GIB,
  type MapColor,
  type MatrixPlace,
  type Pin,
  type Ruler,
} from "./view-selection.js";

export type Theme = "auto" | "light" | "dark";

export interface ViewState {
  v?: 1;
  /** The view in the center, which says the place. */
  view?: View;
  /** What the sheet below the timeline lists. */
  sheet?: SheetView | "none";
  /** The tracks below the timeline that are unfolded, where they are not the usual ones. */
  tracks?: string;
  /** The file's path within the opened files. */
  path?: string;
  /** Index of the snapshot in the file; omitted for the first one. */
  part?: number;
  device?: number;
  /** Path of side A of the comparison. */
  a?: string;
  /** Index of the snapshot in side A's file. */
  aPart?: number;
  /** Files whose curves are below the timeline: `0:run/rank3.pickle|0:run/rank5.pickle`. */
  pins?: string;
  /** The cursor in the matrix of ranks: `3:train.py:88 step`. */
  cell?: string;
  /** The filter of the ranks in the overview: `0-63 >40GiB`. */
  ranks?: string;
  /** The digits of the iteration in the overview and the matrix. */
  iteration?: string;
  /** The sizes of the data, tensor and pipeline parallel groups: `64/4/4`. */
  sizes?: string;
  /** What the rows of the matrix are, if not call sites. */
  rows?: "steps";
  axis?: AxisKind;
  /** Start of the visible range in slots of the axis. */
  x0?: number;
  /** End of the visible range in slots of the axis. */
  x1?: number;
  /** The selected block: `<device>:<address>@<event|pre>`. */
  sel?: string;
  /** The marked range in slots of its axis: `event:1000:3000`. */
  range?: string;
  /** The event of the time cursor; -1 is before the first event. */
  at?: number;
  /** The event of moment A; -1 is before the first event. */
  from?: number;
  /** The event of moment B. */
  to?: number;
  /** Events with a marker: `500,1500`. */
  markers?: string;
  /** Rulers as `along:axis:x0:x1:y0:y1`, separated by commas: `y:event:1000:1000:0:2048`. */
  rulers?: string;
  /** The GPU's memory in GiB. */
  capacity?: number;
  /** The chosen levers: `expandable_segments:True,batch:0.5,optimizer:8bit`. */
  whatIf?: string;
  /** Whether all levers are listed. */
  levers?: "all";
  /** The search text. */
  find?: string;
  /** The filters, separated by spaces; those with spaces are in quotes: `category:activation`. */
  filter?: string;
  color?: ColorBy;
  /** What the blocks of the timeline are grouped by. */
  group?: GroupBy;
  /** The separate peak of the view "Peak", from 1, which is the highest. */
  peak?: number;
  /** The file and line of the view "Source": `43:/train/gpt.py`. */
  source?: string;
  /** What the colors of the map show: blocks, or what changed from A to B. */
  mapColor?: MapColor;
  theme?: Theme;
}

const oneOf =
  <T extends string>(...allowed: T[]) =>
  (text: string): T | undefined =>
    allowed.find((value) => value === text);

const number = (text: string) =>
  text !== "" && Number.isFinite(Number(text)) ? Number(text) : undefined;
const ordinal = (text: string) => (/^\d{1,9}$/.test(text) ? Number(text) : undefined);
const event = (text: string) => (/^(-1|\d{1,10})$/.test(text) ? Number(text) : undefined);
const blockReference = (text: string) =>
  /^\d+:0x[0-9a-f]+@(~?\d+|pre)$/.test(text) ? text : undefined;

const AXES = oneOf<AxisKind>("event", "time");
const path = (text: string) => text || undefined;

/** Parses a marked range. */
export function rangeOf(text: string): MarkedRange | undefined {
  const [, along, from, to] = /^(event|time):(-?[\d.]+):(-?[\d.]+)$/.exec(text) ?? [];
  const [axis, x0, x1] = [AXES(along ?? ""), number(from ?? ""), number(to ?? "")];
  return axis && x0 !== undefined && x1 !== undefined && x0 < x1 ? { axis, x0, x1 } : undefined;
}

export const rangeText = ({ axis, x0, x1 }: MarkedRange) => `${axis}:${written(x0)}:${written(x1)}`;

/** The most items of a list in a link: each is an element of the page. */
const MAX_LISTED = 200;

/** Parses files with the index of the snapshot in each. */
export const pinsOf = (text: string): Pin[] | undefined => {
  if (text === "") return undefined;
  return listOf(text, "|", (one) => {
    const [, part, path] = /^(\d{1,4}):(.+)$/.exec(one) ?? [];
    return part !== undefined && path !== undefined ? { path, part: Number(part) } : undefined;
  });
};

export const pinsText = (pins: readonly Pin[]) =>
  pins.map(({ path, part }) => `${part}:${path}`).join("|");

/** Parses a cell of the matrix. */
export const cellOf = (text: string): MatrixPlace | undefined => {
  const [, rank, site] = /^(\d{1,10}):(.+)$/.exec(text) ?? [];
  return rank !== undefined && site !== undefined ? { rank, site } : undefined;
};

export const cellText = ({ rank, site }: MatrixPlace) => `${rank}:${site}`;

/** Parses a line of a source file. */
export const codePlaceOf = (text: string): CodePlace | undefined => {
  const [, line, file] = /^(\d{1,9}):(.+)$/.exec(text) ?? [];
  return line !== undefined && file !== undefined ? { file, line: Number(line) } : undefined;
};

export const codePlaceText = ({ file, line }: CodePlace) => `${line}:${file}`;

/** Parses markers. */
export const markersOf = (text: string): number[] | undefined => listOf(text, ",", event);

/** Parses tracks: `annotations,segments`, or `none`. */
export const tracksOf = (text: string): Track[] | undefined =>
  text === "none" ? [] : listOf(text, ",", oneOf(...TRACK_IDS));

/** Parses rulers. */
export const rulersOf = (text: string): Ruler[] | undefined =>
  listOf(text, ",", (one) => {
    const [along, kind, ...places] = one.split(":");
    const [x0, x1, y0, y1] = places.map(number);
    const axis = AXES(kind ?? "");
    if ((along !== "x" && along !== "y") || !axis || places.length !== 4) return undefined;
    if (x0 === undefined || x1 === undefined || y0 === undefined || y1 === undefined)
      return undefined;
    return { along, axis, x0, x1, y0, y1 };
  });

export const rulersText = (rulers: readonly Ruler[]) =>
  rulers
    .map(({ along, axis, ...at }) =>
      [along, axis, ...[at.x0, at.x1, at.y0, at.y1].map(written)].join(":"),
    )
    .join(",");

/** Parses the first items of a list; undefined if one is invalid. */
function listOf<T>(
  text: string,
  between: string,
  read: (one: string) => T | undefined,
): T[] | undefined {
  const all = text === "" ? [] : text.split(between, MAX_LISTED).map(read);
  return all.every((one) => one !== undefined) ? all : undefined;
}

/** Keeps a text that can be parsed. */
const validText = (read: (text: string) => unknown) => (text: string) =>
  read(text) ? text : undefined;

const FIELDS = {
  path,
  view: oneOf(...VIEWS),
  sheet: oneOf(...SHEET_VIEWS, "none"),
  tracks: validText(tracksOf),
  part: ordinal,
  device: ordinal,
  a: path,
  aPart: ordinal,
  pins: validText(pinsOf),
  cell: validText(cellOf),
  ranks: (text: string) => text.slice(0, 500),
  iteration: (text: string) => (/^\d{1,20}$/.test(text) ? text : undefined),
  sizes: (text: string) => (/^[\d/ ]{0,40}$/.test(text) ? text : undefined),
  rows: oneOf("steps"),
  axis: AXES,
  x0: number,
  x1: number,
  sel: blockReference,
  range: validText(rangeOf),
  at: event,
  from: event,
  to: event,
  markers: validText(markersOf),
  rulers: validText(rulersOf),
  capacity: (text: string) =>
    Number(text) > 0 && Number(text) < MAX_CAPACITY_GIB ? Number(text) : undefined,
  whatIf: (text: string) => text.slice(0, 2000),
  levers: oneOf("all"),
  find: (text: string) => text.slice(0, 500),
  filter: (text: string) => text.slice(0, 2000),
  color: oneOf(...(Object.keys(COLORS) as ColorBy[])),
  group: oneOf(...(Object.keys(GROUPS) as GroupBy[])),
  peak: ordinal,
  source: validText(codePlaceOf),
  mapColor: oneOf(...(Object.keys(MAP_COLORS) as MapColor[])),
  theme: oneOf("auto", "light", "dark"),
};

/**
 * The valid fields of a state. Scripts and embedding pages may pass any object. A state of another
 * version is ignored.
 */
export function validState(state: {
  readonly v?: unknown;
  readonly view?: unknown;
  readonly [field: string]: unknown;
}): ViewState {
  if (String(state.v ?? 1) !== "1") return {};
  // A place that is now a part of the summary.
  if (state.view === "what-if") return validState({ ...state, view: "summary", levers: "all" });
  const found = Object.entries(FIELDS).flatMap(([name, read]) => {
    const given = state[name] ?? undefined;
    const value = given === undefined ? undefined : read(String(given));
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(found);
}

/** Parses a fragment such as `#v=1&path=..`. */
export const parseState = (fragment: string): ViewState =>
  validState(Object.fromEntries(new URLSearchParams(fragment.replace(/^#/, ""))));

/** Three decimals are less than a pixel at the deepest useful zoom. */
const written = (value: string | number) =>
  String(typeof value === "number" ? Math.round(value * 1000) / 1000 : value);

/** The fragment for `parseState`. */
export function formatState(state: ViewState): string {
  const parameters = new URLSearchParams({ v: "1" });
  for (const name of Object.keys(FIELDS) as (keyof typeof FIELDS)[]) {
    const value = state[name];
    if (value !== undefined) parameters.set(name, written(value));
  }
  // Fragments may contain these characters, which keep links readable.
  return `#${parameters}`
    .replaceAll("%2F", "/")
    .replaceAll("%3A", ":")
    .replaceAll("%40", "@")
    .replaceAll("%2C", ",");
}
