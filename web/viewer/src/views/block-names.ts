// Labels in blocks that are large enough. They are computed again when the view rests.

import { effect, type Signal, signal, untracked } from "@preact/signals";
import type { Uses } from "../stores.js";
import type { Box } from "./overlay.js";

export interface BlockName extends Box {
  block: number;
  text: string;
}

/** CSS pixels: the smallest block with a label, and the width of a letter at 11 px. */
const MIN_WIDTH = 64;
const MIN_HEIGHT = 15;
const LETTER = 6.2;
const PADDING = 10;
const MAX_LABELS = 60;
/** Subscribes to signals by reading them. */
const follow = (..._values: unknown[]): void => undefined;

const REST_MS = 160;

type BlockNamesOwners = Uses<"selection" | "viewSelection" | "filters" | "plots">;

export class BlockNames {
  readonly shown: Signal<readonly BlockName[]> = signal([]);
  readonly #owners: BlockNamesOwners;
  readonly #stop: () => void;
  #timer = 0;

  constructor(owners: BlockNamesOwners) {
    this.#owners = owners;
    const { selection, viewSelection, filters, plots } = owners;
    this.#stop = effect(() => {
      const plot = plots.timeline.value;
      const { color } = viewSelection;
      // Any of these may change the size of blocks.
      follow(plot?.range.value, plot?.labels.value, selection.visibleTrace.value);
      follow(color.value, filters.text.value);
      untracked(() => this.#later());
    });
  }

  destroy(): void {
    clearTimeout(this.#timer);
    this.#stop();
  }

  #later(): void {
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => void this.#find(), REST_MS);
  }

  async #find(): Promise<void> {
    const { selection, plots } = this.#owners;
    const plot = plots.timeline.peek();
    const { target } = selection;
    const view = plot?.labels.peek();
    const range = plot?.range.peek();
    if (!plot || !target || !view || !range || selection.visibleTrace.peek() === null) {
      this.shown.value = [];
      return;
    }
    if (plot.moving) {
      this.#later();
      return;
    }
    const found = plot.roomy(MIN_WIDTH, MIN_HEIGHT, MAX_LABELS);
    const blocks = Array.from({ length: found.length / 5 }, (_, index) => found[index * 5] ?? 0);
    const names = await target.client.view(target.target, "names", { names: { blocks } });
    if (names === null || plot.range.peek() !== range) return;
    const scale = view.plot.width / (range.x1 - range.x0);
    this.shown.value = blocks.flatMap((block, index) => {
      const [x0 = 0, x1 = 0, y0 = 0, y1 = 0] = found.subarray(index * 5 + 1, index * 5 + 5);
      const room = (Math.min(x1, range.x1) - Math.max(x0, range.x0)) * scale;
      // The longest label that fits.
      const text = names[index]?.find(({ length }) => length * LETTER + PADDING <= room);
      return text === undefined ? [] : [{ block, text, x0, x1, y: [y0, y1] as [number, number] }];
    });
  }
}
