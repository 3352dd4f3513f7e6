// The files that one editor shows: a snapshot with the file beside it, or all snapshots below a
// folder. Files have numbers, so the webview cannot name others.

import { readdir, stat } from "node:fs/promises";
import { basename, dirname, join, relative, sep } from "node:path";
import { wordsOf } from "../../web/viewer/dist/client/faults.js";
import { isSnapshotName } from "../../web/viewer/dist/client/files.js";
import { RUN, SOURCE } from "./channel.js";

const BESIDE = ".vramscope.json";
/** Files of a folder that are listed. */
const MAX_FILES = 10_000;
const MAX_DEPTH = 12;
/** A file that was modified within this time may be incomplete. */
const SETTLED_MS = 2000;

const FILE = /^vramscope:\/\/run\/files\/(\d+)$/;

interface Found {
  path: string;
  bytes: number;
  searched: boolean;
}

/** The name of the file beside a snapshot (docs/sidecar.md). */
export const besideOf = (path: string): string =>
  path.replace(/(\.(pickle|pkl|pt))?(\.gz)?$/i, "") + BESIDE;

async function sizeOf(path: string): Promise<{ bytes: number; modified: number } | null> {
  const found = await stat(path).catch(() => null);
  return found?.isFile() ? { bytes: found.size, modified: found.mtimeMs } : null;
}

export class Run {
  readonly title: string;
  readonly #isFolder: boolean;
  readonly #root: string;
  /** Folders that the last search could not list, each with the reason. */
  readonly unlisted: string[] = [];
  /** Paths by number. A path keeps its number. */
  readonly #paths: string[] = [];

  constructor(root: string, isFolder: boolean) {
    this.#root = root;
    this.#isFolder = isFolder;
    this.title = basename(root);
  }

  /** The path of an address; null if the run has no such file. */
  pathOf(url: string): string | null {
    const [, number] = FILE.exec(url) ?? [];
    return (number !== undefined && this.#paths[Number(number)]) || null;
  }

  /** The path of a file as answers name it, `FILE` or `FILE#SNAPSHOT`; null for another. */
  pathNamed(name: string): string | null {
    const isIt = (path: string) =>
      name === this.#nameOf(path) || name.startsWith(`${this.#nameOf(path)}#`);
    return this.#paths.find(isIt) ?? null;
  }

  /** The path below the folder that holds the run, as the viewer shows it. */
  #nameOf(path: string): string {
    return relative(dirname(this.#root), path).split(sep).join("/");
  }

  /** The index of the files, as the viewer reads it. Each call lists the files again. */
  async index(): Promise<string> {
    this.unlisted.length = 0;
    const found = this.#isFolder
      ? await below(this.#root, (folder, why) => this.unlisted.push(`${folder}: ${why}`))
      : await this.#single();
    const files = found.map(({ path, bytes, searched }) => ({
      path: this.#nameOf(path),
      url: `${RUN}files/${this.#numberOf(path)}`,
      bytes,
      searched,
      source: SOURCE,
    }));
    return JSON.stringify({ title: this.title, files });
  }

  async #single(): Promise<Found[]> {
    const snapshot = await sizeOf(this.#root);
    const path = besideOf(this.#root);
    const beside = path === this.#root ? null : await sizeOf(path);
    return [
      { path: this.#root, bytes: snapshot?.bytes ?? 0, searched: false },
      ...(beside ? [{ path, bytes: beside.bytes, searched: false }] : []),
    ];
  }

  #numberOf(path: string): number {
    const known = this.#paths.indexOf(path);
    return known < 0 ? this.#paths.push(path) - 1 : known;
  }
}

/** A snapshot that a search of a folder finds; null for other files and incomplete ones. */
async function foundAt(path: string): Promise<Found | null> {
  if (!isSnapshotName(path)) return null;
  const size = await sizeOf(path);
  const isComplete = size !== null && Date.now() - size.modified >= SETTLED_MS;
  return isComplete ? { path, bytes: size.bytes, searched: true } : null;
}

const isSkipped = (folder: string) => folder.startsWith(".") || folder === "node_modules";

/**
 * The snapshots below a folder, and the files beside them. Links are not followed. `refused` hears
 * of folders that cannot be listed.
 */
async function below(
  root: string,
  refused: (folder: string, why: string) => void,
): Promise<Found[]> {
  const found: (Found | null)[] = [];
  const folders: [string, number][] = [[root, 0]];
  for (let next = folders.shift(); next; next = folders.shift()) {
    const [folder, depth] = next;
    const entries = await readdir(folder, { withFileTypes: true }).catch((error: unknown) => {
      refused(folder, wordsOf(error));
      return [];
    });
    entries.sort((a, b) => (a.name < b.name ? -1 : 1));
    const named = (of: (typeof entries)[number]) => join(folder, of.name);
    const files = entries.filter((entry) => entry.isFile()).map(named);
    found.push(...(await Promise.all(files.map(foundAt))));
    if (found.length > MAX_FILES || depth === MAX_DEPTH) continue;
    const inner = entries.filter((entry) => entry.isDirectory() && !isSkipped(entry.name));
    folders.push(...inner.map((entry): [string, number] => [named(entry), depth + 1]));
  }
  return found.filter((each) => each !== null).slice(0, MAX_FILES);
}
