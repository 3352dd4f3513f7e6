// The center: one view that has it, a drawer with another one below, and the tabs of both. Views
// that draw on a canvas stay once they have been opened, since a canvas is dear; the others come
// and go.

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { VIEW_TITLES, type View } from "../linked.js";
import type { Session } from "../session.js";
import { Icon } from "./icons.js";
import { Timeline, TimelineFacts } from "./timeline.js";
import { Unread } from "./words.js";

const MAIN: readonly View[] = ["overview", "timeline", "segments", "flame", "anomalies", "compare"];
const DRAWER: readonly View[] = ["segments", "flame", "anomalies", "blocks", "events", "settings"];
const ALL: readonly View[] = [...new Set([...MAIN, ...DRAWER])];
/** They have nothing to show of a file without a device. */
const OF_A_DEVICE: ReadonlySet<View> = new Set<View>([
  "segments",
  "flame",
  "anomalies",
  "blocks",
  "events",
]);
const DRAWN: ReadonlySet<View> = new Set<View>(["segments", "flame"]);

export function Panes({ session }: { session: Session }) {
  const { view, drawer } = session.linked;
  const main = view.value;
  const below = drawer.value === main ? null : drawer.value;
  const opened = useRef(new Set<View>());
  for (const shown of [main, below])
    if (shown !== null && DRAWN.has(shown)) opened.current.add(shown);
  const place = (of: View) => (of === main ? "main" : of === below ? "drawer" : "none");
  const mounted = ALL.filter(
    (of) => of === "timeline" || place(of) !== "none" || opened.current.has(of),
  );
  // In the order in which they are seen, which is that of the Tab key.
  const panesIn = (where: string) =>
    mounted
      .filter((of) => place(of) === where)
      .map((of) => (
        <Pane key={of} view={of} place={where}>
          {of === "timeline" ? (
            <Timeline session={session} />
          ) : (
            <Other session={session} view={of} shown={where !== "none"} />
          )}
        </Pane>
      ));
  return (
    <div
      class="panes"
      data-drawer={below !== null}
      style={{ "--drawer-size": session.drawerShare.value }}
    >
      <div class="tabs" data-for="main">
        <Tabs
          session={session}
          label="Views"
          views={MAIN}
          current={main}
          open={(to) => open(session, to)}
          keys
        />
        <TimelineFacts session={session} />
      </div>
      {[
        ...panesIn("main"),
        ...panesIn("none"),
        <Splitter key="splitter" session={session} />,
        <DrawerTabs key="drawer-tabs" session={session} below={below} />,
        ...panesIn("drawer"),
      ]}
    </div>
  );
}

function DrawerTabs({ session, below }: { session: Session; below: View | null }) {
  const { view, drawer } = session.linked;
  const main = view.value;
  return (
    <div class="tabs" data-for="drawer">
      <Tabs
        session={session}
        label="Drawer"
        views={DRAWER.filter((of) => of !== main)}
        current={below}
        open={(to) => {
          drawer.value = drawer.peek() === to ? null : to;
        }}
      />
      <button
        type="button"
        class="button plain"
        aria-expanded={below !== null}
        aria-label={below === null ? "Open the drawer" : "Close the drawer"}
        title={`${below === null ? "Open" : "Close"} the drawer (Q)`}
        onClick={() => {
          drawer.value = below === null ? (main === "segments" ? "blocks" : "segments") : null;
        }}
      >
        <Icon name={below === null ? "up" : "down"} />
      </button>
    </div>
  );
}

function open(session: Session, to: View): void {
  const workspace = session.workspace.peek();
  if (workspace) workspace.open(to);
  else session.linked.view.value = to;
}

function Pane({
  view,
  place,
  children,
}: {
  view: View;
  place: string;
  children: ComponentChildren;
}) {
  return (
    <section
      class="pane"
      data-place={place}
      data-view={view}
      data-testid={`view-${view}`}
      aria-label={VIEW_TITLES[view]}
    >
      {children}
    </section>
  );
}

