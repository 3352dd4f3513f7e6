import { expect, test } from "vitest";
import { fileOf, traceOf as loadedOf } from "../test/fake-workers.js";
import type { Loaded } from "./generated/protocol.js";
import { rowAt, rowsOf, traceOf } from "./run.js";

/** A file that is read, with snapshots of these names. */
function readFile(path: string, ...names: string[]) {
  const file = fileOf(path);
  const loaded = { protocol: 0, parts: names.map((name) => ({ name })) } as unknown as Loaded;
  file.load.value = { state: "ready", loaded };
  return file;
}

const FILES = [readFile("a", ""), readFile("a#b", ""), readFile("c", "x", "y"), fileOf("d")];
const ROWS = FILES.flatMap((file) => rowsOf(file));

test.each([
  ["a", "a", 0],
  // A name of a file may have the sign that precedes the name of a snapshot.
  ["a#b", "a#b", 0],
  ["c#x", "c", 0],
  // Of several snapshots in a file, the first had the focus.
  ["c#y", "c", 1],
  // A file that is not read has one row.
  ["d#z", "d", 0],
])("the path %s names its row", (path, file, part) => {
  const row = rowAt(ROWS, path);
  expect([row?.file.path, row?.part]).toEqual([file, part]);
});

test.each(["", "e", "c#z", "ab"])("the path %j names no row", (path) =>
  expect(rowAt(ROWS, path)).toBeUndefined(),
);

test("a snapshot or a device that the file lacks gives place to the first one", () => {
  const file = fileOf("f");
  file.load.value = { state: "ready", loaded: loadedOf(3) };
  const trace = traceOf({ file, part: 999_999_999, device: 999_999_999 });
  expect(trace).toMatchObject({ partIndex: 0, device: { device: 0 } });
});
