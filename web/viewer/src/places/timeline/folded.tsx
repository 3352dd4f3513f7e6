// Steps over each other on one axis: the last one solid, the others pale, and beside them what
// stays after each.

import { useEffect, useMemo, useState } from "preact/hooks";
import { resource } from "../../client/resource.js";
import { FOLDED, type FoldedStep, type FoldedSteps } from "../../generated/protocol.js";
import type { ViewUses } from "../../views/workspace.js";

type FoldedProperties = ViewUses<"selection" | "groups">;

export function Folded({ selection, groups }: FoldedProperties) {
  const steps = useMemo(
    () =>
      resource(selection, "foldedSteps", () => {
        const axis = selection.drawableTrace.value?.axis.kind;
        return axis ? { foldedSteps: { axis } } : null;
      }),
    [selection],
  );
  useEffect(() => () => steps.stop(), [steps]);
  const [pointed, setPointed] = useState<number | null>(null);
  const all = steps.value.value;
  if (all === null) return <p class="quiet">{steps.waiting.value && "Reading the steps"}</p>;
  if (all.steps.length === 0) return <p class="quiet">{all.text.join(" ")}</p>;
  return (
    <div class="folded" data-testid="folded">
      <p class="folded-text" data-testid="folded-text">
        {all.text.map((sentence, index) => (
          <span key={sentence} class={index > 0 ? "dim" : undefined}>
            {sentence}{" "}
          </span>
        ))}
      </p>
      <Picture all={all} pointed={pointed} />
      <div class="folded-steps">
        <table>
          <thead>
            <tr>
              <th scope="col">step</th>
              <th scope="col">peak</th>
              <th scope="col">stays after it</th>
              <th scope="col">change</th>
            </tr>
          </thead>
          <tbody>
            {all.steps.toReversed().map((step) => (
              <Row key={step.step} step={step} groups={groups} point={setPointed} />
            ))}
          </tbody>
        </table>
        {all.earlier !== "" && <p class="dim">{all.earlier}</p>}
      </div>
    </div>
  );
}

interface PictureProperties {
  all: FoldedSteps;
  /** The step whose row is under the pointer. */
  pointed: number | null;
}

function Picture({ all, pointed }: PictureProperties) {
  const { steps, ribbon, floors, ticks, heights, isCut } = all;
  const [width = 1, height = 1] = FOLDED;
  const last = steps.at(-1);
  const solid = steps.find(({ step, path }) => step === pointed && path !== "") ?? last;
  const lines = heights.map((y) => `M0 ${y}H${width}`).join("");
  return (
    <div class="folded-pictures">
      <div class="folded-ticks" aria-hidden="true">
        {ticks.map((text, index) => (
          <span key={text} style={{ top: `${((heights[index] ?? 0) / height) * 100}%` }}>
            {text}
          </span>
        ))}
      </div>
      <figure>
        <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img">
          <title>{`Requested bytes in each of ${steps.length} steps, over each other`}</title>
          <path class="folded-grid" d={lines} />
          <path class="folded-ribbon" d={ribbon} />
          {steps.map(({ step, path }) => path && <path key={step} class="folded-line" d={path} />)}
          <path class="folded-last" d={solid?.path} data-step={solid?.step} />
        </svg>
        <figcaption>
          <span>start of the step</span>
          <span class="folded-key">
            step {solid?.step}
            {isCut && ", axis does not begin at 0"}
          </span>
          <span>end</span>
        </figcaption>
      </figure>
      <figure class="folded-floors">
        <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img">
          <title>What stays after each step</title>
          <path class="folded-grid" d={lines} />
          <path class="folded-last" d={floors} />
        </svg>
        <figcaption>
          <span>after step {steps[0]?.step}</span>
          <span>{last?.step}</span>
        </figcaption>
      </figure>
    </div>
  );
}

interface RowProperties extends ViewUses<"groups"> {
  step: FoldedStep;
  point: (step: number | null) => void;
}

function Row({ step, groups, point }: RowProperties) {
  const { peak, floor, change } = step;
  const isChosen = groups.isChosen([step.term]);
  return (
    <tr
      data-step={step.step}
      aria-selected={isChosen}
      onPointerEnter={() => point(step.step)}
      onPointerLeave={() => point(null)}
    >
      <th scope="row">
        <button
          type="button"
          class="link"
          title="Choose the blocks of this step"
          onClick={(event) => groups.choose([step.term], event)}
        >
          {step.step}
        </button>
      </th>
      <td data-column="peak" data-value={peak.raw} title={peak.exact}>
        {peak.text}
      </td>
      <td data-column="floor" data-value={floor.raw} title={floor.exact}>
        {floor.text}
      </td>
      <td data-column="change" data-value={change?.raw} title={change?.exact}>
        {change?.text}
      </td>
    </tr>
  );
}
