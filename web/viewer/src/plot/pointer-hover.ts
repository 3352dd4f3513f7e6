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
  readonly #confirm: (hit: ViewHit) => Promise<H | null>;
  #pointer: { x: number; y: number } | null = null;
  /** Counts queries, so that only the newest answer counts. */
  #picks = 0;

  /** `confirm` asks the worker about a drawn strip. */
  constructor(view: TimelineView, confirm: (hit: ViewHit) => Promise<H | null>) {
    this.#view = view;
    this.#confirm = confirm;
  }

  get pointer(): { x: number; y: number } | null {
    return this.#pointer;
  }

  /** The pointer moved to a point of the canvas. */
  move(x: number, y: number, drawing: boolean): void {
    this.#pointer = { x, y };
    this.#hoverAt(x, y, drawing);
  }

  /** The view moved under a resting pointer. */
  viewMoved(drawing: boolean): void {
    if (this.#pointer) this.#hoverAt(this.#pointer.x, this.#pointer.y, drawing);
  }

  /** The pointer left, or drags. */
  clear(): void {
    this.#pointer = null;
    this.#view.pointerLeft();
    this.#reset();
  }

  #hoverAt(x: number, y: number, drawing: boolean): void {
    const hit = drawing ? this.#view.hit(x, y) : undefined;
    const before = this.hover.peek();
    if (!hit) {
      this.#reset();
      return;
    }
    const { block } = hit;
    this.#view.setHover(block);
    this.hover.value = { x, y, block, hit: before?.hit ?? null, stale: before?.block !== block };
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
    const hover = this.hover.peek();
    if (pick !== this.#picks || hover === null) return;
    if (hit === null) this.#reset();
    else this.hover.value = { ...hover, hit, stale: false };
  }
}
