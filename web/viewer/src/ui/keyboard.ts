// Keys to commands. Single letters act only while nothing that takes text has the focus; held keys
// end on blur.

import { hasSelectedText } from "../host/clipboard.js";
import type { Session } from "../session.js";
import { type Movement, SHORTCUTS, type Shortcut, type ShortcutGroup } from "./keymap.js";

/**
 * `Shift+` is part of the name for letters and named keys; a sign such as `?` says it by itself.
 */
function nameOf(event: KeyboardEvent): string {
  const letter = /^[a-z]$/i.test(event.key);
  const key = letter ? event.key.toLowerCase() : event.key;
  return event.shiftKey && (letter || event.key.length > 1) ? `Shift+${key}` : key;
}

const takesText = (target: EventTarget | undefined) =>
  target instanceof HTMLElement &&
  (target.isContentEditable || target.matches("input, textarea, select"));

const pressesButtons = (target: EventTarget | undefined) =>
  target instanceof HTMLElement && target.matches("button, summary, a, [role=option]");

const byKey = (groups: ShortcutGroup[]) =>
  new Map(
    groups
      .flatMap(({ shortcuts }) => shortcuts)
      .flatMap((shortcut) => shortcut.keys.map((key) => [key, shortcut])),
  );

export class Keyboard {
  readonly #stop: () => void;
  readonly #session: Session;
  #byKey: Map<string, Shortcut>;
  /** What is to be done when a key goes up. */
  readonly #releases = new Map<string, (session: Session) => void>();
  /**
   * The movement that each key that is down has begun: Shift may be let go of before the letter is.
   */
  readonly #held = new Map<string, Movement>();
  readonly #listening = new AbortController();

  constructor(session: Session, target: EventTarget) {
    this.#session = session;
    this.#byKey = byKey(SHORTCUTS);
    const { signal } = this.#listening;
    // The keys of the views come with them.
    this.#stop = session.workspace.subscribe((workspace) => {
      if (workspace) this.#byKey = byKey([...SHORTCUTS, ...workspace.shortcuts]);
    });
    target.addEventListener("keydown", (event) => this.#down(event as KeyboardEvent), { signal });
    target.addEventListener("keyup", (event) => this.#up(event as KeyboardEvent), { signal });
    window.addEventListener("blur", () => this.#releaseAll(), { signal });
  }

  destroy(): void {
    this.#stop();
    this.#releaseAll();
    this.#listening.abort();
  }

  #down(event: KeyboardEvent): void {
    const target = event.composedPath()[0];
    const session = this.#session;
    if (event.defaultPrevented || this.#isCovered()) return;
    if (event.ctrlKey || event.metaKey) {
      this.#chord(event, target);
      return;
    }
    if (takesText(target) || event.altKey) return;
    const shortcut = this.#byKey.get(nameOf(event));
    if (!shortcut || (event.key === "Enter" && pressesButtons(target))) return;
    if (session.run.peek() === null && event.key !== "?") return;
    event.preventDefault();
    this.#press(event, shortcut);
  }

  #press(event: KeyboardEvent, shortcut: Shortcut): void {
    if (event.repeat) shortcut.repeat?.(this.#session);
    else shortcut.press?.(this.#session, event.key);
    if (shortcut.release) this.#releases.set(event.code, shortcut.release);
    if (shortcut.hold) this.#hold(event.code, shortcut.hold);
  }

  /** A dialog has the keys. */
  #isCovered(): boolean {
    const views = this.#session.workspace.peek();
    return views !== null && (this.#session.sheetOpen.peek() || views.paletteOpen.peek());
  }

  /**
   * Ctrl or Cmd with a letter. What the browser does with it by itself is kept from it only where
   * there is a shortcut.
   */
  #chord(event: KeyboardEvent, target: EventTarget | undefined): void {
    const shortcut = this.#byKey.get(
      `Ctrl+${event.shiftKey ? "Shift+" : ""}${event.key.toLowerCase()}`,
    );
    if (!shortcut || (this.#session.run.peek() === null && event.key !== "o")) return;
    if (event.key === "c") {
      // Text that is selected is copied by the browser.
      const text =
        takesText(target) || !(target instanceof Node) || hasSelectedText(target.getRootNode());
      if (!text) shortcut.press?.(this.#session, event.key);
      return;
    }
    event.preventDefault();
    shortcut.press?.(this.#session, event.key);
  }

  #hold(code: string, movement: Movement): void {
    if (this.#held.has(code)) return;
    this.#held.set(code, movement);
    this.#session.plot.peek()?.act((view) => view.key(movement, true, performance.now()));
  }

  #up(event: KeyboardEvent): void {
    this.#releases.get(event.code)?.(this.#session);
    this.#releases.delete(event.code);
    const held = this.#held.get(event.code);
    if (held === undefined) return;
    this.#held.delete(event.code);
    this.#session.plot.peek()?.act((view) => view.key(held, false, performance.now()));
  }

  #releaseAll(): void {
    for (const release of this.#releases.values()) release(this.#session);
    this.#releases.clear();
    this.#held.clear();
    this.#session.plot.peek()?.act((view) => view.releaseKeys());
  }
}
