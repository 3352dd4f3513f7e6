// Opens a run by its index: its ranks are known by their cards, and a snapshot is read when a user
// chooses it.

import { batch } from "@preact/signals";
import { fileName } from "./client/files.js";
import type { RankFile, Source } from "./client/rank-file.js";
import type { IndexedFile } from "./generated/protocol.js";
import type { ModelDims } from "./model-dims.js";
import { failureOf, type Run } from "./run.js";
import type { LoaderOwners } from "./run-loader.js";

/** The pause between two questions for the cards of a server. */
const CARDS_MS = 500;
/** After an answer with as many files, more are there already. */
const MANY_CARDS = 256;

/** Whether a file is the index of a run. */
const isIndex = ({ path }: Source) => path.endsWith(".vramscope");

/** The number of characters that two paths have in common at their ends, as whole names. */
function shared(a: string, b: string): number {
  const [long, short] = a.length < b.length ? [b, a] : [a, b];
  if (long === short || long.endsWith(`/${short}`)) return short.length;
  const [in_a, in_b] = [a.split("/").toReversed(), b.split("/").toReversed()];
  const apart = in_a.findIndex((name, at) => name !== in_b[at]);
  return in_a.slice(0, apart).join("/").length;
}

/** The cards that a server has from this number on, or the whole of an index. */
function part(index: Source["from"], from: number): Source["from"] {
  if (typeof index !== "string" || from === 0) return index;
  const at = new URL(index);
  at.searchParams.set("from", String(from));
  return at.href;
}

/** The values by the file names of their paths. */
function byName<T>(values: readonly T[], path: (value: T) => string): Map<string, T[]> {
  const found = new Map<string, T[]>();
  for (const value of values) {
    const name = fileName(path(value));
    const same = found.get(name);
    if (same) same.push(value);
    else found.set(name, [value]);
  }
  return found;
}

/** The one of several values whose path is most like a path. */
function nearest<T>(path: string, values: readonly T[], of: (value: T) => string): T | undefined {
  let [best, most] = [values[0], -1];
  for (const value of values) {
    const length = shared(path, of(value));
    if (length > most) [best, most] = [value, length];
  }
  return best;
}

/**
 * The sources of the files of an index: snapshots that were opened with it, else files beside it if
 * it has an address. Others are absent.
 */
function sourcesOf(
  files: readonly IndexedFile[],
  given: readonly Source[],
  index: Source,
): Source[] {
  const known = byName(given, ({ path }) => path);
  return files.map(({ path, bytes }) => {
    const found = nearest(path, known.get(fileName(path)) ?? [], (source) => source.path);
    if (found) return { ...found, path };
    if (typeof index.from !== "string") return { path, bytes, from: "", absent: true };
    const place = path.split("/").map(encodeURIComponent).join("/");
    return { path, bytes, from: new URL(place, index.from).href };
  });
}

/**
 * Gives opened snapshots to the files of an index that lack them, and returns the other sources and
 * the files that have one now. Of several with the same name, the focused one wins.
 */
function attach(
  files: readonly RankFile[],
  sources: readonly Source[],
  focused: RankFile | undefined,
): { others: Source[]; found: RankFile[] } {
  const lacking = files.filter(({ source }) => source.absent === true);
  const known = byName(lacking, ({ source }) => source.path);
  const found: RankFile[] = [];
  const others = sources.filter((source) => {
    const same = known.get(fileName(source.path)) ?? [];
    const first = same.filter((file) => file === focused);
    const isAlone = !source.path.includes("/");
    const file =
      isAlone && first[0] ? first[0] : nearest(source.path, same, (of) => of.source.path);
    if (file?.source.absent !== true) return true;
    Object.assign(file.source, { from: source.from, bytes: source.bytes, absent: false });
    found.push(file);
    return false;
  });
  return { others, found };
}

/**
 * Puts the files of an index into their state: unread, or refused with the index's reason. A file
 * that has changed may be refused no longer.
 */
export function rest(files: readonly RankFile[], indexed: readonly IndexedFile[]): void {
  const errors = new Map(indexed.map(({ path, error }) => [path, error]));
  for (const file of files) {
    const message = errors.get(file.source.path);
    if (typeof message === "string") {
      const failure = { id: null, message, hint: null };
      file.load.value = { state: "error", failure, again: false };
      continue;
    }
    const { state } = file.load.peek();
    if (state === "queued" || (state === "error" && message === null))
      file.load.value = { state: "unread" };
  }
}

