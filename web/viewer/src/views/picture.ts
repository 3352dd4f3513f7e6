// Saves a plot as a picture: the worker draws an SVG, and the browser turns it into a PNG.

import type { CanvasPlot } from "../plot/canvas-plot.js";
import type { Uses } from "../stores.js";
import { nameFor, saveBlob } from "./save.js";

/** Pixels of a PNG per CSS pixel. */
const SCALE = 2;

function loaded(url: string): Promise<HTMLImageElement> {
  return new Promise((resolve, reject) => {
    const image = new Image();
    image.onload = () => resolve(image);
    image.onerror = () => reject(new Error("The picture could not be drawn."));
    image.src = url;
  });
}

async function pixels(svg: Blob): Promise<Blob> {
  const url = URL.createObjectURL(svg);
  try {
    const image = await loaded(url);
    const canvas = document.createElement("canvas");
    canvas.width = image.naturalWidth * SCALE;
    canvas.height = image.naturalHeight * SCALE;
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    const png = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, "image/png"));
    if (png === null) throw new Error("The browser could not make a PNG of this size.");
    return png;
  } finally {
    URL.revokeObjectURL(url);
  }
}

/** Saves the visible part of a plot, with the line that answers the question of chosen changes. */
export async function savePicture(
  { selection, appearance }: Uses<"selection" | "appearance">,
  form: "svg" | "png",
  plot: CanvasPlot<unknown> | null,
  name: string,
  simulated: string | null,
): Promise<void> {
  const { target } = selection;
  const picture = plot?.picture();
  if (!target || !picture) return;
  const text = await target.client.view(target.target, "text", {
    picture: { ...picture, dark: appearance.dark.peek(), simulated },
  });
  if (text === null) return;
  const svg = new Blob([text], { type: "image/svg+xml" });
  saveBlob(form === "svg" ? svg : await pixels(svg), `${nameFor(selection, name)}.${form}`);
}
