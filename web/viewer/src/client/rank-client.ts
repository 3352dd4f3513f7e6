// One file in one worker: sends requests and matches the answers by id.

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
import { type ContentOf, contentOf, type KindOf } from "./answers.js";
import type { Bounds, Columns, FromWorker } from "./messages.js";
import type { Source } from "./rank-file.js";
import { makeVisible } from "./visible.js";
import type { PreparedWorker } from "./wasm.js";

/** Events of a load and of its worker. */
export interface LoadEvents {
  progress(progress: Progress): void;
  loaded(loaded: Loaded): void;
  /** `tooLarge` offers a part of a file that exceeds the memory limit. */
  failed(failure: Failure, tooLarge: TooLarge | null): void;
  /**
   * The worker crashed during the load or later. `unused`: before it began, so another worker can
   * read the file.
   */
  crashed(failure: Failure, unused: boolean): void;
  /** A request could not be answered; the file stays loaded. */
  refused(failure: Failure): void;
}

/** A tile with its columns. */
export type TileReply = Extract<Response, { kind: "tile" }> & { columns: Columns };

/** A point of the trace, for a pick. */
export type PickPoint = Omit<Extract<Request, { pick: unknown }>["pick"], "id">;

/** A range along an axis. */
export interface Range {
  x0: number;
  x1: number;
}

type Settle = (response: Response | null) => void;

/** Kinds of tiles, one per plot. A newer list of tiles replaces the older one of its kind. */
export const LAYERS = ["timeline", "segments", "flame", "map"] as const;
/** Ids count in steps of this many: the rest of an id is its kind of tiles, or none. */
const KINDS = LAYERS.length + 1;
export type LayerKind = (typeof LAYERS)[number];

/** Kinds of queries of which the engine answers only the newest. */
const REPLACEABLE: ReadonlySet<string> = new Set<KindOf<Query>>(REPLACED);

/** Bytes of memory up to which a worker reads another file. More is given back. */
const MAX_REUSED_BYTES = 64 << 20;

/** The busy indicator shows after this time. */
const BUSY_AFTER_MS = 300;

const isForScripts = (answer: Answer) => "text" in answer || "record" in answer;

interface TileConsumer {
  /** Tiles of earlier requests belong to an earlier source. */
  since: number;
  tile: (tile: TileReply) => void;
}

export class RankClient {
  readonly #prepared: PreparedWorker;
  readonly #events: LoadEvents;
  readonly #pending = new Map<number, Settle>();
  readonly #consumers = new Map<LayerKind, TileConsumer>();
  readonly #latest = new Map<string, number>();
  /** The newest request for tiles of each kind, and how many of its tiles are missing. */
  readonly #tiles = new Map<number, { id: number; left: number }>();
  #busyTimer = 0;
  /** True while a request has been unanswered for `BUSY_AFTER_MS`. */
  readonly busy = signal(false);
  #count = 0;
  /** Bytes of the worker's wasm memory. */
  wasmBytes = 0;
  /** Number of the worker's threads; 0 before its first message. */
  threads = 0;

