// Where a session is, as a value, and how it goes to another place: links, scripts and the way back
// use the same one.

import type { RankFile } from "./client/rank-file.js";
import { GIB } from "./linked.js";
import type { Session } from "./session.js";
import {
  markersOf,
  rangeOf,
  rangeText,
  rulersOf,
  rulersText,
  type ViewState,
} from "./view-state.js";

export class Address {
  readonly #session: Session;
  /** What was asked for and the files so far have not offered. */
  #wish: ViewState = {};

  constructor(session: Session) {
    this.#session = session;
  }

  get wished(): ViewState {
    return this.#wish;
  }

  /** What is on screen, and what was put there to stay. */
  state(): ViewState {
    const { markers, rulers, capacity } = this.#session.linked;
    return {
      ...this.place(),
      ...(markers.value.length > 0 && { markers: markers.value.join(",") }),
      ...(rulers.value.length > 0 && { rulers: rulersText(rulers.value) }),
      ...(capacity.value !== null && { capacity: capacity.value / GIB }),
    };
  }

  /**
   * Where one is: the way back leads from one such to another, and leaves markers and the like as
   * they are.
   */
  place(): ViewState {
    const session = this.#session;
    const shown = session.shown.value;
    const range = session.plot.value?.range.value;
    const sel = session.selected.value?.reference;
    const { view, drawer, cursor, search, color, pinned, range: marked } = session.linked;
    const a = session.run.value?.files.some(({ path }) => path === pinned.value?.path)
      ? pinned.value
      : null;
    return {
      v: 1,
      view: view.value,
      drawer: drawer.value ?? "none",
      ...(cursor.value !== null && { at: cursor.value }),
      ...(marked.value && { range: rangeText(marked.value) }),
      ...(search.value !== "" && { find: search.value }),
      ...(color.value !== "stack" && { color: color.value }),
      ...(session.focus.value && { path: session.focus.value.file.path }),
      ...(session.focus.value?.part && { part: session.focus.value.part }),
      ...(a && { a: a.path, ...(a.part !== 0 && { aPart: a.part }) }),
      ...(shown && { device: shown.target.device, axis: shown.axis.kind }),
      ...(range && { x0: range.x0, x1: range.x1 }),
      ...(sel !== undefined && { sel }),
      theme: session.theme.value,
    };
  }

  /** Goes to where the session was: what the state does not say was not there. */
  back(state: ViewState): void {
    const { search, color, cursor, pinned, range } = this.#session.linked;
    range.value = null;
    pinned.value = null;
    search.value = "";
    color.value = "stack";
    cursor.value = null;
    this.go(state);
  }

  /** Goes to a state; what the open files do not offer yet is kept until they do. */
  go(state: ViewState): void {
    const session = this.#session;
    this.#choose(state);
    this.#wish = { ...state };
    const file = session.run.peek()?.files.find(({ path }) => path === state.path);
    const focus = session.focus.peek();
    if (file) session.look({ file, part: state.part ?? 0 }, state.device ?? null);
    else if (focus && state.path === undefined && state.device !== undefined)
      session.look(focus, state.device);
    if (session.plot.peek() && session.shown.peek()?.client) this.grant();
  }

  /** What is on screen is about to go, of this file or of any, and is wanted when it is back. */
  keep(file?: RankFile): void {
    const shown = this.#session.shown.peek();
    if (shown?.client && (file === undefined || file === shown.file)) this.#wish = this.state();
  }

  /** Gives a link what it asked for, once there is a view to give it in. */
  grant(): void {
    const session = this.#session;
    const { path, x0, x1, sel, at, range, markers, rulers } = this.#wish;
    const shown = session.shown.peek();
    if (path !== undefined && path !== shown?.file.path) return;
    this.#wish = {};
    if (x0 !== undefined && x1 !== undefined && x0 < x1) session.plot.peek()?.setRange({ x0, x1 });
    if (sel !== undefined) void session.selectReference(sel);
    const { linked } = session;
    if (at !== undefined) linked.cursor.value = at;
    if (markers !== undefined) linked.markers.value = markersOf(markers) ?? [];
    if (rulers !== undefined) linked.rulers.value = rulersOf(rulers) ?? [];
    const marked = range === undefined ? undefined : rangeOf(range);
    if (marked) linked.range.value = marked;
    if (marked && sel === undefined) void session.workspace.peek()?.showRange();
  }

  /** What holds whatever is open. */
  #choose(state: ViewState): void {
    const { theme, axis, linked } = this.#session;
    if (state.theme) theme.value = state.theme;
    if (state.axis) axis.value = state.axis;
    if (state.view) linked.view.value = state.view;
    if (state.drawer) linked.drawer.value = state.drawer === "none" ? null : state.drawer;
    if (state.find !== undefined) linked.search.value = state.find;
    if (state.color) linked.color.value = state.color;
    if (state.capacity !== undefined) linked.capacity.value = state.capacity * GIB;
    if (state.a !== undefined) linked.pinned.value = { path: state.a, part: state.aPart ?? 0 };
  }
}
