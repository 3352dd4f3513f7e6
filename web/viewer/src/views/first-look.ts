// The first look at a run of several files: the overview, with the rank of the worst finding. What
// a link says and what the user chooses win.

import { effect, untracked } from "@preact/signals";
import type { RankFile } from "../client/rank-file.js";
import type { Focus } from "../run.js";
import type { ViewUses } from "./workspace.js";

type FirstLookOwners = ViewUses<"runs" | "loader" | "selection" | "navigation" | "ranks">;

export class FirstLook {
  readonly #owners: FirstLookOwners;
  readonly #stop: () => void;
  /** The files that the focus below is about. */
  #files: readonly RankFile[] | null = null;
  /** The first file that was read. It is in focus until the user chooses a row. */
  #first: Focus | null = null;

  constructor(owners: FirstLookOwners) {
    this.#owners = owners;
    this.#stop = effect(() => this.#follow());
  }

  destroy(): void {
    this.#stop();
  }

  #follow(): void {
    const { runs, loader, selection, navigation, ranks } = this.#owners;
    const files = loader.opened.value;
    if (files !== this.#files) {
      this.#files = files;
      this.#first = null;
    }
    if (files === null) return;
    const focus = selection.focus.value;
    this.#first ??= focus;
    const isChosen = focus !== this.#first || navigation.view.value !== "overview";
    const overview = ranks.overview.value;
    const { waiting, cards } = runs.tally.value;
    if (!isChosen && (waiting > 0 || !overview || overview.cards < cards)) return;
    const worst = overview?.worst ?? null;
    const row = worst === null ? null : ranks.rowOf(worst)?.row;
    untracked(() => {
      // Looks once.
      loader.opened.value = null;
      if (!isChosen && row && !selection.isFocused(row)) selection.look(row);
    });
  }
}
