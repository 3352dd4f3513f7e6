// A comparison of two rows. B is the row in focus. A is the pinned row, else a neighbor of B. Each
// worker writes its side as text, and the coordinator compares both sides.

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
import { failureOf, type Row, rowName } from "../run.js";
import type { Uses } from "../stores.js";
import type { Pin } from "../view-selection.js";

type ComparingOwners = Uses<"runs" | "selection" | "viewSelection" | "status">;

const isSame = (a: Row | null, b: Row | null) => a?.file === b?.file && a?.part === b?.part;
const pinOf = ({ file: { path }, part }: Row): Pin => ({ path, part });

export class Comparing {
  readonly band: Signal<BandKind> = signal("requested_bytes");
  readonly align: Signal<Align> = signal("event");
  /** Filter of the call stacks. */
  readonly text: Signal<string> = signal("");
  readonly comparison: Signal<Comparison | null> = signal(null);
  readonly stacks: Signal<ComparedStacks | null> = signal(null);
  /** The call stack in the details. */
  readonly chosen: Signal<number | null> = signal(null);
  /** Why there is no comparison. */
  readonly failure: Signal<string | null> = signal(null);
  readonly b = computed(
    () => this.#owners.runs.rows.value.find((row) => this.#owners.selection.isFocused(row)) ?? null,
  );
  readonly a = computed(() => this.#a());
  readonly #owners: ComparingOwners;
  readonly #open = signal(false);
  /** The visible rows of the table of call stacks. */
  readonly #visible = signal({ from: 0, count: 60 });
  /** Cached sides of each file. They are small, and evicted files need not be loaded again. */
  readonly #sides = new WeakMap<RankFile, Map<string, Promise<string | null>>>();
  readonly #stop: (() => void)[];
  #comparisons = 0;
  #pages = 0;

  constructor(owners: ComparingOwners) {
    this.#owners = owners;
    this.#stop = [effect(() => this.#follow()), effect(() => this.#page())];
  }

  destroy(): void {
    for (const stop of this.#stop) stop();
  }

  /** Starts or stops comparing: hidden views send no queries. */
  show(open: boolean): void {
    this.#open.value = open;
  }

  /** Makes a row side A. */
  choose(row: Row): void {
    this.#owners.viewSelection.pinned.value = pinOf(row);
  }

  /** Makes the row in focus side A and the other row B. A second call swaps them. */
  pin(): void {
    const [a, b] = [this.a.peek(), this.b.peek()];
    if (b === null) return;
    const pinned = a !== null && this.#isPinned(a);
    const other = a !== null && !isSame(a, b) ? a : this.#neighbor(b);
    const swaps = pinned && !isSame(a, b);
    this.choose(b);
    // The formerly pinned row gets the focus. With two rows, the other row is always B.
    const { runs, selection } = this.#owners;
    if (other && (swaps || runs.rows.peek().length === 2)) selection.look(other);
  }

  swap(): void {
    const [a, b] = [this.a.peek(), this.b.peek()];
    if (a === null || b === null) return;
    this.choose(b);
    this.#owners.selection.look(a);
  }

  /** Requests the visible rows of the table of call stacks. */
  readonly ask = (from: number, count: number): void => {
    const now = this.#visible.peek();
    if (now.from !== from || now.count !== count) this.#visible.value = { from, count };
  };

  /** Shows a call stack in the details. */
  async openStack({ row }: ComparedStack): Promise<void> {
    this.chosen.value = row;
    const card = await this.#answer<DetailCard>("detail", { stack: { row } });
    if (!card || this.chosen.peek() !== row) return;
    this.#owners.selection.card.value = card;
    this.#owners.status.announce(`${card.kind} ${card.title.text}`);
  }

  #a(): Row | null {
    const rows = this.#owners.runs.rows.value;
    const pinned = rows.find((row) => this.#isPinned(row));
    return pinned ?? (this.b.value && this.#neighbor(this.b.value));
  }

  #isPinned({ file, part }: Row): boolean {
    const pin = this.#owners.viewSelection.pinned.value;
    return pin?.path === file.path && pin.part === part;
  }

  /** The row before; after the first row, the next. */
  #neighbor(of: Row): Row | null {
    const rows = this.#owners.runs.rows.value;
    const at = rows.findIndex((row) => isSame(row, of));
    return rows[at - 1] ?? rows[at + 1] ?? null;
  }

  #follow(): void {
    const [a, b, band] = [this.a.value, this.b.value, this.band.value];
    const device = this.#owners.selection.focus.value?.device ?? null;
    const ready = this.#open.value && a !== null && b !== null && !isSame(a, b);
    this.#comparisons += 1;
    const latest = this.#comparisons;
    untracked(() => {
      this.failure.value = null;
      this.chosen.value = null;
      if (!ready) {
        this.comparison.value = null;
        this.stacks.value = null;
        return;
      }
      void this.#compare(a, b, band, device, () => latest === this.#comparisons);
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
        this.failure.value = `Cannot compare ${rowName(none)}: it is unread or has no allocations.`;
    } catch (error) {
      if (current()) this.failure.value = failureOf(error).message;
    }
  }

  #side({ file, part }: Row, band: BandKind, device: number | null): Promise<string | null> {
    const known = this.#sides.get(file) ?? new Map<string, Promise<string | null>>();
    this.#sides.set(file, known);
    // Parts of a large file have sides of their own.
    const key = JSON.stringify([file.part, part, device, band]);
    const side = known.get(key) ?? this.#querySide(file, part, band, device);
    known.set(key, side);
    void side.then((text) => {
      if (text === null) known.delete(key);
    });
    return side;
  }

  async #querySide(
    file: RankFile,
    part: number,
    band: BandKind,
    device: number | null,
  ): Promise<string | null> {
    const { pool } = this.#owners.runs;
    const client = await pool.acquire(file);
    const load = file.load.peek();
    const of = load.state === "ready" ? load.loaded.parts[part] : undefined;
    const text =
      client && of && of.devices.length > 0
        ? await client.view({ part, device: device ?? of.defaultDevice }, "text", {
            side: { band },
          })
        : null;
    pool.release(file);
    return text;
  }

  #page(): void {
    const { from, count } = this.#visible.value;
    const query = { stacks: { text: this.text.value, from, count } };
    if (this.comparison.value === null) return;
    this.#pages += 1;
    const latest = this.#pages;
    void this.#answer<ComparedStacks>("stacks", query).then((page) => {
      if (latest === this.#pages) this.stacks.value = page;
    });
  }

  async #answer<T>(kind: string, query: CompareQuery): Promise<T | null> {
    const answer: CompareAnswer = await this.#owners.runs.coordinator.compare(query);
    return kind in answer ? ((answer as unknown as Record<string, T>)[kind] ?? null) : null;
  }
}
