// The worker that knows all files of a run. It orders and names them, builds the overview, and
// compares two ranks.

import { type Signal, signal } from "@preact/signals";
import type {
  CompareAnswer,
  CompareQuery,
  Failure,
  FileEntry,
  Fleet,
  ListQuery,
  MatrixAnswer,
  MatrixQuery,
  Overview,
  RankList,
  ReadIndex,
  RunQuery,
  RunRequest,
  RunResponse,
  ShownRank,
} from "../generated/protocol.js";
import type { Bytes, FromWorker, ToWorker } from "./messages.js";
import { makeVisible } from "./visible.js";
import type { Modules, PreparedWorker } from "./wasm.js";

/** A request that has no answer yet. */
interface Pending {
  message: ToWorker;
  resolve(response: RunResponse): void;
  reject(failure: Failure): void;
}

export type Explained = Extract<RunResponse, { kind: "explained" }>;
type Planned = Extract<RunResponse, { kind: "planned" }>;

export class Coordinator {
  readonly #modules: Pick<Modules, "spawn">;
  #prepared: PreparedWorker;
  readonly #pending = new Map<number, Pending>();
  /** Counts replaced workers. A new worker must be sent everything that the old one knew. */
  readonly renewed: Signal<number> = signal(0);
  #lastId = 0;
  /** The worker crashed before its first answer. A replacement would crash in the same way. */
  #hopeless = false;
  #broken = false;

  constructor(modules: Pick<Modules, "spawn">) {
    this.#modules = modules;
    this.#prepared = this.#spawn();
  }

  /** Orders the files and names their rows. Rejects with a `Failure`. */
  async plan(files: FileEntry[]): Promise<Planned> {
    if (this.#broken) this.#renew();
    const response = await this.#ask((id) => ({ plan: { id, files } }));
    if (response.kind !== "planned") throw new Error("The coordinator did not plan the files.");
    return response;
  }

  /** Changes and returns the overview. Rejects with a `Failure`. */
  async view(query: RunQuery): Promise<Overview> {
    const response = await this.#ask((id) => ({ view: { id, query } }));
    if (response.kind !== "overview")
      throw new Error("The coordinator did not build the overview.");
    return response.overview;
  }

  /** Chooses which rows of the overview are shown. Rejects with a `Failure`. */
  async list(query: ListQuery): Promise<RankList> {
    const response = await this.#ask((id) => ({ list: { id, query } }));
    if (response.kind !== "list") throw new Error("The coordinator did not list the ranks.");
    return response.list;
  }

  /** Rows of the overview by key. Rejects with a `Failure`. */
  async rows(keys: number[]): Promise<ShownRank[]> {
    const response = await this.#ask((id) => ({ rows: { id, keys } }));
    if (response.kind !== "rows") throw new Error("The coordinator did not give the rows.");
    return response.rows;
  }

  /** Reads a GPU that the user wrote. Rejects with a `Failure`. */
  async gpu(text: string): Promise<RunResponse & { kind: "gpu" }> {
    const response = await this.#ask((id) => ({ gpu: { id, text } }));
    if (response.kind !== "gpu") throw new Error("The coordinator did not read the GPU.");
    return response;
  }

  /** The ranks in one picture; null with few ranks. Rejects with a `Failure`. */
  async fleet(key: number | null, sizes: string, capacity: number | null): Promise<Fleet | null> {
    const response = await this.#ask((id) => ({ fleet: { id, key, sizes, capacity } }));
    if (response.kind !== "fleet") throw new Error("The coordinator did not draw the ranks.");
    return response.fleet;
  }

  /** Reads lines of an index. `first` begins another index. Rejects with a `Failure`. */
  async readIndex(source: Bytes, first: boolean): Promise<ReadIndex> {
    if (this.#broken) this.#renew();
    const response = await this.#send((id) => ({ kind: "index", id, source, first }));
    if (response.kind !== "indexed") throw new Error("The coordinator did not read the index.");
    return response.read;
  }

  /** Compares two snapshots. Rejects with a `Failure`. */
  async compare(query: CompareQuery): Promise<CompareAnswer> {
    const response = await this.#ask((id) => ({ compare: { id, query } }));
    if (response.kind !== "compared")
      throw new Error("The coordinator did not compare the snapshots.");
    return response.answer;
  }

  /** The matrix of ranks, or a cell of it. Rejects with a `Failure`. */
  async matrix(query: MatrixQuery): Promise<MatrixAnswer> {
    const response = await this.#ask((id) => ({ matrix: { id, query } }));
    if (response.kind !== "matrix") throw new Error("The coordinator did not make the matrix.");
    return response.answer;
  }

  /** What out-of-memory messages mean, as HTML with its styles. Rejects with a `Failure`. */
  async explain(text: string): Promise<Explained> {
    const response = await this.#ask((id) => ({ explain: { id, text } }));
    if (response.kind !== "explained")
      throw new Error("The coordinator did not explain the messages.");
    return response;
  }

  destroy(): void {
    this.#prepared.end();
    this.#rejectAll({ id: null, message: "The viewer was closed.", hint: null });
  }

  #spawn(): PreparedWorker {
    const prepared = this.#modules.spawn();
    prepared.onmessage((message) => this.#receive(message));
    return prepared;
  }

  #ask(request: (id: number) => RunRequest): Promise<RunResponse> {
    return this.#send((id) => ({ kind: "run", request: request(id) }));
  }

  /** The answer to a message with the next id. */
  #send(messageOf: (id: number) => ToWorker): Promise<RunResponse> {
    this.#lastId += 1;
    const [id, message] = [this.#lastId, messageOf(this.#lastId)];
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { message, resolve, reject });
      this.#prepared.send(message);
    });
  }

  #receive(message: FromWorker): void {
    if (message.kind === "crashed")
      if (message.unused === true) this.#replace();
      else this.#crashed(message.failure);
    if (message.kind !== "run") return;
    this.#hopeless = false;
    const response = makeVisible(message.response);
    this.#pending.get(response.id)?.resolve(response);
    this.#pending.delete(response.id);
  }

  /** Gives the open requests to a new worker: the old one had ended before it got them. */
  #replace(): void {
    this.#renew();
    for (const { message } of this.#pending.values()) this.#prepared.send(message);
  }

  /** Replaces the worker now, or at the next `plan` if the replacement would crash too. */
  #crashed(failure: Failure): void {
    const replace = !this.#hopeless;
    this.#broken = true;
    this.#hopeless = true;
    this.#rejectAll(failure);
    if (replace) this.#renew();
  }

  #renew(): void {
    this.#prepared.end();
    this.#prepared = this.#spawn();
    this.#broken = false;
    this.renewed.value = this.renewed.peek() + 1;
  }

  #rejectAll(failure: Failure): void {
    for (const { reject } of this.#pending.values()) reject(failure);
    this.#pending.clear();
  }
}
