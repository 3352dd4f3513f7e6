// The results of the search below its box: call sites of the blocks that it finds.

import { Sites } from "./group.js";
import type { ViewUses } from "./workspace.js";

type FoundProperties = ViewUses<"viewSelection" | "filters" | "appearance" | "queries" | "groups">;

export function Found({ viewSelection, filters, appearance, queries, groups }: FoundProperties) {
  const found = queries.found.value.value;
  if (viewSelection.search.value === "") return null;
  const write = (terms: readonly string[]) => {
    viewSelection.clearSearch();
    filters.set(terms);
  };
  return (
    <div class="results" data-testid="results">
      {found ? (
        <>
          <p class="results-head">
            <output data-value={found.blocks.raw}>{groups.place.value || found.text}</output>
            <span class="dim">
              <kbd>Enter</kbd> filters <kbd>N</kbd> next block
            </span>
          </p>
          <Sites
            appearance={appearance}
            rows={found.sites}
            choose={({ terms }) => write([...found.terms, ...terms])}
          />
          {found.more !== "" && <p class="dim results-more">{found.more}</p>}
        </>
      ) : (
        <p class="dim results-more">
          Search by function, file, metadata, address, #event or size. Terms: site:gpt.py:43,
          category:activation, phase:backward, step:3, stream:0, pool:private, lifetime:&gt;10ms,
          live@peak.
        </p>
      )}
    </div>
  );
}
