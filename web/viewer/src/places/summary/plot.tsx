// The memory of the window by category with the moment of the summary, and the lines that hold most
// then, each beside the pass before.

import { PLOT, type SummaryPlot } from "../../generated/protocol.js";
import { Icon } from "../../ui/icons.js";
import type { ViewUses } from "../../views/workspace.js";

type PlotUses = ViewUses<"appearance" | "viewSelection" | "sources">;

const percent = (share: number) => `${share * 100}%`;

/** A limit this far above the picture is not in it. */
const within = (bytes: number, top: number) => bytes <= top;

export function Plot({
  plot,
  appearance,
  viewSelection,
  open,
}: PlotUses & { plot: SummaryPlot; open: () => void }) {
  const { areas, steps, mark, top } = plot;
  const limit = viewSelection.capacity.value ?? plot.limit;
  if (areas.length === 0) return null;
  const heightOf = (bytes: number) => percent(Math.max(0, 1 - bytes / top));
  return (
    <section class="summary-plot" aria-labelledby="summary-plot" data-testid="summary-plot">
      <div class="side-head">
        <h3 id="summary-plot">Memory by category, over events</h3>
        <button type="button" class="link" onClick={open}>
          Open the timeline <Icon name="forward" />
        </button>
      </div>
      <div class="plot-box">
        <svg
          viewBox={`0 0 ${PLOT[0]} ${PLOT[1]}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={areas.map(({ label }) => label).join(", ")}
        >
          {areas.map(({ name, path, color }) => (
            <path key={name} d={path} data-category={name} fill={appearance.swatch(color)} />
          ))}
        </svg>
        {steps.slice(1).map(({ from }) => (
          <span key={from} class="plot-edge" style={{ left: percent(from) }} />
        ))}
        {areas.map(
          ({ name, label, labelAt: at }) =>
            at && (
              <span
                key={name}
                class="plot-band"
                style={{
                  left: percent(at[0] ?? 0),
                  top: percent(at[1] ?? 0),
                  color: `var(--on-${name})`,
                }}
              >
                {label}
              </span>
            ),
        )}
        {limit !== null && within(limit, top) && (
          <span
            class="plot-limit"
            data-failed={plot.limit !== null}
            style={{ top: heightOf(limit) }}
            title="What PyTorch can have"
          />
        )}
        {mark && (
          <>
            <span class="plot-moment" style={{ left: percent(mark.at) }} />
            <span class="plot-ring" style={{ left: percent(mark.at), top: heightOf(mark.bytes) }} />
            <span class="plot-name" data-side={sideOf(mark.at)} style={{ left: percent(mark.at) }}>
              {mark.label}
            </span>
          </>
        )}
      </div>
      {steps.length > 0 && (
        <div class="plot-steps" aria-hidden="true">
          {steps.map(({ from, to, label }) => (
            <span key={from} style={{ left: percent((from + to) / 2) }}>
              {label}
            </span>
          ))}
        </div>
      )}
    </section>
  );
}

/** On which side of the moment its name has room. */
const sideOf = (at: number) => (at < 0.25 ? "right" : at > 0.6 ? "left" : "middle");

export function Lines({ plot, appearance, sources }: PlotUses & { plot: SummaryPlot }) {
  const { lines, linesTitle, before } = plot;
  if (lines.length === 0) return null;
  return (
    <section class="summary-lines" aria-labelledby="summary-lines" data-testid="summary-lines">
      <h3 id="summary-lines">{linesTitle}</h3>
      <table>
        <thead>
          <tr>
            <th scope="col">line</th>
            <th scope="col">
              <span class="visually-hidden">part</span>
            </th>
            <th scope="col">bytes</th>
            <th scope="col">share</th>
            {before !== "" && <th scope="col">{before}</th>}
          </tr>
        </thead>
        <tbody>
          {lines.map(({ site, file, line, title, bytes, share, part, color, was }) => (
            <tr key={site} title={title} style={{ "--part": appearance.swatch(color) }}>
              <th scope="row">
                <span class="memory-swatch" />
                {line > 0 ? (
                  <button type="button" class="place" onClick={() => sources.open(file, line)}>
                    {site}
                  </button>
                ) : (
                  <span class="dim">{site}</span>
                )}
              </th>
              <td>
                <span class="line-bar" style={{ width: percent(part) }} />
              </td>
              <td data-value={bytes.raw} title={bytes.exact}>
                {bytes.text}
              </td>
              <td>{share}</td>
              {before !== "" && <td>{was}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
