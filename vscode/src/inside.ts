// Whether a path stays in a folder. The way there is walked by steps, and each link is read before
// it is followed: a question about a path that leads out may already contact another machine.

import { lstat, readlink, realpath } from "node:fs/promises";
import { dirname, isAbsolute, join, sep } from "node:path";

/** Links that are followed on one way, as in Linux. */
const MAX_LINKS = 40;
const STEPS = sep === "/" ? "/" : /[\\/]/;

/** Whether a path is a folder or lies below it, by the texts of both. */
const isBelow = (path: string, folder: string): boolean =>
  `${path}${sep}`.startsWith(folder.endsWith(sep) ? folder : folder + sep);

/** Folders by their names and by their places without links. */
type Folders = readonly (readonly [name: string, real: string])[];

/** Where a way begins, and its steps from there. */
type Way = [at: string, steps: string[]];

/** The way to an absolute path; null if that is outside. */
function wayTo(path: string, folders: Folders): Way | null {
  for (const [name, real] of folders) {
    const start = [name, real].find((folder) => isBelow(path, folder));
    if (start !== undefined) return [real, path.slice(start.length).split(STEPS)];
  }
  return null;
}

/** The way through a link, and on from there. */
async function through(link: string, rest: string[], folders: Folders): Promise<Way | null> {
  const target = await readlink(link).catch(() => null);
  if (target === null) return null;
  const steps = [...target.split(STEPS), ...rest];
  return isAbsolute(target) ? wayTo(steps.join(sep), folders) : [dirname(link), steps];
}

/**
 * Whether an absolute path without `..` is a regular file in one of these folders, with its links
 * followed. The file system is asked for nothing outside of them.
 */
export async function isFileInside(path: string, within: readonly string[]): Promise<boolean> {
  const known = within.map(async (name) => [name, await realpath(name).catch(() => name)] as const);
  const folders = await Promise.all(known);
  let way = wayTo(path, folders);
  let isFile = false;
  for (let links = 0; way !== null && links <= MAX_LINKS; ) {
    const [at, [step, ...rest]]: Way = way;
    if (step === undefined) return isFile;
    const next = step === ".." ? dirname(at) : join(at, step);
    if (!folders.some(([, real]) => isBelow(next, real))) return false;
    const found = await lstat(next).catch(() => null);
    isFile = found?.isFile() ?? false;
    const isLink = found?.isSymbolicLink() ?? false;
    links += Number(isLink);
    if (isLink) way = await through(next, rest, folders);
    else way = found && [next, rest];
  }
  return false;
}
