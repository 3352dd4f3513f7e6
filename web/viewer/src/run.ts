// What a session speaks of: a drop, its rows, what is looked at.

import type { RankFile } from "./client/rank-file.js";
import type { Places } from "./client/wasm.js";
import type { AxisKind, BlockDetail, DeviceSummary, Failure, Part } from "./generated/protocol.js";
import type { Shown } from "./plot/timeline-plot.js";
import type { ViewState } from "./view-state.js";

/** A drop. */
export interface Run {
  title: string;
  countText: string;
  files: RankFile[];
}

/** What becomes of files that are dropped: they come beside what is open, or in its place. */
export type Dropping = "add" | "open";

/** One row of the rail: a file, or one of the snapshots in it. */
export interface Row {
  file: RankFile;
  part: number;
  label: string;
}

/** What the user looks at; `device` is null until one is chosen. */
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

/** What the session asks of the element that it is in. */
export interface Host {
  readonly places: Places;
  focusSearch(): void;
  /** Opens the browser's file dialog. */
  askForFiles(): void;
  /** The address of the page with what is on screen in it. */
  link(state: ViewState): string;
}

export interface SessionEvents {
  progress(file: RankFile): void;
  loaded(file: RankFile): void;
  selected(detail: BlockDetail | null): void;
  failed(path: string | null, failure: Failure): void;
}

/** The rows of the rail that a file has. */
export function rowsOf(file: RankFile): Row[] {
  const load = file.load.value;
  const parts = load.state === "ready" ? load.loaded.parts : [];
  if (parts.length < 2) return [{ file, part: 0, label: file.planned.label }];
  return parts.map(({ name }, part) => ({ file, part, label: name }));
}

/** What went wrong, as a failure. */
export function failureOf(error: unknown): Failure {
  if (typeof error !== "object" || error === null || !("message" in error))
    return { id: null, message: String(error), hint: null };
  const hint = "hint" in error && typeof error.hint === "string" ? error.hint : null;
  return { id: null, message: String(error.message), hint };
}

/** The trace in focus; null until its file is read. */
export function traceOf(focus: Focus | null): Trace | null {
  const load = focus?.file.load.value;
  if (!focus || load?.state !== "ready") return null;
  const part = load.loaded.parts[focus.part];
  if (!part) return null;
  const wanted = part.devices.find(({ device }) => device === focus.device);
  const device = wanted ?? part.devices.find(({ device }) => device === part.defaultDevice) ?? null;
  return { file: focus.file, partIndex: focus.part, part, device };
}

/** What of it is drawn, along an axis that it has; null when there is no device. */
export function shownOf(trace: Trace | null, wanted: AxisKind): Shown | null {
  const device = trace?.device;
  if (!trace || !device) return null;
  const axis = device.axes.find(({ kind }) => kind === wanted) ?? device.axes[0];
  if (!axis) return null;
  const target = { part: trace.partIndex, device: device.device };
  return { file: trace.file, client: trace.file.client.value, target, device, axis };
}

/** Settled when the file is read or refused. */
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
