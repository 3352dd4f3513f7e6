// Notices a worker that has gone silent. A browser reports a crash as an error, but not every end
// of a worker is one. While a worker has work, it is asked for a sign of life. A worker that is
// given something new is asked before, because it may have ended while it was idle: it answers that
// question before the work, however long the work takes.

/** The time between two questions. */
export const ASK_MS = 5000;
/** Questions without an answer, after which the worker is given up: a minute. */
export const MAX_UNANSWERED = 12;
/** The time between two questions to a worker that is given something new. */
export const NEW_ASK_MS = 1000;
/**
 * Such questions without an answer, after which the worker is given up. With one, answers that wait
 * behind a long task of the page would count as missing.
 */
const MAX_NEW_UNANSWERED = 2;

export interface WatchedWorker {
  /** Asks for a sign of life. The worker answers between two steps of its work. */
  ask(): void;
  /**
   * The worker has not answered for a minute, or not at all since it was given something new: then
   * it is `unused`. Called once.
   */
  silent(unused: boolean): void;
}

export class Watchdog {
  readonly #worker: WatchedWorker;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #unanswered = 0;
  #newTimer: ReturnType<typeof setTimeout> | null = null;
  /** Nothing counts before the first sign of life: the worker's script may still be on its way. */
  #isStarted = false;
  /** Whether the worker was given work after its last answer. */
  #hasWork = false;

  constructor(worker: WatchedWorker) {
    this.#worker = worker;
  }

  /**
   * The worker is about to be given work, which is `isNew` if it needs nothing of the work before.
   * `isFree`: the worker is known to have finished that.
   */
  given(isNew: boolean, isFree = false): void {
    const isIdle = isFree || !this.#hasWork;
    this.#hasWork = true;
    this.#timer ??= setTimeout(() => this.#check(), ASK_MS);
    // A busy worker answers when it has time.
    if (isNew && isIdle && this.#isStarted && this.#newTimer === null) this.#askNew(0);
  }

  /** The worker sent a message. `idle` says whether it has nothing left to do. */
  heard(idle: boolean): void {
    this.#isStarted = true;
    this.#unanswered = 0;
    this.#stopNew();
    if (idle) this.#hasWork = false;
  }

  end(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#hasWork = false;
    this.#stopNew();
  }

  #stopNew(): void {
    if (this.#newTimer !== null) clearTimeout(this.#newTimer);
    this.#newTimer = null;
  }

  #askNew(unanswered: number): void {
    if (unanswered === MAX_NEW_UNANSWERED) {
      this.end();
      this.#worker.silent(true);
      return;
    }
    this.#worker.ask();
    this.#newTimer = setTimeout(() => this.#askNew(unanswered + 1), NEW_ASK_MS);
  }

  #check(): void {
    this.#timer = null;
    if (!this.#hasWork) return;
    if (this.#isStarted) this.#unanswered += 1;
    if (this.#unanswered > MAX_UNANSWERED) {
      this.end();
      this.#worker.silent(false);
      return;
    }
    this.#worker.ask();
    this.#timer = setTimeout(() => this.#check(), ASK_MS);
  }
}
