// The state of one viewer: the run, what is looked at, what is selected. Components read its
// signals and call its methods; nothing here knows of the DOM's shape.

import { computed, effect, type Signal, signal } from "@preact/signals";
import { Address } from "./address.js";
import { Coordinator } from "./client/coordinator.js";
import type { RankClient } from "./client/rank-client.js";
import type { RankFile, Source } from "./client/rank-file.js";
import { type PoolEvents, RankPool } from "./client/rank-pool.js";
import { Modules } from "./client/wasm.js";
import type {
  AxisKind,
  BlockDetail,
  DetailCard,
  DeviceRef,
  Failure,
  Hit,
  Loaded,
} from "./generated/protocol.js";
import { copyText } from "./host/clipboard.js";
import { Linked } from "./linked.js";
import type { HandOptions } from "./plot/canvas-plot.js";
import { Surfaces } from "./plot/surface.js";
import type { TimelinePlot } from "./plot/timeline-plot.js";
import {
  type Dropping,
  type Focus,
  failureOf,
  type Host,
  type Row,
  type Run,
  rowsOf,
  type SessionEvents,
  shownOf,
  traceOf,
} from "./run.js";
import { RunLoader } from "./run-loader.js";
import type { Theme } from "./view-state.js";
import type { Workspace } from "./views/workspace.js";

export class Session {
  readonly run: Signal<Run | null> = signal(null);
  readonly focus: Signal<Focus | null> = signal(null);
  readonly axis: Signal<AxisKind> = signal("event");
  readonly theme: Signal<Theme> = signal("auto");
  /** What the system prefers, for `auto`. */
  readonly systemDark: Signal<boolean> = signal(false);
  readonly dark = computed(() =>
    this.theme.value === "auto" ? this.systemDark.value : this.theme.value === "dark",
  );
  readonly selected: Signal<BlockDetail | null> = signal(null);
  /** What the details show in place of a block: a range, a segment, a frame. */
  readonly subject: Signal<DetailCard | null> = signal(null);
  /** The selection that was brought to the middle last. */
  centerd: BlockDetail | null = null;
  readonly linked = new Linked();
  readonly address = new Address(this);
  /** All views but the timeline; null until they have been fetched. */
  readonly workspace: Signal<Workspace | null> = signal(null);
  /** Why there are no other views. */
  readonly viewsFailure: Signal<Failure | null> = signal(null);
  /** What went wrong that belongs to no row. */
  readonly notice: Signal<Failure | null> = signal(null);
  /** Why there is no picture, whatever the file. */
  readonly drawingFailure: Signal<Failure | null> = signal(null);
  /** Counts the canvases: another one is drawn on when it changes. */
  readonly canvas: Signal<number> = signal(0);
  /** What a screen reader is told. */
  readonly spoken: Signal<string> = signal("");
  readonly plot: Signal<TimelinePlot | null> = signal(null);
  readonly sheetOpen: Signal<boolean> = signal(false);
  readonly detailsOpen: Signal<boolean> = signal(true);
  /** The part of the center's height that the drawer takes. */
  readonly drawerShare: Signal<number> = signal(0.36);
  /** A ruler is drawn while its key is held. */
  readonly ruling: Signal<"x" | "y" | null> = signal(null);
  /** Files are being dragged over the page, and what becomes of them where they are. */
  readonly dropping: Signal<Dropping | null> = signal(null);

