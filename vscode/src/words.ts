// Text of files in VS Code's own windows: notifications, problems, titles. A snapshot may come from
// anyone, and so may its names. VS Code turns `[text](command:...)` in a notification into a link
// that runs a command.

/** Characters that act, or are not seen: controls, line breaks, marks of direction, no width. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
/** More marks on one letter than words have. */
const PILED = /(\p{M}{4})\p{M}+/gu;
/** What links of VS Code and of Markdown have between their text and their address. */
const LINK = /\](?=\()/g;
const NO_WIDTH = "\u200b";

/** The text in at most `most` characters, with unseen ones as escapes, and without links. */
export function shown(text: string, most = 200): string {
  // A name of any length takes no time: what is cut away is not looked at.
  const near = 4 * most;
  const ends = text.length > 2 * near ? `${text.slice(0, near)}…${text.slice(-near)}` : text;
  const seen = ends.replace(UNSEEN, (c) => `\\u{${c.codePointAt(0)?.toString(16)}}`);
  const all = [...seen.replace(PILED, "$1").replace(LINK, `]${NO_WIDTH}`)];
  if (all.length <= most) return all.join("");
  // The end of a path has the name of its file.
  const half = Math.floor(most / 2);
  return `${all.slice(0, most - half - 1).join("")}…${all.slice(-half).join("")}`;
}
