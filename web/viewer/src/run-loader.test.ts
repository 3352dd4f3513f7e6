import { signal } from "@preact/signals";
import { beforeEach, expect, test, vi } from "vitest";
import type { RankFile, Source } from "./client/rank-file.js";
import { CodeStore } from "./code-store.js";
import type { ErrorKind, FileEntry, Quantity } from "./generated/protocol.js";
import { Navigation } from "./navigation.js";
import { type Focus, type Run, rowsOf } from "./run.js";
import { type LoaderOwners, RunLoader } from "./run-loader.js";
import { RunStore } from "./run-store.js";
import { Status } from "./status.js";

const sourceOf = (path: string, searched: boolean): Source => ({
  path,
  bytes: 1,
  from: new Blob(),
  searched,
});

/**
 * Plans as the coordinator does: skipped files and files beside snapshots get no row, and rows keep
 * their number.
 */
const plan = vi.fn(async (files: FileEntry[]) => {
  const rows = files.flatMap(({ path, skipped, closed }, file) => {
    if (skipped || closed || path.endsWith(".vramscope.json")) return [];
    const at = files.findIndex((other) => other.path === path.replace(/pickle$/, "vramscope.json"));
    return { file, rank: null, label: path, group: "", size: "", beside: at < 0 ? null : at };
  });
  const skipped = files.filter((file) => file.skipped && !file.closed).length;
  return {
    title: "run",
    countText: `${rows.length} files`,
    skipped: { raw: String(skipped) } as Quantity,
    skippedText: skipped === 0 ? null : `${skipped} other files skipped`,
    rows,
  };
});

/** The owners of one viewer, without workers. */
function fakeOwners() {
  const run = signal<Run | null>(null);
  const focus = signal<Focus | null>(null);
  const runs = Object.create(RunStore.prototype, {
    run: { value: run },
    dims: { value: signal(null) },
    modules: { value: { compiled: signal(true) } },
    coordinator: { value: { plan } },
    pool: { value: { clear: vi.fn(), open: vi.fn(), renew: vi.fn(), close: vi.fn() } },
  }) as RunStore;
  return {
    runs,
    selection: {
      focus,
      block: signal(null),
      look: vi.fn(({ file }: { file: RankFile }) => {
        focus.value = { file, part: 0, device: null };
      }),
      clear: vi.fn(() => {
        focus.value = null;
      }),
    },
    viewSelection: { reset: vi.fn() },
    status: {
      notice: signal(null),
      viewsFailure: signal(null),
      announce: vi.fn(),
      report: vi.fn(),
    },
    address: { pendingState: {} as { view?: string; path?: string } },
    code: new CodeStore(),
    navigation: new Navigation(new Status(() => undefined)),
  };
}

let owners: ReturnType<typeof fakeOwners>;
let loader: RunLoader;

beforeEach(() => {
  plan.mockClear();
  owners = fakeOwners();
  loader = new RunLoader(owners as unknown as LoaderOwners);
});

const paths = (files: readonly RankFile[] = []) => files.map(({ path }) => path);

/** Opens sources without waiting for their files to be read. */
async function open(sources: Source[]): Promise<Run> {
  void loader.open(sources);
  await vi.waitFor(() => expect(owners.runs.run.value?.files).toHaveLength(sources.length));
  return owners.runs.run.value as Run;
}

/** Refuses a file, as the session does when its worker has. */
function refuse(file: RankFile, kind: ErrorKind): void {
  const failure = { id: null, message: "no", hint: null, file: kind };
  file.load.value = { state: "error", failure, again: false };
  if (file.skipped) loader.skip();
}

const beside = (path: string): Source => ({ ...sourceOf(path, true), from: new Blob([path]) });

test("a file beside a snapshot goes to its row", async () => {
  const json = beside("rank0.vramscope.json");
  void loader.open([json, sourceOf("rank0.pickle", true), sourceOf("rank1.pickle", true)]);
  await vi.waitFor(() => expect(owners.runs.run.value?.files).toHaveLength(2));
  const [rank0, rank1] = owners.runs.run.value?.files ?? [];
  expect([rank0?.source.beside, rank1?.source.beside]).toEqual([json.from, undefined]);
  expect(owners.runs.run.value?.skippedText).toBeNull();
  // One that comes later lets its file be read again, and changes no other.
  const later = beside("rank1.vramscope.json");
  void loader.add([later]);
  await vi.waitFor(() => expect(owners.runs.pool.renew).toHaveBeenCalled());
  expect(owners.runs.pool.renew).toHaveBeenCalledExactlyOnceWith(rank1);
  expect([rank0?.source.beside, rank1?.source.beside]).toEqual([json.from, later.from]);
  expect(owners.runs.run.value?.files).toEqual([rank0, rank1]);
});

