// The view state of a viewer as a value. Links, scripts and undo read it and restore it.

import { computed, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import type { RankFile } from "./client/rank-file.js";
import { termsOf, termsText } from "./filters.js";
import type { AxisKind } from "./generated/protocol.js";
import { FIRST_TRACKS } from "./places/index.js";
import type { Uses } from "./stores.js";
import { DEFAULT_COLOR, DEFAULT_GROUP, GIB } from "./view-selection.js";
import {
  cellOf,
  cellText,
  codePlaceOf,
  codePlaceText,
  markersOf,
  pinsOf,
  pinsText,
  rangeOf,
  rangeText,
  rulersOf,
  rulersText,
  tracksOf,
  type ViewState,
} from "./view-state.js";

export type AddressOwners = Uses<
  "runs" | "selection" | "viewSelection" | "filters" | "navigation" | "plots" | "appearance"
>;

export class Address {
  readonly #owners: AddressOwners;
  readonly #showRange: () => void;
  /** The part of a requested state that the open files cannot show yet. */
  readonly #pending: Signal<ViewState> = signal({});
  /** The file that a link names while no run is open; null without such a link. */
  readonly wanted: ReadonlySignal<string | null> = computed(() =>
    this.#owners.runs.run.value === null ? (this.#pending.value.path ?? null) : null,
  );

  /** `showRange` puts the marked range into the details, once the views are there. */
  constructor(owners: AddressOwners, showRange: () => void) {
    this.#owners = owners;
    this.#showRange = showRange;
  }

  get pendingState(): ViewState {
    return this.#pending.peek();
  }

  /** The whole view state, with markers, rulers and GPU memory. */
  state(): ViewState {
    const { markers, rulers, capacity } = this.#owners.viewSelection;
    return {
      ...this.place(),
      ...(markers.value.length > 0 && { markers: markers.value.join(",") }),
      ...(rulers.value.length > 0 && { rulers: rulersText(rulers.value) }),
      ...(capacity.value !== null && { capacity: capacity.value / GIB }),
    };
  }

  /** The view state without markers, rulers and GPU memory, which undo leaves as they are. */
  place(): ViewState {
    const { runs, selection, navigation, viewSelection, filters, plots, appearance } = this.#owners;
    const terms = termsText(filters.terms.value);
    const { cursor, search, pinned, range: marked } = viewSelection;
    const whatIf = viewSelection.scenario.value;
    const trace = selection.visibleTrace.value;
    const range = plots.timeline.value?.range.value;
    const sel = selection.block.value?.reference;
    const focus = selection.focus.value;
    const a = runs.run.value?.files.some(({ path }) => path === pinned.value?.path)
      ? pinned.value
      : null;
    return {
      v: 1,
      view: navigation.view.value,
      ...this.#below(),
      ...(cursor.value !== null && { at: cursor.value }),
      ...this.#ends(),
      ...(marked.value && { range: rangeText(marked.value) }),
      ...(whatIf !== "" && { whatIf }),
      ...(viewSelection.leversUnfolded.value && { levers: "all" as const }),
      ...(search.value !== "" && { find: search.value }),
      ...(terms !== "" && { filter: terms }),
      ...this.#look(),
      ...(focus && { path: focus.file.path }),
      ...(focus?.part && { part: focus.part }),
      ...(a && { a: a.path, ...(a.part !== 0 && { aPart: a.part }) }),
      ...this.#ranks(),
      ...(trace && { device: trace.target.device, axis: trace.axis.kind }),
      ...(range && { x0: range.x0, x1: range.x1 }),
      ...(sel !== undefined && { sel }),
      theme: appearance.theme.value,
    };
  }

  /** What is below the timeline, where it is not the usual. */
  #below(): ViewState {
    const { sheet, tracks } = this.#owners.navigation;
    return {
      ...(sheet.value !== null && { sheet: sheet.value }),
      ...(tracks.value !== FIRST_TRACKS && { tracks: tracks.value.join(",") || "none" }),
    };
  }

  #ends(): ViewState {
    const { a, b } = this.#owners.viewSelection.ends.value;
    return { ...(a !== null && { from: a }), ...(b !== null && { to: b }) };
  }

  /** Pinned ranks, and the cell in the matrix. */
  #ranks(): ViewState {
    const { pins, cell, rankFilter, iteration, sizes, bySteps } = this.#owners.viewSelection;
    return {
      ...(rankFilter.value !== "" && { ranks: rankFilter.value }),
      ...(iteration.value !== null && { iteration: iteration.value }),
      ...(sizes.value !== "" && { sizes: sizes.value }),
      ...(bySteps.value && { rows: "steps" as const }),
      ...(pins.value.length > 0 && { pins: pinsText(pins.value) }),
      ...(cell.value && { cell: cellText(cell.value) }),
    };
  }

  /** The look of the plots, where it is not the usual one. */
  #look(): ViewState {
    const { color, group, mapColor, peak, source } = this.#owners.viewSelection;
    return {
      ...(source.value && { source: codePlaceText(source.value) }),
      ...(peak.value > 0 && { peak: peak.value + 1 }),
      ...(mapColor.value === "change" && { mapColor: mapColor.value }),
      ...(color.value !== DEFAULT_COLOR && { color: color.value }),
      ...(group.value !== DEFAULT_GROUP && { group: group.value }),
    };
  }

  /** Restores an earlier place. Fields that it lacks are cleared. */
  restore(place: ViewState): void {
    const { viewSelection, navigation } = this.#owners;
    const { search, color, group, cursor, pinned, range, scenario } = viewSelection;
    range.value = null;
    viewSelection.clearEnds();
    viewSelection.mapColor.value = "blocks";
    viewSelection.pins.value = [];
    viewSelection.cell.value = null;
    viewSelection.peak.value = 0;
    viewSelection.source.value = null;
    pinned.value = null;
    search.value = "";
    this.#owners.filters.clear();
    scenario.value = "";
    viewSelection.leversUnfolded.value = false;
    navigation.sheet.value = null;
    navigation.tracks.value = FIRST_TRACKS;
    color.value = DEFAULT_COLOR;
    group.value = DEFAULT_GROUP;
    cursor.value = null;
    this.go(place);
  }

  /** Applies a state. Fields that the open files cannot show yet are kept pending. */
  go(state: ViewState): void {
    const { runs, selection, plots } = this.#owners;
    this.#choose(state);
    this.#pending.value = { ...state };
    const file = runs.run.peek()?.files.find(({ path }) => path === state.path);
    const focus = selection.focus.peek();
    if (file) selection.look({ file, part: state.part ?? 0 }, state.device ?? null);
    else if (focus && state.path === undefined && state.device !== undefined)
      selection.look(focus, state.device);
    if (plots.timeline.peek() && selection.visibleTrace.peek()?.client) this.applyPending();
  }

  /** Keeps the current state pending, because its file's worker or canvas is about to go. */
  savePending(file?: RankFile): void {
    const trace = this.#owners.selection.visibleTrace.peek();
    if (trace?.client && (file === undefined || file === trace.file))
      this.#pending.value = this.state();
  }

  /** Applies the pending state, once the trace that it names is visible. */
  applyPending(): void {
    const { selection, viewSelection, plots } = this.#owners;
    const { path, x0, x1, sel, at, range, markers, rulers } = this.#pending.peek();
    if (path !== undefined && path !== selection.visibleTrace.peek()?.file.path) return;
    const pending = this.#pending.peek();
    this.#pending.value = {};
    if (x0 !== undefined && x1 !== undefined && x0 < x1)
      plots.timeline.peek()?.setRange({ x0, x1 });
    if (sel !== undefined) void selection.selectReference(sel);
    // A link may be of a longer recording.
    const within = this.#limits();
    if (at !== undefined) viewSelection.cursor.value = within.event(at);
    this.#applyMoments(pending, within.event);
    if (markers !== undefined)
      viewSelection.markers.value = [...new Set((markersOf(markers) ?? []).map(within.event))];
    if (rulers !== undefined)
      viewSelection.rulers.value = (rulersOf(rulers) ?? []).map((ruler) => ({
        ...ruler,
        ...within.range(ruler),
      }));
    const linked = range === undefined ? undefined : rangeOf(range);
    const marked = linked && { ...linked, ...within.range(linked) };
    if (!marked || marked.x0 >= marked.x1) return;
    viewSelection.range.value = marked;
    if (sel === undefined) this.#showRange();
  }

  #applyMoments(
    { from, to, peak: nth, source: place }: ViewState,
    within: (event: number) => number,
  ): void {
    const { ends, peak, source } = this.#owners.viewSelection;
    if (place !== undefined) source.value = codePlaceOf(place) ?? null;
    if (nth !== undefined) peak.value = Math.max(0, nth - 1);
    if (from !== undefined) ends.value = { ...ends.peek(), a: within(from) };
    if (to !== undefined) ends.value = { ...ends.peek(), b: within(to) };
  }

  /** Moves events and positions past an end of the visible trace to that end. */
  #limits() {
    const device = this.#owners.selection.visibleTrace.peek()?.device;
    const last = Number(device?.events.raw ?? Number.POSITIVE_INFINITY) - 1;
    const extentOf = (axis: AxisKind) =>
      device?.axes.find(({ kind }) => kind === axis)?.extent ?? Number.POSITIVE_INFINITY;
    const clamp = (value: number, most: number) => Math.max(0, Math.min(most, value));
    return {
      event: (event: number) => Math.max(-1, Math.min(last, event)),
      range: ({ axis, x0, x1 }: { axis: AxisKind; x0: number; x1: number }) => {
        const most = extentOf(axis);
        return { x0: clamp(x0, most), x1: clamp(x1, most) };
      },
    };
  }

  /** Applies the fields that do not depend on a file. */
  #choose(state: ViewState): void {
    const { selection, viewSelection, filters, navigation, appearance } = this.#owners;
    if (state.theme) appearance.theme.value = state.theme;
    if (state.axis) selection.axis.value = state.axis;
    if (state.view) navigation.show(state.view);
    if (state.sheet) navigation.sheet.value = state.sheet === "none" ? null : state.sheet;
    if (state.tracks !== undefined)
      navigation.tracks.value = tracksOf(state.tracks) ?? navigation.tracks.peek();
    if (state.find !== undefined) viewSelection.search.value = state.find;
    if (state.filter !== undefined) filters.set(termsOf(state.filter));
    if (state.whatIf !== undefined) viewSelection.scenario.value = state.whatIf;
    if (state.levers !== undefined) viewSelection.leversUnfolded.value = true;
    this.#chooseLook(state);
    if (state.capacity !== undefined) viewSelection.capacity.value = state.capacity * GIB;
    this.#chooseRanks(state);
    if (state.a !== undefined)
      viewSelection.pinned.value = { path: state.a, part: state.aPart ?? 0 };
  }

  #chooseLook({ color, group, mapColor }: ViewState): void {
    const { viewSelection } = this.#owners;
    if (color) viewSelection.color.value = color;
    if (group) viewSelection.group.value = group;
    if (mapColor) viewSelection.mapColor.value = mapColor;
  }

  #chooseRanks({ pins: list, cell: place, ...state }: ViewState): void {
    const { pins, cell, rankFilter, iteration, sizes, bySteps } = this.#owners.viewSelection;
    rankFilter.value = state.ranks ?? rankFilter.peek();
    iteration.value = state.iteration ?? iteration.peek();
    sizes.value = state.sizes ?? sizes.peek();
    bySteps.value = state.rows === "steps" || bySteps.peek();
    pins.value = pinsOf(list ?? "") ?? pins.peek();
    cell.value = cellOf(place ?? "") ?? cell.peek();
  }
}
