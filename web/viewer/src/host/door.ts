// Messages from the window that opened or embeds this page: PING is answered with PONG, files are
// shown. Trusted origins may show files; the user is asked once about any other. Messages are
// treated as hostile: their shape is checked, texts are cut, and errors are answered with a
// message.

import type { LoadInput } from "../client/files.js";
import type { VramscopeViewer } from "../element.js";
import { formatState, parseState, type ViewState } from "../view-state.js";
import { ask, isTrusted, trust } from "./consent.js";
import type { VramscopeEvents } from "./events.js";
import type { FromViewer } from "./listen.js";

type Sent = Extract<LoadInput, File | { name: string }>;
type Answer = Exclude<FromViewer, "PONG">;

interface ShowRequest {
  files: Sent[];
  title: string | undefined;
  state: ViewState | null;
}

const MAX_FILES = 10_000;
const MAX_TEXT = 300;

/** One line of plain text; undefined for anything else. */
function lineOf(value: unknown): string | undefined {
  if (typeof value !== "string") return undefined;
  const line = value.slice(0, MAX_TEXT).replace(/[\p{Cc}\p{Cf}]/gu, "");
  return line.trim() === "" ? undefined : line;
}

function fileOf(value: unknown): Sent {
  if (value instanceof File) return value;
  const { name, buffer } = Object(value) as { name?: unknown; buffer?: unknown };
  if (!(buffer instanceof ArrayBuffer))
    throw new Error("A file must be a File, or {name, buffer} with an ArrayBuffer.");
  return { name: lineOf(name) ?? "snapshot", buffer };
}

/** A state with valid fields only. */
function stateOf(value: unknown): ViewState | null {
  if (value === undefined || value === null) return null;
  return parseState(typeof value === "string" ? value : formatState(Object(value) as ViewState));
}

function requestOf(message: unknown): ShowRequest {
  const {
    files = [],
    title,
    state,
  } = Object(message) as { files?: unknown; title?: unknown; state?: unknown };
  if (!Array.isArray(files) || files.length > MAX_FILES)
    throw new Error(`files must be a list of at most ${MAX_FILES} files.`);
  // A list from a message may have holes, which `map` leaves.
  const read = Array.from(files, fileOf);
  const request = { files: read, title: lineOf(title), state: stateOf(state) };
  if (request.files.length === 0 && request.state === null)
    throw new Error("The message has neither files nor a state.");
  return request;
}

const isOurs = (data: unknown): data is { vramscope: unknown } =>
  typeof data === "object" && data !== null && "vramscope" in data;

export class Door {
  readonly #viewer: VramscopeViewer;
  /** The user's answers about origins, for the life of this page. */
  readonly #answers = new Map<string, boolean>();
  /** Requests run one after another, because the dialog must be answered first. */
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
    // The origin of a page from a file or in a sandbox is "null", which is no target.
    const reply = (message: FromViewer) =>
      host.postMessage(message, origin === "null" ? "*" : origin);
    if (data === "PING") reply("PONG");
    const bare = data instanceof ArrayBuffer;
    if (!bare && !isOurs(data)) return;
    const message = bare ? { files: [{ buffer: data }] } : data.vramscope;
    const answer = this.#turn.then(() => this.#grant(origin, requestOf(message)));
    this.#turn = answer.then(reply, (error: unknown) =>
      reply({
        vramscope: {
          kind: "error",
          message: error instanceof Error ? error.message : String(error),
        },
      }),
    );
  }

  async #grant(origin: string, { files, title, state }: ShowRequest): Promise<Answer> {
    if (!(await this.#allows(origin, files))) throw new Error("The user declined.");
    await this.#viewer.ready;
    if (state) this.#viewer.setState(state);
    return this.#show(files, title);
  }

  async #allows(origin: string, files: readonly Sent[]): Promise<boolean> {
    if (isTrusted(origin)) return true;
    const earlier = this.#answers.get(origin);
    if (earlier !== undefined || files.length === 0) return earlier ?? false;
    const names = files.map(({ name }) => lineOf(name) ?? "snapshot");
    const answer = await ask(origin, names, this.#viewer.getState().theme);
    if (answer === "always") trust(origin);
    this.#answers.set(origin, answer !== "no");
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
      throw new Error(other[0] ?? "Other files were opened instead.");
    return { vramscope: { kind: "loaded", paths, failed } };
  }
}