  constructor(
    prepared: PreparedWorker,
    { path, bytes, from, beside, dims }: Source,
    bounds: Bounds,
    events: LoadEvents,
  ) {
    this.#prepared = prepared;
    this.#events = events;
    prepared.onmessage((message) => this.#receive(message));
    const given = { beside: beside ?? null, dims: dims ?? null };
    prepared.send({ kind: "load", path, bytes, source: from, ...given, bounds });
  }

  /** Sets the consumer of a kind's tiles; null for none. It gets no tiles of earlier requests. */
  draw(layer: LayerKind, tile: ((tile: TileReply) => void) | null): void {
    this.#tiles.delete(LAYERS.indexOf(layer));
    this.#checkIdle();
    if (tile === null) this.#consumers.delete(layer);
    else this.#consumers.set(layer, { since: this.#count, tile });
  }

  /** Requests tiles. Outstanding tiles of the same kind are cancelled. */
  tiles(kind: LayerKind, target: DeviceRef, axis: AxisKind, layer: Layer, tiles: TileKey[]): void {
    // The id encodes the kind, so that the answer finds its plot.
    const id = this.#nextId(LAYERS.indexOf(kind));
    this.#tiles.set(id % KINDS, { id, left: tiles.length });
    this.#ask({ tiles: { id, target, axis, layer, tiles } });
  }

  /** The block at a point of the timeline. Null without a block, or after a newer hover. */
  async pick(point: PickPoint): Promise<Hit | null> {
    const id = this.#nextId();
    if (point.hover) this.#replace("hover", id);
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
  async view<K extends KindOf<Answer>>(
    target: DeviceRef,
    answer: K,
    query: Query,
  ): Promise<ContentOf<Answer, K> | null> {
    const id = this.#nextId();
    const [kind] = Object.keys(query);
    if (kind !== undefined && REPLACEABLE.has(kind)) this.#replace(kind, id);
    const response = await this.#answer(id, { view: { id, target, query } });
    return response?.kind === "view" ? contentOf(response.answer, answer) : null;
  }

  /**
   * Gives up the worker, so that it can read another file. Null if it is not idle or holds much
   * memory: then it is ended.
   */
  handOver(): PreparedWorker | null {
    const idle = this.#isIdle && !this.#prepared.broken;
    if (!idle || this.threads > 1 || this.wasmBytes > MAX_REUSED_BYTES) {
      this.terminate();
      return null;
    }
    this.#consumers.clear();
    return this.#prepared;
  }

  /** Ends the worker, which also frees its memory. */
  terminate(): void {
    this.#prepared.end();
    this.#consumers.clear();
    this.#tiles.clear();
    for (const id of [...this.#pending.keys()]) this.#settle(id, null);
    this.#checkIdle();
  }

  #nextId(kind: number = LAYERS.length): number {
    this.#count += 1;
    return this.#count * KINDS + kind;
  }

  #replace(kind: string, id: number): void {
    const before = this.#latest.get(kind);
    if (before !== undefined) this.#settle(before, null);
    this.#latest.set(kind, id);
  }

  #ask(request: Request): void {
    if (this.#busyTimer === 0 && !this.busy.peek()) {
      this.#busyTimer = setTimeout(() => {
        this.busy.value = true;
      }, BUSY_AFTER_MS);
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
    this.#checkIdle();
  }

  get #isIdle(): boolean {
    return this.#pending.size === 0 && [...this.#tiles.values()].every(({ left }) => left === 0);
  }

  /** Clears the busy indicator if nothing is outstanding. */
  #checkIdle(): void {
    if (!this.#isIdle) return;
    clearTimeout(this.#busyTimer);
    this.#busyTimer = 0;
    this.busy.value = false;
  }

  #failed(failure: Failure): void {
    if (failure.id === null) {
      this.#events.failed(failure, null);
      return;
    }
    if (this.#tiles.get(failure.id % KINDS)?.id === failure.id)
      this.#tiles.delete(failure.id % KINDS);
    this.#settle(failure.id, null);
    this.#events.refused(failure);
  }

  #tile(tile: TileReply): void {
    const list = this.#tiles.get(tile.id % KINDS);
    if (list?.id === tile.id) list.left -= 1;
    this.#checkIdle();
    const layer = LAYERS[tile.id % KINDS];
    const consumer = layer && this.#consumers.get(layer);
    if (consumer && Math.floor(tile.id / KINDS) > consumer.since) consumer.tile(tile);
  }

  #receive(message: FromWorker): void {
    if (message.kind === "crashed") this.#events.crashed(message.failure, message.unused ?? false);
    if (message.kind !== "reply") return;
    const { columns, wasmBytes, threads } = message;
    // Saved tables and records for scripts have the names as they are.
    const isShown = message.response.kind !== "view" || !isForScripts(message.response.answer);
    const response = isShown ? makeVisible(message.response) : message.response;
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
