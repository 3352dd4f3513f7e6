// Source files of the workspace for the paths that call stacks name. A path comes from a snapshot,
// which anyone may have written: only names of source files are looked for, and only text of the
// workspace reaches the webview.

import { basename } from "node:path";
import * as vscode from "vscode";
import { filesOf, isCodeName, lineOf } from "../../web/viewer/dist/client/code-files.js";
import type { RecordedLine } from "./problems.js";

/** Files with more bytes are no source. */
const MAX_BYTES = 4 * 2 ** 20;
/** Files of one name that are compared. */
const MAX_SAME = 200;
const SKIPPED = "**/{node_modules,__pycache__,site-packages}/**";

async function statOf(uri: vscode.Uri): Promise<vscode.FileStat | null> {
  try {
    const found = await vscode.workspace.fs.stat(uri);
    return found.type === vscode.FileType.Directory ? null : found;
  } catch {
    return null;
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
  const exact = /^([/\\]|[a-z]:)/i.test(recorded) ? vscode.Uri.file(recorded) : null;
  if (exact && (await statOf(exact))) return exact;
  const [found, other] = await fitting(recorded);
  return found && !other ? found : null;
}

async function linesOf(uri: vscode.Uri): Promise<string[]> {
  const text = new TextDecoder().decode(await vscode.workspace.fs.readFile(uri));
  return text.split(/\r?\n/);
}

/** The file that has a recorded line; null if the one that fits is not the one that ran. */
export async function fileOf(recorded: RecordedLine): Promise<vscode.Uri | null> {
  const { file, line, functionName, text } = recorded;
  const uri = await sourceOf(file);
  if (uri === null) return null;
  const { state } = lineOf(line, [functionName], text, await linesOf(uri), false);
  return state === "missing" || state === "differs" ? null : uri;
}

/** The answer to the viewer's question for a file's text, as `vramscope serve` gives it. */
export async function textOf(recorded: string): Promise<string | null> {
  const uri = await sourceOf(recorded);
  if (uri === null || vscode.workspace.getWorkspaceFolder(uri) === undefined) return null;
  const found = vscode.workspace.asRelativePath(uri);
  const { size, mtime: modified } = await vscode.workspace.fs.stat(uri);
  if (size > MAX_BYTES) return JSON.stringify({ refused: `${found} is too large to be source.` });
  const text = new TextDecoder().decode(await vscode.workspace.fs.readFile(uri));
  return JSON.stringify({ found, text, modified });
}

/** Opens a line beside the snapshot, or says that there is no such file. */
export async function openLine(recorded: string, line: number): Promise<void> {
  const uri = await sourceOf(recorded);
  if (uri === null) {
    const words = `${basename(recorded)} is not in this workspace. The snapshot names ${recorded}.`;
    void vscode.window.showInformationMessage(words);
    return;
  }
  const at = new vscode.Position(Math.max(line - 1, 0), 0);
  await vscode.window.showTextDocument(uri, {
    viewColumn: vscode.ViewColumn.Beside,
    selection: new vscode.Range(at, at),
  });
}
