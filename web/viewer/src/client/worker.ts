// The worker's side: passes bytes and messages to the Rust engine and its answers back. One worker
// serves one file until it is ended or told to load another, or is the coordinator of a run.
//
//   message from the page     what the worker does
//   prepare(module)           instantiates the module and starts threads (a spare waits here)
//   load(path, source)        feeds chunks, replies with progress at most every 50 ms, then with
//                             "loaded" or "failed"
//   ask(request)              posts the request, then steps until everything is answered; messages
//                             are handled between steps, so that a newer request can replace an
//                             older one
//   run(request)              plans and compares files (coordinator)
//   index(source)             reads lines of an index (coordinator)
//   ping                      says that it is alive, and whether it has work

import * as plain from "../../wasm/vramscope_worker.js";
import type { Failure, Request, Response, RunResponse } from "../generated/protocol.js";
import { VERSION } from "../version.js";
import { chunks, firstBytes } from "./chunks.js";
import { stopped, wordsOf } from "./faults.js";
import type { Columns, FromWorker, ToWorker } from "./messages.js";
import { type Engine, startThreads } from "./threads.js";

type RankWorker = InstanceType<Engine["RankWorker"]>;
type RunWorker = InstanceType<Engine["RunWorker"]>;

const PROGRESS_MS = 50;
/** Loads that are shorter than this report no progress. */
const QUIET_MS = 150;

/** Delay of the warm-up; how often it reads a made-up snapshot; how often it also draws it. */
const WARM_AFTER_MS = 300;
const WARM_LOADS = 200;
const WARM_DRAWS = 48;

/** Whether the memory of a crashed module cannot grow by another 16 MiB. */
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
  message: "The file cannot be read: it changed or moved on disk.",
  hint: "Open it again.",
};

function isFailure(error: unknown): error is Failure {
  return typeof error === "object" && error !== null && "hint" in error && "message" in error;
}

class WorkerHost {
  #engine: Promise<Engine> | null = null;
  #rank: RankWorker | null = null;
  /** Requests that came during the load: a file that is loaded again is already on screen. */
  readonly #queued: Request[] = [];
  #run: RunWorker | null = null;
  #stepping = false;
  #threads = 1;
  #panic = "";
  /** Last known bytes of WebAssembly memory; a shared memory is not visible here. */
  #bytes = 0;
  #memory: WebAssembly.Memory | null = null;
  /** Whether the worker has something to do other than warming up. */
  #busy = false;
  /** Loads and plans that are not finished. */
  #working = 0;
  #warmUpTimer = 0;
  readonly #turn = new MessageChannel();

  constructor() {
    this.#turn.port1.onmessage = () => this.#guard(() => this.#step());
    // A panic reaches JavaScript as "unreachable". Its message goes to the console just before.
    const { console } = globalThis;
    const report = console.error.bind(console);
    console.error = (...words: unknown[]) => {
      this.#panic = String(words[0]).split("\n\nStack:")[0] ?? "";
      report(...words);
    };
  }

  handle(message: ToWorker): void {
    if (message.kind === "ping") {
      this.#alive();
      return;
    }
    this.#busy ||= message.kind !== "prepare";
    clearTimeout(this.#warmUpTimer);
    switch (message.kind) {
      case "prepare":
        this.#engine = this.#prepare(message);
        this.#engine.then(
          () => this.#alive(),
          (error: unknown) => this.#crashed(error),
        );
        break;
      case "load":
        this.#during(this.#load(message));
        break;
      case "ask":
        this.#guard(() => this.#ask(message.request));
        break;
      case "run":
        this.#during(this.#plan(message));
        break;
      case "index":
        this.#during(this.#readIndex(message));
        break;
    }
  }

  /** Counts work that goes on between messages. */
  #during(work: Promise<void>): void {
    this.#working += 1;
    work
      .catch((error: unknown) => this.#crashed(error))
      .finally(() => {
        this.#working -= 1;
      });
  }

