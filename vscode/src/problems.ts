// Findings as problems: each at the line that it names, or at the snapshot.

import type {
  FindingPlace,
  FindingRecord,
  Severity,
  Summary,
} from "../../web/viewer/dist/generated/protocol.js";
import type { FromWorker } from "./channel.js";
import { shown } from "./words.js";

/** The most characters of a line of a problem. */
const MAX_LINE = 1000;

/** A line of source as it was recorded. */
export interface RecordedLine {
  file: string;
  line: number;
  functionName: string;
  text: string;
}

/** What the problem's entry says. */
export interface Problem {
  severity: Severity;
  /** The kind of the finding, as `vramscope schema diagnose` names it. */
  kind: string;
  message: string;
  /** The recorded line, with its text if that is known; null without one. */
  place: RecordedLine | null;
}

/** A finding in an answer. */
interface Found {
  key: string;
  /** The snapshot, as answers name it. */
  name: string;
  problem: Problem;
  /** Whether its fixes were replayed. */
  isReplayed: boolean;
}

function recordedLine(place: FindingPlace | null): RecordedLine | null {
  if (place === null || place.line === 0) return null;
  const { file, line, site, source } = place;
  // A site is `FILE:LINE FUNCTION`.
  return { file, line, functionName: site.replace(/^\S+:\d+ /, ""), text: source ?? "" };
}

function foundOf(record: FindingRecord, lines: readonly string[], isReplayed: boolean): Found {
  const { path, id, kind, severity, title, place } = record;
  const said = [title, ...lines].filter((line) => line !== "");
  const message = said.map((line) => shown(line, MAX_LINE));
  const problem = { severity, kind, message: message.join("\n"), place: recordedLine(place) };
  return { key: `${path} ${id}`, name: path, problem, isReplayed };
}

const plain = (record: FindingRecord): Found => {
  const { why, action } = record;
  return foundOf(record, [why === "" ? "" : `why: ${why}`, action], false);
};

/** The findings of a summary. The first has the fixes that were replayed. */
function ofSummary({ record: { headlines }, view }: Summary): Found[] {
  return view.findings.map(({ record, view: { fixes } }) => {
    if (record.id !== headlines[0]?.finding) return plain(record);
    return foundOf(record, [...view.lines, view.remedy, ...fixes], view.isSimulated);
  });
}

/**
 * The findings in an answer of a worker: of the card of a file, of the summary of a device, or of
 * the comparison of ranks.
 */
function findingsIn(message: FromWorker): Found[] {
  if (message.kind === "run" && message.response.kind === "overview")
    return message.response.overview.outliers.map(({ record }) => plain(record));
  if (message.kind !== "reply" || message.response.kind !== "view") return [];
  const { answer } = message.response;
  if ("card" in answer) return answer.card.findings.map(({ record }) => plain(record));
  return "summary" in answer ? ofSummary(answer.summary) : [];
}

/** The findings of all snapshots that are open, by the path of the snapshot. */
export class Findings {
  readonly #found = new Map<string, Map<string, Found>>();

  /**
   * Takes an answer. `fileOf` gives the snapshot of a finding by the name in its record. Returns
   * the snapshots that have findings.
   */
  take(message: FromWorker, fileOf: (name: string) => string | null): Set<string> {
    const files = new Set<string>();
    for (const found of findingsIn(message)) {
      const file = fileOf(found.name);
      if (file === null) continue;
      const known = this.#found.get(file) ?? new Map<string, Found>();
      this.#found.set(file, known);
      files.add(file);
      // The card, which has no fixes, may come after the summary.
      if (found.isReplayed || !known.get(found.key)?.isReplayed) known.set(found.key, found);
    }
    return files;
  }

  forget(snapshot: string): void {
    this.#found.delete(snapshot);
  }

  get all(): [string, Problem[]][] {
    return [...this.#found].map(([path, known]) => [
      path,
      [...known.values()].map(({ problem }) => problem),
    ]);
  }
}
