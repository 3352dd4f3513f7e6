// What was odd about the file, in words: one line under the plot that opens.

import type { Session } from "../session.js";
import { Icon } from "./icons.js";

export function Warnings({ session }: { session: Session }) {
  // That it is a part of the file stands over the plot.
  const warnings = session.trace.value?.part.warnings.filter(({ code }) => code !== "part") ?? [];
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
