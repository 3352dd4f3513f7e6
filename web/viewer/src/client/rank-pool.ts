// Which files have a worker. At most `limit` load at once and the rest queue; of those that are loaded, the `limit` most
// recently looked at keep their worker. A worker is ended to cancel its load or to give its memory back: wasm memory
// never shrinks.

import type { Failure, Loaded } from "../generated/protocol.js";
import { RankClient } from "./rank-client.js";
import type { RankFile } from "./rank-file.js";
import type { Modules, PreparedWorker } from "./wasm.js";

const MOST = 8;

const CANCELLED: Failure = { id: null, message: "Not read to the end: something else was opened.", hint: null };

export interface PoolEvents {
  progress(file: RankFile): void;
  ready(file: RankFile): void;
  failed(file: RankFile, failure: Failure): void;
  refused(failure: Failure): void;
}

export class RankPool {
  readonly #modules: Modules;
  readonly #events: PoolEvents;
  readonly #limit = Math.min(navigator.hardwareConcurrency || 1, MOST);
  #queue: RankFile[] = [];
  readonly #loading = new Set<RankFile>();
  /** Loaded files that have a worker, the one looked at last at the end. */
  #idle: RankFile[] = [];
  #focused: RankFile | null = null;
  #spare: PreparedWorker | null;

  constructor(modules: Modules, events: PoolEvents) {
    this.#modules = modules;
    this.#events = events;
    this.#spare = modules.spawn();
  }

  /** Loads these, in this order. */
  open(files: readonly RankFile[]): void {
    this.#queue.push(...files);
    this.#fill();
  }

  /** Somebody looks at this file: it is read next if it waits, and again if it was released. */
  focus(file: RankFile): void {
    const { state } = file.load.peek();
    this.#focused = file;
    if (this.#idle.includes(file)) {
      this.#idle = [...this.#idle.filter((other) => other !== file), file];
    } else if (state === "queued" || (state === "ready" && !this.#loading.has(file))) {
      this.#queue = [file, ...this.#queue.filter((other) => other !== file)];
      this.#fill();
    }
  }

  /** Ends all workers but a warm one. */
  clear(): void {
    for (const file of [...this.#queue, ...this.#loading, ...this.#idle]) {
      this.#end(file);
      if (!file.settled) file.load.value = { state: "error", failure: CANCELLED };
    }
    this.#queue = [];
    this.#loading.clear();
    this.#idle = [];
    this.#focused = null;
    this.#spare ??= this.#modules.spawn();
  }

  /** Ends all. */
  destroy(): void {
    this.clear();
    this.#spare?.worker.terminate();
    this.#spare = null;
  }

  #fill(): void {
    while (this.#loading.size < this.#limit) {
      const file = this.#queue.shift();
      if (file === undefined) break;
      this.#start(file);
    }
    // A warm worker for the next drop, once this one needs no more.
    if (this.#queue.length === 0 && this.#loading.size === 0) this.#spare ??= this.#modules.spawn();
  }

  #start(file: RankFile): void {
    const prepared = this.#spare ?? this.#modules.spawn();
    this.#spare = null;
    const started = performance.now();
    this.#loading.add(file);
    if (file.load.peek().state === "queued") file.load.value = { state: "loading" };
    const { path, bytes, from } = file.source;
    const client = new RankClient(prepared, path, bytes, from, {
      progress: (progress) => {
        file.progress.value = progress;
        this.#events.progress(file);
      },
      loaded: (loaded) => {
        file.loadMs = performance.now() - started;
        this.#ready(file, loaded);
      },
      failed: (failure) => this.#failed(file, failure),
      refused: (failure) => this.#events.refused(failure),
    });
    file.client.value = client;
  }

  #ready(file: RankFile, loaded: Loaded): void {
    this.#loading.delete(file);
    this.#idle.push(file);
    file.progress.value = null;
    file.load.value = { state: "ready", loaded };
    this.#release();
    this.#fill();
    this.#events.ready(file);
  }

  /** Ends the workers of the files that were looked at longest ago, never of the one on screen. */
  #release(): void {
    const candidates = this.#idle.filter((file) => file !== this.#focused);
    for (const file of candidates.slice(0, Math.max(0, this.#idle.length - MOST))) {
      this.#end(file);
      this.#idle = this.#idle.filter((other) => other !== file);
    }
  }

  #failed(file: RankFile, failure: Failure): void {
    this.#loading.delete(file);
    this.#idle = this.#idle.filter((other) => other !== file);
    this.#end(file);
    file.load.value = { state: "error", failure };
    this.#fill();
    this.#events.failed(file, failure);
  }

  #end(file: RankFile): void {
    file.client.peek()?.terminate();
    file.client.value = null;
    file.progress.value = null;
  }
}
