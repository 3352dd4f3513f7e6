// Files of test_data/, and the numbers that stand beside them, which no part of vramscope has
// computed.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const ROOT = new URL("../../../test_data/", import.meta.url);

/** The path of a file of test_data/. */
export const testData = (name: string) => fileURLToPath(new URL(name, ROOT));

/** A file of test_data/ under another name, as a picker hands it over. */
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

/** The sample run by path, as `scripts/oracle.py` reads it. */
export const sample = JSON.parse(readFileSync(testData("sample_expected.json"), "utf8")) as Record<
  string,
  SampleRank
>;
