// Steps through the trace for as long as a key is held.

/** Milliseconds an event. */
const STEP_MS = 50;

export class Player {
  readonly #step: (by: 1 | -1) => void;
  #playing = 0;

  constructor(step: (by: 1 | -1) => void) {
    this.#step = step;
  }

  start(by: 1 | -1): void {
    if (this.#playing !== 0) return;
    this.#playing = window.setInterval(() => this.#step(by), STEP_MS);
  }

  stop(): void {
    clearInterval(this.#playing);
    this.#playing = 0;
  }
}
