// Two buttons that save what a plot shows.

import { computed } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { CanvasPlot } from "../plot/canvas-plot.js";
import type { Session } from "../session.js";
import { Icon } from "../ui/icons.js";
import { savePicture } from "./picture.js";

interface PictureButtonsProperties {
  session: Session;
  plot: CanvasPlot<unknown> | null;
  name: string;
}

export function PictureButtons({ session, plot, name }: PictureButtonsProperties) {
  const isEmpty = useMemo(() => computed(() => !plot?.range.value), [plot]).value;
  return (
    <>
      {(["svg", "png"] as const).map((form) => (
        <button
          key={form}
          type="button"
          class="button plain"
          disabled={isEmpty}
          title={`Save the picture as ${form.toUpperCase()}`}
          onClick={() => void savePicture(session, form, plot, name)}
        >
          <Icon name="save" /> {form.toUpperCase()}
        </button>
      ))}
    </>
  );
}
