// The workers of a run's files. At most `limit` files load at once, twice as many small ones, and
// the others queue. Loaded
// files keep their worker in LRU order while the memory budget allows. Ending a worker is the only
// way to cancel a load or to free its memory, because wasm memory never shrinks. Starting one takes
// longer than reading a small file, so an idle worker with little memory reads the next file.

import { effect } from "@preact/signals";
import type { Failure, Loaded, TooLarge } from "../generated/protocol.js";
import type { EventRange } from "./messages.js";
import { RankClient } from "./rank-client.js";
import type { RankFile } from "./rank-file.js";
import type { Modules, PreparedWorker } from "./wasm.js";

/** Maximum number of workers: loading at once, and kept when loaded. */
const MAX_WORKERS = 8;

/** Bytes up to which a file is read so fast that messages take as long. */
const SMALL_BYTES = 256 << 10;

/** Bytes of the largest file that is not worth starting threads for. */
const SINGLE_THREAD_BYTES = 64 << 20;

const CANCELLED: Failure = {
  id: null,
  message: "Loading was cancelled because another file was opened.",
  hint: null,
};

/** The parts of `Modules` that start workers. */
export type WorkerFactory = Pick<Modules, "spawn" | "single">;

export interface PoolEvents {
  progress(file: RankFile): void;
  ready(file: RankFile): void;
  failed(file: RankFile, failure: Failure): void;
  /** A worker has crashed. Called while its file's view still has its state. */
  crashing(file: RankFile): void;
  /** A worker could not answer a query; the file stays loaded. */
  refused(failure: Failure): void;
  /** Fetches the file's cards for the overview, before its worker may be evicted. */
  summarize(file: RankFile, client: RankClient, loaded: Loaded): Promise<void>;
}

export class RankPool {
  readonly #workers: WorkerFactory;
  readonly #events: PoolEvents;
  readonly #limit: number;
  #budget = Number.POSITIVE_INFINITY;
  /** Memory limit of one file in bytes; null for the worker's own limit. */
  memoryLimit: number | null = null;
  #queue: RankFile[] = [];
  readonly #loading = new Map<RankFile, RankClient>();
  /** Loaded files that have a worker, least recently focused first. */
  #loaded: RankFile[] = [];
  #focused: RankFile | null = null;
  /** Reference counts of files whose worker must not be evicted. */
  readonly #acquired = new Map<RankFile, number>();
  /** Prepared workers for the next loads; one, if no file waits. */
  #spares: PreparedWorker[];
  /** Files whose worker has crashed. Their next worker has one thread. */
  readonly #crashed = new WeakSet<RankFile>();

  constructor(workers: WorkerFactory, events: PoolEvents, cores: number) {
    this.#workers = workers;
    this.#events = events;
    this.#limit = Math.min(Math.max(cores, 1), MAX_WORKERS);
    this.#spares = [workers.spawn({ early: true })];
  }

  /** Queues these files in this order. */
  open(files: readonly RankFile[]): void {
    this.#queue = [...this.#queue, ...files];
    this.#fill();
  }

  /** Marks the file as viewed: loads it next if it is queued, again if it was evicted. */
  focus(file: RankFile): void {
    this.#focused = file;
    if (this.#loaded.includes(file)) {
      this.#loaded = [...this.#loaded.filter((other) => other !== file), file];
    } else {
      this.#prioritize(file);
    }
  }

  /** Loads a range of a file's events. */
  readPart(file: RankFile, part: EventRange): void {
    file.part = part;
    this.#focused = file;
    this.again(file);
  }

  /** Unloads a file that was read in part, so that another part can be chosen. */
  choosePart(file: RankFile, failure: Failure): void {
    this.#end(file);
    file.ownCards.value = file.cards.value = null;
    file.load.value = { state: "error", failure, again: false };
    this.#fill();
  }

  /** Loads a file again after an error or a crash. */
  again(file: RankFile): void {
    file.load.value = { state: "queued" };
    this.#next(file);
  }

  /** Takes a file out: it is not read any more, and its memory is free. */
  close(file: RankFile): void {
    this.#queue = this.#queue.filter((other) => other !== file);
    this.#end(file);
    this.#fill();
  }

  /** Reads a loaded file again, because its source has changed. */
  renew(file: RankFile): void {
    this.#end(file);
    file.ownCards.value = file.cards.value = null;
    this.again(file);
  }

