// The extension: an editor for snapshots, and a command for folders of them. It runs where the
// files lie, which may be another machine than the one that draws.

import * as vscode from "vscode";
import { connect } from "./panel.js";
import { ProblemList } from "./problem-list.js";
import { Run } from "./run.js";
import { tellError } from "./tell.js";
import { shown } from "./words.js";

/** Workers and pictures live on while another tab is in front. */
const KEPT = { retainContextWhenHidden: true };

class SnapshotEditor implements vscode.CustomReadonlyEditorProvider {
  readonly #show: (panel: vscode.WebviewPanel, run: Run) => void;

  constructor(show: (panel: vscode.WebviewPanel, run: Run) => void) {
    this.#show = show;
  }

  openCustomDocument(uri: vscode.Uri): vscode.CustomDocument {
    return { uri, dispose: () => undefined };
  }

  resolveCustomEditor({ uri }: vscode.CustomDocument, panel: vscode.WebviewPanel): void {
    if (uri.scheme !== "file")
      throw new Error(`vramscope reads files of a file system. This one is at ${uri.scheme}:.`);
    this.#show(panel, new Run(uri.fsPath, false));
  }
}

/** The folder to diagnose: the one that was clicked on, else one that the user chooses. */
async function folderOf(clicked: vscode.Uri | undefined): Promise<vscode.Uri | undefined> {
  if (clicked) return clicked;
  const chosen = await vscode.window.showOpenDialog({
    canSelectFiles: false,
    canSelectFolders: true,
    openLabel: "Diagnose",
    ...(vscode.workspace.workspaceFolders?.[0] && {
      defaultUri: vscode.workspace.workspaceFolders[0].uri,
    }),
  });
  return chosen?.[0];
}

export function activate({ extensionUri, subscriptions }: vscode.ExtensionContext): void {
  const problems = new ProblemList();
  const show = (panel: vscode.WebviewPanel, run: Run) =>
    connect(panel, run, extensionUri, problems);
  const editor = new SnapshotEditor(show);
  const options = { webviewOptions: KEPT, supportsMultipleEditorsPerDocument: true };
  const diagnoseFolder = async (clicked?: vscode.Uri) => {
    const folder = await folderOf(clicked);
    if (!folder) return;
    const run = new Run(folder.fsPath, true);
    const column = vscode.ViewColumn.Active;
    const title = shown(run.title);
    show(vscode.window.createWebviewPanel("vramscope.folder", title, column, KEPT), run);
    await vscode.commands.executeCommand("workbench.actions.view.problems");
  };
  subscriptions.push(
    problems,
    vscode.window.registerCustomEditorProvider("vramscope.snapshot", editor, options),
    vscode.window.registerCustomEditorProvider("vramscope.other", editor, options),
    vscode.commands.registerCommand("vramscope.diagnoseFolder", (clicked?: vscode.Uri) =>
      diagnoseFolder(clicked).catch(tellError),
    ),
    vscode.languages.registerCodeActionsProvider({ scheme: "file" }, problems, {
      providedCodeActionKinds: [vscode.CodeActionKind.QuickFix],
    }),
  );
}
