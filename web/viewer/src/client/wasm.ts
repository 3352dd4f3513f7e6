// The wasm modules, each compiled once per page. The view's module is instantiated on the page. The
// worker's module is posted to every worker. A build of the worker's module with threads is fetched
// when a large file is opened on a cross-origin isolated page.

import { type Signal, signal } from "@preact/signals";
import initView from "../../wasm/vramscope_view.js";
import type { Failure } from "../generated/protocol.js";
import { VERSION } from "../version.js";
import {
  Fault,
  NO_SCRIPT,
  RELOAD,
  refused,
  SILENT,
  type Stop,
  stopped,
  UNHARMED,
  wordsOf,
} from "./faults.js";
import type { FromWorker, ThreadsBuild, ToWorker } from "./messages.js";
import { type ThemeColors, themeColors } from "./swatches.js";
import { Watchdog } from "./watchdog.js";

/** Absolute addresses of the wasm files and the worker's script; null for the bundler's. */
export interface Places {
  /** The folder of the wasm files. */
  wasm: string | null;
  worker: string | null;
  /** The parts themselves, in place of their addresses: nothing is fetched. */
  parts: Parts | null;
}

/** The bytes of a file, plain or gzipped. */
export type Bytes = BufferSource | Promise<BufferSource>;

/** What the viewer uses of a worker. */
export type WorkerPort = Pick<
  Worker,
  "postMessage" | "terminate" | "onmessage" | "onmessageerror" | "onerror"
>;

/** The wasm files and the worker's script, for pages without a server. */
export interface Parts {
  /**
   * The text of the worker's script, which is a script and not a module; or what starts a worker,
   * for pages whose files lie on another machine.
   */
  worker: string | (() => WorkerPort);
  /** `worker` is null if the workers have their module. */
  wasm: { view: Bytes; worker: Bytes | null };
}

/** The bytes, unpacked if they are gzipped. */
async function plain(bytes: BufferSource): Promise<BufferSource> {
  const [first, second] = ArrayBuffer.isView(bytes)
    ? new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    : new Uint8Array(bytes);
  if (first !== 0x1f || second !== 0x8b) return bytes;
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(unpacked).arrayBuffer();
}

/** Compiles a module that the page was given. */
async function compileBytes(name: string, bytes: Bytes): Promise<WebAssembly.Module> {
  try {
    return await WebAssembly.compile(await plain(await bytes));
  } catch (error) {
    throw refused(name, "application/wasm", error);
  }
}

/**
 * Starts a worker from the text of its script. A page that was opened from disk has no origin that
 * may import a blob, so the script is not a module.
 */
function startText(script: string): Worker {
  const url = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
  return new Worker(url, { name: "vramscope" });
}

/**
 * Starts a worker from an address. Browsers refuse another origin's script, but a blob of this
 * origin may import it.
 */
function start(address: string): Worker {
  const foreign = new URL(address).origin !== location.origin;
  const script = `import ${JSON.stringify(address)};`;
  const url = foreign
    ? URL.createObjectURL(new Blob([script], { type: "text/javascript" }))
    : address;
  return new Worker(url, { type: "module", name: "vramscope" });
}

/** Compiles while downloading if the server's content type is application/wasm, else afterwards. */
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

/** A promise that is made at its first use, and made again after it was rejected. */
class Retried<T> {
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

/** Whether a message needs nothing that the worker was told before. */
const isNew = ({ kind }: ToWorker) => kind === "load" || kind === "run" || kind === "index";

/** A worker whose module may still be loading. */
export interface PreparedWorker {
  /** Ends it, with its threads. */
  end(): void;
  /** True after a crash or a failed start. */
  readonly broken: boolean;
  send(message: ToWorker): void;
  /** Sets the listener, in place of the one before. */
  onmessage(listen: (message: FromWorker) => void): void;
}

/** The modules of one element. */
export class Modules {
  readonly #worker: Retried<WebAssembly.Module | null>;
  readonly #view: Retried<unknown>;
  #threaded: Promise<WebAssembly.Module | null> | null = null;
  /** Address of the script of the build with threads, next to its module; null without one. */
  threads: string | null = null;
  /** True once the worker's module is compiled. */
  readonly compiled: Signal<boolean> = signal(false);

  /** Colors of the dark and the light theme, once the view's module is initialized. */
  readonly #colors: Signal<Record<"dark" | "light", ThemeColors> | null> = signal(null);
  readonly #places: Places;
  readonly #bundled: Record<"view" | "worker", () => URL>;

