// What a rank held at its peak, by category, within what it had reserved: for a picture that is one
// unit wide and high.

import type { OverviewRow, RankCard } from "../generated/protocol.js";
import type { Session } from "../session.js";

interface CategoryBarsProperties {
  session: Session;
  shown: OverviewRow;
  card: RankCard;
  /** With its numbers: for pointers and tools. */
  told?: boolean;
}

export function CategoryBars({ session, shown, card, told = false }: CategoryBarsProperties) {
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
            fill={session.swatch(color)}
            data-category={name}
            data-value={told ? bytes.raw : undefined}
          >
            {told && <title>{`${label}: ${bytes.text}`}</title>}
          </rect>
        );
      })}
    </>
  );
}
