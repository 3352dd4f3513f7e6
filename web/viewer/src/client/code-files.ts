// Source files that the user opens beside snapshots: which files are source, which one a recorded
// path names, and whether a line of it may be the line that ran. The program has the same rules
// (crates/vramscope-cli/src/sources.rs, crates/vramscope-report/src/annotate/text.rs).

/** A source file. The path begins with the folder that was opened. */
export interface CodeFile {
  path: string;
  file: File;
}

/** What is known of the text of a line. */
export type LineState =
  /** It was recorded. */
  | "recorded"
  /** The file is older than the recording. */
  | "found"
  /** The file was changed after the recording, or it is not known when. */
  | "unsure"
  /** The file has another text than was recorded. */
  | "differs"
  /** The file has no such line, or not in a function of the recorded name. */
  | "missing"
  /** There is no source. */
  | "unknown";

const EXTENSIONS = [".py", ".pyx", ".cpp", ".cc", ".c", ".cu", ".h", ".hpp", ".cuh"];
const SKIPPED = ["node_modules", "__pycache__", "site-packages"];

/** Whether a folder is searched for source. */
const mayHoldCode = (folder: string): boolean =>
  !folder.startsWith(".") && !SKIPPED.includes(folder);

/** Whether a name is that of a source file. */
export const isCodeName = (name: string): boolean => EXTENSIONS.some((end) => name.endsWith(end));

/** Whether a path below an opened folder is a source file. */
export function isCode(path: string): boolean {
  const folders = path.split("/").slice(0, -1);
  return isCodeName(path) && folders.every(mayHoldCode);
}

const partsOf = (path: string) => path.split(/[/\\]/).filter((part) => part !== "" && part !== ".");

/** The number of parts that two paths have in common at their ends. */
function commonEnd(a: readonly string[], b: readonly string[]): number {
  let common = 0;
  while (common < a.length && common < b.length && a.at(-1 - common) === b.at(-1 - common))
    common += 1;
  return common;
}

/**
 * The fewest parts that must be equal: the path in an installed package, else the path below the
 * opened folder, or two parts. The name alone tells a file only directly in the folder.
 */
function required(wanted: readonly string[], path: readonly string[]): number {
  const packages = wanted.findLastIndex((part) => part.endsWith("-packages"));
  return packages < 0 ? Math.min(Math.max(1, path.length - 1), 2) : wanted.length - packages - 1;
}

/** The files that fit a recorded path best. Several are ambiguous. */
export function filesOf<File extends { path: string }>(
  recorded: string,
  files: readonly File[],
): File[] {
  const wanted = partsOf(recorded);
  let best = 0;
  let found: File[] = [];
  for (const file of files) {
    const path = partsOf(file.path);
    const common = commonEnd(wanted, path);
    if (common === 0 || common < required(wanted, path) || common < best) continue;
    if (common > best) found = [];
    best = common;
    found.push(file);
  }
  return found;
}

/**
 * Whether a line can be in a function or class body of this name: it is defined before the line,
 * and no other definition of its level lies between.
 */
export function mayBeIn(lines: readonly string[], line: number, name: string): boolean {
  // `<module>`, `<lambda>`, and names of C++.
  if (!/^[\p{L}\p{N}_]+$/u.test(name)) return true;
  let isOpen = false;
  let level = 0;
  for (const text of lines.slice(0, line)) {
    const [, space = "", defined] =
      /^(\s*)(?:async\s+)?(?:def|class)\s+([\p{L}\p{N}_]+)/u.exec(text) ?? [];
    if (defined === undefined) continue;
    if (defined === name) {
      if (!isOpen || space.length <= level) level = space.length;
      isOpen = true;
    } else if (space.length <= level) isOpen = false;
  }
  return isOpen;
}

/** A line with what is known of it. */
export interface KnownLine {
  text: string;
  state: LineState;
}

/**
 * The text of a line. `recorded` is its recorded text, empty if it is unknown; `lines` is the file,
 * null without one.
 */
export function lineOf(
  line: number,
  functions: readonly string[],
  recorded: string,
  lines: readonly string[] | null,
  isOld: boolean,
): KnownLine {
  const text = lines?.[line - 1];
  if (recorded !== "") {
    if (text !== undefined && text.trim() === recorded) return { text, state: "recorded" };
    return { text: recorded, state: lines === null ? "recorded" : "differs" };
  }
  if (lines === null) return { text: "", state: "unknown" };
  if (text === undefined || !functions.some((name) => mayBeIn(lines, line, name)))
    return { text: "", state: "missing" };
  return { text, state: isOld ? "found" : "unsure" };
}
