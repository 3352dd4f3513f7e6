// The filters as chips, with the number and bytes of the blocks that they choose.

import { partsOf } from "../filters.js";
import type { Uses } from "../stores.js";
import { Icon } from "./icons.js";

export function Chips({ filters, workspace }: Uses<"filters" | "workspace">) {
  const terms = filters.terms.value;
  const found = workspace.value?.stores.queries.found.value.value;
  const place = workspace.value?.stores.groups.place.value ?? "";
  if (terms.length === 0) return null;
  return (
    <section class="chips" aria-label="Filters" data-testid="chips">
      <ul>
        {terms.map((term) => {
          const { key, value } = partsOf(term);
          return (
            <li key={term} class="filter-chip" data-term={term}>
              <span class="filter-text" title={term}>
                {key !== "" && <span class="filter-key">{key}</span>}
                {value}
              </span>
              <button
                type="button"
                title="Remove this filter"
                aria-label={`Remove ${term}`}
                onClick={() => filters.remove(term)}
              >
                <Icon name="close" />
              </button>
            </li>
          );
        })}
      </ul>
      <output class="chips-found" data-testid="chips-found" data-value={found?.blocks.raw}>
        {place === "" ? found?.text : `${place} · ${found?.text}`}
      </output>
      <button type="button" class="link chips-clear" onClick={() => filters.clear()}>
        Clear all
      </button>
    </section>
  );
}
