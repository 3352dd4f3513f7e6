// Dimensions of the model that the user gives: typed widths, or a dropped `config.json`.

import { firstBytes } from "./client/chunks.js";
import { fileName } from "./client/files.js";
import type { Source } from "./client/rank-file.js";

/** A `config.json` has a few kilobytes. */
const MAX_CONFIG_BYTES = 1 << 20;

export interface ModelDims {
  /** A `config.json` of Hugging Face transformers, or widths with the hidden width first. */
  text: string;
  /** The name of the file; empty for typed widths. */
  file: string;
}

/** Whether a file is a configuration. One in a searched folder may be of anything. */
const isConfig = ({ path, searched }: Source) => !searched && fileName(path) === "config.json";

/**
 * Separates the configuration of a model from other files.
 *
 * Throws an error if there are several.
 */
export async function takeConfig(
  sources: readonly Source[],
): Promise<{ others: Source[]; dims: ModelDims | null }> {
  const [config, ...more] = sources.filter(isConfig);
  const others = sources.filter((source) => !isConfig(source));
  if (!config) return { others, dims: null };
  if (more.length > 0)
    throw new Error("Several files are named config.json. Open only that of the model.");
  const text = new TextDecoder().decode(await firstBytes(config.from, MAX_CONFIG_BYTES));
  return { others, dims: { text, file: fileName(config.path) } };
}
