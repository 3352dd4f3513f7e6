// Selects give the keyboard back to the view once a choice is made: a select that keeps the focus
// takes the single letters that are keys of the view.

/** Keys that step through a closed select, each with a change of its own. */
const STEPS: ReadonlySet<string> = new Set([
  "ArrowUp",
  "ArrowDown",
  "ArrowLeft",
  "ArrowRight",
  "Home",
  "End",
  "PageUp",
  "PageDown",
]);

/** The element's handlers. Someone who steps through a select with keys keeps it focused. */
export function giveBack(home: () => HTMLElement | null) {
  let stepped: EventTarget | null = null;
  return {
    onKeyDownCapture: (event: KeyboardEvent): void => {
      stepped = STEPS.has(event.key) ? event.target : null;
    },
    onPointerDownCapture: (): void => {
      stepped = null;
    },
    onChange: ({ target }: Event): void => {
      if (!(target instanceof HTMLSelectElement) || target === stepped) return;
      home()?.focus({ preventScroll: true });
    },
  };
}
