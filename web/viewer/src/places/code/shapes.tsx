// The dimensions of the model, and the bytes of each shape at the peak.

import { useEffect, useId, useMemo } from "preact/hooks";
import { resource } from "../../client/resource.js";
import type { ViewUses } from "../../views/workspace.js";

type ShapesOwners = ViewUses<"runs" | "loader" | "selection">;

export function Shapes(owners: ShapesOwners) {
  const { selection } = owners;
  const page = useMemo(
    () =>
      resource(selection, "modules", () => ({
        modules: { spec: { event: null, open: null }, from: 0, count: 0 },
      })),
    [selection],
  );
  useEffect(() => () => page.stop(), [page]);
  const shown = page.value.value;
  if (shown === null) return null;
  const { dims, refused, shapes } = shown;
  return (
    <section class="shapes" aria-labelledby="shapes-title" data-testid="shapes">
      <h3 id="shapes-title">Shapes at the peak</h3>
      {dims.length > 0 && (
        <ul class="dims" aria-label="Dimensions" data-testid="dims">
          {dims.map((dim) => (
            <li key={dim}>{dim}</li>
          ))}
        </ul>
      )}
      {refused !== "" && <p class="dim">{refused}</p>}
      <Widths {...owners} />
      <ul class="shares">
        {shapes.map(({ shape, symbols, bytes, blocks, share }) => (
          <li key={shape} class="share" title={`${bytes.exact}, ${blocks.exact}`}>
            <span class="share-bar" style={{ width: `${share * 100}%` }} />
            <span class="share-text">
              <span class="share-site">{shape}</span>
              <span class="share-via">
                {[symbols, blocks.exact].filter((text) => text !== "").join(" · ")}
              </span>
            </span>
            <span class="num" data-value={bytes.raw}>
              {bytes.text}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Takes the widths of the model from the user. */
function Widths({ runs, loader, selection }: ShapesOwners) {
  const [id, hint] = [useId(), useId()];
  const dims = runs.dims.value;
  const fault = selection.trace.value?.part.warnings.find(({ code }) => code === "dims");
  const set = (text: string) => void loader.setDims(text === "" ? null : { text, file: "" });
  return (
    <div class="widths">
      <div class="field">
        <label for={id}>widths</label>
        <input
          id={id}
          data-testid="widths"
          title="Widths of the model in elements, the hidden width first"
          aria-describedby={hint}
          aria-invalid={fault !== undefined}
          placeholder={dims?.file || "4096, 14336, 128256"}
          autocomplete="off"
          spellcheck={false}
          value={dims?.file === "" ? dims.text : ""}
          onChange={({ currentTarget: { value } }) => set(value.trim())}
        />
      </div>
      {fault ? (
        <p class="fault" id={hint} role="alert" data-testid="widths-fault">
          {fault.message}
        </p>
      ) : (
        <p class="dim" id={hint}>
          {dims === null && "Or drop the model’s config.json on the page."}
          {dims !== null && (dims.file === "" ? "These widths are given. " : `By ${dims.file}. `)}
          {dims !== null && (
            <button type="button" class="link" onClick={() => set("")}>
              Use the sizes of parameters
            </button>
          )}
        </p>
      )}
    </div>
  );
}