test("a file beside a snapshot alone is no run", async () => {
  await loader.open([beside("rank0.vramscope.json")]);
  expect(owners.runs.run.value).toBeNull();
  expect(owners.status.report).toHaveBeenCalledOnce();
});

test("all files get a model's configuration, before or after they are open", async () => {
  const config = { ...sourceOf("config.json", false), from: new Blob(['{"n_embd": 768}']) };
  void loader.open([config, sourceOf("rank0.pickle", false)]);
  await vi.waitFor(() => expect(owners.runs.run.value?.files).toHaveLength(1));
  expect(owners.runs.run.value?.files[0]?.source.dims).toBe('{"n_embd": 768}');
  expect(owners.runs.dims.value?.file).toBe("config.json");
  void loader.add([sourceOf("rank1.pickle", false)]);
  await vi.waitFor(() => expect(owners.runs.run.value?.files).toHaveLength(2));
  const files = owners.runs.run.value?.files ?? [];
  expect(files.map(({ source }) => source.dims)).toEqual(['{"n_embd": 768}', '{"n_embd": 768}']);
  void loader.add([{ ...config, from: new Blob(["{}"]) }]);
  await vi.waitFor(() => expect(owners.runs.pool.renew).toHaveBeenCalledTimes(2));
  expect(files.map(({ source }) => source.dims)).toEqual(["{}", "{}"]);
  expect(owners.runs.run.value?.files).toEqual(files);
  void loader.setDims(null);
  expect(files.map(({ source }) => source.dims)).toEqual([undefined, undefined]);
  // Alone it is about the open run; without one there is nothing to show.
  void loader.open([config]);
  await vi.waitFor(() => expect(files[0]?.source.dims).toBe('{"n_embd": 768}'));
  owners.runs.run.value = null;
  await loader.open([config]);
  expect(owners.status.report).toHaveBeenCalledOnce();
  await loader.add([config, config]);
  expect(owners.status.report).toHaveBeenCalledTimes(2);
});

test("foreign files of a folder leave the run, and their number stays", async () => {
  const sources = ["config.json", "rank0.pickle", "model.pt"].map((path) => sourceOf(path, true));
  const { files } = await open(sources);
  const [config, rank0, model] = files as [RankFile, RankFile, RankFile];
  owners.selection.look({ file: config });
  refuse(config, "no_snapshot");
  refuse(model, "no_snapshot");
  await vi.waitFor(() => expect(owners.runs.run.value?.skippedText).not.toBeNull());
  const run = owners.runs.run.value;
  expect(run?.skippedText).toEqual({ text: "2 other files skipped", value: "2" });
  expect(run?.countText).toBe("1 files");
  expect(run?.files).toEqual([rank0]);
  expect(paths(run?.skipped)).toEqual(["config.json", "model.pt"]);
  expect(files.flatMap(rowsOf).map(({ file }) => file)).toEqual([rank0]);
  // Rows keep their numbers, so more files can be added.
  expect(paths(owners.runs.numbered)).toEqual(["config.json", "rank0.pickle", "model.pt"]);
  expect(rank0.planned.file).toBe(1);
  expect(owners.selection.focus.value).toBeNull();
  // One plan to open, one for both skipped files.
  expect(plan).toHaveBeenCalledTimes(2);
  void loader.add([sourceOf("rank1.pickle", true)]);
  await vi.waitFor(() => expect(owners.runs.run.value?.files).toHaveLength(2));
  expect(plan.mock.lastCall?.[0].map(({ skipped }) => skipped)).toEqual([true, false, true, false]);
});

test("a file that was opened by itself, or that is damaged, keeps its row", async () => {
  const { files } = await open([sourceOf("notes.json", false), sourceOf("rank0.pickle", true)]);
  const [config, rank0] = files as [RankFile, RankFile];
  refuse(config, "no_snapshot");
  refuse(rank0, "damaged");
  await Promise.resolve();
  expect([config.skipped, rank0.skipped]).toEqual([false, false]);
  expect(files.flatMap(rowsOf)).toHaveLength(2);
  expect(plan).toHaveBeenCalledTimes(1);
});

