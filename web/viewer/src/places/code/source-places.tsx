// The source files by memory, and the functions of the one that is shown.

import { fileName } from "../../client/files.js";
import type { SourcePage, SourceRow } from "../../generated/protocol.js";
import type { ViewUses } from "../../views/workspace.js";

interface PlacesProperties extends ViewUses<"groups"> {
  page: SourcePage;
  to: (file: string, line: number) => void;
  choose: (terms: readonly string[]) => void;
}

/** The files, and the functions of the file. */
export function Places({ page, groups, to, choose }: PlacesProperties) {
  const of = (depth: number) => page.rows.filter((row) => row.depth === depth);
  return (
    <nav class="source-places" aria-label="Files and functions">
      <h4>Files</h4>
      <ul class="shares" data-testid="source-files">
        {of(0).map((row) => (
          <Place
            key={row.label}
            row={row}
            name={fileName(row.label)}
            pressed={row.label === page.file}
            press={() => to(row.label, 0)}
          />
        ))}
      </ul>
      <h4>Functions</h4>
      <ul class="shares" data-testid="source-functions">
        {of(1).map((row) => (
          <Place
            key={row.label}
            row={row}
            name={row.label}
            pressed={groups.isChosen(row.terms)}
            press={() => {
              to(page.file, row.line);
              choose(row.terms);
            }}
          />
        ))}
      </ul>
    </nav>
  );
}

interface PlaceProperties {
  row: SourceRow;
  name: string;
  pressed: boolean;
  press: () => void;
}

function Place({ row, name, pressed, press }: PlaceProperties) {
  const { label, peak, blocks, shares } = row;
  return (
    <li>
      <button
        type="button"
        class="share"
        title={`${label}, ${peak.exact}, ${blocks.exact}`}
        aria-pressed={pressed}
        onClick={press}
      >
        <span class="share-bar" style={{ width: `${(shares[0] ?? 0) * 100}%` }} />
        <span class="share-text">
          <span class="share-site">{name}</span>
        </span>
        <span class="num" data-value={peak.raw}>
          {peak.text}
        </span>
      </button>
    </li>
  );
}
