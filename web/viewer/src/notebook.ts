// The front end of `vramscope.show()` in Python, an anywidget. The viewer and the files come from
// Python through the messages of the widget, in pieces: no address is asked for anything. What is
// selected goes back as the widget's traits.
//
//   to Python     {kind: "read", id, part, at}      a piece of a part, from a byte on
//   from Python   {kind: "piece", id, bytes, gzip}  the part's length, and the piece in a buffer
//                 {kind: "failed", id, message}
//                 {kind: "select", reference}
//
// This is the module that anywidget loads. It is small, because notebooks store it.

import type { VramscopeViewer } from "./element.js";
import type { VramscopeEvents } from "./host/events.js";
import { followTheme } from "./host/theme-around.js";
import type * as inline from "./inline.js";
import type { Theme, ViewState } from "./view-state.js";

/** The widget's model, as anywidget hands it over. */
export interface Model {
  get(name: string): unknown;
  set(name: string, value: unknown): void;
  save_changes(): void;
  send(content: unknown): void;
  on(event: "msg:custom", listen: (content: FromPython, buffers: DataView[]) => void): void;
  off(event: "msg:custom", listen: (content: FromPython, buffers: DataView[]) => void): void;
}

type FromPython =
  | { kind: "piece"; id: string; bytes: number; gzip: boolean }
  | { kind: "failed"; id: string; message: string }
  | { kind: "select"; reference: string | null };

/** A part of the viewer, or a file by its index. */
type Part = "script" | "view" | "worker" | number;

/** What the widget shows. */
interface Options {
  files: { name: string; bytes: number }[];
  height: number;
  theme: Theme | "notebook";
  state: ViewState;
}

/** After this time without an answer the page says who is silent. */
const PATIENCE_MS = 5000;
const SILENT =
  "Python does not answer. It may be running another cell. " +
  "If its kernel has ended, run this cell again.";

async function unpacked(piece: DataView<ArrayBuffer>): Promise<Blob> {
  const stream = new Blob([piece]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).blob();
}

/** Asks Python for parts. */
class Parts {
  readonly #model: Model;
  readonly #patience: (silent: boolean) => void;
  readonly #waiting = new Map<string, (content: FromPython, piece?: DataView) => void>();
  /** Python answers all views of a widget, so ids differ between them. */
  readonly #name = Math.random().toString(36).slice(2);
  #asked = 0;

  constructor(model: Model, patience: (silent: boolean) => void) {
    this.#model = model;
    this.#patience = patience;
    model.on("msg:custom", this.#hear);
  }

  end(): void {
    this.#model.off("msg:custom", this.#hear);
  }

  /** A whole part. The browser may keep it on disk. */
  async read(part: Part, progress: (bytes: number) => void = () => undefined): Promise<Blob> {
    const pieces: Blob[] = [];
    let at = 0;
    for (;;) {
      const { piece, bytes } = await this.#piece(part, at);
      pieces.push(piece);
      at += piece.size;
      progress(at);
      if (at >= bytes || piece.size === 0) return new Blob(pieces);
    }
  }

  async #piece(part: Part, at: number): Promise<{ piece: Blob; bytes: number }> {
    this.#asked += 1;
    const id = `${this.#name} ${this.#asked}`;
    const timer = setTimeout(() => this.#patience(true), PATIENCE_MS);
    const answer = new Promise<{ content: FromPython; piece?: DataView | undefined }>((resolve) =>
      this.#waiting.set(id, (content, piece) => resolve({ content, piece })),
    );
    this.#model.send({ kind: "read", id, part, at });
    const { content, piece } = await answer;
    clearTimeout(timer);
    this.#patience(false);
    this.#waiting.delete(id);
    if (content.kind !== "piece" || piece === undefined)
      throw new Error(content.kind === "failed" ? content.message : "a message has no data");
    const data = piece as DataView<ArrayBuffer>;
    return { piece: content.gzip ? await unpacked(data) : new Blob([data]), bytes: content.bytes };
  }

  readonly #hear = (content: FromPython, buffers: DataView[]) => {
    if (content.kind !== "select") this.#waiting.get(content.id)?.(content, buffers[0]);
  };
}

/** Imports the viewer's script. It declares `vramscope`, which a module can export. */
async function importInline(script: Blob): Promise<typeof inline> {
  const parts = [script, "\nexport default vramscope;"];
  const url = URL.createObjectURL(new Blob(parts, { type: "text/javascript" }));
  try {
    const module = (await import(/* @vite-ignore */ url)) as { default: typeof inline };
    return module.default;
  } finally {
    URL.revokeObjectURL(url);
  }
}

