import { beforeEach, expect, test, vi } from "vitest";
import {
  FakeFactory,
  type FakeWorker,
  fileOf,
  filesOf,
  LOADED,
  MIB,
  statesOf,
} from "../../test/fake-workers.js";
import type { Failure, Response } from "../generated/protocol.js";
import { SILENT } from "./faults.js";
import type { RankFile } from "./rank-file.js";
import { type PoolEvents, RankPool } from "./rank-pool.js";

let factory: FakeFactory;
let events: { [Name in keyof PoolEvents]: ReturnType<typeof vi.fn<PoolEvents[Name]>> };

beforeEach(() => {
  factory = new FakeFactory();
  events = {
    progress: vi.fn(),
    ready: vi.fn(),
    failed: vi.fn(),
    crashing: vi.fn(),
    refused: vi.fn(),
    summarize: vi.fn(async () => undefined),
  };
});

const poolOf = (cores: number) => new RankPool(factory, events, cores);

/** Answers a load, and lets the pool go on. */
async function finish(file: RankFile, wasmBytes = MIB): Promise<void> {
  factory.of(file).reply(LOADED, wasmBytes);
  await Promise.resolve();
  await Promise.resolve();
}

async function openAll(pool: RankPool, files: readonly RankFile[]): Promise<void> {
  pool.open(files);
  for (const file of files) await finish(file);
}

test("loads at most one file per core and starts the next when one is ready", async () => {
  const files = filesOf(4);
  poolOf(2).open(files);
  expect(statesOf(files)).toEqual(["loading", "loading", "queued", "queued"]);
  await finish(files[1] as RankFile);
  expect(statesOf(files)).toEqual(["loading", "ready", "loading", "queued"]);
});

test("opens any number of files", () => {
  const files = filesOf(2);
  poolOf(1).open([...files, ...new Array(200_000).fill(files[1])]);
  expect(statesOf(files)).toEqual(["loading", "queued"]);
});

test("never loads more than eight files at once", () => {
  const files = filesOf(20);
  poolOf(64).open(files);
  expect(statesOf(files).filter((state) => state === "loading")).toHaveLength(8);
});

test("uses the warm spare worker for the first load and spawns a new spare when idle", async () => {
  const [file] = filesOf(1) as [RankFile];
  const pool = poolOf(4);
  const [spare] = factory.workers;
  expect(spare?.options).toEqual({ early: true });
  pool.open([file]);
  expect(factory.of(file)).toBe(spare);
  expect(factory.alive).toHaveLength(1);
  await finish(file);
  expect(factory.alive).toHaveLength(2);
});

test("replaces a spare worker that is broken", () => {
  const [file] = filesOf(1) as [RankFile];
  const pool = poolOf(1);
  const [spare] = factory.workers as [FakeWorker];
  spare.broken = true;
  pool.open([file]);
  expect(spare.ended).toBe(true);
  expect(factory.of(file)).not.toBe(spare);
});

test("a file whose idle worker had ended is read by a new worker, without an error", async () => {
  const files = filesOf(2);
  const [file, next] = files as [RankFile, RankFile];
  const pool = poolOf(1);
  pool.open(files);
  const dead = factory.of(file);
  dead.emit({ kind: "crashed", failure: SILENT, unused: true });
  expect(dead.ended).toBe(true);
  expect(factory.of(file)).not.toBe(dead);
  expect(statesOf(files)).toEqual(["loading", "queued"]);
  expect(events.failed).not.toHaveBeenCalled();
  expect(events.crashing).not.toHaveBeenCalled();
  await finish(file);
  await finish(next);
  expect(statesOf(files)).toEqual(["ready", "ready"]);
});

test("focus moves a queued file to the head of the queue", async () => {
  const files = filesOf(4);
  const pool = poolOf(1);
  pool.open(files);
  pool.focus(files[3] as RankFile);
  await finish(files[0] as RankFile);
  expect(statesOf(files)).toEqual(["ready", "queued", "queued", "loading"]);
});

test("focus does not load a file that has not been opened", () => {
  const [file] = filesOf(1) as [RankFile];
  poolOf(1).focus(file);
  expect(file.load.peek().state).toBe("queued");
  expect(factory.workers.some(({ path }) => path !== undefined)).toBe(false);
});

