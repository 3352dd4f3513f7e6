// All views but the timeline, fetched after the first picture: what they share beyond the session,
// and what their components are.

import { computed, effect, type Signal, signal, untracked } from "@preact/signals";
import type { FindingRow, Mark } from "../generated/protocol.js";
import { VIEW_TITLES, type View } from "../linked.js";
import type { Marked } from "../plot/gestures.js";
import type { Session } from "../session.js";
import { sheetOf } from "../styles/sheets.js";
import { style } from "../styles/views.js";
import { BlockNames } from "./block-names.js";
import { Comparing } from "./comparing.js";
import type { FlamePlot } from "./flame-plot.js";
import { ViewHistory } from "./history.js";
import { Player } from "./player.js";
import { Ranks } from "./ranks.js";
import { readable, resource } from "./resource.js";
import { SegmentCard } from "./segment-card.js";
import type { SegmentsPlot } from "./segments-plot.js";
import { MORE_SHORTCUTS } from "./shortcuts.js";
import { stretchOf } from "./tracks.js";
import { ui } from "./ui.js";

/** How long a word that is typed waits before it is searched. */
const TYPING_MS = 120;

export class Workspace {
  readonly session: Session;
  readonly ui = ui;
  readonly shortcuts = MORE_SHORTCUTS;
  readonly ranks: Ranks;
  readonly comparing: Comparing;
  readonly paletteOpen: Signal<boolean> = signal(false);
  readonly history: ViewHistory;
  readonly player = new Player((by) => void this.step(by));
  readonly names: BlockNames;
  /** The plots of the views that are drawn, while they are mounted. */
  readonly segments: Signal<SegmentsPlot | null> = signal(null);
  readonly flame: Signal<FlamePlot | null> = signal(null);

  readonly moment;
  readonly peak;
  readonly markers;
  readonly findings;
  readonly course;
  readonly tracks;
  readonly settings;
  readonly found;
  /** Findings of all ranks that have been read, the most severe first. */
  readonly allFindings = computed(
    () => this.ranks.overview.value?.findings ?? this.findings.value.value,
  );
  readonly #segment: SegmentCard;
  readonly #stop: (() => void)[];
  /** Of which the annotated ranges are laid out. */
  #stretch: Signal<ReturnType<typeof stretchOf> | null> = signal(null);

