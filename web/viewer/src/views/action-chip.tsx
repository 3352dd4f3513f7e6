// What to do in a few words, with what it brings. A setting is copied, and what was simulated opens
// the model of the allocator.

import type { Action } from "../generated/protocol.js";
import { copyText } from "../host/clipboard.js";
import { CLIPBOARD_DENIED } from "../selection.js";
import type { ViewUses } from "./workspace.js";

type ActionChipProperties = ViewUses<"viewSelection" | "navigation" | "status"> & {
  action: Action;
  /** Shows the finding of an action that is no setting; null beside the finding. */
  show: ((finding: string) => void) | null;
};

export function ActionChip(properties: ActionChipProperties) {
  const { viewSelection, navigation, status, action, show } = properties;
  const { text, value, detail, conf, helps, isSimulated, scenario, finding } = action;
  const setting = conf === null ? null : `PYTORCH_CUDA_ALLOC_CONF=${conf}`;
  const copies = setting !== null && helps;
  const words = (
    <>
      <span class="action-text">{text}</span>
      {value !== "" && <span class="action-value num">{value}</span>}
    </>
  );
  const common = { "data-testid": "finding-action", "data-helps": helps } as const;
  if (!copies && !isSimulated && show === null) {
    return (
      <span class="action-chip" data-still="true" {...common}>
        {words}
      </span>
    );
  }
  const act = async () => {
    if (copies) {
      status.announce((await copyText(setting)) ? `Copied ${setting}` : CLIPBOARD_DENIED);
    } else if (isSimulated) {
      viewSelection.scenario.value = scenario;
      navigation.openDrawer("what-if");
    } else show?.(finding);
  };
  return (
    <button
      type="button"
      class="action-chip"
      {...common}
      data-testid={show === null ? "finding-action" : "verdict-action"}
      data-conf={conf ?? undefined}
      title={copies ? `Copy ${setting}\n${detail}` : detail}
      onClick={(event) => {
        event.stopPropagation();
        void act();
      }}
    >
      {words}
    </button>
  );
}
