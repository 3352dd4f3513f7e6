// Turns opened files into the run: in place of the open run, or added to it.

import { batch, type Signal, signal } from "@preact/signals";
import type { Address } from "./address.js";
import { isCode } from "./client/code-files.js";
import { fileName, isSame, notOpen } from "./client/files.js";
import { RankFile, type Source } from "./client/rank-file.js";
import { visible } from "./client/visible.js";
import type { CodeStore } from "./code-store.js";
import type { PlannedRow } from "./generated/protocol.js";
import { IndexLoader, rest } from "./index-loader.js";
import { type ModelDims, takeConfig } from "./model-dims.js";
import type { Navigation } from "./navigation.js";
import { failureOf, type Run, refusalOf, settled } from "./run.js";
import type { RunStore } from "./run-store.js";
import type { Selection } from "./selection.js";
import type { Status } from "./status.js";
import type { ViewSelection } from "./view-selection.js";

export interface LoaderOwners {
  runs: RunStore;
  selection: Selection;
  viewSelection: ViewSelection;
  status: Status;
  address: Address;
  navigation: Navigation;
  code: CodeStore;
}

/** The row of a file until the coordinator has planned the run. */
function unplanned({ path }: Source, file: number): PlannedRow {
  return { file, rank: null, label: visible(fileName(path)), group: "", size: "", beside: null };
}

function notEmpty<T>(found: T[]): T[] {
  if (found.length === 0) throw new Error("No snapshot was found in the opened files.");
  return found;
}

/** Whether a file lies beside a snapshot. The coordinator says to whose row it belongs. */
const isBeside = ({ path }: Source) => path.endsWith(".vramscope.json");

export class RunLoader {
  /** The files that were opened last, until the user chooses what to show of them. */
  readonly opened: Signal<readonly RankFile[] | null> = signal(null);
  readonly #owners: LoaderOwners;
  /** Counts calls of `open`: a newer one cancels the older ones. */
  #loads = 0;
  /** Resolves when all files that are being added have their rows. */
  #added: Promise<unknown> = Promise.resolve();
  /** Opens runs by their index. */
  readonly indexes: IndexLoader;
  /** Whether files are about to be taken out of the run. */
  #skipping = false;

  constructor(owners: LoaderOwners) {
    this.#owners = owners;
    this.indexes = new IndexLoader(owners, {
      isCurrent: (load) => load === this.#loads,
      plan: (known, sources) => this.#plan(known, sources),
      start: (run) => this.#start(run, false),
      skip: () => this.skip(),
    });
  }

  /** Cancels the files that are being opened or added. */
  cancel(): void {
    this.#loads += 1;
  }