  readonly rows = computed(() => this.run.value?.files.flatMap(rowsOf) ?? []);
  readonly hovered = computed(() => this.#hovered());
  readonly trace = computed(() => traceOf(this.focus.value));
  /** What has a timeline. */
  readonly shown = computed(() => {
    const device = this.trace.value?.device;
    return device?.note === null ? this.drawn.value : null;
  });
  /** What has segments: also a device without history. */
  readonly drawn = computed(() => shownOf(this.trace.value, this.axis.value));

  /** How the hand is read on every plot. */
  readonly hand: HandOptions = {
    wheelScrolls: () => this.linked.wheelScrolls.peek(),
    dragZooms: () => this.linked.dragZooms.peek(),
    ruling: () => this.ruling.peek(),
  };

  readonly modules: Modules;
  readonly surfaces = new Surfaces();
  readonly #events: SessionEvents;
  readonly #host: Host;
  readonly pool: RankPool;
  readonly coordinator: Coordinator;
  readonly #stop: (() => void)[];
  readonly #loader = new RunLoader(this);
  #views: Promise<void> | null = null;
  #ended = false;

  constructor(events: SessionEvents, host: Host) {
    this.#events = events;
    this.#host = host;
    this.modules = new Modules(host.places);
    this.coordinator = new Coordinator(this.modules);
    const poolEvents: PoolEvents = {
      progress: (file) => events.progress(file),
      ready: (file) => this.#ready(file),
      failed: (file, failure) => events.failed(file.path, failure),
      crashing: (file) => this.address.keep(file),
      refused: (failure) => this.report(failure),
      summarize: (file, client, loaded) => this.#summarize(file, client, loaded),
    };
    this.pool = new RankPool(this.modules, poolEvents, navigator.hardwareConcurrency || 1);
    this.#stop = [
      effect(() => this.pool.setBudget(this.linked.memory.value * 2 ** 30)),
      effect(() => this.plot.value?.show(this.shown.value)),
      effect(() => {
        const trace = this.trace.value;
        if (trace) this.spoken.value = [trace.file.path, trace.device?.peakText].join(", ");
      }),
      effect(() => {
        if ((this.plot.value || this.drawingFailure.value) && this.shown.value?.client)
          this.address.grant();
      }),
    ];
  }

