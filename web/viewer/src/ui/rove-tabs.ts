// Arrow keys among tabs.

const STEPS: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1 };

/** Moves the focus to the tab before or after, around the ends. */
export function roveTabs(event: KeyboardEvent): void {
  const by = STEPS[event.key];
  if (by === undefined || event.shiftKey || event.altKey || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  event.stopPropagation();
  const tabs = [
    ...(event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>("[role=tab]"),
  ];
  const at = tabs.indexOf(event.target as HTMLElement);
  tabs[(at + by + tabs.length) % tabs.length]?.focus();
}
