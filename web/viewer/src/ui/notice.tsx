// What went wrong that belongs to no row: said above the content, until it is put away or something
// is opened.

import { useState } from "preact/hooks";
import type { RunWatch } from "../client/run-index.js";
import type { Session } from "../session.js";
import { Icon } from "./icons.js";

export function Notice({ session }: { session: Session }) {
  const [away, setAway] = useState(false);
  // That there are no other views stays true; it is said until it is put away.
  const notice = session.notice.value ?? (away ? null : session.viewsFailure.value);
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
        aria-label="Put away"
        onClick={() => {
          if (session.notice.peek() === null) setAway(true);
          session.notice.value = null;
        }}
      >
        <Icon name="close" />
      </button>
    </div>
  );
}

/** That there are more snapshots now than were opened. */
export function OfferNotice({ offer, open }: { offer: RunWatch; open: () => void }) {
  const shown = offer.offer.value;
  if (shown === null) return null;
  return (
    <div class="notice offer" role="status" data-testid="offer">
      <Icon name="file" />
      <p>New: {shown.text}</p>
      <button type="button" class="button" onClick={open}>
        Open the run again
      </button>
      <button
        type="button"
        class="button plain"
        aria-label="Put away"
        onClick={() => offer.putAway()}
      >
        <Icon name="close" />
      </button>
    </div>
  );
}
