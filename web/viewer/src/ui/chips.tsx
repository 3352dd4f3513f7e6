// The filters as chips in the search box. Two are shown; with the focus in the box, all are.

import { partsOf } from "../filters.js";
import type { Uses } from "../stores.js";
import { Icon } from "./icons.js";

/** Chips that the box has room for without the focus. */
const SHOWN = 2;

export function Chips({ filters }: Uses<"filters">) {
  const terms = filters.terms.value;
  if (terms.length === 0) return null;
  const rest = terms.length - SHOWN;
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
      {rest > 0 && (
        <span class="chips-rest" aria-hidden="true">
          +{rest}
        </span>
      )}
      <button
        type="button"
        class="link chips-clear"
        title="Clear all filters"
        onClick={() => filters.clear()}
      >
        Clear all
      </button>
    </section>
  );
}
