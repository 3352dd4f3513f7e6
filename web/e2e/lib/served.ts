// Runs `vramscope serve`.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { program } from "./cli.js";

export interface Served {
  /** The first line of output. */
  line: string;
  address: string;
  stop: () => Promise<void>;
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGINT");
  await ended;
}

// With SSH_CONNECTION the program prints other lines, for a browser on another machine.
const { SSH_CONNECTION: _, ...environ } = process.env;
const { PATH = "" } = environ;

export interface Options {
  /** A folder of programs that stand in for browsers. Without it, none is opened. */
  browsers?: string;
}

/** Serves these paths. */
export async function serve({ browsers }: Options, ...paths: string[]): Promise<Served> {
  const open = browsers === undefined ? ["--no-open"] : [];
  const child = spawn(program, ["serve", ...open, ...paths], {
    stdio: ["ignore", "pipe", "inherit"],
    env: browsers === undefined ? environ : { ...environ, PATH: `${browsers}:${PATH}` },
  });
  const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  const address = /http:\S+/.exec(line)?.[0];
  if (address === undefined) throw new Error(`no address in ${line}`);
  return { line, address, stop: () => stop(child) };
}
