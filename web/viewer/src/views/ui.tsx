// The components of the views, bound to the stores, by the place where the page puts them.

import type { ComponentType } from "preact";
import type { View } from "../navigation.js";
import type { Stores } from "../stores.js";
import { Ab } from "./ab.js";
import { Blocks } from "./blocks.js";
import { Card } from "./card.js";
import { Compare } from "./compare.js";
import { Events } from "./events.js";
import { Findings } from "./findings.js";
import { Flame } from "./flame.js";
import { Folded } from "./folded.js";
import { Found } from "./found.js";
import { Group } from "./group.js";
import { SegmentMap } from "./map.js";
import { TimelineMarks } from "./marks.js";
import { RankMatrix } from "./matrix.js";
import { Minimap } from "./minimap.js";
import { Modules } from "./modules.js";
import { Overview } from "./overview.js";
import { Palette } from "./palette.js";
import { PartForm, PartLine } from "./part.js";
import { Peak } from "./peak.js";
import { PinMark, PinnedLanes } from "./pinned-lanes.js";
import { PlotHead } from "./plot-head.js";
import { RailBar } from "./rail-bar.js";
import { ReportDialog } from "./report-dialog.js";
import { Segments } from "./segments.js";
import { Settings } from "./settings.js";
import { Sheet } from "./sheet.js";
import { Source } from "./source.js";
import { State } from "./state-at.js";
import { TimelineTools } from "./tools.js";
import { Verdict } from "./verdict.js";
import { WhatIf } from "./what-if.js";
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
  const views: Partial<Record<View, ComponentType<ViewProperties>>> = {
    overview: bind(Overview, all),
    segments: bind(Segments, all),
    flame: bind(Flame, all),
    findings: bind(Findings, all),
    compare: bind(Compare, all),
    map: bind(SegmentMap, all),
    matrix: bind(RankMatrix, all),
    modules: bind(Modules, all),
    peak: bind(Peak, all),
    source: bind(Source, all),
    steps: bind(Folded, all),
    ab: bind(Ab, all),
    blocks: bind(Blocks, all),
    events: bind(Events, all),
    settings: bind(Settings, all),
    "what-if": bind(WhatIf, all),
  };
  return {
    views,
    TimelineTools: bind(TimelineTools, all),
    TimelineMarks: bind(TimelineMarks, all),
    PlotHead: bind(PlotHead, all),
    Minimap: bind(Minimap, all),
    State: bind(State, all),
    Card: bind(Card, all),
    Group: bind(Group, all),
    Found: bind(Found, all),
    Sheet: bind(Sheet, all),
    Palette: bind(Palette, all),
    ReportDialog: bind(ReportDialog, all),
    RailBar: bind(RailBar, all),
    PinMark: bind(PinMark, all),
    PinnedLanes: bind(PinnedLanes, all),
    PartForm: bind(PartForm, all),
    PartLine: bind(PartLine, all),
    Verdict: bind(Verdict, all),
  };
}
