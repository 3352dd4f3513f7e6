// The worker that sees all files of a run: it puts them in order and names them.

import type { Failure, FileEntry, RunResponse } from "../generated/protocol.js";
import type { FromWorker } from "./messages.js";
import type { Modules, PreparedWorker } from "./wasm.js";

export class Coordinator {
  readonly #prepared: PreparedWorker;
  readonly #pending = new Map<number, PromiseWithResolvers<RunResponse>>();
  #lastId = 0;

  constructor(modules: Modules) {
    this.#prepared = modules.spawn();
    this.#prepared.onmessage((message) => this.#receive(message));
  }

  /** Rows for these files. Rejects with a `Failure`. */
  plan(files: FileEntry[]): Promise<RunResponse> {
    this.#lastId += 1;
    const answer = Promise.withResolvers<RunResponse>();
    this.#pending.set(this.#lastId, answer);
    this.#prepared.send({ kind: "run", request: { plan: { id: this.#lastId, files } } });
    return answer.promise;
  }

  destroy(): void {
    this.#prepared.worker.terminate();
    this.#rejectAll({ id: null, message: "The viewer was closed.", hint: null });
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