test("focus does not restart a file that is loading", () => {
  const [file] = filesOf(1) as [RankFile];
  const pool = poolOf(4);
  pool.open([file]);
  pool.focus(file);
  expect(factory.workers.filter(({ path }) => path === file.path)).toHaveLength(1);
});

test("evicts the least recently focused workers beyond the memory budget", async () => {
  const files = filesOf(3);
  const [first, second, third] = files as [RankFile, RankFile, RankFile];
  const pool = poolOf(4);
  await openAll(pool, files);
  pool.focus(second);
  pool.focus(first);
  pool.setBudget(2 * MIB);
  expect([first, second, third].map(({ client }) => client.peek() !== null)).toEqual([
    true,
    true,
    false,
  ]);
  expect(third.load.peek().state).toBe("ready");
});

test("never evicts the focused file", async () => {
  const [first, second] = filesOf(2) as [RankFile, RankFile];
  const pool = poolOf(2);
  await openAll(pool, [first, second]);
  pool.focus(first);
  pool.setBudget(0);
  expect(first.client.peek()).not.toBeNull();
  expect(second.client.peek()).toBeNull();
});

test("keeps at most eight loaded workers whatever the budget", async () => {
  const files = filesOf(10);
  await openAll(poolOf(8), files);
  expect(files.filter(({ client }) => client.peek() !== null)).toHaveLength(8);
});

test("focus loads an evicted file again and leaves it ready meanwhile", async () => {
  const [first, second] = filesOf(2) as [RankFile, RankFile];
  const pool = poolOf(2);
  await openAll(pool, [first, second]);
  pool.focus(first);
  pool.setBudget(0);
  pool.focus(second);
  pool.focus(second);
  expect(factory.workers.filter(({ path }) => path === second.path)).toHaveLength(2);
  expect(second.load.peek().state).toBe("ready");
  expect(factory.of(second).path).toBe(second.path);
  await finish(second);
  expect(second.client.peek()).not.toBeNull();
});

test("acquire keeps a worker until the last release", async () => {
  const [first, second] = filesOf(2) as [RankFile, RankFile];
  const pool = poolOf(2);
  await openAll(pool, [first, second]);
  pool.focus(first);
  const client = await pool.acquire(second);
  await pool.acquire(second);
  expect(client).toBe(second.client.peek());
  pool.setBudget(0);
  pool.release(second);
  expect(second.client.peek()).not.toBeNull();
  pool.release(second);
  expect(second.client.peek()).toBeNull();
});

test("acquire loads a queued file next and resolves to null when that fails", async () => {
  const files = filesOf(3);
  const [first, second, third] = files as [RankFile, RankFile, RankFile];
  const pool = poolOf(1);
  pool.open(files);
  const acquired = pool.acquire(third);
  await finish(first);
  expect(statesOf([second, third])).toEqual(["queued", "loading"]);
  factory.of(third).crash();
  expect(await acquired).toBeNull();
});

test("a failed file does not stop the others, and is retryable only from a URL", async () => {
  const failure: Failure = { id: null, message: "not a snapshot", hint: null };
  const [local, remote, last] = [
    fileOf("a.pickle"),
    fileOf("b.pickle", 0, "https://example.org/b.pickle"),
    fileOf("c.pickle"),
  ] as const;
  poolOf(1).open([local, remote, last]);
  factory.of(local).reply({ kind: "failed", ...failure });
  factory.of(remote).reply({ kind: "failed", ...failure });
  expect(local.load.peek()).toMatchObject({ state: "error", again: false });
  expect(remote.load.peek()).toMatchObject({ state: "error", again: true });
  expect(last.load.peek().state).toBe("loading");
  expect(events.failed).toHaveBeenCalledTimes(2);
});

test("a crash of a loaded file ends its worker, and load again brings it back", async () => {
  const [file] = filesOf(1) as [RankFile];
  const pool = poolOf(1);
  await openAll(pool, [file]);
  events.crashing.mockImplementation((crashed) => {
    expect(crashed.client.peek()).not.toBeNull();
  });
  factory.of(file).crash("trap");
  expect(events.crashing).toHaveBeenCalledOnce();
  expect(file.client.peek()).toBeNull();
  expect(file.load.peek()).toMatchObject({ state: "error", again: true });
  pool.again(file);
  await finish(file);
  expect(file.load.peek().state).toBe("ready");
});

