// A button that copies a text, and says so.

import { useEffect, useState } from "preact/hooks";
import { copyText } from "../host/clipboard.js";
import { Icon } from "./icons.js";

/** How long a button says that it has copied. */
const SAID_MS = 2000;

interface CopyProperties {
  text: string;
  name: string;
  /** What is copied, where the name does not say it. */
  label?: string;
  testid?: string;
}

export function CopyButton({ text, name, label, testid }: CopyProperties) {
  const [said, setSaid] = useState<"copied" | "denied" | null>(null);
  useEffect(() => {
    if (said === null) return;
    const timer = setTimeout(() => setSaid(null), SAID_MS);
    return () => clearTimeout(timer);
  }, [said]);
  const words =
    said === "copied" ? "Copied" : said === "denied" ? "No access to the clipboard" : name;
  return (
    <button
      type="button"
      class="button"
      aria-label={said === null ? label : undefined}
      title={label}
      data-testid={testid}
      onClick={() => void copyText(text).then((done) => setSaid(done ? "copied" : "denied"))}
    >
      {said === "copied" && <Icon name="check" />} <span aria-live="polite">{words}</span>
    </button>
  );
}
