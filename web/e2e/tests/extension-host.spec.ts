// What the built extension for VS Code shows of a hostile snapshot, and what it asks the file
// system for. `cargo xtask test --long=vscode` opens such a snapshot in VS Code.

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "@playwright/test";
import type { ToWorker } from "../../../vscode/src/channel.js";
import { Findings } from "../../../vscode/src/problems.js";
import { VERSION } from "../../viewer/dist/version.js";
import { testData } from "../lib/data.js";
import { EditorHost, type Panel, sourceUrl } from "../lib/editor-host.js";
import { life, made } from "../lib/made.js";

/** The extension reads its own files, and the test data. */
const ROOT = fileURLToPath(new URL("../../..", import.meta.url)).replace(/\/$/, "");
const OOM = testData("documents/oom_except.pickle.gz");
const COMMAND = "command:workbench.action.terminal.sendSequence?%7B%22text%22%3A%22id%22%7D";
const GIB = 2 ** 30;
/** Names with links, marks and controls, as a snapshot may have them. */
const NAMES = [
  `/app/[Show the fix](${COMMAND})/train.py`,
  `/app/[a](${COMMAND} "Show the fix")/train.py`,
  "/app/[a](command:x\n'title')/train.py",
  "/app/[a\n](command:x)[b](https://example.com/)[c](file:///etc/passwd)/train.py",
  "/app/[[a](command:x)](command:y)/train.py",
  "/app/[a](COMMAND:x)/[a](Https://example.com)/train.py",
  "/app/[a]\u0301\u0301\u0301\u0301\u0301\u0301(command:x)/train.py",
  "/app/[a]\u200b(command:x)[b]\u00ad(command:x)[c]\ufeff(command:x)/train.py",
  "/app/[a]\ud800(command:x)/train.py",
  `/app/${"[a](command:x)".repeat(70_000)}/train.py`,
  "/app/\u202ekcip.exe\u2066\u200f/\u{e0041}👩‍💻/train.py",
  `/app/${"e\u0301".repeat(10)}${"\u0301".repeat(1e6)}/train.py`,
  "/app/\0\u001b[2J\r\n\t\u0085\u2028/train.py",
  "[a](command:x).py",
];

/** Characters that must not be in VS Code's windows. The zero-width space breaks links. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;

function expectHarmless(words: string, most = 200): void {
  expect([...words].length).toBeLessThanOrEqual(most);
  // The beginning of every link, of VS Code's notifications and of Markdown.
  expect(words).not.toMatch(/\]\s*\(/);
  expect(words.replaceAll("]\u200b(", "")).not.toMatch(UNSEEN);
  expect(words).not.toMatch(/\p{M}{5}/u);
}

let folder = "";
let workspace = "";
let host: EditorHost;

test.beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "extension-")));
  workspace = join(folder, "work");
  mkdirSync(workspace);
  host = new EditorHost(workspace);
});

test.afterEach(() => {
  host.end();
  rmSync(folder, { recursive: true, force: true });
});

/** Reads a snapshot in a panel, until its findings are problems. */
async function findProblems(panel: Panel): Promise<void> {
  const { files } = JSON.parse((await panel.fetch("vramscope://run/index.json")) ?? "");
  const post = (message: ToWorker) => panel.send({ kind: "post", worker: 1, message });
  const target = { part: 0, device: 0 };
  panel.send({ kind: "start", worker: 1 });
  post({ kind: "prepare", module: null, threaded: null, early: false, version: VERSION });
  post({
    kind: "load",
    path: files[0].path,
    bytes: files[0].bytes,
    source: files[0].url,
    beside: null,
    dims: null,
    bounds: { events: null, memory: null },
  });
  const isLoaded = () =>
    panel.sent.some(
      (sent) =>
        sent.kind === "message" &&
        sent.message.kind === "reply" &&
        sent.message.response.kind === "loaded",
    );
  await expect.poll(isLoaded).toBe(true);
  post({ kind: "ask", request: { view: { id: 1, target, query: { card: {} } } } });
  await expect.poll(() => host.problems.length).toBeGreaterThan(0);
}