  constructor(session: Session) {
    this.session = session;
    const { linked } = session;
    const axis = () => session.shown.value?.axis.kind ?? "event";
    this.moment = resource(session, "moment", () => {
      const event = linked.cursor.value;
      return event === null ? null : { moment: { at: { event: { event: event } } } };
    });
    this.peak = resource(session, "moment", () =>
      session.detailsOpen.value ? { peak: {} } : null,
    );
    this.markers = resource(session, "markers", () => {
      const events = [...linked.markers.value];
      return events.length === 0 ? null : { markers: { events } };
    });
    this.findings = resource(session, "findings", () => ({ findings: {} }));
    this.course = resource(session, "course", () => ({ course: { axis: axis() } }));
    this.settings = resource(session, "settings", () => ({ settings: {} }));
    this.tracks = resource(session, "tracks", () => {
      const stretch = this.#stretch.value;
      return stretch && { tracks: { axis: axis(), ...stretch } };
    });
    this.found = resource(session, "search", () => {
      const text = linked.search.value;
      return text === "" ? null : { search: { text } };
    });
    this.ranks = new Ranks(session);
    this.comparing = new Comparing(session);
    this.history = new ViewHistory(session);
    this.names = new BlockNames(session);
    this.#segment = new SegmentCard(session, (card) => this.showSubject(card));
    // A link may have marked it before there were views.
    if (session.selected.peek() === null) void this.showRange();
    this.#stop = [
      effect(() => {
        const range = session.plot.value?.range.value;
        const width = session.plot.value?.labels.value?.plot.width;
        const next = range && width ? stretchOf(range, width) : null;
        const before = this.#stretch.peek();
        if (next?.x0 !== before?.x0 || next?.x1 !== before?.x1) this.#stretch.value = next;
      }),
      effect(() => this.#look()),
      effect(() => {
        const moment = this.moment.value.value;
        if (moment) untracked(() => this.#say(moment.spoken));
      }),
      () => this.ranks.destroy(),
      () => this.comparing.destroy(),
      () => this.history.destroy(),
      () => this.names.destroy(),
      () => this.#segment.destroy(),
      ...[this.moment, this.peak, this.markers, this.findings].map(({ stop }) => stop),
      ...[this.course, this.tracks, this.settings, this.found].map(({ stop }) => stop),
    ];
  }

  styleSheets(): CSSStyleSheet[] {
    return style.map(sheetOf);
  }

  destroy(): void {
    this.player.stop();
    for (const stop of this.#stop) stop();
  }

  /** Gives a view the whole center; the drawer stays for what it shows, unless that is the same. */
  open(view: View): void {
    const { linked } = this.session;
    linked.view.value = view;
    if (linked.drawer.peek() === view)
      linked.drawer.value = view === "timeline" ? "segments" : null;
    this.#say(VIEW_TITLES[view]);
  }

  openDrawer(view: View | null): void {
    const { linked } = this.session;
    linked.drawer.value = view === linked.view.peek() ? null : view;
  }

  toggleDrawer(): void {
    const { drawer, view } = this.session.linked;
    drawer.value =
      drawer.peek() === null ? (view.peek() === "segments" ? "timeline" : "segments") : null;
  }

  /** The time cursor to a place of the axis that is shown. */
  async cursorAt(slot: number): Promise<void> {
    const { asked, shown } = this.session;
    const axis = shown.peek()?.axis.kind;
    if (!asked || !axis) return;
    const moment = await asked.client.view(asked.target, "moment", {
      moment: { at: { slot: { axis, slot } } },
    });
    if (moment) this.session.linked.cursor.value = moment.event;
  }

  /** The time cursor to an event; the view follows where it is out of sight. */
  goTo(event: number): void {
    const { session } = this;
    const events = Number(session.trace.peek()?.device?.events.raw ?? 0);
    session.linked.cursor.value = Math.max(-1, Math.min(events - 1, event));
  }

  /**
   * One event on; or, with a selection and no list of events in sight, to the next use of its call
   * stack.
   */
  async step(by: 1 | -1): Promise<void> {
    const { session } = this;
    const { linked, selected, asked } = session;
    const selection = selected.peek();
    const listed = linked.view.peek() === "events" || linked.drawer.peek() === "events";
    if (selection === null || listed || !asked) {
      this.goTo((linked.cursor.peek() ?? (by > 0 ? -1 : 0)) + by);
      return;
    }
    const event = linked.cursor.peek() ?? -1;
    const { block } = selection;
    const query = { of: { stack: { block } }, event, block, backwards: by < 0 };
    this.#show(await asked.client.view(asked.target, "next", { next: query }));
  }

  /** The next block that the search finds; without a search the next finding. */
  async nextHit(backwards: boolean): Promise<void> {
    const { linked, asked, selected } = this.session;
    const text = linked.search.peek();
    if (text === "" || !asked) {
      this.nextMark(["oom", "finding"], backwards);
      return;
    }
    const from = linked.cursor.peek() ?? -1;
    const before = selected.peek() === null && !backwards ? -1 : from;
    const block = selected.peek()?.block ?? null;
    const query = { of: { search: { text } }, event: before, block, backwards };
    this.#show(await asked.client.view(asked.target, "next", { next: query }));
  }

  /** Along the marks of some kinds; round and round. */
  nextMark(kinds: string[], backwards = false): void {
    const marks = (this.course.value.peek()?.marks ?? []).filter(({ kind }) =>
      kinds.includes(kind),
    );
    const at = this.session.linked.cursor.peek() ?? -2;
    const ordered = marks.toSorted((a, b) => a.event - b.event);
    const next = backwards
      ? (ordered.findLast(({ event }) => event < at) ?? ordered.at(-1))
      : (ordered.find(({ event }) => event > at) ?? ordered[0]);
    if (next) this.openMark(next);
  }

  /** Every time memory ran out, then every finding; round and round. */
  nextTrouble(): void {
    const marks = this.course.value.peek()?.marks ?? [];
    const of = (wanted: string) => marks.filter(({ kind }) => kind === wanted);
    const all = [...of("oom"), ...of("finding")];
    const at = this.#trouble === null ? -1 : all.indexOf(this.#trouble);
    const next = all[(at + 1) % Math.max(1, all.length)];
    this.#trouble = next ?? null;
    if (next) this.openMark(next);
  }
  #trouble: Mark | null = null;

  /** The peak, and then the lower ones, one a call. */
  nextPeak(): void {
    const peaks = (this.course.value.peek()?.marks ?? []).filter(({ kind }) => kind === "peak");
    const at = peaks.findIndex(({ event }) => event === this.session.linked.cursor.peek());
    const next = peaks[(at + 1) % Math.max(1, peaks.length)];
    if (next) this.openMark(next);
  }

  openMark(mark: Mark): void {
    this.session.linked.cursor.value = mark.event;
    this.session.plot.peek()?.act((view) => view.goto(mark.slot));
    this.#say(mark.text);
  }

  /** Shows the place that shows a finding: its range, its block, its stack. */
  async openFinding(finding: FindingRow): Promise<void> {
    const { session } = this;
    const row = session.rows.peek().find(({ file }) => file.path === finding.path.split("#")[0]);
    if (row && !session.isFocused(row)) session.look(row, finding.device);
    if (session.linked.view.peek() === "anomalies" || session.linked.view.peek() === "overview")
      this.open("timeline");
    await readable(this.session);
    if (finding.event !== null) session.linked.cursor.value = finding.event;
    const kind = session.shown.peek()?.axis.kind;
    const span = finding.spans.find((candidate) => candidate.kind === kind);
    if (span) session.plot.peek()?.act((view) => view.fitRange(span.x0, span.x1));
    if (finding.reference !== null) await session.selectReference(finding.reference);
  }

  /** Something was dragged out on the timeline. */
  marked({ mode, from, to }: Marked): void {
    const { linked, shown } = this.session;
    const axis = shown.peek()?.axis.kind;
    if (!axis) return;
    const [x0, x1] = from.x < to.x ? [from.x, to.x] : [to.x, from.x];
    const [y0, y1] = from.y < to.y ? [from.y, to.y] : [to.y, from.y];
    if (mode === "range") this.selectRange(x0, x1);
    else
      linked.rulers.value = [
        ...linked.rulers.peek(),
        { along: mode === "ruler-x" ? "x" : "y", axis, x0, x1, y0, y1 },
      ];
  }

  /** Marks a range of the axis that is shown, and says what happens in it. */
  async selectRange(x0: number, x1: number): Promise<void> {
    const { linked, shown, asked } = this.session;
    const axis = shown.peek()?.axis.kind;
    if (!axis || !asked || !(x0 < x1)) return;
    linked.range.value = { axis, x0, x1 };
    await this.showRange();
  }

  /** Puts what happens in the marked range into the details. */
  async showRange(): Promise<void> {
    const { session } = this;
    const range = session.linked.range.peek();
    if (range === null) return;
    await readable(this.session);
    const { asked } = session;
    const detail = asked && (await asked.client.view(asked.target, "detail", { range }));
    if (detail && session.linked.range.peek() === range) this.showSubject(detail);
  }

  showSubject(subject: NonNullable<Session["subject"]["value"]>): void {
    this.session.subject.value = subject;
    this.#say(`${subject.kind} ${subject.title.text}`);
  }

  showSegment(segment: number): void {
    this.#segment.show(segment);
  }

  async showFrame(name: string, file: string, line: number): Promise<void> {
    const { asked } = this.session;
    const detail = await asked?.client.view(asked.target, "detail", {
      frame: { name, file, line },
    });
    if (detail) this.showSubject(detail);
  }

  /** Selects a block by its index, and shows where it is. */
  async showBlock(block: number): Promise<void> {
    const { asked } = this.session;
    if (asked) this.#show(await asked.client.block(asked.target, block));
  }

  addMarker(): void {
    const { cursor, markers } = this.session.linked;
    const event = cursor.peek();
    if (event !== null)
      markers.value = [...new Set([...markers.peek(), event])].toSorted((a, b) => a - b);
  }

  nextMarker(): void {
    const { cursor, markers } = this.session.linked;
    const next = markers.peek().find((event) => event > (cursor.peek() ?? -2)) ?? markers.peek()[0];
    if (next !== undefined) this.goTo(next);
  }

  /** The last ruler goes; without one the marker at the cursor. */
  removeLast(): void {
    const { linked } = this.session;
    if (linked.rulers.peek().length > 0) linked.rulers.value = linked.rulers.peek().slice(0, -1);
    else
      linked.markers.value = linked.markers
        .peek()
        .filter((event) => event !== linked.cursor.peek());
  }

  /** `>` in an empty search box asks for a command. */
  openPaletteFromSearch(event: Event): void {
    event.preventDefault();
    (event.currentTarget as HTMLElement | null)?.blur();
    this.paletteOpen.value = true;
  }

  typed(text: string): void {
    clearTimeout(this.#typing);
    this.#typing = window.setTimeout(() => {
      this.session.linked.search.value = text;
    }, TYPING_MS);
  }
  #typing = 0;

  #show(detail: Parameters<Session["select"]>[0]): void {
    const { session } = this;
    if (detail === null) return;
    session.select(detail);
    const event = /@~?(\d+)$/.exec(detail.reference)?.[1];
    session.linked.cursor.value = event === undefined ? -1 : Number(event);
    const kind = session.shown.peek()?.axis.kind;
    const span = detail.spans.find((candidate) => candidate.kind === kind);
    const range = session.plot.peek()?.range.peek();
    if (span && range && (span.x1 < range.x0 || span.x0 > range.x1)) {
      session.plot.peek()?.act((view) => view.goto(span.x0));
    }
  }

  #say(text: string): void {
    this.session.spoken.value = text;
  }

  #look(): void {
    const { linked, plot } = this.session;
    plot.value?.setLook({
      color: linked.color.value,
      bands: linked.bands.value,
      search: linked.search.value,
      capacity: linked.capacity.value,
      fromBaseline: linked.fromBaseline.value,
    });
  }
}
