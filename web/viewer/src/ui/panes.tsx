// The center: one view, a drawer with another view below it, and the tabs of both. Views with a
// canvas stay mounted once they are opened, because a canvas is expensive. Other views unmount.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { KEYED_VIEWS, VIEW_TITLES, type View } from "../navigation.js";
import type { Uses } from "../stores.js";
import { Icon } from "./icons.js";
import { Unread } from "./messages.js";
import type { PlotStateProperties } from "./plot-state.js";
import { Tabs } from "./tabs.js";
import { Timeline, TimelineFacts } from "./timeline.js";

const DRAWER: readonly View[] = [
  "segments",
  "map",
  "peak",
  "flame",
  "source",
  "findings",
  "steps",
  "ab",
  "blocks",
  "events",
  "what-if",
  "settings",
];
const ALL: readonly View[] = [...new Set([...KEYED_VIEWS, ...DRAWER])];
/** Views that need a device. */
const DEVICE_VIEWS: ReadonlySet<View> = new Set<View>([
  "segments",
  "map",
  "peak",
  "flame",
  "source",
  "findings",
  "steps",
  "ab",
  "blocks",
  "events",
  "what-if",
]);
/** Views with a canvas. */
const CANVAS_VIEWS: ReadonlySet<View> = new Set<View>(["segments", "map", "flame"]);

/** In a lower center the drawer is closed at first, in CSS pixels. */
const DRAWER_ROOM = { width: 600, height: 700 };

type PanesProperties = PlotStateProperties & Uses<"appearance" | "navigation">;

export function Panes(stores: PanesProperties) {
  const { runs, navigation, selection, workspace } = stores;
  const { view, drawer } = navigation;
  const hasRanks = runs.hasRanks.value;
  const panes = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => followRoom(panes.current, navigation), [navigation]);
  const main = view.value;
  const below = drawer.value === main ? null : drawer.value;
  const opened = useRef(new Set<View>());
  for (const shown of [main, below])
    if (shown !== null && CANVAS_VIEWS.has(shown)) opened.current.add(shown);
  const place = (of: View) => (of === main ? "main" : of === below ? "drawer" : "none");
  const mounted = ALL.filter(
    (of) => of === "timeline" || place(of) !== "none" || opened.current.has(of),
  );
  // In visual order, which is also the order of the Tab key.
  const panesIn = (where: string) =>
    mounted
      .filter((of) => place(of) === where)
      .map((of) => (
        <Pane key={of} view={of} place={where}>
          {of === "timeline" ? (
            <Timeline {...stores} />
          ) : (
            <Other {...stores} view={of} shown={where !== "none"} />
          )}
        </Pane>
      ));
  return (
    <div
      class="panes"
      ref={panes}
      data-drawer={below !== null}
      style={{ "--drawer-size": navigation.drawerShare.value }}
    >
      <Tabs
        workspace={workspace}
        label="Views"
        of="main"
        views={tabsOf(main, hasRanks)}
        current={main}
        open={(to) => navigation.open(to)}
        keys
      >
        <TimelineFacts selection={selection} />
      </Tabs>
      {[
        ...panesIn("main"),
        ...panesIn("none"),
        <Splitter key="splitter" navigation={navigation} />,
        <DrawerTabs
          key="drawer-tabs"
          navigation={navigation}
          workspace={workspace}
          below={below}
        />,
        ...panesIn("drawer"),
      ]}
    </div>
  );
}

/** The views with keys, and the current one. */
function tabsOf(main: View, hasRanks: boolean): readonly View[] {
  const usual = hasRanks ? KEYED_VIEWS : KEYED_VIEWS.filter((of) => of !== "matrix");
  return usual.includes(main) ? usual : [...usual, main];
}

/** Follows whether the center has room for a drawer. */
function followRoom(
  panes: HTMLElement | null,
  navigation: PanesProperties["navigation"],
): (() => void) | undefined {
  const center = panes?.parentElement;
  if (!center) return undefined;
  const observer = new ResizeObserver(() => {
    const { width, height } = center.getBoundingClientRect();
    // A narrow page scrolls.
    navigation.setDrawerFits(height >= DRAWER_ROOM.height || width < DRAWER_ROOM.width);
  });
  observer.observe(center);
  return () => observer.disconnect();
}

type DrawerTabsProperties = Uses<"navigation" | "workspace"> & { below: View | null };

function DrawerTabs({ navigation, workspace, below }: DrawerTabsProperties) {
  const { view, drawer } = navigation;
  const main = view.value;
  return (
    <Tabs
      workspace={workspace}
      label="Drawer"
      of="drawer"
      views={DRAWER.filter((of) => of !== main)}
      current={below}
      open={(to) => {
        drawer.value = drawer.peek() === to ? null : to;
      }}
    >
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
    </Tabs>
  );
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

type OtherProperties = Uses<"runs" | "selection" | "status" | "workspace"> & {
  view: View;
  shown: boolean;
};

/** Any view but the timeline. */
function Other({ runs, selection, status, workspace, view, shown }: OtherProperties) {
  const views = workspace.value;
  const failure = status.viewsFailure.value;
  if (failure !== null) {
    return (
      <div class="quiet">
        <p>{failure.message}</p>
        <p class="dim">{failure.hint}</p>
      </div>
    );
  }
  if (!views) {
    return (
      <p class="quiet" aria-busy="true">
        Loading the view
      </p>
    );
  }
  if (selection.trace.value?.device === null && DEVICE_VIEWS.has(view)) {
    return (
      <p class="quiet">
        Nothing was allocated on any device: the file has no device with events or segments.
      </p>
    );
  }
  const file = selection.focus.value?.file;
  const load = file?.load.value;
  if (file && load?.state === "error" && DEVICE_VIEWS.has(view)) {
    return (
      <div class="quiet">
        <Unread runs={runs} status={status} file={file} load={load} />
      </div>
    );
  }
  const Content = views.ui.views[view];
  return Content ? <Content shown={shown} /> : null;
}

/** The handle between the center and the drawer, for pointers and arrow keys. */
function Splitter({ navigation }: Uses<"navigation">) {
  const share = navigation.drawerShare;
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
