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

/** Serves these paths without opening a browser. */
export async function serve(...paths: string[]): Promise<Served> {
  const child = spawn(program, ["serve", "--no-open", ...paths], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  const address = /http:\S+/.exec(line)?.[0];
  if (address === undefined) throw new Error(`no address in ${line}`);
  return { line, address, stop: () => stop(child) };
}
