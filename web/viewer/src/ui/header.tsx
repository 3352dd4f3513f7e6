// The bar at the top: the run's title with the rank and device in focus, search, and tools.

import { effect, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect } from "preact/hooks";
import { termsOf } from "../filters.js";
import type { Uses } from "../stores.js";
import type { Theme } from "../view-state.js";
import type { Opening } from "./app.js";
import { Chips } from "./chips.js";
import { Icon } from "./icons.js";
import { Menu } from "./menu.js";
import { MiddleCut } from "./middle-cut.js";
import { OpenButton } from "./open-button.js";

const NEXT_THEME: Record<Theme, Theme> = { auto: "light", light: "dark", dark: "auto" };
const THEME_ICON = { auto: "auto", light: "sun", dark: "moon" } as const;

type HeaderProperties = Uses<
  "runs" | "selection" | "viewSelection" | "filters" | "navigation" | "appearance" | "workspace"
> & { opening: Opening; children: ComponentChildren };

export function Header({ opening, children, ...stores }: HeaderProperties) {
  const { runs, navigation, appearance } = stores;
  const run = runs.run.value;
  const views = stores.workspace.value;
  const theme = appearance.theme.value;
  const embedded = opening.embedded.value;
  // Nothing can be searched in an empty snapshot, and nothing is needed.
  const isEmpty = stores.selection.trace.value?.device === null;
  return (
    <header class="header" part="header">
      {!embedded && <strong class="brand">vramscope</strong>}
      {run && (
        <>
          <h1 class="run" title={run.title}>
            <MiddleCut text={run.title} />
          </h1>
          {children}
          <div class="controls">
            <RankStepper {...stores} />
            <DeviceSelect {...stores} />
          </div>
          {!isEmpty && <SearchBox {...stores} />}
        </>
      )}
      <div class="tools">
        {run && views && <views.ui.Share />}
        {run && !embedded && !opening.readonly.value && <OpenMenu opening={opening} />}
        {!embedded && (
          <button
            type="button"
            class="button plain"
            title={`Theme: ${theme}`}
            aria-label={`Theme: ${theme}`}
            onClick={() => {
              appearance.theme.value = NEXT_THEME[theme];
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
            navigation.helpOpen.value = true;
          }}
        >
          ?
        </button>
      </div>
    </header>
  );
}

/** All ways to open files. */
function OpenMenu({ opening }: { opening: Opening }) {
  return (
    <Menu
      text={
        <>
          <Icon name="folder" /> <span class="tool-name">Open</span>
        </>
      }
      name="Open files or a folder"
      align="end"
    >
      <OpenButton name="Open files" class="menu-item" open={opening.files} testid="open-files">
        <Icon name="file" /> Open files…
      </OpenButton>
      <OpenButton name="Open folder" class="menu-item" folder open={opening.files}>
        <Icon name="folder" /> Open a folder…
      </OpenButton>
      <OpenButton name="Add files" class="menu-item" open={opening.add} testid="add-files">
        <Icon name="plus" /> Add files to this run…
      </OpenButton>
    </Menu>
  );
}

/** The search of all views, with the number of hits. */
function SearchBox({
  viewSelection,
  filters,
  workspace,
}: Uses<"viewSelection" | "filters" | "workspace">) {
  const all = workspace.value;
  const views = all?.stores;
  const { search } = viewSelection;
  const found = views?.queries.found.value.value;
  // The text of the box, which is ahead of the search while typing.
  const text = useSignal(search.peek());
  const follow = () => {
    text.value = search.value;
  };
  // A layout effect: a later one would overwrite letters that were typed since.
  // biome-ignore lint/correctness/useExhaustiveDependencies: a viewer has one search
  useLayoutEffect(() => effect(follow), []);
  const keydown = (event: KeyboardEvent & { currentTarget: HTMLInputElement }) => {
    if (event.key === "Enter" && text.peek().trim() !== "") write();
    else if (event.key === "Enter") void views?.steps.nextHit(event.shiftKey);
    else if (event.key === "Escape") {
      viewSelection.clearSearch();
      text.value = "";
      event.currentTarget.blur();
    }
  };
  /** Makes filters of the text, which Rust splits into terms once the search is answered. */
  const write = () => {
    const terms = found && search.peek() === text.peek() ? found.terms : null;
    const own = [...filters.terms.peek(), ...termsOf(text.peek())];
    viewSelection.clearSearch();
    text.value = "";
    filters.set(terms ?? own);
  };
  return (
    <search class="search">
      <Icon name="search" />
      <Chips filters={filters} />
      <input
        type="search"
        placeholder={
          filters.terms.value.length > 0 ? "" : "Search functions, files, sizes, addresses"
        }
        title="Search by function, file, metadata, address, #event or size (e.g. >512MiB) (/)"
        aria-label="Search"
        data-testid="search"
        value={text.value}
        onInput={({ currentTarget: { value } }) => {
          text.value = value;
          viewSelection.searchSoon(value);
        }}
        onKeyDown={keydown}
      />
      {filters.text.value !== "" && (
        <output
          class="found"
          data-testid="chips-found"
          data-value={found?.blocks.raw}
          title={found?.text}
        >
          {[views?.groups.place.value, found ? found.text : "no match"].filter(Boolean).join(" · ")}
        </output>
      )}
      {all && <all.ui.Found />}
    </search>
  );
}

function RankStepper({ runs, selection }: Uses<"runs" | "selection">) {
  const rows = runs.rows.value;
  const focused = rows.find((row) => selection.isFocused(row));
  if (rows.length < 2 || !focused) return null;
  const isRank = focused.file.planned.rank !== null;
  return (
    <div class="stepper">
      <button
        type="button"
        aria-label="Previous rank"
        title="Previous rank ([)"
        onClick={() => selection.step(-1)}
      >
        <Icon name="back" />
      </button>
      <span class="stepper-label">
        {isRank ? `rank ${focused.label} of ${rows.length}` : focused.label}
      </span>
      <button
        type="button"
        aria-label="Next rank"
        title="Next rank (])"
        onClick={() => selection.step(1)}
      >
        <Icon name="forward" />
      </button>
    </div>
  );
}

function DeviceSelect({ selection }: Uses<"selection">) {
  const trace = selection.trace.value;
  const devices = trace?.part.devices ?? [];
  if (!trace || devices.length < 2) return null;
  return (
    <span class="select">
      <select
        aria-label="Device"
        value={String(trace.device?.device)}
        onChange={(event) =>
          selection.look(
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
