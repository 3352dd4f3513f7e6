// Roving focus: a group of buttons is one stop of the Tab key, and arrow keys move inside it.

const STEPS: Record<string, number> = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 };

/** The keydown handler of the element around the buttons. */
export function rove(event: KeyboardEvent): void {
  const by = STEPS[event.key];
  if (by === undefined || event.shiftKey || event.ctrlKey || event.metaKey || event.altKey) return;
  const around = event.currentTarget as HTMLElement;
  const buttons = [...around.querySelectorAll<HTMLElement>("button")];
  const at = buttons.indexOf(event.target as HTMLElement);
  if (at < 0) return;
  event.preventDefault();
  event.stopPropagation();
  buttons[Math.max(0, Math.min(buttons.length - 1, at + by))]?.focus();
}
