// The VS Code extension below its editor: how it lists and reads files, and what it makes of
// answers. `cargo xtask test --long=vscode` tests it in VS Code.

import { execFileSync } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { serialize } from "node:v8";
import { expect, test } from "@playwright/test";
import type { FromWorker, ToWorker } from "../../../vscode/src/channel.js";
import { Findings } from "../../../vscode/src/problems.js";
import { Readers } from "../../../vscode/src/readers.js";
import { Run } from "../../../vscode/src/run.js";
import type { Query } from "../../viewer/dist/generated/protocol.js";
import { VERSION } from "../../viewer/dist/version.js";
import { program } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { life, made } from "../lib/made.js";

const DIST = fileURLToPath(new URL("../../../vscode/dist", import.meta.url));

let folder = "";

test.beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "extension-"));
});

test.afterEach(() => rmSync(folder, { recursive: true, force: true }));

interface Index {
  title: string;
  files: { path: string; url: string; bytes: number }[];
}

const indexOf = async (run: Run) => JSON.parse(await run.index()) as Index;

/** A worker of the extension that reads one file, and counts what it sends to the webview. */
class Reading {
  readonly #readers: Readers;
  readonly #waiting: ((message: FromWorker) => void)[] = [];
  readonly #heard: FromWorker[] = [];
  readonly answered: [string | null, FromWorker][] = [];
  failed = "";
  sent = 0;

  constructor(run: Run) {
    this.#readers = new Readers(DIST, run, {
      message: (_, message) => {
        this.sent += serialize(message).byteLength;
        this.#heard.push(message);
        this.#tell();
      },
      failed: (_, words) => {
        this.failed = words;
      },
      answered: (path, message) => this.answered.push([path, message]),
    });
    this.#readers.start(1);
    this.post({ kind: "prepare", module: null, threaded: null, early: false, version: VERSION });
  }

  post(message: ToWorker): void {
    this.#readers.post(1, message);
  }

  load(url: string, beside: string | null = null): void {
    const bounds = { events: null, memory: null };
    this.post({
      kind: "load",
      path: "a.pickle",
      bytes: 1,
      source: url,
      beside,
      dims: null,
      bounds,
    });
  }

  /** The next answer other than signs of life and progress. */
  async next(): Promise<FromWorker & { kind: "reply" }> {
    for (;;) {
      const message = await new Promise<FromWorker>((resolve) => {
        this.#waiting.push(resolve);
        this.#tell();
      });
      if (message.kind === "reply" && message.response.kind !== "progress") return message;
      if (message.kind === "crashed") throw new Error(message.failure.message);
    }
  }

  end(): void {
    this.#readers.destroy();
  }

  #tell(): void {
    while (this.#waiting.length > 0 && this.#heard.length > 0) {
      const [resolve, message] = [this.#waiting.shift(), this.#heard.shift()];
      if (message) resolve?.(message);
    }
  }
}

test("a run lists a snapshot and the file beside it, and gives no other file", async () => {
  cpSync(testData("beside/oom_1"), folder, { recursive: true });
  writeFileSync(join(folder, "secret.txt"), "secret");
  const run = new Run(join(folder, "rank3_memory_snapshot.pickle"), false);
  expect(run.pathOf("vramscope://run/files/0")).toBeNull();
  const { title, files } = await indexOf(run);
  expect(title).toBe("rank3_memory_snapshot.pickle");
  const names = files.map(({ path }) => path.split("/").at(-1));
  expect(names).toEqual(["rank3_memory_snapshot.pickle", "rank3_memory_snapshot.vramscope.json"]);
  expect(files.map(({ url }) => run.pathOf(url))).toEqual(
    names.map((name) => join(folder, name ?? "")),
  );
  expect(run.pathOf("vramscope://run/files/2")).toBeNull();
  expect(run.pathOf("vramscope://run/files/../secret.txt")).toBeNull();
});

test("a folder lists its snapshots, and new ones once they are complete", async () => {
  mkdirSync(join(folder, ".cache"));
  mkdirSync(join(folder, "oom"));
  const old = new Date(Date.now() - 60_000);
  const write = (name: string, time: Date) => {
    writeFileSync(join(folder, name), "x");
    utimesSync(join(folder, name), time, time);
  };
  for (const name of ["rank0.pickle", "oom/rank1.pickle.gz", "notes.txt", ".cache/rank2.pickle"])
    write(name, old);
  write("rank3.pickle", new Date());
  const run = new Run(folder, true);
  const listed = async () => {
    const { files } = await indexOf(run);
    return files.map(({ path, url }) => [
      path.split("/").slice(1).join("/"),
      url.split("/").at(-1),
    ]);
  };
  expect(await listed()).toEqual([
    ["rank0.pickle", "0"],
    ["oom/rank1.pickle.gz", "1"],
  ]);
  write("rank3.pickle", old);
  expect(await listed()).toEqual([
    ["rank0.pickle", "0"],
    ["rank3.pickle", "2"],
    ["oom/rank1.pickle.gz", "1"],
  ]);
});

