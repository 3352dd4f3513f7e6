// The worker that sees all files of a run: it puts them in order and names them, and lays ranks
// beside each other.

import { type Signal, signal } from "@preact/signals";
import type {
  CompareAnswer,
  CompareQuery,
  Failure,
  FileEntry,
  Overview,
  RunQuery,
  RunRequest,
  RunResponse,
} from "../generated/protocol.js";
import type { FromWorker } from "./messages.js";
import type { Modules, PreparedWorker } from "./wasm.js";

type Planned = Extract<RunResponse, { kind: "planned" }>;

export class Coordinator {
  readonly #modules: Modules;
  #prepared: PreparedWorker;
  readonly #pending = new Map<number, PromiseWithResolvers<RunResponse>>();
  /**
   * Counts workers that knew nothing when they came: what the one before had been told, they have
   * to be told.
   */
  readonly renewed: Signal<number> = signal(0);
  #lastId = 0;
  /**
   * The worker has stopped without having answered anything: what it was told would stop the next
   * one too.
   */
  #hopeless = false;
  #broken = false;

  constructor(modules: Modules) {
    this.#modules = modules;
    this.#prepared = this.#spawn();
  }

  /** Rows for these files. Rejects with a `Failure`. */
  async plan(files: FileEntry[]): Promise<Planned> {
    if (this.#broken) this.#renew();
    const response = await this.#ask((id) => ({ plan: { id, files } }));
    if (response.kind !== "planned") throw new Error("The files were not planned.");
    return response;
  }

  /** The run as it stands. Rejects with a `Failure`. */
  async view(query: RunQuery): Promise<Overview> {
    const response = await this.#ask((id) => ({ view: { id, query } }));
    if (response.kind !== "overview") throw new Error("The ranks were not compared.");
    return response.overview;
  }

  /** Two recordings beside each other. Rejects with a `Failure`. */
  async compare(query: CompareQuery): Promise<CompareAnswer> {
    const response = await this.#ask((id) => ({ compare: { id, query } }));
    if (response.kind !== "compared") throw new Error("The two were not compared.");
    return response.answer;
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
    this.#lastId += 1;
    const answer = Promise.withResolvers<RunResponse>();
    this.#pending.set(this.#lastId, answer);
    this.#prepared.send({ kind: "run", request: request(this.#lastId) });
    return answer.promise;
  }

  #receive(message: FromWorker): void {
    if (message.kind === "crashed") this.#crashed(message.failure);
    if (message.kind !== "run") return;
    this.#hopeless = false;
    this.#pending.get(message.response.id)?.resolve(message.response);
    this.#pending.delete(message.response.id);
  }

  /** Another takes its place; where that would stop likewise, when something is opened. */
  #crashed(failure: Failure): void {
    const again = !this.#hopeless;
    this.#broken = true;
    this.#hopeless = true;
    this.#rejectAll(failure);
    if (again) this.#renew();
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