test("a click on a hostile name shows no link in a notification", async () => {
  const panel = host.open(OOM);
  for (const [index, file] of NAMES.entries()) {
    panel.send({ kind: "line", file, line: 1 });
    await expect.poll(() => host.told.length).toBe(index + 1);
  }
  for (const words of host.told) expectHarmless(words);
  expect(host.told[0]).toContain("[Show the fix]\u200b(command:");
  // A name that was cut keeps its end.
  expect(host.told[9]).toMatch(/….*train\.py\.$/);
});

test("errors show no link: an address, and a folder that cannot be listed", async () => {
  const panel = host.open(OOM);
  expect(await panel.fetch("vramscope://run/source/%E0%A4%A")).toBeNull();
  const gone = await host.diagnoseFolder(join(folder, `[a](command:x)\u202e\n${"b".repeat(300)}`));
  expect(JSON.parse((await gone.fetch("vramscope://run/index.json")) ?? "").files).toEqual([]);
  expect(host.told).toEqual([
    "vramscope: URI malformed",
    expect.stringMatching(/^vramscope cannot list /),
  ]);
  for (const words of host.told) expectHarmless(words);
  expectHarmless(gone.title);
  // Once, however often the files are listed.
  await gone.fetch("vramscope://run/index.json");
  expect(host.told.length).toBe(2);
});

test("a problem shows no link and no mark, of the recording and of its name", async () => {
  const name = "[a](command:x)\u202egz.json";
  const path = join(workspace, name);
  const hostile = `[Show the fix](${COMMAND})\u202e`;
  const blocks = [0, 1, 2].flatMap((at) => life(2 ** 40 + at * GIB, GIB, at, undefined, hostile));
  const oom = { at: 9, action: "oom", addr: 0, size: GIB, device_free: 0, in: hostile } as const;
  const text = made("a.json", [...blocks, oom], []).buffer.toString();
  writeFileSync(path, text.replaceAll("/train/", "/[b](command:y)\\u202e\\n/"));
  await findProblems(host.open(path));
  const entries = host.problems.flatMap(([, of]) => of);
  for (const entry of entries) {
    for (const line of entry.message.split("\n")) expectHarmless(line, 1000);
    expect(entry.source).toBe("vramscope");
    // A code with an address would be a link.
    expect(entry.code).toMatch(/^[a-z_]+$/);
    const [related] = entry.relatedInformation;
    expectHarmless(related?.message ?? "");
    expect(related?.location.uri.fsPath).toBe(path);
    const [title = ""] = host.actionsFor(entry);
    expect(title).toContain("Open [a]\u200b(command:x)\\u{202e}gz.json");
    expectHarmless(title);
  }
});

test("a finding with any text makes a harmless problem", () => {
  const findings = new Findings();
  for (const text of NAMES) {
    const record = {
      path: "a",
      id: text,
      kind: "oom",
      severity: "high",
      title: text,
      why: text,
      action: text,
      place: null,
    };
    const answer = { card: { findings: [{ record }] } };
    const message = { kind: "reply", response: { kind: "view", answer } };
    findings.take(message as never, () => "a");
  }
  const problems = findings.all.flatMap(([, of]) => of);
  expect(problems.length).toBe(NAMES.length);
  for (const { message } of problems) {
    expect(message.split("\n").length).toBe(3);
    for (const line of message.split("\n")) expectHarmless(line, 1000);
  }
});

test("a path outside of the workspace is asked for at a click, and not before", async () => {
  const outside = join(folder, "outside.py");
  writeFileSync(outside, "secret = 1\n");
  writeFileSync(join(workspace, "own.py"), "own = 1\n");
  const path = join(workspace, "oom.json");
  const events = made("a.json", [{ at: 0, action: "oom", addr: 0, size: 2 ** 30 }], []);
  writeFileSync(path, events.buffer.toString().replaceAll("/train/made.py", outside));
  const panel = host.open(path);
  await findProblems(panel);
  expect(host.problems.map(([{ fsPath }]) => fsPath)).toEqual([path]);
  const recorded = [
    outside,
    `${workspace}/../outside.py`,
    `${workspace}/x/../../outside.py`,
    "/net/host.example/x.py",
    "//host.example/share/x.py",
    "/\\host.example\\share\\x.py",
    "\\\\host.example\\share\\x.py",
    "../outside.py",
    "c:outside.py",
    `${workspace}.py`,
    "file:///etc/x.py",
    `${folder}/${"x".repeat(5000)}.py`,
    "/a\0b.py",
  ];
  for (const file of recorded) expect(await panel.fetch(sourceUrl(file))).toBeNull();
  const own = await panel.fetch(sourceUrl(join(workspace, "x/../own.py")));
  expect(JSON.parse(own ?? "").text).toBe("own = 1\n");
  const isBelow = (asked: string) =>
    [workspace, ROOT].some((at) => `${asked}/`.startsWith(`${at}/`));
  expect(host.asked.filter((asked) => !isBelow(asked))).toEqual([]);
  expect(host.told).toEqual([]);
  panel.send({ kind: "line", file: outside, line: 3 });
  await expect.poll(() => host.opened).toEqual([[outside, 3]]);
});

