// The open run: its files and rows, and the workers that read them.

import { computed, effect, type Signal, signal } from "@preact/signals";
import { Coordinator } from "./client/coordinator.js";
import type { RankClient } from "./client/rank-client.js";
import type { RankFile } from "./client/rank-file.js";
import { type PoolEvents, RankPool } from "./client/rank-pool.js";
import type { Modules } from "./client/wasm.js";
import type { Loaded } from "./generated/protocol.js";
import { type Dropping, type Run, rowsOf } from "./run.js";

async function summarize(file: RankFile, client: RankClient, loaded: Loaded): Promise<void> {
  const cards = loaded.parts.map(({ defaultDevice, devices }, part) =>
    devices.length === 0
      ? null
      : client.view({ part, device: defaultDevice }, "card", { card: {} }),
  );
  file.cards.value = await Promise.all(cards);
}

export class RunStore {
  readonly run: Signal<Run | null> = signal(null);
  /** All rows of the rail. */
  readonly rows = computed(() => this.run.value?.files.flatMap(rowsOf) ?? []);
  /** What becomes of the files that are being dragged over the page; null without a drag. */
  readonly dropping: Signal<Dropping | null> = signal(null);
  /** The number of files that are neither read nor refused. */
  readonly unread: Signal<number> = signal(0);
  readonly #unread = new Set<RankFile>();
  readonly #stop: () => void;
  readonly modules: Modules;
  readonly pool: RankPool;
  readonly coordinator: Coordinator;

  constructor(modules: Modules, events: Omit<PoolEvents, "summarize">) {
    this.modules = modules;
    this.coordinator = new Coordinator(modules);
    this.pool = new RankPool(
      modules,
      {
        ...events,
        summarize,
        ready: (file) => {
          this.#settled(file);
          events.ready(file);
        },
        failed: (file, failure) => {
          this.#settled(file);
          events.failed(file, failure);
        },
      },
      navigator.hardwareConcurrency || 1,
    );
    this.#stop = effect(() => this.#count(this.run.value?.files ?? []));
  }

  get files(): readonly RankFile[] {
    return this.run.peek()?.files ?? [];
  }

  /** All files of the run, also the skipped ones, by their number. */
  get numbered(): readonly RankFile[] {
    const { files = [], skipped = [] } = this.run.peek() ?? {};
    return [...files, ...skipped].toSorted((a, b) => a.planned.file - b.planned.file);
  }

  #count(files: readonly RankFile[]): void {
    this.#unread.clear();
    for (const file of files) if (!file.settled) this.#unread.add(file);
    this.unread.value = this.#unread.size;
  }

  #settled(file: RankFile): void {
    this.#unread.delete(file);
    this.unread.value = this.#unread.size;
  }

  destroy(): void {
    this.#stop();
    this.pool.destroy();
    this.coordinator.destroy();
  }
}
