import { signal } from "@preact/signals";
import { beforeEach, expect, test, vi } from "vitest";
import { FakeWorker, fileOf, traceOf } from "../test/fake-workers.js";
import { RankClient } from "./client/rank-client.js";
import type { RankFile } from "./client/rank-file.js";
import { resource } from "./client/resource.js";
import { Filters } from "./filters.js";
import type { Answer, Query } from "./generated/protocol.js";
import { Selection, type SelectionOwners } from "./selection.js";
import { Status } from "./status.js";
import { ViewSelection } from "./view-selection.js";

/** What the engine answers: slot `n + 1` is after event `n`. */
function answerTo(query: Query): Answer {
  if ("eventAt" in query) return { eventAt: Math.floor(query.eventAt.slot) - 1 };
  if ("stateAt" in query) return { stateAt: { event: query.stateAt.event } } as Answer;
  throw new Error(`no answer to ${JSON.stringify(query)}`);
}

let worker: FakeWorker;
let file: RankFile;
let viewSelection: ViewSelection;
let selection: Selection;
let answered: number;

/** Answers requests in their order, at most `most`, until none waits. */
async function answer(most = Number.POSITIVE_INFINITY): Promise<void> {
  for (let left = most; left > 0 && answered < worker.sent.length; ) {
    const message = worker.sent[answered];
    answered += 1;
    if (message?.kind !== "ask" || !("view" in message.request)) continue;
    const { id, query } = message.request.view;
    worker.reply({ kind: "view", id, answer: answerTo(query) });
    left -= 1;
    await new Promise((done) => setTimeout(done));
  }
}

beforeEach(() => {
  vi.stubGlobal("navigator", {});
  worker = new FakeWorker(undefined);
  answered = 0;
  file = fileOf("a.pickle");
  const events = { progress: vi.fn(), loaded: vi.fn(), failed: vi.fn() };
  const client = new RankClient(
    worker,
    file.source,
    { events: null, memory: null },
    { ...events, crashed: vi.fn(), refused: vi.fn() },
  );
  file.client.value = client;
  file.load.value = { state: "ready", loaded: traceOf(100) };
  viewSelection = new ViewSelection();
  const owners = {
    runs: {},
    viewSelection,
    filters: new Filters(viewSelection.search),
    plots: { timeline: signal(null) },
    status: new Status(() => undefined),
  };
  selection = new Selection(owners as unknown as SelectionOwners, () => undefined);
  selection.focus.value = { file, part: 0, device: 0 };
});

/** The pane of the state at the time cursor. */
const pane = () =>
  resource(selection, "stateAt", () => {
    const event = viewSelection.cursor.value;
    return event === null ? null : { stateAt: { event } };
  });

// The second click of a double click asked for a whole state, which cancelled the pane's.
test("a double click shows the state at the cursor", async () => {
  const { value, waiting } = pane();
  void selection.cursorAt(6.2);
  await answer(1);
  void selection.cursorAt(6.4);
  await answer();
  expect(viewSelection.cursor.value).toBe(5);
  expect([value.value?.event, waiting.value]).toEqual([5, false]);
});

test("a click while the state is awaited leaves its query alone", async () => {
  const { value, waiting } = pane();
  viewSelection.cursor.value = 5;
  const click = selection.cursorAt(6.4);
  await answer();
  await click;
  expect(viewSelection.cursor.value).toBe(5);
  expect([value.value?.event, waiting.value]).toEqual([5, false]);
});

test.each(["a", "b"] as const)("moving %s leaves the query of the state alone", async (end) => {
  const { value, waiting } = pane();
  viewSelection.cursor.value = 5;
  const moved = selection.endAt(end, 31);
  await answer();
  await moved;
  expect(viewSelection.ends.value).toEqual({ a: null, b: null, [end]: 30 });
  expect([value.value?.event, waiting.value]).toEqual([5, false]);
});

test("of two clicks the later one counts", async () => {
  const clicks = [selection.cursorAt(10), selection.cursorAt(20)];
  await answer();
  await Promise.all(clicks);
  expect(viewSelection.cursor.value).toBe(19);
});

test("an answer about a trace that has lost the focus is dropped", async () => {
  const click = selection.cursorAt(10);
  selection.focus.value = { file, part: 0, device: null };
  await answer();
  await click;
  expect(viewSelection.cursor.value).toBeNull();
});
