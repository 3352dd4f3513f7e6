// The worker's side: carries bytes and messages to the Rust engine and its answers back. One worker
// serves one file from load to release, or is the coordinator of a run.
//
//   page                     worker prepare(module)     ->   instantiate, start threads         (a
//   spare is kept in this state) load(path, source)  ->   chunk -> feed -> ... -> finish
//   progress at most every 50 ms, then "loaded" or "failed" ask(request)        ->   post, then
//   step, step, ...         between two steps the message queue is looked at, so a
//                                                               newer request overtakes the rest of an older one

import * as plain from "../../wasm/vramscope_worker.js";
import type { Failure, Request, Response } from "../generated/protocol.js";
import { VERSION } from "../version.js";
import { chunks } from "./chunks.js";
import { stopped, wordsOf } from "./faults.js";
import type { Columns, FromWorker, ToWorker } from "./messages.js";
import { type Engine, startThreads } from "./threads.js";

type RankWorker = InstanceType<Engine["RankWorker"]>;
type RunWorker = InstanceType<Engine["RunWorker"]>;

const PROGRESS_MS = 50;
/** What is there so soon needs no word of how far it is. */
const QUIET_MS = 150;

/**
 * Milliseconds until a worker that has no file reads to no end, how often it does, and how often it
 * is asked for pictures then.
 */
const WARM_AFTER_MS = 300;
const WARM_TIMES = 200;
const WARM_QUESTIONS = 48;

/** Whether what has stopped, and needs its memory no more, could have had 16 MiB more. */
function isFull(memory: WebAssembly.Memory | null): boolean {
  try {
    memory?.grow(256);
    return false;
  } catch {
    return true;
  }
}

const CHANGED: Failure = {
  id: null,
  message: "The file can no longer be read: it has changed or moved since it was opened.",
  hint: "Open it again.",
};

function isFailure(error: unknown): error is Failure {
  return typeof error === "object" && error !== null && "hint" in error && "message" in error;
}

class WorkerHost {
  #engine: Promise<Engine> | null = null;
  #rank: RankWorker | null = null;
  /**
   * What was asked while the file was being read: it is on screen already if it was released and is
   * read again.
   */
  readonly #early: Request[] = [];
  #run: RunWorker | null = null;
  #stepping = false;
  #threads = 1;
  #panic = "";
  /** Of the WebAssembly's memory, as far as is known of one that is shared. */
  #bytes = 0;
  #memory: WebAssembly.Memory | null = null;
  #asked = false;
  #warming = 0;
  readonly #turn = new MessageChannel();

  constructor() {
    this.#turn.port1.onmessage = () => this.#guard(() => this.#step());
    // A panic reaches JavaScript as a bare "unreachable"; its words go to the console just before.
    const { console } = globalThis;
    const report = console.error.bind(console);
    console.error = (...words: unknown[]) => {
      this.#panic = String(words[0]).split("\n\nStack:")[0] ?? "";
      report(...words);
    };
  }

