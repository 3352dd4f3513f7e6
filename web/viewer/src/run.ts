// The vocabulary of a run: its files, rows, the focused trace, and the element around the session.

import type { RankFile } from "./client/rank-file.js";
import type { Places } from "./client/wasm.js";
import type { AxisKind, BlockDetail, DeviceSummary, Failure, Part } from "./generated/protocol.js";
import type { SourceLine } from "./host/events.js";
import type { DrawableTrace } from "./plot/timeline-plot.js";
import type { ViewState } from "./view-state.js";

/** The files that are open together. */
export interface Run {
  title: string;
  countText: string;
  files: RankFile[];
  /** Whether the ranks are known from an index, and their files are read when they are chosen. */
  isIndexed: boolean;
  /** Files of searched folders that are no snapshots. They have no row. */
  skipped: readonly RankFile[];
  /** Their number in words, with its raw value; null if there are none. */
  skippedText: { text: string; value: string } | null;
}

/** What a drop does: add files to the open run, or open them in its place. */
export type Dropping = "add" | "open";

/** One row of the rail: a file, or one of several snapshots in a file. */
export interface Row {
  file: RankFile;
  part: number;
  label: string;
}

/** The row in focus. `device` is null until one is chosen. */
export interface Focus {
  file: RankFile;
  part: number;
  device: number | null;
}

/** The focused trace, once its file is read. */
export interface Trace {
  file: RankFile;
  partIndex: number;
  part: Part;
  device: DeviceSummary | null;
}

/** What the session needs from the element that contains it. */
export interface Host {
  readonly places: Places;
  /** The template of reports; null where none can be written. */
  readonly report: string | null;
  focusSearch(): void;
  /** Opens the browser's file dialog. */
  askForFiles(): void;
  /** The page's address with a view state in it. */
  link(state: ViewState): string;
  /** Offers a line of source to the page around the viewer. True if it shows the line itself. */
  showLine(line: SourceLine): boolean;
}

export interface SessionEvents {
  progress(file: RankFile): void;
  loaded(file: RankFile): void;
  selected(detail: BlockDetail | null): void;
  failed(path: string | null, failure: Failure): void;
}

/** The rows of the rail that a file has now. */
export function rowsOf(file: RankFile): Row[] {
  const names = file.names.peek() ?? [file.planned.label];
  return names.map((label, part) => ({ file, part, label }));
}

/**
 * The row that a path in an answer names: `FILE`, or `FILE#SNAPSHOT` for one of several snapshots
 * in a file. A file that is not read has one row for all of them.
 */
export function rowAt(rows: readonly Row[], path: string): Row | undefined {
  const known = ({ file, label }: Row) =>
    file.names.peek() === null ? file.path : `${file.path}#${label}`;
  return (
    rows.find((row) => known(row) === path) ?? rows.find((row) => path.startsWith(`${known(row)}#`))
  );
}

/** The name of a row in texts: `rank 3` if its rank is known, else its label, with its group. */
export function rowName({ file: { planned }, label }: Row): string {
  const name = label === String(planned.rank) ? `rank ${label}` : label;
  return planned.group === "" ? name : `${planned.group} / ${name}`;
}

/** Any thrown value as a failure. */
export function failureOf(error: unknown): Failure {
  if (typeof error !== "object" || error === null || !("message" in error))
    return { id: null, message: String(error), hint: null };
  const hint = "hint" in error && typeof error.hint === "string" ? error.hint : null;
  return { id: null, message: String(error.message), hint };
}

/**
 * The trace in focus; null until its file is read. A link may name a snapshot or a device that the
 * file does not have.
 */
export function traceOf(focus: Focus | null): Trace | null {
  const load = focus?.file.load.value;
  if (!focus || load?.state !== "ready") return null;
  const partIndex = focus.part in load.loaded.parts ? focus.part : 0;
  const part = load.loaded.parts[partIndex];
  if (!part) return null;
  const wanted = part.devices.find(({ device }) => device === focus.device);
  const device = wanted ?? part.devices.find(({ device }) => device === part.defaultDevice) ?? null;
  return { file: focus.file, partIndex, part, device };
}

/** A trace with the axis to draw it along; null when it has no device. */
export function drawableOf(trace: Trace | null, wanted: AxisKind): DrawableTrace | null {
  const device = trace?.device;
  if (!trace || !device) return null;
  const axis = device.axes.find(({ kind }) => kind === wanted) ?? device.axes[0];
  if (!axis) return null;
  const target = { part: trace.partIndex, device: device.device };
  return { file: trace.file, client: trace.file.client.value, target, device, axis };
}

/** Resolves when the file is read or refused. */
export function settled(file: RankFile): Promise<void> {
  return new Promise((resolve) => {
    const stop = file.load.subscribe(() => {
      if (file.settled) {
        resolve();
        queueMicrotask(() => stop());
      }
    });
  });
}

/** Why a file cannot be read. Null if it can, or if a part of it may be. */
export function refusalOf({ load, tooLarge }: RankFile): Failure | null {
  const state = load.peek();
  return state.state !== "error" || state.again || tooLarge.peek() !== null ? null : state.failure;
}
