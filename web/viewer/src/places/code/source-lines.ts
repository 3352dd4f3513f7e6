// The lines of a source file with their memory, and what is to know of their text.

import { type LineState, lineOf } from "../../client/code-files.js";
import type { SourcePage, SourceRow } from "../../generated/protocol.js";
import type { SourceText } from "./sources.js";

/** Lines around a line with blocks, if not all are shown. */
const AROUND = 2;

/** A line of the file. */
export interface Line {
  line: number;
  text: string;
  state: LineState;
  /** Its memory; null for a line without blocks. */
  row: SourceRow | null;
}

/** The lines of a file with their memory. */
export function linesOf(page: SourcePage, text: SourceText, isOld: boolean): Line[] {
  const rows = page.rows.filter(({ depth }) => depth === 2);
  const found = text !== null && "lines" in text ? text.lines : null;
  const whole = page.text === null ? found : page.text.replace(/\n$/, "").split("\n");
  const known = (row: SourceRow): Line => {
    const { line, source, functions } = row;
    // The whole text was recorded.
    if (page.text !== null) return { line, text: whole?.[line - 1] ?? "", state: "recorded", row };
    return { ...lineOf(line, functions, source, whole, isOld), line, row };
  };
  if (whole === null) return rows.map(known);
  const byLine = new Map(rows.map((row) => [row.line, row]));
  const usual: LineState = page.text === null ? (isOld ? "found" : "unsure") : "recorded";
  const lines = whole.map((text, index) => {
    const row = byLine.get(index + 1);
    return row ? known(row) : { line: index + 1, text, state: usual, row: null };
  });
  return [...lines, ...rows.filter(({ line }) => line > whole.length).map(known)];
}

/** The lines with blocks and those around them. */
export function nearOf(lines: readonly Line[]): Line[] {
  const near = new Set(
    lines.flatMap(({ row }, index) =>
      row ? Array.from({ length: 2 * AROUND + 1 }, (_, by) => index + by - AROUND) : [],
    ),
  );
  return lines.filter((_, index) => near.has(index));
}

/** What is to know of the source, in sentences. */
export function notesOf(
  page: SourcePage,
  text: SourceText,
  lines: readonly Line[],
  until: number | null,
) {
  const has = (state: LineState) => lines.some((line) => line.row && line.state === state);
  if (page.text !== null) return [];
  if (text !== null && "refused" in text) return [text.refused];
  if (text === null) {
    const how =
      "Choose the folder with the program's source, drop it on the page, or start with " +
      "vramscope serve --source DIR.";
    return has("unknown") ? [`The text of these lines is not known. ${how}`] : [];
  }
  const notes: string[] = [];
  if (has("missing"))
    notes.push(`${text.from} is not the file that ran: lines with ! are not in their function.`);
  if (has("differs"))
    notes.push(`The recorded text of lines with ! differs from ${text.from}. It is shown.`);
  if (has("unsure"))
    notes.push(
      until === null || text.modified === null
        ? `It is not known if ${text.from} was changed after the recording.`
        : `${text.from} was changed after the recording: the lines that ran may have been others.`,
    );
  return notes;
}