/** What the loader of runs does for this one. */
interface Hooks {
  /** Whether no newer run is being opened. */
  isCurrent(load: number): boolean;
  plan(known: readonly RankFile[], sources: readonly Source[]): Promise<Run>;
  start(run: Run): void;
  /** Takes files out of the run that are no snapshots. */
  skip(): void;
}

interface Given {
  dims: ModelDims | null;
  title: string | undefined;
}

export class IndexLoader {
  readonly #owners: LoaderOwners;
  readonly #hooks: Hooks;
  /** Where the index of the run is; null for a run without one. */
  #index: Source["from"] | null = null;

  constructor(owners: LoaderOwners, hooks: Hooks) {
    this.#owners = owners;
    this.#hooks = hooks;
  }

  /** Opens an index among files, or gives the files to the open one. False if it has no use. */
  async takes(load: number, opened: Source[], given: Given): Promise<boolean> {
    const index = opened.find(isIndex);
    if (!index) return this.attach(opened).length === 0;
    await this.#open(load, index, opened, given);
    return true;
  }

  /** Gives files of the open index their snapshots, and returns the other sources. */
  attach(sources: Source[]): Source[] {
    const { runs, selection, status } = this.#owners;
    if (runs.run.peek()?.isIndexed !== true) return sources;
    const focused = selection.focus.peek()?.file;
    const { others, found } = attach(runs.files, sources, focused);
    if (found.length === 0) return sources;
    status.notice.value = null;
    status.announce(found.length === 1 ? "1 file was found" : `${found.length} files were found`);
    const [only] = found;
    if (focused && found.includes(focused)) runs.pool.focus(focused);
    else if (only && found.length === 1) selection.look({ file: only, part: 0 });
    return others;
  }

  /** Reads the cards that a server makes, until it has all. */
  async follow(load: number, address: string | null): Promise<void> {
    const { runs } = this.#owners;
    this.#index = address;
    const seen = new Set<string>();
    for (let [from, done] = [0, address === null]; address !== null && !done; ) {
      const read = await runs.coordinator.readIndex(part(address, from), from === 0);
      if (!this.#hooks.isCurrent(load)) return;
      for (const { path } of read.files) seen.add(path);
      batch(() => {
        rest(runs.files, read.files);
        runs.reading.value = read.error === null ? read.progress : "";
        if (read.files.length > 0) runs.indexed.value += 1;
      });
      if (read.error !== null) throw new Error(read.error);
      const isFull = read.files.length >= MANY_CARDS;
      [from, done] = [read.next ?? from, read.isDone];
      if (done) this.#leaveOut(seen);
      if (!done && !isFull) await new Promise((resolve) => setTimeout(resolve, CARDS_MS));
    }
  }

  /** Leaves out files of searched folders that have no card in the whole index. */
  #leaveOut(seen: ReadonlySet<string>): void {
    const message = "This file is no snapshot.";
    const foreign = this.#owners.runs.files.filter(
      ({ source, load }) => !seen.has(source.path) && load.peek().state === "unread",
    );
    for (const file of foreign)
      file.load.value = {
        state: "error",
        failure: { id: null, message, hint: null, file: "no_snapshot" },
        again: false,
      };
    if (foreign.some((file) => file.skipped)) this.#hooks.skip();
  }

  /** Reads the index of the run again, for a new worker of the coordinator. */
  async again(): Promise<void> {
    const { runs, status } = this.#owners;
    if (this.#index === null) return;
    try {
      for (let from: number | null = 0; from !== null; ) {
        const read = await runs.coordinator.readIndex(part(this.#index, from), from === 0);
        from = read.isDone || read.files.length === 0 ? null : read.next;
      }
      await this.#hooks.plan(runs.numbered, []);
      runs.indexed.value += 1;
    } catch (error) {
      status.report(failureOf(error));
    }
  }

  async #open(
    load: number,
    index: Source,
    opened: readonly Source[],
    { dims, title }: Given,
  ): Promise<void> {
    const { runs } = this.#owners;
    const read = await runs.coordinator.readIndex(index.from, true);
    if (!this.#hooks.isCurrent(load)) return;
    if (read.error !== null) throw new Error(`${fileName(index.path)}: ${read.error}`);
    if (read.files.length === 0) throw new Error(`${fileName(index.path)} has no card.`);
    runs.dims.value = dims;
    const run = await this.#hooks.plan([], sourcesOf(read.files, opened, index));
    if (!this.#hooks.isCurrent(load)) return;
    this.#index = index.from;
    rest(run.files, read.files);
    this.#hooks.start({ ...run, title: title ?? (read.title || run.title), isIndexed: true });
    runs.reading.value = "";
    runs.indexed.value += 1;
  }
}
