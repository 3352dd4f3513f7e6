// Two rows beside each other: which they are, and what Rust says of both. B is the one in focus, A
// the one that was pinned, or a neighbor. Each worker writes what the other needs to know of it;
// the coordinator compares.

import { computed, effect, type Signal, signal, untracked } from "@preact/signals";
import type { RankFile } from "../client/rank-file.js";
import type {
  Align,
  BandKind,
  CompareAnswer,
  ComparedStack,
  ComparedStacks,
  CompareQuery,
  Comparison,
  DetailCard,
} from "../generated/protocol.js";
import type { Pin } from "../linked.js";
import { failureOf, type Row } from "../run.js";
import type { Session } from "../session.js";

const same = (a: Row | null, b: Row | null) => a?.file === b?.file && a?.part === b?.part;
const pinOf = ({ file: { path }, part }: Row): Pin => ({ path, part });

export class Comparing {
  readonly band: Signal<BandKind> = signal("requested_bytes");
  readonly align: Signal<Align> = signal("event");
  /** Only call stacks with this word. */
  readonly text: Signal<string> = signal("");
  readonly comparison: Signal<Comparison | null> = signal(null);
  readonly stacks: Signal<ComparedStacks | null> = signal(null);
  /** The call stack that is in the details. */
  readonly chosen: Signal<number | null> = signal(null);
  /** Why there is no comparison. */
  readonly failure: Signal<string | null> = signal(null);
  readonly b = computed(
    () => this.session.rows.value.find((row) => this.session.isFocused(row)) ?? null,
  );
  readonly a = computed(() => this.#a());
  readonly session: Session;
  readonly #open = signal(false);
  readonly #inSight = signal({ from: 0, count: 60 });
  /**
   * What workers wrote; it is small, and a file that was released need not be read again for it.
   */
  readonly #sides = new WeakMap<RankFile, Map<string, Promise<string | null>>>();
  readonly #stop: (() => void)[];
  #asked = 0;
  #pages = 0;

  constructor(session: Session) {
    this.session = session;
    this.#stop = [effect(() => this.#follow()), effect(() => this.#page())];
  }

  destroy(): void {
    for (const stop of this.#stop) stop();
  }

  /** Whether anybody sees it: nothing is asked before. */
  show(open: boolean): void {
    this.#open.value = open;
  }

  choose(row: Row): void {
    this.session.linked.pinned.value = pinOf(row);
  }

  /** The row in focus becomes A, and the other B; the same again turns them round. */
  pin(): void {
    const [a, b] = [this.a.peek(), this.b.peek()];
    if (b === null) return;
    const pinned = a !== null && this.#isPinned(a);
    const other = a !== null && !same(a, b) ? a : this.#neighbor(b);
    const turned = pinned && !same(a, b);
    this.choose(b);
    // What was pinned takes the place of the one in focus; of two files the other one is B,
    // whichever was pinned.
    if (other && (turned || this.session.rows.peek().length === 2)) this.session.look(other);
  }

  swap(): void {
    const [a, b] = [this.a.peek(), this.b.peek()];
    if (a === null || b === null) return;
    this.choose(b);
    this.session.look(a);
  }

  /** The rows of the table that are in sight. */
  readonly ask = (from: number, count: number): void => {
    const now = this.#inSight.peek();
    if (now.from !== from || now.count !== count) this.#inSight.value = { from, count };
  };

  /** Puts a call stack into the details. */
  async openStack({ row }: ComparedStack): Promise<void> {
    this.chosen.value = row;
    const card = await this.#answer<DetailCard>("detail", { stack: { row } });
    if (card && this.chosen.peek() === row) this.session.workspace.peek()?.showSubject(card);
  }

  #a(): Row | null {
    const rows = this.session.rows.value;
    const pinned = rows.find((row) => this.#isPinned(row));
    return pinned ?? (this.b.value && this.#neighbor(this.b.value));
  }

  #isPinned({ file, part }: Row): boolean {
    const pin = this.session.linked.pinned.value;
    return pin?.path === file.path && pin.part === part;
  }

  /** The row before, or behind the first. */
  #neighbor(of: Row): Row | null {
    const rows = this.session.rows.value;
    const at = rows.findIndex((row) => same(row, of));
    return rows[at - 1] ?? rows[at + 1] ?? null;
  }

  #follow(): void {
    const [a, b, band] = [this.a.value, this.b.value, this.band.value];
    const device = this.session.focus.value?.device ?? null;
    const ready = this.#open.value && a !== null && b !== null && !same(a, b);
    this.#asked += 1;
    const latest = this.#asked;
    untracked(() => {
      this.failure.value = null;
      this.chosen.value = null;
      if (!ready) {
        this.comparison.value = null;
        this.stacks.value = null;
        return;
      }
      void this.#compare(a, b, band, device, () => latest === this.#asked);
    });
  }

  async #compare(
    a: Row,
    b: Row,
    band: BandKind,
    device: number | null,
    current: () => boolean,
  ): Promise<void> {
    try {
      const [before, after] = await Promise.all([
        this.#side(a, band, null),
        this.#side(b, band, device),
      ]);
      if (!current()) return;
      const none = before === null ? a : b;
      const missing = before === null || after === null;
      const sides = missing
        ? null
        : await this.#answer<Comparison>("comparison", { sides: { a: before, b: after } });
      if (!current()) return;
      this.comparison.value = sides;
      if (missing)
        this.failure.value = `Nothing is known of ${none.label}: it could not be read, or nothing was allocated.`;
    } catch (error) {
      if (current()) this.failure.value = failureOf(error).message;
    }
  }

  #side({ file, part }: Row, band: BandKind, device: number | null): Promise<string | null> {
    const known = this.#sides.get(file) ?? new Map<string, Promise<string | null>>();
    this.#sides.set(file, known);
    // Of another part of a large file other things are true.
    const key = JSON.stringify([file.part, part, device, band]);
    const side = known.get(key) ?? this.#askSide(file, part, band, device);
    known.set(key, side);
    void side.then((text) => {
      if (text === null) known.delete(key);
    });
    return side;
  }

  async #askSide(
    file: RankFile,
    part: number,
    band: BandKind,
    device: number | null,
  ): Promise<string | null> {
    const client = await this.session.pool.acquire(file);
    const load = file.load.peek();
    const of = load.state === "ready" ? load.loaded.parts[part] : undefined;
    const text =
      client && of && of.devices.length > 0
        ? await client.view({ part, device: device ?? of.defaultDevice }, "text", {
            side: { band },
          })
        : null;
    this.session.pool.release(file);
    return text;
  }

  #page(): void {
    const { from, count } = this.#inSight.value;
    const query = { stacks: { text: this.text.value, from, count } };
    if (this.comparison.value === null) return;
    this.#pages += 1;
    const latest = this.#pages;
    void this.#answer<ComparedStacks>("stacks", query).then((page) => {
      if (latest === this.#pages) this.stacks.value = page;
    });
  }

  async #answer<T>(kind: string, query: CompareQuery): Promise<T | null> {
    const answer: CompareAnswer = await this.session.coordinator.compare(query);
    return kind in answer ? ((answer as unknown as Record<string, T>)[kind] ?? null) : null;
  }
}
