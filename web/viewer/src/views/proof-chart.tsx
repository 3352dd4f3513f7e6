// The small picture of what proves a finding. Rust draws it: shapes, labels and words.

import { CHART, type FindingChart } from "../generated/protocol.js";

export function ProofChart({ chart }: { chart: FindingChart }) {
  const { title, text, kinds, paths, values, labels, anchors, places } = chart;
  return (
    <figure class="proof" data-testid="proof">
      <figcaption>{title}</figcaption>
      <svg viewBox={`0 0 ${CHART[0]} ${CHART[1]}`} role="img" aria-label={text}>
        {paths.map((path, index) => (
          <path
            key={index}
            d={path}
            data-shape={kinds[index]}
            data-value={values[index] || undefined}
          />
        ))}
        {labels.map((words, index) => {
          const [anchor, weight] = (anchors[index] ?? "start").split(" ");
          return (
            <text
              key={index}
              x={places[2 * index]}
              y={places[2 * index + 1]}
              text-anchor={anchor}
              data-strong={weight !== undefined}
            >
              {words}
            </text>
          );
        })}
      </svg>
    </figure>
  );
}
