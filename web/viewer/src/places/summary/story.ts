// The headline of the summary: of the device in focus, of what the comparison of ranks found, or of
// a run of which no rank is chosen.

import type { FindingRow, LeverPlace, Severity } from "../../generated/protocol.js";
import { rowName } from "../../run.js";
import type { ViewUses } from "../../views/workspace.js";

export type StoryUses = ViewUses<"runs" | "selection" | "queries" | "ranks">;

export interface Story {
  /** The rank, with several rows: `Rank 3: `. Empty where the headline names it. */
  owner: string;
  /** What is wrong. Empty until it is known. */
  headline: string;
  severity: Severity | null;
  /** The line that the headline names; null without one. */
  place: LeverPlace | null;
  /** The text of that line, where the file has it. */
  source: { line: number; text: string } | null;
  lines: readonly string[];
  remedy: string;
  /** The finding; null without one above low. */
  finding: FindingRow | null;
}

/** Whether no rank of an index is chosen: then the story is the worst finding of the run. */
export const isOfRun = ({ runs, selection }: StoryUses) =>
  selection.focus.value === null && runs.run.value?.isIndexed === true;

/** Whether the file in focus is read and has no device with events or memory. */
export const isWithoutDevice = ({ selection }: StoryUses) => {
  const trace = selection.trace.value;
  return trace !== null && trace.device === null;
};

const NO_DEVICE = "This snapshot is empty: recording was off, or nothing ran on a GPU";

const ownerOf = (name: string) => `${name.charAt(0).toUpperCase()}${name.slice(1)}: `;

function told(owner: string, { record, view }: FindingRow): Story {
  const headline = view.headline.map(({ text }) => text).join("");
  const { severity, text, action } = record;
  const lines = [text, action].filter((line) => line !== "");
  const named = record.kind === "rank_skew" ? "" : owner;
  const place = record.place ?? null;
  const source = place?.source ? { line: place.line, text: place.source } : null;
  const finding = { record, view };
  return { owner: named, headline, severity, place, source, lines, remedy: action, finding };
}

const plain = (owner: string, headline: string, lines: readonly string[] = []): Story => ({
  owner,
  headline,
  severity: null,
  place: null,
  source: null,
  lines,
  remedy: "",
  finding: null,
});

/** The worst finding of all ranks. */
function worstOf({ runs, queries, ranks }: StoryUses): Story {
  const finding = queries.cards.value?.[0]?.members[0];
  if (!finding) return plain("", ranks.overview.value?.notableText ?? "");
  const row = runs.rows.value.find(({ file }) => file.path === finding.record.path);
  const rank = row?.file.planned.rank ?? null;
  const owner = rank !== null ? ownerOf(`rank ${rank}`) : row ? ownerOf(rowName(row)) : "";
  return told(owner, finding);
}

export function storyOf(owners: StoryUses): Story {
  const { runs, selection, queries, ranks } = owners;
  if (isOfRun(owners)) return worstOf(owners);
  const rows = runs.rows.value;
  const row = rows.find((each) => selection.isFocused(each));
  const owner = row && rows.length > 1 ? ownerOf(rowName(row)) : "";
  if (isWithoutDevice(owners)) return plain(owner, NO_DEVICE);
  const at = row && ranks.overviewOf(row)?.story;
  const outlier = at == null ? undefined : ranks.overview.value?.outliers[at];
  if (outlier) return told(owner, outlier);
  const summary = queries.summary.value;
  if (summary === null) return plain(owner, "");
  const { headline, place, lines, remedy } = summary.view;
  const { severity = null, finding: id = null } = summary.record.headlines[0] ?? {};
  const finding = queries.findings.value.find(({ record }) => record.id === id) ?? null;
  const text = finding?.record.place?.source;
  const source = place && text ? { line: place.line, text } : null;
  return { owner, headline, severity, place, source, lines, remedy, finding };
}
