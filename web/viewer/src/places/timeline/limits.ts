// The line of the GPU's memory: as the user gave it, or as the file shows it.

import type { Limit } from "../../generated/protocol.js";

/** Bytes of the line; null without one. */
export function capacityOf(given: number | null, limit: Limit | null): number | null {
  return given ?? (limit?.capacity ? Number(limit.capacity.raw) : null);
}

/**
 * The height that must be in view for the line of the GPU's memory and for failed requests. A limit
 * from the file that would leave the stack too little height does not count.
 */
export function marksTop(given: number | null, limit: Limit | null): number {
  const isFar = given === null && limit?.far === true;
  const line = isFar ? 0 : (capacityOf(given, limit) ?? 0);
  return (limit?.requests ?? []).reduce((top, { high }) => Math.max(top, high), Math.max(0, line));
}
