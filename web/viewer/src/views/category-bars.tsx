// A rank's peak by category within its reserved memory, for an SVG of one unit width and height.

import type { OverviewRow, RankCard } from "../generated/protocol.js";
import type { Uses } from "../stores.js";

type CategoryBarsProperties = Uses<"appearance"> & {
  shown: OverviewRow;
  card: RankCard;
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
      {card.categories.map(({ name, label, bytes, color }, index) => {
        const from = index === 0 ? 0 : (shown.categories[index - 1] ?? 0);
        const to = shown.categories[index] ?? from;
        return (
          <rect
            key={name}
            x={from}
            y="0.15"
            width={Math.max(0, to - from)}
            height="0.7"
            fill={appearance.swatch(color)}
            data-category={name}
            data-value={labeled ? bytes.raw : undefined}
            data-chosen={chosen.length > 0 ? chosen.includes(name) : undefined}
          >
            {labeled && <title>{`${label}: ${bytes.text}`}</title>}
          </rect>
        );
      })}
    </>
  );
}
