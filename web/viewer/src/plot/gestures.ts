// Pointer and wheel gestures on a plot. The Rust view does all mathematics.

import type { CanvasPlot, GestureOptions, PlotEvents } from "./canvas-plot.js";

/** A press that moves less than this many pixels is a click. */
const SLOP = 4;
/** Pixels per line of a wheel that counts lines or pages. */
const LINE = 16;

/** What a drag does: it pans, zooms to a box, or marks a range or a ruler. */
export type DragMode = "pan" | "box" | "range" | "ruler-x" | "ruler-y";

/** A box, range or ruler while it is dragged, in CSS pixels of the canvas. */
export interface Draft {
  mode: DragMode;
  left: number;
  top: number;
  right: number;
  bottom: number;
  /** The distance, for a ruler. */
  text: string;
}

/** A finished drag, in data coordinates. */
export interface Marked {
  mode: DragMode;
  from: { x: number; y: number };
  to: { x: number; y: number };
  draft: Draft;
}

interface Press {
  pointer: number;
  button: number;
  x: number;
  y: number;
  mode: DragMode | null;
}

/** The middle of two fingers and their distance, in CSS pixels along x. */
interface Pinch {
  x: number;
  apart: number;
}

/** Two fingers nearer than this count as this far apart: the zoom stays finite. */
const LEAST_APART = 24;

/** What zooms and pans, for the device's main pointer. */
export const zoomHint = (): { zoom: string; pan: string } =>
  matchMedia("(pointer: coarse)").matches
    ? { zoom: "Pinch", pan: "drag sideways" }
    : { zoom: "Wheel", pan: "drag" };

export class Gestures {
  readonly #canvas: HTMLCanvasElement;
  readonly #plot: CanvasPlot<unknown>;
  readonly #events: PlotEvents;
  readonly #options: GestureOptions;
  readonly #listening = new AbortController();
  #press: Press | null = null;
  /** Fingers on the plot, by pointer: their places along x. */
  readonly #fingers = new Map<number, number>();
  #pinch: Pinch | null = null;
  #space = false;

