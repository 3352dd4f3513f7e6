// Sends the cards of ranks to the coordinator as they are computed, and keeps its overview.

import { computed, effect, type Signal, signal, untracked } from "@preact/signals";
import type { RankFile } from "../client/rank-file.js";
import type {
  Overview,
  OverviewRow,
  RankCard,
  RankSort,
  RunCard,
  RunQuery,
} from "../generated/protocol.js";
import { failureOf, type Row, rowsOf } from "../run.js";
import type { Uses } from "../stores.js";

/**
 * Maximum number of snapshots per file in the overview: a row's key is `file * MAX_PARTS + part`.
 */
const MAX_PARTS = 64;

/** The longest pause between two batches of cards, and the pause by the time of a batch. */
const MAX_PAUSE_MS = 2000;
const PAUSE = 10;

type RanksOwners = Uses<"runs" | "status">;

export class Ranks {
  readonly overview: Signal<Overview | null> = signal(null);
  readonly sort: Signal<{ sort: RankSort; descending: boolean }> = signal({
    sort: "rank",
    descending: false,
  });
  readonly #byKey = computed(() => new Map(this.overview.value?.rows.map((row) => [row.key, row])));
  readonly #owners: RanksOwners;
  readonly #cards = new Map<number, { file: RankFile; card: RankCard; group: string }>();
  readonly #stop: () => void;
  /** The files of the run, each with the end of the subscription to its cards. */
  readonly #followed = new Map<RankFile, () => void>();
  /** Files whose cards the coordinator lacks. */
  readonly #fresh = new Set<RankFile>();
  #timer: ReturnType<typeof setTimeout> | null = null;
  #sending = false;
  /**
   * Time until cards are sent. An answer has all rows of the run, so a large run sends its cards in
   * batches.
   */
  #pauseMs = 0;
  /** The coordinator's worker that has the cards, by its number. */
  #worker = 0;

  constructor(owners: RanksOwners) {
    this.#owners = owners;
    const stops = [
      effect(() => this.#follow()),
      effect(() => {
        if (owners.runs.tally.value.waiting === 0) untracked(() => this.#finish());
      }),
    ];
    this.#stop = () => {
      for (const stop of stops) stop();
    };
  }

  destroy(): void {
    this.#stop();
    this.#leave();
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  /** Sorts the rows. Sorting by the same column again reverses the order. */
  async sortBy(sort: RankSort): Promise<void> {
    const before = this.sort.peek();
    const descending = before.sort === sort ? !before.descending : sort !== "rank";
    this.sort.value = { sort, descending };
    await this.#compare({ sort: { sort, descending } });
  }

  /** The row of the rail for a row of the overview. */
  rowOf(key: number): { row: Row; card: RankCard } | null {
    const entry = this.#cards.get(key);
    const row = entry && rowsOf(entry.file)[key % MAX_PARTS];
    return entry && row ? { row, card: entry.card } : null;
  }

  keyOf({ file, part }: Pick<Row, "file" | "part">): number {
    return file.planned.file * MAX_PARTS + part;
  }

  /** The row of the overview for a row of the rail. */
  overviewOf({ file, part }: Row): OverviewRow | undefined {
    return this.#byKey.value.get(this.keyOf({ file, part }));
  }

  /** Follows the cards of the run's files. A new worker of the coordinator gets all of them. */
  #follow(): void {
    const { runs } = this.#owners;
    const run = runs.run.value;
    const worker = runs.coordinator.renewed.value;
    untracked(() => {
      if (worker !== this.#worker) {
        this.#worker = worker;
        this.#cards.clear();
      }
      const files = new Set(run?.files);
      const gone = new Set([...this.#followed.keys()].filter((file) => !files.has(file)));
      for (const file of gone) {
        this.#followed.get(file)?.();
        this.#followed.delete(file);
        this.#fresh.delete(file);
      }
      // A file that turned out to be no snapshot leaves the run without cards.
      if ([...this.#cards.values()].some(({ file }) => gone.has(file))) {
        this.#leave();
        this.#cards.clear();
        this.overview.value = null;
        void this.#compare({ clear: {} });
      }
      for (const file of files) {
        if (this.#followed.has(file)) this.#note(file);
        else
          this.#followed.set(
            file,
            file.cards.subscribe(() => this.#note(file)),
          );
      }
    });
  }

  #leave(): void {
    for (const stop of this.#followed.values()) stop();
    this.#followed.clear();
    this.#fresh.clear();
  }

  /** Sends the file's cards with the next batch, if it has any. */
  #note(file: RankFile): void {
    if (file.cards.peek() === null) return;
    this.#fresh.add(file);
    this.#later(this.#pauseMs);
  }

  /** No more cards are to come. */
  #finish(): void {
    if (this.#timer === null) return;
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#later(0);
  }

  #later(ms: number): void {
    if (this.#timer === null && !this.#sending)
      this.#timer = setTimeout(() => void this.#send(), ms);
  }

  async #send(): Promise<void> {
    this.#timer = null;
    this.#sending = true;
    const began = performance.now();
    const cards: RunCard[] = [];
    for (const file of this.#fresh) {
      for (const [part, card] of (file.cards.peek() ?? []).entries()) {
        const key = this.keyOf({ file, part });
        const { group } = file.planned;
        // Adding files may change the groups of other files.
        if (card === null || this.#cards.get(key)?.group === group) continue;
        this.#cards.set(key, { file, card, group });
        cards.push({ key, group, card });
      }
    }
    this.#fresh.clear();
    if (cards.length > 0) await this.#compare({ cards: { cards } });
    this.#pauseMs = Math.min(PAUSE * (performance.now() - began), MAX_PAUSE_MS);
    this.#sending = false;
    const isLast = this.#owners.runs.tally.peek().waiting === 0;
    if (this.#fresh.size > 0) this.#later(isLast ? 0 : this.#pauseMs);
  }

  async #compare(query: RunQuery): Promise<void> {
    try {
      this.overview.value = await this.#owners.runs.coordinator.view(query);
    } catch (error) {
      this.#owners.status.report(failureOf(error));
    }
  }
}