test("a place that is chosen while files wait for the worker's module stays", async () => {
  for (const isChosen of [true, false]) {
    owners = fakeOwners();
    loader = new RunLoader(owners as unknown as LoaderOwners);
    owners.runs.modules.compiled.value = false;
    let resume = () => {};
    const compiled = new Promise<void>((resolve) => {
      resume = resolve;
    });
    const now = plan.getMockImplementation() as (files: FileEntry[]) => ReturnType<typeof plan>;
    plan.mockImplementationOnce((files) => compiled.then(() => now(files)));
    void loader.open([sourceOf("rank0.pickle", true)]);
    await vi.waitFor(() => expect(owners.runs.run.value?.files).toHaveLength(1));
    expect(owners.navigation.settled.value, "no place is decided").toBe(false);
    if (isChosen) owners.navigation.open("modules");
    resume();
    await vi.waitFor(() => expect(owners.runs.pool.open).toHaveBeenCalled());
    expect(owners.navigation.view.value).toBe(isChosen ? "modules" : "timeline");
    expect(owners.navigation.settled.value).toBe(isChosen);
    expect(loader.opened.value === null).toBe(isChosen);
  }
});

test("several files show the ranks first, unless something else was asked for", async () => {
  const sources = ["rank0.pickle", "rank1.pickle"].map((path) => sourceOf(path, true));
  const { files } = await open(sources);
  expect(owners.navigation.view.value).toBe("ranks");
  expect(loader.opened.value).toEqual(files);
  for (const address of [{ view: "timeline" }, { path: "rank1.pickle" }]) {
    owners.navigation.view.value = "timeline";
    owners.address.pendingState = address;
    void loader.open(sources);
    await vi.waitFor(() => expect(loader.opened.value).toBeNull());
    expect(owners.navigation.view.value).toBe("timeline");
    owners.address.pendingState = {};
    owners.selection.focus.value = null;
    void loader.open(sources);
    await vi.waitFor(() => expect(loader.opened.value).not.toBeNull());
  }
  owners.navigation.viewGiven = true;
  void loader.open(sources);
  await vi.waitFor(() => expect(loader.opened.value).toBeNull());
});

test("a single file begins with the timeline, until its first place is decided", async () => {
  const { files } = await open([sourceOf("rank0.pickle", false)]);
  expect(owners.navigation.view.value).toBe("timeline");
  expect(loader.opened.value).toEqual(files);
  expect(owners.navigation.settled.value).toBe(false);
});

test("a closed file leaves the run, and others keep their number", async () => {
  const { files } = await open(["a.pickle", "b.pickle"].map((path) => sourceOf(path, false)));
  const [a, b] = files as [RankFile, RankFile];
  owners.selection.look({ file: a });
  await loader.close(a);
  expect(owners.runs.run.value?.files).toEqual([b]);
  expect(b.planned.file).toBe(1);
  expect(owners.selection.focus.value).toBeNull();
  await loader.close(b);
  expect(owners.runs.run.value).toBeNull();
});

test("source files beside snapshots are kept, and are no snapshots", async () => {
  const code = (path: string): Source => ({
    path,
    bytes: 1,
    from: new File([""], "gpt.py"),
    searched: true,
  });
  void loader.open([sourceOf("run/rank0.pickle", true), code("run/gpt.py")]);
  await vi.waitFor(() => expect(owners.runs.run.value?.files).toHaveLength(1));
  const { files } = owners.runs.run.value ?? { files: [] };
  expect(files.map(({ path }) => path)).toEqual(["run/rank0.pickle"]);
  expect(owners.code.files.value.map(({ path }) => path)).toEqual(["run/gpt.py"]);
  // Source alone, dropped later, leaves the run as it is.
  plan.mockClear();
  void loader.add([code("src/model/gpt.py"), code("run/gpt.py")]);
  await vi.waitFor(() =>
    expect(owners.code.files.value.map(({ path }) => path)).toEqual([
      "src/model/gpt.py",
      "run/gpt.py",
    ]),
  );
  void loader.open([code("src/gpt.py")]);
  await vi.waitFor(() => expect(owners.code.files.value).toHaveLength(3));
  expect(plan).not.toHaveBeenCalled();
  expect(owners.runs.run.value?.files).toEqual(files);
  expect(owners.status.report).not.toHaveBeenCalled();
});
