// The bar of places below the header, and the verdict in one line beside them.

import { PLACE_IDS, PLACES, type PlaceId } from "../places/index.js";
import type { Uses } from "../stores.js";
import { Icon, type IconName } from "./icons.js";
import { roveTabs } from "./rove-tabs.js";

const ICONS: Readonly<Record<PlaceId, IconName>> = {
  summary: "summary",
  timeline: "timeline",
  code: "code",
  allocator: "allocator",
  ranks: "ranks",
  compare: "compare",
};

type PlaceBarProperties = Uses<"runs" | "navigation" | "workspace">;

/** The places of the open run, each with the number of its key. */
export function placesOf({ runs }: Uses<"runs">): readonly PlaceId[] {
  return PLACE_IDS.filter((id) => PLACES[id].need !== "ranks" || runs.rows.value.length > 1);
}

export function PlaceBar({ runs, navigation, workspace }: PlaceBarProperties) {
  const current = navigation.place.value;
  const hasRanks = runs.run.value?.files.some(({ planned }) => planned.rank !== null);
  const views = workspace.value;
  const count = views?.stores.ranks.overview.value?.notable ?? 0;
  return (
    <nav class="place-bar" aria-label="Places of the run">
      <div class="places" role="tablist" aria-label="Places" onKeyDown={roveTabs}>
        {placesOf({ runs }).map((id) => {
          const { answers } = PLACES[id];
          const title = id === "ranks" && !hasRanks ? "Files" : PLACES[id].title;
          const key = PLACE_IDS.indexOf(id) + 1;
          return (
            <button
              key={id}
              type="button"
              role="tab"
              class="place-tab"
              data-place={id}
              aria-selected={id === current}
              aria-keyshortcuts={String(key)}
              tabIndex={id === current ? 0 : -1}
              title={`${title} (${key}): ${answers}`}
              onClick={() => navigation.openPlace(id)}
            >
              <Icon name={ICONS[id]} />
              <span class="key" aria-hidden="true">
                {key}
              </span>
              {title}
              {id === "summary" && count > 0 && (
                <span class="count" data-value={count} title="findings of high or medium severity">
                  {count}
                </span>
              )}
            </button>
          );
        })}
      </div>
      {views && current !== "summary" && <views.ui.VerdictLine />}
    </nav>
  );
}
