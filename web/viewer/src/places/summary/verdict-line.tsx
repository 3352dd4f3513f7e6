// The verdict in one line, beside the navigation of every place but the summary, which it opens.
// The remedy is cut first.

import type { ViewUses } from "../../views/workspace.js";
import { SeverityIcon } from "./severity.js";
import { isOfRun, isWithoutDevice, storyOf } from "./story.js";

type LineUses = ViewUses<"runs" | "selection" | "queries" | "ranks" | "navigation" | "levers">;

export function VerdictLine(owners: LineUses) {
  const { navigation, levers } = owners;
  const { owner, headline, severity, finding, ...story } = storyOf(owners);
  const first = isOfRun(owners) ? undefined : levers.table.value.value?.rows[0];
  const remedy = first ? `${first.text}: ${first.needs.text} needed` : story.remedy;
  const isBusy = headline === "" && !isOfRun(owners) && !isWithoutDevice(owners);
  return (
    <button
      type="button"
      class="verdict-line"
      data-testid="verdict"
      data-severity={severity ?? undefined}
      data-finding={finding?.record.id}
      aria-busy={isBusy}
      title={`${owner}${headline}\n${remedy}`.trim()}
      onClick={() => navigation.open("summary")}
    >
      {headline !== "" && (
        <>
          {severity && <SeverityIcon severity={severity} />}
          <b>
            {owner}
            {headline}
          </b>
          <span class="verdict-remedy">{remedy}</span>
        </>
      )}
    </button>
  );
}
