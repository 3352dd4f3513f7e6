// The wasm modules, each compiled once per page. The view's module is instantiated on the page. The
// worker's module is posted to every worker. A build of the worker's module with threads is fetched
// when a large file is opened on a cross-origin isolated page.

import { type Signal, signal } from "@preact/signals";
import initView, { Swatches } from "../../wasm/vramscope_view.js";
import type { Failure } from "../generated/protocol.js";
import { VERSION } from "../version.js";
import {
  Fault,
  NO_SCRIPT,
  RELOAD,
  refused,
  type Stop,
  stopped,
  UNHARMED,
  wordsOf,
} from "./faults.js";
import type { FromWorker, ThreadsBuild, ToWorker } from "./messages.js";

/**
 * Where the wasm files and the worker's script are, when they are not where the bundler has put
 * them: absolute addresses.
 */
export interface Places {
  /** The folder of the wasm files. */
  wasm: string | null;
  worker: string | null;
}

/** No browser starts a worker from another origin's address; one of this origin may import it. */
function start(address: string): Worker {
  const foreign = new URL(address).origin !== location.origin;
  const script = `import ${JSON.stringify(address)};`;
  const url = foreign
    ? URL.createObjectURL(new Blob([script], { type: "text/javascript" }))
    : address;
  return new Worker(url, { type: "module", name: "vramscope" });
}

/**
 * Compiles while it downloads; where the server names another type than application/wasm, after it.
 */
async function compile(url: URL): Promise<WebAssembly.Module> {
  const response = await fetch(url).catch((): never => {
    throw new Fault(`${url.pathname} could not be fetched.`, RELOAD);
  });
  if (!response.ok)
    throw new Fault(`${url.pathname} answered ${response.status} ${response.statusText}`, RELOAD);
  const type = response.headers.get("content-type") ?? "";
  try {
    if (type.startsWith("application/wasm")) return await WebAssembly.compileStreaming(response);
    return await WebAssembly.compile(await response.arrayBuffer());
  } catch (error) {
    throw refused(url.pathname, type, error);
  }
}

/** Made when it is first asked for, and again after it has failed. */
class Made<T> {
  readonly #make: () => Promise<T>;
  #made: Promise<T> | null = null;

  constructor(make: () => Promise<T>) {
    this.#make = make;
  }

  get(): Promise<T> {
    if (this.#made === null) {
      this.#made = this.#make();
      this.#made.catch(() => {
        this.#made = null;
      });
    }
    return this.#made;
  }
}

/** A worker whose module is on its way. */
export interface PreparedWorker {
  /** Ends it, with its threads. */
  end(): void;
  /** It has stopped, or has not come to life. */
  readonly broken: boolean;
  send(message: ToWorker): void;
  onmessage(listen: (message: FromWorker) => void): void;
}

/** So many words of colors are kept. */
const WORDS = 4096;

/**
 * The CSS colors of a theme by words. Each comes once: to bring a string over takes longer than to
 * find it.
 */
function swatches(dark: boolean): (color: number) => string {
  const palette = new Swatches(dark);
  const known = new Map<number, string>();
  return (color) => {
    let css = known.get(color);
    if (css === undefined) {
      css = palette.css(color);
      if (known.size === WORDS) known.clear();
      known.set(color, css);
    }
    return css;
  };
}

/** The modules of one element. */
export class Modules {
  readonly #worker: Made<WebAssembly.Module>;
  readonly #view: Made<unknown>;
  #threaded: Promise<WebAssembly.Module | null> | null = null;
  /**
   * Address of the script of the build with threads; its module lies beside it. Null where there is
   * none.
   */
  threads: string | null = null;
  /** True once the worker's module is compiled. */
  readonly compiled: Signal<boolean> = signal(false);

  /** The colors of the dark and the light theme, once the view is there. */
  readonly #swatches: Signal<Record<"dark" | "light", (color: number) => string> | null> =
    signal(null);
  readonly #places: Places;

