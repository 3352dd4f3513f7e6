// Notices a worker that has gone silent. A browser reports a crash as an error, but not every end
// of a worker is one. While a worker has work, it is asked for a sign of life.

/** The time between two questions. */
export const ASK_MS = 5000;
/** Questions without an answer, after which the worker is given up: a minute. */
export const MAX_UNANSWERED = 12;

export interface WatchedWorker {
  /** Asks for a sign of life. The worker answers between two steps of its work. */
  ask(): void;
  /** The worker has not answered for a minute. Called once. */
  silent(): void;
}

export class Watchdog {
  readonly #worker: WatchedWorker;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #unanswered = 0;
  /** Nothing counts before the first sign of life: the worker's script may still be on its way. */
  #isStarted = false;
  /** Whether the worker was given work after its last answer. */
  #hasWork = false;

  constructor(worker: WatchedWorker) {
    this.#worker = worker;
  }

  /** The worker was given work. */
  given(): void {
    this.#hasWork = true;
    this.#timer ??= setTimeout(() => this.#check(), ASK_MS);
  }

  /** The worker sent a message. `idle` says whether it has nothing left to do. */
  heard(idle: boolean): void {
    this.#isStarted = true;
    this.#unanswered = 0;
    if (idle) this.#hasWork = false;
  }

  end(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#hasWork = false;
  }

  #check(): void {
    this.#timer = null;
    if (!this.#hasWork) return;
    if (this.#isStarted) this.#unanswered += 1;
    if (this.#unanswered > MAX_UNANSWERED) {
      this.end();
      this.#worker.silent();
      return;
    }
    this.#worker.ask();
    this.#timer = setTimeout(() => this.#check(), ASK_MS);
  }
}
