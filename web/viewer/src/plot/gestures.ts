// Pointer and wheel on the plot. All mathematics is the view's: this says where the hand is.

import type { TimelinePlot } from "./timeline-plot.js";

/** A press that moves less than this many pixels is a click. */
const SLOP = 4;

interface Press {
  pointer: number;
  x: number;
  y: number;
  dragging: boolean;
}

export class Gestures {
  readonly #canvas: HTMLCanvasElement;
  readonly #plot: TimelinePlot;
  readonly #select: (x: number, y: number) => void;
  readonly #listening = new AbortController();
  #press: Press | null = null;

  constructor(canvas: HTMLCanvasElement, plot: TimelinePlot, select: (x: number, y: number) => void) {
    this.#canvas = canvas;
    this.#plot = plot;
    this.#select = select;
    const { signal } = this.#listening;
    canvas.addEventListener("wheel", (event) => this.#wheel(event), { signal, passive: false });
    canvas.addEventListener("pointerdown", (event) => this.#down(event), { signal });
    canvas.addEventListener("pointermove", (event) => this.#move(event), { signal });
    canvas.addEventListener("pointerup", (event) => this.#up(event), { signal });
    canvas.addEventListener("pointercancel", () => this.cancel(), { signal });
    canvas.addEventListener("pointerleave", () => this.#plot.clearHover(), { signal });
    canvas.addEventListener("dblclick", () => plot.act((view) => view.fit()), { signal });
  }

  get dragging(): boolean {
    return this.#press?.dragging ?? false;
  }

  /** Lets go of a drag. */
  cancel(): void {
    if (this.#press?.dragging) this.#plot.act((view) => view.endDrag());
    this.#press = null;
    this.#canvas.removeAttribute("data-dragging");
  }

  destroy(): void {
    this.cancel();
    this.#listening.abort();
  }

  #at(event: MouseEvent): { x: number; y: number } {
    const box = this.#canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  #wheel(event: WheelEvent): void {
    event.preventDefault();
    const { x, y } = this.#at(event);
    const { deltaX, deltaY, deltaMode, shiftKey, ctrlKey, metaKey } = event;
    this.#plot.act((view) => view.wheel(x, y, deltaX, deltaY, deltaMode, shiftKey, ctrlKey || metaKey));
  }

  #down(event: PointerEvent): void {
    if (event.button !== 0 || this.#press) return;
    this.#press = { pointer: event.pointerId, ...this.#at(event), dragging: false };
    this.#canvas.setPointerCapture(event.pointerId);
  }

  #move(event: PointerEvent): void {
    const { x, y } = this.#at(event);
    const press = this.#press;
    if (press === null) {
      this.#plot.point(x, y);
      return;
    }
    if (press.pointer !== event.pointerId) return;
    if (!press.dragging) {
      if (Math.hypot(x - press.x, y - press.y) < SLOP) return;
      press.dragging = true;
      this.#plot.clearHover();
      this.#canvas.setAttribute("data-dragging", "");
      this.#plot.act((view) => view.beginDrag(press.x, press.y));
    }
    this.#plot.act((view) => view.drag(x, y));
  }

  #up(event: PointerEvent): void {
    const press = this.#press;
    if (press?.pointer !== event.pointerId) return;
    const { dragging } = press;
    this.cancel();
    const { x, y } = this.#at(event);
    if (!dragging) this.#select(x, y);
    if (event.pointerType === "mouse") this.#plot.point(x, y);
  }
}
