// Back and forward through what was looked at: a view that stays for a moment is remembered.

import { effect } from "@preact/signals";
import type { Session } from "../session.js";
import type { ViewState } from "../view-state.js";

const REST_MS = 500;
const MOST = 100;

export class ViewHistory {
  readonly #session: Session;
  readonly #stop: () => void;
  #states: ViewState[] = [];
  #at = -1;
  #waiting = 0;
  #going = false;

  constructor(session: Session) {
    this.#session = session;
    this.#stop = effect(() => {
      const state = session.address.place();
      clearTimeout(this.#waiting);
      this.#waiting = window.setTimeout(() => this.#remember(state), REST_MS);
    });
  }

  go(by: 1 | -1): void {
    // What is on screen right now counts, even if it has not rested yet.
    clearTimeout(this.#waiting);
    this.#remember(this.#session.address.place());
    const state = this.#states[this.#at + by];
    if (!state) return;
    this.#at += by;
    this.#going = true;
    this.#session.address.back(state);
  }

  destroy(): void {
    clearTimeout(this.#waiting);
    this.#stop();
  }

  #remember(state: ViewState): void {
    const same = JSON.stringify(state) === JSON.stringify(this.#states[this.#at]);
    if (state.path === undefined || same) return;
    if (this.#going) {
      // Where a step has led is the state that was remembered, give or take what has been rounded.
      this.#going = false;
      this.#states[this.#at] = state;
      return;
    }
    this.#states = [...this.#states.slice(0, this.#at + 1), state].slice(-MOST);
    this.#at = this.#states.length - 1;
  }
}
