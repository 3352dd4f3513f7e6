// The wasm modules, each compiled once on the page: the view's is instantiated here, the workers' are posted to them. The
// worker has two: the first picture waits for a small one only; the one that answers all views is fetched after it. A third,
// the latter with threads, is fetched when a large file is opened on a page that may share memory.

import initView from "../../wasm/memstrata_view.js";
import { VERSION } from "../version.js";
import type { FromWorker, Glue, ThreadsBuild, ToWorker } from "./messages.js";

/** Where the wasm files and the worker's script are, when they are not where the bundler has put them: absolute addresses. */
export interface Places {
  /** The folder of the wasm files. */
  wasm: string | null;
  worker: string | null;
}

/** No browser starts a worker from another origin's address; one of this origin may import it. */
function start(address: string): Worker {
  const foreign = new URL(address).origin !== location.origin;
  const script = `import ${JSON.stringify(address)};`;
  const url = foreign ? URL.createObjectURL(new Blob([script], { type: "text/javascript" })) : address;
  return new Worker(url, { type: "module", name: "memstrata" });
}

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
  /** Whether it answers all views. */
  readonly full: boolean;
  send(message: ToWorker): void;
  onmessage(listen: (message: FromWorker) => void): void;
}

/** The modules of one element. */
export class Modules {
  readonly #first: Promise<WebAssembly.Module>;
  #views: Promise<WebAssembly.Module> | null = null;
  #threaded: Promise<WebAssembly.Module | null> | null = null;
  /** Address of the script of the build with threads; its module lies beside it. Null where there is none. */
  threads: string | null = null;
  /** True from when new workers answer all views. */
  full = false;
  /** Settled once the view can be made. */
  readonly view: Promise<unknown>;

  readonly #places: Places;

  constructor(places: Places) {
    this.#places = places;
    this.#first = this.#compile("memstrata_worker", new URL("../../wasm/memstrata_worker_bg.wasm", import.meta.url));
    const view = this.#compile("memstrata_view", new URL("../../wasm/memstrata_view_bg.wasm", import.meta.url));
    this.view = view.then((module) => initView({ module_or_path: module }));
  }

  /** Bundlers look for the addresses as they are written above, so each is there, if only to be passed over. */
  #compile(name: string, bundled: URL): Promise<WebAssembly.Module> {
    const { wasm } = this.#places;
    return compile(wasm === null ? bundled : new URL(`${name}_bg.wasm`, wasm));
  }

  /** Settled once both are there. */
  async ready(): Promise<void> {
    await Promise.all([this.#first, this.view]);
  }

  /** Fetches the module that answers all views, once. */
  async loadViews(): Promise<void> {
    const bundled = new URL("../../wasm/memstrata_worker_views_bg.wasm", import.meta.url);
    this.#views ??= this.#compile("memstrata_worker_views", bundled);
    await this.#views;
    this.full = true;
  }

  /** Why no worker has threads; null when they may. */
  get single(): string | null {
    if (!globalThis.crossOriginIsolated) return "this page is not isolated from other origins";
    return this.threads === null ? "this page was built without more" : null;
  }

  /** The build with threads; null when there is none, or it does not come: the others do as well. */
  async #share(threads: number): Promise<ThreadsBuild | null> {
    const script = this.threads;
    if (threads < 2 || script === null || this.single !== null) return null;
    this.#threaded ??= compile(new URL(script.replace(/\.js$/, "_bg.wasm"))).catch(() => null);
    const module = await this.#threaded;
    return module && { script, module, threads };
  }

  /** A new worker, with so many threads if that can be. Messages sent at once wait for its module. */
  spawn(threads = 1): PreparedWorker {
    const { worker: place } = this.#places;
    const worker =
      place === null
        ? new Worker(new URL("./worker.js", import.meta.url), { type: "module", name: "memstrata" })
        : start(place);
    const listeners: ((message: FromWorker) => void)[] = [];
    const tell = (message: FromWorker) => {
      for (const listen of listeners) listen(message);
    };
    let broken: FromWorker | null = null;
    const crash = (message: string) => {
      broken = { kind: "crashed", failure: { id: null, message, hint: null } };
      tell(broken);
    };
    worker.onmessage = (event: MessageEvent<FromWorker>) => tell(event.data);
    worker.onmessageerror = () => crash("An answer of the worker could not be read.");
    worker.onerror = (event) =>
      crash(event.message || `The worker's script could not be started: ${place ?? "worker.js"}`);
    const { full } = this;
    const glue: Glue = full ? "views" : "first";
    const plain = (full && this.#views) || this.#first;
    const prepared = Promise.all([plain, this.#share(full ? threads : 1)]).then(
      ([module, threaded]) =>
        worker.postMessage({ kind: "prepare", module, glue, threaded, version: VERSION } satisfies ToWorker),
      (error: unknown) => crash(`The WebAssembly module could not be loaded: ${String(error)}`),
    );
    return {
      worker,
      full,
      // A worker that never came to life answers whoever asks it with the reason.
      send: (message) => void prepared.then(() => (broken ? tell(broken) : worker.postMessage(message))),
      onmessage: (listen) => void listeners.push(listen),
    };
  }
}
