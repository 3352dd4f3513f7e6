// Sources with paths, from a drop, a file picker, a folder picker or a script.

import { isCode } from "./code-files.js";
import type { Source } from "./rank-file.js";

/** Ends of the names of snapshots in a folder. A file that is opened alone may have any name. */
const EXTENSIONS = [".pickle", ".pkl", ".pt", ".gz", ".html", ".json", ".vramscope"];

/** Whether a file that a search of a folder finds may be a snapshot, or lie beside one. */
export const isSnapshotName = (name: string): boolean =>
  EXTENSIONS.some((extension) => name.toLowerCase().endsWith(extension));

/** The last component of a path of any system. */
export const fileName = (path: string): string => path.split(/[\\/]/).at(-1) ?? path;

const fromFile = (file: File, path: string): Source => ({ path, bytes: file.size, from: file });

const fromFolder = (file: File, path: string): Source => ({
  ...fromFile(file, path),
  searched: true,
});

const fileOf = (entry: FileSystemFileEntry) =>
  new Promise<File>((resolve, reject) => entry.file(resolve, reject));

/** All entries of a folder. Chromium lists at most 100 in a call, Firefox any number. */
async function children(folder: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = folder.createReader();
  const all: FileSystemEntry[] = [];
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) =>
      reader.readEntries(resolve, reject),
    );
    if (some.length === 0) return all;
    for (const entry of some) all.push(entry);
  }
}

async function walk(entry: FileSystemEntry, insideFolder: boolean): Promise<Source[]> {
  if (entry.isDirectory) {
    const entries = await children(entry as FileSystemDirectoryEntry);
    const nested = await Promise.all(entries.map((child) => walk(child, true)));
    return nested.flat();
  }
  if (insideFolder && !isSnapshotName(entry.name) && !isCode(entry.fullPath)) return [];
  const file = await fileOf(entry as FileSystemFileEntry);
  const source = insideFolder ? fromFolder : fromFile;
  return [source(file, entry.fullPath.replace(/^\//, ""))];
}

/** The files of a drop, folders recursively. The items are readable only in the drop event. */
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

/** The files of an `<input type=file>`. A folder picker gives paths. */
export function fromInput(files: Iterable<File>): Source[] {
  const all = [...files];
  return all
    .filter(
      ({ name, webkitRelativePath: path }) => path === "" || isSnapshotName(name) || isCode(path),
    )
    .map((file) =>
      file.webkitRelativePath === ""
        ? fromFile(file, file.name)
        : fromFolder(file, file.webkitRelativePath),
    );
}

/** The inputs of `load()`. */
export type LoadInput = File | ArrayBuffer | URL | string | { name: string; buffer: ArrayBuffer };

function nameOfUrl(url: URL): string {
  const name = url.pathname.split("/").at(-1) || url.host;
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** The sources that a script names. Relative addresses are resolved against the page. */
export function fromScript(inputs: Iterable<LoadInput>): Source[] {
  return [...inputs].map((input) => {
    if (input instanceof File) return fromFile(input, input.webkitRelativePath || input.name);
    if (input instanceof ArrayBuffer)
      return { path: "snapshot", bytes: input.byteLength, from: new Blob([input]) };
    if (input instanceof URL || typeof input === "string") {
      // A bad address fails on its row, like an address that cannot be fetched.
      if (!URL.canParse(input, document.baseURI))
        return { path: String(input), bytes: 0, from: String(input) };
      const url = new URL(input, document.baseURI);
      return { path: nameOfUrl(url), bytes: 0, from: url.href };
    }
    return { path: input.name, bytes: input.buffer.byteLength, from: new Blob([input.buffer]) };
  });
}

/** Whether two sources are one file. Browsers identify a file only by name, size and time. */
export function isSame(a: Source, b: Source): boolean {
  if (!(a.from instanceof File && b.from instanceof File)) return a.from === b.from;
  const named = a.path === b.path || a.path.endsWith(`/${b.path}`) || b.path.endsWith(`/${a.path}`);
  return named && a.bytes === b.bytes && a.from.lastModified === b.from.lastModified;
}

/** Equal for sources that may be the same: of many files, few are compared with each other. */
const likenessOf = ({ path, bytes, from }: Source): Source["from"] =>
  from instanceof File ? `${bytes} ${from.lastModified} ${fileName(path)}` : from;

/**
 * The sources that are not open yet. If a path is taken, as in two folders with the same ranks, all
 * of them get a new folder.
 */
export function notOpen(open: readonly Source[], sources: readonly Source[]): Source[] {
  const alike = new Map<Source["from"], Source[]>();
  for (const source of open) {
    const known = alike.get(likenessOf(source));
    if (known) known.push(source);
    else alike.set(likenessOf(source), [source]);
  }
  const isOpen = (source: Source) =>
    alike.get(likenessOf(source))?.some((other) => isSame(source, other)) === true;
  const fresh = sources.filter((source) => !isOpen(source));
  const taken = new Set(open.map(({ path }) => path));
  let group = "";
  for (let number = 2; fresh.some(({ path }) => taken.has(group + path)); number += 1)
    group = `${number}/`;
  return fresh.map((source) => ({ ...source, path: group + source.path }));
}
