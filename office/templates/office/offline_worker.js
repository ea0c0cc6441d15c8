// Shows one page if a page of the office can't be loaded. offline.js has stored it with its files;
// nothing else is stored.
"use strict";
const FILES = "{{ files }}".split(" ");
const [PAGE] = FILES;

addEventListener("fetch", (event) => {
  const { request } = event;
  const isPage = request.method === "GET" && request.destination === "document";
  const stored = isPage ? PAGE : FILES.find((path) => path === new URL(request.url).pathname);
  if (stored) event.respondWith(fetch(request).catch(() => caches.match(stored)));
});
