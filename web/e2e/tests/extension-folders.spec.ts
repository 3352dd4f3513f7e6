// Folders in the extension for VS Code: what a search finds, where it ends, and what it says then.

import { execFileSync } from "node:child_process";
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  realpathSync,
  rmSync,
  symlinkSync,
  utimesSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { expect, test } from "@playwright/test";
import { Run } from "../../../vscode/src/run.js";
import { EditorHost } from "../lib/editor-host.js";

/** A folder in memory takes many files at once. */
const MEMORY = "/dev/shm";

let folder = "";

test.beforeEach(() => {
  const at = existsSync(MEMORY) ? MEMORY : tmpdir();
  folder = realpathSync(mkdtempSync(join(at, "extension-")));
});

test.afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A day from now, in seconds: such a file is being written. */
const TOMORROW = Date.now() / 1000 + 86_400;

/** Writes an empty file below the folder. By default it is complete. */
function write(name: string, time = 0): void {
  const path = join(folder, name);
  closeSync(openSync(path, "w"));
  utimesSync(path, time, time);
}

function writeMany(of: string, end: string, count: number, time = 0): void {
  mkdirSync(join(folder, of), { recursive: true });
  for (let index = 0; index < count; index += 1) write(join(of, `${index}${end}`), time);
}

/** The names of the listed files, below the folder. */
async function listed(run: Run): Promise<string[]> {
  const { files } = JSON.parse(await run.index()) as { files: { path: string }[] };
  return files.map(({ path }) => path.slice(basename(folder).length + 1));
}

test("a folder that cannot be listed is named", async () => {
  const run = new Run(join(folder, "gone"), true);
  expect(await listed(run)).toEqual([]);
  const gone = `cannot list ${join(folder, "gone")}: ENOENT`;
  expect(run.missing).toEqual([expect.stringContaining(gone)]);
  mkdirSync(join(folder, "gone"));
  await run.index();
  expect(run.missing).toEqual([]);
});

test("a folder of 200,000 files is searched, and what lies below it", async () => {
  const names = Array.from({ length: 200_000 }, (_, index) => `${index}.png`).join("\n");
  execFileSync("xargs", ["touch"], { cwd: folder, input: names });
  write("rank0.pickle");
  writeMany("inner", ".pickle", 1);
  const run = new Run(folder, true);
  expect(await listed(run)).toEqual(["rank0.pickle", "inner/0.pickle"]);
  expect(run.missing).toEqual([]);
});

test("files that are no snapshots do not end a search", async () => {
  writeMany("images", ".png", 10_001);
  writeMany("new", ".pickle", 10_001, TOMORROW);
  writeMany("snapshots", ".pickle", 2);
  writeMany("images/inner", ".pickle", 1);
  const run = new Run(folder, true);
  const names = await listed(run);
  expect(names).toEqual(["snapshots/0.pickle", "snapshots/1.pickle", "images/inner/0.pickle"]);
  expect(run.missing).toEqual([]);
});

test("the most files that are listed are named, once", async () => {
  writeMany("ranks", ".pickle", 10_000);
  const run = new Run(folder, true);
  expect((await listed(run)).length).toBe(10_000);
  expect(run.missing).toEqual([]);
  // A finding has its snapshot in no time, also by the name of a part of it.
  const name = `${basename(folder)}/ranks/9999.pickle`;
  for (let count = 0; count < 10_000; count += 1) run.pathNamed(`${name}#a#1`);
  expect(run.pathNamed(`${name}#a#1`)).toBe(join(folder, "ranks/9999.pickle"));
  expect(run.pathNamed(`${name}x`)).toBeNull();

  write("ranks/last.pickle");
  const host = new EditorHost(folder);
  try {
    const panel = await host.diagnoseFolder(folder);
    for (let count = 0; count < 2; count += 1) {
      const { files } = JSON.parse((await panel.fetch("vramscope://run/index.json")) ?? "");
      expect(files.length).toBe(10_000);
    }
    expect(host.told).toEqual([
      `vramscope ended its search after 10,000 files that may be snapshots, in ${folder}/ranks.`,
    ]);
  } finally {
    host.end();
  }
});

test("a search says that folders are too deep", async () => {
  const deep = Array.from({ length: 12 }, (_, index) => index).join("/");
  writeMany(deep, ".pickle", 1);
  const run = new Run(folder, true);
  expect((await listed(run)).length).toBe(1);
  expect(run.missing).toEqual([]);
  writeMany(`${deep}/last`, ".pickle", 1);
  expect((await listed(run)).length).toBe(1);
  expect(run.missing).toEqual([expect.stringContaining("searches 12 folders deep")]);
});

test("links, loops of links and pipes are passed over", async () => {
  write("rank0.pickle");
  mkdirSync(join(folder, "a/b"), { recursive: true });
  symlinkSync("..", join(folder, "a/b/up"));
  symlinkSync(folder, join(folder, "a/all"));
  symlinkSync("self.pickle", join(folder, "self.pickle"));
  symlinkSync("rank0.pickle", join(folder, "rank1.pickle"));
  symlinkSync("/dev/zero", join(folder, "zero.pickle"));
  execFileSync("mkfifo", [join(folder, "pipe.pickle"), join(folder, "a/pipe.json")]);
  const run = new Run(folder, true);
  expect(await listed(run)).toEqual(["rank0.pickle"]);
  expect(run.missing).toEqual([]);
});
