// The field for the GPU: its memory is the limit of the levers, and the line over the timeline.

import { useEffect, useId, useState } from "preact/hooks";
import { Icon } from "../ui/icons.js";
import { GIB } from "../view-selection.js";
import type { ViewUses } from "./workspace.js";

export function Gpu({
  runs,
  viewSelection,
  queries,
}: ViewUses<"runs" | "viewSelection" | "queries">) {
  const { capacity } = viewSelection;
  const [names, setNames] = useState<readonly string[]>([]);
  const typed = viewSelection.gpu.value;
  const list = useId();
  useEffect(() => {
    void runs.coordinator.gpu("").then((known) => setNames(known.names));
  }, [runs]);
  const bytes = capacity.value;
  const given = bytes === null ? "" : `${Math.round((bytes / GIB) * 1000) / 1000} GiB`;
  // The typed text stays until the GPU changes elsewhere.
  const isOwn = typed.text !== "" && typed.at === bytes;
  const shown = isOwn ? typed.text : given;
  const isBad = isOwn && typed.isBad;
  const limit = queries.limit.value.value;
  const known = limit?.capacity ?? null;
  const explained =
    known && bytes === null
      ? `${known.text} is the recorded limit. Another: a GPU, or an amount in GiB`
      : "The limit of the changes and of the timeline: a GPU, or an amount in GiB";
  const change = async (text: string) => {
    const read = text.trim() === "" ? null : await runs.coordinator.gpu(text);
    const isBad = read !== null && read.bytes === null;
    if (!isBad) capacity.value = read?.bytes ?? null;
    viewSelection.gpu.value = {
      text: text.trim(),
      said: read?.text ?? "",
      isBad,
      at: capacity.peek(),
    };
  };
  return (
    <label class="field gpu" data-testid="gpu" title={typed.said || explained}>
      <Icon name="gpu" />
      <span>GPU</span>
      <input
        list={list}
        placeholder={known?.text ?? "80 or H100"}
        data-testid="capacity"
        aria-invalid={isBad}
        value={shown}
        onChange={(event) => void change(event.currentTarget.value)}
      />
      {isOwn && !isBad && bytes !== null && (
        <span class="dim">{Math.round((bytes / GIB) * 10) / 10} GiB for PyTorch</span>
      )}
      <datalist id={list}>
        {names.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </label>
  );
}
