// Opens cards and blocks in the details: a marked range, a segment, a frame, a block by its index.

import { effect, signal, untracked } from "@preact/signals";
import { readable, resource, stopAll } from "../client/resource.js";
import type { BlockDetail, DetailCard } from "../generated/protocol.js";
import type { Marked } from "../plot/gestures.js";
import type { Uses } from "../stores.js";

/** An event after every trace: the state at its end. */
export const LAST_EVENT = Number.MAX_SAFE_INTEGER;

type CardsOwners = Uses<"selection" | "viewSelection" | "plots" | "status" | "host">;

export class Cards {
  readonly #owners: CardsOwners;
  readonly #segment = signal<number | null>(null);
  /** The segment's card in the details; null until it has come. */
  #segmentCard: DetailCard | null = null;
  readonly #stop: readonly (() => void)[];

  constructor(owners: CardsOwners) {
    this.#owners = owners;
    const { selection, viewSelection } = owners;
    // The card describes the segment at the time cursor, so it follows the cursor.
    const card = resource(selection, "detail", () => {
      const segment = this.#segment.value;
      return segment === null
        ? null
        : { segment: { segment, event: viewSelection.cursor.value ?? LAST_EVENT } };
    });
    this.#stop = [
      () => card.stop(),
      effect(() => {
        const next = card.value.value;
        if (next === null || next === this.#segmentCard) return;
        const isFirst = this.#segmentCard === null;
        this.#segmentCard = next;
        untracked(() => {
          if (isFirst) this.show(next);
          else selection.card.value = next;
        });
      }),
      // When the details show something else, moving the cursor must not bring the segment back.
      effect(() => {
        if (selection.card.value !== this.#segmentCard && this.#segmentCard !== null)
          this.#segment.value = null;
      }),
    ];
  }

  destroy(): void {
    stopAll(this.#stop);
  }

  /** Shows and announces a card. */
  show(card: DetailCard): void {
    this.#owners.selection.card.value = card;
    this.#owners.status.announce(`${card.kind} ${card.title.text}`);
  }

  showSegment(segment: number): void {
    // Clearing first repeats the query for the same segment.
    this.#segment.value = null;
    this.#segmentCard = null;
    this.#segment.value = segment;
  }

  /** Shows a frame's line where the page around the viewer does, else its card. */
  async showFrame(name: string, file: string, line: number): Promise<void> {
    const { selection, host } = this.#owners;
    if (line !== 0 && host.showLine({ file, line })) return;
    const { target } = selection;
    const card = await target?.client.view(target.target, "detail", {
      frame: { name, file, line },
    });
    if (card) this.show(card);
  }

  /** Selects a block by its index and moves the cursor to its allocation. */
  async showBlock(block: number): Promise<void> {
    const { target } = this.#owners.selection;
    if (target) this.showDetail(await target.client.block(target.target, block));
  }

  /** Selects a block and moves the cursor and the view to its allocation. */
  showDetail(detail: BlockDetail | null): void {
    const { selection, viewSelection, plots } = this.#owners;
    if (detail === null) return;
    selection.select(detail);
    viewSelection.cursor.value = detail.event;
    const plot = plots.timeline.peek();
    const span = selection.spanOf(detail);
    const range = plot?.range.peek();
    if (span && range && (span.x1 < range.x0 || span.x0 > range.x1))
      plot?.act((view) => view.goto(span.x0));
  }

  /** A drag on a plot has marked a range or a ruler. */
  marked({ mode, from, to }: Marked): void {
    const { selection, viewSelection } = this.#owners;
    const axis = selection.visibleTrace.peek()?.axis.kind;
    if (!axis) return;
    const [x0, x1] = from.x < to.x ? [from.x, to.x] : [to.x, from.x];
    const [y0, y1] = from.y < to.y ? [from.y, to.y] : [to.y, from.y];
    if (mode === "range") {
      void this.selectRange(x0, x1);
      return;
    }
    const along = mode === "ruler-x" ? "x" : "y";
    viewSelection.rulers.value = [...viewSelection.rulers.peek(), { along, axis, x0, x1, y0, y1 }];
  }

  /** Marks a range of the visible axis, shows its card, and puts A and B at its edges. */
  async selectRange(x0: number, x1: number): Promise<void> {
    const { selection, viewSelection } = this.#owners;
    const axis = selection.visibleTrace.peek()?.axis.kind;
    if (!axis || !selection.target || !(x0 < x1)) return;
    viewSelection.range.value = { axis, x0, x1 };
    const card = await this.showRange();
    const [a, b] = ["from", "to"].map((end) => card?.rows.find(({ key }) => key === end)?.raw);
    if (a && b) viewSelection.ends.value = { a: Number(a), b: Number(b) };
  }

  /** Shows the card of the marked range, unless a block is selected before it has come. */
  async showRange(): Promise<DetailCard | null> {
    const { selection, viewSelection } = this.#owners;
    const range = viewSelection.range.peek();
    const block = selection.block.peek();
    if (range === null) return null;
    await readable(selection);
    const { target } = selection;
    const card = target && (await target.client.view(target.target, "detail", { range }));
    if (!card || viewSelection.range.peek() !== range) return null;
    selection.rangeCard = card;
    if (selection.block.peek() === block) this.show(card);
    return card;
  }
}
