import { signal } from "@preact/signals";
import { beforeEach, expect, test, vi } from "vitest";
import { Address, type AddressOwners } from "./address.js";
import type { Range } from "./client/rank-client.js";
import type { RankFile } from "./client/rank-file.js";
import { Filters } from "./filters.js";
import { Navigation } from "./navigation.js";
import type { DrawableTrace } from "./plot/timeline-plot.js";
import type { Focus } from "./run.js";
import { Status } from "./status.js";
import { GIB, ViewSelection } from "./view-selection.js";
import type { Theme, ViewState } from "./view-state.js";

const fileOf = (path: string) => ({ path }) as RankFile;
const A = fileOf("a.pickle");
const B = fileOf("b.pickle");

const traceOf = (file: RankFile) =>
  ({
    file,
    client: {},
    target: { part: 0, device: 0 },
    axis: { kind: "event" },
  }) as unknown as DrawableTrace;

class FakePlot {
  readonly range = signal<Range | null>({ x0: 0, x1: 100 });
  readonly setRange = vi.fn((range: Range) => {
    this.range.value = range;
  });
}

/** The owners of one viewer, without workers and canvases. */
function fakeOwners() {
  const plot = new FakePlot();
  const viewSelection = new ViewSelection();
  const focus = signal<Focus | null>(null);
  const visibleTrace = signal<DrawableTrace | null>(null);
  const selection = {
    focus,
    axis: signal("event"),
    visibleTrace,
    block: signal<{ reference: string } | null>(null),
    look: vi.fn((row: { file: RankFile; part: number }, device: number | null) => {
      focus.value = { ...row, device };
      visibleTrace.value = traceOf(row.file);
    }),
    selectReference: vi.fn(async () => true),
  };
  return {
    plot,
    selection,
    runs: {
      run: signal({ title: "", countText: "", files: [A, B], skipped: [], skippedText: null }),
    },
    viewSelection,
    filters: new Filters(viewSelection.search),
    navigation: new Navigation(new Status(() => undefined)),
    plots: { timeline: signal<FakePlot | null>(plot) },
    appearance: { theme: signal<Theme>("auto") },
  };
}

let owners: ReturnType<typeof fakeOwners>;
let showRange: ReturnType<typeof vi.fn<() => void>>;
let address: Address;

beforeEach(() => {
  vi.stubGlobal("navigator", {});
  owners = fakeOwners();
  showRange = vi.fn();
  address = new Address(owners as unknown as AddressOwners, showRange);
});

const FULL: ViewState = {
  v: 1,
  view: "flame",
  sheet: "events",
  tracks: "segments",
  path: "b.pickle",
  device: 0,
  axis: "event",
  x0: 10,
  x1: 20,
  at: 15,
  range: "event:11:12",
  markers: "3,5",
  rulers: "x:event:1:2:3:4",
  capacity: 80,
  find: "forward",
  filter: '"site:gpt.py:43 forward" step:3',
  color: "stack",
  a: "a.pickle",
  theme: "dark",
};

test("a state that is applied is read back", () => {
  address.go(FULL);
  expect(address.state()).toEqual(FULL);
});

test("defaults are left out of the state", () => {
  expect(address.state()).toEqual({
    v: 1,
    view: "timeline",
    theme: "auto",
    x0: 0,
    x1: 100,
  });
});

test("a place has no markers, rulers and GPU memory", () => {
  address.go(FULL);
  const { markers, rulers, capacity, ...place } = FULL;
  expect(address.place()).toEqual(place);
});

