// Choices that a full page keeps in the browser. Private windows may refuse; then they last as long
// as the page.

import type { Memory } from "../navigation.js";

/** The result, or null where the browser keeps nothing. */
function allowed<T>(work: () => T): T | null {
  try {
    return work();
  } catch {
    return null;
  }
}

export const pageMemory: Memory = {
  get: (key) => allowed(() => localStorage.getItem(key)),
  set: (key, value) => void allowed(() => localStorage.setItem(key, value)),
};
