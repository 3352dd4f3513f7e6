// From what a user hands over (a drop, a file picker, a folder picker, a script) to sources with
// paths.

import type { Source } from "./rank-file.js";

/**
 * What a folder is searched for. Files that were picked one by one are taken whatever their name
 * is.
 */
const EXTENSIONS = [".pickle", ".pkl", ".pt", ".gz", ".html", ".json"];

const isSnapshotName = (name: string) =>
  EXTENSIONS.some((extension) => name.toLowerCase().endsWith(extension));

const fromFile = (file: File, path: string): Source => ({ path, bytes: file.size, from: file });

const fileOf = (entry: FileSystemFileEntry) =>
  new Promise<File>((resolve, reject) => entry.file(resolve, reject));

/** One call lists at most a hundred entries: it is asked until it has no more. */
async function children(folder: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = folder.createReader();
  const all: FileSystemEntry[] = [];
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) =>
      reader.readEntries(resolve, reject),
    );
    if (some.length === 0) return all;
    all.push(...some);
  }
}

async function walk(entry: FileSystemEntry, insideFolder: boolean): Promise<Source[]> {
  if (entry.isDirectory) {
    const entries = await children(entry as FileSystemDirectoryEntry);
    const nested = await Promise.all(entries.map((child) => walk(child, true)));
    return nested.flat();
  }
  if (insideFolder && !isSnapshotName(entry.name)) return [];
  const file = await fileOf(entry as FileSystemFileEntry);
  return [fromFile(file, entry.fullPath.replace(/^\//, ""))];
}

/**
 * The files of a drop, folders recursively. Must be called inside the drop event: its items are
 * gone after it.
 */
export function fromDrop(data: DataTransfer): Promise<Source[]> {
  const walks: Promise<Source[]>[] = [];
  for (const item of data.items) {
    if (item.kind !== "file") continue;
    const entry = item.webkitGetAsEntry();
    const file = entry === null ? item.getAsFile() : null;
    if (entry !== null) walks.push(walk(entry, false));
    else if (file !== null) walks.push(Promise.resolve([fromFile(file, file.name)]));
  }
  return Promise.all(walks).then((nested) => nested.flat());
}

/** The files of an `<input type=file>`; those of a folder picker come with their paths. */
export function fromInput(files: Iterable<File>): Source[] {
  const all = [...files];
  return all
    .filter((file) => file.webkitRelativePath === "" || isSnapshotName(file.name))
    .map((file) => fromFile(file, file.webkitRelativePath || file.name));
}

/** What `load()` takes. */
export type LoadInput = File | ArrayBuffer | URL | string | { name: string; buffer: ArrayBuffer };

function nameOfUrl(url: URL): string {
  const name = url.pathname.split("/").at(-1) || url.host;
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** The sources that a script names. A relative address is one of the page's. */
export function fromScript(inputs: Iterable<LoadInput>): Source[] {
  return [...inputs].map((input) => {
    if (input instanceof File) return fromFile(input, input.webkitRelativePath || input.name);
    if (input instanceof ArrayBuffer)
      return { path: "snapshot", bytes: input.byteLength, from: new Blob([input]) };
    if (input instanceof URL || typeof input === "string") {
      // What is no address is refused on its row, as what cannot be fetched is.
      if (!URL.canParse(input, document.baseURI))
        return { path: String(input), bytes: 0, from: String(input) };
      const url = new URL(input, document.baseURI);
      return { path: nameOfUrl(url), bytes: 0, from: url.href };
    }
    return { path: input.name, bytes: input.buffer.byteLength, from: new Blob([input.buffer]) };
  });
}

/** A file has no identity in a browser but its name, its size and its time. */
export function isSame(a: Source, b: Source): boolean {
  if (!(a.from instanceof File && b.from instanceof File)) return a.from === b.from;
  const named = a.path === b.path || a.path.endsWith(`/${b.path}`) || b.path.endsWith(`/${a.path}`);
  return named && a.bytes === b.bytes && a.from.lastModified === b.from.lastModified;
}

/**
 * What of these is not open yet. Where a name is taken, as in two folders with the same ranks, all
 * of them go into a group of their own.
 */
export function beside(open: readonly Source[], sources: readonly Source[]): Source[] {
  const fresh = sources.filter((source) => !open.some((other) => isSame(source, other)));
  const taken = new Set(open.map(({ path }) => path));
  let group = "";
  for (let number = 2; fresh.some(({ path }) => taken.has(group + path)); number += 1)
    group = `${number}/`;
  return fresh.map((source) => ({ ...source, path: group + source.path }));
}
