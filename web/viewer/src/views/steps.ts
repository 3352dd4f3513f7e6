// Moves of the time cursor: by events, search hits, findings, peaks and markers.

import { readable } from "../client/resource.js";
import type { FindingRow, Mark, Span } from "../generated/protocol.js";
import { rowAt } from "../run.js";
import type { ViewUses } from "./workspace.js";

type StepsOwners = ViewUses<
  | "runs"
  | "selection"
  | "viewSelection"
  | "filters"
  | "navigation"
  | "plots"
  | "status"
  | "queries"
  | "cards"
  | "groups"
>;

export class Steps {
  readonly #owners: StepsOwners;
  /** The mark that `nextFinding` opened last. */
  #finding: Mark | null = null;

  constructor(owners: StepsOwners) {
    this.#owners = owners;
  }

  /** Moves the time cursor to an event, or to the nearest end of the trace. */
  goTo(event: number): void {
    const { selection, viewSelection } = this.#owners;
    const events = Number(selection.trace.peek()?.device?.events.raw ?? 0);
    viewSelection.cursor.value = Math.max(-1, Math.min(events - 1, event));
  }

  /**
   * Moves by one event. With a selected block and no visible events table, moves to the next
   * allocation from the block's call stack.
   */
  async step(by: 1 | -1): Promise<void> {
    const { selection, viewSelection, navigation, cards } = this.#owners;
    const { target } = selection;
    const block = selection.block.peek()?.block;
    const listed = navigation.shownSheet.peek() === "events";
    const cursor = viewSelection.cursor.peek();
    if (block === undefined || listed || !target) {
      this.goTo((cursor ?? (by > 0 ? -1 : 0)) + by);
      return;
    }
    const query = { of: { stack: { block } }, event: cursor ?? -1, block, backwards: by < 0 };
    const next = await target.client.view(target.target, "next", { next: query });
    cards.showDetail(next?.detail ?? null);
  }

  /**
   * Selects the next block of search and filters, by size. Without them, opens the next finding.
   */
  async nextHit(backwards: boolean): Promise<void> {
    const { selection, filters, cards, groups } = this.#owners;
    const { target } = selection;
    const text = filters.text.peek();
    if (text === "" || !target) {
      this.#nextMark(backwards);
      return;
    }
    const block = selection.block.peek()?.block ?? null;
    const query = { of: { search: { text } }, event: -1, block, backwards };
    const next = await target.client.view(target.target, "next", { next: query });
    cards.showDetail(next?.detail ?? null);
    if (next && filters.text.peek() === text) groups.place.value = next.place;
  }

  /** Opens the next out-of-memory event or finding, in order of time; wraps around. */
  #nextMark(backwards: boolean): void {
    // The engine lists them by event.
    const marks = this.#marks().filter(({ kind }) => kind !== "peak");
    const at = this.#owners.viewSelection.cursor.peek() ?? -2;
    const next = backwards
      ? (marks.findLast(({ event }) => event < at) ?? marks.at(-1))
      : (marks.find(({ event }) => event > at) ?? marks[0]);
    if (next) this.openMark(next);
  }

  /** Opens the out-of-memory events one after another, then the findings; wraps around. */
  nextFinding(): void {
    const marks = this.#marks();
    const of = (wanted: string) => marks.filter(({ kind }) => kind === wanted);
    const all = [...of("oom"), ...of("finding")];
    const at = this.#finding === null ? -1 : all.indexOf(this.#finding);
    const next = all[(at + 1) % Math.max(1, all.length)];
    this.#finding = next ?? null;
    if (next) this.openMark(next);
  }

  /** Opens the peak, then lower peaks; wraps around. */
  nextPeak(): void {
    const peaks = this.#marks().filter(({ kind }) => kind === "peak");
    const cursor = this.#owners.viewSelection.cursor.peek();
    const at = peaks.findIndex(({ event }) => event === cursor);
    this.goToPeak((at + 1) % Math.max(1, peaks.length));
  }

  /** Opens a separate peak, by its place among them. */
  goToPeak(index: number): void {
    this.#owners.viewSelection.peak.value = index;
    const peak = this.#marks().filter(({ kind }) => kind === "peak")[index];
    if (peak) this.openMark(peak);
  }

  nextMarker(): void {
    const { cursor, markers } = this.#owners.viewSelection;
    const all = markers.peek();
    const next = all.find((event) => event > (cursor.peek() ?? -2)) ?? all[0];
    if (next !== undefined) this.goTo(next);
  }

  openMark(mark: Mark): void {
    const { viewSelection, plots, status } = this.#owners;
    viewSelection.cursor.value = mark.event;
    plots.timeline.peek()?.act((view) => view.goto(mark.slot));
    status.announce(mark.text);
  }

  /**
   * Opens a finding: its rank, its range of events, and its blocks. Views without a time axis give
   * their place to the timeline, or stay. The cursor stays, unless the finding is about a moment
   * and not about blocks.
   */
  async openFinding(finding: FindingRow, where: "timeline" | "here" = "timeline"): Promise<void> {
    await this.#open(finding, where, finding.view.terms.length === 0);
  }

  /** Opens a finding and moves the cursor to its first event. */
  async goToFinding(finding: FindingRow): Promise<void> {
    await this.#open(finding, "timeline", true);
  }

  async #open(finding: FindingRow, where: "timeline" | "here", moves: boolean): Promise<void> {
    const { selection, plots, groups } = this.#owners;
    const { terms, reference } = finding.view;
    const span = await this.#lookAt(finding, where, moves);
    if (span) plots.timeline.peek()?.act((view) => view.fitRange(span.x0, span.x1));
    if (terms.length > 0) {
      if (!groups.isChosen(terms)) groups.choose(terms);
    } else if (reference !== null) await selection.selectReference(reference);
    selection.opened.value = finding;
  }

  /** Opens the first event of a finding, at the zoom of the view. */
  async openEvent(finding: FindingRow): Promise<void> {
    const span = await this.#lookAt(finding, "timeline", true);
    if (span) this.#owners.plots.timeline.peek()?.act((view) => view.goto(span.x0));
  }

  /** Focuses the rank of a finding. */
  async look({ record: { path, device } }: FindingRow): Promise<void> {
    const { runs, selection } = this.#owners;
    const row = rowAt(runs.rows.peek(), path);
    if (row && !selection.isFocused(row)) selection.look(row, device);
    await readable(selection);
  }

  /** Focuses the rank of a finding, and moves the cursor to its first event if it `moves`. */
  async #lookAt(
    finding: FindingRow,
    where: "timeline" | "here",
    moves: boolean,
  ): Promise<Span | undefined> {
    const { selection, viewSelection, navigation } = this.#owners;
    const hasTime = !["summary", "ranks"].includes(navigation.place.peek());
    const looked = this.look(finding);
    if (where === "timeline" && !hasTime) navigation.open("timeline");
    await looked;
    const [first] = finding.record.events;
    if (moves && first) viewSelection.cursor.value = Number(first.raw);
    return selection.spanOf(finding.view);
  }

  #marks(): readonly Mark[] {
    return this.#owners.queries.minimap.value.peek()?.marks ?? [];
  }
}
