// The state of one viewer: the run, what is looked at, what is selected. Components read its signals and call its
// methods; nothing here knows of the DOM's shape.

import { batch, computed, effect, type Signal, signal } from "@preact/signals";
import { Coordinator } from "./client/coordinator.js";
import { RankFile, type Source } from "./client/rank-file.js";
import { RankPool } from "./client/rank-pool.js";
import { Modules } from "./client/wasm.js";
import type { AxisKind, BlockDetail, DeviceSummary, Failure, Hit, Part } from "./generated/protocol.js";
import { copyText } from "./host/clipboard.js";
import type { Shown, TimelinePlot } from "./plot/timeline-plot.js";
import type { Theme, ViewState } from "./view-state.js";

/** A drop. */
export interface Run {
  title: string;
  countText: string;
  files: RankFile[];
}

/** One row of the rail: a file, or one of the snapshots in it. */
export interface Row {
  file: RankFile;
  part: number;
  label: string;
}

/** What the user looks at; `device` is null until one is chosen. */
export interface Focus {
  file: RankFile;
  part: number;
  device: number | null;
}

/** The focused trace, once its file is read. */
export interface Trace {
  file: RankFile;
  partIndex: number;
  part: Part;
  device: DeviceSummary | null;
}

export interface SessionEvents {
  progress(file: RankFile): void;
  loaded(file: RankFile): void;
  selected(detail: BlockDetail | null): void;
  failed(path: string | null, failure: Failure): void;
}

function rowsOf(file: RankFile): Row[] {
  const load = file.load.value;
  const parts = load.state === "ready" ? load.loaded.parts : [];
  if (parts.length < 2) return [{ file, part: 0, label: file.planned.label }];
  return parts.map(({ name }, part) => ({ file, part, label: name }));
}

const failureOf = (error: unknown): Failure =>
  typeof error === "object" && error !== null && "message" in error
    ? { id: null, message: String(error.message), hint: null }
    : { id: null, message: String(error), hint: null };

export class Session {
  readonly run: Signal<Run | null> = signal(null);
  readonly focus: Signal<Focus | null> = signal(null);
  readonly axis: Signal<AxisKind> = signal("event");
  readonly theme: Signal<Theme> = signal("auto");
  /** What the system prefers, for `auto`. */
  readonly systemDark: Signal<boolean> = signal(false);
  readonly dark = computed(() => (this.theme.value === "auto" ? this.systemDark.value : this.theme.value === "dark"));
  readonly selected: Signal<BlockDetail | null> = signal(null);
  /** What went wrong that belongs to no row. */
  readonly notice: Signal<Failure | null> = signal(null);
  /** Why there is no picture, whatever the file. */
  readonly drawingFailure: Signal<Failure | null> = signal(null);
  /** What a screen reader is told. */
  readonly spoken: Signal<string> = signal("");
  readonly plot: Signal<TimelinePlot | null> = signal(null);
  readonly sheetOpen: Signal<boolean> = signal(false);
  /** Files are being dragged over the page. */
  readonly dropping: Signal<boolean> = signal(false);

  readonly rows = computed(() => this.run.value?.files.flatMap(rowsOf) ?? []);
  readonly hovered = computed(() => this.#hovered());
  readonly trace = computed(() => this.#trace());
  readonly shown = computed(() => this.#shown());

  readonly modules = new Modules();
  readonly #events: SessionEvents;
  readonly #pool: RankPool;
  readonly #coordinator: Coordinator;
  readonly #stop: (() => void)[];
  /** What a link or a script asked for and the files so far have not offered. */
  #wish: ViewState = {};
  #loads = 0;

  constructor(events: SessionEvents) {
    this.#events = events;
    this.#coordinator = new Coordinator(this.modules);
    this.#pool = new RankPool(this.modules, {
      progress: (file) => events.progress(file),
      ready: (file) => this.#ready(file),
      failed: (file, failure) => events.failed(file.path, failure),
      refused: (failure) => this.report(failure),
    });
    this.#stop = [
      effect(() => this.plot.value?.setTheme(this.dark.value)),
      effect(() => this.plot.value?.show(this.shown.value)),
      effect(() => {
        const trace = this.trace.value;
        if (trace) this.spoken.value = [trace.file.path, trace.device?.peakText].join(", ");
      }),
      effect(() => {
        if (this.plot.value && this.shown.value?.client) this.#grant();
      }),
    ];
  }

