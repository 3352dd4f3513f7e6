// The ranks of the run beside each other: their cards go to the coordinator as they come, and its
// overview comes back.

import { effect, type Signal, signal, untracked } from "@preact/signals";
import type { RankFile } from "../client/rank-file.js";
import type { Overview, OverviewRow, RankCard, RankSort, RunQuery } from "../generated/protocol.js";
import { failureOf, type Row } from "../run.js";
import type { Session } from "../session.js";

/** More snapshots than this in one file have no row of their own in the overview. */
const PARTS = 64;

export class Ranks {
  readonly overview: Signal<Overview | null> = signal(null);
  readonly sort: Signal<{ sort: RankSort; descending: boolean }> = signal({
    sort: "rank",
    descending: false,
  });
  readonly session: Session;
  readonly #cards = new Map<number, { file: RankFile; card: RankCard; group: string }>();
  readonly #stop: () => void;
  /** The coordinator's worker that knows the cards. */
  #told = 0;

  constructor(session: Session) {
    this.session = session;
    this.#stop = effect(() => this.#follow());
  }

  destroy(): void {
    this.#stop();
  }

  /** Puts the rows in another order; the same again turns it round. */
  async sortBy(sort: RankSort): Promise<void> {
    const before = this.sort.peek();
    const descending = before.sort === sort ? !before.descending : sort !== "rank";
    this.sort.value = { sort, descending };
    await this.#compare({ sort: { sort, descending } });
  }

  /** The row of the rail that a row of the overview stands for. */
  rowOf(key: number): { row: Row; card: RankCard } | null {
    const entry = this.#cards.get(key);
    const row =
      entry &&
      this.session.rows
        .peek()
        .find(({ file, part }) => file === entry.file && part === key % PARTS);
    return entry && row ? { row, card: entry.card } : null;
  }

  /** What the overview says of a row of the rail. */
  overviewOf({ file, part }: Row): OverviewRow | undefined {
    const key = file.planned.file * PARTS + part;
    return this.overview.value?.rows.find((row) => row.key === key);
  }

  /** Cards go to the coordinator as they come. */
  #follow(): void {
    const run = this.session.run.value;
    const cards = (run?.files ?? []).map((file) => ({ file, cards: file.cards.value }));
    const told = this.session.coordinator.renewed.value;
    untracked(() => {
      if (told !== this.#told) {
        this.#told = told;
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
          const key = file.planned.file * PARTS + part;
          const { group } = file.planned;
          // What was added may have changed the others' groups.
          if (card === null || this.#cards.get(key)?.group === group) continue;
          this.#cards.set(key, { file, card, group });
          void this.#compare({ card: { key, group, card } });
        }
      }
    });
  }

  async #compare(query: RunQuery): Promise<void> {
    try {
      this.overview.value = await this.session.coordinator.view(query);
    } catch (error) {
      this.session.report(failureOf(error));
    }
  }
}