test("a state of a file that is not open stays pending until its trace is visible", () => {
  owners.runs.run.value = { title: "", countText: "", files: [A], skipped: [], skippedText: null };
  owners.selection.look({ file: A, part: 0 }, null);
  address.go(FULL);
  expect(owners.plot.setRange).not.toHaveBeenCalled();
  expect(owners.viewSelection.color.value).toBe("stack");
  expect(address.pendingState.path).toBe("b.pickle");
  owners.selection.visibleTrace.value = traceOf(B);
  address.applyPending();
  expect(owners.plot.setRange).toHaveBeenCalledWith({ x0: 10, x1: 20 });
  expect(owners.viewSelection.cursor.value).toBe(15);
  expect(address.pendingState).toEqual({});
});

test("a pending state is applied only once", () => {
  address.go(FULL);
  owners.viewSelection.cursor.value = 1;
  address.applyPending();
  expect(owners.viewSelection.cursor.value).toBe(1);
});

test("a state without a path moves the focused file to the device", () => {
  owners.selection.look({ file: A, part: 1 }, 0);
  address.go({ device: 3 });
  expect(owners.selection.look).toHaveBeenLastCalledWith({ file: A, part: 1, device: 0 }, 3);
});

test("a block wins over the range in the details", () => {
  address.go({ ...FULL, sel: "0:0x1000@3" });
  expect(owners.selection.selectReference).toHaveBeenCalledWith("0:0x1000@3");
  expect(showRange).not.toHaveBeenCalled();
  address.go(FULL);
  expect(showRange).toHaveBeenCalledOnce();
});

test("an empty or reversed visible range is ignored", () => {
  owners.selection.look({ file: A, part: 0 }, null);
  address.go({ x0: 5, x1: 5 });
  address.go({ x0: 6, x1: 5 });
  expect(owners.plot.setRange).not.toHaveBeenCalled();
});

test("restore clears what the place lacks and keeps markers, rulers and GPU memory", () => {
  address.go(FULL);
  address.restore({ v: 1, view: "timeline", path: "b.pickle" });
  const { markers, rulers, capacity } = FULL;
  expect(address.state()).toMatchObject({ view: "timeline", markers, rulers, capacity });
  for (const field of ["at", "range", "find", "filter", "color", "a"])
    expect(address.state()).not.toHaveProperty(field);
});

test("savePending keeps the state of the visible file only", () => {
  owners.selection.look({ file: A, part: 0 }, null);
  owners.viewSelection.capacity.value = 2 * GIB;
  address.savePending(B);
  expect(address.pendingState).toEqual({});
  address.savePending(A);
  expect(address.pendingState).toMatchObject({ path: "a.pickle", capacity: 2 });
});

test("side A of a comparison is named only while its file is open", () => {
  owners.viewSelection.pinned.value = { path: "gone.pickle", part: 0 };
  expect(address.place()).not.toHaveProperty("a");
  owners.viewSelection.pinned.value = { path: "a.pickle", part: 2 };
  expect(address.place()).toMatchObject({ a: "a.pickle", aPart: 2 });
});

test("places past the ends of the trace move to its ends", () => {
  const device = {
    events: { raw: "100" },
    axes: [
      { kind: "event", extent: 101 },
      { kind: "time", extent: 5000 },
    ],
  };
  owners.selection.look.mockImplementation((row, given) => {
    owners.selection.focus.value = { ...row, device: given };
    owners.selection.visibleTrace.value = { ...traceOf(row.file), device } as DrawableTrace;
  });
  const { viewSelection } = owners;
  address.go({
    ...FULL,
    at: 99_999,
    range: "time:400:9000000",
    markers: "3,500,600",
    rulers: "x:event:90:4000:0:0",
  });
  expect(viewSelection.cursor.value).toBe(99);
  expect(viewSelection.range.value).toEqual({ axis: "time", x0: 400, x1: 5000 });
  expect(viewSelection.markers.value).toEqual([3, 99]);
  expect(viewSelection.rulers.value).toMatchObject([{ x0: 90, x1: 101 }]);

  // A range that lies past the end is none.
  viewSelection.range.value = null;
  address.go({ ...FULL, range: "event:5000:6000" });
  expect(viewSelection.range.value).toBeNull();
});