  /**
   * Opens files in place of the open run. Resolves when each is read or refused, or known from an
   * index. `cards` is the address of an index that grows while a server makes it.
   */
  async open(
    sources: Source[] | Promise<Source[]>,
    title?: string,
    cards: Promise<string | null> | null = null,
  ): Promise<void> {
    this.#loads += 1;
    const load = this.#loads;
    const { runs, status, navigation } = this.#owners;
    let waiting: readonly RankFile[] = [];
    try {
      const given = await sources;
      const { others, dims } = await takeConfig(this.#withoutCode(given));
      // A configuration or source alone is about the open run.
      if (others.length === 0 && given.length > 0 && runs.run.peek() !== null)
        return await (dims === null ? undefined : this.setDims(dims));
      const opened = notEmpty(others);
      const growing = await cards;
      if (load !== this.#loads) return;
      if (await this.indexes.takes(load, opened, { dims, title })) return;
      runs.dims.value = dims;
      const beside = opened.filter(isBeside);
      const snapshots = opened.filter((source) => !isBeside(source));
      waiting = growing === null ? this.#wait(snapshots, title ?? "") : [];
      const run = await this.#plan(waiting, waiting.length === 0 ? opened : beside);
      if (load !== this.#loads) return;
      notEmpty(run.files);
      const opening = { ...run, title: title ?? run.title, isIndexed: growing !== null };
      this.#start(opening, waiting.length > 0);
      await this.indexes.follow(load, growing);
      await Promise.all(run.files.map(settled));
      this.#refuse(load);
    } catch (error) {
      if (load === this.#loads && waiting.length > 0) {
        runs.run.value = null;
        navigation.settled.value = true;
      }
      status.report(failureOf(error));
    }
  }

  /** Closes a run of which no file can be read. The landing page says why. */
  #refuse(load: number): void {
    const { runs, selection, status, navigation } = this.#owners;
    const files = load === this.#loads ? (runs.run.peek()?.files ?? []) : [];
    const refusals = files.map(refusalOf);
    const [file, refusal] = [files[0], refusals[0]];
    if (!file || !refusal || refusals.includes(null)) return;
    batch(() => {
      this.opened.value = null;
      selection.clear();
      runs.pool.clear();
      runs.run.value = null;
      navigation.settled.value = true;
      const name = visible(file.path) + (files.length > 1 ? " and others" : "");
      const message = `${name}: ${refusal.message}`;
      status.notice.value = { ...refusal, message };
      status.announce(message);
    });
  }

  /**
   * Adds files to the open run, without moving the focus. Resolves when each is read or refused.
   */
  async add(sources: Source[] | Promise<Source[]>): Promise<void> {
    if (this.#owners.runs.run.peek() === null) return this.open(sources);
    // One at a time: each addition starts from the result of the one before.
    const added = Promise.all([sources, this.#added]).then(async ([from]) => {
      const { others, dims } = await takeConfig(this.#withoutCode(notEmpty(from)));
      const renewed = dims === null ? [] : this.#renew(dims);
      return others.length === 0 ? renewed : [...renewed, ...(await this.#add(others))];
    });
    this.#added = added.catch(() => undefined);
    try {
      await Promise.all((await added).map(settled));
    } catch (error) {
      this.#owners.status.report(failureOf(error));
    }
  }

  /**
   * Reads all files again with these dimensions of the model; null for those that sizes tell.
   * Resolves when each is read.
   */
  async setDims(dims: ModelDims | null): Promise<void> {
    const { selection } = this.#owners;
    const block = selection.block.peek()?.reference;
    await Promise.all(this.#renew(dims).map(settled));
    // The details have the shape of the selected block.
    if (block !== undefined && selection.block.peek()?.reference === block)
      await selection.selectReference(block);
  }

  #renew(dims: ModelDims | null): readonly RankFile[] {
    const { runs } = this.#owners;
    runs.dims.value = dims;
    const files = runs.numbered;
    for (const file of files) {
      this.#giveDims(file.source);
      runs.pool.renew(file);
    }
    return files;
  }

  #giveDims(source: Source): void {
    const dims = this.#owners.runs.dims.peek();
    if (dims === null) delete source.dims;
    else source.dims = dims.text;
  }

  /** Keeps the source files among opened files, and returns the others. */
  #withoutCode(sources: Source[]): Source[] {
    const { code, status } = this.#owners;
    const isSource = ({ path, from }: Source) => from instanceof File && isCode(path);
    const files = sources.filter(isSource);
    code.add(files.flatMap(({ path, from }) => (from instanceof File ? { path, file: from } : [])));
    if (files.length > 0) status.announce("Source is shown beside call stacks and in Source");
    return sources.filter((source) => !isSource(source));
  }

  /** Lists files that are opened before the worker's module is compiled. None later on. */
  #wait(sources: readonly Source[], title: string): readonly RankFile[] {
    const { runs, selection, status, navigation } = this.#owners;
    if (runs.modules.compiled.peek()) return [];
    const files = sources.map((source, index) => new RankFile(source, unplanned(source, index)));
    const countText = files.length === 1 ? "1 file" : `${files.length} files`;
    batch(() => {
      status.notice.value = null;
      selection.focus.value = null;
      navigation.settled.value = false;
      const empty = { skipped: [], skippedText: null, isIndexed: false };
      runs.run.value = { title, countText, files, ...empty };
    });
    return files;
  }

  /** Plans a run. `known` files keep their number and get their new place. */
  async #plan(known: readonly RankFile[], sources: readonly Source[]): Promise<Run> {
    const all = [...known.map(({ source }) => source), ...sources];
    const skipped = known.filter((file) => file.skipped || file.closed.peek());
    const planned = await this.#owners.runs.coordinator.plan(
      all.map(({ path, bytes }, index) => {
        const file = known[index];
        return {
          path,
          bytes,
          skipped: file?.skipped ?? false,
          closed: file?.closed.peek() ?? false,
        };
      }),
    );
    const { title, countText, rows } = planned;
    const files = rows.flatMap((row) => {
      const [file, source] = [known[row.file], all[row.file]];
      const beside = all[row.beside ?? -1]?.from;
      if (source && beside !== undefined) source.beside = beside;
      if (source) this.#giveDims(source);
      if (file) file.planned = row;
      return file ?? (source ? new RankFile(source, row) : []);
    });
    const text = planned.skippedText;
    const skippedText = text === null ? null : { text, value: planned.skipped.raw };
    const isIndexed = this.#owners.runs.run.peek()?.isIndexed ?? false;
    return { title, countText, files, skipped, skippedText, isIndexed };
  }

  /**
   * Takes files out of the run that a search of a folder found and that are no snapshots. Called
   * for each of them, it acts once for all that are known then.
   */
  skip(): void {
    if (this.#skipping) return;
    this.#skipping = true;
    const done = this.#added.then(() => this.#leaveOut());
    this.#added = done.catch((error: unknown) => this.#owners.status.report(failureOf(error)));
  }

  /** Closes a file: takes it out of the run. Without any other, the landing page comes back. */
  async close(file: RankFile): Promise<void> {
    file.closed.value = true;
    this.#owners.runs.pool.close(file);
    const done = this.#added.then(() => this.#leaveOut());
    this.#added = done.catch((error: unknown) => this.#owners.status.report(failureOf(error)));
    await this.#added;
  }

  async #leaveOut(): Promise<void> {
    this.#skipping = false;
    const { runs, selection, status } = this.#owners;
    const [load, before] = [this.#loads, runs.run.peek()];
    if (before === null) return;
    const run = await this.#plan(runs.numbered, []);
    if (load !== this.#loads || runs.run.peek() !== before) return;
    const focused = selection.focus.peek()?.file;
    const ready = run.files.find((file) => file.load.peek().state === "ready");
    batch(() => {
      runs.run.value = run.files.length === 0 ? null : { ...run, title: before.title };
      if (focused && run.skipped.includes(focused)) {
        selection.clear();
        if (ready) selection.look({ file: ready, part: 0 });
      }
    });
    if (run.skippedText) status.announce(run.skippedText.text);
  }

  async #add(given: Source[]): Promise<RankFile[]> {
    const from = this.indexes.attach(given);
    if (from.length === 0) return [];
    const { runs, selection, status } = this.#owners;
    const load = this.#loads;
    const known = runs.numbered;
    const open = known.map(({ source }) => source);
    const fresh = notOpen(open, from);
    if (fresh.length === 0) {
      const there = known.find(({ source }) => from[0] && isSame(source, from[0]));
      if (there && there !== selection.focus.peek()?.file) selection.look({ file: there, part: 0 });
      status.announce("The file is open already");
      return [];
    }
    const besides = open.map(({ beside }) => beside);
    const run = await this.#plan(known, fresh);
    if (load !== this.#loads) return [];
    const files = run.files.filter((file) => !known.includes(file));
    const told = known.filter((file, index) => file.source.beside !== besides[index]);
    batch(() => {
      status.notice.value = null;
      runs.run.value = run;
    });
    status.announce(run.countText);
    runs.pool.open(files);
    for (const file of told) runs.pool.renew(file);
    const failed = selection.focus.peek()?.file.load.peek().state === "error";
    this.#arrive(files, failed ? files[0] : undefined);
    return [...files, ...told];
  }

  /** Shows a run. After its files `waited`, the user may have chosen a place already. */
  #start(run: Run, waited: boolean): void {
    const { runs, selection, viewSelection, status, navigation } = this.#owners;
    // A run that is opened again has new objects for its files.
    const focused = selection.focus.peek()?.file.path;
    const isChosen = waited && navigation.settled.peek();
    const isFree = !isChosen && !this.#isAddressed(run, focused);
    runs.pool.clear();
    batch(() => {
      status.notice.value = null;
      selection.clear();
      viewSelection.reset();
      // Without the other views the timeline is all there is.
      const hasViews = status.viewsFailure.peek() === null;
      if (isFree) navigation.show(hasViews && run.files.length > 1 ? "ranks" : "timeline");
      const looks = isFree && hasViews && !run.isIndexed;
      navigation.settled.value = !looks;
      this.opened.value = looks ? run.files : null;
      if (run.isIndexed) rest(run.files, []);
      runs.run.value = run;
    });
    if (!run.isIndexed) runs.pool.open(run.files);
    const first = run.files.length === 1 ? run.files[0] : undefined;
    this.#arrive(run.files, run.files.find(({ path }) => path === focused) ?? first);
  }

  /** Whether a link, a script, the page around it or the user already says what to show. */
  #isAddressed({ files }: Run, focused: string | undefined): boolean {
    const { address, navigation } = this.#owners;
    const { view, path } = address.pendingState;
    const isAgain = files.some((file) => file.path === focused);
    return view !== undefined || path !== undefined || isAgain || navigation.viewGiven;
  }

  /** Focuses the file that the pending state names, else `otherwise`. */
  #arrive(files: readonly RankFile[], otherwise: RankFile | undefined): void {
    const { path, part, device } = this.#owners.address.pendingState;
    const file = files.find((each) => each.path === path) ?? otherwise;
    if (file) this.#owners.selection.look({ file, part: part ?? 0 }, device ?? null);
  }
}
