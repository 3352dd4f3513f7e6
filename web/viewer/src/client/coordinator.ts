// The worker that sees all files of a run: it puts them in order and names them, and lays ranks beside each other.

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
  #lastId = 0;
  #ended = false;

  constructor(modules: Modules) {
    this.#modules = modules;
    this.#prepared = this.#spawn();
  }

  /** Rows for these files. Rejects with a `Failure`. */
  async plan(files: FileEntry[]): Promise<Planned> {
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

  /** From now on by a worker that answers all views. What is asked of the old one is answered first. */
  async upgrade(): Promise<void> {
    await Promise.allSettled([...this.#pending.values()].map(({ promise }) => promise));
    if (this.#ended || this.#prepared.full) return;
    this.#prepared.worker.terminate();
    this.#prepared = this.#spawn();
  }

  destroy(): void {
    this.#ended = true;
    this.#prepared.worker.terminate();
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
    if (message.kind === "crashed") this.#rejectAll(message.failure);
    if (message.kind !== "run") return;
    this.#pending.get(message.response.id)?.resolve(message.response);
    this.#pending.delete(message.response.id);
  }

  #rejectAll(failure: Failure): void {
    for (const { reject } of this.#pending.values()) reject(failure);
    this.#pending.clear();
  }
}
