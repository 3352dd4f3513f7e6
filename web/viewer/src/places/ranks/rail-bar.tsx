// A rank's peak by category as a bar in its row of the rail, on one scale for all ranks.

import type { Row } from "../../run.js";
import type { ViewUses } from "../../views/workspace.js";
import { CategoryBars } from "./category-bars.js";

type RailBarProperties = ViewUses<"appearance" | "ranks"> & { row: Row };

export function RailBar({ appearance, ranks, row }: RailBarProperties) {
  const shown = ranks.overviewOf(row);
  const card = row.file.cards.value?.[row.part];
  if (!shown || !card) return null;
  const oom = shown.ooms !== "";
  const worst = card.findings[0]?.record;
  return (
    <>
      {(oom || shown.outlier !== "" || worst?.severity === "high") && (
        <span
          class="rail-mark"
          data-severity={oom || worst?.severity === "high" ? "high" : "medium"}
          title={oom ? shown.ooms : (worst?.title ?? shown.outlier)}
        />
      )}
      <span class="rail-bar" aria-hidden="true">
        <svg viewBox="0 0 1 1" preserveAspectRatio="none" aria-hidden="true">
          <CategoryBars appearance={appearance} shown={shown} card={card} />
        </svg>
      </span>
    </>
  );
}
