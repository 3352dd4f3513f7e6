// A file of the run as the page knows it: what it was planned as, how far its load is, and its
// worker while it has one.

import { type Signal, signal } from "@preact/signals";
import type {
  Failure,
  Loaded,
  PlannedRow,
  Progress,
  RankCard,
  TooLarge,
} from "../generated/protocol.js";
import type { Bytes, EventRange } from "./messages.js";
import type { RankClient } from "./rank-client.js";

/** Something that can be read, more than once. */
export interface Source {
  /** Path within the drop. */
  path: string;
  bytes: number;
  from: Bytes;
}

/** `again`: it may be read if it is tried once more. */
export type Load =
  | { state: "queued" }
  | { state: "loading" }
  | { state: "ready"; loaded: Loaded }
  | { state: "error"; failure: Failure; again: boolean };

export class RankFile {
  readonly source: Source;
  /** Where it stands in the run: its number stays, its group may change with what is added. */
  planned: PlannedRow;
  /** Which of its events are read; null for all. */
  part: EventRange | null = null;
  /** What can be opened of it, once it has shown itself to be too large. */
  readonly tooLarge: Signal<TooLarge | null> = signal(null);
  /**
   * A released file stays `ready`: its summary is kept, and its worker comes back when it is looked
   * at.
   */
  readonly load: Signal<Load> = signal({ state: "queued" });
  readonly client: Signal<RankClient | null> = signal(null);
  /** Bytes read so far, while it is read for the first time or again. */
  readonly progress: Signal<Progress | null> = signal(null);
  /**
   * Its rows in the overview, one a snapshot in it, once a worker that answers all views has read
   * it.
   */
  readonly cards: Signal<readonly (RankCard | null)[] | null> = signal(null);
  /** From the start of its reading to its summary. */
  loadMs = 0;

  constructor(source: Source, planned: PlannedRow) {
    this.source = source;
    this.planned = planned;
  }

  get path(): string {
    return this.source.path;
  }

  get settled(): boolean {
    const { state } = this.load.peek();
    return state === "ready" || state === "error";
  }
}
