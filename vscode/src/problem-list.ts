// The Problems panel: the findings of all snapshots that are open.

import { basename } from "node:path";
import * as vscode from "vscode";
import type { FromWorker } from "./channel.js";
import { Findings, type Problem, type RecordedLine } from "./problems.js";
import { fileOf } from "./sources.js";
import { shown } from "./words.js";

const SEVERITIES = {
  high: vscode.DiagnosticSeverity.Error,
  medium: vscode.DiagnosticSeverity.Warning,
  low: vscode.DiagnosticSeverity.Information,
};
/** Answers come in bursts. The list is written once for each. */
const PAUSE_MS = 200;
const NAME = "vramscope";
const END = Number.MAX_SAFE_INTEGER;

/** The editor that has this name among its patterns: see package.json. */
const editorOf = ({ path }: vscode.Uri) =>
  /\.(pickle|pkl)(\.gz)?$/i.test(path) ? "vramscope.snapshot" : "vramscope.other";

export class ProblemList implements vscode.CodeActionProvider {
  readonly #list = vscode.languages.createDiagnosticCollection(NAME);
  readonly #findings = new Findings();
  /** How many editors show a snapshot. */
  readonly #shown = new Map<string, number>();
  #timer: ReturnType<typeof setTimeout> | null = null;
  #written = 0;

  /** Takes an answer, as `Findings` does. */
  take(message: FromWorker, snapshotOf: (name: string) => string | null): Set<string> {
    const files = this.#findings.take(message, snapshotOf);
    if (files.size > 0) this.#change();
    return files;
  }

  show(path: string): void {
    this.#shown.set(path, (this.#shown.get(path) ?? 0) + 1);
  }

  /** An editor of a snapshot was closed. With the last one, its problems go. */
  hide(path: string): void {
    const left = (this.#shown.get(path) ?? 0) - 1;
    if (left > 0) {
      this.#shown.set(path, left);
      return;
    }
    this.#shown.delete(path);
    this.#findings.forget(path);
    this.#change();
  }

  dispose(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#list.dispose();
  }

  /** For a problem: its snapshot. */
  provideCodeActions(
    _document: vscode.TextDocument,
    _range: vscode.Range,
    { diagnostics }: vscode.CodeActionContext,
  ): vscode.CodeAction[] {
    return diagnostics.flatMap((diagnostic) => {
      const [from] = diagnostic.relatedInformation ?? [];
      if (diagnostic.source !== NAME || !from) return [];
      const title = shown(`Open ${basename(from.location.uri.fsPath)} in vramscope`);
      const action = new vscode.CodeAction(title, vscode.CodeActionKind.QuickFix);
      action.diagnostics = [diagnostic];
      action.command = {
        title,
        command: "vscode.openWith",
        arguments: [from.location.uri, editorOf(from.location.uri)],
      };
      return [action];
    });
  }

  #change(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      void this.#write();
    }, PAUSE_MS);
  }

  async #write(): Promise<void> {
    this.#written += 1;
    const latest = this.#written;
    // Many ranks name one line: its file is looked for once.
    const files = new Map<string, ReturnType<typeof fileOf>>();
    const find = (place: RecordedLine) => {
      const key = JSON.stringify(place);
      const known = files.get(key) ?? fileOf(place);
      files.set(key, known);
      return known;
    };
    const entries = await Promise.all(
      this.#findings.all.flatMap(([path, problems]) =>
        problems.map((problem) => entryOf(vscode.Uri.file(path), problem, find)),
      ),
    );
    if (latest !== this.#written) return;
    this.#list.clear();
    this.#list.set(entries);
  }
}

/** A problem at its line, or at the snapshot if no file of the workspace has that line. */
async function entryOf(
  snapshot: vscode.Uri,
  { severity, kind, message, place }: Problem,
  find: typeof fileOf,
): Promise<[vscode.Uri, vscode.Diagnostic[]]> {
  // A file that cannot be read is none.
  const source = place && (await find(place).catch(() => null));
  const line = source && place ? place.line - 1 : 0;
  const range = new vscode.Range(line, 0, line, END);
  const diagnostic = new vscode.Diagnostic(range, message, SEVERITIES[severity]);
  diagnostic.source = NAME;
  diagnostic.code = kind;
  const at = new vscode.Location(snapshot, new vscode.Position(0, 0));
  const from = shown(`recorded in ${basename(snapshot.fsPath)}`);
  diagnostic.relatedInformation = [new vscode.DiagnosticRelatedInformation(at, from)];
  return [source ?? snapshot, [diagnostic]];
}
