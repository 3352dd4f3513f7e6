// A row of tabs with what stands beside it. Where the row is too narrow, first the readout beside
// the tabs yields, then the last tabs move into a menu. The selected tab always stays.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { KEYED_VIEWS, VIEW_TITLES, type View } from "../navigation.js";
import type { Uses } from "../stores.js";
import { Menu } from "./menu.js";

type TabsProperties = Uses<"workspace"> & {
  label: string;
  /** What the tabs are for, for styles. */
  of: "main" | "drawer";
  views: readonly View[];
  current: View | null;
  open: (view: View) => void;
  /** Whether the tabs have number keys. */
  keys?: boolean;
  children: ComponentChildren;
};

const STEPS: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1 };
/** Room for the button of the menu. */
const MORE = 74;
/** The gap between the tabs, the menu and the readout (see `styles/panes.ts`). */
const GAP = 8;

interface Fit {
  /** The number of tabs that fit. */
  count: number;
  /** Whether the readout has no room. */
  tight: boolean;
}

export function Tabs({
  workspace,
  label,
  of,
  views,
  current,
  open,
  keys = false,
  children,
}: TabsProperties) {
  const count = workspace.value?.stores.ranks.overview.value?.notable ?? 0;
  const row = useRef<HTMLDivElement>(null);
  const fit = useFit(row, views, count);
  const first = views.slice(0, fit.count);
  // The selected view takes the last place if its own is in the menu.
  const shown =
    current === null || first.includes(current) || !views.includes(current)
      ? first
      : [...first.slice(0, -1), current];
  const others = views.filter((view) => !shown.includes(view));
  const reachable = current !== null && views.includes(current) ? current : shown[0];
  const keydown = (event: KeyboardEvent) => {
    const by = STEPS[event.key];
    if (by === undefined || event.shiftKey || event.altKey || event.ctrlKey || event.metaKey)
      return;
    event.preventDefault();
    event.stopPropagation();
    const buttons = [
      ...(event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>("[role=tab]"),
    ];
    const at = buttons.indexOf(event.target as HTMLElement);
    buttons[(at + by + buttons.length) % buttons.length]?.focus();
  };
  const badge = (view: View) =>
    view === "findings" &&
    count > 0 && (
      <span class="count" data-value={count} title="findings of high or medium severity">
        {count}
      </span>
    );
  return (
    <div class="tabs" data-for={of} data-tight={fit.tight} ref={row}>
      <div class="tablist" role="tablist" aria-label={label} onKeyDown={keydown}>
        {shown.map((view) => (
          <button
            key={view}
            type="button"
            role="tab"
            class="tab"
            data-tab={view}
            aria-selected={view === current}
            tabIndex={view === reachable ? 0 : -1}
            title={
              keys && KEYED_VIEWS.includes(view)
                ? `${VIEW_TITLES[view]} (${KEYED_VIEWS.indexOf(view) + 1})`
                : VIEW_TITLES[view]
            }
            onClick={() => open(view)}
          >
            {VIEW_TITLES[view]}
            {badge(view)}
          </button>
        ))}
      </div>
      {others.length > 0 && (
        <Menu text="More" name={`More ${label.toLowerCase()}`} align="end" class="more-tabs">
          {others.map((view) => (
            <button key={view} type="button" class="button menu-item" onClick={() => open(view)}>
              {VIEW_TITLES[view]}
              {badge(view)}
            </button>
          ))}
        </Menu>
      )}
      {children}
    </div>
  );
}

/** Measures what fits into a row of tabs, whenever its width or its content changes. */
function useFit(
  row: { readonly current: HTMLDivElement | null },
  views: readonly View[],
  badge: number,
): Fit {
  const [fit, setFit] = useState<Fit>({ count: views.length, tight: false });
  /** Widths of the tabs that were drawn. */
  const widths = useRef(new Map<string, number>());
  const names = views.join(" ");
  // biome-ignore lint/correctness/useExhaustiveDependencies: the badge changes a tab's width
  useLayoutEffect(() => {
    const element = row.current;
    if (!element) return;
    const measure = () => {
      for (const tab of element.querySelectorAll<HTMLElement>("[data-tab]"))
        widths.current.set(tab.getAttribute("data-tab") ?? "", tab.offsetWidth);
      const next = fitOf(element, views, widths.current);
      setFit((now) => (now.count === next.count && now.tight === next.tight ? now : next));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    const observeFacts = () => {
      for (const facts of element.querySelectorAll(".facts")) observer.observe(facts);
    };
    observeFacts();
    // The readout comes with the trace, after the tabs.
    const additions = new MutationObserver(observeFacts);
    additions.observe(element, { childList: true });
    return () => {
      observer.disconnect();
      additions.disconnect();
    };
  }, [names, badge]);
  return fit;
}

function fitOf(row: HTMLElement, views: readonly View[], widths: Map<string, number>): Fit {
  const style = getComputedStyle(row);
  const width = (element: Element) => (element instanceof HTMLElement ? element.offsetWidth : 0);
  const facts = row.querySelector(".facts");
  const others = [...row.children].filter(
    (child) => child !== facts && !child.matches(".tablist, .more-tabs"),
  );
  const room = others.reduce(
    (left, other) => left - width(other) - GAP,
    row.clientWidth - Number.parseFloat(style.paddingLeft) - Number.parseFloat(style.paddingRight),
  );
  const all = views.reduce((sum, view) => sum + (widths.get(view) ?? MORE), 0);
  const tight = facts !== null && all + GAP + width(facts) > room;
  if (all <= room) return { count: views.length, tight };
  let [count, used] = [0, MORE + GAP];
  for (const view of views) {
    used += widths.get(view) ?? MORE;
    if (used > room) break;
    count += 1;
  }
  return { count: Math.max(count, 1), tight };
}
