// How the page shows recordings, and the memory that it takes.

import { Fragment } from "preact";
import { fileName } from "../client/files.js";
import { Toggle } from "./controls.js";
import type { ViewUses } from "./workspace.js";

type DisplayProperties = ViewUses<"runs" | "viewSelection">;

export function Display({ runs, viewSelection }: DisplayProperties) {
  const stats = runs.files.flatMap(({ path, client }) =>
    client.value ? [{ path, bytes: client.value.wasmBytes, threads: client.value.threads }] : [],
  );
  const single = runs.modules.single ?? "more are used only for large files";
  return (
    <div class="settings">
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
