import { expect, test, vi } from "vitest";
import { fileName, fromDrop, fromInput, fromScript, isSame, notOpen } from "./files.js";
import type { Source } from "./rank-file.js";

/** A `File` as a folder picker gives it; Node's has no relative path. */
function fileOf(name: string, { size = 1, lastModified = 0, folder = "" } = {}): File {
  const file = new File(["x".repeat(size)], name, { lastModified });
  const webkitRelativePath = folder === "" ? "" : `${folder}/${name}`;
  return Object.defineProperty(file, "webkitRelativePath", { value: webkitRelativePath });
}

const pathsOf = (sources: readonly Source[]) => sources.map(({ path }) => path);

const fileEntry = (fullPath: string) => ({
  isDirectory: false,
  name: fullPath.split("/").at(-1),
  fullPath,
  file: (resolve: (file: File) => void) => resolve(fileOf(fullPath.split("/").at(-1) ?? "")),
});

/** A folder that lists at most 100 entries per call, as Chromium does; Firefox lists all. */
const folderEntry = (entries: unknown[], most = 100) => ({
  isDirectory: true,
  createReader: () => {
    const left = [...entries];
    return { readEntries: (resolve: (some: unknown[]) => void) => resolve(left.splice(0, most)) };
  },
});

const dropOf = (...entries: unknown[]) =>
  ({
    items: entries.map((entry) => ({ kind: "file", webkitGetAsEntry: () => entry })),
  }) as unknown as DataTransfer;

test("a dropped folder is searched recursively for snapshot extensions", async () => {
  const folder = folderEntry([
    fileEntry("/run/rank0.pickle.gz"),
    fileEntry("/run/log.txt"),
    folderEntry([fileEntry("/run/late/Rank1.PKL"), fileEntry("/run/late/notes.md")]),
  ]);
  expect(pathsOf(await fromDrop(dropOf(folder)))).toEqual([
    "run/rank0.pickle.gz",
    "run/late/Rank1.PKL",
  ]);
});

test("a folder may list any number of entries at once", async () => {
  const notes = fileEntry("/run/notes.md");
  const entries = [...new Array(200_000).fill(notes), fileEntry("/run/rank0.pickle")];
  const folder = folderEntry(entries, Number.POSITIVE_INFINITY);
  expect(pathsOf(await fromDrop(dropOf(folder)))).toEqual(["run/rank0.pickle"]);
});

test("a folder may lie a thousand levels deep", async () => {
  const path = `${"/a".repeat(1000)}/rank0.pickle`;
  let folder: unknown = fileEntry(path);
  for (let level = 0; level < 1000; level += 1) folder = folderEntry([folder]);
  expect(pathsOf(await fromDrop(dropOf(folder)))).toEqual([path.slice(1)]);
});

test("added files are compared with few of the open ones", () => {
  let reads = 0;
  const sourcesOf = (prefix: string) =>
    Array.from({ length: 1000 }, (_, index) => ({
      get path() {
        reads += 1;
        return `run/${prefix}${index}.pickle`;
      },
      bytes: 1,
      from: fileOf(`${prefix}${index}.pickle`),
    }));
  const open = sourcesOf("rank");
  expect(notOpen(open, [...open, ...sourcesOf("other")])).toHaveLength(1000);
  expect(reads).toBeLessThan(20_000);
});

test("source files of a folder are taken, too, but not those of others", async () => {
  const folder = folderEntry([
    fileEntry("/run/gpt.py"),
    folderEntry([fileEntry("/run/.venv/site-packages/torch/nn.py")]),
  ]);
  expect(pathsOf(await fromDrop(dropOf(folder)))).toEqual(["run/gpt.py"]);
  const picked = fromInput([
    fileOf("gpt.py", { folder: "src" }),
    fileOf("a.md", { folder: "src" }),
  ]);
  expect(pathsOf(picked)).toEqual(["src/gpt.py"]);
});

test("only files that a search of a folder found are marked", async () => {
  const folder = folderEntry([fileEntry("/run/config.json")]);
  const dropped = await fromDrop(dropOf(folder, fileEntry("/rank0.pickle")));
  expect(dropped.map(({ searched }) => searched)).toEqual([true, undefined]);
  const picked = fromInput([fileOf("config.json", { folder: "run" }), fileOf("rank0.pickle")]);
  expect(picked.map(({ searched }) => searched)).toEqual([true, undefined]);
});

