// The dialog that saves a report. It says what the file will hold before it is written.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Stores } from "../stores.js";
import { Modal } from "./modal.js";
import { contentsOf, makeReport } from "./report.js";
import { nameFor, saveBlob } from "./save.js";

export function ReportDialog(stores: Stores) {
  const template = stores.host.report;
  const open = stores.navigation.reportOpen.value;
  return open && template !== null ? <Dialog {...stores} template={template} /> : null;
}

function Dialog({ template, ...stores }: Stores & { template: string }) {
  const progress = useSignal<string | null>(null);
  const failure = useSignal<string | null>(null);
  const stop = useRef(new AbortController());
  useEffect(() => {
    const { current } = stop;
    return () => current.abort();
  }, []);
  const { runs, navigation, selection } = stores;
  const read = runs.files.filter((file) => file.load.peek().state === "ready");
  const close = () => {
    navigation.reportOpen.value = false;
  };
  const save = async () => {
    failure.value = null;
    progress.value = "";
    try {
      const report = await makeReport(stores, {
        template: new URL(template),
        progress: (text) => {
          progress.value = text;
        },
        signal: stop.current.signal,
      });
      saveBlob(report, `${nameFor(selection, "report")}.html`);
      close();
    } catch (error) {
      if (stop.current.signal.aborted) return;
      failure.value = error instanceof Error ? error.message : String(error);
    } finally {
      progress.value = null;
    }
  };
  const isBusy = progress.value !== null;
  const [text, viewer, , names] = contentsOf([]);
  return (
    <Modal class="sheet report" name={{ "aria-labelledby": "report-title" }} close={close}>
      <h2 id="report-title">Save as one HTML file</h2>
      <p class="quiet">It opens from disk, without a server and without network. It will hold:</p>
      <ul data-testid="report-contents">
        <li>{text}: verdict, findings, curve. It needs no script.</li>
        <li>{viewer}</li>
        {read.slice(0, 8).map(({ path, planned }) => (
          <li key={path}>
            {path} <span class="quiet">{planned.size}</span>
          </li>
        ))}
        {read.length > 8 && <li>and the other files of the run</li>}
        <li>{names}</li>
      </ul>
      <p class="quiet">
        <code>vramscope export --as html --redact</code> writes hashes in place of names, and leaves
        lines of source out.
      </p>
      {failure.value !== null && (
        <p role="alert" class="bad">
          {failure.value}
        </p>
      )}
      <div class="report-end">
        <span class="quiet" role="status">
          {isBusy && `Reading ${progress.value}…`}
        </span>
        <button type="button" class="button" onClick={close}>
          Cancel
        </button>
        <button
          type="button"
          class="button primary"
          disabled={isBusy || read.length === 0}
          onClick={() => void save()}
        >
          Save
        </button>
      </div>
    </Modal>
  );
}
