// The owners of one viewer's state over one file, without workers, canvases and a document.

import { signal } from "@preact/signals";
import { vi } from "vitest";
import type { Range } from "../src/client/rank-client.js";
import type { RankFile } from "../src/client/rank-file.js";
import { Filters } from "../src/filters.js";
import type { BlockDetail, Mark } from "../src/generated/protocol.js";
import { Navigation } from "../src/navigation.js";
import { Selection, type SelectionOwners } from "../src/selection.js";
import { Status } from "../src/status.js";
import type { Stores } from "../src/stores.js";
import { ViewSelection } from "../src/view-selection.js";
import { VIEW_SHORTCUTS } from "../src/views/shortcuts.js";
import { Steps } from "../src/views/steps.js";
import type { ViewStores, Workspace } from "../src/views/workspace.js";
import { fileOf, traceOf } from "./fake-workers.js";

/** Events of the trace. */
export const EVENTS = 100;

/** A block that is live from slot 20 to slot 40, on the axis of events. */
export const BLOCK = {
  block: 7,
  reference: "0:0x10@19",
  device: 0,
  address: "0x10",
  bytes: { raw: "1", text: "1 B", exact: "1 byte" },
  spans: [
    { kind: "event", x0: 20, x1: 40 },
    { kind: "time", x0: 200, x1: 400 },
  ],
  copy: "0x10, 1 byte",
} as unknown as BlockDetail;

/** The engine's side of a plot: the calls that shortcuts make. */
const fakeView = () => ({
  goto: vi.fn<(slot: number) => void>(),
  fit: vi.fn<() => void>(),
  fitRange: vi.fn<(x0: number, x1: number) => void>(),
  key: vi.fn<(movement: string, isDown: boolean, time: number) => void>(),
  releaseKeys: vi.fn<() => void>(),
});

/** A plot whose pointer is at slot 30.5, over `BLOCK`. */
export class FakePlot {
  readonly view = fakeView();
  readonly range = signal<Range | null>({ x0: 0, x1: EVENTS });
  readonly hover = signal(null);
  isDragging = false;
  readonly act = (change: (view: never) => void) => change(this.view as never);
  readonly focusPoint = () => ({ x: 1, y: 2 });
  readonly placeAt = () => ({ x: 30.5, y: 0 });
  readonly blockAt = async () => BLOCK;
  readonly hitAt = () => ({ block: BLOCK.block, lit: true });
  readonly setSelected = () => undefined;

  cancelDrag(): boolean {
    const wasDragging = this.isDragging;
    this.isDragging = false;
    return wasDragging;
  }
}

/** Answers queries that keys send. */
const client = {
  view: async (_target: unknown, _kind: string, query: { eventAt?: { slot: number } }) =>
    query.eventAt ? Math.floor(query.eventAt.slot) - 1 : null,
};

function readFile(path: string): RankFile {
  const file = fileOf(path);
  file.load.value = { state: "ready", loaded: traceOf(EVENTS) };
  file.client.value = client as never;
  return file;
}

/** The owners, with the file of rank 1 of four in focus. */
export function fakeStores() {
  const files = [0, 1, 2, 3].map((rank) => readFile(`rank${rank}.pickle`));
  const rows = files.map((file) => ({ file, part: 0, label: file.path }));
  const plot = new FakePlot();
  const plots = { timeline: signal<FakePlot | null>(plot), ruling: signal<"x" | "y" | null>(null) };
  const viewSelection = new ViewSelection();
  const filters = new Filters(viewSelection.search);
  const status = new Status(() => undefined);
  const navigation = new Navigation(status);
  const runs = { run: signal<object | null>({}), rows: signal(rows), pool: { focus: vi.fn() } };
  const host = {
    focusSearch: vi.fn(),
    askForFiles: vi.fn(),
    link: ({ view }: { view?: string }) => `https://example.org/#view=${view}`,
  };
  const selection = new Selection(
    { runs, viewSelection, filters, plots, status } as unknown as SelectionOwners,
    () => undefined,
  );
  const address = { state: () => ({ view: navigation.view.peek() }) };
  const marks = signal<Mark[]>([]);
  const cards = { showDetail: vi.fn(), selectRange: vi.fn() };
  const owners = { runs, selection, viewSelection, filters, navigation, plots, status };
  const minimap = { value: { peek: () => ({ marks: marks.peek() }) } };
  const groups = { place: signal(""), choose: vi.fn() };
  const steps = new Steps({ ...owners, queries: { minimap }, cards, groups } as never);
  const views = {
    steps,
    cards,
    groups,
    queries: {
      cards: signal(null),
      stateAt: { value: signal(null) },
      peak: { value: signal(null) },
    },
    levers: { curve: { value: signal(null) } },
    history: { go: vi.fn() },
    player: { start: vi.fn(), stop: vi.fn() },
    pins: { toggleFocused: vi.fn(), toggle: vi.fn(), isPinned: () => false, rows: signal([]) },
    comparing: { pin: vi.fn() },
  };
  const workspace = signal<Workspace | null>({
    shortcuts: VIEW_SHORTCUTS,
    stores: views as unknown as ViewStores,
  } as Workspace);
  const first = rows[1];
  if (first) selection.begin(first, 0);
  const stores = { ...owners, host, address, workspace } as unknown as Stores;
  return { ...owners, host, workspace, views, marks, plot, rows, stores };
}

export type FakeStores = ReturnType<typeof fakeStores>;

/** An element of a document, by its name, as far as the keyboard asks. */
export class FakeElement extends EventTarget {
  readonly isContentEditable = false;
  readonly name: string;

  constructor(name: string) {
    super();
    this.name = name;
  }

  matches(selectors: string): boolean {
    return selectors.split(", ").includes(this.name);
  }

  /** The root, in which the element's text is selected if the element is `selected`. */
  getRootNode() {
    return { getSelection: () => (this.name === "selected" ? "text" : "") };
  }
}

/** The page's globals. Returns the texts that the clipboard gets. */
export function stubDocument(): string[] {
  const copied: string[] = [];
  const clipboard = { writeText: async (text: string) => void copied.push(text) };
  vi.stubGlobal("navigator", { clipboard });
  vi.stubGlobal("document", { getSelection: () => null });
  vi.stubGlobal("window", new EventTarget());
  vi.stubGlobal("HTMLElement", FakeElement);
  vi.stubGlobal("Node", FakeElement);
  return copied;
}

/** Keys of a keyboard, of which Shift is one. */
export interface KeyInit {
  on?: FakeElement;
  shift?: boolean;
  ctrl?: boolean;
  meta?: boolean;
  alt?: boolean;
  repeat?: boolean;
}

/** Sends a key's event to `target`, and returns the event. */
export function send(
  target: EventTarget,
  type: "keydown" | "keyup",
  key: string,
  init: KeyInit = {},
) {
  const event = Object.assign(new Event(type, { cancelable: true }), {
    key,
    code: /^[a-z]$/i.test(key) ? `Key${key.toUpperCase()}` : key,
    shiftKey: init.shift ?? false,
    ctrlKey: init.ctrl ?? false,
    metaKey: init.meta ?? false,
    altKey: init.alt ?? false,
    repeat: init.repeat ?? false,
  });
  event.composedPath = () => [init.on ?? new FakeElement("canvas")];
  target.dispatchEvent(event);
  return event;
}
