// What a color of severity says, as an icon with its word.

import type { Severity } from "../../generated/protocol.js";
import { Icon } from "../../ui/icons.js";

const ICONS = { high: "error", medium: "warning", low: "note" } as const;
const WORDS = { high: "error", medium: "warning", low: "note" } as const;

export function SeverityIcon({ severity }: { severity: Severity }) {
  return (
    <span class="severity-icon" data-severity={severity} title={WORDS[severity]}>
      <Icon name={ICONS[severity]} />
      <span class="visually-hidden">{WORDS[severity]}: </span>
    </span>
  );
}
