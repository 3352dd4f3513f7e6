// <vramscope-viewer src run theme view readonly mode sample guide page threads wasm-url
// worker-url>: the viewer as a custom element. All its state is in the `Session` that it makes when
// it enters a document and ends when it leaves; two elements on a page share nothing.

import { effect, signal } from "@preact/signals";
import { render } from "preact";
import { fromInput, fromScript, type LoadInput } from "./client/files.js";
import type { RankFile } from "./client/rank-file.js";
import { fromIndex, RunWatch } from "./client/run-index.js";
import type { BlockDetail, Failure, Hit } from "./generated/protocol.js";
import { VIEWS } from "./linked.js";
import { failureOf } from "./run.js";
import { Session } from "./session.js";
import { styleSheets } from "./styles/sheets.js";
import { App, type Opening } from "./ui/app.js";
import { DropTarget } from "./ui/drop.js";
import { Keyboard } from "./ui/keyboard.js";
import { formatState, soundState, type Theme, type ViewState } from "./view-state.js";

/** What the viewer costs. */
export interface Stats {
  /** Blocks and parts of blocks that the timeline shows. */
  strips: number;
  /** These, lines and marks. */
  instances: number;
  drawCalls: number;
  frameCpuMs: { p50: number; p95: number };
  ranks: { path: string; wasmBytes: number; loadMs: number; threads: number }[];
}

/** The details of the element's events. */
export interface VramscopeEvents {
  "vramscope-progress": { path: string; fraction: number; text: string };
  "vramscope-loaded": { path: string; remaining: number };
  "vramscope-select": { reference: string | null; detail: BlockDetail | null };
  "vramscope-error": { path: string | null; failure: Failure };
  /** What `getState()` gives has changed. */
  "vramscope-state": ViewState;
}

const THEMES: readonly Theme[] = ["auto", "light", "dark"];

const LOST: Failure = {
  id: null,
  message: "The program that serves these files has stopped.",
  hint: "What is on screen stays; files that have to be read again cannot be.",
};

/** When the browser has nothing better to do; Safari does not say when that is. */
const idle = (work: () => void) =>
  "requestIdleCallback" in globalThis
    ? requestIdleCallback(work, { timeout: 2000 })
    : setTimeout(work, 300);

/** What lasts from entering a document to leaving it. */
interface Life {
  session: Session;
  opening: Opening;
  end: (() => void)[];
}

export class VramscopeViewer extends HTMLElement {
  static readonly observedAttributes = ["src", "theme", "view", "readonly", "mode"];

  readonly #root = this.attachShadow({ mode: "open" });
  readonly #ready = Promise.withResolvers<void>();
  #life: Life | null = null;

  constructor() {
    super();
    // Who does not wait for it is told by an event.
    this.#ready.promise.catch(() => undefined);
  }

