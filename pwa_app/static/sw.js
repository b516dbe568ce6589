// The service worker. It keeps static files and the offline page, and never a page of /app/:
// those show logs and keys, and an old one would pass for the device's state.
// The line above, BUILT, is written by the server.
const CACHE = `platform-${BUILT.version}`;

addEventListener("install", (event) => {
  // No skipWaiting: a page that is open keeps the worker that it began with.
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(
    [BUILT.offline, ...BUILT.files].map((url) => new Request(url, { cache: "reload" })))));
});

addEventListener("activate", (event) => {
  event.waitUntil(caches.keys().then((names) => Promise.all(
    names.filter((name) => name.startsWith("platform-") && name !== CACHE)
      .map((name) => caches.delete(name)))));
});

addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname, search } = new URL(request.url);
  if (request.method !== "GET" || origin !== location.origin) return;
  if (request.mode === "navigate") {
    event.respondWith(fetch(request).catch(() => kept(BUILT.offline)));
  } else if (BUILT.files.includes(pathname + search)) {
    event.respondWith(kept(request).then((found) => found.ok ? found : fetch(request)));
  }
});

const kept = async (request) =>
  (await (await caches.open(CACHE)).match(request)) ?? Response.error();

addEventListener("push", (event) => {
  const { title, body } = message(event.data);
  event.waitUntil(registration.showNotification(title, { body, icon: BUILT.icon }));
});

// A message is JSON with a title and a body, or text; whatever is missing is said in our words.
const message = (data) => {
  let said;
  try { said = data.json(); } catch { said = data?.text(); }
  if (Object(said) !== said) said = { body: said };
  const text = (value, instead, most) =>
    typeof value === "string" && value.trim() ? value.slice(0, most) : instead;
  return { title: text(said.title, BUILT.title, 100), body: text(said.body, BUILT.body, 500) };
};

addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(dashboard());
});

const dashboard = async () => {
  const windows = await clients.matchAll({ type: "window", includeUncontrolled: true });
  const open = windows.find(({ url }) => new URL(url).pathname === BUILT.dashboard);
  return open ? open.focus() : clients.openWindow(BUILT.dashboard);
};

// The browser has another address now: the device must know it.
addEventListener("pushsubscriptionchange", (event) => {
  event.waitUntil(renew(event.oldSubscription, event.newSubscription));
});

const send = (where, what) => fetch(`/app/push/${where}`, {
  method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(what),
});

const renew = async (old, renewed) => {
  const key = await (await fetch("/app/push/vapid-public")).text();
  if (key) {
    await send("subscribe", renewed ?? await registration.pushManager.subscribe(
      { userVisibleOnly: true, applicationServerKey: key }));
  }
  if (old) await send("unsubscribe", { endpoint: old.endpoint });
};
