// The service worker: after the first visit, the page works offline. Pages come from the network
// first, so that they are current. Files with a hash in their name come from the cache first. A
// newer worker waits until all pages of the older one are closed, because they may request older
// files.
//
// Under `/isolated/` it also adds the headers for cross-origin isolation, which threads need and
// static hosts may not be able to send.

/// <reference lib="webworker" />

// The build defines both (offline.ts beside vite.config.ts).
declare const FILES: string[];
declare const VERSION: string;

const worker = self as unknown as ServiceWorkerGlobalScope;
const PREFIX = `vramscope ${new URL(worker.registration.scope).pathname} `;
const CACHE = PREFIX + VERSION;
const ISOLATED = worker.registration.scope.endsWith("/isolated/");
const HASHED = /\/assets\/[^/]+$/;

const ISOLATION = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
  "Cross-Origin-Resource-Policy": "same-origin",
};

function isolated(response: Response): Response {
  if (!ISOLATED || response.type === "opaqueredirect" || response.status === 0) return response;
  const headers = new Headers(response.headers);
  for (const [name, value] of Object.entries(ISOLATION)) headers.set(name, value);
  return new Response(response.body, {
    status: response.status,
    statusText: response.statusText,
    headers,
  });
}

async function cacheFiles(): Promise<void> {
  const cache = await caches.open(CACHE);
  // Bypasses the browser's cache, which may have another version.
  await cache.addAll(FILES.map((file) => new Request(file, { cache: "reload" })));
}

async function deleteOldCaches(): Promise<void> {
  const names = await caches.keys();
  await Promise.all(
    names
      .filter((name) => name.startsWith(PREFIX) && name !== CACHE)
      .map((name) => caches.delete(name)),
  );
  await worker.clients.claim();
}

async function answer(request: Request): Promise<Response> {
  const cache = await caches.open(CACHE);
  const cached = () => cache.match(request, { ignoreSearch: true });
  if (HASHED.test(new URL(request.url).pathname)) {
    const hit = await cached();
    if (hit) return hit;
  }
  try {
    // Revalidates the browser's cache: a host may have allowed it to keep an old page.
    const response = await fetch(new Request(request, { cache: "no-cache" }));
    // Caches files that the build does not list, such as the sample.
    if (response.status === 200) await cache.put(request, response.clone());
    return response;
  } catch (error) {
    const hit = await cached();
    if (hit) return hit;
    throw error;
  }
}

worker.addEventListener("install", (event) => event.waitUntil(cacheFiles()));
worker.addEventListener("activate", (event) => event.waitUntil(deleteOldCaches()));
worker.addEventListener("fetch", (event) => {
  const { request } = event;
  const ours = request.method === "GET" && request.url.startsWith(worker.registration.scope);
  if (ours && !request.headers.has("range")) event.respondWith(answer(request).then(isolated));
});
