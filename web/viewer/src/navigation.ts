// Which views, panels and dialogs are open.

import { computed, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import type { Status } from "./status.js";

/** All views: those with a number key in the order of the keys, then the tables. */
export const VIEWS = [
  "overview",
  "timeline",
  "segments",
  "flame",
  "findings",
  "compare",
  "map",
  "matrix",
  "modules",
  "peak",
  "source",
  "steps",
  "ab",
  "blocks",
  "events",
  "what-if",
  "settings",
] as const;
export type View = (typeof VIEWS)[number];

/** The views with a number key, which have tabs above the center. */
export const KEYED_VIEWS: readonly View[] = VIEWS.slice(0, 9);

export const VIEW_TITLES: Record<View, string> = {
  overview: "Overview",
  timeline: "Timeline",
  segments: "Segments",
  flame: "Flame",
  findings: "Findings",
  compare: "Compare",
  map: "Map",
  matrix: "Matrix",
  modules: "Modules",
  peak: "Peak",
  source: "Source",
  steps: "Steps",
  ab: "A to B",
  blocks: "Blocks",
  events: "Events",
  "what-if": "What if",
  settings: "Settings",
};

/** Choices that outlive the page. */
export interface Memory {
  get(key: string): string | null;
  set(key: string, value: string): void;
}

const VERDICT_KEY = "vramscope-verdict";

export class Navigation {
  /** The view in the center. */
  readonly view: Signal<View> = signal("timeline");
  /** Whether the page around the element chose the view. */
  viewGiven = false;
  /** The view in the drawer below the center; null when the drawer is closed. */
  readonly drawer: Signal<View | null> = signal("segments");
  /** What the timeline's drawer is at first, for the room that there is. */
  #usualDrawer: View | null = "segments";
  /** The drawers of views that were in the center before. */
  readonly #drawers = new Map<View, View | null>();
  /** The drawer's share of the center's height. */
  readonly drawerShare: Signal<number> = signal(0.32);
  readonly detailsOpen: Signal<boolean> = signal(true);
  /** Whether the sheet of keys and gestures is open. */
  readonly sheetOpen: Signal<boolean> = signal(false);
  /** Whether the center has room for more than one line of the verdict. */
  readonly verdictFits: Signal<boolean> = signal(true);
  /** What the user chose for the verdict; null for what fits. */
  readonly #verdictChoice: Signal<boolean | null> = signal(null);
  /** Whether the verdict shows more than one line. */
  readonly verdictOpen: ReadonlySignal<boolean> = computed(
    () => this.#verdictChoice.value ?? this.verdictFits.value,
  );
  /** The id of the finding to bring into view; null for none. */
  readonly shownFinding: Signal<string | null> = signal(null);
  readonly paletteOpen: Signal<boolean> = signal(false);
  /** Whether the dialog that saves a report is open. */
  readonly reportOpen: Signal<boolean> = signal(false);
  /** Whether the gestures are named over the timeline, for new users. */
  readonly hint: Signal<boolean> = signal(false);
  readonly #status: Status;
  readonly #memory: Memory | null;

  /** `memory` outlives the page; null where the element is a guest. */
  constructor(status: Status, memory: Memory | null = null) {
    this.#status = status;
    this.#memory = memory;
    const choice = memory?.get(VERDICT_KEY) ?? null;
    if (choice !== null) this.#verdictChoice.value = choice === "open";
  }

  /** Opens a view in the center, with the drawer that it had. */
  open(view: View): void {
    this.center(view);
    this.#status.announce(VIEW_TITLES[view]);
  }

  /**
   * Puts a view in the center. Each view remembers its drawer, which is closed at first: only the
   * timeline is read together with another view.
   */
  center(view: View): void {
    const before = this.view.peek();
    if (view === before) return;
    this.#drawers.set(before, this.drawer.peek());
    this.view.value = view;
    const known = this.#drawers.get(view);
    const first = view === "timeline" ? this.#usualDrawer : null;
    this.drawer.value = known === undefined ? first : known;
  }

  /** Folds or unfolds the verdict, whatever its room. */
  setVerdictOpen(open: boolean): void {
    this.#verdictChoice.value = open;
    this.#memory?.set(VERDICT_KEY, open ? "open" : "folded");
  }

  /** The timeline has room for another view below it, or not. A drawer that was chosen stays. */
  setDrawerFits(fits: boolean): void {
    const before = this.#usualDrawer;
    this.#usualDrawer = fits ? "segments" : null;
    if (this.view.peek() === "timeline" && this.drawer.peek() === before)
      this.drawer.value = this.#usualDrawer;
  }

  openDrawer(view: View | null): void {
    this.drawer.value = view === this.view.peek() ? null : view;
  }

  toggleDrawer(): void {
    const other = this.view.peek() === "segments" ? "timeline" : "segments";
    this.drawer.value = this.drawer.peek() === null ? other : null;
  }
}
