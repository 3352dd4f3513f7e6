// One line for those who open a run for the first time: the gestures, and where all keys are.

import { zoomHint } from "../plot/gestures.js";
import type { Uses } from "../stores.js";
import { Icon } from "./icons.js";

export function HintStrip({ navigation }: Uses<"navigation">) {
  const { hint } = navigation;
  if (!hint.value) return null;
  const { zoom, pan } = zoomHint();
  return (
    <div class="hint-strip" data-testid="hint">
      <p>
        <b>{zoom}</b> zooms, <b>{pan}</b> pans, <kbd>?</kbd> for keys
      </p>
      <button
        type="button"
        class="button plain"
        title="Hide this line"
        aria-label="Hide this line"
        onClick={() => {
          hint.value = false;
        }}
      >
        <Icon name="close" />
      </button>
    </div>
  );
}
