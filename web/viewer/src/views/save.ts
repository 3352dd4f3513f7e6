// Tables and pictures to files and to the clipboard.

import type { Table, TextForm } from "../generated/protocol.js";
import { copyText } from "../host/clipboard.js";
import type { Session } from "../session.js";

const TYPES: Record<string, string> = {
  csv: "text/csv",
  json: "application/json",
  svg: "image/svg+xml",
};

/** Hands a file to the browser's downloads. */
export function saveBlob(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // The download has its own hold on the blob once it has begun.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** `rank3_memory_snapshot-blocks`. */
export function nameFor(session: Session, what: string): string {
  const path = session.focus.peek()?.file.path ?? "vramscope";
  const file = path.split("/").at(-1) ?? path;
  return `${file.replace(/\.(pickle|pkl|pt|json|html)?(\.gz)?$/, "")}-${what}`;
}

async function tableText(session: Session, what: Table, form: TextForm): Promise<string | null> {
  const { asked } = session;
  return (await asked?.client.view(asked.target, "text", { export: { what, form } })) ?? null;
}

export async function saveTable(
  session: Session,
  what: Table,
  form: TextForm,
  name: string,
): Promise<void> {
  const text = await tableText(session, what, form);
  if (text !== null)
    saveBlob(new Blob([text], { type: TYPES[form] ?? "" }), `${nameFor(session, name)}.${form}`);
}

export async function copyTable(session: Session, what: Table): Promise<void> {
  const text = await tableText(session, what, "csv");
  const done = text !== null && (await copyText(text));
  session.spoken.value = done ? "Copied" : "The clipboard is not open to this page";
}