  /** The file's worker, kept until `release`. Null when the file cannot be loaded. */
  acquire(file: RankFile): Promise<RankClient | null> {
    this.#acquired.set(file, (this.#acquired.get(file) ?? 0) + 1);
    if (!this.#loaded.includes(file)) this.#prioritize(file);
    return new Promise((resolve) => {
      const stop = effect(() => {
        const [load, client] = [file.load.value, file.client.value];
        if (load.state === "unread") {
          resolve(null);
          queueMicrotask(() => stop());
          return;
        }
        if (load.state !== "error" && (load.state !== "ready" || client === null)) return;
        resolve(load.state === "error" ? null : client);
        queueMicrotask(() => stop());
      });
    });
  }

  /** Undoes one `acquire`. */
  release(file: RankFile): void {
    const count = (this.#acquired.get(file) ?? 0) - 1;
    if (count > 0) this.#acquired.set(file, count);
    else this.#acquired.delete(file);
    this.#evict();
  }

  /** Sets the memory budget in bytes for the workers of all loaded files. */
  setBudget(bytes: number): void {
    this.#budget = bytes;
    this.#evict();
  }

  /** Ends all workers but a spare one. */
  clear(): void {
    this.#endAll();
    this.#keepSpare();
  }

  /** Ends all workers. */
  destroy(): void {
    this.#endAll();
    for (const spare of this.#spares.splice(0)) spare.end();
  }

  #endAll(): void {
    for (const file of [...this.#queue, ...this.#loading.keys(), ...this.#loaded]) {
      this.#end(file);
      if (!file.settled) file.load.value = { state: "error", failure: CANCELLED, again: false };
    }
    this.#queue = [];
    this.#focused = null;
    this.#acquired.clear();
  }

  /** Loads a queued, evicted or unread file next. */
  #prioritize(file: RankFile): void {
    const isUnread = file.load.peek().state === "unread";
    if (isUnread && file.source.absent !== true) this.again(file);
    else if (this.#queue.includes(file) || file.load.peek().state === "ready") this.#next(file);
  }

  /** Puts a file at the head of the queue, unless it is loading already. */
  #next(file: RankFile): void {
    if (!this.#loading.has(file))
      this.#queue = [file, ...this.#queue.filter((other) => other !== file)];
    this.#fill();
  }

  #fill(): void {
    for (;;) {
      const [file] = this.#queue;
      if (file === undefined || this.#loading.size >= this.#limitOf(file)) break;
      this.#queue.shift();
      this.#start(file);
    }
    if (this.#queue.length === 0 && this.#loading.size === 0) this.#keepSpare();
  }

  /** Workers of small files wait for messages half of their time, so twice as many are at work. */
  #limitOf({ source: { bytes } }: RankFile): number {
    const isSmall = bytes > 0 && bytes <= SMALL_BYTES;
    return isSmall ? Math.min(2 * this.#limit, MAX_WORKERS) : this.#limit;
  }

  /** Keeps one worker for the next file. */
  #keepSpare(): void {
    if (this.#spares.length === 0) this.#spares.push(this.#workers.spawn());
    for (const spare of this.#spares.splice(1)) spare.end();
  }

  #start(file: RankFile): void {
    const prepared = this.#worker(file);
    const started = performance.now();
    if (file.load.peek().state === "queued") file.load.value = { state: "loading" };
    const bounds = { events: file.part, memory: this.memoryLimit };
    const client = new RankClient(prepared, file.source, bounds, {
      progress: (progress) => {
        file.progress.value = progress;
        this.#events.progress(file);
      },
      loaded: (loaded) => {
        file.loadMs = performance.now() - started;
        void this.#ready(file, client, loaded);
      },
      failed: (failure, tooLarge) =>
        this.#failed(file, failure, tooLarge, typeof file.source.from === "string"),
      crashed: (failure, unused) => {
        if (unused) return this.#replace(file);
        this.#crashed.add(file);
        this.#events.crashing(file);
        this.#failed(file, failure, null, true);
      },
      refused: (failure) => this.#events.refused(failure),
    });
    this.#loading.set(file, client);
    file.client.value = client;
  }

  /** A spare worker; a worker with threads for a large file that has several cores to itself. */
  #worker(file: RankFile): PreparedWorker {
    const threads = Math.floor(this.#limit / (this.#loading.size + this.#queue.length + 1));
    const threaded =
      threads > 1 && file.source.bytes > SINGLE_THREAD_BYTES && this.#workers.single === null;
    if (threaded && !this.#crashed.has(file)) return this.#workers.spawn({ threads });
    return this.#takeSpare() ?? this.#workers.spawn();
  }

  #takeSpare(): PreparedWorker | null {
    const spare = this.#spares.pop() ?? null;
    if (spare?.broken !== true) return spare;
    spare.end();
    return this.#takeSpare();
  }

  async #ready(file: RankFile, client: RankClient, loaded: Loaded): Promise<void> {
    this.#loaded.push(file);
    file.progress.value = null;
    file.load.value = { state: "ready", loaded };
    this.#events.ready(file);
    if (file.ownCards.peek() === null && file.cards.peek() === null)
      await this.#events.summarize(file, client, loaded);
    // The worker may have been ended meanwhile.
    if (this.#loading.get(file) !== client) return;
    this.#loading.delete(file);
    this.#evict();
    this.#fill();
  }

  /** Ends the least recently focused workers beyond the budget, but no worker in use. */
  #evict(): void {
    const inUse = (file: RankFile) =>
      file === this.#focused || this.#acquired.has(file) || this.#loading.has(file);
    const used = () =>
      this.#loaded.reduce((sum, { client }) => sum + (client.peek()?.wasmBytes ?? 0), 0);
    for (const file of this.#loaded.filter((candidate) => !inUse(candidate))) {
      if (this.#loaded.length <= MAX_WORKERS && used() <= this.#budget) return;
      this.#retire(file);
    }
  }

  #failed(file: RankFile, failure: Failure, tooLarge: TooLarge | null, again: boolean): void {
    this.#end(file);
    if (tooLarge?.choice) file.tooLarge.value = tooLarge;
    file.load.value = { state: "error", failure, again };
    this.#fill();
    this.#events.failed(file, failure);
  }

  /** Reads a file in a new worker: its worker had ended before. The spare ones may have, too. */
  #replace(file: RankFile): void {
    this.#end(file);
    for (const spare of this.#spares.splice(0)) spare.end();
    this.#next(file);
  }

  /** Takes the worker of a loaded file for a queued one, or ends it. */
  #retire(file: RankFile): void {
    const wanted = this.#queue.length > this.#spares.length;
    const prepared = wanted ? file.client.peek()?.handOver() : null;
    if (prepared) {
      this.#spares.push(prepared);
      file.client.value = null;
    }
    this.#end(file);
  }

  /** Ends the file's worker and forgets it. */
  #end(file: RankFile): void {
    this.#loading.delete(file);
    this.#loaded = this.#loaded.filter((other) => other !== file);
    file.client.peek()?.terminate();
    file.client.value = null;
    file.progress.value = null;
  }
}
