// Messages of the extension in VS Code's notifications. `cargo xtask tidy` lets no other file call
// them.

import * as vscode from "vscode";
import { wordsOf } from "../../web/viewer/dist/client/faults.js";
import { shown } from "./words.js";

const SHOWN = {
  error: (words: string) => vscode.window.showErrorMessage(words),
  information: (words: string) => vscode.window.showInformationMessage(words),
  warning: (words: string) => vscode.window.showWarningMessage(words),
};

/** Shows words that may have text of files. */
export function tell(kind: keyof typeof SHOWN, words: string): void {
  void SHOWN[kind](shown(words));
}

/** Shows why something failed. */
export const tellError = (error: unknown): void => tell("error", `vramscope: ${wordsOf(error)}`);
