// A file of the run: its planned row, the state of its load, and its worker while it has one.

import { computed, type Signal, signal } from "@preact/signals";
import type {
  Card,
  Failure,
  FileCard,
  Loaded,
  PlannedRow,
  Progress,
  TooLarge,
} from "../generated/protocol.js";
import type { Bytes, EventRange } from "./messages.js";
import type { RankClient } from "./rank-client.js";
import { visible } from "./visible.js";

/** A file, buffer or address that can be read repeatedly. */
export interface Source {
  /** Path within the opened files. */
  path: string;
  bytes: number;
  from: Bytes;
  /** The file that `vramscope.record` writes beside the snapshot (SIDECAR.md). */
  beside?: Bytes;
  /** Dimensions of the model that the user gives: a `config.json`, or a list of widths. */
  dims?: string;
  /** The start of the addresses of source files that call stacks name. */
  code?: string;
  /** A search of a folder found the file, so it may be something else than a snapshot. */
  searched?: boolean;
  /** The file is known from an index only. */
  absent?: boolean;
}

/**
 * `unread`: the file has a card in an index, and is read when a user chooses it. `again`: loading
 * again may succeed.
 */
export type Load =
  | { state: "unread" }
  | { state: "queued" }
  | { state: "loading" }
  | { state: "ready"; loaded: Loaded }
  | { state: "error"; failure: Failure; again: boolean };

export class RankFile {
  readonly source: Source;
  /** The path as shown and as named in answers. */
  readonly path: string;
  /** The file's place in the run. Adding files may change its group, but not its number. */
  planned: PlannedRow;
  /** The range of events to read; null for all. */
  part: EventRange | null = null;
  /** The parts of a file that exceeds the memory limit; null for other files. */
  readonly tooLarge: Signal<TooLarge | null> = signal(null);
  /** An evicted file stays `ready`: its summary is kept, and focusing it loads it again. */
  readonly load: Signal<Load> = signal({ state: "queued" });
  readonly client: Signal<RankClient | null> = signal(null);
  /** Progress of a load, also of a repeated one. */
  readonly progress: Signal<Progress | null> = signal(null);
  /**
   * Cards of the snapshots in the file, as its worker gives them; null until they are computed, and
   * for a file that is known from an index.
   */
  readonly ownCards: Signal<readonly (FileCard | null)[] | null> = signal(null);
  /** Cards of the snapshots in the file, as the coordinator shows them; null until it does. */
  readonly cards: Signal<readonly (Card | undefined)[] | null> = signal(null);
  /**
   * The names of several snapshots in the file; empty for a skipped file, null for a file with one
   * row. It changes seldom, so that the list of all rows is not made with each state of a load.
   */
  readonly names = computed<readonly string[] | null>(() => {
    if (this.skipped || this.closed.value) return [];
    const load = this.load.value;
    const parts = load.state === "ready" ? load.loaded.parts : [];
    return parts.length < 2 ? null : parts.map(({ name }) => name);
  });
  /** Whether the user has closed the file. It keeps its number, and gets no row. */
  readonly closed: Signal<boolean> = signal(false);
  /** Milliseconds from the start of the load to the summary. */
  loadMs = 0;

  constructor(source: Source, planned: PlannedRow) {
    this.source = source;
    this.path = visible(source.path);
    this.planned = planned;
  }

  /** Whether a folder's file is no snapshot. A skipped file gets no row in the run. */
  get skipped(): boolean {
    const load = this.load.value;
    const foreign = load.state === "error" && load.failure.file === "no_snapshot";
    return foreign && this.source.searched === true;
  }

  get settled(): boolean {
    const { state } = this.load.peek();
    return state === "ready" || state === "error" || state === "unread";
  }
}
