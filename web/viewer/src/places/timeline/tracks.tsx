// Annotated ranges below the timeline.

import { useMemo } from "preact/hooks";
import type { TrackItem } from "../../generated/protocol.js";
import type { ViewUses } from "../../views/workspace.js";
import { Lanes } from "./lanes.js";
import type { Dress } from "./track-items.js";

type TracksProperties = ViewUses<"plots" | "appearance" | "queries" | "cards">;

export function Tracks({ plots, appearance, queries, cards }: TracksProperties) {
  const laid = queries.annotations.value.value;
  const dark = appearance.dark.value;
  // Colors depend on the theme.
  // biome-ignore lint/correctness/useExhaustiveDependencies: see above
  const dress = useMemo<Dress<TrackItem>>(
    () => ({
      button(button, { title, color, density }) {
        button.style.setProperty("--density", density.toFixed(2));
        button.toggleAttribute("data-merged", density < 1);
        if (button.title !== title) button.title = title;
        const hue = appearance.swatch(color) ?? "";
        if (button.style.getPropertyValue("--hue") !== hue) button.style.setProperty("--hue", hue);
      },
      name(name, { text }) {
        name.textContent = text;
      },
    }),
    [appearance, dark],
  );
  if (laid === null || laid.lanes === 0) return null;
  return (
    <Lanes
      plots={plots}
      laid={laid}
      lanes={laid.lanes}
      dress={dress}
      class="tracks"
      label="Annotations"
      items="Annotated ranges"
      mark={({ x0, x1 }) => void cards.selectRange(x0, x1)}
    />
  );
}