/** Tells Python what is selected, and selects what Python names. */
function connect(viewer: VramscopeViewer, model: Model): void {
  const tell = (name: string, value: unknown) => {
    model.set(name, value);
    model.save_changes();
  };
  /** Sends the record of an id, unless another was chosen meanwhile. */
  const follow = (name: string) => {
    let chosen: string | null = null;
    return async (id: string | null) => {
      if (id === chosen) return;
      chosen = id;
      const record = id === null ? null : await viewer.record(id);
      if (id === chosen) tell(name, record && { path: viewer.getState().path, ...record });
    };
  };
  const [selected, finding] = [follow("selected"), follow("finding")];
  const listen = <Name extends keyof VramscopeEvents>(
    name: Name,
    hear: (detail: VramscopeEvents[Name]) => void,
  ) =>
    viewer.addEventListener(name, (event) =>
      hear((event as CustomEvent<VramscopeEvents[Name]>).detail),
    );
  let cursor: number | null = null;
  listen("vramscope-select", ({ reference }) => void selected(reference));
  listen("vramscope-finding", ({ id }) => void finding(id));
  listen("vramscope-state", ({ at = null }) => {
    if (at === cursor) return;
    cursor = at;
    tell("cursor", at);
  });
  listen("vramscope-error", ({ path, failure: { message, hint } }) =>
    tell("errors", [...(model.get("errors") as unknown[]), { path, message, hint }]),
  );
}

/** The text that stands in the widget's place until the viewer comes. */
function waitingRoom(el: HTMLElement): { text: HTMLElement; bar: HTMLProgressElement } {
  const [text, bar] = [document.createElement("p"), document.createElement("progress")];
  text.setAttribute("role", "status");
  for (const node of [text, bar]) node.style.cssText = "margin: 8px; font: 13px system-ui";
  el.replaceChildren(text, bar);
  return { text, bar };
}

async function start(model: Model, el: HTMLElement, ended: AbortSignal): Promise<void> {
  const { files, height, theme, state } = model.get("options") as Options;
  const { text, bar } = waitingRoom(el);
  let doing = "";
  const say = (words: string) => {
    doing = words;
    text.textContent = words;
  };
  const parts = new Parts(model, (silent) => {
    text.textContent = silent ? SILENT : doing;
  });
  ended.addEventListener("abort", () => parts.end());
  try {
    const inputs: File[] = [];
    for (const [index, { name, bytes }] of files.entries()) {
      say(`Reading ${name} from Python`);
      bar.max = bytes;
      inputs.push(new File([await parts.read(index, (read) => (bar.value = read))], name));
    }
    say("Reading the viewer from Python");
    bar.removeAttribute("value");
    const { openViewer } = await importInline(await parts.read("script"));
    const [viewBytes, worker] = await Promise.all(
      (["view", "worker"] as const).map(async (part) => (await parts.read(part)).arrayBuffer()),
    );
    if (ended.aborted || !viewBytes || !worker) return;
    el.replaceChildren();
    el.style.height = `${height}px`;
    const viewer = await openViewer(el, {
      mode: "embedded",
      readonly: true,
      state,
      wasm: { view: viewBytes, worker },
    });
    if (ended.aborted) return viewer.destroy();
    ended.addEventListener("abort", () => viewer.destroy());
    if (theme === "notebook") {
      const stop = followTheme(viewer, el);
      ended.addEventListener("abort", stop);
    } else viewer.setAttribute("theme", theme);
    connect(viewer, model);
    const select = (content: FromPython) => {
      if (content.kind === "select") void viewer.select(content.reference);
    };
    model.on("msg:custom", select);
    ended.addEventListener("abort", () => model.off("msg:custom", select));
    await viewer.load(inputs);
  } catch (error) {
    bar.remove();
    el.prepend(text);
    text.textContent = error instanceof Error ? error.message : String(error);
  } finally {
    parts.end();
  }
}

/** Called by anywidget for each view of the widget. Returns what ends the view. */
function render({ model, el }: { model: Model; el: HTMLElement }): () => void {
  const ended = new AbortController();
  // Keys that the viewer knows would be commands of the notebook.
  el.setAttribute("data-lm-suppress-shortcuts", "true");
  el.addEventListener("keydown", (event) => event.stopPropagation());
  void start(model, el, ended.signal);
  return () => ended.abort();
}

export default { render };
