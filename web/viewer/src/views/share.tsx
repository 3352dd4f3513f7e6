// All ways to pass on what is on screen: a link, a report, text, a picture, files for other tools.

import type { ExportFormat } from "../generated/protocol.js";
import { copyText } from "../host/clipboard.js";
import { CLIPBOARD_DENIED } from "../selection.js";
import type { Stores } from "../stores.js";
import { Icon } from "../ui/icons.js";
import { copyLink } from "../ui/keymap.js";
import { Menu } from "../ui/menu.js";
import { savePicture } from "./picture.js";
import { saveConverted, saveTable } from "./save.js";
import type { ViewUses } from "./workspace.js";

/** A way to share, for the menu and the palette. */
export interface ShareWay {
  text: string;
  /** Other words that people search it by. */
  words: string;
  run: () => void;
}

export function waysToShare(stores: Stores & ViewUses<"levers">): ShareWay[] {
  const { selection, viewSelection, plots, host, navigation, levers } = stores;
  const flame = () => {
    const { weight } = viewSelection.flame.peek();
    return { weight, event: viewSelection.cursor.peek() ?? -1 };
  };
  const convert = (format: () => ExportFormat, suffix: string) => () =>
    void saveConverted(selection, format(), suffix);
  const isSimulated = Boolean(levers.curve.value.peek()?.path);
  const question = isSimulated ? viewSelection.scenario.peek() : null;
  const picture = (form: "png" | "svg") => () =>
    void savePicture(stores, form, plots.timeline.peek(), "timeline", question);
  const report = {
    text: "HTML report…",
    words: "share send save export one file",
    run: () => {
      navigation.reportOpen.value = true;
    },
  };
  return [
    { text: "Copy a link", words: "share send url", run: () => void copyLink(stores) },
    ...(host.report === null ? [] : [report]),
    {
      text: "Copy the diagnosis as Markdown",
      words: "share report text pull request issue",
      run: () => void copyMarkdown(stores),
    },
    {
      text: "Picture of the timeline, PNG",
      words: "share save image screenshot",
      run: picture("png"),
    },
    { text: "Picture of the timeline, SVG", words: "share save image vector", run: picture("svg") },
    {
      text: "Perfetto trace",
      words: "share save export counters steps annotations",
      run: convert(() => ({ perfetto: {} }), "perfetto.json"),
    },
    {
      text: "speedscope profile",
      words: "share save export flame call stacks",
      run: convert(() => ({ speedscope: flame() }), "speedscope.json"),
    },
    {
      text: "Folded stacks for flamegraph.pl",
      words: "share save export flame call stacks",
      run: convert(() => ({ folded: flame() }), "folded.txt"),
    },
    ...(["csv", "json"] as const).map((form) => ({
      text: `Findings as ${form.toUpperCase()}`,
      words: "share save export table",
      run: () => void saveTable(selection, { findings: {} }, form, "findings"),
    })),
  ];
}

/** Copies what `vramscope diagnose --format markdown` prints of the device in focus. */
async function copyMarkdown({ selection, status }: Stores): Promise<void> {
  const { target } = selection;
  const text = await target?.client.view(target.target, "text", { markdown: {} });
  const done = text != null && (await copyText(text));
  status.announce(done ? "Copied" : CLIPBOARD_DENIED);
}

export function Share(stores: Stores & ViewUses<"levers">) {
  return (
    <Menu
      text={
        <>
          <Icon name="share" /> <span class="tool-name">Share</span>
        </>
      }
      name="Share"
      align="end"
      testid="share"
    >
      {() =>
        waysToShare(stores).map(({ text, run }) => (
          <button key={text} type="button" class="button menu-item" onClick={run}>
            {text}
          </button>
        ))
      }
    </Menu>
  );
}
