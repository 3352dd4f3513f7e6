// All views but the timeline: their shared state, components, keys and styles. The page imports
// this module after the first picture.

import { effect, untracked } from "@preact/signals";
import { Sources } from "../places/code/sources.js";
import { Comparing } from "../places/compare/comparing.js";
import { Ranks } from "../places/ranks/ranks.js";
import { Levers } from "../places/summary/levers.js";
import { BlockNames } from "../places/timeline/block-names.js";
import { capacityOf, marksTop } from "../places/timeline/limits.js";
import { shadedOf } from "../places/timeline/phase-items.js";
import { Pins } from "../places/timeline/pins.js";
import { Player } from "../places/timeline/player.js";
import type { Stores } from "../stores.js";
import { sheetOf } from "../styles/sheets.js";
import { style } from "../styles/views.js";
import { Cards } from "./cards.js";
import { FirstLook } from "./first-look.js";
import { Groups } from "./groups.js";
import { ViewHistory } from "./history.js";
import { Queries } from "./queries.js";
import { VIEW_SHORTCUTS } from "./shortcuts.js";
import { Steps } from "./steps.js";
import { bindUi, type Ui } from "./ui.js";

/** The state of the views by owner. */
export interface ViewStores {
  /** Answers that several views show. */
  readonly queries: Queries;
  /** The ranks of the overview. */
  readonly ranks: Ranks;
  readonly comparing: Comparing;
  /** Moves of the time cursor. */
  readonly steps: Steps;
  /** Cards and blocks that other views open in the details. */
  readonly cards: Cards;
  /** Groups of blocks that rows choose. */
  readonly groups: Groups;
  readonly history: ViewHistory;
  readonly player: Player;
  /** Ranks whose curves are pinned below the timeline. */
  readonly pins: Pins;
  /** Labels in large blocks of the timeline. */
  readonly names: BlockNames;
  /** What can be changed, and what is chosen of it. */
  readonly levers: Levers;
  /** The text of source files. */
  readonly sources: Sources;
}

/** Properties of a view's component that uses these owners. */
export type ViewUses<Owners extends keyof (Stores & ViewStores)> = Pick<
  Stores & ViewStores,
  Owners
>;

export class Workspace {
  readonly shortcuts = VIEW_SHORTCUTS;
  readonly stores: ViewStores;
  /** Components that are bound to the stores. */
  readonly ui: Ui;
  readonly #stop: (() => void)[];

  constructor(stores: Stores) {
    const { selection, viewSelection, filters, plots, status } = stores;
    const ranks = new Ranks(stores);
    const queries = new Queries(stores, ranks);
    const firstLook = new FirstLook({ ...stores, ranks });
    const cards = new Cards(stores);
    const comparing = new Comparing(stores);
    const groups = new Groups(stores);
    const steps = new Steps({ ...stores, queries, cards, groups });
    const history = new ViewHistory(stores.address);
    const pins = new Pins(stores);
    const player = new Player((by) => void steps.step(by));
    const names = new BlockNames(stores);
    const levers = new Levers({ ...stores, queries });
    const sources = new Sources(stores);
    const shown = { queries, ranks, comparing, cards, groups, names, levers, sources };
    this.stores = { ...shown, steps, history, player, pins };
    this.ui = bindUi({ ...stores, ...this.stores });
    // A link may have marked a range before the views were loaded.
    if (selection.block.peek() === null) void cards.showRange();
    this.#stop = [
      effect(() =>
        plots.timeline.value?.setLook({
          group: viewSelection.group.value,
          color: viewSelection.color.value,
          bands: viewSelection.bands.value,
          search: filters.text.value,
          capacity: capacityOf(viewSelection.capacity.value, queries.limit.value.value),
          marksTop: marksTop(viewSelection.capacity.value, queries.limit.value.value),
          fromBaseline: viewSelection.fromBaseline.value,
          simulatedTop: levers.top.value,
        }),
      ),
      effect(() => {
        const shaded = shadedOf(queries.phases.value.value);
        plots.timeline.value?.act((view) => view.setShaded(shaded));
      }),
      effect(() => {
        const state = queries.stateAt.value.value;
        if (state) untracked(() => status.announce(state.spoken));
      }),
      () => player.stop(),
      ...[firstLook, ranks, queries, cards, groups, comparing, history, names, levers, pins].map(
        (owner) => () => owner.destroy(),
      ),
      () => sources.destroy(),
    ];
  }

  styleSheets(): CSSStyleSheet[] {
    return style.map(sheetOf);
  }

  destroy(): void {
    for (const stop of this.#stop) stop();
  }
}
