// The buttons of annotated ranges and of phases, made without Preact. Moving to the next stretch
// makes only the new buttons: rendering hundreds of components would take longer than a frame.

/** An item of a lane, between two slots. */
export interface LaneItem {
  lane: number;
  x0: number;
  x1: number;
  /** The accessible name. */
  text: string;
}

/** The items of a stretch of the axis. */
export interface Laid<I extends LaneItem> {
  x0: number;
  x1: number;
  columns: number;
  items: readonly I[];
}

/** How the items of a kind look. */
export interface Dress<I extends LaneItem> {
  /** Sets what depends on the item beside its place: attributes and properties of its button. */
  button(button: HTMLButtonElement, item: I): void;
  /** The text in an item that is wide enough. */
  name(name: HTMLSpanElement, item: I): void;
}

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
interface Placed<I> {
  item: I;
  button: HTMLButtonElement;
  name: HTMLSpanElement | null;
  left: number;
  width: number;
}

function groundOf({ x0, x1, columns }: Laid<LaneItem>): Ground {
  const width = ((x1 - x0) / columns) * 2 ** 14;
  return { x0: Math.floor(x0 / width) * width, width };
}

export class TrackItems<I extends LaneItem> {
  readonly box: HTMLElement;
  ground: Ground = { x0: 0, width: 1 };
  /** In document order. */
  #placed = new Map<string, Placed<I>>();
  #entry: HTMLButtonElement | null = null;
  readonly #dress: Dress<I>;
  readonly #blank = document.createElement("button");

  constructor(box: HTMLElement, dress: Dress<I>) {
    this.box = box;
    this.#dress = dress;
    Object.assign(this.#blank, { type: "button", className: "track", tabIndex: -1 });
  }

  /** Lays out a stretch. Unchanged items of the stretch before are not touched. */
  lay(laid: Laid<I>): void {
    this.ground = groundOf(laid);
    const items = new Map<string, I>();
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
      this.#set(one, item, laid);
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

  #make(item: I): Placed<I> {
    const button = this.#blank.cloneNode() as HTMLButtonElement;
    button.ariaLabel = item.text;
    return { item, button, name: null, left: 0, width: -1 };
  }

  #set(one: Placed<I>, item: I, laid: Laid<I>): void {
    const { button } = one;
    const from = Math.max(laid.x0, item.x0);
    const left = (from - this.ground.x0) / this.ground.width;
    const width = Math.max(0, Math.min(laid.x1, item.x1) - from) / this.ground.width;
    if (one.left !== left || one.width !== width) {
      Object.assign(button.style, { left: `${left * 100}%`, width: `${width * 100}%` });
      button.style.top = `${item.lane * LANE}px`;
      Object.assign(one, { left, width });
    }
    // A merged item may contain more ranges by now.
    this.#dress.button(button, item);
    const isNamed = item.x1 - item.x0 >= ((laid.x1 - laid.x0) / laid.columns) * MIN_NAMED_COLUMNS;
    if (isNamed !== (one.name !== null)) {
      one.name?.remove();
      one.name = isNamed ? button.appendChild(document.createElement("span")) : null;
      if (one.name) this.#dress.name(one.name, item);
    }
    one.item = item;
  }

  /** The item of an element or its ancestor. */
  itemOf(target: EventTarget | null): I | undefined {
    const button = target instanceof Element ? target.closest(".track") : null;
    for (const one of this.#placed.values()) if (one.button === button) return one.item;
    return undefined;
  }

  /** The button of the first item that matches. */
  find(is: (item: I) => boolean): HTMLButtonElement | undefined {
    for (const { item, button } of this.#placed.values()) if (is(item)) return button;
    return undefined;
  }

  /** Items with a name. */
  *named(): Iterable<{ left: number; width: number; name: HTMLSpanElement }> {
    for (const { left, width, name } of this.#placed.values())
      if (name) yield { left, width, name };
  }
}
