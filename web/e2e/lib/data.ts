// Files of test_data/, and expected numbers that a separate oracle computed.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const ROOT = new URL("../../../test_data/", import.meta.url);

/** The path of a file of test_data/. */
export const testData = (name: string) => fileURLToPath(new URL(name, ROOT));

/** A file of test_data/ under another name, for a file input. */
export const renamed = (name: string, as: string) => ({
  name: as,
  mimeType: "application/octet-stream",
  buffer: readFileSync(testData(name)),
});

interface Curve {
  start_bytes: number;
  peak_bytes: number;
  peak_event: number;
  end_bytes: number;
}

interface SampleRank {
  rank: number;
  requested_bytes: Curve;
  reserved_bytes: Curve;
}

/** Numbers of the sample run by path, computed by `scripts/oracle.py`. */
export const sample = JSON.parse(readFileSync(testData("sample_expected.json"), "utf8")) as Record<
  string,
  SampleRank
>;

/** Labels of categories, as the page shows them. */
export const LABELS: Record<string, string> = {
  parameter: "parameters",
  gradient: "gradients",
  optimizer_state: "optimizer state",
  buffer: "buffers",
  input: "inputs",
  activation: "activations",
  temporary: "temporaries",
  workspace: "workspaces",
  communication: "communication",
  cache: "caches",
  unknown: "unknown",
};
