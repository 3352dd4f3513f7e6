// The built site on a plain static host, under any path and without a header that isolates anything.

import { cpSync, createReadStream, existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";

const DIST = fileURLToPath(new URL("../../site/dist", import.meta.url));

const TYPES: Record<string, string> = {
  ".css": "text/css",
  ".html": "text/html",
  ".js": "text/javascript",
  ".json": "application/json",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
  ".webmanifest": "application/manifest+json",
};

export interface Hosted {
  /** Ends in a slash. */
  address: string;
  /** A copy of the site that belongs to the test. */
  folder: string;
  /** Requests so far, as paths. */
  asked: string[];
  stop: () => Promise<void>;
}

/** Serves a copy of the site below `path`. */
export async function host(path = ""): Promise<Hosted> {
  const root = mkdtempSync(join(tmpdir(), "hosted-"));
  const folder = join(root, path);
  cpSync(DIST, folder, { recursive: true });
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://localhost");
    asked.push(pathname);
    const file = join(root, pathname.endsWith("/") ? `${pathname}index.html` : pathname);
    if (!existsSync(file) || !statSync(file).isFile()) {
      response.writeHead(404).end("not here");
      return;
    }
    // As static hosts do: a browser may keep it for a while.
    const headers = {
      "Content-Type": TYPES[extname(file)] ?? "application/octet-stream",
      "Cache-Control": "max-age=600",
    };
    response.writeHead(200, headers);
    createReadStream(file).pipe(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const stop = async () => {
    if (!server.listening) return;
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    rmSync(root, { recursive: true });
  };
  return { address: `http://127.0.0.1:${port}/${path}${path === "" ? "" : "/"}`, folder, asked, stop };
}
