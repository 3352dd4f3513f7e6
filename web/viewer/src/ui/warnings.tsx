// Warnings about the file: one line under the plot, which expands.

import type { Uses } from "../stores.js";
import { Icon } from "./icons.js";

export function Warnings({ selection }: Uses<"selection">) {
  // The line over the plot says that the trace is a part of a file.
  const warnings = selection.trace.value?.part.warnings.filter(({ code }) => code !== "part") ?? [];
  const [first, ...others] = warnings;
  if (!first) return null;
  return (
    <details class="warnings" data-testid="warnings">
      <summary>
        <Icon name="warning" />
        <span class="warnings-first">{first.message}</span>
        {others.length > 0 && <span class="dim">and {others.length} more</span>}
      </summary>
      <ul>
        {warnings.map(({ code, message, count }) => (
          <li key={code}>
            {message} {count > 1 && <span class="dim">({count} times)</span>}
          </li>
        ))}
      </ul>
    </details>
  );
}
