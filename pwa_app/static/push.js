"use strict";
// Finds out what this browser can do, and subscribes it. All words are in the page.
(() => {
  const LIMIT_MS = 10000;
  const box = find("push");
  const show = (scope, name, value) => {
    for (const part of scope.querySelectorAll(`[data-${name}]`)) {
      part.hidden = part.dataset[name] !== value;
    }
  };
  const mark = (need, found) => show(box.querySelector(`[data-need=${need}]`), "is", found);
  const state = (name) => show(box, "state", name);
  const say = (name) => show(box, "said", name);
  const yes = (condition) => condition ? "yes" : "no";

  const deviceKey = async () => {
    const answer = await fetch("/app/push/vapid-public");
    if (!answer.ok) throw answer;
    return (await answer.text()).trim();
  };
  const bytes = (key) => Uint8Array.from(
    atob(key.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
  const isFor = (subscription, key) => {
    const own = subscription.options?.applicationServerKey;
    return !own || String(new Uint8Array(own)) === String(bytes(key));
  };
  const post = async (where, what) => {
    const answer = await fetch(`/app/push/${where}`, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(what),
    });
    if (!answer.ok) throw answer;
  };
  // A push service that cannot be reached never answers at all.
  const inTime = (promise) => Promise.race([promise, new Promise((_, reject) => {
    setTimeout(reject, LIMIT_MS, "unreachable");
  })]);

  const look = async () => {
    mark("secure", yes(isSecureContext));
    find("home-screen").hidden = navigator.standalone !== false;
    if (!isSecureContext) return "insecure";
    const registration = await navigator.serviceWorker?.register("/sw.js").catch(() => null);
    mark("worker", yes(registration));
    const able = "PushManager" in window && "Notification" in window;
    mark("push", yes(able));
    if (!registration || !able) return "unable";
    const { permission } = Notification;
    mark("permission", { granted: "yes", denied: "no" }[permission] ?? "unknown");
    if (permission === "denied") return "blocked";
    const key = await deviceKey();
    if (!key) return "no-key";
    const subscription = await registration.pushManager.getSubscription();
    if (!subscription) return "off";
    return isFor(subscription, key) ? "on" : "changed";
  };

  const forget = async (subscription) => {
    await post("unsubscribe", { endpoint: subscription.endpoint });
    await subscription.unsubscribe();
  };
  const actions = {
    async enable() {
      if (await Notification.requestPermission() !== "granted") return;
      const { pushManager } = await inTime(navigator.serviceWorker.ready);
      const old = await pushManager.getSubscription();
      if (old) await forget(old);
      const asked = pushManager.subscribe(
        { userVisibleOnly: true, applicationServerKey: bytes(await deviceKey()) });
      let subscription;
      try {
        subscription = await inTime(asked);
      } catch (problem) {
        // What comes too late is not wanted any more.
        asked.then((late) => late.unsubscribe(), () => {});
        throw problem;
      }
      try {
        await post("subscribe", subscription);
      } catch (problem) {
        await subscription.unsubscribe();
        throw problem;
      }
    },
    async disable() {
      const { pushManager } = await navigator.serviceWorker.ready;
      const subscription = await pushManager.getSubscription();
      if (subscription) await forget(subscription);
    },
  };

  const explain = async (problem) => {
    if (problem === "unreachable") return say(problem);
    if (problem instanceof DOMException) return say("refused");
    if (problem instanceof Response && problem.headers.get("Content-Type")?.startsWith("text/plain")) {
      box.querySelector("[data-said=answer]").textContent = await problem.text();
      return say("answer");
    }
    return say("device");
  };
  const recount = async () => {
    const page = await parse(await fetch(location.pathname));
    find("subscribed").replaceWith(page.getElementById("subscribed"));
  };

  let busy = false;
  for (const button of box.querySelectorAll("[data-do]")) {
    button.addEventListener("click", async () => {
      if (busy) return;
      busy = true;
      say("working");
      try {
        await actions[button.dataset.do]();
        say("");
        await recount();
      } catch (problem) {
        await explain(problem);
      } finally {
        busy = false;
        await refresh();
        // The button may be gone; the keyboard goes on where the outcome is.
        if (button.hidden) find("state").focus();
      }
    });
  }
  const refresh = async () => {
    try {
      state(await look());
    } catch {
      state("unable");
      say("device");
    }
  };
  refresh();
})();
