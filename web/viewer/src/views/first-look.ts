// The first look at a run: a single file opens with its summary, and so do several with a finding;
// other files open with their table. What a link says and what the user does meanwhile win.

import { effect, untracked } from "@preact/signals";
import type { RankFile } from "../client/rank-file.js";
import type { View } from "../places/index.js";
import type { Focus } from "../run.js";
import type { ViewUses } from "./workspace.js";

type FirstLookOwners = ViewUses<"runs" | "loader" | "selection" | "navigation" | "ranks">;

export class FirstLook {
  readonly #owners: FirstLookOwners;
  readonly #stop: () => void;
  /** The files that the fields below are about. */
  #files: readonly RankFile[] | null = null;
  /** The first file that was read. It is in focus until the user chooses a row. */
  #first: Focus | null = null;
  /** The view that the run began with. */
  #view: View = "timeline";

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
    if (files === null) return;
    if (files !== this.#files) {
      this.#files = files;
      this.#first = null;
      this.#view = navigation.view.peek();
    }
    const focus = selection.focus.value;
    this.#first ??= focus;
    const isChosen =
      navigation.settled.value || focus !== this.#first || navigation.view.value !== this.#view;
    const overview = ranks.overview.value;
    const { waiting, cards } = runs.tally.value;
    const isKnown = waiting === 0 && (cards === 0 || (overview?.cards ?? 0) >= cards);
    if (!isChosen && !isKnown) return;
    const worst = overview?.worst ?? null;
    const row = worst === null ? null : ranks.rowOf(worst)?.row;
    untracked(() => {
      // Looks once.
      loader.opened.value = null;
      navigation.settled.value = true;
      if (isChosen) return;
      if (row && !selection.isFocused(row)) selection.look(row);
      if ((overview?.notable ?? 0) > 0 || (files.length === 1 && cards > 0))
        navigation.show("summary");
    });
  }
}
