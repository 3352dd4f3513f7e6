// The small picture of what proves a finding. Rust draws it: shapes, labels and words.

import { CHART, type FindingChart } from "../generated/protocol.js";

export function ProofChart({ chart }: { chart: FindingChart }) {
  const { title, text, shapes, labels } = chart;
  return (
    <figure class="proof" data-testid="proof">
      <figcaption>{title}</figcaption>
      <svg viewBox={`0 0 ${CHART[0]} ${CHART[1]}`} role="img" aria-label={text}>
        {shapes.map(({ kind, path, value }, index) => (
          <path key={index} d={path} data-shape={kind} data-value={value ?? undefined} />
        ))}
        {labels.map(({ text: words, x, y, anchor, strong }, index) => (
          <text key={index} x={x} y={y} text-anchor={anchor} data-strong={strong}>
            {words}
          </text>
        ))}
      </svg>
    </figure>
  );
}
