// Serves the built site with isolation headers: `node server.mjs PORT`. With the argument `plain`
// after the port, it sends no isolation headers.

import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

const dist = fileURLToPath(new URL("../site/dist", import.meta.url));
const port = Number(process.argv[2]);

const TYPES = {
  ".css": "text/css",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".json": "application/json",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
};

const ISOLATION = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
};
const HEADERS = { ...(process.argv[3] === "plain" ? {} : ISOLATION), "Cache-Control": "no-store" };

createServer(async (request, response) => {
  const { pathname } = new URL(request.url ?? "/", "http://localhost");
  const file = join(
    dist,
    normalize(decodeURIComponent(pathname.endsWith("/") ? `${pathname}index.html` : pathname)),
  );
  const found = await stat(file).catch(() => null);
  if (!file.startsWith(dist) || !found?.isFile()) {
    response.writeHead(404, HEADERS).end("not here");
    return;
  }
  const type = TYPES[extname(file)] ?? "application/octet-stream";
  response.writeHead(200, { ...HEADERS, "Content-Type": type, "Content-Length": found.size });
  createReadStream(file).pipe(response);
}).listen(port, "127.0.0.1");
