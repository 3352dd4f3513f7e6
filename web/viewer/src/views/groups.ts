// Chooses groups of blocks: rows of all views set the filters, and the details show what the
// group holds.

import { signal } from "@preact/signals";
import { resource, stopAll } from "../client/resource.js";
import { partsOf } from "../filters.js";
import type { Uses } from "../stores.js";

type GroupsOwners = Uses<"selection" | "viewSelection" | "filters" | "status">;

/** The keys of a click that adds to the group instead of replacing it. */
type Keys = Pick<MouseEvent, "ctrlKey" | "metaKey" | "shiftKey">;

export class Groups {
  /** What the filtered blocks hold; null without filters. */
  readonly card;
  /** The place of the block that a step through the blocks reached: `3 of 120`; else empty. */
  readonly place = signal("");
  readonly #owners: GroupsOwners;
  readonly #stop: readonly (() => void)[];

  constructor(owners: GroupsOwners) {
    this.#owners = owners;
    const { selection, viewSelection, filters } = owners;
    this.card = resource(selection, "group", () => {
      const text = filters.text.value;
      if (filters.terms.value.length === 0) return null;
      return { group: { text, event: viewSelection.cursor.value } };
    });
    this.#stop = [
      () => this.card.stop(),
      // Another search has other places.
      filters.text.subscribe(() => {
        this.place.value = "";
      }),
    ];
  }

  destroy(): void {
    stopAll(this.#stop);
  }

  /** Whether all terms of a row are among the filters. */
  isChosen(terms: readonly string[]): boolean {
    const chosen = this.#owners.filters.terms.value;
    return terms.length > 0 && terms.every((term) => chosen.includes(term));
  }

  /**
   * Chooses the blocks of a row. With Ctrl, Cmd or Shift, adds to the filters. A second click on
   * the chosen row clears.
   */
  choose(terms: readonly string[], keys?: Keys): void {
    const { selection, filters, status } = this.#owners;
    if (terms.length === 0) return;
    const isChosen = this.isChosen(terms);
    if (keys?.ctrlKey || keys?.metaKey || keys?.shiftKey) {
      if (isChosen) for (const term of terms) filters.remove(term);
      else filters.add(...terms);
    } else if (isChosen && filters.terms.peek().length === terms.length) filters.clear();
    else filters.set(terms);
    selection.select(null);
    selection.card.value = null;
    const chosen = filters.terms.peek().map((term) => Object.values(partsOf(term)).join(" "));
    status.announce(chosen.length === 0 ? "All blocks" : `Blocks of ${chosen.join(", ")}`);
  }
}
