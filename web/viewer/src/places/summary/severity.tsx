// What a color of severity says, as an icon with its word.

import type { Severity } from "../../generated/protocol.js";
import { Icon } from "../../ui/icons.js";

const ICONS = { high: "error", medium: "warning", low: "note", none: "found" } as const;
const WORDS = { high: "error", medium: "warning", low: "note", none: "no finding" } as const;

export function SeverityIcon({ severity }: { severity: Severity | null }) {
  const of = severity ?? "none";
  return (
    <span class="severity-icon" data-severity={of} title={WORDS[of]}>
      <Icon name={ICONS[of]} />
      <span class="visually-hidden">{WORDS[of]}: </span>
    </span>
  );
}
