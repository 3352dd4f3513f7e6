// The viewer as a custom element; docs/embedding.md has its attributes. Its state is in a `Session`
// that lives from entering a document to leaving it. Two elements on a page share nothing.

import { effect, signal } from "@preact/signals";
import { render } from "preact";
import { fromInput, fromScript, type LoadInput } from "./client/files.js";
import type { RankFile } from "./client/rank-file.js";
import { fromIndex, RunWatch } from "./client/run-index.js";
import type { Parts } from "./client/wasm.js";
import type { Failure, Hit, ProgramRecord } from "./generated/protocol.js";
import type { VramscopeEvents } from "./host/events.js";
import { isFirstVisit, rememberVisit } from "./host/first-visit.js";
import { VIEWS } from "./places/index.js";
import { failureOf } from "./run.js";
import { Session } from "./session.js";
import type { Stores } from "./stores.js";
import { styleSheets } from "./styles/sheets.js";
import { App, type Opening } from "./ui/app.js";
import { DropTarget } from "./ui/drop.js";
import { Keyboard } from "./ui/keyboard.js";
import { formatState, type Theme, type ViewState, validState } from "./view-state.js";

/** What the viewer draws and how much memory it uses. */
export interface Stats {
  /** Blocks and parts of blocks in the timeline. */
  strips: number;
  picture: "none" | "outline" | "blocks";
  /** Strips, lines and marks. */
  instances: number;
  drawCalls: number;
  frameCpuMs: { p50: number; p95: number };
  ranks: { path: string; wasmBytes: number; loadMs: number; threads: number }[];
}

const THEMES: readonly Theme[] = ["auto", "light", "dark"];

const LOST: Failure = {
  id: null,
  message: "The server of these files has stopped.",
  hint: "Open views stay available. Unloaded files cannot be reloaded.",
};

/** Runs work when the browser is idle. Safari has no idle callback. */
const idle = (work: () => void) =>
  "requestIdleCallback" in globalThis
    ? requestIdleCallback(work, { timeout: 2000 })
    : setTimeout(work, 300);

/** The state between entering a document and leaving it. */
interface Life {
  session: Session;
  opening: Opening;
  end: (() => void)[];
}

export class VramscopeViewer extends HTMLElement {
  static readonly observedAttributes = ["src", "theme", "view", "readonly", "mode"];

  /** The wasm files and the worker's script; read when the element enters a document. */
  parts: Parts | null = null;
  readonly #root = this.attachShadow({ mode: "open" });
  readonly #ready = Promise.withResolvers<void>();
  #life: Life | null = null;

  constructor() {
    super();
    // Failures are also events, so `ready` need not be awaited.
    this.#ready.promise.catch(() => undefined);
  }

