// The allocator's settings, the file's provenance and warnings, and the display settings.

import { Fragment } from "preact";
import { fileName } from "../client/files.js";
import type { DetailRow } from "../generated/protocol.js";
import { Toggle } from "./controls.js";
import type { ViewUses } from "./workspace.js";

type SettingsProperties = ViewUses<"runs" | "selection" | "viewSelection" | "queries">;

export function Settings({ runs, selection, viewSelection, queries }: SettingsProperties) {
  const card = queries.settings.value.value;
  const trace = selection.trace.value;
  const warnings = trace?.part.warnings ?? [];
  const stats = runs.files.flatMap(({ path, client }) =>
    client.value ? [{ path, bytes: client.value.wasmBytes, threads: client.value.threads }] : [],
  );
  const single = runs.modules.single ?? "more are used only for large files";
  return (
    <div class="settings">
      <section aria-labelledby="settings-allocator">
        <h3 id="settings-allocator">Allocator settings</h3>
        {trace?.device === null && (
          <p class="dim">The file has no device with events or segments.</p>
        )}
        {card?.note && <p class="dim">{card.note}</p>}
        <dl class="setting-list">
          {(card?.settings ?? []).map(({ key, value, text }) => (
            <div key={key} class="setting" data-key={key}>
              <dt>
                <code>{key}</code> <code class="setting-value">{value}</code>
              </dt>
              <dd>{text}</dd>
            </div>
          ))}
        </dl>
      </section>
      <section aria-labelledby="settings-recording">
        <h3 id="settings-recording">How it was recorded</h3>
        <Rows rows={card?.provenance ?? []} />
      </section>
      <section aria-labelledby="settings-warnings">
        <h3 id="settings-warnings">Warnings</h3>
        {warnings.length === 0 && <p class="dim">None.</p>}
        <ul>
          {warnings.map(({ code, message, count }) => (
            <li key={code} data-code={code} data-value={count}>
              {message} {count > 1 && <span class="dim">({count} times)</span>}
            </li>
          ))}
        </ul>
      </section>
      <section aria-labelledby="settings-page">
        <h3 id="settings-page">Display settings</h3>
        <p class="toggles">
          <Toggle label="Wheel scrolls, Ctrl+wheel zooms" value={viewSelection.wheelScrolls} />
          <Toggle label="Drag zooms to a box" value={viewSelection.dragZooms} />
          <Toggle label="Hide framework frames" value={viewSelection.hideFramework} />
          <Toggle label="Start y axis at initial memory" value={viewSelection.fromBaseline} />
        </p>
        <label class="field" title="Unload inactive ranks above this limit">
          <span>Memory for all ranks, GiB</span>
          <input
            type="number"
            min={0.25}
            step={0.25}
            value={viewSelection.memory.value}
            onChange={(event) => {
              const { valueAsNumber } = event.currentTarget;
              if (valueAsNumber > 0) viewSelection.memory.value = valueAsNumber;
            }}
          />
        </label>
        <dl class="rows">
          {stats
            .filter(({ bytes }) => bytes > 0)
            .map(({ path, bytes, threads }) => (
              <Fragment key={path}>
                <div class="row">
                  <dt title={path}>wasm memory</dt>
                  <dd data-value={bytes}>
                    {Math.ceil(bytes / 2 ** 20)} MiB, {fileName(path)}
                  </dd>
                </div>
                <div class="row" data-key="threads">
                  <dt title={path}>parsed with</dt>
                  <dd data-value={threads}>
                    {threads > 1 ? `${threads} threads` : `1 thread: ${single}`}
                  </dd>
                </div>
              </Fragment>
            ))}
        </dl>
      </section>
    </div>
  );
}

export function Rows({ rows }: { rows: readonly DetailRow[] }) {
  return (
    <dl class="rows">
      {rows.map(({ key, label, text, raw }) => (
        <div key={key} class="row" data-key={key}>
          <dt>{label}</dt>
          <dd data-value={raw}>{text}</dd>
        </div>
      ))}
    </dl>
  );
}
