// A question to the model of the allocator as a text for links:
// `expandable_segments:True,device_memory:H100,tokens:2,optimizer_state:0.25,train.py:12:0`.

import type { ScaledPart, ScenarioSpec } from "./generated/protocol.js";

/** The recording as it is. */
export const AS_RECORDED: ScenarioSpec = {
  expandableSegments: null,
  maxSplitSizeMb: null,
  roundupPower2Divisions: null,
  deviceMemory: "",
  tokens: 1,
  parts: [],
};

const escaped = (text: string) => text.replaceAll(/[%,]/g, encodeURIComponent);

/** The text of a question; empty for the recording as it is. */
export function scenarioText(spec: ScenarioSpec): string {
  const { expandableSegments, maxSplitSizeMb, roundupPower2Divisions, deviceMemory, tokens } = spec;
  return [
    ...(expandableSegments === null
      ? []
      : [`expandable_segments:${expandableSegments ? "True" : "False"}`]),
    ...(maxSplitSizeMb === null ? [] : [`max_split_size_mb:${maxSplitSizeMb}`]),
    ...(roundupPower2Divisions === null
      ? []
      : [`roundup_power2_divisions:${roundupPower2Divisions}`]),
    ...(deviceMemory === "" ? [] : [`device_memory:${escaped(deviceMemory)}`]),
    ...(tokens === 1 ? [] : [`tokens:${tokens}`]),
    ...spec.parts.map(({ what, factor }) => `${escaped(what)}:${factor}`),
  ].join(",");
}

const count = (text: string) => (/^\d{1,9}$/.test(text) ? Number(text) : undefined);
const factorOf = (text: string) => (/^\d{1,4}(\.\d{1,9})?$/.test(text) ? Number(text) : undefined);

/** Some fields of a question; undefined ones are invalid. */
type Change = { [K in keyof ScenarioSpec]?: ScenarioSpec[K] | undefined };

/** How each field is read. Other names are categories and call sites. */
const FIELDS: Readonly<Record<string, (text: string) => Change>> = {
  expandable_segments: (text) => ({ expandableSegments: text === "True" }),
  max_split_size_mb: (text) => ({ maxSplitSizeMb: count(text) }),
  roundup_power2_divisions: (text) => ({ roundupPower2Divisions: count(text) }),
  device_memory: (text) => ({ deviceMemory: text }),
  tokens: (text) => ({ tokens: factorOf(text) || undefined }),
};

function unescaped(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** Parses a question; undefined if a part of it is invalid. */
export function scenarioOf(text: string): ScenarioSpec | undefined {
  if (text === "") return AS_RECORDED;
  const changes: Change[] = [];
  const parts: ScaledPart[] = [];
  for (const item of text.split(",")) {
    // A call site has a colon, too.
    const end = item.lastIndexOf(":");
    const [name, value] = [unescaped(item.slice(0, end)), unescaped(item.slice(end + 1))];
    if (end < 1 || name === undefined || value === undefined) return undefined;
    const read = Object.hasOwn(FIELDS, name) ? FIELDS[name] : undefined;
    const factor = factorOf(value);
    if (read) changes.push(read(value));
    else if (factor !== undefined) parts.push({ what: name, factor });
    else return undefined;
  }
  if (changes.some((change) => Object.values(change).includes(undefined))) return undefined;
  return Object.assign({ ...AS_RECORDED, parts }, ...changes);
}
