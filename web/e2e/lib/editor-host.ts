// What the built extension uses of VS Code, without a window. It keeps what the extension shows,
// and the paths that the extension asks the file system for.

import fs from "node:fs";
import Module, { createRequire } from "node:module";
import { basename, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import type { FromView, ToView } from "../../../vscode/src/channel.js";

const EXTENSION = fileURLToPath(new URL("../../../vscode", import.meta.url));
const require = createRequire(import.meta.url);

interface Uri {
  scheme: string;
  path: string;
  fsPath: string;
}

interface Folder {
  uri: Uri;
}

/** A problem as the extension gives it to VS Code. */
export interface Entry {
  message: string;
  source: string;
  code: unknown;
  relatedInformation: { message: string; location: { uri: Uri } }[];
}

type Listener = (message: FromView) => void;
type Asked = (path: string, ...more: unknown[]) => Promise<unknown>;

const fileUri = (path: string): Uri => ({ scheme: "file", path, fsPath: path });

/** A class whose objects keep what they were made of. */
const kept = (...names: string[]) =>
  function Kept(this: Record<string, unknown>, ...values: unknown[]) {
    names.forEach((name, index) => {
      this[name] = values[index];
    });
  };

/** All files below a folder. Links are followed, as VS Code does by default. */
function* filesBelow(folder: string): Generator<string> {
  for (const name of fs.readdirSync(folder)) {
    const path = join(folder, name);
    try {
      if (fs.statSync(path).isDirectory()) yield* filesBelow(path);
      else if (fs.statSync(path).isFile()) yield path;
    } catch {
      // A link that leads nowhere.
    }
  }
}

/** A webview of the extension, from the side of its page. */
export class Panel {
  readonly sent: ToView[] = [];
  readonly ended: (() => void)[] = [];
  title: string;
  #listener: Listener = () => undefined;
  #questions = 0;
  readonly webview = {
    cspSource: "own:",
    options: {},
    html: "",
    asWebviewUri: ({ path }: Uri) => path,
    postMessage: (message: ToView) => this.sent.push(message),
    onDidReceiveMessage: (listener: Listener) => {
      this.#listener = listener;
    },
  };

  constructor(title: string) {
    this.title = title;
  }

  onDidDispose(act: () => void): void {
    this.ended.push(act);
  }

  send(message: FromView): void {
    this.#listener(message);
  }

  /** The answer for an address; null if there is none. */
  async fetch(url: string): Promise<string | null> {
    this.#questions += 1;
    const id = this.#questions;
    this.send({ kind: "fetch", id, url });
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, 5));
      const answer = this.sent.find((message) => message.kind === "fetched" && message.id === id);
      if (answer?.kind === "fetched") return answer.body;
    }
  }

  close(): void {
    for (const act of this.ended) act();
  }
}

export class EditorHost {
  /** The messages of notifications. */
  readonly told: string[] = [];
  /** The paths of the file system that were asked for since the extension began. */
  readonly asked: string[] = [];
  /** The files that were opened, with their lines from 1. */
  readonly opened: [string, number][] = [];
  readonly panels: Panel[] = [];
  problems: [Uri, Entry[]][] = [];
  readonly #workspace: string;
  readonly #commands = new Map<string, (uri?: Uri) => Promise<void>>();
  readonly #restore: (() => void)[] = [];
  #editor: { resolveCustomEditor(document: object, panel: Panel): void } | null = null;
  #actions: { provideCodeActions(...of: unknown[]): { title: string }[] } | null = null;

  /** Starts the extension with this folder open. */
  constructor(workspace: string) {
    this.#workspace = workspace;
    this.#watch(fs.promises);
    const loader = Module as unknown as { _load(name: string, ...more: unknown[]): unknown };
    const load = loader._load;
    loader._load = (name, ...more) =>
      name === "vscode" ? this.#module() : load.call(loader, name, ...more);
    const built = require.resolve(`${EXTENSION}/dist/extension.cjs`);
    delete require.cache[built];
    try {
      require(built).activate({ extensionUri: fileUri(EXTENSION), subscriptions: [] });
    } finally {
      loader._load = load;
    }
  }

