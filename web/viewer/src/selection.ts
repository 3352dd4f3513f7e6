// What is selected in the run: the row in focus with its trace, a block, or a card in the details.

import { computed, type Signal, signal } from "@preact/signals";
import type { Range, RankClient } from "./client/rank-client.js";
import type { RankFile } from "./client/rank-file.js";
import { readable } from "./client/resource.js";
import { type Filters, partsOf } from "./filters.js";
import type {
  AxisKind,
  BlockDetail,
  DetailCard,
  DeviceRef,
  FindingRow,
  Hit,
  Moments,
  Span,
} from "./generated/protocol.js";
import { copyText } from "./host/clipboard.js";
import type { Plots } from "./plots.js";
import { drawableOf, type Focus, type Row, traceOf } from "./run.js";
import type { RunStore } from "./run-store.js";
import type { Status } from "./status.js";
import type { Ends, ViewSelection } from "./view-selection.js";

export const CLIPBOARD_DENIED = "Clipboard access was denied";

/** A trace and the worker that answers queries about it. */
export interface Target {
  client: RankClient;
  target: DeviceRef;
}

export interface SelectionOwners {
  runs: RunStore;
  viewSelection: ViewSelection;
  filters: Filters;
  plots: Plots;
  status: Status;
}

/** A zoom of one trace, for another one. */
interface Zoom {
  /** The edges as shares of the axis. */
  shares: [number, number];
  moments: Moments | null;
}