test("clear cancels what is not read, ends all workers but one spare", async () => {
  const files = filesOf(3);
  const [first, second, third] = files as [RankFile, RankFile, RankFile];
  const pool = poolOf(1);
  pool.open(files);
  await finish(first);
  pool.clear();
  expect(statesOf(files)).toEqual(["ready", "error", "error"]);
  expect(second.load.peek()).toMatchObject({
    failure: { message: expect.stringMatching(/cancel/) },
  });
  expect(third.load.peek()).toMatchObject({ again: false });
  expect(factory.alive).toHaveLength(1);
  expect(factory.alive[0]?.path).toBeUndefined();
});

test("a load that is cancelled while its cards are fetched starts nothing", async () => {
  const [first, second] = filesOf(2) as [RankFile, RankFile];
  let fetched: () => void = () => undefined;
  const cards = new Promise<void>((resolve) => {
    fetched = resolve;
  });
  events.summarize.mockReturnValueOnce(cards);
  const pool = poolOf(1);
  pool.open([first, second]);
  await finish(first);
  pool.destroy();
  fetched();
  await cards;
  await Promise.resolve();
  expect(factory.alive).toEqual([]);
  expect(second.load.peek().state).toBe("error");
});

test("a large file alone gets threads, several files and small files do not", () => {
  factory.single = null;
  const [small, large] = [fileOf("small.pickle"), fileOf("large.pickle", 65 * MIB)] as const;
  const pool = poolOf(4);
  pool.open([small]);
  expect(factory.of(small).options).toEqual({ early: true });
  pool.clear();
  pool.open([large]);
  expect(factory.of(large).options).toEqual({ threads: 4 });
  pool.clear();
  const many = [0, 1, 2, 3].map((rank) => fileOf(`rank${rank}.pickle`, 65 * MIB));
  pool.open(many);
  expect(many.map((file) => factory.of(file).options?.threads ?? 1)).toEqual([1, 1, 1, 1]);
});

test("a file whose threaded worker crashed is loaded again with one thread", () => {
  factory.single = null;
  const file = fileOf("large.pickle", 65 * MIB);
  const pool = poolOf(4);
  pool.open([file]);
  factory.of(file).crash();
  pool.again(file);
  expect(factory.of(file).options?.threads).toBeUndefined();
});

test("readPart sends the range of events to a new worker", async () => {
  const [file] = filesOf(1) as [RankFile];
  const pool = poolOf(1);
  pool.open([file]);
  const failure: Failure = { id: null, message: "too large", hint: null };
  factory.of(file).reply({
    kind: "tooLarge",
    failure,
    choice: { first: 0, last: 9 },
  } as unknown as Response);
  expect(file.tooLarge.peek()).toMatchObject({ choice: { first: 0, last: 9 } });
  pool.readPart(file, { first: 3, last: 5 });
  expect(factory.of(file).sent[0]).toMatchObject({
    kind: "load",
    bounds: { events: { first: 3, last: 5 } },
  });
  await finish(file);
  pool.choosePart(file, failure);
  expect(file.load.peek()).toMatchObject({ state: "error", again: false });
  expect(file.client.peek()).toBeNull();
});

test("of many small files, a worker that is idle reads the next one", async () => {
  const files = filesOf(40);
  const pool = poolOf(2);
  await openAll(pool, files);
  expect(statesOf(files).every((state) => state === "ready")).toBe(true);
  // Eight are kept and two load at once; one more is ready for the next file.
  expect(factory.workers.length).toBeLessThanOrEqual(11);
  expect(files.filter(({ client }) => client.peek() !== null)).toHaveLength(8);
});

test("a worker that holds much memory is ended, not used again", async () => {
  const files = filesOf(12);
  const pool = poolOf(1);
  pool.open(files);
  for (const file of files) await finish(file, 100 * MIB);
  expect(factory.workers.filter(({ ended }) => ended)).toHaveLength(4);
  expect(factory.workers).toHaveLength(13);
});
