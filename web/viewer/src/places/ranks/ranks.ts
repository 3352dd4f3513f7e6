// Sends the cards of ranks to the coordinator as they are computed, and keeps its overview. Rows of
// a large run, and cards of an index, come when they are shown.

import { batch, computed, effect, type Signal, signal, untracked } from "@preact/signals";
import type { RankFile } from "../../client/rank-file.js";
import type {
  Card,
  FileCard,
  FindingRow,
  Fleet,
  Overview,
  OverviewRow,
  RankList,
  RankSort,
  RunCard,
  RunQuery,
  ShownRank,
} from "../../generated/protocol.js";
import { MAX_PARTS } from "../../generated/protocol.js";
import { failureOf, type Row, rowsOf } from "../../run.js";
import type { Uses } from "../../stores.js";

/** The longest pause between two batches of cards, and the pause by the time of a batch. */
const MAX_PAUSE_MS = 2000;
const PAUSE = 10;

type RanksOwners = Uses<"runs" | "loader" | "viewSelection" | "status">;

export class Ranks {
  readonly overview: Signal<Overview | null> = signal(null);
  /** The rows of the overview that are shown. */
  readonly list: Signal<RankList | null> = signal(null);
  /** The ranks in one picture; null with few ranks. */
  readonly fleet: Signal<Fleet | null> = signal(null);
  readonly sort: Signal<{ sort: RankSort; descending: boolean }> = signal({
    sort: "rank",
    descending: false,
  });
  readonly #files = computed(
    () => new Map(this.#owners.runs.run.value?.files.map((file) => [file.planned.file, file])),
  );
  readonly #owners: RanksOwners;
  /** What the coordinator has by key. */
  readonly #cards = new Map<number, { card: FileCard; group: string }>();
  /** Rows of the overview by key, as they came last. */
  readonly #rows = new Map<number, Signal<OverviewRow | undefined>>();
  /** Keys of rows that were asked for since the overview changed. */
  readonly #asked = new Set<number>();
  /** Keys of rows to ask for. */
  #wanted = new Set<number>();
  /** Files whose cards are from an index. */
  readonly #indexed = new WeakSet<RankFile>();
  readonly #stop: () => void;
  /** The files of the run, each with the end of the subscription to its cards. */
  readonly #followed = new Map<RankFile, () => void>();
  /** Files whose cards the coordinator lacks. */
  readonly #fresh = new Set<RankFile>();
  #timer: ReturnType<typeof setTimeout> | null = null;
  #sending = false;
  /**
   * Time until cards are sent. An answer is about all ranks of the run, so a large run sends its
   * cards in batches.
   */
  #pauseMs = 0;
  /** The coordinator's worker that has the cards, by its number. */
  #worker = 0;
  /** The numbers of the last choice of rows and of the last picture. */
  #choices = 0;
  #pictures = 0;

