// The source files that the user opened. They stay when other snapshots are opened.

import { type Signal, signal } from "@preact/signals";
import type { CodeFile } from "./client/code-files.js";

export class CodeStore {
  readonly files: Signal<readonly CodeFile[]> = signal([]);

  /** Adds files in place of those with the same path. */
  add(files: readonly CodeFile[]): void {
    if (files.length === 0) return;
    const fresh = new Set(files.map(({ path }) => path));
    const others = this.files.peek().filter(({ path }) => !fresh.has(path));
    this.files.value = [...others, ...files];
  }
}
