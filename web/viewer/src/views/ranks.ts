// Sends the cards of ranks to the coordinator as they are computed, and keeps its overview.

import { effect, type Signal, signal, untracked } from "@preact/signals";
import type { RankFile } from "../client/rank-file.js";
import type { Overview, OverviewRow, RankCard, RankSort, RunQuery } from "../generated/protocol.js";
import { failureOf, type Row } from "../run.js";
import type { Uses } from "../stores.js";

/**
 * Maximum number of snapshots per file in the overview: a row's key is `file * MAX_PARTS + part`.
 */
const MAX_PARTS = 64;

type RanksOwners = Uses<"runs" | "status">;

export class Ranks {
  readonly overview: Signal<Overview | null> = signal(null);
  readonly sort: Signal<{ sort: RankSort; descending: boolean }> = signal({
    sort: "rank",
    descending: false,
  });
  readonly #owners: RanksOwners;
  readonly #cards = new Map<number, { file: RankFile; card: RankCard; group: string }>();
  readonly #stop: () => void;
  /** The coordinator's worker that has the cards, by its number. */
  #worker = 0;

  constructor(owners: RanksOwners) {
    this.#owners = owners;
    this.#stop = effect(() => this.#follow());
  }

  destroy(): void {
    this.#stop();
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
    const row =
      entry &&
      this.#owners.runs.rows
        .peek()
        .find(({ file, part }) => file === entry.file && part === key % MAX_PARTS);
    return entry && row ? { row, card: entry.card } : null;
  }

  /** The row of the overview for a row of the rail. */
  overviewOf({ file, part }: Row): OverviewRow | undefined {
    const key = file.planned.file * MAX_PARTS + part;
    return this.overview.value?.rows.find((row) => row.key === key);
  }

  /** Sends new cards to the coordinator, and all of them to a new worker. */
  #follow(): void {
    const { runs } = this.#owners;
    const run = runs.run.value;
    const cards = (run?.files ?? []).map((file) => ({ file, cards: file.cards.value }));
    const worker = runs.coordinator.renewed.value;
    untracked(() => {
      if (worker !== this.#worker) {
        this.#worker = worker;
        this.#cards.clear();
      }
      const files = new Set(run?.files);
      if ([...this.#cards.values()].some(({ file }) => !files.has(file))) {
        this.#cards.clear();
        this.overview.value = null;
        void this.#compare({ clear: {} });
      }
      for (const { file, cards: some } of cards) {
        for (const [part, card] of (some ?? []).entries()) {
          const key = file.planned.file * MAX_PARTS + part;
          const { group } = file.planned;
          // Adding files may change the groups of other files.
          if (card === null || this.#cards.get(key)?.group === group) continue;
          this.#cards.set(key, { file, card, group });
          void this.#compare({ card: { key, group, card } });
        }
      }
    });
  }

  async #compare(query: RunQuery): Promise<void> {
    try {
      this.overview.value = await this.#owners.runs.coordinator.view(query);
    } catch (error) {
      this.#owners.status.report(failureOf(error));
    }
  }
}
