// Which files have a worker. At most `limit` load at once and the rest queue; of those that are
// loaded, the ones looked at last keep their worker, as many as the memory allows. A worker is
// ended to cancel its load or to give its memory back: wasm memory never shrinks.
//
// The first file of a run may be read by the small module, so that its picture is there soon; all
// others wait for the one that answers all views, and when that has come the first is read once
// more by it, behind the picture. What the small one cannot read (it knows pickles only) waits for
// the other, too.

import { effect } from "@preact/signals";
import type { Failure, Loaded, TooLarge } from "../generated/protocol.js";
import type { EventRange } from "./messages.js";
import { RankClient } from "./rank-client.js";
import type { RankFile } from "./rank-file.js";
import type { Modules, PreparedWorker } from "./wasm.js";

const MOST = 8;

/** A file of at most so many bytes may be read twice, and is not worth starting threads for. */
const SMALL = 64 << 20;

const CANCELLED: Failure = {
  id: null,
  message: "Not read to the end: something else was opened.",
  hint: null,
};

export interface PoolEvents {
  progress(file: RankFile): void;
  ready(file: RankFile): void;
  failed(file: RankFile, failure: Failure): void;
  /** A worker has stopped; what is on screen of its file is about to go. */
  crashing(file: RankFile): void;
  refused(failure: Failure): void;
  /** A file waits for the module that answers all views. */
  wanted(): void;
  /**
   * A file that answers all views has come: what the overview wants of it, before its worker may be
   * released.
   */
  summarize(file: RankFile, client: RankClient, loaded: Loaded): Promise<void>;
}

export class RankPool {
  readonly #modules: Modules;
  readonly #events: PoolEvents;
  readonly #limit = Math.min(navigator.hardwareConcurrency || 1, MOST);
  #budget = Number.POSITIVE_INFINITY;
  /** Bytes that one file may take; null for as many as its worker can have. */
  memoryLimit: number | null = null;
  #queue: RankFile[] = [];
  readonly #loading = new Map<RankFile, RankClient>();
  /** Loaded files that have a worker, the one looked at last at the end. */
  #idle: RankFile[] = [];
  #focused: RankFile | null = null;
  /** Files that somebody asks something, and how many do. */
  readonly #held = new Map<RankFile, number>();
  #spare: PreparedWorker | null;
  /** Files that the small module could not read. */
  readonly #beyond = new WeakSet<RankFile>();
  /** Files whose worker has stopped: the next has one thread. */
  readonly #stopped = new WeakSet<RankFile>();
  /** The module for all views cannot be had: the small one reads everything. */
  #first = false;

