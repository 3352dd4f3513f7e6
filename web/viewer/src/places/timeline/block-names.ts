// Labels in bands and blocks that are large enough. They are computed again when the view rests.

import { effect, type Signal, signal, untracked } from "@preact/signals";
import type { Labels } from "../../../wasm/vramscope_view.js";
import type { Range } from "../../client/rank-client.js";
import type { Side } from "../../generated/protocol.js";
import type { TimelinePlot } from "../../plot/timeline-plot.js";
import type { Target } from "../../selection.js";
import type { Uses } from "../../stores.js";
import type { Box } from "../../views/overlay.js";

/** A label in a block. */
export interface BlockName extends Box {
  block: number;
  text: string;
  /** Its color word. */
  color: number;
}

/** A label in a band of a grouped stack. */
export interface GroupName extends Box {
  group: number;
  text: string;
  /** The band's bytes. */
  raw: string;
  /** Its color word, when colored by category. */
  color: number;
  /** The side of the peak in view; null in the band. */
  beside: Side | null;
}

/** CSS pixels: the smallest block with a label, and the width of a letter at 11 px. */
const MIN_WIDTH = 64;
const MIN_HEIGHT = 15;
const LETTER = 6.2;
/** The height of a line of text without its spacing. */
const LINE = 9;
const PADDING = 10;
/** The peak's label: the height, and the width of a letter. */
const TAG_HEIGHT = 20;
const TAG_LETTER = 6.7;
const MAX_LABELS = 60;
/** Numbers per block of `roomy`. */
const ROOMY = 6;
/** Subscribes to signals by reading them. */
const follow = (..._values: unknown[]): void => undefined;

const REST_MS = 160;

/** What the plot shows, in slots and bytes. */
interface View {
  x0: number;
  x1: number;
  y0: number;
  y1: number;
}

/** In CSS pixels. */
interface Size {
  width: number;
  height: number;
}

type BlockNamesOwners = Uses<"selection" | "viewSelection" | "filters" | "plots">;

export class BlockNames {
  readonly shown: Signal<readonly BlockName[]> = signal([]);
  readonly groups: Signal<readonly GroupName[]> = signal([]);
  /** Where the selected block is, however low; null without one in view. */
  readonly selected: Signal<Box | null> = signal(null);
  readonly #owners: BlockNamesOwners;
  readonly #stop: () => void;
  #timer = 0;

  constructor(owners: BlockNamesOwners) {
    this.#owners = owners;
    const { selection, viewSelection, filters, plots } = owners;
    this.#stop = effect(() => {
      const plot = plots.timeline.value;
      const { color, group } = viewSelection;
      // Any of these may change the size of blocks.
      follow(plot?.range.value, plot?.labels.value, selection.visibleTrace.value);
      follow(selection.block.value, selection.clicked.value);
      follow(color.value, group.value, filters.text.value, plot?.heights.value);
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
      this.#show([], []);
      return;
    }
    if (plot.moving) {
      this.#later();
      return;
    }
    const isCurrent = () => plot.range.peek() === range && plot.labels.peek() === view;
    const found = await this.#groups(plot, target, view.plot);
    if (found === null || !isCurrent()) return;
    const tag = plot.visible && tagOf(view, plot.visible);
    const groups = found.filter((group) => tag === null || !overlap(group, tag));
    this.selected.value = await this.#selected(plot, target, view.plot, range);
    const names = await this.#names(plot, target, view.plot, range);
    if (names === null || !isCurrent()) return;
    // A band's label stands for the blocks below it.
    const isFree = (name: Box) =>
      !(tag && overlap(name, tag)) && !groups.some((group) => overlap(name, group));
    this.#show(groups, names.filter(isFree));
  }

  #show(groups: readonly GroupName[], names: readonly BlockName[]): void {
    this.groups.value = groups;
    this.shown.value = names;
    if (this.#owners.selection.block.peek() === null) this.selected.value = null;
  }

  async #groups(
    plot: TimelinePlot,
    { client, target }: Target,
    { width, height }: Size,
  ): Promise<GroupName[] | null> {
    const group = this.#owners.viewSelection.group.peek();
    const { axis, visible } = plot;
    if (group === "block" || axis === null || visible === null) return [];
    const labels = await client.view(target, "groupLabels", {
      groupLabels: {
        group,
        axis,
        x: [visible.x0, visible.x1],
        y: [visible.y0, visible.y1],
        size: [width, height],
        letter: [LETTER, LINE],
        search: this.#owners.filters.text.peek(),
      },
    });
    if (labels === null) return null;
    return labels.map(({ group, text, bytes, color, beside, x: [x0, x1], y }) => ({
      group,
      text,
      raw: bytes.raw,
      color,
      beside,
      x0,
      x1,
      y,
    }));
  }

  /** Where the selected block is: near the click that selected it, else where it is in view. */
  async #selected(
    { axis }: TimelinePlot,
    { client, target }: Target,
    { width }: Size,
    { x0, x1 }: Range,
  ): Promise<Box | null> {
    const { selection, viewSelection } = this.#owners;
    const detail = selection.block.peek();
    const span = detail && selection.spanOf(detail);
    if (!span || axis === null) return null;
    const slot = selection.clicked.peek() ?? (Math.max(span.x0, x0) + Math.min(span.x1, x1)) / 2;
    const group = viewSelection.group.peek();
    const query = {
      block: detail.block,
      group,
      axis,
      x: [x0, x1] as [number, number],
      width,
      slot,
    };
    const run = await client.view(target, "blockRun", { blockRun: query });
    return run && { x0: run.x[0], x1: run.x[1], y: run.y };
  }

  async #names(
    plot: TimelinePlot,
    { client, target }: Target,
    { width }: Size,
    { x0: left, x1: right }: Range,
  ): Promise<BlockName[] | null> {
    const found = plot.roomy(MIN_WIDTH, MIN_HEIGHT, MAX_LABELS);
    const blocks = Array.from(
      { length: found.length / ROOMY },
      (_, index) => found[index * ROOMY] ?? 0,
    );
    const names = await client.view(target, "names", { names: { blocks } });
    if (names === null) return null;
    const scale = width / (right - left);
    return blocks.flatMap((block, index) => {
      const [x0 = 0, x1 = 0, y0 = 0, y1 = 0, color = 0] = found.subarray(index * ROOMY + 1);
      const room = (Math.min(x1, right) - Math.max(x0, left)) * scale;
      // The longest label that fits.
      const text = names[index]?.find(({ length }) => length * LETTER + PADDING <= room);
      return text === undefined
        ? []
        : [{ block, text, color, x0, x1, y: [y0, y1] as [number, number] }];
    });
  }
}

/** The box of the peak's label, which hides what is below it. */
function tagOf({ peak, plot }: Labels, { x0, x1, y0, y1 }: View): Box | null {
  if (peak === null) return null;
  const slot = (x: number) => x0 + ((x - plot.left) / plot.width) * (x1 - x0);
  const bytes = (y: number) => y1 - ((y - plot.top) / plot.height) * (y1 - y0);
  const right = peak.x + peak.text.length * TAG_LETTER + PADDING;
  return {
    x0: slot(peak.x),
    x1: slot(right),
    y: [bytes(peak.y + TAG_HEIGHT), bytes(peak.y)],
  };
}

/** Whether two boxes overlap. */
function overlap(a: Box, b: Box): boolean {
  const [[a0, a1], [b0, b1]] = [a.y ?? [0, 0], b.y ?? [0, 0]];
  return a.x0 < b.x1 && b.x0 < a.x1 && a0 < b1 && b0 < a1;
}
