// Two buttons that save a plot as a picture.

import { computed } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { CanvasPlot } from "../plot/canvas-plot.js";
import type { Uses } from "../stores.js";
import { Icon } from "../ui/icons.js";
import { savePicture } from "./picture.js";

type PictureButtonsProperties = Uses<"selection" | "appearance"> & {
  plot: CanvasPlot<unknown> | null;
  name: string;
  /** The question of chosen changes whose line is over the plot. */
  simulated?: string | null;
};

export function PictureButtons({
  plot,
  name,
  simulated = null,
  ...owners
}: PictureButtonsProperties) {
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
          onClick={() => void savePicture(owners, form, plot, name, simulated)}
        >
          <Icon name="save" /> {form.toUpperCase()}
        </button>
      ))}
    </>
  );
}
