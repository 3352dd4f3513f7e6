// The buttons of annotated ranges, made without Preact. Moving to the next stretch makes only the
// new buttons: rendering hundreds of components would take longer than a frame.

import type { Tracks as Annotations, TrackItem } from "../generated/protocol.js";

/** Height of a lane in CSS pixels. */
export const LANE = 15;
/** Narrower items show no name, in columns. */
const MIN_NAMED_COLUMNS = 4;

/**
 * The box in which items are placed. It is far wider than a stretch, so that items of the next
 * stretch keep their places.
 */
interface Ground {
  x0: number;
  width: number;
}

/** An item with its left edge and width as fractions of the ground. */
interface Placed {
  item: TrackItem;
  button: HTMLButtonElement;
  name: HTMLSpanElement | null;
  left: number;
  width: number;
  hue: string | undefined;
}

function groundOf({ x0, x1, columns }: Annotations): Ground {
  const width = ((x1 - x0) / columns) * 2 ** 14;
  return { x0: Math.floor(x0 / width) * width, width };
}

export class TrackItems {
  readonly box: HTMLElement;
  ground: Ground = { x0: 0, width: 1 };
  /** In document order. */
  #placed = new Map<string, Placed>();
  #entry: HTMLButtonElement | null = null;
  readonly #blank = document.createElement("button");

  constructor(box: HTMLElement) {
    this.box = box;
    Object.assign(this.#blank, { type: "button", className: "track", tabIndex: -1 });
  }

  /** Lays out a stretch. Unchanged items of the stretch before are not touched. */
  lay(laid: Annotations, hueOf: (color: number) => string | undefined): void {
    this.ground = groundOf(laid);
    const items = new Map<string, TrackItem>();
    for (const item of laid.items) {
      let key = `${item.lane} ${item.x0} ${item.text}`;
      while (items.has(key)) key += " ";
      items.set(key, item);
    }
    const before = this.#placed;
    for (const [key, { button }] of before) if (!items.has(key)) button.remove();
    this.#placed = new Map();
    let next = this.box.firstElementChild;
    for (const [key, item] of items) {
      const one = before.get(key) ?? this.#make(item);
      this.#set(one, item, laid, hueOf(item.color));
      if (one.button === next) next = next.nextElementSibling;
      else this.box.insertBefore(one.button, next);
      this.#placed.set(key, one);
    }
    this.#enter();
  }

  /** Makes the first item the stop of the Tab key. */
  #enter(): void {
    const first = this.box.firstElementChild;
    if (first === this.#entry) return;
    if (this.#entry) this.#entry.tabIndex = -1;
    this.#entry = first instanceof HTMLButtonElement ? first : null;
    if (this.#entry) this.#entry.tabIndex = 0;
  }

  #make(item: TrackItem): Placed {
    const button = this.#blank.cloneNode() as HTMLButtonElement;
    button.ariaLabel = item.text;
    button.title = item.title;
    return { item, button, name: null, left: 0, width: -1, hue: undefined };
  }

  #set(one: Placed, item: TrackItem, laid: Annotations, hue: string | undefined): void {
    const { button } = one;
    const from = Math.max(laid.x0, item.x0);
    const left = (from - this.ground.x0) / this.ground.width;
    const width = Math.max(0, Math.min(laid.x1, item.x1) - from) / this.ground.width;
    if (one.left !== left || one.width !== width || one.hue !== hue) {
      const place = `left: ${left * 100}%; width: ${width * 100}%; top: ${item.lane * LANE}px`;
      button.style.cssText = `${place}; --hue: ${hue ?? ""}`;
      Object.assign(one, { left, width, hue });
    }
    // A merged item may contain more ranges by now.
    if (one.item.title !== item.title) button.title = item.title;
    const isNamed = item.x1 - item.x0 >= ((laid.x1 - laid.x0) / laid.columns) * MIN_NAMED_COLUMNS;
    if (isNamed !== (one.name !== null)) {
      one.name?.remove();
      one.name = isNamed ? button.appendChild(document.createElement("span")) : null;
      if (one.name) one.name.textContent = item.text;
    }
    one.item = item;
  }

  /** The item of an element or its ancestor. */
  itemOf(target: EventTarget | null): TrackItem | undefined {
    const button = target instanceof Element ? target.closest(".track") : null;
    for (const one of this.#placed.values()) if (one.button === button) return one.item;
    return undefined;
  }

  /** The button of the first item that matches. */
  find(is: (item: TrackItem) => boolean): HTMLButtonElement | undefined {
    for (const { item, button } of this.#placed.values()) if (is(item)) return button;
    return undefined;
  }

  /** Items with a name. */
  *named(): Iterable<{ left: number; width: number; name: HTMLSpanElement }> {
    for (const { left, width, name } of this.#placed.values())
      if (name) yield { left, width, name };
  }
}
