// The components of the views, by the place where the workspace puts them.

import type { ComponentType } from "preact";
import type { View } from "../linked.js";
import type { Session } from "../session.js";
import { Anomalies } from "./anomalies.js";
import { Blocks } from "./blocks.js";
import { Compare } from "./compare.js";
import { Events } from "./events.js";
import { Flame } from "./flame.js";
import { TimelineMarks } from "./marks.js";
import { Moment } from "./moment.js";
import { Overview } from "./overview.js";
import { Palette } from "./palette.js";
import { PartForm, PartLine } from "./part.js";
import { RailBar } from "./rail-bar.js";
import { Segments } from "./segments.js";
import { Settings } from "./settings.js";
import { Sheet } from "./sheet.js";
import { Strip } from "./strip.js";
import { Subject } from "./subject.js";
import { TimelineTools } from "./tools.js";
import type { Workspace } from "./workspace.js";

export interface ViewProperties {
  session: Session;
  workspace: Workspace;
  /** False while the view is kept out of sight. */
  shown: boolean;
}

const views: Partial<Record<View, ComponentType<ViewProperties>>> = {
  overview: Overview,
  segments: Segments,
  flame: Flame,
  anomalies: Anomalies,
  compare: Compare,
  blocks: Blocks,
  events: Events,
  settings: Settings,
};

export const ui = {
  views,
  TimelineTools,
  TimelineMarks,
  Strip,
  Moment,
  Subject,
  Sheet,
  Palette,
  RailBar,
  PartForm,
  PartLine,
};
