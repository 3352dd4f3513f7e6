// Source files of the workspace for the paths that call stacks name. A path comes from a snapshot,
// which anyone may have written: only names of source files are looked for. Without a click the
// file system is asked for paths in the workspace only, and only their text reaches the webview.

import { isAbsolute, resolve } from "node:path";
import * as vscode from "vscode";
import { filesOf, isCodeName, lineOf } from "../../web/viewer/dist/client/code-files.js";
import { isFileInside } from "./inside.js";
import type { RecordedLine } from "./problems.js";
import { tell } from "./tell.js";

/** Files with more bytes are no source. */
const MAX_BYTES = 4 * 2 ** 20;
/** Files of one name that are compared. */
const MAX_SAME = 200;
/** The most characters of a file's name. */
const MAX_NAME = 255;
const SKIPPED = "**/{node_modules,__pycache__,site-packages}/**";

/** An absolute path of this machine. Two slashes would lead to another one. */
const EXACT = /^(\/(?![/\\])|[a-z]:)/i;

/** Whether a path is a file, wherever it leads: only for a path that the user has clicked on. */
async function isFile(path: string): Promise<boolean> {
  try {
    const { type } = await vscode.workspace.fs.stat(vscode.Uri.file(path));
    return (type & vscode.FileType.File) !== 0;
  } catch {
    // There is none.
    return false;
  }
}

/** Whether a path is a file in the workspace. */
function isOurs(path: string): Promise<boolean> {
  const folders = vscode.workspace.workspaceFolders ?? [];
  const local = folders.filter(({ uri }) => uri.scheme === "file");
  return isFileInside(
    path,
    local.map(({ uri }) => uri.fsPath),
  );
}

/** The files of the workspace that fit a recorded path best: none, one, or several. */
async function fitting(recorded: string): Promise<vscode.Uri[]> {
  const name = recorded.split(/[\\/]/).at(-1) ?? "";
  // Such a name would be a pattern.
  if (/[*?{}[\]]/.test(name) || name.length > MAX_NAME) return [];
  const found = await vscode.workspace.findFiles(`**/${name}`, SKIPPED, MAX_SAME);
  const files = found.map((uri) => ({ uri, path: vscode.workspace.asRelativePath(uri, true) }));
  return filesOf(recorded, files).map(({ uri }) => uri);
}

/**
 * The file of a recorded path: the path itself, else the file of the workspace that fits it. `may`
 * says whether a path is a file that may be read.
 */
async function sourceOf(
  recorded: string,
  may: (path: string) => Promise<boolean>,
): Promise<vscode.Uri | null> {
  if (!isCodeName(recorded)) return null;
  const exact = EXACT.test(recorded) && isAbsolute(recorded) ? resolve(recorded) : null;
  const uri = exact === null ? null : vscode.Uri.file(exact);
  if (uri && (await may(uri.fsPath))) return uri;
  const [found, other] = await fitting(recorded);
  return found && !other && (await may(found.fsPath)) ? found : null;
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
  const uri = await sourceOf(file, isOurs);
  const found = uri && (await read(uri));
  if (!found) return null;
  const lines = found.text.split(/\r?\n/);
  const { state } = lineOf(line, [functionName], text, lines, false);
  return state === "missing" || state === "differs" ? null : uri;
}

/** The answer to the viewer's question for a file's text, as `vramscope serve` gives it. */
export async function textOf(recorded: string): Promise<string | null> {
  const uri = await sourceOf(recorded, isOurs);
  if (uri === null) return null;
  const found = vscode.workspace.asRelativePath(uri);
  const source = await read(uri);
  const refused = `${found} is too large to be source.`;
  return JSON.stringify(source ? { found, ...source } : { refused });
}

/** Opens a line that the user has clicked on, or says that there is no such file. */
export async function openLine(recorded: string, line: number): Promise<void> {
  const uri = await sourceOf(recorded, isFile);
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
