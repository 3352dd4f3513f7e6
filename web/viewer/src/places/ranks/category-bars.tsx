// A rank's peak by category within its reserved memory, for an SVG of one unit width and height.

import type { Card, OverviewRow } from "../../generated/protocol.js";
import type { Uses } from "../../stores.js";

type CategoryBarsProperties = Uses<"appearance"> & {
  shown: OverviewRow;
  card: Card;
  /** Whether the bars have tooltips and values. */
  labeled?: boolean;
  /** The chosen categories; the others are faint. */
  chosen?: readonly string[];
};

export function CategoryBars(properties: CategoryBarsProperties) {
  const { appearance, shown, card, labeled = false, chosen = [] } = properties;
  return (
    <>
      <rect class="bar-reserved" width={shown.reserved} height="1" />
      {card.categories.map(({ category, bytes }, index) => {
        const bar = shown.categories[index];
        if (!bar) return null;
        const { label, color, end } = bar;
        const from = shown.categories[index - 1]?.end ?? 0;
        return (
          <rect
            key={category}
            x={from}
            y="0.15"
            width={Math.max(0, end - from)}
            height="0.7"
            fill={appearance.swatch(color)}
            data-category={category}
            data-value={labeled ? bytes.raw : undefined}
            data-chosen={chosen.length > 0 ? chosen.includes(category) : undefined}
          >
            {labeled && <title>{`${label}: ${bytes.text}`}</title>}
          </rect>
        );
      })}
    </>
  );
}