test("a file is read where it lies: answers pass to the webview, its bytes do not", async () => {
  const events = Array.from({ length: 30_000 }, (_, index) =>
    life(0x7f0000000000 + (index % 64) * 2 ** 21, 2 ** 20, 3 * index, 3 * index + 100),
  ).flat();
  const path = join(folder, "large.json");
  writeFileSync(path, made("large.json", events, []).buffer.toString());
  const run = new Run(path, false);
  const [file] = (await indexOf(run)).files;
  const reading = new Reading(run);
  try {
    reading.load(file?.url ?? "");
    const { response } = await reading.next();
    if (response.kind !== "loaded") throw new Error(`${response.kind} came`);
    expect(response.parts[0]?.devices[0]?.events.raw).toBe(String(events.length));
    const target = { part: 0, device: response.parts[0]?.defaultDevice ?? 0 };
    reading.post({ kind: "ask", request: { view: { id: 7, target, query: { summary: {} } } } });
    expect((await reading.next()).response.kind).toBe("view");
    expect(statSync(path).size).toBeGreaterThan(8e6);
    expect(reading.sent).toBeLessThan(statSync(path).size / 100);
  } finally {
    reading.end();
  }
});

test("a file that is gone, and an address that is not the run's, are refused", async () => {
  const run = new Run(join(folder, "gone.pickle"), false);
  const [file] = (await indexOf(run)).files;
  const reading = new Reading(run);
  try {
    reading.load(file?.url ?? "");
    const { response } = await reading.next();
    expect(response.kind === "failed" && response.message).toContain("changed or moved on disk");
    reading.load("file:///etc/passwd");
    expect(reading.failed).toBe("the run has no such file");
  } finally {
    reading.end();
  }
});

test("a pipe is not waited for", async () => {
  const path = join(folder, "pipe.pickle");
  execFileSync("mkfifo", [path]);
  const run = new Run(path, false);
  const [file] = (await indexOf(run)).files;
  const reading = new Reading(run);
  try {
    reading.load(file?.url ?? "");
    expect((await reading.next()).response.kind).toBe("failed");
  } finally {
    reading.end();
  }
});

test("a finding is a problem at its line, with the fixes that diagnose prints", async () => {
  const path = testData("documents/oom_except.pickle.gz");
  const run = new Run(path, false);
  const [file] = (await indexOf(run)).files;
  const reading = new Reading(run);
  const findings = new Findings();
  try {
    reading.load(file?.url ?? "");
    await reading.next();
    const ask = async (id: number, query: Query) => {
      const target = { part: 0, device: 0 };
      reading.post({ kind: "ask", request: { view: { id, target, query } } });
      await reading.next();
    };
    await ask(1, { simulatedSummary: {} });
    // A card has no fixes. It does not take those of the summary away.
    await ask(2, { card: {} });
    for (const [of, message] of reading.answered) findings.take(message, () => of);
  } finally {
    reading.end();
  }
  const [[snapshot, problems]] = findings.all as [[string, (typeof findings.all)[0][1]]];
  expect(snapshot).toBe(path);
  const oom = problems.find(({ kind }) => kind === "oom");
  expect(oom?.severity).toBe("high");
  expect(oom?.place).toEqual({
    file: "/train/gpt.py",
    line: 44,
    functionName: "forward",
    text: "",
  });
  const words = (text: string) => text.replace(/[\s,]+/g, " ").trim();
  const printed = execFileSync(program, ["diagnose", path], { encoding: "utf8" });
  const fixes = printed.split("\n").filter((line) => line.startsWith("fix "));
  const said = oom?.message.split("\n") ?? [];
  expect(fixes.length).toBeGreaterThan(2);
  expect(said.filter((line) => line.startsWith("fix ")).map(words)).toEqual(fixes.map(words));
  expect(said[0]?.toLowerCase()).toBe(/error\[oom\]: (.*)/.exec(printed)?.[1]?.toLowerCase());
  findings.forget(path);
  expect(findings.all).toEqual([]);
});