  /** Opens a snapshot in an editor. */
  open(path: string): Panel {
    const panel = new Panel(basename(path));
    this.panels.push(panel);
    this.#editor?.resolveCustomEditor({ uri: fileUri(path) }, panel);
    return panel;
  }

  async diagnoseFolder(path: string): Promise<Panel> {
    await this.#commands.get("vramscope.diagnoseFolder")?.(fileUri(path));
    const panel = this.panels.at(-1);
    if (!panel) throw new Error("no panel was opened");
    return panel;
  }

  /** The titles of what VS Code offers for a problem. */
  actionsFor(entry: Entry): string[] {
    const actions = this.#actions?.provideCodeActions({}, {}, { diagnostics: [entry] }) ?? [];
    return actions.map(({ title }) => title);
  }

  end(): void {
    for (const panel of this.panels) panel.close();
    for (const act of this.#restore) act();
  }

  /** Notes the paths that functions are called with. */
  #watch(functions: object): void {
    const named = functions as Record<string, Asked>;
    for (const name of ["access", "lstat", "open", "readFile", "readdir", "readlink", "stat"]) {
      const own = named[name] as Asked;
      named[name] = (path, ...more) => {
        this.asked.push(String(path));
        return own.call(functions, path, ...more);
      };
      this.#restore.push(() => {
        named[name] = own;
      });
    }
  }

  #module(): object {
    const tell = async (words: string) => void this.told.push(words);
    const folders: Folder[] = [{ uri: fileUri(this.#workspace) }];
    const relativeTo = ({ fsPath }: Uri) => relative(this.#workspace, fsPath);
    return {
      CodeAction: kept("title", "kind"),
      CodeActionKind: { QuickFix: "quickfix" },
      Diagnostic: kept("range", "message", "severity"),
      DiagnosticRelatedInformation: kept("location", "message"),
      DiagnosticSeverity: { Error: 0, Warning: 1, Information: 2 },
      FileType: { File: 1 },
      Location: kept("uri", "range"),
      Position: kept("line", "character"),
      Range: kept("start", "end"),
      Uri: {
        file: fileUri,
        joinPath: ({ path }: Uri, ...parts: string[]) => fileUri(join(path, ...parts)),
      },
      ViewColumn: { Active: -1, Beside: -2 },
      commands: {
        executeCommand: async () => undefined,
        registerCommand: (name: string, run: (uri?: Uri) => Promise<void>) =>
          this.#commands.set(name, run),
      },
      languages: {
        createDiagnosticCollection: () => ({
          clear: () => {
            this.problems = [];
          },
          set: (entries: [Uri, Entry[]][]) => this.problems.push(...entries),
          dispose: () => undefined,
        }),
        registerCodeActionsProvider: (_: object, provider: never) => {
          this.#actions = provider;
        },
      },
      window: {
        createWebviewPanel: (_: string, title: string) => {
          const panel = new Panel(title);
          this.panels.push(panel);
          return panel;
        },
        registerCustomEditorProvider: (_: string, provider: never) => {
          this.#editor = provider;
        },
        showErrorMessage: tell,
        showInformationMessage: tell,
        showWarningMessage: tell,
        showTextDocument: async (
          { fsPath }: Uri,
          { selection }: { selection: { start: { line: number } } },
        ) => void this.opened.push([fsPath, selection.start.line + 1]),
      },
      workspace: {
        workspaceFolders: folders,
        asRelativePath: relativeTo,
        getWorkspaceFolder: (uri: Uri) => folders.find(() => !relativeTo(uri).startsWith("..")),
        findFiles: async (pattern: string) =>
          [...filesBelow(this.#workspace)]
            .filter((path) => pattern === `**/${basename(path)}`)
            .map(fileUri),
        fs: {
          stat: async ({ fsPath }: Uri) => {
            const found = await fs.promises.stat(fsPath);
            const { size, mtimeMs } = found;
            return { type: Number(found.isFile()), size, mtime: mtimeMs };
          },
          readFile: ({ fsPath }: Uri) => fs.promises.readFile(fsPath),
        },
      },
    };
  }
}

/** The address of a source file, as the viewer asks for it. */
export const sourceUrl = (path: string): string =>
  `vramscope://run/source/${encodeURIComponent(path)}`;