  constructor(modules: Modules, events: PoolEvents) {
    this.#modules = modules;
    this.#events = events;
    this.#spare = modules.spawn({ early: true });
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
    } else if (state === "queued" || state === "ready") {
      this.#next([file]);
    }
  }

  /** Reads a part of a file's events. */
  readPart(file: RankFile, part: EventRange): void {
    file.part = part;
    file.load.value = { state: "queued" };
    this.focus(file);
  }

  /** Puts a file of which a part was read back to where a part is chosen. */
  choosePart(file: RankFile, failure: Failure): void {
    this.#end(file);
    this.#loading.delete(file);
    this.#idle = this.#idle.filter((other) => other !== file);
    file.cards.value = null;
    file.load.value = { state: "error", failure, again: false };
    this.#fill();
  }

  /** Reads a file that could not be read, or whose worker has stopped, from its beginning. */
  again(file: RankFile): void {
    file.load.value = { state: "queued" };
    this.#next([file]);
  }

  /**
   * A worker for this file that answers all views, and stays until it is let go; null when the file
   * cannot be read.
   */
  hold(file: RankFile): Promise<RankClient | null> {
    this.#held.set(file, (this.#held.get(file) ?? 0) + 1);
    const { state } = file.load.peek();
    if (!this.#idle.includes(file) && (state === "queued" || state === "ready")) this.#next([file]);
    return new Promise((resolve) => {
      const stop = effect(() => {
        const [load, client] = [file.load.value, file.client.value];
        if (load.state !== "error" && (load.state !== "ready" || !client?.full)) return;
        resolve(load.state === "error" ? null : client);
        queueMicrotask(() => stop());
      });
    });
  }

  letGo(file: RankFile): void {
    const count = (this.#held.get(file) ?? 0) - 1;
    if (count > 0) this.#held.set(file, count);
    else this.#held.delete(file);
    this.#release();
  }

  /** Workers of files that nobody looks at may hold at most so many bytes together. */
  setBudget(bytes: number): void {
    this.#budget = bytes;
    this.#release();
  }

  /**
   * From now on workers answer all views; those that do not are replaced when their file has been
   * read again.
   */
  upgrade(): void {
    this.#respare();
    this.#next(this.#idle.filter((file) => file.client.peek()?.full === false).toReversed());
  }

  /** The module for all views did not come. */
  stayFirst(): void {
    this.#first = true;
    this.#fill();
  }

  /** Ends all workers but a warm one. */
  clear(): void {
    this.#endAll();
    this.#spare ??= this.#modules.spawn();
  }

  /** Ends all. */
  destroy(): void {
    this.#endAll();
    this.#spare?.end();
    this.#spare = null;
  }

  #endAll(): void {
    for (const file of [...this.#queue, ...this.#loading.keys(), ...this.#idle]) {
      this.#end(file);
      if (!file.settled) file.load.value = { state: "error", failure: CANCELLED, again: false };
    }
    this.#queue = [];
    this.#loading.clear();
    this.#idle = [];
    this.#focused = null;
    this.#held.clear();
  }

  #respare(): void {
    if (this.#spare === null) return;
    this.#spare.end();
    const early = this.#queue.length + this.#loading.size + this.#idle.length === 0;
    this.#spare = this.#modules.spawn({ early });
  }

  /**
   * All views are answered, or this is the first file, whose picture should not wait for that: if
   * it is quick to read again.
   */
  #mayStart(file: RankFile): boolean {
    const alone = this.#loading.size === 0 && this.#idle.length === 0;
    const easy = file.source.bytes <= SMALL && !this.#beyond.has(file);
    return this.#modules.full || this.#first || (alone && easy);
  }

  /**
   * Reads these before all that wait. A file that is being read already is not read a second time
   * beside that.
   */
  #next(files: readonly RankFile[]): void {
    const first = files.filter((file) => !this.#loading.has(file));
    this.#queue = [...first, ...this.#queue.filter((file) => !first.includes(file))];
    this.#fill();
  }

  #fill(): void {
    for (
      let file = this.#queue[0];
      file && this.#loading.size < this.#limit;
      file = this.#queue[0]
    ) {
      if (!this.#mayStart(file)) break;
      this.#queue.shift();
      this.#start(file);
    }
    // A warm worker for the next drop, once this one needs no more.
    if (this.#queue.length === 0 && this.#loading.size === 0) this.#spare ??= this.#modules.spawn();
  }

  #start(file: RankFile): void {
    const prepared = this.#worker(file);
    const started = performance.now();
    if (file.load.peek().state === "queued") file.load.value = { state: "loading" };
    // A file that is on screen stays there while it is read once more by a worker that can do more.
    const behind = file.client.peek() !== null;
    const bounds = { events: file.part, memory: this.memoryLimit };
    const client = new RankClient(prepared, file.source, bounds, {
      progress: (progress) => {
        if (behind) return;
        file.progress.value = progress;
        this.#events.progress(file);
      },
      loaded: (loaded) => {
        if (!behind) file.loadMs = performance.now() - started;
        void this.#ready(file, client, loaded);
      },
      failed: (failure, tooLarge) =>
        this.#failed(file, failure, tooLarge, typeof file.source.from === "string"),
      crashed: (failure) => this.#crashed(file, client, failure),
      refused: (failure) => this.#events.refused(failure),
    });
    this.#loading.set(file, client);
    if (!behind) file.client.value = client;
  }

  /** The warm worker, or for a large file that has cores to itself one with threads. */
  #worker(file: RankFile): PreparedWorker {
    const threads = Math.floor(this.#limit / (this.#loading.size + this.#queue.length + 1));
    const alone =
      threads > 1 &&
      file.source.bytes > SMALL &&
      this.#modules.full &&
      this.#modules.single === null;
    if (alone && !this.#stopped.has(file)) return this.#modules.spawn({ threads });
    if (this.#spare?.broken) this.#respare();
    const prepared = this.#spare ?? this.#modules.spawn();
    this.#spare = null;
    return prepared;
  }

  async #ready(file: RankFile, client: RankClient, loaded: Loaded): Promise<void> {
    const before = file.client.peek();
    if (before !== client) {
      file.client.value = client;
      before?.terminate();
    }
    const known = this.#idle.includes(file);
    if (!known) {
      this.#idle.push(file);
      file.progress.value = null;
      file.load.value = { state: "ready", loaded };
      this.#events.ready(file);
    }
    if (client.full && file.cards.peek() === null)
      await this.#events.summarize(file, client, loaded);
    // What was opened in the meantime has ended this worker.
    if (this.#loading.get(file) !== client) return;
    this.#loading.delete(file);
    this.#release();
    // The views came while it was being read.
    this.#next(this.#modules.full && !client.full ? [file] : []);
  }

  /** Ends the workers of the files that were looked at longest ago, never of the one on screen. */
  #release(): void {
    const kept = (file: RankFile) =>
      file === this.#focused || this.#held.has(file) || this.#loading.has(file);
    const candidates = this.#idle.filter((file) => !kept(file));
    const held = () =>
      this.#idle.reduce((sum, { client }) => sum + (client.peek()?.wasmBytes ?? 0), 0);
    for (const file of candidates) {
      if (this.#idle.length <= MOST && held() <= this.#budget) return;
      this.#end(file);
      this.#idle = this.#idle.filter((other) => other !== file);
    }
  }

  #crashed(file: RankFile, client: RankClient, failure: Failure): void {
    this.#stopped.add(file);
    const loading = this.#loading.get(file);
    if (loading !== undefined && loading !== client) {
      // Another one reads the file already, behind the one that was on screen.
      client.terminate();
      file.client.value = null;
      return;
    }
    this.#events.crashing(file);
    this.#failed(file, failure, null, true);
  }

  #failed(file: RankFile, failure: Failure, tooLarge: TooLarge | null, again: boolean): void {
    const tried = this.#loading.get(file);
    this.#end(file);
    this.#loading.delete(file);
    if (tried?.full === false && !this.#first) {
      this.#beyond.add(file);
      this.#next([file]);
      this.#events.wanted();
      return;
    }
    this.#idle = this.#idle.filter((other) => other !== file);
    if (tooLarge?.choice) file.tooLarge.value = tooLarge;
    file.load.value = { state: "error", failure, again };
    this.#fill();
    this.#events.failed(file, failure);
  }

  #end(file: RankFile): void {
    this.#loading.get(file)?.terminate();
    file.client.peek()?.terminate();
    file.client.value = null;
    file.progress.value = null;
  }
}