  /** Imports the views, once: after the first picture, or while the landing page is idle. */
  loadViews(): Promise<void> {
    this.#views ??= this.#fetchViews().catch((error: unknown) => {
      if (this.#ended) return;
      const { message } = failureOf(error);
      this.viewsFailure.value = {
        id: null,
        message: `The other views could not be loaded: ${message}`,
        hint: "The timeline works without them. Reload the page to try again.",
      };
      this.#events.failed(null, this.viewsFailure.value);
    });
    return this.#views;
  }

  async #fetchViews(): Promise<void> {
    const { Workspace } = await import("./views/workspace.js");
    if (!this.#ended) this.workspace.value = new Workspace(this);
  }

  async #summarize(file: RankFile, client: RankClient, loaded: Loaded): Promise<void> {
    const cards = loaded.parts.map(({ defaultDevice, devices }, part) =>
      devices.length === 0
        ? null
        : client.view({ part, device: defaultDevice }, "card", { card: {} }),
    );
    file.cards.value = await Promise.all(cards);
  }

  /** Opens these in place of what is open. Settled when each is read or refused. */
  open(sources: Source[] | Promise<Source[]>, title?: string): Promise<void> {
    return this.#loader.open(sources, title);
  }

  /**
   * Opens these beside what is open; what is looked at stays. Settled when each is read or refused.
   */
  add(sources: Source[] | Promise<Source[]>): Promise<void> {
    return this.#loader.add(sources);
  }

  /** Looks at a row. */
  look(row: { file: RankFile; part: number }, device: number | null = null): void {
    this.select(null);
    this.subject.value = null;
    const before = this.trace.peek();
    const wanted = device ?? before?.part.defaultDevice;
    const same =
      before?.file === row.file &&
      before.partIndex === row.part &&
      before.device?.device === wanted;
    if (!same) this.linked.reset();
    this.focus.value = { file: row.file, part: row.part, device };
    this.pool.focus(row.file);
  }

  /** The row before or after the one in focus. */
  step(by: number): void {
    const rows = this.rows.peek();
    const at = rows.findIndex((row) => this.isFocused(row));
    const row = rows[Math.max(0, Math.min(rows.length - 1, at + by))];
    if (row && !this.isFocused(row)) this.look(row);
  }

  isFocused(row: Row): boolean {
    const focus = this.focus.value;
    return focus?.file === row.file && focus.part === row.part;
  }

  toggleAxis(): void {
    const axes = this.trace.peek()?.device?.axes ?? [];
    const other = axes.find(({ kind }) => kind !== this.shown.peek()?.axis.kind);
    if (other) this.axis.value = other.kind;
  }

  /** Shows a block in the details; null clears. */
  select(detail: BlockDetail | null): void {
    this.subject.value = null;
    if (detail === null && this.selected.peek() === null) return;
    this.selected.value = detail;
    this.plot.peek()?.setSelected(detail);
    this.spoken.value = detail
      ? `Selected ${detail.bytes.text}, ${detail.address}`
      : "Nothing selected";
    this.#events.selected(detail);
  }

  /** The color of a word in the theme. */
  swatch(color: number): string | undefined {
    return this.modules.swatch(color, this.dark.value);
  }

  /** The trace that is shown and its worker, for those who ask it something. */
  get asked(): { client: RankClient; target: DeviceRef } | null {
    const trace = this.trace.value;
    const client = trace?.file.client.value;
    if (!trace?.device || !client) return null;
    return { client, target: { part: trace.partIndex, device: trace.device.device } };
  }

  /** What Escape does, one thing at a time. */
  escape(): void {
    const { search, range } = this.linked;
    if (this.plot.peek()?.cancelDrag()) return;
    if (search.peek() !== "") search.value = "";
    else if (this.subject.peek() !== null) this.subject.value = null;
    else if (this.selected.peek() !== null) this.select(null);
    else range.value = null;
  }

  /** Puts the selected block, as text, on the clipboard. */
  async copySelection(): Promise<boolean> {
    const detail = this.subject.peek() ?? this.selected.peek();
    if (detail === null) return false;
    const done = await copyText(detail.copy);
    this.spoken.value = done ? "Copied" : "The clipboard is not open to this page";
    return done;
  }

  /** Puts a link to what is on screen on the clipboard. */
  async copyLink(): Promise<void> {
    const done = await copyText(this.#host.link(this.address.state()));
    this.spoken.value = done ? "Link copied" : "The clipboard is not open to this page";
  }

  focusSearch(): void {
    this.#host.focusSearch();
  }

  askForFiles(): void {
    this.#host.askForFiles();
  }

  /** Selects what is drawn at a point of the timeline, and puts the time cursor there. */
  async selectAt(x: number, y: number): Promise<void> {
    const plot = this.plot.peek();
    if (plot) void this.workspace.peek()?.cursorAt(plot.placeAt(x, y).x);
    this.select((await plot?.blockAt(x, y)) ?? null);
  }

  /** Shows the block under a point as large as it is in time; everything where there is none. */
  async fitAt(x: number, y: number): Promise<void> {
    const plot = this.plot.peek();
    const detail = (await plot?.blockAt(x, y)) ?? null;
    const kind = this.shown.peek()?.axis.kind;
    const span = detail?.spans.find((candidate) => candidate.kind === kind);
    plot?.act((view) => (span ? view.fitRange(span.x0, span.x1) : view.fit()));
  }

  /** Selects the block that a reference names; false when there is none. */
  async selectReference(reference: string): Promise<boolean> {
    const focus = this.focus.peek();
    const detail = (await focus?.file.client.peek()?.find(focus.part, reference)) ?? null;
    if (detail === null || focus === null || this.focus.peek() !== focus) return false;
    if (detail.device !== this.trace.peek()?.device?.device) this.look(focus, detail.device);
    this.select(detail);
    return true;
  }

  report(failure: Failure): void {
    this.notice.value = failure;
    this.#events.failed(null, failure);
  }

  /** The browser gives no canvas that Rust can draw on. The numbers are still there. */
  cannotDraw(error: unknown): void {
    this.drawingFailure.value = failureOf(error);
    this.#events.failed(null, this.drawingFailure.value);
  }

  /** Makes a canvas before there is something to draw. */
  prepareCanvas(): void {
    if (!this.#ended && this.run.peek() === null) this.surfaces.prepare();
  }

  /** On other canvases, where a context was lost or none could be had. */
  drawAgain(): void {
    this.address.keep();
    this.drawingFailure.value = null;
    this.canvas.value += 1;
  }

  destroy(): void {
    this.#ended = true;
    this.workspace.peek()?.destroy();
    for (const stop of this.#stop) stop();
    this.#loader.end();
    this.surfaces.destroy();
    this.pool.destroy();
    this.coordinator.destroy();
  }

  /** The files that are open, for `stats()`. */
  files(): RankFile[] {
    return this.run.peek()?.files ?? [];
  }

  #ready(file: RankFile): void {
    // The first that is ready is shown while the others load.
    if (this.focus.peek() === null)
      this.look({ file, part: 0 }, this.address.wished.device ?? null);
    void this.loadViews();
    this.#events.loaded(file);
  }

  #hovered(): Hit | null {
    const hover = this.plot.value?.hover.value;
    return hover && !hover.stale ? hover.hit : null;
  }
}
