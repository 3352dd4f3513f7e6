// Names in the blocks that have room for them, found anew when the picture has come to rest.

import { effect, type Signal, signal, untracked } from "@preact/signals";
import type { Session } from "../session.js";
import type { Box } from "./overlay.js";

export interface BlockName extends Box {
  block: number;
  text: string;
}

/** CSS pixels: the least room, and what a letter takes at 11 px. */
const WIDTH = 64;
const HEIGHT = 15;
const LETTER = 6.2;
const PADDING = 10;
const MOST = 60;
/** To read a signal is to subscribe to it. */
const follow = (..._values: unknown[]): void => undefined;

const REST_MS = 160;

export class BlockNames {
  readonly shown: Signal<readonly BlockName[]> = signal([]);
  readonly #session: Session;
  readonly #stop: () => void;
  #waiting = 0;

  constructor(session: Session) {
    this.#session = session;
    this.#stop = effect(() => {
      const plot = session.plot.value;
      const { color, search } = session.linked;
      // Any of these may change which blocks have room.
      follow(plot?.range.value, plot?.labels.value, session.shown.value, color.value, search.value);
      untracked(() => this.#later());
    });
  }

  destroy(): void {
    clearTimeout(this.#waiting);
    this.#stop();
  }

  #later(): void {
    clearTimeout(this.#waiting);
    this.#waiting = window.setTimeout(() => void this.#find(), REST_MS);
  }

  async #find(): Promise<void> {
    const session = this.#session;
    const plot = session.plot.peek();
    const { asked } = session;
    const view = plot?.labels.peek();
    const range = plot?.range.peek();
    if (!plot || !asked || !view || !range || session.shown.peek() === null) {
      this.shown.value = [];
      return;
    }
    if (plot.moving) {
      this.#later();
      return;
    }
    const found = plot.roomy(WIDTH, HEIGHT, MOST);
    const blocks = Array.from({ length: found.length / 5 }, (_, index) => found[index * 5] ?? 0);
    const names = await asked.client.view(asked.target, "names", { names: { blocks } });
    if (names === null || plot.range.peek() !== range) return;
    const scale = view.plot.width / (range.x1 - range.x0);
    this.shown.value = blocks.flatMap((block, index) => {
      const [x0 = 0, x1 = 0, y0 = 0, y1 = 0] = found.subarray(index * 5 + 1, index * 5 + 5);
      const room = (Math.min(x1, range.x1) - Math.max(x0, range.x0)) * scale;
      // Only what fits whole.
      const text = names[index]?.find(({ length }) => length * LETTER + PADDING <= room);
      return text === undefined ? [] : [{ block, text, x0, x1, y: [y0, y1] as [number, number] }];
    });
  }
}
