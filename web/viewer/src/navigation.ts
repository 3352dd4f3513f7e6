// Which views, panels and dialogs are open.

import { type Signal, signal } from "@preact/signals";
import type { Status } from "./status.js";

/** All views: those with a number key in the order of the keys, then the tables. */
export const VIEWS = [
  "overview",
  "timeline",
  "segments",
  "flame",
  "anomalies",
  "compare",
  "blocks",
  "events",
  "what-if",
  "settings",
] as const;
export type View = (typeof VIEWS)[number];

export const VIEW_TITLES: Record<View, string> = {
  overview: "Overview",
  timeline: "Timeline",
  segments: "Segments",
  flame: "Flame",
  anomalies: "Anomalies",
  compare: "Compare",
  blocks: "Blocks",
  events: "Events",
  "what-if": "What if",
  settings: "Settings",
};

export class Navigation {
  /** The view in the center. */
  readonly view: Signal<View> = signal("timeline");
  /** The view in the drawer below the center; null when the drawer is closed. */
  readonly drawer: Signal<View | null> = signal("segments");
  /** The drawers of views that were in the center before. */
  readonly #drawers = new Map<View, View | null>();
  /** The drawer's share of the center's height. */
  readonly drawerShare: Signal<number> = signal(0.32);
  readonly detailsOpen: Signal<boolean> = signal(true);
  /** Whether the sheet of keys and gestures is open. */
  readonly sheetOpen: Signal<boolean> = signal(false);
  readonly paletteOpen: Signal<boolean> = signal(false);
  /** Whether the gestures are named over the timeline, for new users. */
  readonly hint: Signal<boolean> = signal(false);
  readonly #status: Status;

  constructor(status: Status) {
    this.#status = status;
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
    const first = view === "timeline" ? "segments" : null;
    this.drawer.value = known === undefined ? first : known;
  }

  openDrawer(view: View | null): void {
    this.drawer.value = view === this.view.peek() ? null : view;
  }

  toggleDrawer(): void {
    const other = this.view.peek() === "segments" ? "timeline" : "segments";
    this.drawer.value = this.drawer.peek() === null ? other : null;
  }
}
