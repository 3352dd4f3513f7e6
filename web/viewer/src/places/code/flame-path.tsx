// The breadcrumb of the flame graph.

import { useSignal } from "@preact/signals";
import { Fragment } from "preact";
import type { FlameStep } from "../../generated/protocol.js";

/** Steps at the end that are always shown. */
const LAST_STEPS = 2;

/** The breadcrumb: the whole graph, the frames between as one button, and the last steps. */
export function Path({ steps, to }: { steps: readonly FlameStep[]; to(step: FlameStep): void }) {
  const isOpen = useSignal(false);
  const folded = isOpen.value ? [] : steps.slice(1, -LAST_STEPS);
  const shown = folded.length < 2 ? steps : [...steps.slice(0, 1), ...steps.slice(-LAST_STEPS)];
  return (
    <ol>
      {shown.map((step, index) => (
        <Fragment key={step.path}>
          {index === 1 && shown.length < steps.length && (
            <li>
              <button
                type="button"
                class="link"
                title={folded.map(({ text }) => text).join("\n")}
                onClick={() => {
                  isOpen.value = true;
                }}
              >
                {folded.length} frames
              </button>
            </li>
          )}
          <li>
            {index === shown.length - 1 ? (
              <span aria-current="location">{step.text}</span>
            ) : (
              <button type="button" class="link" onClick={() => to(step)}>
                {step.text}
              </button>
            )}
          </li>
        </Fragment>
      ))}
    </ol>
  );
}
