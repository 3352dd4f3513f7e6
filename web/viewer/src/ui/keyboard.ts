// Keys to commands. Single letters act only while nothing that takes text has the focus; held keys end on blur.

import { hasSelectedText } from "../host/clipboard.js";
import type { Session } from "../session.js";
import { type Movement, SHORTCUTS, type Shortcut } from "./keymap.js";

/** `Shift+` is part of the name for letters and named keys; a sign such as `?` says it by itself. */
function nameOf(event: KeyboardEvent): string {
  const letter = /^[a-z]$/i.test(event.key);
  const key = letter ? event.key.toLowerCase() : event.key;
  return event.shiftKey && (letter || event.key.length > 1) ? `Shift+${key}` : key;
}

const takesText = (target: EventTarget | undefined) =>
  target instanceof HTMLElement && (target.isContentEditable || target.matches("input, textarea, select"));

const pressesButtons = (target: EventTarget | undefined) =>
  target instanceof HTMLElement && target.matches("button, summary, a, [role=option]");

export class Keyboard {
  readonly #session: Session;
  readonly #byKey: Map<string, Shortcut>;
  /** The movement that each key that is down has begun: Shift may be let go of before the letter is. */
  readonly #held = new Map<string, Movement>();
  readonly #listening = new AbortController();

  constructor(session: Session, target: EventTarget) {
    this.#session = session;
    const all = SHORTCUTS.flatMap(({ shortcuts }) => shortcuts);
    this.#byKey = new Map(all.flatMap((shortcut) => shortcut.keys.map((key) => [key, shortcut])));
    const { signal } = this.#listening;
    target.addEventListener("keydown", (event) => this.#down(event as KeyboardEvent), { signal });
    target.addEventListener("keyup", (event) => this.#up(event as KeyboardEvent), { signal });
    window.addEventListener("blur", () => this.#releaseAll(), { signal });
  }

  destroy(): void {
    this.#listening.abort();
  }

  #down(event: KeyboardEvent): void {
    const target = event.composedPath()[0];
    const session = this.#session;
    if (event.defaultPrevented || takesText(target) || session.sheetOpen.peek()) return;
    if (event.ctrlKey || event.metaKey || event.altKey) {
      const copies = event.key === "c" && target instanceof Node && !hasSelectedText(target.getRootNode());
      if (copies) void session.copySelection();
      return;
    }
    const shortcut = this.#byKey.get(nameOf(event));
    if (!shortcut || (event.key === "Enter" && pressesButtons(target))) return;
    if (session.run.peek() === null && event.key !== "?") return;
    event.preventDefault();
    if (!event.repeat) shortcut.press?.(session, event.key);
    if (shortcut.hold) this.#hold(event.code, shortcut.hold);
  }

  #hold(code: string, movement: Movement): void {
    if (this.#held.has(code)) return;
    this.#held.set(code, movement);
    this.#session.plot.peek()?.act((view) => view.key(movement, true, performance.now()));
  }

  #up(event: KeyboardEvent): void {
    const held = this.#held.get(event.code);
    if (held === undefined) return;
    this.#held.delete(event.code);
    this.#session.plot.peek()?.act((view) => view.key(held, false, performance.now()));
  }

  #releaseAll(): void {
    this.#held.clear();
    this.#session.plot.peek()?.act((view) => view.releaseKeys());
  }
}
