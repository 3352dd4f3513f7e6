// The bar on top: what is open, which rank and device of it, along which axis.

import { effect, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect } from "preact/hooks";
import type { Session } from "../session.js";
import type { Theme } from "../view-state.js";
import type { Opening } from "./app.js";
import { Icon } from "./icons.js";
import { OpenButton } from "./open-button.js";

const NEXT_THEME: Record<Theme, Theme> = { auto: "light", light: "dark", dark: "auto" };
const THEME_ICON = { auto: "auto", light: "sun", dark: "moon" } as const;

interface HeaderProperties {
  session: Session;
  opening: Opening;
  children: ComponentChildren;
}

export function Header({ session, opening, children }: HeaderProperties) {
  const run = session.run.value;
  const theme = session.theme.value;
  const embedded = opening.embedded.value;
  return (
    <header class="header" part="header">
      {!embedded && <strong class="brand">vramscope</strong>}
      {run && (
        <>
          <h1 class="run" title={run.title}>
            {run.title}
          </h1>
          {children}
          <div class="controls">
            <RankStepper session={session} />
            <DeviceSelect session={session} />
            <AxisSwitch session={session} />
          </div>
          <SearchBox session={session} />
        </>
      )}
      <div class="tools">
        {run && !embedded && !opening.readonly.value && (
          <>
            <OpenButton name="Add files" class="plain" open={opening.add} testid="add-files">
              <Icon name="plus" />
            </OpenButton>
            <OpenButton name="Open files" class="plain" open={opening.files} testid="open-files">
              <Icon name="file" />
            </OpenButton>
            <OpenButton name="Open folder" class="plain" folder open={opening.files}>
              <Icon name="folder" />
            </OpenButton>
          </>
        )}
        {run && (
          <button
            type="button"
            class="button plain"
            aria-pressed={session.detailsOpen.value}
            title="Show or hide the details"
            aria-label="Details"
            onClick={() => {
              session.detailsOpen.value = !session.detailsOpen.peek();
            }}
          >
            <Icon name="panel" />
          </button>
        )}
        {!embedded && (
          <button
            type="button"
            class="button plain"
            title={`Theme: ${theme}`}
            aria-label={`Theme: ${theme}`}
            onClick={() => {
              session.theme.value = NEXT_THEME[theme];
            }}
          >
            <Icon name={THEME_ICON[theme]} />
          </button>
        )}
        <button
          type="button"
          class="button plain"
          title="Keys and gestures (?)"
          aria-label="Keys and gestures"
          onClick={() => {
            session.sheetOpen.value = true;
          }}
        >
          ?
        </button>
      </div>
    </header>
  );
}

/** One search for all views; what it finds is told beside it once the views are there. */
function SearchBox({ session }: { session: Session }) {
  const views = session.workspace.value;
  const { search } = session.linked;
  const found = views?.found.value.value;
  // What stands there, which is searched a moment later: drawn from the search, a letter that came
  // in between would be lost.
  const text = useSignal(search.peek());
  const follow = () => {
    text.value = search.value;
  };
  // At once: an effect that waits for a frame would bring back what stood there before it.
  // biome-ignore lint/correctness/useExhaustiveDependencies: a viewer has one search
  useLayoutEffect(() => effect(follow), []);
  return (
    <search class="search">
      <Icon name="search" />
      <input
        type="search"
        placeholder="Search frames, files, sizes"
        title="A word of a frame or file, an address, #event, or a size such as >512MiB (/)"
        aria-label="Search"
        data-testid="search"
        value={text.value}
        onInput={({ currentTarget: { value } }) => {
          text.value = value;
          if (views) views.typed(value);
          else search.value = value;
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter") void views?.nextHit(event.shiftKey);
          else if (event.key === "Escape") {
            search.value = "";
            text.value = "";
            views?.typed("");
            event.currentTarget.blur();
          } else if (event.key === ">" && text.peek() === "" && views) {
            views.openPaletteFromSearch(event);
          }
        }}
      />
      {search.value !== "" && (
        <output class="found" data-value={found?.blocks.raw} title={found?.text}>
          {found ? found.blocks.exact : "nothing"}
        </output>
      )}
    </search>
  );
}

function RankStepper({ session }: { session: Session }) {
  const rows = session.rows.value;
  const focused = rows.find((row) => session.isFocused(row));
  if (rows.length < 2 || !focused) return null;
  const prefix = focused.file.planned.rank === null ? "" : "rank ";
  return (
    <div class="stepper">
      <button
        type="button"
        aria-label="Previous rank"
        title="Previous rank ([)"
        onClick={() => session.step(-1)}
      >
        <Icon name="back" />
      </button>
      <span class="stepper-label">
        {prefix}
        {focused.label}
      </span>
      <button
        type="button"
        aria-label="Next rank"
        title="Next rank (])"
        onClick={() => session.step(1)}
      >
        <Icon name="forward" />
      </button>
    </div>
  );
}

function DeviceSelect({ session }: { session: Session }) {
  const trace = session.trace.value;
  const devices = trace?.part.devices ?? [];
  if (!trace || devices.length < 2) return null;
  return (
    <span class="select">
      <select
        aria-label="Device"
        value={String(trace.device?.device)}
        onChange={(event) =>
          session.look(
            { file: trace.file, part: trace.partIndex },
            Number(event.currentTarget.value),
          )
        }
      >
        {devices.map(({ device, label, peak }) => (
          <option key={device} value={String(device)}>
            {label}, {peak.text}
          </option>
        ))}
      </select>
      <Icon name="down" />
    </span>
  );
}

function AxisSwitch({ session }: { session: Session }) {
  const axes = session.trace.value?.device?.axes ?? [];
  const shown = session.shown.value;
  if (axes.length < 2 || !shown) return null;
  return (
    <fieldset class="segmented" title="Events or time along the axis (X)">
      <legend class="visually-hidden">Along the axis</legend>
      {axes.map(({ kind }) => (
        <button
          key={kind}
          type="button"
          aria-pressed={shown.axis.kind === kind}
          onClick={() => {
            session.axis.value = kind;
          }}
        >
          {kind}
        </button>
      ))}
    </fieldset>
  );
}