  constructor(places: Places) {
    this.#places = places;
    // A script that holds all parts has no address, so these are made only where they are used.
    const worker = () => new URL("../../wasm/vramscope_worker_bg.wasm", import.meta.url);
    const view = () => new URL("../../wasm/vramscope_view_bg.wasm", import.meta.url);
    this.#bundled = { worker, view };
    this.#worker = new Retried(async () => {
      const isTheirs = places.parts?.wasm.worker === null;
      const module = isTheirs ? null : await this.#compile("worker", worker);
      this.compiled.value = true;
      return module;
    });
    this.#view = new Retried(async () => {
      await initView({ module_or_path: await this.#compile("view", view) });
      this.#colors.value = { dark: themeColors(true), light: themeColors(false) };
    });
    void this.ready().catch(() => undefined);
  }

  /** Resolves once the view's module is initialized. */
  get view(): Promise<unknown> {
    return this.#view.get();
  }

  /** The CSS colors of a theme. */
  colors(dark: boolean): ThemeColors | undefined {
    return this.#colors.value?.[dark ? "dark" : "light"];
  }

  /** `bundled` must be written as `new URL(...)` by callers, because bundlers search for that. */
  #compile(part: "view" | "worker", bundled: () => URL): Promise<WebAssembly.Module> {
    const { wasm, parts } = this.#places;
    const name = `vramscope_${part}_bg.wasm`;
    const given = parts?.wasm[part];
    if (given) return compileBytes(name, given);
    return compile(wasm === null ? bundled() : new URL(name, wasm));
  }

  /** The bytes of a wasm file, for a page that has no server. */
  async bytes(part: "view" | "worker"): Promise<Uint8Array<ArrayBuffer>> {
    const { wasm, parts } = this.#places;
    const given = parts?.wasm[part];
    if (given) return new Uint8Array(await new Response(await given).arrayBuffer());
    const url = wasm === null ? this.#bundled[part]() : new URL(`vramscope_${part}_bg.wasm`, wasm);
    const response = await fetch(url).catch(() => null);
    if (!response?.ok) throw new Fault(`${url.pathname} could not be fetched.`, RELOAD);
    return new Uint8Array(await response.arrayBuffer());
  }

  /** Resolves once both modules are compiled. */
  async ready(): Promise<void> {
    await Promise.all([this.#worker.get(), this.view]);
  }

  /** Why workers have one thread only; null if they may have more. */
  get single(): string | null {
    if (!globalThis.crossOriginIsolated) return "this page is not cross-origin isolated";
    return this.threads === null ? "this page was built without threads" : null;
  }

  /** The build with threads; null if there is none or it cannot be loaded. */
  async #share(threads: number): Promise<ThreadsBuild | null> {
    const script = this.threads;
    if (threads < 2 || script === null || this.single !== null) return null;
    this.#threaded ??= compile(new URL(script.replace(/\.js$/, "_bg.wasm"))).catch(() => null);
    const module = await this.#threaded;
    return module && { script, module, threads, alarm: `vramscope ${crypto.randomUUID()}` };
  }

  #start(): WorkerPort {
    const { worker: place, parts } = this.#places;
    if (parts !== null)
      return typeof parts.worker === "string" ? startText(parts.worker) : parts.worker();
    return place === null
      ? new Worker(new URL("./worker.js", import.meta.url), { type: "module", name: "vramscope" })
      : start(place);
  }

  /**
   * Starts a worker, with this number of threads if possible. `early` workers warm up. Messages are
   * queued until the module is compiled.
   */
  spawn({ threads = 1, early = false } = {}): PreparedWorker {
    const { parts, worker: address } = this.#places;
    const place = parts === null ? (address ?? "worker.js") : "blob:";
    let listener: ((message: FromWorker) => void) | null = null;
    let ended = false;
    // Messages of an ended worker are dropped: a crash would start a replacement.
    const tell = (message: FromWorker) => {
      if (!ended) listener?.(message);
    };
    let broken: FromWorker | null = null;
    const crash = (failure: Failure, unused = false) => {
      broken = { kind: "crashed", failure, unused };
      tell(broken);
    };
    // True after the worker's first message.
    let started = false;
    // Requests to a coordinator without an answer: each has one.
    let unanswered = 0;
    const failed = (words: string) => {
      const at = place.startsWith("blob:") ? "" : ` ${place}`;
      if (started) crash({ id: null, message: `A worker has stopped: ${words}`, hint: UNHARMED });
      else if (words !== "")
        crash({ id: null, message: `A worker could not be started: ${words}`, hint: null });
      else
        crash({
          id: null,
          message: `A worker could not be started: its script${at} failed to load.`,
          hint: NO_SCRIPT,
        });
    };
    const dog = new Watchdog({
      ask: () => worker?.postMessage({ kind: "ping" } satisfies ToWorker),
      silent: (unused) => crash(SILENT, unused),
    });
    let worker: WorkerPort | null = null;
    let alarm: BroadcastChannel | null = null;
    try {
      worker = this.#start();
      worker.onmessage = (event: MessageEvent<FromWorker>) => {
        started = true;
        if (event.data.kind === "run") unanswered -= 1;
        const isDone = event.data.kind === "run" && unanswered === 0;
        dog.heard(isDone || (event.data.kind === "alive" && event.data.idle));
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
        dog.end();
        worker?.terminate();
        alarm?.close();
      },
      // A worker that failed to start answers every message with the reason.
      send: (message) =>
        void prepared.then(() => {
          if (broken) return tell(broken);
          if (message.kind === "run" || message.kind === "index") unanswered += 1;
          // A worker is told to load a file only when it has nothing else to do.
          if (!ended) dog.given(isNew(message), message.kind === "load");
          worker?.postMessage(message);
        }),
      onmessage: (listen) => {
        listener = listen;
      },
    };
  }
}
