// Whether this browser has shown the hint for new users. Only a full page remembers it: a viewer
// within another page keeps nothing in that page's storage.

const KEY = "vramscope-hint";

export function isFirstVisit(): boolean {
  try {
    return localStorage.getItem(KEY) === null;
  } catch {
    // Storage is blocked: the hint would come back at every visit.
    return false;
  }
}

export function rememberVisit(): void {
  try {
    localStorage.setItem(KEY, "seen");
  } catch {
    // Storage is blocked: see above.
  }
}
