// The service worker: after the first visit the page works without a network. Pages come from the
// network while there is one, so that nobody keeps an old version; files whose names are hashes of
// their content come from the cache. A newer worker waits until no page of the older one is open:
// such a page may still ask for its own files.
//
// Under `/isolated/` it also adds the headers that isolate the page from other origins, which a
// static host may not be able to send: threads need them.

/// <reference lib="webworker" />

// Both are put here by the build (offline.ts beside vite.config.ts).
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

async function keep(): Promise<void> {
  const cache = await caches.open(CACHE);
  // Past the browser's own cache, which may be of another version.
  await cache.addAll(FILES.map((file) => new Request(file, { cache: "reload" })));
}

async function forgetOthers(): Promise<void> {
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
  const kept = () => cache.match(request, { ignoreSearch: true });
  if (HASHED.test(new URL(request.url).pathname)) {
    const hit = await kept();
    if (hit) return hit;
  }
  try {
    // Never from the browser's own cache unasked: a host may have told it to keep an old page for a
    // while.
    const response = await fetch(new Request(request, { cache: "no-cache" }));
    // What is not known beforehand, such as the sample, is there the next time.
    if (response.status === 200) await cache.put(request, response.clone());
    return response;
  } catch (error) {
    const hit = await kept();
    if (hit) return hit;
    throw error;
  }
}

worker.addEventListener("install", (event) => event.waitUntil(keep()));
worker.addEventListener("activate", (event) => event.waitUntil(forgetOthers()));
worker.addEventListener("fetch", (event) => {
  const { request } = event;
  const ours = request.method === "GET" && request.url.startsWith(worker.registration.scope);
  if (ours && !request.headers.has("range")) event.respondWith(answer(request).then(isolated));
});