test("a dropped folder of more than 100 files is listed as a whole", async () => {
  const entries = Array.from({ length: 250 }, (_, rank) => fileEntry(`/run/rank${rank}.pickle`));
  expect(await fromDrop(dropOf(folderEntry(entries)))).toHaveLength(250);
});

test("a dropped file is taken whatever its extension is", async () => {
  expect(pathsOf(await fromDrop(dropOf(fileEntry("/snapshot.dump"))))).toEqual(["snapshot.dump"]);
});

test("dropped text is ignored, a file without an entry is taken", async () => {
  const drop = {
    items: [
      { kind: "string", webkitGetAsEntry: () => null },
      { kind: "file", webkitGetAsEntry: () => null, getAsFile: () => fileOf("a.pickle") },
    ],
  } as unknown as DataTransfer;
  expect(pathsOf(await fromDrop(drop))).toEqual(["a.pickle"]);
});

test("a folder picker is filtered by extension, a file picker is not", () => {
  const files = [
    fileOf("rank0.pickle", { folder: "run" }),
    fileOf("log.txt", { folder: "run" }),
    fileOf("log.txt"),
  ];
  expect(pathsOf(fromInput(files))).toEqual(["run/rank0.pickle", "log.txt"]);
});

test("a script names files by file, buffer, URL or relative address", () => {
  vi.stubGlobal("document", { baseURI: "https://example.org/app/" });
  const sources = fromScript([
    fileOf("a.pickle", { size: 3 }),
    new ArrayBuffer(5),
    { name: "b.pickle", buffer: new ArrayBuffer(7) },
    new URL("https://other.org/x/c%20d.pickle?token=1"),
    "runs/e.pickle",
    "https://other.org/bad%ff.pickle",
    "https://other.org/",
    "http://[broken",
  ]);
  expect(sources.map(({ path, bytes }) => [path, bytes])).toEqual([
    ["a.pickle", 3],
    ["snapshot", 5],
    ["b.pickle", 7],
    ["c d.pickle", 0],
    ["e.pickle", 0],
    ["bad%ff.pickle", 0],
    ["other.org", 0],
    ["http://[broken", 0],
  ]);
  expect(sources[4]?.from).toBe("https://example.org/app/runs/e.pickle");
});

test("files are the same by name, size and time", () => {
  const source = (file: File, path = file.name): Source => ({ path, bytes: file.size, from: file });
  const one = source(fileOf("rank0.pickle", { size: 3, lastModified: 5 }));
  expect(isSame(one, source(fileOf("rank0.pickle", { size: 3, lastModified: 5 })))).toBe(true);
  expect(isSame(one, source(fileOf("rank0.pickle", { size: 4, lastModified: 5 })))).toBe(false);
  expect(isSame(one, source(fileOf("rank0.pickle", { size: 3, lastModified: 6 })))).toBe(false);
  const inFolder = source(fileOf("rank0.pickle", { size: 3, lastModified: 5 }), "run/rank0.pickle");
  expect(isSame(one, inFolder)).toBe(true);
  const inName = source(fileOf("rank0.pickle", { size: 3, lastModified: 5 }), "1rank0.pickle");
  expect(isSame(one, inName)).toBe(false);
});

test("addresses are the same when they are equal", () => {
  const source = (from: string): Source => ({ path: "a.pickle", bytes: 0, from });
  expect(isSame(source("https://a.org/a.pickle"), source("https://a.org/a.pickle"))).toBe(true);
  expect(isSame(source("https://a.org/a.pickle"), source("https://b.org/a.pickle"))).toBe(false);
});

test("added files skip those that are open, and keep their order", () => {
  const source = (path: string): Source => ({ path, bytes: 0, from: `https://a.org/${path}` });
  const added = notOpen([source("b"), source("x")], [source("c"), source("b"), source("a")]);
  expect(pathsOf(added)).toEqual(["c", "a"]);
});

test("added files whose names are taken get a folder that is free for all of them", () => {
  const source = (path: string, host: string): Source => ({
    path,
    bytes: 0,
    from: `https://${host}/${path}`,
  });
  const open = [source("rank0", "a.org"), source("2/rank1", "a.org")];
  const added = notOpen(open, [source("rank0", "b.org"), source("rank1", "b.org")]);
  expect(pathsOf(added)).toEqual(["3/rank0", "3/rank1"]);
});

test("the name of a file is its last component on every system", () => {
  const paths = ["run/rank0.pickle", "D:\\run\\rank0.pickle", "rank0.pickle"];
  expect(paths.map(fileName)).toEqual(Array(3).fill("rank0.pickle"));
});