  handle(message: ToWorker): void {
    this.#asked ||= message.kind !== "prepare";
    clearTimeout(this.#warming);
    switch (message.kind) {
      case "prepare":
        this.#engine = this.#prepare(message);
        this.#engine.catch((error: unknown) => this.#crashed(error));
        break;
      case "load":
        this.#load(message).catch((error: unknown) => this.#crashed(error));
        break;
      case "ask":
        this.#guard(() => this.#ask(message.request));
        break;
      case "run":
        this.#plan(message).catch((error: unknown) => this.#crashed(error));
        break;
    }
  }

  async #prepare({
    module,
    threaded,
    early,
    version,
  }: ToWorker & { kind: "prepare" }): Promise<Engine> {
    if (version !== VERSION)
      throw new Error(`This worker is of vramscope ${VERSION}, the page of ${version}.`);
    const shared = threaded && (await startThreads(threaded));
    if (threaded && shared) {
      this.#threads = threaded.threads;
      return shared;
    }
    const engine: Engine = plain;
    this.#memory = (await engine.default({ module_or_path: module })).memory;
    if (early && !this.#asked)
      this.#warming = setTimeout(() => this.#guard(() => this.#warmUp(engine)), WARM_AFTER_MS);
    return engine;
  }

  /**
   * Browsers optimize what they see run often. Until something is asked for, they see a file read.
   */
  #warmUp({ RankWorker }: Engine): void {
    const madeUp = RankWorker.madeUp();
    const half = madeUp.length >> 1;
    const read = (times: number) => {
      const rank = new RankWorker("", madeUp.length);
      rank.feed(madeUp.subarray(0, half), half);
      rank.feed(madeUp.subarray(half), madeUp.length);
      rank.finish();
      if (times < WARM_QUESTIONS) rank.postMadeUp();
      while (rank.step() !== undefined);
      rank.free();
    };
    let times = 0;
    // A timer would wait for longer than one of these takes.
    const turn = new MessageChannel();
    const next = () => {
      if (this.#asked) return;
      read(times++);
      if (times < WARM_TIMES) turn.port2.postMessage(null);
      else performance.mark("vramscope warm");
    };
    turn.port1.onmessage = () => this.#guard(next);
    next();
  }

  /** Messages come in order, and the first of them says which engine. */
  async #prepared(): Promise<Engine> {
    if (this.#engine === null)
      throw new Error("The worker was asked for something before it was prepared.");
    return this.#engine;
  }

  async #load({ path, bytes, source, bounds }: ToWorker & { kind: "load" }): Promise<void> {
    const { RankWorker } = await this.#prepared();
    const { memory, events } = bounds;
    const rank = RankWorker.within(path, bytes, memory, events?.first, events?.last);
    let shown = performance.now() + QUIET_MS - PROGRESS_MS;
    for await (const { bytes: chunk, read } of chunks(source)) {
      rank.feed(chunk, read);
      const now = performance.now();
      if (now - shown < PROGRESS_MS) continue;
      shown = now;
      this.#reply({ kind: "progress", ...rank.progress() }, {}, rank);
    }
    const response: Response = rank.finish();
    this.#rank = rank;
    this.#reply(response, {}, rank);
    for (const request of this.#early.splice(0)) this.#ask(request);
  }

  #ask(request: Request): void {
    if (this.#rank === null) {
      this.#early.push(request);
      return;
    }
    this.#rank.post(request);
    this.#wake();
  }

  async #plan(message: ToWorker & { kind: "run" }): Promise<void> {
    const { RunWorker } = await this.#prepared();
    this.#run ??= new RunWorker();
    this.#post({ kind: "run", response: this.#run.handle(message.request) });
  }

  #wake(): void {
    if (this.#stepping) return;
    this.#stepping = true;
    this.#turn.port2.postMessage(null);
  }

  #step(): void {
    this.#stepping = false;
    const rank = this.#rank;
    const reply = rank?.step();
    if (!rank || reply === undefined) return;
    // Null: a part of a tile, which the next steps go on with unless something else is asked
    // meanwhile.
    if (reply !== null) this.#reply(reply.response, reply.columns, rank);
    this.#wake();
  }

  #reply(response: Response, columns: Columns, rank: RankWorker): void {
    const transfer = Object.values(columns).map(
      (column: Float32Array | Uint32Array) => column.buffer,
    );
    this.#bytes = rank.memoryBytes();
    this.#post(
      { kind: "reply", response, columns, wasmBytes: this.#bytes, threads: this.#threads },
      transfer,
    );
  }

  #guard(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#crashed(error);
    }
  }

  #crashed(error: unknown): void {
    const changed = error instanceof DOMException && error.name === "NotReadableError";
    if (changed || isFailure(error)) {
      const failure = changed ? CHANGED : (error as Failure);
      this.#post({
        kind: "reply",
        response: { kind: "failed", ...failure },
        columns: {},
        wasmBytes: 0,
        threads: this.#threads,
      });
      return;
    }
    const trapped = error instanceof WebAssembly.RuntimeError;
    const [words, panic] = [wordsOf(error), this.#panic];
    const bytes = this.#memory?.buffer.byteLength ?? this.#bytes;
    const stop = { words, panic, trapped, bytes, full: trapped && isFull(this.#memory) };
    const failure = stopped(stop, this.#run !== null);
    this.#post({ kind: "crashed", failure });
  }

  #post(message: FromWorker, transfer: Transferable[] = []): void {
    globalThis.postMessage(message, { transfer });
  }
}

const host = new WorkerHost();
globalThis.onmessage = (event: MessageEvent<ToWorker>) => host.handle(event.data);
