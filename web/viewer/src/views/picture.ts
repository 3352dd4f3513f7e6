// What a plot shows, as a picture in a file: vectors from the worker, and pixels made of those.

import type { CanvasPlot } from "../plot/canvas-plot.js";
import type { Session } from "../session.js";
import { nameFor, saveBlob } from "./save.js";

/** Pixels of a picture for every CSS pixel. */
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

/** The current view of a plot as a file. */
export async function savePicture(
  session: Session,
  form: "svg" | "png",
  plot: CanvasPlot<unknown> | null,
  name: string,
): Promise<void> {
  const { asked } = session;
  const picture = plot?.picture();
  if (!asked || !picture) return;
  const text = await asked.client.view(asked.target, "text", {
    picture: { ...picture, dark: session.dark.peek() },
  });
  if (text === null) return;
  const svg = new Blob([text], { type: "image/svg+xml" });
  saveBlob(form === "svg" ? svg : await pixels(svg), `${nameFor(session, name)}.${form}`);
}