  constructor(
    canvas: HTMLCanvasElement,
    plot: CanvasPlot<unknown>,
    events: PlotEvents,
    options: GestureOptions,
  ) {
    this.#canvas = canvas;
    this.#plot = plot;
    this.#events = events;
    this.#options = options;
    const { signal } = this.#listening;
    // A swipe up or down scrolls the page, unless it is of two fingers.
    canvas.style.touchAction = "pan-y";
    const held = (event: TouchEvent) => {
      if (event.touches.length > 1) event.preventDefault();
    };
    for (const name of ["touchstart", "touchmove"] as const)
      canvas.addEventListener(name, held, { signal, passive: false });
    canvas.addEventListener("wheel", (event) => this.#wheel(event), { signal, passive: false });
    canvas.addEventListener("pointerdown", (event) => this.#down(event), { signal });
    canvas.addEventListener("pointermove", (event) => this.#move(event), { signal });
    canvas.addEventListener("pointerup", (event) => this.#up(event), { signal });
    canvas.addEventListener("pointercancel", (event) => this.#lost(event), { signal });
    canvas.addEventListener("pointerleave", () => plot.clearHover(), { signal });
    canvas.addEventListener("dblclick", (event) => this.#doubled(event), { signal });
    const space = (down: boolean) => (event: KeyboardEvent) => {
      if (event.key === " ") this.#space = down;
    };
    canvas.addEventListener("keydown", space(true), { signal });
    canvas.addEventListener("keyup", space(false), { signal });
    canvas.addEventListener("blur", () => (this.#space = false), { signal });
  }

  get dragging(): boolean {
    return this.#pinch !== null || (this.#press !== null && this.#press.mode !== null);
  }

  /** Cancels a drag. */
  cancel(): void {
    if (this.#press?.mode === "pan") this.#plot.act((view) => view.endDrag());
    this.#press = null;
    this.#plot.draft.value = null;
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
    const zooms = ctrlKey || metaKey;
    if (this.#options.wheelScrolls() && !zooms && !shiftKey) {
      const scale = deltaMode === 0 ? 1 : LINE;
      this.#plot.act((view) => {
        view.beginDrag(x, y);
        view.drag(x - deltaX * scale, y - deltaY * scale);
        view.endDrag();
      });
      return;
    }
    this.#plot.act((view) => view.wheel(x, y, deltaX, deltaY, deltaMode, shiftKey, zooms));
  }

  #mode(event: PointerEvent, button: number): DragMode {
    if (button === 1) return "pan";
    const ruling = this.#options.ruling();
    if (ruling !== null) return ruling === "x" ? "ruler-x" : "ruler-y";
    if (event.altKey) return "range";
    if (event.shiftKey) return "box";
    return this.#options.dragZooms() && !this.#space ? "box" : "pan";
  }

  #down(event: PointerEvent): void {
    if (event.pointerType === "touch") {
      this.#fingers.set(event.pointerId, this.#at(event).x);
      if (this.#fingers.size > 1) {
        this.cancel();
        this.#pinch = this.#pinched();
        return;
      }
    }
    if (event.button > 1 || this.#press) return;
    if (event.button === 1) event.preventDefault();
    this.#press = {
      pointer: event.pointerId,
      button: event.button,
      ...this.#at(event),
      mode: null,
    };
    this.#canvas.setPointerCapture(event.pointerId);
  }

  /** Where the first two fingers are; null with less. */
  #pinched(): Pinch | null {
    const [a, b] = [...this.#fingers.values()];
    if (a === undefined || b === undefined) return null;
    return { x: (a + b) / 2, apart: Math.max(LEAST_APART, Math.abs(a - b)) };
  }

  /** A finger left the plot. What is left of a pinch neither pans nor clicks. */
  #left(event: PointerEvent): boolean {
    this.#fingers.delete(event.pointerId);
    const wasPinch = this.#pinch !== null;
    if (this.#fingers.size < 2) this.#pinch = null;
    return wasPinch;
  }

  #lost(event: PointerEvent): void {
    this.#left(event);
    this.cancel();
  }

  #move(event: PointerEvent): void {
    const { x, y } = this.#at(event);
    const pinch = this.#pinch;
    if (pinch !== null && this.#fingers.has(event.pointerId)) {
      this.#fingers.set(event.pointerId, x);
      const next = this.#pinched();
      if (next === null) return;
      this.#pinch = next;
      const by = next.x - pinch.x;
      this.#plot.act((view) => view.pinch(next.x, next.apart / pinch.apart, by));
      return;
    }
    const press = this.#press;
    if (press === null) {
      this.#plot.point(x, y);
      return;
    }
    if (press.pointer !== event.pointerId) return;
    if (press.mode === null) {
      if (Math.hypot(x - press.x, y - press.y) < SLOP) return;
      press.mode = this.#mode(event, press.button);
      this.#plot.clearHover();
      this.#canvas.setAttribute("data-dragging", press.mode);
      if (press.mode === "pan") this.#plot.act((view) => view.beginDrag(press.x, press.y));
    }
    if (press.mode === "pan") this.#plot.act((view) => view.drag(x, y));
    else this.#plot.draft.value = this.#draft(press.mode, press, { x, y });
  }

  #draft(mode: DragMode, from: { x: number; y: number }, to: { x: number; y: number }): Draft {
    const [left, right] = from.x < to.x ? [from.x, to.x] : [to.x, from.x];
    const [top, bottom] = from.y < to.y ? [from.y, to.y] : [to.y, from.y];
    const text = mode.startsWith("ruler")
      ? this.#plot.measure(mode === "ruler-x" ? "x" : "y", from, to)
      : "";
    return { mode, left, top, right, bottom, text };
  }

  #up(event: PointerEvent): void {
    if (this.#left(event)) return;
    const press = this.#press;
    if (press?.pointer !== event.pointerId) return;
    const { mode, button } = press;
    const { x, y } = this.#at(event);
    if (mode !== null && mode !== "pan") {
      const draft = this.#draft(mode, press, { x, y });
      const [from, to] = [this.#plot.placeAt(press.x, press.y), this.#plot.placeAt(x, y)];
      if (mode === "box")
        this.#plot.act((view) => view.zoomBox(draft.left, draft.top, draft.right, draft.bottom));
      else this.#events.marked({ mode, from, to, draft });
    }
    this.cancel();
    if (mode === null && button === 0) this.#events.click(x, y, event);
    if (event.pointerType === "mouse") this.#plot.point(x, y);
  }

  #doubled(event: MouseEvent): void {
    const { x, y } = this.#at(event);
    this.#events.doubleClick(x, y);
  }
}