  #alive(): void {
    this.#post({ kind: "alive", idle: this.#working === 0 && !this.#stepping });
  }

  async #prepare({
    module,
    threaded,
    early,
    version,
  }: ToWorker & { kind: "prepare" }): Promise<Engine> {
    if (version !== VERSION)
      throw new Error(
        `The worker's version is ${VERSION}, the page's is ${version}. Reload the page.`,
      );
    const shared = threaded && (await startThreads(threaded));
    if (threaded && shared) {
      this.#threads = threaded.threads;
      return shared;
    }
    if (module === null) throw new Error("The worker got no module.");
    const engine: Engine = plain;
    this.#memory = (await engine.default({ module_or_path: module })).memory;
    if (early && !this.#busy)
      this.#warmUpTimer = setTimeout(() => this.#guard(() => this.#warmUp(engine)), WARM_AFTER_MS);
    return engine;
  }

  /** Reads and draws a made-up snapshot, so that the browser optimizes the module's hot code. */
  #warmUp({ RankWorker }: Engine): void {
    const madeUp = RankWorker.madeUp();
    const half = madeUp.length >> 1;
    const read = (times: number) => {
      const rank = new RankWorker("", madeUp.length);
      rank.feed(madeUp.subarray(0, half), half);
      rank.feed(madeUp.subarray(half), madeUp.length);
      rank.finish();
      if (times < WARM_DRAWS) rank.postMadeUp();
      while (rank.step() !== undefined);
      rank.free();
    };
    let times = 0;
    // A message starts the next turn sooner than a timer does.
    const turn = new MessageChannel();
    const next = () => {
      if (this.#busy) return;
      read(times++);
      if (times < WARM_LOADS) turn.port2.postMessage(null);
      else performance.mark("vramscope warm");
    };
    turn.port1.onmessage = () => this.#guard(next);
    next();
  }

  /** The engine of the first message, `prepare`. */
  async #prepared(): Promise<Engine> {
    if (this.#engine === null) throw new Error("The worker got a request before it was prepared.");
    return this.#engine;
  }

  async #load(message: ToWorker & { kind: "load" }): Promise<void> {
    const { path, bytes, source, beside, dims, bounds } = message;
    const { RankWorker } = await this.#prepared();
    const { memory, events } = bounds;
    // A worker that has nothing else to do may read another file.
    this.#rank?.free();
    this.#rank = null;
    const rank = RankWorker.within(path, bytes, memory, events?.first, events?.last);
    let shown = performance.now() + QUIET_MS - PROGRESS_MS;
    for await (const { bytes: chunk, read } of chunks(source)) {
      rank.feed(chunk, read);
      const now = performance.now();
      if (now - shown < PROGRESS_MS) continue;
      shown = now;
      this.#reply({ kind: "progress", ...rank.progress() }, {}, rank);
    }
    if (beside !== null) {
      // One byte more than is used, so that a larger file is noticed.
      const json = await firstBytes(beside, RankWorker.maxSidecar() + 1).catch(wordsOf);
      if (typeof json === "string") rank.refuseSidecar(json);
      else rank.setSidecar(json);
    }
    if (dims !== null) rank.setDims(dims);
    const response: Response = rank.finish();
    this.#rank = rank;
    this.#reply(response, {}, rank);
    for (const request of this.#queued.splice(0)) this.#ask(request);
  }

  #ask(request: Request): void {
    if (this.#rank === null) {
      this.#queued.push(request);
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

  /** Reads lines of an index. A failure is a part of the answer. */
  async #readIndex({ id, source, first }: ToWorker & { kind: "index" }): Promise<void> {
    const { RunWorker } = await this.#prepared();
    this.#run ??= new RunWorker();
    const run = this.#run;
    const read = (bytes: Uint8Array, begin: boolean) =>
      run.readIndex(id, bytes, begin) as Extract<RunResponse, { kind: "indexed" }>;
    const all = read(new Uint8Array(), first);
    const { files } = all.read;
    try {
      for await (const { bytes } of chunks(source)) {
        const { read: next } = read(bytes, false);
        for (const file of next.files) files.push(file);
        all.read = { ...next, files };
        if (next.error !== null) break;
      }
    } catch (error) {
      all.read.error = isFailure(error) ? error.message : wordsOf(error);
    }
    this.#post({ kind: "run", response: all });
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
    // Null: the work is not finished, and the next step continues it.
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