  /**
   * Resolves once the element is in a document and its WebAssembly is compiled. Rejects when the
   * WebAssembly cannot be loaded.
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
        places: {
          wasm: this.#address("wasm-url"),
          worker: this.#address("worker-url"),
          parts: this.parts,
        },
        report: this.#address("report"),
        focusSearch: () =>
          this.#root.querySelector<HTMLInputElement>("[data-testid=search]")?.focus(),
        askForFiles: () =>
          this.#root.querySelector<HTMLInputElement>("[data-testid=open-files]")?.click(),
        link: (state) => new URL(formatState(state), document.URL).href,
        showLine: (line) => !this.#emit("vramscope-frame", line, true),
      },
    );
    const { stores } = session;
    const sample = this.getAttribute("sample");
    const run = this.getAttribute("run");
    const watch = new RunWatch(run ?? sample ?? "", () => stores.status.report(LOST));
    const opening: Opening = {
      example: this.getAttribute("example"),
      sample,
      guide: this.getAttribute("guide"),
      gallery: this.getAttribute("gallery"),
      docs: this.getAttribute("docs"),
      links: this.getAttribute("links"),
      embedded: signal(false),
      readonly: signal(false),
      offer: watch,
      files: (files: Iterable<File>) => void stores.loader.open(fromInput(files)),
      add: (files: Iterable<File>) => void stores.loader.add(fromInput(files)),
      openIndex: (address) => void this.#openIndex(session, watch, address),
      openOffer: () => void this.#openIndex(session, watch, run ?? ""),
    };
    this.#life = { session, opening, end: [() => watch.destroy()] };
    const { modules } = stores.runs;
    modules.threads = this.#address("threads");
    for (const name of ["theme", "view", "readonly", "mode"])
      this.#follow(this.#life, name, this.getAttribute(name));
    this.#listen(this.#life);
    if (this.hasAttribute("page")) this.#hint(stores);
    this.#root.adoptedStyleSheets = styleSheets();
    render(<App stores={stores} opening={opening} />, this.#root);
    modules.ready().then(
      () => {
        this.#ready.resolve();
        // The landing page is idle: load the views, and make canvases. Only a full page may use two
        // of the browser's few contexts.
        idle(() => void session.loadViews());
        if (this.hasAttribute("page"))
          for (let canvas = 0; canvas < 2; canvas += 1) idle(() => session.prepareCanvas());
      },
      (error: unknown) => {
        this.#ready.reject(error);
        stores.status.report(failureOf(error));
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
   * Opens files, buffers or addresses in place of the open run. Resolves when each is read or
   * refused.
   */
  load(inputs: Iterable<LoadInput>, title?: string): Promise<void> {
    return this.#stores.loader.open(fromScript(inputs), title);
  }

  /**
   * Selects the block `<device>:<address>@<event|pre>` of the visible trace; null clears the
   * selection. False when the trace has no such block.
   */
  async select(reference: string | null): Promise<boolean> {
    if (reference !== null) return this.#stores.selection.selectReference(reference);
    this.#stores.selection.select(null);
    return true;
  }

  /**
   * The block with this reference, or the finding with this id, as the program prints it in JSON. A
   * block has its `reference`, `device`, `frames` and `shape`. Null if the visible trace has none.
   */
  async record(id: string): Promise<ProgramRecord | null> {
    const { target } = this.#stores.selection;
    return (await target?.client.view(target.target, "record", { record: { id } })) ?? null;
  }

  /** The view state, for `setState`. */
  getState(): ViewState {
    return this.#stores.address.state();
  }

  /**
   * Applies a view state. Fields that the open files cannot show yet are kept until they can.
   * Unknown fields are ignored.
   */
  setState(state: ViewState): void {
    this.#stores.address.go(validState({ ...state }));
  }

  /** The block at a point of a view's canvas in CSS pixels; null where there is none. */
  async pick(view: "timeline" | "segments", x: number, y: number): Promise<Hit | null> {
    const { timeline, segments } = this.#stores.plots;
    const plots = { timeline, segments };
    if (!(view in plots)) throw new TypeError(`No view with a canvas is named ${String(view)}.`);
    return (await plots[view].peek()?.pick(x, y)) ?? null;
  }

