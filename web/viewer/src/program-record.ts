// The public type of the program's records, apart from the code that finds them: users compile the
// package's types, and that code refers to those of the whole viewer.

/** A record of the program's JSON. docs/cli.md has the fields. */
export type ProgramRecord = Record<string, unknown>;
