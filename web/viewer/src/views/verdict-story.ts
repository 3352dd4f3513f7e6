// What the verdict says: of the rank in focus, or of a run of which no rank is chosen.

import type { FindingRow, Phrase, Severity, VerdictCard } from "../generated/protocol.js";
import { rowName } from "../run.js";
import type { ViewUses } from "./workspace.js";

export type VerdictUses = ViewUses<
  | "runs"
  | "selection"
  | "viewSelection"
  | "groups"
  | "navigation"
  | "appearance"
  | "status"
  | "queries"
  | "ranks"
  | "steps"
>;

/** What the verdict says of the focused row. */
export interface Story {
  /** The rank, with several rows. */
  owner: string;
  headline: readonly Phrase[];
  severity: Severity | null;
  detail: string;
  /** The finding's id; null without one. */
  id: string | null;
  /** What the comparison of ranks found, if it is worse than the rank's own findings. */
  outlier: FindingRow | null;
}

/** Whether no rank of an index is chosen: then the verdict is the worst finding of the run. */
export const isOfRun = ({ runs, selection }: VerdictUses) =>
  selection.focus.value === null && runs.run.value?.isIndexed === true;

/** The worst finding of all ranks. */
function worstOf({ runs, queries, ranks }: VerdictUses): Story {
  const none = ranks.overview.value?.notableText ?? "Reading";
  const finding = queries.cards.value?.[0]?.members[0];
  const row = runs.rows.value.find(({ file }) => file.path === finding?.record.path);
  const { severity = null, text: detail = "", id = null } = finding?.record ?? {};
  const headline = finding?.view.headline ?? [{ text: none, filter: null, event: null }];
  const rank = row?.file.planned.rank ?? null;
  const owner = rank !== null ? `rank ${rank}: ` : row ? `${rowName(row)}: ` : "";
  return { owner, headline, severity, detail, id, outlier: finding ?? null };
}

export function storyOf(owners: VerdictUses, card: VerdictCard | null): Story {
  const { runs, selection, ranks } = owners;
  if (isOfRun(owners)) return worstOf(owners);
  const rows = runs.rows.value;
  const row = rows.find((each) => selection.isFocused(each));
  const owner = row && rows.length > 1 ? `${rowName(row)}: ` : "";
  const at = row && ranks.overviewOf(row)?.story;
  const outlier = at == null ? undefined : ranks.overview.value?.outliers[at];
  if (outlier) {
    const { id, severity, text: detail } = outlier.record;
    return { owner, headline: outlier.view.headline, severity, detail, id, outlier };
  }
  const { headline = [], severity = null, detail = "", finding: id = null } = card ?? {};
  return { owner, headline, severity, detail, id, outlier: null };
}
