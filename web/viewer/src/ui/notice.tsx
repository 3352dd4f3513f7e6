// Failures that belong to no row, above the content until they are dismissed or files are opened.

import { useState } from "preact/hooks";
import type { RunWatch } from "../client/run-index.js";
import type { Uses } from "../stores.js";
import { Icon } from "./icons.js";

export function Notice({ status }: Uses<"status">) {
  const [dismissed, setDismissed] = useState(false);
  // Missing views stay missing, so this failure shows again after any other notice.
  const notice = status.notice.value ?? (dismissed ? null : status.viewsFailure.value);
  if (notice === null) return null;
  return (
    <div class="notice" role="alert">
      <Icon name="warning" />
      <p>
        {notice.message}
        {notice.hint !== null && <span class="dim"> {notice.hint}</span>}
      </p>
      <button
        type="button"
        class="button plain"
        aria-label="Dismiss"
        onClick={() => {
          if (status.notice.peek() === null) setDismissed(true);
          status.notice.value = null;
        }}
      >
        <Icon name="close" />
      </button>
    </div>
  );
}

/** Offers snapshots that were written since the run was opened. */
export function OfferNotice({ offer, open }: { offer: RunWatch; open: () => void }) {
  const shown = offer.offer.value;
  if (shown === null) return null;
  return (
    <div class="notice offer" role="status" data-testid="offer">
      <Icon name="file" />
      <p>New snapshots: {shown.text}</p>
      <button type="button" class="button" onClick={open}>
        Reload the run
      </button>
      <button
        type="button"
        class="button plain"
        aria-label="Dismiss"
        onClick={() => offer.dismiss()}
      >
        <Icon name="close" />
      </button>
    </div>
  );
}
