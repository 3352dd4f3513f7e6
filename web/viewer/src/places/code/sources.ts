// The text of source files: from files that the user opened, or from the program that serves the
// page.

import { effect, type Signal, signal } from "@preact/signals";
import { type CodeFile, filesOf, type KnownLine, lineOf } from "../../client/code-files.js";
import type { FrameRow } from "../../generated/protocol.js";
import type { Uses } from "../../stores.js";

/** The lines of a file, or why it is not taken; null without a file, and until it is read. */
export type SourceText =
  | { lines: readonly string[]; from: string; modified: number | null }
  | { refused: string }
  | null;

/** Files with more bytes are no source. */
const MAX_BYTES = 4 * 2 ** 20;

type SourcesOwners = Uses<"selection" | "viewSelection" | "navigation" | "code" | "host">;

/** The answer of the program. */
type Served = { found: string; text: string; modified: number | null } | { refused: string };

const linesOf = (text: string) => text.replace(/\n$/, "").split(/\r?\n/);

export class Sources {
  readonly #owners: SourcesOwners;
  readonly #texts = new Map<string, Signal<SourceText>>();
  readonly #stop: () => void;

  constructor(owners: SourcesOwners) {
    this.#owners = owners;
    // Other files have other texts.
    this.#stop = effect(() => {
      owners.code.files.value;
      this.#texts.clear();
    });
  }

  destroy(): void {
    this.#stop();
  }

  /** The text of a recorded path, which is read when it is asked for first. */
  text(path: string): SourceText {
    const { code, selection } = this.#owners;
    const files = code.files.value;
    const served = selection.focus.value?.file.source.code ?? null;
    const key = `${served} ${path}`;
    const known = this.#texts.get(key);
    if (known) return known.value;
    const text = signal<SourceText>(null);
    this.#texts.set(key, text);
    const read = files.length > 0 ? opened(path, files) : Promise.resolve(null);
    void read
      .then((found) => found ?? (served === null ? null : fetched(served, path)))
      .catch((error: unknown) => ({ refused: `${path} cannot be read: ${String(error)}` }))
      .then((found) => {
        text.value = found;
      });
    return text.value;
  }

  /** Whether a file is older than the recording in focus. */
  isOld(text: SourceText): boolean {
    const until = this.#owners.selection.trace.value?.device?.until ?? null;
    if (text === null || "refused" in text) return false;
    return until !== null && text.modified !== null && text.modified <= until;
  }

  /** The line of a frame, with the file that has it; null if there is none to show. */
  frame({ name, file, line, source, framework }: FrameRow): (KnownLine & { from: string }) | null {
    // What was recorded needs no file.
    if (source !== "") return { text: source, state: "recorded", from: "" };
    if (line === 0 || framework) return null;
    const text = this.text(file);
    if (text === null || "refused" in text) return null;
    const known = lineOf(line, [name], "", text.lines, this.isOld(text));
    return known.text.trim() === "" ? null : { ...known, from: text.from };
  }

  /** Shows a line where the page around the viewer does, else in the source view. */
  open(file: string, line: number): void {
    const { viewSelection, navigation, host } = this.#owners;
    if (host.showLine({ file, line })) return;
    viewSelection.source.value = { file, line };
    navigation.open("source");
  }
}

/** The file among those that the user opened. */
async function opened(path: string, files: readonly CodeFile[]): Promise<SourceText> {
  const [found, other] = filesOf(path, files);
  if (!found) return null;
  if (other) {
    const both = `${found.path} and ${other.path}`;
    return { refused: `${both} fit ${path} equally. Open the folder of one of them.` };
  }
  if (found.file.size > MAX_BYTES) return { refused: `${found.path} is too large to be source.` };
  const { lastModified: modified } = found.file;
  return { lines: linesOf(await found.file.text()), from: found.path, modified };
}

/** The file that the program has. */
async function fetched(base: string, path: string): Promise<SourceText> {
  // A part of only dots would lead elsewhere.
  if (/^\.+$/.test(path)) return null;
  const response = await fetch(base + encodeURIComponent(path));
  if (response.status === 404) return null;
  if (!response.ok) throw new Error(`the program answered ${response.status}`);
  const answer = (await response.json()) as Served;
  if ("refused" in answer) return answer;
  return { lines: linesOf(answer.text), from: answer.found, modified: answer.modified };
}
