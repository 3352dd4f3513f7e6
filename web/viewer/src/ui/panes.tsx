// The center: the view of the place, and below the timeline the track of segments and the sheet.
// Views with a canvas stay mounted once they are opened. Other views unmount.

import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import {
  CANVAS_VIEWS,
  PLACES,
  type PlaceId,
  placeOf,
  SHEET_VIEWS,
  SHEETS,
  type SheetView,
  titleOf,
  VIEWS,
  type View,
  viewsOf,
} from "../places/index.js";
import type { Uses } from "../stores.js";
import { Icon } from "./icons.js";
import { EMPTY, Unread } from "./messages.js";
import type { PlotStateProperties } from "./plot-state.js";
import { roveTabs } from "./rove-tabs.js";
import { Timeline } from "./timeline.js";

/** Where a view is: in the center, below the timeline, or out of sight. */
type Where = "main" | "track" | "sheet" | "none";

type PanesProperties = PlotStateProperties & Uses<"appearance" | "navigation">;

export function Panes(stores: PanesProperties) {
  const { navigation } = stores;
  const main = navigation.view.value;
  const place = navigation.place.value;
  const sheet = navigation.shownSheet.value;
  const track: View | null =
    place === "timeline" && navigation.tracks.value.includes("segments") ? "segments" : null;
  const opened = useRef(new Set<View>());
  for (const shown of [main, track])
    if (shown !== null && CANVAS_VIEWS.has(shown)) opened.current.add(shown);
  const where = (of: View): Where => (of === main ? "main" : of === track ? "track" : "none");
  const mounted = VIEWS.filter(
    (of) => of === "timeline" || where(of) !== "none" || opened.current.has(of),
  );
  // In visual order, which is also the order of the Tab key.
  const panesIn = (at: Where) =>
    mounted
      .filter((of) => where(of) === at)
      .map((of) => (
        <Pane key={of} view={of} where={at} title={titleOf(of)}>
          {of === "timeline" ? (
            <Timeline {...stores} />
          ) : (
            <Content {...stores} view={of} shown={at !== "none"} />
          )}
        </Pane>
      ));
  return (
    <div
      class="panes"
      data-testid={`place-${place}`}
      data-sheet={sheet !== null}
      data-track={track !== null}
      style={{ "--sheet-size": navigation.sheetShare.value }}
    >
      <Switch
        key={`switch-${place}`}
        navigation={navigation}
        selection={stores.selection}
        place={place}
      />
      {[
        ...panesIn("main"),
        ...panesIn("none"),
        ...panesIn("track"),
        sheet !== null && <Splitter key="splitter" navigation={navigation} />,
        sheet !== null && <SheetHead key="head" navigation={navigation} sheet={sheet} />,
        sheet !== null && (
          <Pane key={`sheet-${sheet}`} view={sheet} where="sheet" title={SHEETS[sheet]}>
            <Content {...stores} view={sheet} shown />
          </Pane>
        ),
      ]}
    </div>
  );
}

/** The switch among the views of a place. */
function Switch({
  navigation,
  selection,
  place,
}: Uses<"navigation" | "selection"> & { place: PlaceId }) {
  const views = viewsOf(place);
  const current = navigation.view.value;
  const isEmpty = selection.trace.value?.device === null && PLACES[place].need === "device";
  if (views.length < 2 || isEmpty) return null;
  return (
    <div class="place-switch">
      <div
        class="segmented small"
        role="tablist"
        aria-label={`Views of ${PLACES[place].title}`}
        onKeyDown={roveTabs}
      >
        {views.map(([view, label]) => (
          <button
            key={view}
            type="button"
            role="tab"
            data-tab={view}
            aria-selected={view === current}
            tabIndex={view === current ? 0 : -1}
            onClick={() => navigation.open(view)}
          >
            {label}
          </button>
        ))}
      </div>
    </div>
  );
}

/** What the sheet lists, and its close button. */
function SheetHead({ navigation, sheet }: Uses<"navigation"> & { sheet: SheetView }) {
  return (
    <div class="below-head">
      <div class="places" role="tablist" aria-label="Sheet" onKeyDown={roveTabs}>
        {SHEET_VIEWS.map((id) => (
          <button
            key={id}
            type="button"
            role="tab"
            class="place-tab"
            data-tab={id}
            aria-selected={id === sheet}
            tabIndex={id === sheet ? 0 : -1}
            onClick={() => navigation.openSheet(id)}
          >
            {SHEETS[id]}
          </button>
        ))}
      </div>
      <button
        type="button"
        class="button plain"
        title="Close the sheet (Q)"
        aria-label="Close the sheet"
        onClick={() => navigation.openSheet(null)}
      >
        <Icon name="close" />
      </button>
    </div>
  );
}

interface PaneProperties {
  view: View | SheetView;
  where: Where;
  title: string;
  children: ComponentChildren;
}

function Pane({ view, where, title, children }: PaneProperties) {
  return (
    <section
      class="pane"
      data-place={where}
      data-view={view}
      data-testid={`view-${view}`}
      aria-label={title}
    >
      {children}
    </section>
  );
}

type ContentProperties = Uses<"runs" | "selection" | "status" | "workspace"> & {
  view: View | SheetView;
  shown: boolean;
};

/** Whether a view shows nothing without a device. */
const needsDevice = (view: View | SheetView) =>
  view in SHEETS || PLACES[placeOf(view as View)].need === "device";

/** Any view but the timeline. */
function Content({ runs, selection, status, workspace, view, shown }: ContentProperties) {
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
  if (needsDevice(view)) {
    if (selection.trace.value?.device === null) return <p class="quiet">{EMPTY}</p>;
    const file = selection.focus.value?.file;
    const load = file?.load.value;
    if (file && load?.state === "error") {
      return (
        <div class="quiet">
          <Unread runs={runs} status={status} file={file} load={load} />
        </div>
      );
    }
  }
  if (view === "timeline") return null;
  const Body = views.ui.views[view];
  return <Body shown={shown} />;
}

/** The handle between the center and the sheet, for pointers and arrow keys. */
function Splitter({ navigation }: Uses<"navigation">) {
  const share = navigation.sheetShare;
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
      aria-label="Height of the sheet"
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
