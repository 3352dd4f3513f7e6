// Labels with their values, as the details of a recording have them.

import type { DetailRow } from "../generated/protocol.js";

export function Rows({ rows }: { rows: readonly DetailRow[] }) {
  return (
    <dl class="rows">
      {rows.map(({ key, label, text, raw }) => (
        <div key={key} class="row" data-key={key}>
          <dt>{label}</dt>
          <dd data-value={raw}>{text}</dd>
        </div>
      ))}
    </dl>
  );
}
