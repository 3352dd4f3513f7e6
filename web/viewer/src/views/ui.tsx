// The components of the views, bound to the stores, by the place where the page puts them.

import type { ComponentType } from "preact";
import { SegmentMap } from "../places/allocator/map.js";
import { Segments } from "../places/allocator/segments.js";
import { Flame } from "../places/code/flame.js";
import { Holders } from "../places/code/holders.js";
import { Modules } from "../places/code/modules.js";
import { Shapes } from "../places/code/shapes.js";
import { Source } from "../places/code/source.js";
import { Compare } from "../places/compare/compare.js";
import type { SheetView, View } from "../places/index.js";
import { RankMatrix } from "../places/ranks/matrix.js";
import { Overview } from "../places/ranks/overview.js";
import { RailBar } from "../places/ranks/rail-bar.js";
import { Summary } from "../places/summary/place.js";
import { VerdictLine } from "../places/summary/verdict-line.js";
import { Ab } from "../places/timeline/ab.js";
import { Blocks } from "../places/timeline/blocks.js";
import { Events } from "../places/timeline/events.js";
import { Folded } from "../places/timeline/folded.js";
import { FreeLanes } from "../places/timeline/free-lanes.js";
import { TimelineMarks } from "../places/timeline/marks.js";
import { Minimap } from "../places/timeline/minimap.js";
import { Peak } from "../places/timeline/peak.js";
import { CloseMark, PinMark, PinnedLanes } from "../places/timeline/pinned-lanes.js";
import { PlotHead } from "../places/timeline/plot-head.js";
import { TimelineTools } from "../places/timeline/tools.js";
import type { Stores } from "../stores.js";
import { Card } from "./card.js";
import { Found } from "./found.js";
import { Group } from "./group.js";
import { Help } from "./help.js";
import { Palette } from "./palette.js";
import { PartForm, PartLine } from "./part.js";
import { ReportDialog } from "./report-dialog.js";
import { Share } from "./share.js";
import type { ViewStores } from "./workspace.js";

type All = Stores & ViewStores;

/** The properties of a view beside the stores. */
export interface ViewProperties {
  /** False while the view is mounted but hidden. */
  shown: boolean;
}

/** A component that gets all stores, and has the remaining properties of `Inner`. */
function bind<P extends object>(Inner: ComponentType<P>, all: All) {
  return (own: Omit<P, keyof All>) => {
    const properties = { ...all, ...own } as unknown as P;
    return <Inner {...properties} />;
  };
}

export type Ui = ReturnType<typeof bindUi>;

export function bindUi(all: All) {
  const views: Record<Exclude<View, "timeline"> | SheetView, ComponentType<ViewProperties>> = {
    summary: bind(Summary, all),
    ranks: bind(Overview, all),
    segments: bind(Segments, all),
    flame: bind(Flame, all),
    compare: bind(Compare, all),
    map: bind(SegmentMap, all),
    matrix: bind(RankMatrix, all),
    modules: bind(Modules, all),
    peak: bind(Peak, all),
    source: bind(Source, all),
    shapes: bind(Shapes, all),
    holders: bind(Holders, all),
    steps: bind(Folded, all),
    ab: bind(Ab, all),
    blocks: bind(Blocks, all),
    events: bind(Events, all),
  };
  return {
    views,
    TimelineTools: bind(TimelineTools, all),
    TimelineMarks: bind(TimelineMarks, all),
    PlotHead: bind(PlotHead, all),
    Minimap: bind(Minimap, all),
    Card: bind(Card, all),
    FreeLanes: bind(FreeLanes, all),
    Group: bind(Group, all),
    Found: bind(Found, all),
    Help: bind(Help, all),
    Share: bind(Share, all),
    Palette: bind(Palette, all),
    ReportDialog: bind(ReportDialog, all),
    RailBar: bind(RailBar, all),
    CloseMark: bind(CloseMark, all),
    PinMark: bind(PinMark, all),
    PinnedLanes: bind(PinnedLanes, all),
    PartForm: bind(PartForm, all),
    PartLine: bind(PartLine, all),
    VerdictLine: bind(VerdictLine, all),
  };
}
