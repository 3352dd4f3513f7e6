// An editor's webview: the viewer, connected to its readers on this machine.

import * as vscode from "vscode";
import { type FromView, INDEX, SOURCE, type ToView } from "./channel.js";
import type { ProblemList } from "./problem-list.js";
import { Readers } from "./readers.js";
import type { Run } from "./run.js";
import { openLine, textOf } from "./sources.js";
import { tell, tellError } from "./tell.js";

/** The page of the webview. It can reach nothing but the extension's own files. */
function pageOf(webview: vscode.Webview, dist: vscode.Uri): string {
  const at = (name: string) => webview.asWebviewUri(vscode.Uri.joinPath(dist, name)).toString();
  const own = webview.cspSource;
  const policy = [
    "default-src 'none'",
    `script-src ${own} 'wasm-unsafe-eval'`,
    `style-src ${own}`,
    `connect-src ${own}`,
    "img-src data: blob:",
  ].join("; ");
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta http-equiv="Content-Security-Policy" content="${policy}" />
    <title>vramscope</title>
    <link rel="stylesheet" href="${at("view.css")}" />
  </head>
  <body data-wasm="${at("vramscope_view_bg.wasm")}">
    <script src="${at("view.js")}"></script>
  </body>
</html>`;
}

/** What the last index of a run lacks, in a sentence or two; empty if it is whole. */
function missingOf({ missing: [first, ...others] }: Run): string {
  const count = others.length.toLocaleString("en-US");
  if (first === undefined) return "";
  return others.length === 0 ? first : `${first} There are ${count} more such notes.`;
}

/** What the webview asks for: the index of the files, or a source file. */
async function bodyOf(run: Run, url: string): Promise<string | null> {
  if (url === INDEX) return run.index();
  return url.startsWith(SOURCE) ? textOf(decodeURIComponent(url.slice(SOURCE.length))) : null;
}

/** Shows a run in a webview until that is closed. */
export function connect(
  panel: vscode.WebviewPanel,
  run: Run,
  extension: vscode.Uri,
  problems: ProblemList,
): void {
  const { webview } = panel;
  const dist = vscode.Uri.joinPath(extension, "dist");
  const post = (message: ToView) => void webview.postMessage(message);
  const shown = new Set<string>();
  let told = "";
  const readers = new Readers(dist.fsPath, run, {
    message: (worker, message) => post({ kind: "message", worker, message }),
    failed: (worker, words) => post({ kind: "failed", worker, words }),
    answered: (path, message) => {
      const files = problems.take(message, (name) => path ?? run.pathNamed(name));
      for (const file of files) {
        if (!shown.has(file)) problems.show(file);
        shown.add(file);
      }
    },
  });
  webview.onDidReceiveMessage((message: FromView) => {
    switch (message.kind) {
      case "start":
        readers.start(message.worker);
        break;
      case "post":
        readers.post(message.worker, message.message);
        break;
      case "end":
        readers.end(message.worker);
        break;
      case "fetch":
        void bodyOf(run, message.url)
          .catch((error: unknown) => {
            tellError(error);
            return null;
          })
          .then((body) => {
            post({ kind: "fetched", id: message.id, body });
            const missing = missingOf(run);
            if (missing !== "" && missing !== told) tell("warning", missing);
            told = missing;
          });
        break;
      case "line":
        openLine(message.file, message.line).catch(tellError);
        break;
    }
  });
  panel.onDidDispose(() => {
    readers.destroy();
    for (const path of shown) problems.hide(path);
  });
  webview.options = { enableScripts: true, localResourceRoots: [dist] };
  webview.html = pageOf(webview, dist);
}
