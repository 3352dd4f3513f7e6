// Fake workers and files for unit tests.

import type { FromWorker, ToWorker } from "../src/client/messages.js";
import { RankFile, type Source } from "../src/client/rank-file.js";
import type { WorkerFactory } from "../src/client/rank-pool.js";
import type { PreparedWorker } from "../src/client/wasm.js";
import type { Loaded, Response } from "../src/generated/protocol.js";

export const MIB = 1 << 20;

export class FakeWorker implements PreparedWorker {
  broken = false;
  ended = false;
  readonly options: Parameters<WorkerFactory["spawn"]>[0];
  readonly sent: ToWorker[] = [];
  #listener: ((message: FromWorker) => void) | null = null;

  constructor(options: FakeWorker["options"]) {
    this.options = options;
  }

  end(): void {
    this.ended = true;
  }

  send(message: ToWorker): void {
    this.sent.push(message);
  }

  onmessage(listen: (message: FromWorker) => void): void {
    this.#listener = listen;
  }

  /** The file that was loaded last. */
  get path(): string | undefined {
    return this.sent.findLast((message) => message.kind === "load")?.path;
  }

  emit(message: FromWorker): void {
    this.#listener?.(message);
  }

  reply(response: Response, wasmBytes = MIB): void {
    this.emit({ kind: "reply", response, columns: {}, wasmBytes, threads: 1 });
  }

  crash(message = "boom"): void {
    this.emit({ kind: "crashed", failure: { id: null, message, hint: null } });
  }
}

export class FakeFactory implements WorkerFactory {
  single: string | null = "not isolated";
  readonly workers: FakeWorker[] = [];

  spawn(options?: FakeWorker["options"]): FakeWorker {
    const worker = new FakeWorker(options);
    this.workers.push(worker);
    return worker;
  }

  /** The worker that reads or has read a file, if it has not been ended. */
  of(file: RankFile): FakeWorker {
    const found = this.workers.find(({ path, ended }) => path === file.path && !ended);
    if (!found) throw new Error(`no worker reads ${file.path}`);
    return found;
  }

  get alive(): FakeWorker[] {
    return this.workers.filter(({ ended }) => !ended);
  }
}

export const LOADED = { kind: "loaded", parts: [] } as unknown as Loaded & { kind: "loaded" };

/** A file with one trace of this many events, in time and in events, with its peak at event 2. */
export function traceOf(events: number): Loaded {
  const axes = [
    { kind: "event", extent: events + 1, peak: 3 },
    { kind: "time", extent: 10 * events, peak: 30 },
  ];
  const count = (value: number) => ({ raw: String(value), text: "", exact: "" });
  const device = { device: 0, events: count(events), peakEvent: count(2), note: null, axes };
  const part = { name: "", devices: [device], defaultDevice: 0 };
  return { protocol: 0, parts: [part] } as unknown as Loaded;
}

export function fileOf(path: string, bytes = MIB, from: Source["from"] = new Blob()): RankFile {
  return new RankFile(
    { path, bytes, from },
    { file: 0, rank: null, label: path, group: "", size: "", beside: null },
  );
}

export const filesOf = (count: number) =>
  Array.from({ length: count }, (_, rank) => fileOf(`rank${rank}.pickle`));

export const statesOf = (files: readonly RankFile[]) => files.map(({ load }) => load.peek().state);
