// The name of a row of a small table. It chooses the row's blocks.

import type { ViewUses } from "./workspace.js";

type NameButtonProperties = ViewUses<"appearance" | "groups"> & {
  label: string;
  title: string;
  color: number;
  terms: readonly string[];
};

export function NameButton({ appearance, groups, ...row }: NameButtonProperties) {
  return (
    <button
      type="button"
      class="ab-name"
      title={row.title}
      onClick={(event) => groups.choose(row.terms, event)}
    >
      <span class="swatch" style={{ background: appearance.swatch(row.color) }} />
      <span>{row.label}</span>
    </button>
  );
}
