// Many ranks in one picture: the distribution of their peaks by cluster, the clusters, and the
// iterations of the run.

import type { Fleet, FleetBar } from "../../generated/protocol.js";
import { SERIES } from "../../generated/protocol.js";
import type { ViewUses } from "../../views/workspace.js";

/** Clusters from this one on share a color. */
const COLORS = 6;
const BOX = 100;
/** Labels nearer to an end than this share begin or end at their place. */
const EDGE = 0.1;

type FleetProperties = ViewUses<"viewSelection" | "ranks"> & { fleet: Fleet };

export function FleetPanel(properties: FleetProperties) {
  const { fleet } = properties;
  return (
    <section class="fleet" aria-label="All ranks" data-testid="fleet">
      {fleet.iterations.length > 0 && <Iterations {...properties} />}
      {fleet.bars.length > 0 && (
        <>
          <Distribution {...properties} />
          <Clusters {...properties} />
        </>
      )}
    </section>
  );
}

const colorOf = (cluster: number) => Math.min(cluster, COLORS);

/** Shows the ranks of a filter, or all ranks again. */
function toggle({ viewSelection }: FleetProperties, filter: string): void {
  const { rankFilter } = viewSelection;
  rankFilter.value = rankFilter.peek() === filter ? "" : filter;
}

function Distribution(properties: FleetProperties) {
  const { fleet, viewSelection } = properties;
  const filter = viewSelection.rankFilter.value;
  return (
    <figure class="fleet-peaks">
      <figcaption>
        <span>peak per rank</span> <span class="dim">highest bar: {fleet.most}</span>
      </figcaption>
      <div class="fleet-plot">
        <svg viewBox={`0 0 ${BOX} ${BOX}`} preserveAspectRatio="none" aria-hidden="true">
          {fleet.bars.map((bar) => (
            <Bar key={bar.x0} bar={bar} chosen={filter === "" || filter === bar.filter} />
          ))}
          {fleet.capacity && (
            <line
              class="fleet-capacity"
              x1={fleet.capacity.at * BOX}
              x2={fleet.capacity.at * BOX}
              y1="0"
              y2={BOX}
            />
          )}
        </svg>
        {fleet.bars.map((bar) => (
          <button
            key={bar.x0}
            type="button"
            class="fleet-bar"
            data-testid="fleet-bar"
            data-value={bar.count}
            aria-pressed={filter === bar.filter}
            aria-label={bar.text}
            title={`${bar.text}\nClick to show only these`}
            style={{ left: `${bar.x0 * 100}%`, width: `${(bar.x1 - bar.x0) * 100}%` }}
            onClick={() => toggle(properties, bar.filter)}
          />
        ))}
        {fleet.capacity && (
          <span
            class="fleet-limit"
            data-side={fleet.capacity.at > 0.5 ? "left" : "right"}
            style={{ left: `${fleet.capacity.at * 100}%` }}
          >
            {fleet.capacity.text}
          </span>
        )}
      </div>
      <div class="fleet-ticks" aria-hidden="true">
        {fleet.ticks.map(({ at, text }) => (
          <span
            key={text}
            data-end={at < EDGE ? "first" : at > 1 - EDGE ? "last" : undefined}
            style={{ left: `${at * 100}%` }}
          >
            {text}
          </span>
        ))}
      </div>
    </figure>
  );
}

function Bar({ bar, chosen }: { bar: FleetBar; chosen: boolean }) {
  return (
    <g opacity={chosen ? 1 : 0.3}>
      {bar.tops.map((top, cluster) => {
        const below = bar.tops[cluster - 1] ?? 0;
        return top > below ? (
          <rect
            key={cluster}
            data-cluster={colorOf(cluster)}
            x={bar.x0 * BOX}
            width={(bar.x1 - bar.x0) * BOX}
            y={(1 - top) * BOX}
            height={(top - below) * BOX}
          />
        ) : null;
      })}
    </g>
  );
}

