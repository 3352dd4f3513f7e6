// The open run: its files and rows, and the workers that read them.

import { computed, effect, type Signal, signal, untracked } from "@preact/signals";
import { Coordinator } from "./client/coordinator.js";
import type { RankClient } from "./client/rank-client.js";
import type { RankFile } from "./client/rank-file.js";
import { type PoolEvents, RankPool } from "./client/rank-pool.js";
import type { Modules } from "./client/wasm.js";
import type { Loaded } from "./generated/protocol.js";
import type { ModelDims } from "./model-dims.js";
import { type Dropping, type Run, rowsOf } from "./run.js";

async function summarize(file: RankFile, client: RankClient, loaded: Loaded): Promise<void> {
  const cards = loaded.parts.map(({ defaultDevice, devices }, part) =>
    devices.length === 0
      ? null
      : client.view({ part, device: defaultDevice }, "card", { card: {} }),
  );
  file.ownCards.value = await Promise.all(cards);
}

/** What became of the files of a run. */
export interface Tally {
  /** Files that are neither read nor refused. */
  unread: number;
  failed: number;
  /** Files that may get cards and have none yet. */
  waiting: number;
  /** Cards that workers of files gave. */
  cards: number;
}

/**
 * The time between two counts of a run's files: at least, at most, and per file. Each count makes
 * the page draw a frame, which costs as much as reading some files.
 */
const COUNT_MS = { least: 100, most: 1000, each: 0.2 };

function tallyOf(files: readonly RankFile[]): Tally {
  const tally: Tally = { unread: 0, failed: 0, waiting: 0, cards: 0 };
  for (const file of files) {
    if (!file.settled) tally.unread += 1;
    const [{ state }, own] = [file.load.peek(), file.ownCards.peek()];
    const isKnown = own !== null || file.cards.peek() !== null;
    if (state === "error") tally.failed += 1;
    else if (!isKnown && state !== "unread") tally.waiting += 1;
    tally.cards += own?.filter((card) => card !== null).length ?? 0;
  }
  return tally;
}

export class RunStore {
  readonly run: Signal<Run | null> = signal(null);
  /** Dimensions of the model that the user gives; null for those that sizes tell. */
  readonly dims: Signal<ModelDims | null> = signal(null);
  /** All rows of the rail. */
  readonly rows = computed(() => {
    void this.#renamed.value;
    return this.run.value?.files.flatMap(rowsOf) ?? [];
  });
  /** Whether several rows are ranks, which can be compared. */
  readonly hasRanks = computed(
    () => this.rows.value.filter(({ file }) => file.planned.rank !== null).length > 1,
  );
  /** Counts the readings of the run's index. */
  readonly indexed: Signal<number> = signal(0);
  /** How far the index of the run is read in words; empty if it is. */
  readonly reading: Signal<string> = signal("");
  /** What becomes of the files that are being dragged over the page; null without a drag. */
  readonly dropping: Signal<Dropping | null> = signal(null);
  /**
   * Changes soon after the state of a file has changed. What depends on all files follows this and
   * not each file: then a change of one file costs the same in a run of any size.
   */
  readonly changes: Signal<number> = signal(0);
  /** Counts of the files, as of the last change. */
  readonly tally = computed(() => {
    void this.changes.value;
    return tallyOf(this.run.value?.files ?? []);
  });
  /** Changes when a file gets other rows. */
  readonly #renamed: Signal<number> = signal(0);
  /** The files of the run, each with the end of what follows its state. */
  readonly #followed = new Map<RankFile, () => void>();
  readonly #unread = new Set<RankFile>();
  /** Files that are unread or have no cards yet. */
  readonly #unfinished = new Set<RankFile>();
  #counting: ReturnType<typeof setTimeout> | null = null;
  #counted = 0;
  readonly #stop: () => void;
  readonly modules: Modules;
  readonly pool: RankPool;
  readonly coordinator: Coordinator;

  constructor(modules: Modules, events: Omit<PoolEvents, "summarize">) {
    this.modules = modules;
    this.coordinator = new Coordinator(modules);
    this.pool = new RankPool(modules, { ...events, summarize }, navigator.hardwareConcurrency || 1);
    this.#stop = effect(() => {
      const files = new Set(this.run.value?.files);
      untracked(() => this.#follow(files));
    });
  }

  get files(): readonly RankFile[] {
    return this.run.peek()?.files ?? [];
  }

  /** All files of the run, also the skipped ones, by their number. */
  get numbered(): readonly RankFile[] {
    const { files = [], skipped = [] } = this.run.peek() ?? {};
    return [...files, ...skipped].toSorted((a, b) => a.planned.file - b.planned.file);
  }

  /** The number of files that are neither read nor refused. */
  get unread(): number {
    return this.#unread.size;
  }

  #follow(files: ReadonlySet<RankFile>): void {
    for (const [file, stop] of this.#followed) {
      if (files.has(file)) continue;
      stop();
      this.#followed.delete(file);
      this.#unread.delete(file);
      this.#unfinished.delete(file);
    }
    for (const file of files) {
      if (this.#followed.has(file)) continue;
      const state = effect(() => {
        const { state } = file.load.value;
        const rests = state === "error" || state === "unread";
        if (state === "ready" || rests) this.#unread.delete(file);
        else this.#unread.add(file);
        if (rests || file.ownCards.value !== null || file.cards.value !== null)
          this.#unfinished.delete(file);
        else this.#unfinished.add(file);
        untracked(() => this.#changed());
      });
      let names = file.names.peek();
      const rows = effect(() => {
        if (file.names.value === names) return;
        names = file.names.value;
        this.#renamed.value = this.#renamed.peek() + 1;
      });
      this.#followed.set(file, () => {
        state();
        rows();
      });
    }
  }

  /** Counts the files after a pause, and at once when all are finished. */
  #changed(): void {
    const isLast = this.#unfinished.size === 0;
    if (this.#counting !== null && !isLast) return;
    if (this.#counting !== null) clearTimeout(this.#counting);
    const { least, most, each } = COUNT_MS;
    const pause = Math.min(most, Math.max(least, each * this.#followed.size));
    const left = isLast ? 0 : this.#counted + pause - performance.now();
    this.#counting = setTimeout(() => {
      this.#counting = null;
      this.#counted = performance.now();
      this.changes.value = this.changes.peek() + 1;
    }, left);
  }

  destroy(): void {
    this.#stop();
    this.#follow(new Set());
    if (this.#counting !== null) clearTimeout(this.#counting);
    this.pool.destroy();
    this.coordinator.destroy();
  }
}
