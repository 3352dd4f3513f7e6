// Source files of the workspace for the paths that call stacks name. A path comes from a snapshot,
// which anyone may have written: only names of source files are looked for, and only text of the
// workspace reaches the webview.

import * as vscode from "vscode";
import { filesOf, isCodeName, lineOf } from "../../web/viewer/dist/client/code-files.js";
import type { RecordedLine } from "./problems.js";
import { tell } from "./tell.js";

/** Files with more bytes are no source. */
const MAX_BYTES = 4 * 2 ** 20;
/** Files of one name that are compared. */
const MAX_SAME = 200;
const SKIPPED = "**/{node_modules,__pycache__,site-packages}/**";

/** An absolute path of this machine. Two slashes would lead to another one. */
const EXACT = /^(\/(?![/\\])|[a-z]:)/i;

async function isFile(uri: vscode.Uri): Promise<boolean> {
  try {
    const { type } = await vscode.workspace.fs.stat(uri);
    return (type & vscode.FileType.File) !== 0;
  } catch {
    // There is none.
    return false;
  }
}

/** The files of the workspace that fit a recorded path best: none, one, or several. */
async function fitting(recorded: string): Promise<vscode.Uri[]> {
  const name = recorded.split(/[\\/]/).at(-1) ?? "";
  // Such a name would be a pattern.
  if (/[*?{}[\]]/.test(name)) return [];
  const found = await vscode.workspace.findFiles(`**/${name}`, SKIPPED, MAX_SAME);
  const files = found.map((uri) => ({ uri, path: vscode.workspace.asRelativePath(uri, true) }));
  return filesOf(recorded, files).map(({ uri }) => uri);
}

/** The file of a recorded path: the path itself, else the file of the workspace that fits it. */
export async function sourceOf(recorded: string): Promise<vscode.Uri | null> {
  if (!isCodeName(recorded)) return null;
  const exact = EXACT.test(recorded) ? vscode.Uri.file(recorded) : null;
  if (exact && (await isFile(exact))) return exact;
  const [found, other] = await fitting(recorded);
  return found && !other ? found : null;
}

/** The text of a file, with when it was changed; null if it is too large to be source. */
async function read(uri: vscode.Uri): Promise<{ text: string; modified: number } | null> {
  const { size, mtime } = await vscode.workspace.fs.stat(uri);
  if (size > MAX_BYTES) return null;
  const bytes = await vscode.workspace.fs.readFile(uri);
  return { text: new TextDecoder().decode(bytes), modified: mtime };
}

/** The file that has a recorded line; null if the one that fits is not the one that ran. */
export async function fileOf(recorded: RecordedLine): Promise<vscode.Uri | null> {
  const { file, line, functionName, text } = recorded;
  const uri = await sourceOf(file);
  const found = uri && (await read(uri));
  if (!found) return null;
  const lines = found.text.split(/\r?\n/);
  const { state } = lineOf(line, [functionName], text, lines, false);
  return state === "missing" || state === "differs" ? null : uri;
}

/** The answer to the viewer's question for a file's text, as `vramscope serve` gives it. */
export async function textOf(recorded: string): Promise<string | null> {
  const uri = await sourceOf(recorded);
  if (uri === null || vscode.workspace.getWorkspaceFolder(uri) === undefined) return null;
  const found = vscode.workspace.asRelativePath(uri);
  const source = await read(uri);
  const refused = `${found} is too large to be source.`;
  return JSON.stringify(source ? { found, ...source } : { refused });
}

/** Opens a line beside the snapshot, or says that there is no such file. */
export async function openLine(recorded: string, line: number): Promise<void> {
  const uri = await sourceOf(recorded);
  if (uri === null) {
    tell("information", `This workspace lacks ${recorded}.`);
    return;
  }
  const at = new vscode.Position(Math.max(line - 1, 0), 0);
  await vscode.window.showTextDocument(uri, {
    viewColumn: vscode.ViewColumn.Beside,
    selection: new vscode.Range(at, at),
  });
}