test("links of the workspace that lead out are not followed without a click", async () => {
  const at = (...parts: string[]) => join(workspace, ...parts);
  mkdirSync(join(folder, "outside"));
  writeFileSync(join(folder, "outside/far.py"), "secret = 1\n");
  mkdirSync(at("in/deep"), { recursive: true });
  writeFileSync(at("in/deep/near.py"), "near = 1\n");
  const links: [string, string][] = [
    [join(folder, "outside"), "absolute"],
    ["../outside", "relative"],
    ["in/../../outside", "up"],
    ["absolute", "chained"],
    ["in/deep/../../../outside/far.py", "link.py"],
    ["loop/loop", "loop"],
    ["b.py", "a.py"],
    ["a.py", "b.py"],
    ["gone/x.py", "broken.py"],
    // Lexically this path is inside. By the link in it, it is not.
    ["absolute/../work/in/deep/near.py", "trick.py"],
    [`${workspace}/absolute/../work/in/deep/near.py`, "trick2.py"],
    [`${folder}/../${basename(folder)}/outside/far.py`, "round.py"],
    ["in/deep", "fine"],
    [at("in"), "fine2"],
    ["fine2/deep/../deep/./near.py", "fine.py"],
  ];
  for (const [to, from] of links) symlinkSync(to, at(from));
  execFileSync("mkfifo", [at("pipe.py")]);
  mkdirSync(at("folder.py"));
  const panel = host.open(OOM);
  const ways = ["absolute", "relative", "up", "chained", "loop", "pipe.py", "in/deep/near.py"];
  const files = ways.map((way) => join(way, "far.py"));
  files.push("link.py", "a.py", "broken.py", "trick.py", "trick2.py", "round.py");
  files.push("pipe.py", "folder.py", "gone.py");
  for (const file of files) expect(await panel.fetch(sourceUrl(at(file))), file).toBeNull();
  for (const file of ["in/deep/near.py", "fine/near.py", "fine2/deep/near.py", "fine.py"]) {
    const body = await panel.fetch(sourceUrl(at(file)));
    expect(JSON.parse(body ?? "").text, file).toBe("near = 1\n");
  }
  // A search that follows links has found it.
  expect(await panel.fetch(sourceUrl("/train/absolute/far.py"))).toBeNull();
  // Links within the way are read, and never asked to be followed.
  const followed = host.asked.filter((asked) =>
    /(absolute|relative|up|chained|loop)\//.test(asked),
  );
  expect(followed).toEqual([]);
  panel.send({ kind: "line", file: at("absolute/far.py"), line: 1 });
  await expect.poll(() => host.opened).toEqual([[at("absolute/far.py"), 1]]);
});

test("a workspace that is opened by a link has its files", async () => {
  writeFileSync(join(workspace, "own.py"), "own = 1\n");
  symlinkSync("own.py", join(workspace, "same.py"));
  symlinkSync(join(folder, "alias/own.py"), join(workspace, "named.py"));
  symlinkSync(workspace, join(folder, "alias"));
  host.end();
  host = new EditorHost(join(folder, "alias"));
  const panel = host.open(OOM);
  for (const path of ["alias/own.py", "alias/same.py", "alias/named.py", "work/own.py"]) {
    const body = await panel.fetch(sourceUrl(join(folder, path)));
    expect(JSON.parse(body ?? "{}").text, path).toBe("own = 1\n");
  }
});
