// Undo and redo of moves through the view. A view that rests for a moment is remembered.

import { effect } from "@preact/signals";
import type { Address } from "../address.js";
import type { ViewState } from "../view-state.js";

/** A view that does not change for this time is remembered. */
export const REST_MS = 500;
const MAX_STATES = 100;

export class ViewHistory {
  readonly #address: Address;
  readonly #stop: () => void;
  #states: ViewState[] = [];
  #at = -1;
  #timer = 0;
  /** True after `go`, until the restored view rests. */
  #going = false;

  constructor(address: Address) {
    this.#address = address;
    this.#stop = effect(() => {
      const state = address.place();
      clearTimeout(this.#timer);
      this.#timer = window.setTimeout(() => this.#remember(state), REST_MS);
    });
  }

  /** Goes one state back or forward. */
  go(by: 1 | -1): void {
    // The current view counts even if it has not rested yet.
    clearTimeout(this.#timer);
    this.#remember(this.#address.place());
    const state = this.#states[this.#at + by];
    if (!state) return;
    this.#at += by;
    this.#going = true;
    this.#address.restore(state);
  }

  destroy(): void {
    clearTimeout(this.#timer);
    this.#stop();
  }

  #remember(state: ViewState): void {
    if (state.path === undefined) return;
    const isRestored = this.#going;
    this.#going = false;
    if (JSON.stringify(state) === JSON.stringify(this.#states[this.#at])) return;
    if (isRestored) {
      // A restored view differs from the remembered state by rounding only.
      this.#states[this.#at] = state;
      return;
    }
    this.#states = [...this.#states.slice(0, this.#at + 1), state].slice(-MAX_STATES);
    this.#at = this.#states.length - 1;
  }
}
