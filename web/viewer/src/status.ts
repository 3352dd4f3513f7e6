// Messages that belong to no row, and announcements for screen readers.

import { type Signal, signal } from "@preact/signals";
import type { Failure } from "./generated/protocol.js";

export class Status {
  /** The failure above the content, until it is dismissed. */
  readonly notice: Signal<Failure | null> = signal(null);
  /** Why the views could not be loaded. */
  readonly viewsFailure: Signal<Failure | null> = signal(null);
  /** The text of the live region that screen readers read out. */
  readonly spoken: Signal<string> = signal("");
  readonly #failed: (failure: Failure) => void;

  /** `failed` is called for every failure that belongs to no file. */
  constructor(failed: (failure: Failure) => void) {
    this.#failed = failed;
  }

  announce(text: string): void {
    this.spoken.value = text;
  }

  report(failure: Failure): void {
    this.notice.value = failure;
    this.#failed(failure);
  }

  /** Reports that the code of the views could not be loaded. */
  viewsFailed(failure: Failure): void {
    this.viewsFailure.value = failure;
    this.#failed(failure);
  }
}
