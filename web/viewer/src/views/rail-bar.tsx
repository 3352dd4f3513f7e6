// What a rank holds at its peak, by category, beside those of the other ranks: a line below its row
// in the rail.

import type { Row } from "../run.js";
import type { Session } from "../session.js";
import { CategoryBars } from "./category-bars.js";
import type { Workspace } from "./workspace.js";

interface RailBarProperties {
  session: Session;
  workspace: Workspace;
  row: Row;
}

export function RailBar({ session, workspace, row }: RailBarProperties) {
  const shown = workspace.ranks.overviewOf(row);
  const card = row.file.cards.value?.[row.part];
  if (!shown || !card) return null;
  const oom = card.ooms.raw !== "0";
  const worst = card.findings[0];
  return (
    <>
      {(oom || shown.outlier !== "" || worst?.severity === "high") && (
        <span
          class="rail-mark"
          data-severity={oom || worst?.severity === "high" ? "high" : "medium"}
          title={oom ? card.ooms.exact : (worst?.text ?? shown.outlier)}
        />
      )}
      <span class="rail-bar" aria-hidden="true">
        <svg viewBox="0 0 1 1" preserveAspectRatio="none" aria-hidden="true">
          <CategoryBars session={session} shown={shown} card={card} />
        </svg>
      </span>
    </>
  );
}