function Other({ session, view, shown }: { session: Session; view: View; shown: boolean }) {
  const workspace = session.workspace.value;
  const failure = session.viewsFailure.value;
  if (failure !== null) {
    return (
      <div class="quiet">
        <p>{failure.message}</p>
        <p class="dim">{failure.hint}</p>
      </div>
    );
  }
  if (!workspace) {
    return (
      <p class="quiet" aria-busy="true">
        Loading the view
      </p>
    );
  }
  if (session.trace.value?.device === null && OF_A_DEVICE.has(view)) {
    return (
      <p class="quiet">
        Nothing was allocated on any device: the file names none with events or segments.
      </p>
    );
  }
  const file = session.focus.value?.file;
  const load = file?.load.value;
  if (file && load?.state === "error" && OF_A_DEVICE.has(view)) {
    return (
      <div class="quiet">
        <Unread session={session} file={file} load={load} />
      </div>
    );
  }
  const Content = workspace.ui.views[view];
  return Content ? <Content session={session} workspace={workspace} shown={shown} /> : null;
}

interface TabsProperties {
  session: Session;
  label: string;
  views: readonly View[];
  current: View | null;
  open: (view: View) => void;
  keys?: boolean;
}

const STEPS: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1 };
/**
 * So many pixels at the ends of a list fade out where it goes on (see `panes.ts` of the styles).
 */
const FADE = 28;

function Tabs({ session, label, views, current, open, keys = false }: TabsProperties) {
  const count = session.workspace.value?.ranks.overview.value?.notable ?? 0;
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
  const reachable = current !== null && views.includes(current) ? current : views[0];
  const list = useRef<HTMLDivElement>(null);
  // The tab of what is shown is in view where there is no room for all. `scrollIntoView` would
  // scroll the page around the viewer, too.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the selected tab changes with it
  useEffect(() => {
    const tab = list.current?.querySelector("[aria-selected=true]");
    if (!list.current || !tab) return;
    const [of, at] = [list.current.getBoundingClientRect(), tab.getBoundingClientRect()];
    const [before, behind] = [of.left + FADE - at.left, at.right + FADE - of.right];
    list.current.scrollLeft += before > 0 ? -before : Math.max(behind, 0);
  }, [current]);
  return (
    <div class="tablist" role="tablist" aria-label={label} onKeyDown={keydown} ref={list}>
      {views.map((view, index) => (
        <button
          key={view}
          type="button"
          role="tab"
          class="tab"
          aria-selected={view === current}
          tabIndex={view === reachable ? 0 : -1}
          title={keys ? `${VIEW_TITLES[view]} (${index + 1})` : VIEW_TITLES[view]}
          onClick={() => open(view)}
        >
          {VIEW_TITLES[view]}
          {view === "anomalies" && count > 0 && (
            <span class="count" data-value={count} title="of high or medium severity">
              {count}
            </span>
          )}
        </button>
      ))}
    </div>
  );
}

/** Between the center and the drawer: dragged, or moved by arrow keys. */
function Splitter({ session }: { session: Session }) {
  const share = session.drawerShare;
  const set = (value: number) => {
    share.value = Math.max(0.12, Math.min(0.8, value));
  };
  const drag = (event: PointerEvent) => {
    const handle = event.currentTarget as HTMLElement;
    const box = handle.parentElement?.getBoundingClientRect();
    if (!box || !handle.hasPointerCapture(event.pointerId)) return;
    set((box.bottom - event.clientY) / box.height);
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a rule cannot be dragged
    <div
      class="splitter"
      role="separator"
      aria-orientation="horizontal"
      aria-label="Height of the drawer"
      aria-valuenow={Math.round(share.value * 100)}
      aria-valuemin={12}
      aria-valuemax={80}
      tabIndex={0}
      onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
      onPointerMove={drag}
      onKeyDown={(event) => {
        const by = { ArrowUp: 0.04, ArrowDown: -0.04 }[event.key];
        if (by === undefined) return;
        event.preventDefault();
        event.stopPropagation();
        set(share.value + by);
      }}
    />
  );
}
