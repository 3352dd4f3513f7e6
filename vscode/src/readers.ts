// The workers of one editor. They run here, beside the files, and answer the webview.

import { readFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { wordsOf } from "../../web/viewer/dist/client/faults.js";
import type { FromWorker, ToWorker } from "./channel.js";
import type { Run } from "./run.js";

export interface ReadersEvents {
  message(worker: number, message: FromWorker): void;
  failed(worker: number, words: string): void;
  /** An answer, and the file that its worker reads; null for what compares files. */
  answered(path: string | null, message: FromWorker): void;
}

interface Started {
  thread: Promise<Worker>;
  /** The file that it reads. */
  path: string | null;
}

const compiled = new Map<string, Promise<WebAssembly.Module>>();

/** The module of all workers, compiled once. */
function moduleAt(path: string): Promise<WebAssembly.Module> {
  const known =
    compiled.get(path) ??
    readFile(path).then((bytes) => WebAssembly.compile(new Uint8Array(bytes)));
  compiled.set(path, known);
  // The next worker tries again.
  known.catch(() => compiled.delete(path));
  return known;
}

/** Does something with a thread. A worker whose thread did not start has said so. */
function whenStarted({ thread }: Started, act: (thread: Worker) => void): void {
  void thread.then(act, () => undefined);
}

export class Readers {
  readonly #dist: string;
  readonly #run: Run;
  readonly #events: ReadersEvents;
  readonly #workers = new Map<number, Started>();

  /** `dist` is the folder of the built extension. */
  constructor(dist: string, run: Run, events: ReadersEvents) {
    this.#dist = dist;
    this.#run = run;
    this.#events = events;
  }

  start(number: number): void {
    this.#workers.set(number, { thread: this.#start(number), path: null });
  }

  post(number: number, message: ToWorker): void {
    const worker = this.#workers.get(number);
    if (!worker) return;
    const posted = message.kind === "load" ? this.#loadOf(worker, message) : message;
    if (posted === null) this.#failed(number, "the run has no such file");
    else whenStarted(worker, (thread) => thread.postMessage(posted));
  }

  end(number: number): void {
    const worker = this.#workers.get(number);
    this.#workers.delete(number);
    if (worker) whenStarted(worker, (thread) => void thread.terminate());
  }

  destroy(): void {
    for (const number of [...this.#workers.keys()]) this.end(number);
  }

  async #start(number: number): Promise<Worker> {
    try {
      const module = await moduleAt(`${this.#dist}/vramscope_worker_bg.wasm`);
      const thread = new Worker(`${this.#dist}/reader.cjs`, { workerData: { module } });
      thread.on("message", (message: FromWorker) => {
        const worker = this.#workers.get(number);
        if (!worker) return;
        this.#events.answered(worker.path, message);
        this.#events.message(number, message);
      });
      thread.on("error", (error) => this.#failed(number, error));
      return thread;
    } catch (error) {
      this.#failed(number, error);
      throw error;
    }
  }

  #failed(number: number, error: unknown): void {
    if (this.#workers.has(number)) this.#events.failed(number, wordsOf(error));
  }

  /** A load with paths in place of the run's addresses; null if the run has no such files. */
  #loadOf(worker: Started, message: ToWorker & { kind: "load" }): ToWorker | null {
    const { source, beside } = message;
    const path = this.#pathOf(source);
    const besidePath = beside === null ? null : this.#pathOf(beside);
    if (path === null || (beside !== null && besidePath === null)) return null;
    worker.path = path;
    const hrefOf = (of: string) => pathToFileURL(of).href;
    return { ...message, source: hrefOf(path), beside: besidePath && hrefOf(besidePath) };
  }

  #pathOf(source: Blob | string): string | null {
    return typeof source === "string" ? this.#run.pathOf(source) : null;
  }
}
