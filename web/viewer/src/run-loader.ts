// From files that somebody hands over to the run that is open: in its place, or beside what is
// there.

import { batch } from "@preact/signals";
import { beside, isSame } from "./client/files.js";
import { RankFile, type Source } from "./client/rank-file.js";
import type { PlannedRow } from "./generated/protocol.js";
import { failureOf, type Run, settled } from "./run.js";
import type { Session } from "./session.js";

/** The row of a file until the coordinator has planned the run. */
function unplanned({ path }: Source, file: number): PlannedRow {
  return { file, rank: null, label: path.split("/").at(-1) ?? path, group: "", size: "" };
}

export class RunLoader {
  readonly #session: Session;
  #loads = 0;
  /** Settled when all that is to be added has its row. */
  #added: Promise<unknown> = Promise.resolve();

  constructor(session: Session) {
    this.#session = session;
  }

  /** What is still on its way is not opened. */
  end(): void {
    this.#loads += 1;
  }

  /** Opens these in place of what is open. Settled when each is read or refused. */
  async open(sources: Source[] | Promise<Source[]>, title?: string): Promise<void> {
    this.#loads += 1;
    const load = this.#loads;
    let waiting: readonly RankFile[] = [];
    try {
      const opened = await sources;
      if (load !== this.#loads) return;
      waiting = this.#wait(opened, title ?? "");
      const run = await this.#plan(waiting, waiting.length === 0 ? opened : []);
      if (load !== this.#loads) return;
      this.#start({ ...run, title: title ?? run.title });
      await Promise.all(run.files.map(settled));
    } catch (error) {
      if (load === this.#loads && waiting.length > 0) this.#session.run.value = null;
      this.#session.report(failureOf(error));
    }
  }

  /** Opens these beside what is open; what is looked at stays. */
  async add(sources: Source[] | Promise<Source[]>): Promise<void> {
    if (this.#session.run.peek() === null) return this.#session.open(sources);
    // One after another: each begins with what the one before has left.
    const added = Promise.all([sources, this.#added]).then(([from]) => this.#add(from));
    this.#added = added.catch(() => undefined);
    try {
      await Promise.all((await added).map(settled));
    } catch (error) {
      this.#session.report(failureOf(error));
    }
  }

  /** Rows for files that are opened before the worker's module is compiled: none later on. */
  #wait(sources: readonly Source[], title: string): readonly RankFile[] {
    const session = this.#session;
    if (session.modules.compiled.peek() || sources.length === 0) return [];
    const files = sources.map((source, index) => new RankFile(source, unplanned(source, index)));
    const countText = files.length === 1 ? "1 file" : `${files.length} files`;
    batch(() => {
      session.notice.value = null;
      session.focus.value = null;
      session.run.value = { title, countText, files };
    });
    return files;
  }

  /** The run of these: files that are there keep their number and get their new place. */
  async #plan(known: readonly RankFile[], sources: readonly Source[]): Promise<Run> {
    if (known.length + sources.length === 0)
      throw new Error("There is no snapshot in what was opened.");
    const all = [...known.map(({ source }) => source), ...sources];
    const { title, countText, rows } = await this.#session.coordinator.plan(
      all.map(({ path, bytes }) => ({ path, bytes })),
    );
    const files = rows.flatMap((row) => {
      const [file, source] = [known[row.file], all[row.file]];
      if (file) file.planned = row;
      return file ?? (source ? new RankFile(source, row) : []);
    });
    return { title, countText, files };
  }

  async #add(from: Source[]): Promise<RankFile[]> {
    const session = this.#session;
    const load = this.#loads;
    const known = session.files().toSorted((a, b) => a.planned.file - b.planned.file);
    const open = known.map(({ source }) => source);
    const fresh = beside(open, from);
    // All of it is there already: the first is what somebody wants to see.
    const there =
      fresh.length === 0 && known.find(({ source }) => from[0] && isSame(source, from[0]));
    if (there) {
      if (there !== session.focus.peek()?.file) session.look({ file: there, part: 0 });
      session.spoken.value = "It is open already";
      return [];
    }
    const run = await this.#plan(known, fresh);
    if (load !== this.#loads) return [];
    const files = run.files.filter((file) => !known.includes(file));
    batch(() => {
      session.notice.value = null;
      session.run.value = run;
    });
    session.spoken.value = run.countText;
    session.pool.open(files);
    const failed = session.focus.peek()?.file.load.peek().state === "error";
    this.#arrive(files, failed ? files[0] : undefined);
    return files;
  }

  #start(run: Run): void {
    const session = this.#session;
    const focused = session.focus.peek()?.file;
    session.pool.clear();
    batch(() => {
      session.notice.value = null;
      session.selected.value = null;
      session.subject.value = null;
      session.linked.reset();
      session.focus.value = null;
      session.run.value = run;
    });
    session.pool.open(run.files);
    const first = run.files.length === 1 ? run.files[0] : undefined;
    this.#arrive(run.files, run.files.find((file) => file === focused) ?? first);
  }

  /** Looks at the one of these that a link has asked for, or else at another. */
  #arrive(files: readonly RankFile[], otherwise: RankFile | undefined): void {
    const { path, part, device } = this.#session.address.wished;
    const file = files.find((each) => each.path === path) ?? otherwise;
    if (file) this.#session.look({ file, part: part ?? 0 }, device ?? null);
  }
}