  constructor(owners: RanksOwners) {
    this.#owners = owners;
    const { runs, viewSelection } = owners;
    const stops = [
      effect(() => this.#follow()),
      effect(() => {
        if (runs.tally.value.waiting === 0) untracked(() => this.#finish());
      }),
      effect(() => {
        const query = {
          ...this.sort.value,
          filter: viewSelection.rankFilter.value,
          iteration: viewSelection.iteration.value,
        };
        untracked(() => void this.#choose(query));
      }),
      effect(() => {
        // The coordinator has cards that the page lacks.
        if (runs.indexed.value > 0) untracked(() => void this.#compare({ cards: { cards: [] } }));
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
  sortBy(sort: RankSort): void {
    const before = this.sort.peek();
    const descending = before.sort === sort ? !before.descending : sort !== "rank";
    this.sort.value = { sort, descending };
  }

  /** The row of the rail for a row of the overview, with its card if the page has it. */
  rowOf(key: number): { row: Row; card: Card | null } | null {
    const file = this.#files.value.get(Math.floor(key / MAX_PARTS));
    const row = file && rowsOf(file)[key % MAX_PARTS];
    return file && row ? { row, card: file.cards.peek()?.[row.part] ?? null } : null;
  }

  /** A finding of a file's worker, by its index in the card with a key. */
  findingOf(key: number, index: number): FindingRow | undefined {
    const file = this.#files.value.get(Math.floor(key / MAX_PARTS));
    return file?.ownCards.value?.[key % MAX_PARTS]?.findings[index];
  }

  keyOf({ file, part }: Pick<Row, "file" | "part">): number {
    return file.planned.file * MAX_PARTS + part;
  }

  /** The row of the overview for a row of the rail. It is asked for if the page lacks it. */
  overviewOf(row: Row): OverviewRow | undefined {
    return this.shownOf(this.keyOf(row));
  }

  /** The row of the overview with a key. It is asked for if the page lacks it. */
  shownOf(key: number): OverviewRow | undefined {
    const cards = this.overview.value?.cards ?? 0;
    if (cards > 0 && !this.#asked.has(key)) {
      this.#asked.add(key);
      if (this.#wanted.size === 0) queueMicrotask(() => void this.#ask());
      this.#wanted.add(key);
    }
    return this.#rowOf(key).value;
  }

  /** Only what shows a row changes with it. */
  #rowOf(key: number): Signal<OverviewRow | undefined> {
    const known = this.#rows.get(key) ?? signal(undefined);
    this.#rows.set(key, known);
    return known;
  }

  /** Asks for the picture of the run with a row. */
  async draw(key: number | null, capacity: number | null): Promise<void> {
    this.#pictures += 1;
    const picture = this.#pictures;
    const { runs, viewSelection, status } = this.#owners;
    try {
      const fleet = await runs.coordinator.fleet(key, viewSelection.sizes.peek(), capacity);
      if (picture === this.#pictures) this.fleet.value = fleet;
    } catch (error) {
      status.report(failureOf(error));
    }
  }

  async #ask(): Promise<void> {
    const keys = [...this.#wanted];
    this.#wanted = new Set();
    try {
      this.#take(await this.#owners.runs.coordinator.rows(keys));
    } catch (error) {
      this.#owners.status.report(failureOf(error));
    }
  }

  #take(shown: readonly ShownRank[]): void {
    batch(() => {
      for (const { row, card, indexed } of shown) {
        this.#asked.add(row.key);
        const file = this.#files.peek().get(Math.floor(row.key / MAX_PARTS));
        if (file) {
          if (indexed) this.#indexed.add(file);
          const cards = [...(file.cards.peek() ?? [])];
          cards[row.key % MAX_PARTS] = card;
          file.cards.value = cards;
        }
        this.#rowOf(row.key).value = row;
      }
    });
  }

  /** Follows the cards of the run's files. A new worker of the coordinator gets all of them. */
  #follow(): void {
    const { runs, loader } = this.#owners;
    const run = runs.run.value;
    const worker = runs.coordinator.renewed.value;
    untracked(() => {
      if (worker !== this.#worker) {
        this.#worker = worker;
        this.#cards.clear();
        if (run?.isIndexed) void loader.indexes.again();
      }
      const files = new Set(run?.files);
      this.#forget(new Set([...this.#followed.keys()].filter((file) => !files.has(file))));
      for (const file of files) {
        if (this.#followed.has(file)) this.#note(file);
        else
          this.#followed.set(
            file,
            file.ownCards.subscribe(() => this.#note(file)),
          );
      }
    });
  }

  /** Forgets files that have left the run. */
  #forget(gone: ReadonlySet<RankFile>): void {
    for (const file of gone) {
      this.#followed.get(file)?.();
      this.#followed.delete(file);
      this.#fresh.delete(file);
    }
    // A file that turned out to be no snapshot leaves the run without cards.
    if (![...gone].some((file) => this.#indexed.has(file) || file.ownCards.peek() !== null)) return;
    this.#leave();
    this.#cards.clear();
    for (const row of this.#rows.values()) row.value = undefined;
    this.#rows.clear();
    this.overview.value = null;
    this.fleet.value = null;
    // The coordinator begins with an index by itself.
    if (this.#owners.runs.run.peek()?.isIndexed !== true) void this.#compare({ clear: {} });
  }

  #leave(): void {
    for (const stop of this.#followed.values()) stop();
    this.#followed.clear();
    this.#fresh.clear();
  }

  /** Sends the file's cards with the next batch, if it has any of its own. */
  #note(file: RankFile): void {
    if (file.ownCards.peek() === null || this.#indexed.has(file)) return;
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
      for (const [part, card] of (file.ownCards.peek() ?? []).entries()) {
        const key = this.keyOf({ file, part });
        const { group } = file.planned;
        // Adding files may change the groups of other files.
        const known = this.#cards.get(key);
        if (card === null || (known?.card === card && known.group === group)) continue;
        this.#cards.set(key, { card, group });
        cards.push({ key, group, card: card.card });
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
      const overview = await this.#owners.runs.coordinator.view(query);
      this.#asked.clear();
      this.overview.value = overview;
      this.list.value = overview.list;
      this.#take(overview.rows);
    } catch (error) {
      this.#owners.status.report(failureOf(error));
    }
  }

  async #choose(query: Parameters<RanksOwners["runs"]["coordinator"]["list"]>[0]): Promise<void> {
    this.#choices += 1;
    const choice = this.#choices;
    try {
      const list = await this.#owners.runs.coordinator.list(query);
      if (choice === this.#choices && this.overview.peek() !== null) this.list.value = list;
    } catch (error) {
      this.#owners.status.report(failureOf(error));
    }
  }
}
