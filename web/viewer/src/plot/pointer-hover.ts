// The block under the pointer: as drawn at once, and with the worker's answer when it comes.

import { type Signal, signal } from "@preact/signals";
import type { TimelineView, Hit as ViewHit } from "../../wasm/vramscope_view.js";

/** `hit` is stale while it belongs to an earlier point, until the worker has answered. */
export interface Hover<H> {
  x: number;
  y: number;
  block: number;
  hit: H | null;
  stale: boolean;
}

export class PointerHover<H> {
  readonly hover: Signal<Hover<H> | null> = signal(null);
  readonly #view: TimelineView;
  readonly #request: () => void;
  readonly #confirm: (hit: ViewHit) => Promise<H | null>;
  #pointer: { x: number; y: number } | null = null;
  /** Counts queries, so that only the newest answer counts. */
  #picks = 0;
  /** Whether the pointer has moved since the last frame. */
  #moved = false;
  /** The worker's answer, for the next frame. */
  #answer: { hit: H | null; pick: number } | null = null;

  /** `confirm` asks the worker about a drawn strip, `request` requests a frame. */
  constructor(
    view: TimelineView,
    confirm: (hit: ViewHit) => Promise<H | null>,
    request: () => void,
  ) {
    this.#view = view;
    this.#confirm = confirm;
    this.#request = request;
  }

  get pointer(): { x: number; y: number } | null {
    return this.#pointer;
  }

  /** The pointer moved to a point of the canvas. The next frame shows what is there. */
  move(x: number, y: number): void {
    this.#pointer = { x, y };
    this.#moved = true;
  }

  /** Shows moves and answers since the last frame: elements change at most once a frame. */
  frame(drawing: boolean): void {
    const answer = this.#answer;
    this.#answer = null;
    if (this.#moved && this.#pointer) {
      this.#hoverAt(this.#pointer.x, this.#pointer.y, drawing, answer);
    } else if (answer !== null) this.#show(answer);
    this.#moved = false;
  }

  /** The view moved under a resting pointer. */
  viewMoved(drawing: boolean): void {
    if (this.#pointer) this.#hoverAt(this.#pointer.x, this.#pointer.y, drawing);
  }

  /** The pointer left, or drags. */
  clear(): void {
    this.#pointer = null;
    this.#moved = false;
    this.#view.pointerLeft();
    this.#reset();
  }

  #hoverAt(
    x: number,
    y: number,
    drawing: boolean,
    answer: { hit: H | null; pick: number } | null = null,
  ): void {
    const hit = drawing ? this.#view.hit(x, y) : undefined;
    const before = this.hover.peek();
    if (!hit) {
      this.#reset();
      return;
    }
    const { block } = hit;
    this.#view.setHover(block);
    const isAnswered = answer?.pick === this.#picks && before?.block === block;
    this.hover.value = {
      x,
      y,
      block,
      hit: (isAnswered ? answer.hit : before?.hit) ?? null,
      stale: !isAnswered && (before === null || before.stale || before.block !== block),
    };
    void this.#ask(hit);
  }

  #reset(): void {
    this.#picks += 1;
    this.#view.setHover(undefined);
    this.hover.value = null;
  }

  async #ask(at: ViewHit): Promise<void> {
    this.#picks += 1;
    const pick = this.#picks;
    const hit = await this.#confirm(at);
    if (pick !== this.#picks) return;
    this.#answer = { hit, pick };
    this.#request();
  }

  #show({ hit, pick }: { hit: H | null; pick: number }): void {
    const hover = this.hover.peek();
    if (pick !== this.#picks || hover === null) return;
    if (hit === null) this.#reset();
    else this.hover.value = { ...hover, hit, stale: false };
  }
}
