// The files that one editor shows: a snapshot with the file beside it, or all snapshots below a
// folder. Files have numbers, so the webview cannot name others.

import type { Dirent } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { basename, dirname, join, relative, sep } from "node:path";
import { wordsOf } from "../../web/viewer/dist/client/faults.js";
import { isSnapshotName } from "../../web/viewer/dist/client/files.js";
import { RUN, SOURCE } from "./channel.js";

const BESIDE = ".vramscope.json";
/** Files of a folder that are listed: snapshots, and the files beside them. */
const MAX_FILES = 10_000;
/** Files and folders of any kind that a search passes. */
const MAX_ENTRIES = 4_000_000;
const MAX_DEPTH = 12;
/** Files whose sizes are asked for at once. */
const BATCH = 1000;
/** A file that was modified within this time may be incomplete. */
const SETTLED_MS = 2000;

const FILE = /^vramscope:\/\/run\/files\/(\d+)$/;

interface Found {
  path: string;
  bytes: number;
  searched: boolean;
}

/** The name of the file beside a snapshot (SIDECAR.md). */
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
  /** What the last index lacks: a sentence for each folder or limit. */
  missing: readonly string[] = [];
  /** Paths by number. A path keeps its number. */
  readonly #paths: string[] = [];
  readonly #numbers = new Map<string, number>();
  /** Paths by their names in answers. */
  readonly #named = new Map<string, string>();

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
    for (let end = name.length; end > 0; end = name.lastIndexOf("#", end - 1)) {
      const path = this.#named.get(name.slice(0, end));
      if (path !== undefined) return path;
    }
    return null;
  }

  /** The path below the folder that holds the run, as the viewer shows it. */
  #nameOf(path: string): string {
    return relative(dirname(this.#root), path).split(sep).join("/");
  }

  /** The index of the files, as the viewer reads it. Each call lists the files again. */
  async index(): Promise<string> {
    const missing: string[] = [];
    const found = this.#isFolder ? await below(this.#root, missing) : await this.#single();
    this.missing = missing;
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
    const number = this.#numbers.get(path) ?? this.#paths.push(path) - 1;
    this.#numbers.set(path, number);
    this.#named.set(this.#nameOf(path), path);
    return number;
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

/** Why a search ends before it has seen everything; null while it goes on. */
function limitOf(found: number, passed: number): string | null {
  const all = (most: number) => most.toLocaleString("en-US");
  if (found > MAX_FILES) return `${all(MAX_FILES)} files that may be snapshots`;
  return passed > MAX_ENTRIES ? `${all(MAX_ENTRIES)} files and folders` : null;
}

/** Adds the snapshots among the entries of a folder, until there are more than may be listed. */
async function takeFrom(folder: string, entries: Dirent[], found: Found[]): Promise<void> {
  const files = entries.filter((entry) => entry.isFile() && isSnapshotName(entry.name));
  for (let at = 0; at < files.length && found.length <= MAX_FILES; at += BATCH) {
    const some = files.slice(at, at + BATCH).map(({ name }) => foundAt(join(folder, name)));
    for (const each of await Promise.all(some)) if (each !== null) found.push(each);
  }
}

/**
 * The snapshots below a folder, and the files beside them. Links are not followed. `missing` gets a
 * sentence for each folder that cannot be listed, and for each limit that was reached.
 */
async function below(root: string, missing: string[]): Promise<Found[]> {
  const found: Found[] = [];
  const folders: [string, number][] = [[root, 0]];
  let passed = 0;
  let tooDeep = "";
  // The list grows while it is read.
  for (const [folder, depth] of folders) {
    const entries = await readdir(folder, { withFileTypes: true }).catch((error: unknown) => {
      missing.push(`vramscope cannot list ${folder}: ${wordsOf(error)}.`);
      return [];
    });
    entries.sort((a, b) => (a.name < b.name ? -1 : 1));
    await takeFrom(folder, entries, found);
    passed += entries.length;
    const limit = limitOf(found.length, passed);
    if (limit !== null) {
      missing.unshift(`vramscope ended its search after ${limit}, in ${folder}.`);
      break;
    }
    const inner = entries.filter((entry) => entry.isDirectory() && !isSkipped(entry.name));
    if (depth === MAX_DEPTH) tooDeep ||= inner.length > 0 ? folder : "";
    else for (const { name } of inner) folders.push([join(folder, name), depth + 1]);
  }
  if (tooDeep !== "")
    missing.unshift(`vramscope searches ${MAX_DEPTH} folders deep, and not below ${tooDeep}.`);
  return found.slice(0, MAX_FILES);
}
