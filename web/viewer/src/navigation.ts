// Which place, sheet, tracks and dialogs are open.

import { computed, type Signal, signal } from "@preact/signals";
import {
  FIRST_TRACKS,
  type PlaceId,
  placeOf,
  SHEETS,
  type SheetView,
  type Track,
  titleOf,
  type View,
  viewsOf,
} from "./places/index.js";
import type { Status } from "./status.js";

export class Navigation {
  /** The view that is shown. */
  readonly view: Signal<View> = signal("timeline");
  /** Its place. */
  readonly place = computed(() => placeOf(this.view.value));
  /** The view that each place showed last. */
  readonly #last = new Map<PlaceId, View>();
  /** Whether the page around the element chose the view. */
  viewGiven = false;
  /** What the sheet below the timeline lists; null while it is closed. */
  readonly sheet: Signal<SheetView | null> = signal(null);
  /** What the sheet listed last. */
  #lastSheet: SheetView = "blocks";
  /** What the sheet lists, while it is in sight. */
  readonly shownSheet = computed(() => (this.place.value === "timeline" ? this.sheet.value : null));
  /** The sheet's share of the height. */
  readonly sheetShare: Signal<number> = signal(0.38);
  /** The tracks below the timeline that are unfolded. */
  readonly tracks: Signal<readonly Track[]> = signal(FIRST_TRACKS);
  /** Whether the first place of the opened run is decided. */
  readonly settled: Signal<boolean> = signal(true);
  /** Whether the sheet of keys and gestures is open. */
  readonly helpOpen: Signal<boolean> = signal(false);
  readonly paletteOpen: Signal<boolean> = signal(false);
  /** Whether the dialog that saves a report is open. */
  readonly reportOpen: Signal<boolean> = signal(false);
  /** Whether the gestures are named over the timeline, for new users. */
  readonly hint: Signal<boolean> = signal(false);
  readonly #status: Status;

  constructor(status: Status) {
    this.#status = status;
  }

  /** Opens a view, and says so. */
  open(view: View): void {
    // What the user chooses before the first place is decided stays.
    this.settled.value = true;
    this.show(view);
    this.#status.announce(titleOf(view));
  }

  /** Opens a place with the view that it showed last. */
  openPlace(place: PlaceId): void {
    const [first] = viewsOf(place)[0] ?? [];
    const view = this.#last.get(place) ?? first;
    if (view) this.open(view);
  }

  show(view: View): void {
    this.view.value = view;
    this.#last.set(placeOf(view), view);
  }

  /** Opens the sheet below the timeline, or closes it. */
  openSheet(sheet: SheetView | null): void {
    if (sheet !== null) {
      this.#lastSheet = sheet;
      this.show("timeline");
      this.#status.announce(SHEETS[sheet]);
    }
    this.sheet.value = sheet;
  }

  toggleTrack(track: Track): void {
    const open = this.tracks.peek();
    this.tracks.value = open.includes(track)
      ? open.filter((one) => one !== track)
      : [...open, track];
  }

  toggleSheet(): void {
    this.openSheet(this.shownSheet.peek() === null ? this.#lastSheet : null);
  }
}
