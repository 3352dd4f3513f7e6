// Steps through the trace while a key is held, or until it is stopped.

import { type Signal, signal } from "@preact/signals";

/** Milliseconds per event. */
const STEP_MS = 50;

export class Player {
  readonly playing: Signal<boolean> = signal(false);
  readonly #step: (by: 1 | -1) => void;
  #timer = 0;

  constructor(step: (by: 1 | -1) => void) {
    this.#step = step;
  }

  start(by: 1 | -1): void {
    if (this.#timer !== 0) return;
    this.#timer = window.setInterval(() => this.#step(by), STEP_MS);
    this.playing.value = true;
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = 0;
    this.playing.value = false;
  }
}