function Clusters(properties: FleetProperties) {
  const { fleet, viewSelection } = properties;
  const filter = viewSelection.rankFilter.value;
  return (
    <div class="fleet-clusters">
      <div class="fleet-head">
        <span>clusters of like ranks</span>
        <label class="field" title="Sizes of the data, tensor and pipeline parallel groups">
          dp/tp/pp{" "}
          <input
            inputMode="numeric"
            placeholder="64/4/4"
            data-testid="parallel-sizes"
            aria-invalid={fleet.sizes !== "" && !fleet.isSized}
            value={viewSelection.sizes.value}
            onInput={(event) => {
              viewSelection.sizes.value = event.currentTarget.value;
            }}
          />
        </label>
      </div>
      {fleet.sizes !== "" && (
        <p class="fleet-sizes" data-fits={fleet.isSized} data-testid="parallel-text">
          {fleet.sizes}
        </p>
      )}
      <div class="fleet-table">
        <table aria-label="Clusters of like ranks">
          <thead>
            <tr>
              <th scope="col">ranks</th>
              <th scope="col">count</th>
              <th scope="col">median</th>
              <th scope="col">max</th>
            </tr>
          </thead>
          <tbody>
            {fleet.clusters.map((cluster, index) => (
              <tr
                key={cluster.filter}
                data-testid="fleet-cluster"
                data-chosen={filter === cluster.filter}
              >
                <th scope="row">
                  <button
                    type="button"
                    class="link"
                    aria-pressed={filter === cluster.filter}
                    title={`${cluster.text}\nClick to show only these`}
                    onClick={() => toggle(properties, cluster.filter)}
                  >
                    <i class="swatch" data-cluster={colorOf(index)} /> {cluster.text}
                  </button>
                  {cluster.place !== "" && <span class="fleet-place">{cluster.place}</span>}
                </th>
                <td data-value={cluster.count.raw}>{cluster.count.text}</td>
                <td data-value={cluster.median.raw} title={cluster.median.exact}>
                  {cluster.median.text}
                </td>
                <td data-value={cluster.max.raw} title={cluster.max.exact}>
                  {cluster.max.text}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}

function Iterations({ fleet, viewSelection, ranks }: FleetProperties) {
  const { iterations, medianPath, maxPath } = fleet;
  const last = iterations.length - 1;
  const at = ranks.list.value?.iteration ?? null;
  const shown = iterations[at ?? last];
  const [width, height] = SERIES;
  return (
    <div class="fleet-iterations" data-testid="iterations">
      <div class="fleet-course">
        <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" aria-hidden="true">
          <path class="fleet-max" d={maxPath} />
          <path class="fleet-median" d={medianPath} />
          {at !== null && shown && (
            <line x1={shown.at * width} x2={shown.at * width} y1="0" y2={height} />
          )}
        </svg>
        <input
          type="range"
          min="0"
          max={last}
          value={at ?? last}
          aria-label="Iteration"
          aria-valuetext={shown?.iteration.exact}
          data-testid="iteration"
          onInput={(event) => {
            const chosen = iterations[event.currentTarget.valueAsNumber];
            if (chosen) viewSelection.iteration.value = chosen.iteration.raw;
          }}
        />
      </div>
      {shown && (
        <dl>
          <dt data-testid="iteration-text">
            {at === null ? "all iterations" : shown.iteration.exact}
          </dt>
          <dd>
            <i class="fleet-max" /> max{" "}
            <b data-testid="iteration-max" data-value={shown.max.raw} title={shown.max.exact}>
              {shown.max.text}
            </b>
          </dd>
          <dd>
            <i class="fleet-median" /> median{" "}
            <b
              data-testid="iteration-median"
              data-value={shown.median.raw}
              title={shown.median.exact}
            >
              {shown.median.text}
            </b>
          </dd>
        </dl>
      )}
    </div>
  );
}
