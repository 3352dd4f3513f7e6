// One file in one worker: questions in, answers out, matched by id.

import type {
  AxisKind,
  BlockDetail,
  DeviceRef,
  Failure,
  Hit,
  Loaded,
  Progress,
  Request,
  Response,
  TileKey,
} from "../generated/protocol.js";
import type { Bytes, Columns, FromWorker } from "./messages.js";
import type { PreparedWorker } from "./wasm.js";

/** What a load tells on its way. */
export interface LoadEvents {
  progress(progress: Progress): void;
  loaded(loaded: Loaded): void;
  failed(failure: Failure): void;
  /** A question that could not be answered; the file stays. */
  refused(failure: Failure): void;
}

/** A tile that has come. */
export type TileReply = Extract<Response, { kind: "tile" }> & { columns: Columns };

/** Where the pointer is, in the trace. */
export type PickPoint = Omit<Extract<Request, { pick: unknown }>["pick"], "id">;

/** A range along an axis. */
export interface Range {
  x0: number;
  x1: number;
}

type Settle = (response: Response | null) => void;

export class RankClient {
  readonly #prepared: PreparedWorker;
  readonly #events: LoadEvents;
  readonly #pending = new Map<number, Settle>();
  #lastId = 0;
  #lastPick = 0;
  /** Bytes of the worker's wasm memory. */
  wasmBytes = 0;
  /** Who draws this file, while it is on screen. */
  ontile: ((tile: TileReply) => void) | null = null;

  constructor(prepared: PreparedWorker, path: string, bytes: number, source: Bytes, events: LoadEvents) {
    this.#prepared = prepared;
    this.#events = events;
    prepared.onmessage((message) => this.#receive(message));
    prepared.send({ kind: "load", path, bytes, source });
  }

  /** Asks for tiles; what was asked before and has not come is dropped. */
  tiles(target: DeviceRef, axis: AxisKind, tiles: TileKey[]): void {
    this.#ask({ tiles: { id: this.#nextId(), target, axis, tiles } });
  }

  /** What is at a point; null over empty ground, and when a newer pick has overtaken this one. */
  async pick(point: PickPoint): Promise<Hit | null> {
    const id = this.#nextId();
    this.#settle(this.#lastPick, null);
    this.#lastPick = id;
    const response = await this.#answer(id, { pick: { id, ...point } });
    return response?.kind === "picked" ? response.hit : null;
  }

  async block(target: DeviceRef, block: number): Promise<BlockDetail | null> {
    const id = this.#nextId();
    const response = await this.#answer(id, { block: { id, target, block } });
    return response?.kind === "block" ? response.detail : null;
  }

  async find(part: number, reference: string): Promise<BlockDetail | null> {
    const id = this.#nextId();
    const response = await this.#answer(id, { find: { id, part, reference } });
    return response?.kind === "block" ? response.detail : null;
  }

  async mapRange(target: DeviceRef, from: AxisKind, range: Range): Promise<Range | null> {
    const id = this.#nextId();
    const response = await this.#answer(id, { mapRange: { id, target, from, ...range } });
    return response?.kind === "range" ? response : null;
  }

  /** Ends the worker, which is also how its memory comes back. */
  terminate(): void {
    this.#prepared.worker.terminate();
    this.ontile = null;
    for (const id of [...this.#pending.keys()]) this.#settle(id, null);
  }

  #nextId(): number {
    this.#lastId += 1;
    return this.#lastId;
  }

  #ask(request: Request): void {
    this.#prepared.send({ kind: "ask", request });
  }

  #answer(id: number, request: Request): Promise<Response | null> {
    return new Promise((resolve) => {
      this.#pending.set(id, resolve);
      this.#ask(request);
    });
  }

  #settle(id: number, response: Response | null): void {
    this.#pending.get(id)?.(response);
    this.#pending.delete(id);
  }

  #failed(failure: Failure): void {
    if (failure.id === null) {
      this.#events.failed(failure);
      return;
    }
    this.#settle(failure.id, null);
    this.#events.refused(failure);
  }

  #receive(message: FromWorker): void {
    if (message.kind === "crashed") this.#events.failed(message.failure);
    if (message.kind !== "reply") return;
    const { response, columns, wasmBytes } = message;
    this.wasmBytes = wasmBytes;
    switch (response.kind) {
      case "progress":
        this.#events.progress(response);
        break;
      case "loaded":
        this.#events.loaded(response);
        break;
      case "failed":
        this.#failed(response);
        break;
      case "tile":
        this.ontile?.({ ...response, columns });
        break;
      default:
        this.#settle(response.id, response);
    }
  }
}