  /**
   * Settled once the element is in a document and its WebAssembly is compiled; rejected when that
   * cannot be had.
   */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  connectedCallback(): void {
    if (this.#life) return;
    const session = new Session(
      {
        progress: (file) => this.#progress(file),
        loaded: (file) => this.#loaded(session, file),
        selected: (detail) =>
          this.#emit("vramscope-select", { reference: detail?.reference ?? null, detail }),
        failed: (path, failure) => this.#emit("vramscope-error", { path, failure }),
      },
      {
        places: { wasm: this.#address("wasm-url"), worker: this.#address("worker-url") },
        focusSearch: () =>
          this.#root.querySelector<HTMLInputElement>("[data-testid=search]")?.focus(),
        askForFiles: () =>
          this.#root.querySelector<HTMLInputElement>("[data-testid=open-files]")?.click(),
        link: (state) => new URL(formatState(state), document.URL).href,
      },
    );
    const sample = this.getAttribute("sample");
    const run = this.getAttribute("run");
    const watch = new RunWatch(run ?? sample ?? "", () => session.report(LOST));
    const opening: Opening = {
      sample,
      guide: this.getAttribute("guide"),
      embedded: signal(false),
      readonly: signal(false),
      offer: watch,
      files: (files: Iterable<File>) => void session.open(fromInput(files)),
      add: (files: Iterable<File>) => void session.add(fromInput(files)),
      openSample: () => void this.#openIndex(session, watch, sample ?? ""),
      openOffer: () => void this.#openIndex(session, watch, run ?? ""),
    };
    this.#life = { session, opening, end: [() => watch.destroy()] };
    session.modules.threads = this.#address("threads");
    for (const name of ["theme", "view", "readonly", "mode"])
      this.#follow(this.#life, name, this.getAttribute(name));
    this.#listen(this.#life);
    this.#root.adoptedStyleSheets = styleSheets();
    render(<App session={session} opening={opening} />, this.#root);
    session.modules.ready().then(
      () => {
        this.#ready.resolve();
        // While a visitor looks for files, the other views can come. A page that is all ours can
        // spare two of its contexts.
        idle(() => void session.loadViews());
        if (this.hasAttribute("page"))
          for (let canvas = 0; canvas < 2; canvas += 1) idle(() => session.prepareCanvas());
      },
      (error: unknown) => {
        this.#ready.reject(error);
        session.report(failureOf(error));
      },
    );
    const src = this.getAttribute("src");
    if (src) void this.load(src.split(/\s+/));
    else if (run) void this.#openIndex(session, watch, run);
  }

  disconnectedCallback(): void {
    this.destroy();
  }

  attributeChangedCallback(name: string, before: string | null, value: string | null): void {
    if (!this.#life || before === value) return;
    if (name === "src" && value) void this.load(value.split(/\s+/));
    else this.#follow(this.#life, name, value);
  }

  /**
   * Opens files, buffers or addresses in place of what is open. Settled when each is read or
   * refused.
   */
  load(inputs: Iterable<LoadInput>, title?: string): Promise<void> {
    return this.#session.open(fromScript(inputs), title);
  }

  /**
   * Selects the block `<device>:<address>@<event|pre>` of the trace on screen; null clears. False
   * when there is none.
   */
  async select(reference: string | null): Promise<boolean> {
    if (reference !== null) return this.#session.selectReference(reference);
    this.#session.select(null);
    return true;
  }

  /** What is on screen, as a value that `setState` takes. */
  getState(): ViewState {
    return this.#session.address.state();
  }

  /**
   * Goes there; what the open files do not offer is kept until they do, and a field that is none of
   * ours is left out.
   */
  setState(state: ViewState): void {
    this.#session.address.go(soundState({ ...state }));
  }

  /** The block at a point of a view's canvas, in CSS pixels; null over empty ground. */
  async pick(view: "timeline" | "segments", x: number, y: number): Promise<Hit | null> {
    const session = this.#session;
    const plots = {
      timeline: session.plot.peek(),
      segments: session.workspace.peek()?.segments.peek() ?? null,
    };
    if (!(view in plots))
      throw new TypeError(`There is no picture to pick from named ${String(view)}.`);
    return (await plots[view]?.pick(x, y)) ?? null;
  }

  stats(): Stats {
    const drawn = this.#session.plot.peek()?.stats();
    return {
      strips: drawn?.strips ?? 0,
      instances: drawn?.instances ?? 0,
      drawCalls: drawn?.drawCalls ?? 0,
      frameCpuMs: drawn?.frameCpuMs ?? { p50: 0, p95: 0 },
      ranks: this.#session.files().map(({ path, client, loadMs }) => {
        const { wasmBytes = 0, threads = 0 } = client.peek() ?? {};
        return { path, wasmBytes, loadMs, threads };
      }),
    };
  }

  /**
   * Bytes that a file may take before it is refused; null, from the start, for as many as a tab
   * has. For tests.
   */
  limitMemory(bytes: number | null): void {
    this.#session.pool.memoryLimit = bytes;
  }

  /** Ends the workers and gives the GPU's memory back. Leaving the document does the same. */
  destroy(): void {
    const life = this.#life;
    if (!life) return;
    this.#life = null;
    for (const end of life.end) end();
    render(null, this.#root);
    life.session.destroy();
  }

  get #session(): Session {
    if (!this.#life) throw new Error("<vramscope-viewer> is not in a document.");
    return this.#life.session;
  }

  /**
   * With the attribute `page` the element is the whole page: drops and keys are its own wherever
   * they fall.
   */
  #listen({ session, opening, end }: Life): void {
    const scope = this.hasAttribute("page") ? document : this;
    const drop = new DropTarget(session, scope, opening.readonly);
    const keyboard = new Keyboard(session, scope);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const follow = () => {
      session.systemDark.value = dark.matches;
    };
    follow();
    dark.addEventListener("change", follow);
    const tellState = effect(() => this.#emit("vramscope-state", session.address.state()));
    // The look of the views comes with them.
    const dress = session.workspace.subscribe((workspace) => {
      if (workspace) this.#root.adoptedStyleSheets = [...styleSheets(), ...workspace.styleSheets()];
    });
    end.push(
      dress,
      () => drop.destroy(),
      () => keyboard.destroy(),
      () => dark.removeEventListener("change", follow),
      tellState,
    );
  }

  async #openIndex(session: Session, watch: RunWatch, address: string): Promise<void> {
    const index = fromIndex(address);
    const sources = index.then((run) => run.sources);
    const title = await index.then(
      (run) => {
        watch.opened(run);
        return run.title || undefined;
      },
      // Opening tells of it.
      () => undefined,
    );
    await session.open(sources, title);
  }

  /** The attributes that say how it looks, now and later. */
  #follow({ session, opening }: Life, name: string, value: string | null): void {
    const theme = THEMES.find((known) => known === value);
    const view = VIEWS.find((known) => known === value);
    if (name === "theme" && theme) session.theme.value = theme;
    if (name === "view" && view) session.linked.view.value = view;
    if (name === "readonly") opening.readonly.value = value !== null;
    if (name === "mode") opening.embedded.value = value === "embedded";
  }

  #address(name: string): string | null {
    const value = this.getAttribute(name);
    return value && new URL(value, document.baseURI).href;
  }

  #progress(file: RankFile): void {
    const { fraction, text } = file.progress.peek() ?? { fraction: 0, text: "" };
    this.#emit("vramscope-progress", { path: file.path, fraction, text });
  }

  #loaded(session: Session, file: RankFile): void {
    const remaining = session.files().filter((other) => !other.settled).length;
    this.#emit("vramscope-loaded", { path: file.path, remaining });
  }

  #emit<Name extends keyof VramscopeEvents>(name: Name, detail: VramscopeEvents[Name]): void {
    this.dispatchEvent(new CustomEvent(name, { detail, bubbles: true, composed: true }));
  }
}
