// One file in one worker: questions in, answers out, matched by id.

import { signal } from "@preact/signals";
import {
  type Answer,
  type AxisKind,
  type BlockDetail,
  type DeviceRef,
  type Failure,
  type Hit,
  type Layer,
  type Loaded,
  type Progress,
  type Query,
  REPLACED,
  type Request,
  type Response,
  type TileKey,
  type TooLarge,
} from "../generated/protocol.js";
import type { Bounds, Columns, FromWorker } from "./messages.js";
import type { Source } from "./rank-file.js";
import type { PreparedWorker } from "./wasm.js";

/** What a load tells on its way. */
export interface LoadEvents {
  progress(progress: Progress): void;
  loaded(loaded: Loaded): void;
  /** With what can be opened in its place, where the file is too large. */
  failed(failure: Failure, tooLarge: TooLarge | null): void;
  /** The worker has stopped, while it read the file or later. */
  crashed(failure: Failure): void;
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

type OneKeyOf<T> = T extends unknown ? keyof T : never;
/** What a query's kind is called, and its answer of that kind. */
export type QueryKind = OneKeyOf<Query>;
type AnswerKind = OneKeyOf<Answer>;
type AnswerOf<K extends AnswerKind> = Extract<Answer, Record<K, unknown>>[K];

/**
 * The kinds of tiles; each is asked for by its own plot, and a newer list replaces only those of
 * its kind.
 */
export const LAYERS = ["timeline", "segments", "flame"] as const;
export type LayerKind = (typeof LAYERS)[number];

/** Of these a newer question makes an older one pointless, and the engine never answers that. */
const OVERTAKEN: ReadonlySet<string> = new Set<QueryKind>(REPLACED);

/** Somebody waits, once an answer takes so long. */
const WAIT_MS = 300;

interface Drawer {
  /** Answers to what was asked before are of something else. */
  since: number;
  tile: (tile: TileReply) => void;
}

export class RankClient {
  readonly #prepared: PreparedWorker;
  readonly #events: LoadEvents;
  readonly #pending = new Map<number, Settle>();
  readonly #drawers = new Map<LayerKind, Drawer>();
  readonly #latest = new Map<string, number>();
  /**
   * The last list of tiles of each layer, by its number's remainder, and how many of it have not
   * come.
   */
  readonly #tiles = new Map<number, { id: number; left: number }>();
  #waiting = 0;
  /** True while something has not been answered for a while. */
  readonly busy = signal(false);
  #count = 0;
  /** Bytes of the worker's wasm memory. */
  wasmBytes = 0;
  /** How many threads it has; 0 before its first word. */
  threads = 0;

  constructor(
    prepared: PreparedWorker,
    { path, bytes, from }: Source,
    bounds: Bounds,
    events: LoadEvents,
  ) {
    this.#prepared = prepared;
    this.#events = events;
    prepared.onmessage((message) => this.#receive(message));
    prepared.send({ kind: "load", path, bytes, source: from, bounds });
  }

  /**
   * Who draws a layer of this file from now on; null for nobody. Tiles that were asked for before
   * do not come.
   */
  draw(layer: LayerKind, tile: ((tile: TileReply) => void) | null): void {
    this.#tiles.delete(LAYERS.indexOf(layer));
    this.#rest();
    if (tile === null) this.#drawers.delete(layer);
    else this.#drawers.set(layer, { since: this.#count, tile });
  }

  /** Asks for tiles; what was asked of this layer before and has not come is dropped. */
  tiles(kind: LayerKind, target: DeviceRef, axis: AxisKind, layer: Layer, tiles: TileKey[]): void {
    // The kind of layer is in the number, so that the answer finds its plot.
    const id = this.#nextId(LAYERS.indexOf(kind));
    this.#tiles.set(id % 4, { id, left: tiles.length });
    this.#ask({ tiles: { id, target, axis, layer, tiles } });
  }

  /**
   * What is at a point of the timeline; null over empty ground, and when a newer pick has overtaken
   * this one.
   */
  async pick(point: PickPoint): Promise<Hit | null> {
    const id = this.#nextId();
    this.#overtake("pick", id);
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

  /**
   * The answer to a view's query. Null when the worker has ended, or when a newer query of the
   * same kind has replaced this one.
   */
  async view<K extends AnswerKind>(
    target: DeviceRef,
    answer: K,
    query: Query,
  ): Promise<AnswerOf<K> | null> {
    const id = this.#nextId();
    const [kind] = Object.keys(query);
    if (kind !== undefined && OVERTAKEN.has(kind)) this.#overtake(kind, id);
    const response = await this.#answer(id, { view: { id, target, query } });
    if (response?.kind !== "view" || !(answer in response.answer)) return null;
    return (response.answer as unknown as Record<K, AnswerOf<K>>)[answer];
  }

  /** Ends the worker, which is also how its memory comes back. */
  terminate(): void {
    this.#prepared.end();
    this.#drawers.clear();
    this.#tiles.clear();
    for (const id of [...this.#pending.keys()]) this.#settle(id, null);
    this.#rest();
  }

  #nextId(kind: number = LAYERS.length): number {
    this.#count += 1;
    return this.#count * 4 + kind;
  }

  #overtake(kind: string, id: number): void {
    const before = this.#latest.get(kind);
    if (before !== undefined) this.#settle(before, null);
    this.#latest.set(kind, id);
  }

  #ask(request: Request): void {
    if (this.#waiting === 0 && !this.busy.peek()) {
      this.#waiting = setTimeout(() => {
        this.busy.value = true;
      }, WAIT_MS);
    }
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
    this.#rest();
  }

  /** Nobody waits any more, if all has come. */
  #rest(): void {
    if (this.#pending.size > 0 || [...this.#tiles.values()].some(({ left }) => left > 0)) return;
    clearTimeout(this.#waiting);
    this.#waiting = 0;
    this.busy.value = false;
  }

  #failed(failure: Failure): void {
    if (failure.id === null) {
      this.#events.failed(failure, null);
      return;
    }
    if (this.#tiles.get(failure.id % 4)?.id === failure.id) this.#tiles.delete(failure.id % 4);
    this.#settle(failure.id, null);
    this.#events.refused(failure);
  }

  #tile(tile: TileReply): void {
    const list = this.#tiles.get(tile.id % 4);
    if (list?.id === tile.id) list.left -= 1;
    this.#rest();
    const layer = LAYERS[tile.id % 4];
    const drawer = layer && this.#drawers.get(layer);
    if (drawer && Math.floor(tile.id / 4) > drawer.since) drawer.tile(tile);
  }

  #receive(message: FromWorker): void {
    if (message.kind === "crashed") this.#events.crashed(message.failure);
    if (message.kind !== "reply") return;
    const { response, columns, wasmBytes, threads } = message;
    this.wasmBytes = wasmBytes;
    this.threads = threads;
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
      case "tooLarge":
        this.#events.failed(response.failure, response);
        break;
      case "tile":
        this.#tile({ ...response, columns });
        break;
      default:
        this.#settle(response.id, response);
    }
  }
}
