// The card of a segment. What it says is of one moment, so it goes along with the time cursor.

import { effect, signal, untracked } from "@preact/signals";
import type { DetailCard } from "../generated/protocol.js";
import type { Session } from "../session.js";
import { endAll, resource } from "./resource.js";

/** Beyond every trace: the state at its end. */
export const LAST = Number.MAX_SAFE_INTEGER;

export class SegmentCard {
  readonly #chosen = signal<number | null>(null);
  readonly #stop: readonly (() => void)[];
  /** What was put into the details last; null while what was chosen has not come. */
  #shown: DetailCard | null = null;

  /** `first` takes the card of a segment that was just chosen. */
  constructor(session: Session, first: (card: DetailCard) => void) {
    const card = resource(session, "detail", () => {
      const segment = this.#chosen.value;
      return segment === null
        ? null
        : { segment: { segment, event: session.linked.cursor.value ?? LAST } };
    });
    this.#stop = [
      () => card.stop(),
      effect(() => {
        const next = card.value.value;
        if (next === null || next === this.#shown) return;
        const isFirst = this.#shown === null;
        this.#shown = next;
        untracked(() => {
          if (isFirst) first(next);
          else session.subject.value = next;
        });
      }),
      // Something else in the details, or nothing: the cursor must not bring the segment back.
      effect(() => {
        if (session.subject.value !== this.#shown && this.#shown !== null)
          this.#chosen.value = null;
      }),
    ];
  }

  show(segment: number): void {
    // The same one again is asked again, too.
    this.#chosen.value = null;
    this.#shown = null;
    this.#chosen.value = segment;
  }

  destroy(): void {
    endAll(this.#stop);
  }
}