  stats(): Stats {
    const plot = this.#stores.plots.timeline.peek();
    const drawn = plot?.stats();
    const stage = plot?.hasBlocks ? "blocks" : "outline";
    return {
      strips: (stage === "blocks" && drawn?.strips) || 0,
      picture: drawn?.strips ? stage : "none",
      instances: drawn?.instances ?? 0,
      drawCalls: drawn?.drawCalls ?? 0,
      frameCpuMs: drawn?.frameCpuMs ?? { p50: 0, p95: 0 },
      ranks: this.#stores.runs.files.map(({ path, client, loadMs }) => {
        const { wasmBytes = 0, threads = 0 } = client.peek() ?? {};
        return { path, wasmBytes, loadMs, threads };
      }),
    };
  }

  /** Limits the memory of one file in bytes; null, the default, removes the limit. For tests. */
  limitMemory(bytes: number | null): void {
    this.#stores.runs.pool.memoryLimit = bytes;
  }

  /** Ends the workers and frees GPU memory. Leaving the document does the same. */
  destroy(): void {
    const life = this.#life;
    if (!life) return;
    this.#life = null;
    for (const end of life.end) end();
    render(null, this.#root);
    life.session.destroy();
  }

  get #stores(): Stores {
    if (!this.#life) throw new Error("<vramscope-viewer> is not in a document.");
    return this.#life.session.stores;
  }

  /** With the attribute `page`, the element takes drops and keys of the whole page. */
  #listen({ session, opening, end }: Life): void {
    const scope = this.hasAttribute("page") ? document : this;
    const { stores } = session;
    const drop = new DropTarget(stores, scope, opening.readonly);
    const keyboard = new Keyboard(stores, scope);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const follow = () => {
      stores.appearance.systemDark.value = dark.matches;
    };
    follow();
    dark.addEventListener("change", follow);
    // Until the first place is decided, the state is on its way to it.
    const emitState = effect(() => {
      if (stores.navigation.settled.value) this.#emit("vramscope-state", stores.address.state());
    });
    const emitFinding = effect(() => {
      this.#emit("vramscope-finding", { id: stores.selection.finding.value });
    });
    // The views bring their own styles.
    const addStyles = stores.workspace.subscribe((workspace) => {
      if (workspace) this.#root.adoptedStyleSheets = [...styleSheets(), ...workspace.styleSheets()];
    });
    end.push(
      addStyles,
      () => drop.destroy(),
      () => keyboard.destroy(),
      () => dark.removeEventListener("change", follow),
      emitState,
      emitFinding,
    );
  }

  /** Names the gestures until they are dismissed, once per browser. */
  #hint({ navigation }: Stores): void {
    navigation.hint.value = isFirstVisit();
    const stop = navigation.hint.subscribe((shown) => {
      if (!shown) rememberVisit();
    });
    this.#life?.end.push(stop);
  }

  async #openIndex(session: Session, watch: RunWatch, address: string): Promise<void> {
    const index = fromIndex(address);
    const sources = index.then((run) => run.sources);
    const title = await index.then(
      (run) => {
        watch.opened(run);
        return run.title || undefined;
      },
      // `open` reports the failure.
      () => undefined,
    );
    const cards = index.then(
      (run) => run.cards,
      () => null,
    );
    await session.stores.loader.open(sources, title, cards);
  }

  /** Applies an attribute that may change later. */
  #follow({ session, opening }: Life, name: string, value: string | null): void {
    const theme = THEMES.find((known) => known === value);
    const view = VIEWS.find((known) => known === value);
    const { appearance, navigation } = session.stores;
    if (name === "theme" && theme) appearance.theme.value = theme;
    if (name === "view" && view) {
      navigation.show(view);
      navigation.viewGiven = true;
    }
    if (name === "readonly") opening.readonly.value = value !== null;
    if (name === "mode") opening.embedded.value = value === "embedded";
  }

  #address(name: string): string | null {
    const value = this.getAttribute(name);
    return value ? new URL(value, document.baseURI).href : null;
  }

  #progress(file: RankFile): void {
    const { fraction, text } = file.progress.peek() ?? { fraction: 0, text: "" };
    this.#emit("vramscope-progress", { path: file.path, fraction, text });
  }

  #loaded(session: Session, file: RankFile): void {
    const remaining = session.stores.runs.unread;
    this.#emit("vramscope-loaded", { path: file.path, remaining });
  }

  /** False if the page has prevented the event's default. */
  #emit<Name extends keyof VramscopeEvents>(
    name: Name,
    detail: VramscopeEvents[Name],
    cancelable = false,
  ): boolean {
    const event = new CustomEvent(name, { detail, bubbles: true, composed: true, cancelable });
    return this.dispatchEvent(event);
  }
}