  constructor(places: Places) {
    this.#places = places;
    const worker = new URL("../../wasm/vramscope_worker_bg.wasm", import.meta.url);
    const view = new URL("../../wasm/vramscope_view_bg.wasm", import.meta.url);
    this.#worker = new Made(async () => {
      const module = await this.#compile("vramscope_worker", worker);
      this.compiled.value = true;
      return module;
    });
    this.#view = new Made(async () => {
      await initView({ module_or_path: await this.#compile("vramscope_view", view) });
      this.#swatches.value = { dark: swatches(true), light: swatches(false) };
    });
    void this.ready().catch(() => undefined);
  }

  /** Settled once the view can be made. */
  get view(): Promise<unknown> {
    return this.#view.get();
  }

  /** The color of a word in a theme. */
  swatch(color: number, dark: boolean): string | undefined {
    return this.#swatches.value?.[dark ? "dark" : "light"](color);
  }

  /**
   * Bundlers look for the addresses as they are written above, so each is there, if only to be
   * passed over.
   */
  #compile(name: string, bundled: URL): Promise<WebAssembly.Module> {
    const { wasm } = this.#places;
    return compile(wasm === null ? bundled : new URL(`${name}_bg.wasm`, wasm));
  }

  /** Settled once both modules are compiled. */
  async ready(): Promise<void> {
    await Promise.all([this.#worker.get(), this.view]);
  }

  /** Why no worker has threads; null when they may. */
  get single(): string | null {
    if (!globalThis.crossOriginIsolated) return "this page is not isolated from other origins";
    return this.threads === null ? "this page was built without more" : null;
  }

  /**
   * The build with threads; null when there is none, or it does not come: the others do as well.
   */
  async #share(threads: number): Promise<ThreadsBuild | null> {
    const script = this.threads;
    if (threads < 2 || script === null || this.single !== null) return null;
    this.#threaded ??= compile(new URL(script.replace(/\.js$/, "_bg.wasm"))).catch(() => null);
    const module = await this.#threaded;
    return module && { script, module, threads, alarm: `vramscope ${crypto.randomUUID()}` };
  }

  #start(): Worker {
    const { worker: place } = this.#places;
    return place === null
      ? new Worker(new URL("./worker.js", import.meta.url), { type: "module", name: "vramscope" })
      : start(place);
  }

  /**
   * A new worker, with so many threads if that can be; `early` while there is no file. Messages
   * sent at once wait for its module.
   */
  spawn({ threads = 1, early = false } = {}): PreparedWorker {
    const place = this.#places.worker ?? "worker.js";
    const listeners: ((message: FromWorker) => void)[] = [];
    let ended = false;
    // One that has been ended has nothing more to say: who hears that it has stopped would start
    // another.
    const tell = (message: FromWorker) => {
      if (!ended) for (const listen of listeners) listen(message);
    };
    let broken: FromWorker | null = null;
    const crash = (failure: Failure) => {
      broken = { kind: "crashed", failure };
      tell(broken);
    };
    // Before its first word it has not started.
    let alive = false;
    const failed = (words: string) => {
      const at = place.startsWith("blob:") ? "" : ` ${place}`;
      if (alive) crash({ id: null, message: `A worker has stopped: ${words}`, hint: UNHARMED });
      else if (words !== "")
        crash({ id: null, message: `A worker could not be started: ${words}`, hint: null });
      else
        crash({
          id: null,
          message: `A worker could not be started: its script${at} does not come.`,
          hint: NO_SCRIPT,
        });
    };
    let worker: Worker | null = null;
    let alarm: BroadcastChannel | null = null;
    try {
      worker = this.#start();
      worker.onmessage = (event: MessageEvent<FromWorker>) => {
        alive = true;
        tell(event.data);
      };
      worker.onmessageerror = () => failed("an answer could not be read");
      worker.onerror = (event) => failed((event.message ?? "").replace(/^Uncaught /, ""));
    } catch (error) {
      failed(wordsOf(error));
    }
    const prepared = Promise.all([this.#worker.get(), this.#share(threads)]).then(
      ([module, threaded]) => {
        if (ended) return;
        if (threaded) {
          alarm = new BroadcastChannel(threaded.alarm);
          alarm.onmessage = ({ data }: MessageEvent<Stop>) => crash(stopped(data));
        }
        worker?.postMessage({
          kind: "prepare",
          module,
          threaded,
          early,
          version: VERSION,
        } satisfies ToWorker);
      },
      (error: unknown) =>
        crash({
          id: null,
          message: wordsOf(error),
          hint: error instanceof Fault ? error.hint : null,
        }),
    );
    return {
      get broken() {
        return broken !== null;
      },
      end: () => {
        ended = true;
        worker?.terminate();
        alarm?.close();
      },
      // A worker that never came to life answers whoever asks it with the reason.
      send: (message) =>
        void prepared.then(() => (broken ? tell(broken) : worker?.postMessage(message))),
      onmessage: (listen) => void listeners.push(listen),
    };
  }
}
