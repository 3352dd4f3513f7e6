// Messages from the window that has opened or embedded this page: PING is answered by PONG, files
// are shown. This origin and pages of this machine may; any other is asked about once. What comes
// is taken for hostile: shapes are looked at, texts are cut, and whatever is wrong is answered in
// words.

import type { LoadInput } from "../client/files.js";
import type { VramscopeEvents, VramscopeViewer } from "../element.js";
import { formatState, parseState, type ViewState } from "../view-state.js";
import { ask, isTrusted, trust } from "./consent.js";
import type { FromViewer } from "./listen.js";

type Sent = Extract<LoadInput, File | { name: string }>;
type Answer = Exclude<FromViewer, "PONG">;

interface Wish {
  files: Sent[];
  title: string | undefined;
  state: ViewState | null;
}

const MOST_FILES = 10_000;
const MOST_LETTERS = 300;

/** One line of plain text; undefined when it is none. */
function lineOf(value: unknown): string | undefined {
  if (typeof value !== "string") return undefined;
  const line = value.slice(0, MOST_LETTERS).replace(/[\p{Cc}\p{Cf}]/gu, "");
  return line.trim() === "" ? undefined : line;
}

function fileOf(value: unknown): Sent {
  if (value instanceof File) return value;
  const { name, buffer } = Object(value) as { name?: unknown; buffer?: unknown };
  if (!(buffer instanceof ArrayBuffer))
    throw new Error("A file is a File, or {name, buffer} with an ArrayBuffer.");
  return { name: lineOf(name) ?? "snapshot", buffer };
}

/** A state as a link would bring it, so that every field has been looked at. */
function stateOf(value: unknown): ViewState | null {
  if (value === undefined || value === null) return null;
  return parseState(typeof value === "string" ? value : formatState(Object(value) as ViewState));
}

function wishOf(message: unknown): Wish {
  const {
    files = [],
    title,
    state,
  } = Object(message) as { files?: unknown; title?: unknown; state?: unknown };
  if (!Array.isArray(files) || files.length > MOST_FILES)
    throw new Error(`files is a list of at most ${MOST_FILES}.`);
  const wish = { files: files.map(fileOf), title: lineOf(title), state: stateOf(state) };
  if (wish.files.length === 0 && wish.state === null)
    throw new Error("There are neither files nor a state in it.");
  return wish;
}

const isOurs = (data: unknown): data is { vramscope: unknown } =>
  typeof data === "object" && data !== null && "vramscope" in data;

export class Door {
  readonly #viewer: VramscopeViewer;
  /** What was said of an origin while this page has been open. */
  readonly #said = new Map<string, boolean>();
  /** One after the other: a question that is open must be answered first. */
  #turn: Promise<void> = Promise.resolve();

  constructor(viewer: VramscopeViewer, hosts: readonly Window[], signal: AbortSignal) {
    this.#viewer = viewer;
    const receive = ({ source, origin, data }: MessageEvent<unknown>) => {
      const host = hosts.find((known) => known === source);
      if (host) this.#receive(host, origin, data);
    };
    window.addEventListener("message", receive, { signal });
  }

  #receive(host: Window, origin: string, data: unknown): void {
    // A page from a file, or in a sandbox, has no origin to name.
    const reply = (message: FromViewer) =>
      host.postMessage(message, origin === "null" ? "*" : origin);
    if (data === "PING") reply("PONG");
    const bare = data instanceof ArrayBuffer;
    if (!bare && !isOurs(data)) return;
    const message = bare ? { files: [{ buffer: data }] } : data.vramscope;
    const answer = this.#turn.then(() => this.#grant(origin, wishOf(message)));
    this.#turn = answer.then(reply, (error: unknown) =>
      reply({
        vramscope: {
          kind: "error",
          message: error instanceof Error ? error.message : String(error),
        },
      }),
    );
  }

  async #grant(origin: string, { files, title, state }: Wish): Promise<Answer> {
    if (!(await this.#allows(origin, files)))
      throw new Error("Whoever sits here does not want to see it.");
    await this.#viewer.ready;
    if (state) this.#viewer.setState(state);
    return this.#show(files, title);
  }

  async #allows(origin: string, files: readonly Sent[]): Promise<boolean> {
    if (isTrusted(origin)) return true;
    const said = this.#said.get(origin);
    if (said !== undefined || files.length === 0) return said ?? false;
    const names = files.map(({ name }) => name);
    const answer = await ask(origin, names, this.#viewer.getState().theme);
    if (answer === "always") trust(origin);
    this.#said.set(origin, answer !== "no");
    return answer !== "no";
  }

  async #show(files: Sent[], title: string | undefined): Promise<Answer> {
    const viewer = this.#viewer;
    const names = new Set(files.map(({ name }) => name));
    const paths: string[] = [];
    const failed: { path: string; message: string }[] = [];
    const other: string[] = [];
    const over = new AbortController();
    const on = <N extends keyof VramscopeEvents>(
      name: N,
      hear: (detail: VramscopeEvents[N]) => void,
    ) =>
      viewer.addEventListener(
        name,
        (event) => hear((event as CustomEvent<VramscopeEvents[N]>).detail),
        over,
      );
    on("vramscope-loaded", ({ path }) => names.has(path) && paths.push(path));
    on("vramscope-error", ({ path, failure: { message } }) => {
      if (path === null) other.push(message);
      else if (names.has(path)) failed.push({ path, message });
    });
    if (files.length > 0) await viewer.load(files, title);
    over.abort();
    if (files.length > 0 && paths.length + failed.length === 0)
      throw new Error(other[0] ?? "Something else was opened.");
    return { vramscope: { kind: "loaded", paths, failed } };
  }
}
