// Maps keys to commands. Single letters act only while no text field has the focus. Held keys end
// when the window loses the focus.

import type { TimelineView } from "../../wasm/vramscope_view.js";
import { hasSelectedText } from "../host/clipboard.js";
import type { Stores } from "../stores.js";
import { type Movement, SHORTCUTS, type Shortcut, type ShortcutGroup } from "./keymap.js";

/**
 * The key's name. `Shift+` is part of it for letters and named keys, but not for signs like `?`.
 */
function nameOf(event: KeyboardEvent): string {
  const letter = /^[a-z]$/i.test(event.key);
  const key = letter ? event.key.toLowerCase() : event.key;
  return event.shiftKey && (letter || event.key.length > 1) ? `Shift+${key}` : key;
}

const takesText = (target: EventTarget | undefined) =>
  target instanceof HTMLElement &&
  (target.isContentEditable || target.matches("input, textarea, select")) &&
  !target.matches("[type=checkbox]");

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
  readonly #stores: Stores;
  #byKey: Map<string, Shortcut>;
  /** Actions for the release of a key, by its code. */
  readonly #releases = new Map<string, (stores: Stores) => void>();
  /** The movement of each held key, by its code: Shift may be released before the letter. */
  readonly #held = new Map<string, Movement>();
  readonly #listening = new AbortController();

  constructor(stores: Stores, target: EventTarget) {
    this.#stores = stores;
    this.#byKey = byKey(SHORTCUTS);
    const { signal } = this.#listening;
    // The views bring their own keys.
    this.#stop = stores.workspace.subscribe((workspace) => {
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
    if (event.defaultPrevented || this.#isCovered()) return;
    if (event.ctrlKey || event.metaKey) {
      this.#chord(event, target);
      return;
    }
    if (takesText(target) || event.altKey) return;
    const shortcut = this.#byKey.get(nameOf(event));
    if (!shortcut || (event.key === "Enter" && pressesButtons(target))) return;
    if (this.#stores.runs.run.peek() === null && event.key !== "?") return;
    event.preventDefault();
    this.#press(event, shortcut);
  }

  #press(event: KeyboardEvent, shortcut: Shortcut): void {
    if (event.repeat) shortcut.repeat?.(this.#stores);
    else shortcut.press?.(this.#stores, event.key);
    if (shortcut.release) this.#releases.set(event.code, shortcut.release);
    if (shortcut.hold) this.#hold(event.code, shortcut.hold);
  }

  /** Whether a dialog takes the keys. */
  #isCovered(): boolean {
    const { workspace, navigation } = this.#stores;
    const { helpOpen, paletteOpen, reportOpen } = navigation;
    const isOpen = helpOpen.peek() || paletteOpen.peek() || reportOpen.peek();
    return workspace.peek() !== null && isOpen;
  }

  /** Ctrl or Cmd with a letter. The browser's own action is prevented only for shortcuts. */
  #chord(event: KeyboardEvent, target: EventTarget | undefined): void {
    const shortcut = this.#byKey.get(
      `Ctrl+${event.shiftKey ? "Shift+" : ""}${event.key.toLowerCase()}`,
    );
    if (!shortcut || (this.#stores.runs.run.peek() === null && event.key !== "o")) return;
    if (event.key === "c") {
      // The browser copies selected text.
      const text =
        takesText(target) || !(target instanceof Node) || hasSelectedText(target.getRootNode());
      if (!text) shortcut.press?.(this.#stores, event.key);
      return;
    }
    event.preventDefault();
    shortcut.press?.(this.#stores, event.key);
  }

  #hold(code: string, movement: Movement): void {
    if (this.#held.has(code)) return;
    this.#held.set(code, movement);
    this.#act((view) => view.key(movement, true, performance.now()));
  }

  #up(event: KeyboardEvent): void {
    this.#releases.get(event.code)?.(this.#stores);
    this.#releases.delete(event.code);
    const held = this.#held.get(event.code);
    if (held === undefined) return;
    this.#held.delete(event.code);
    this.#act((view) => view.key(held, false, performance.now()));
  }

  #releaseAll(): void {
    for (const release of this.#releases.values()) release(this.#stores);
    this.#releases.clear();
    this.#held.clear();
    this.#act((view) => view.releaseKeys());
  }

  #act(change: (view: TimelineView) => void): void {
    this.#stores.plots.timeline.peek()?.act(change);
  }
}
