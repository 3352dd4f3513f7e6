// What is on screen, as a value that can be kept in a link: every field may be missing, and a bad
// one is left out without taking the others with it.

import type { AxisKind, ColorBy, MarkedRange } from "./generated/protocol.js";
import { type Ruler, TOO_LARGE, VIEWS, type View } from "./linked.js";

export type Theme = "auto" | "light" | "dark";

export interface ViewState {
  v?: 1;
  /** The view in the center, and the one in the drawer below it. */
  view?: View;
  drawer?: View | "none";
  /** The file's path within the drop. */
  path?: string;
  /** Which of the snapshots in the file; the first is left out. */
  part?: number;
  device?: number;
  /** What it is compared with, once that was chosen: a path, and which of the snapshots in it. */
  a?: string;
  aPart?: number;
  axis?: AxisKind;
  /** The edges of the view in slots of the axis. */
  x0?: number;
  x1?: number;
  /** The selected block: `<device>:<address>@<event|pre>`. */
  sel?: string;
  /** The range that is marked, in slots of its axis: `event:1000:3000`. */
  range?: string;
  /** The event of the time cursor; -1 is before the window. */
  at?: number;
  /** The events that are marked: `500,1500`. */
  markers?: string;
  /**
   * What rulers measure, in bytes or in slots of an axis, as it lies: `y:event:1000:1000:0:2048`,
   * the next behind a comma.
   */
  rulers?: string;
  /** The device's memory in GiB. */
  capacity?: number;
  /** What is searched. */
  find?: string;
  color?: ColorBy;
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
const reference = (text: string) => (/^\d+:0x[0-9a-f]+@(~?\d+|pre)$/.test(text) ? text : undefined);

const AXES = oneOf<AxisKind>("event", "time");
const path = (text: string) => text || undefined;

/** A marked range from its text. */
export function rangeOf(text: string): MarkedRange | undefined {
  const [, along, from, to] = /^(event|time):(-?[\d.]+):(-?[\d.]+)$/.exec(text) ?? [];
  const [axis, x0, x1] = [AXES(along ?? ""), number(from ?? ""), number(to ?? "")];
  return axis && x0 !== undefined && x1 !== undefined && x0 < x1 ? { axis, x0, x1 } : undefined;
}

export const rangeText = ({ axis, x0, x1 }: MarkedRange) => `${axis}:${written(x0)}:${written(x1)}`;

/** Marked events from their text. */
export const markersOf = (text: string): number[] | undefined => listOf(text, event);

/** Rulers from their text. */
export const rulersOf = (text: string): Ruler[] | undefined =>
  listOf(text, (one) => {
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

/** What stands between commas; nothing when one of them is not sound. */
function listOf<T>(text: string, read: (one: string) => T | undefined): T[] | undefined {
  const all = text === "" ? [] : text.split(",").map(read);
  return all.every((one) => one !== undefined) ? all : undefined;
}

const soundText = (read: (text: string) => unknown) => (text: string) =>
  read(text) ? text : undefined;

const FIELDS = {
  path,
  view: oneOf(...VIEWS),
  drawer: oneOf(...VIEWS, "none"),
  part: ordinal,
  device: ordinal,
  a: path,
  aPart: ordinal,
  axis: AXES,
  x0: number,
  x1: number,
  sel: reference,
  range: soundText(rangeOf),
  at: event,
  markers: soundText(markersOf),
  rulers: soundText(rulersOf),
  capacity: (text: string) =>
    Number(text) > 0 && Number(text) < TOO_LARGE ? Number(text) : undefined,
  find: (text: string) => text.slice(0, 500),
  color: oneOf("stack", "category", "size", "age", "stream", "segment"),
  theme: oneOf("auto", "light", "dark"),
};

/**
 * What of a state is sound: one that a script or a host gives may be of another version. A newer
 * one is not guessed at.
 */
export function soundState(state: {
  readonly v?: unknown;
  readonly [field: string]: unknown;
}): ViewState {
  if (String(state.v ?? 1) !== "1") return {};
  const found = Object.entries(FIELDS).flatMap(([name, read]) => {
    const given = state[name] ?? undefined;
    const value = given === undefined ? undefined : read(String(given));
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(found);
}

/** Reads `#v=1&path=..`. */
export const parseState = (fragment: string): ViewState =>
  soundState(Object.fromEntries(new URLSearchParams(fragment.replace(/^#/, ""))));

/** Three digits behind the point are less than a pixel at the deepest zoom that is of use. */
const written = (value: string | number) =>
  String(typeof value === "number" ? Math.round(value * 1000) / 1000 : value);

/** Writes what `parseState` reads. */
export function formatState(state: ViewState): string {
  const parameters = new URLSearchParams({ v: "1" });
  for (const name of Object.keys(FIELDS) as (keyof typeof FIELDS)[]) {
    const value = state[name];
    if (value !== undefined) parameters.set(name, written(value));
  }
  // These are allowed in a fragment, and a link is easier to read with them.
  return `#${parameters}`
    .replaceAll("%2F", "/")
    .replaceAll("%3A", ":")
    .replaceAll("%40", "@")
    .replaceAll("%2C", ",");
}
