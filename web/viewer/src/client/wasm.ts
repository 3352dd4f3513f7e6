// The two wasm modules, each compiled once on the page: the view's is instantiated here, the worker's is posted to every
// worker.

import initView from "../../wasm/memstrata_view.js";
import type { FromWorker, ToWorker } from "./messages.js";

/** Compiles while it downloads; where the server names another type than application/wasm, after it. */
async function compile(url: URL): Promise<WebAssembly.Module> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url.pathname} answered ${response.status} ${response.statusText}`);
  if (response.headers.get("content-type")?.startsWith("application/wasm")) {
    return WebAssembly.compileStreaming(response);
  }
  return WebAssembly.compile(await response.arrayBuffer());
}

/** A worker whose module is on its way. */
export interface PreparedWorker {
  readonly worker: Worker;
  send(message: ToWorker): void;
  onmessage(listen: (message: FromWorker) => void): void;
}

/** The modules of one element. */
export class Modules {
  readonly #worker: Promise<WebAssembly.Module>;
  /** Settled once the view can be made. */
  readonly view: Promise<unknown>;

  constructor() {
    this.#worker = compile(new URL("../../wasm/memstrata_worker_bg.wasm", import.meta.url));
    this.view = compile(new URL("../../wasm/memstrata_view_bg.wasm", import.meta.url)).then((module) =>
      initView({ module_or_path: module }),
    );
  }

  /** Settled once both are there. */
  async ready(): Promise<void> {
    await Promise.all([this.#worker, this.view]);
  }

  /** A new worker. Messages sent at once wait for its module. */
  spawn(): PreparedWorker {
    const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module", name: "memstrata" });
    const listeners: ((message: FromWorker) => void)[] = [];
    const tell = (message: FromWorker) => {
      for (const listen of listeners) listen(message);
    };
    const crash = (message: string) => tell({ kind: "crashed", failure: { id: null, message, hint: null } });
    worker.onmessage = (event: MessageEvent<FromWorker>) => tell(event.data);
    worker.onmessageerror = () => crash("An answer of the worker could not be read.");
    worker.onerror = (event) => crash(event.message || "The worker's script could not be started.");
    const prepared = this.#worker.then(
      (module) => worker.postMessage({ kind: "prepare", module } satisfies ToWorker),
      (error: unknown) => crash(`The WebAssembly module could not be loaded: ${String(error)}`),
    );
    return {
      worker,
      send: (message) => void prepared.then(() => worker.postMessage(message)),
      onmessage: (listen) => void listeners.push(listen),
    };
  }
}
