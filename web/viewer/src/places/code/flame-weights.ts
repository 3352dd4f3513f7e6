// What the frames of a flame graph can be weighted by.

import type { FlameWeight } from "../../generated/protocol.js";

export const WEIGHTS: readonly { weight: FlameWeight; label: string; title: string }[] = [
  { weight: "peak", label: "at peak", title: "Requested bytes live at the peak" },
  { weight: "cursor", label: "at cursor", title: "Requested bytes live at the time cursor" },
  {
    weight: "byteSeconds",
    label: "bytes × time",
    title: "Requested bytes multiplied by their lifetime",
  },
  { weight: "count", label: "allocations", title: "Number of allocations" },
  { weight: "churn", label: "churn", title: "Bytes of all allocations, however short-lived" },
];