  /** Opens these in place of what is open. Settled when each is read or refused. */
  async open(sources: Source[] | Promise<Source[]>, title?: string): Promise<void> {
    this.#loads += 1;
    const load = this.#loads;
    try {
      const from = await sources;
      if (from.length === 0) throw new Error("There is no snapshot in what was opened.");
      const planned = await this.#coordinator.plan(from.map(({ path, bytes }) => ({ path, bytes })));
      if (load !== this.#loads) return;
      const files = planned.rows.flatMap((row) => {
        const source = from[row.file];
        return source ? [new RankFile(source, row)] : [];
      });
      this.#start({ title: title ?? planned.title, countText: planned.countText, files });
      await Promise.all(files.map(settled));
    } catch (error) {
      this.report(failureOf(error));
    }
  }

  /** Looks at a row. */
  look(row: { file: RankFile; part: number }, device: number | null = null): void {
    this.select(null);
    this.focus.value = { file: row.file, part: row.part, device };
    this.#pool.focus(row.file);
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
    if (detail === null && this.selected.peek() === null) return;
    this.selected.value = detail;
    this.plot.peek()?.setSelected(detail);
    this.spoken.value = detail ? `Selected ${detail.bytes.text}, ${detail.address}` : "Nothing selected";
    this.#events.selected(detail);
  }

  /** What Escape does, one thing at a time. */
  escape(): void {
    if (this.plot.peek()?.cancelDrag()) return;
    this.select(null);
  }

  /** Puts the selected block, as text, on the clipboard. */
  async copySelection(): Promise<boolean> {
    const detail = this.selected.peek();
    if (detail === null) return false;
    const done = await copyText(detail.copy);
    this.spoken.value = done ? "Copied" : "The clipboard is not open to this page";
    return done;
  }

  /** Selects what is drawn at a point. */
  async selectAt(x: number, y: number): Promise<void> {
    this.select((await this.plot.peek()?.blockAt(x, y)) ?? null);
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

  /** The WebAssembly did not come. */
  cannotStart(error: unknown): void {
    this.report(failureOf(error));
  }

  state(): ViewState {
    const shown = this.shown.value;
    const range = this.plot.value?.range.value;
    const sel = this.selected.value?.reference;
    return {
      v: 1,
      view: "timeline",
      ...(this.focus.value && { path: this.focus.value.file.path }),
      ...(shown && { device: shown.target.device, axis: shown.axis.kind }),
      ...(range && { x0: range.x0, x1: range.x1 }),
      ...(sel !== undefined && { sel }),
      theme: this.theme.value,
    };
  }

  /** Goes to a state; what the open files do not offer yet is kept until they do. */
  wish(state: ViewState): void {
    if (state.theme) this.theme.value = state.theme;
    if (state.axis) this.axis.value = state.axis;
    this.#wish = { ...state };
    const file = this.run.peek()?.files.find(({ path }) => path === state.path);
    const focus = this.focus.peek();
    if (file) this.look({ file, part: 0 }, state.device ?? null);
    else if (focus && state.path === undefined && state.device !== undefined) this.look(focus, state.device);
    if (this.plot.peek() && this.shown.peek()?.client) this.#grant();
  }

  destroy(): void {
    for (const stop of this.#stop) stop();
    this.#loads += 1;
    this.#pool.destroy();
    this.#coordinator.destroy();
  }

  /** The files that are open, for `stats()`. */
  files(): RankFile[] {
    return this.run.peek()?.files ?? [];
  }

  #start(run: Run): void {
    this.#pool.clear();
    batch(() => {
      this.notice.value = null;
      this.selected.value = null;
      this.focus.value = null;
      this.run.value = run;
    });
    this.#pool.open(run.files);
    const wished = run.files.find(({ path }) => path === this.#wish.path);
    const only = run.files.length === 1 ? run.files[0] : undefined;
    const file = wished ?? only;
    if (file) this.look({ file, part: 0 }, this.#wish.device ?? null);
  }

  #ready(file: RankFile): void {
    // The first that is ready is shown while the others load.
    if (this.focus.peek() === null) this.look({ file, part: 0 }, this.#wish.device ?? null);
    this.#events.loaded(file);
  }

  /** Gives a link what it asked for, once there is a view to give it in. */
  #grant(): void {
    const { path, x0, x1, sel } = this.#wish;
    const shown = this.shown.peek();
    if (path !== undefined && path !== shown?.file.path) return;
    this.#wish = {};
    if (x0 !== undefined && x1 !== undefined && x0 < x1) this.plot.peek()?.setRange({ x0, x1 });
    if (sel !== undefined) void this.selectReference(sel);
  }

  #hovered(): Hit | null {
    const hover = this.plot.value?.hover.value;
    return hover && !hover.stale ? hover.hit : null;
  }

  #trace(): Trace | null {
    const focus = this.focus.value;
    const load = focus?.file.load.value;
    if (!focus || load?.state !== "ready") return null;
    const part = load.loaded.parts[focus.part];
    if (!part) return null;
    const wanted = part.devices.find(({ device }) => device === focus.device);
    const device = wanted ?? part.devices.find(({ device }) => device === part.defaultDevice) ?? null;
    return { file: focus.file, partIndex: focus.part, part, device };
  }

  #shown(): Shown | null {
    const trace = this.trace.value;
    const device = trace?.device;
    if (!trace || !device || device.note !== null) return null;
    const axis = device.axes.find(({ kind }) => kind === this.axis.value) ?? device.axes[0];
    if (!axis) return null;
    const target = { part: trace.partIndex, device: device.device };
    return { file: trace.file, client: trace.file.client.value, target, device, axis };
  }
}

/** Settled when the file is read or refused. */
function settled(file: RankFile): Promise<void> {
  return new Promise((resolve) => {
    const stop = file.load.subscribe(() => {
      if (file.settled) {
        resolve();
        queueMicrotask(() => stop());
      }
    });
  });
}