export class Selection {
  readonly focus: Signal<Focus | null> = signal(null);
  /** The preferred axis; a trace without a clock has events only. */
  readonly axis: Signal<AxisKind> = signal("event");
  /** The trace in focus; null until its file is read. */
  readonly trace = computed(() => traceOf(this.focus.value));
  /** The trace in focus with its axis: it has segments, even without a history. */
  readonly drawableTrace = computed(() => drawableOf(this.trace.value, this.axis.value));
  /** The trace in focus if it has a timeline. */
  readonly visibleTrace = computed(() =>
    this.trace.value?.device?.note === null ? this.drawableTrace.value : null,
  );
  readonly block: Signal<BlockDetail | null> = signal(null);
  /** The slot of the click that selected the block; null if something else did. */
  readonly clicked: Signal<number | null> = signal(null);
  /** The card of a range, segment, frame or stack that the details show instead of a block. */
  readonly card: Signal<DetailCard | null> = signal(null);
  /** The card of the marked range, which the details may show. */
  rangeCard: DetailCard | null = null;
  /** The finding that was opened last. */
  readonly opened: Signal<FindingRow | null> = signal(null);
  /** The id of the selected finding: the one opened last, while its blocks are chosen. */
  readonly finding = computed(() => {
    const chosen = this.#filters.terms.value;
    const opened = this.opened.value;
    return opened?.view.terms.every((term) => chosen.includes(term)) ? opened.record.id : null;
  });
  /** The block under the pointer. */
  readonly hovered = computed(() => this.#hovered());
  /** The selected block that was centered last. */
  #centered: BlockDetail | null = null;
  readonly #runs: RunStore;
  readonly #viewSelection: ViewSelection;
  readonly #filters: Filters;
  readonly #plots: Plots;
  readonly #status: Status;
  readonly #selected: (detail: BlockDetail | null) => void;

  /** Whether the row in focus was chosen. */
  readonly chosen: Signal<boolean> = signal(false);

  /** `selected` is called when another block is selected. */
  constructor(
    { runs, viewSelection, filters, plots, status }: SelectionOwners,
    selected: (detail: BlockDetail | null) => void,
  ) {
    this.#runs = runs;
    this.#viewSelection = viewSelection;
    this.#filters = filters;
    this.#plots = plots;
    this.#status = status;
    this.#selected = selected;
  }

  /** Where queries about the focused trace go; null while it has no worker. */
  get target(): Target | null {
    const trace = this.trace.value;
    const client = trace?.file.client.value;
    if (!trace?.device || !client) return null;
    return { client, target: { part: trace.partIndex, device: trace.device.device } };
  }

  /** Puts the first row that is ready in focus, until the user chooses one. */
  begin(row: { file: RankFile; part: number }, device: number | null): void {
    this.look(row, device);
    this.chosen.value = false;
  }

  /** Puts a row in focus. */
  look(row: { file: RankFile; part: number }, device: number | null = null): void {
    this.select(null);
    this.card.value = null;
    const before = this.trace.peek();
    const wanted = device ?? before?.part.defaultDevice;
    const same =
      before?.file === row.file &&
      before.partIndex === row.part &&
      before.device?.device === wanted;
    if (!same) this.#viewSelection.reset();
    this.chosen.value = true;
    this.focus.value = { file: row.file, part: row.part, device };
    this.#runs.pool.focus(row.file);
    if (row.file.source.absent === true)
      this.#status.report({
        id: null,
        message: `${row.file.path} is not open`,
        hint: "Its card is in the index. Open this file, or drop its folder, to read it.",
      });
  }

  /**
   * Moves the focus by a number of rows. A zoom stays on its steps, or without steps on its share
   * of the recording.
   */
  async step(by: number): Promise<void> {
    const rows = this.#runs.rows.peek();
    const at = rows.findIndex((row) => this.isFocused(row));
    const row = rows[Math.max(0, Math.min(rows.length - 1, at + by))];
    if (!row || this.isFocused(row)) return;
    // It asks about the row before, and the next key may come before the answer.
    const asked = this.#zoom();
    this.look(row);
    const zoom = await asked;
    const plot = this.#plots.timeline.peek();
    if (zoom === null || !plot) return;
    const range = await this.#sameRange(zoom);
    if (range !== null && this.isFocused(row)) plot.setRange(range);
  }

  /** The visible range as shares of the axis, and with its steps; null when all is visible. */
  async #zoom(): Promise<Zoom | null> {
    const trace = this.visibleTrace.peek();
    const range = this.#plots.timeline.peek()?.current;
    const { target } = this;
    if (!trace || !range || !target) return null;
    const { kind: axis, extent } = trace.axis;
    const { x0, x1 } = range;
    if (x0 <= 0 && x1 >= extent) return null;
    const query = { moments: { axis, x0, x1, columns: 1, event: null } };
    const moments = await target.client.view(target.target, "moments", query);
    return { shares: [x0 / extent, x1 / extent], moments };
  }

  /** The range of the trace in focus that is like a zoom of another one, when it is drawn. */
  async #sameRange({ shares: [from, to], moments }: Zoom): Promise<Range | null> {
    await readable(this);
    const trace = this.visibleTrace.peek();
    const { target } = this;
    if (!trace || !target) return null;
    const { kind: axis, extent } = trace.axis;
    const query = moments && { stepRange: { moments, axis } };
    const same = query && (await target.client.view(target.target, "stepRange", query));
    const [x0, x1]: readonly [number, number] = same ?? [from * extent, to * extent];
    return { x0, x1 };
  }

  isFocused(row: Row): boolean {
    const focus = this.focus.value;
    return focus?.file === row.file && focus.part === row.part;
  }

  toggleAxis(): void {
    const axes = this.trace.peek()?.device?.axes ?? [];
    const other = axes.find(({ kind }) => kind !== this.visibleTrace.peek()?.axis.kind);
    if (other) this.axis.value = other.kind;
  }

  /** Clears everything that belongs to a run. */
  clear(): void {
    this.block.value = null;
    this.card.value = null;
    this.opened.value = null;
    this.focus.value = null;
  }

  /** Selects a block and shows it in the details; null clears the selection. */
  select(detail: BlockDetail | null): void {
    this.card.value = null;
    if (detail === null && this.block.peek() === null) return;
    this.block.value = detail;
    this.clicked.value = null;
    this.#plots.timeline.peek()?.setSelected(detail);
    this.#status.announce(
      detail ? `Selected ${detail.bytes.text}, ${detail.address}` : "Nothing selected",
    );
    this.#selected(detail);
  }

  /**
   * Puts the time cursor at a point of the timeline's canvas, and chooses the group of the block
   * there. In a chosen group, selects the block.
   */
  async selectAt(x: number, y: number): Promise<void> {
    const plot = this.#plots.timeline.peek();
    if (!plot) return;
    const slot = plot.placeAt(x, y).x;
    void this.cursorAt(slot);
    const hit = plot.hitAt(x, y);
    const isChosen = hit?.lit === true && this.#filters.text.peek() !== "";
    if (hit && !isChosen && (await this.#chooseGroupOf(hit.block))) return;
    this.select((await plot.blockAt(x, y)) ?? null);
    this.clicked.value = slot;
  }

  /** Filters by the group of a block: its category, line or module. False if it has none. */
  async #chooseGroupOf(block: number): Promise<boolean> {
    const { target } = this;
    if (!target) return false;
    const focus = this.focus.peek();
    const query = { groupTerms: { block, group: this.#viewSelection.group.peek() } };
    const terms = await target.client.view(target.target, "groupTerms", query);
    if (terms?.length === 0) return false;
    if (terms === null || this.focus.peek() !== focus) return true;
    this.select(null);
    this.card.value = null;
    this.#viewSelection.search.value = "";
    this.#filters.set(terms);
    const names = terms.map((term) => Object.values(partsOf(term)).join(" "));
    this.#status.announce(`Blocks of ${names.join(", ")}`);
    return true;
  }

  /** Zooms to the lifetime of the block at a point; to everything where there is no block. */
  async fitAt(x: number, y: number): Promise<void> {
    const plot = this.#plots.timeline.peek();
    const detail = (await plot?.blockAt(x, y)) ?? null;
    const span = detail && this.spanOf(detail);
    plot?.act((view) => (span ? view.fitRange(span.x0, span.x1) : view.fit()));
  }

  /** Selects the block that a reference names; false when the trace has no such block. */
  async selectReference(reference: string): Promise<boolean> {
    const focus = this.focus.peek();
    const detail = (await focus?.file.client.peek()?.find(focus.part, reference)) ?? null;
    if (detail === null || focus === null || this.focus.peek() !== focus) return false;
    if (detail.device !== this.trace.peek()?.device?.device) this.look(focus, detail.device);
    this.select(detail);
    return true;
  }

  /** Centers the selected block; zooms to it when it is centered already. */
  center(): void {
    const detail = this.block.peek();
    const plot = this.#plots.timeline.peek();
    const span = detail && this.spanOf(detail);
    const range = plot?.range.peek();
    if (!span || !range) return;
    const middle = (span.x0 + span.x1) / 2;
    // Near the ends of a trace the view cannot center it, so the earlier request counts.
    const centered = this.#centered === detail && middle >= range.x0 && middle <= range.x1;
    this.#centered = detail;
    plot?.act((view) => (centered ? view.fitRange(span.x0, span.x1) : view.goto(middle)));
  }

  /** Puts the time cursor on the event at a slot of the visible axis. */
  async cursorAt(slot: number): Promise<void> {
    const event = await this.#eventAt(slot);
    if (event !== null) this.#viewSelection.cursor.value = event;
  }

  /** Puts A or B on the event at a slot of the visible axis. */
  async endAt(end: keyof Ends, slot: number): Promise<void> {
    const event = await this.#eventAt(slot);
    const { ends } = this.#viewSelection;
    if (event !== null) ends.value = { ...ends.peek(), [end]: event };
  }

  /** The event at a slot; null if another trace has the focus when the answer comes. */
  async #eventAt(slot: number): Promise<number | null> {
    const { target } = this;
    const focus = this.focus.peek();
    const axis = this.visibleTrace.peek()?.axis.kind;
    if (!target || !axis) return null;
    const event = await target.client.view(target.target, "eventAt", { eventAt: { axis, slot } });
    return this.focus.peek() === focus ? event : null;
  }

  /** Cancels or clears one thing: a drag, search, card, block, filters, range, A and B, cursor. */
  escape(): void {
    const { search, range, ends, cursor, leversUnfolded } = this.#viewSelection;
    if (this.#plots.timeline.peek()?.cancelDrag()) return;
    if (leversUnfolded.peek()) leversUnfolded.value = false;
    else if (search.peek() !== "") search.value = "";
    else if (this.card.peek() !== null) this.closeCard();
    else if (this.block.peek() !== null) this.select(null);
    else if (this.#filters.terms.peek().length > 0) this.#filters.clear();
    else if (range.peek() !== null) range.value = null;
    else if (ends.peek().a !== null || ends.peek().b !== null) this.#viewSelection.clearEnds();
    else cursor.value = null;
  }

  /** Closes the card in the details. The marks of a range go with its card. */
  closeCard(): void {
    const { range } = this.#viewSelection;
    const isOfRange = this.card.peek() === this.rangeCard;
    this.card.value = null;
    if (!isOfRange) return;
    range.value = null;
    this.#viewSelection.clearEnds();
  }

  /** Copies the selected card or block as text. True when the clipboard has it. */
  async copy(): Promise<boolean> {
    const detail = this.card.peek() ?? this.block.peek();
    if (detail === null) return false;
    const done = await copyText(detail.copy);
    this.#status.announce(done ? "Copied" : CLIPBOARD_DENIED);
    return done;
  }

  /** Where something is along the axis of the drawable trace. */
  spanOf({ spans }: { spans: readonly Span[] }): Span | undefined {
    const kind = this.drawableTrace.value?.axis.kind;
    return spans.find((span) => span.kind === kind);
  }

  #hovered(): Hit | null {
    const hover = this.#plots.timeline.value?.hover.value;
    return hover && !hover.stale ? hover.hit : null;
  }
}
