// Under which settings the allocator ran, in words; what was odd about the file; how it was
// recorded; and how this page behaves.

import { Fragment } from "preact";
import type { DetailRow } from "../generated/protocol.js";
import { Toggle } from "./controls.js";
import type { ViewProperties } from "./ui.js";

export function Settings({ session, workspace }: ViewProperties) {
  const card = workspace.settings.value.value;
  const warnings = session.trace.value?.part.warnings ?? [];
  const { linked } = session;
  const stats = session
    .files()
    .flatMap(({ path, client }) =>
      client.value ? [{ path, bytes: client.value.wasmBytes, threads: client.value.threads }] : [],
    );
  const single = session.modules.single ?? "more are for large files that have cores to themselves";
  return (
    <div class="settings">
      <section aria-labelledby="settings-allocator">
        <h3 id="settings-allocator">Allocator settings</h3>
        {session.trace.value?.device === null && (
          <p class="dim">The file names no device with events or segments.</p>
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
        <h3 id="settings-warnings">What was odd about the file</h3>
        {warnings.length === 0 && <p class="dim">Nothing.</p>}
        <ul>
          {warnings.map(({ code, message, count }) => (
            <li key={code} data-code={code} data-value={count}>
              {message} {count > 1 && <span class="dim">({count} times)</span>}
            </li>
          ))}
        </ul>
      </section>
      <section aria-labelledby="settings-page">
        <h3 id="settings-page">This page</h3>
        <p class="toggles">
          <Toggle label="Wheel scrolls, Ctrl+wheel zooms" value={linked.wheelScrolls} />
          <Toggle label="Drag zooms to a box" value={linked.dragZooms} />
          <Toggle label="Hide framework frames" value={linked.hideFramework} />
          <Toggle label="Y from what was there before the window" value={linked.fromBaseline} />
        </p>
        <label
          class="field"
          title="The workers of ranks that nobody looks at give their memory back beyond this"
        >
          <span>Memory for all ranks, GiB</span>
          <input
            type="number"
            min={0.25}
            step={0.25}
            value={linked.memory.value}
            onChange={(event) => {
              const { valueAsNumber } = event.currentTarget;
              if (valueAsNumber > 0) linked.memory.value = valueAsNumber;
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
                    {Math.ceil(bytes / 2 ** 20)} MiB, {path.split("/").at(-1)}
                  </dd>
                </div>
                <div class="row" data-key="threads">
                  <dt title={path}>read and answered by</dt>
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
