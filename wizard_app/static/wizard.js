"use strict";
// What a browser knows and the device does not: nothing here is needed to set it up.
(() => {
  const { searchParams } = new URL(location);
  if (searchParams.has("token") || searchParams.has("retry")) {
    searchParams.delete("token");
    searchParams.delete("retry");
    const rest = String(searchParams);
    history.replaceState(null, "", location.pathname + (rest && `?${rest}`));
  }

  // What comes of a value that is being typed, when it can be one.
  const preview = (id, line, pattern, words) => {
    const field = find(id);
    const show = () => {
      const value = field.value.trim();
      const fits = pattern.test(value);
      find(line).hidden = !fits;
      find(line).lastElementChild.textContent = fits ? words(value) : "";
    };
    field?.addEventListener("input", show);
    if (field) show();
  };
  preview("hostname", "reached", /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/, (name) => `${name}.local`);
  preview("b-account-id", "goes-to", /^[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$/i,
    (account) => `https://${account}.${find("goes-to").dataset.host}`);

  // The time zone of who sets it up, in place of a suggestion; only a zone that the device knows.
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (find("zone-taken") && document.querySelector(`#zones option[value="${CSS.escape(zone)}"]`)) {
    find("timezone").value = zone;
    find("zone-taken").hidden = false;
  }

  // The end of the session, told ten minutes before; `data-left` is how many seconds it has.
  const session = find("session");
  if (session) {
    const end = Date.now() + session.dataset.left * 1000;
    const look = () => {
      if (end - Date.now() > 600_000) return;
      clearInterval(looking);
      session.querySelector("strong").textContent = new Date(end)
        .toLocaleTimeString(document.documentElement.lang, { hour: "2-digit", minute: "2-digit" });
      session.firstElementChild.hidden = false;
    };
    const looking = setInterval(look, 5_000);
    look();
  }

  // How a key of the chosen provider looks, beside the field that it goes into.
  const look = find("key-look");
  if (look) {
    const show = () => {
      const chosen = document.querySelector("[name=provider]:checked");
      const said = chosen?.closest(".choice").nextElementSibling.querySelector(".look");
      if (!said) return;
      look.textContent = said.textContent;
      look.lang = said.lang;
    };
    look.closest("form").addEventListener("change", show);
    show();
  }

  // A part of the page is asked for anew each second, until nothing more comes of it.
  const main = find("main");
  let sending = false, left = false;
  const leave = (url) => {
    if (!left) location.replace(url);
    left = true;
  };
  const watch = async (box) => {
    if (!box?.isConnected) return;
    let lost = true;
    try {
      const answer = await fetch(box.dataset.poll, { signal: AbortSignal.timeout(5000) });
      if (answer.status === 401) location.reload();
      if (!answer.ok) throw answer;
      const fresh = (await parse(answer)).body.firstElementChild;
      const { next, poll } = fresh.dataset;
      if (!box.isConnected) return;
      lost = false;
      if (next) {
        // What this page sent may not have come to the device yet.
        if (!sending || next.endsWith("done")) return leave(next);
      } else {
        sending = false;
        const old = box.querySelectorAll("[data-live]");
        fresh.querySelectorAll("[data-live]").forEach((part, at) => {
          if (part.innerHTML !== old[at].innerHTML) old[at].replaceChildren(...part.childNodes);
        });
        if (!poll) return;
      }
    } catch { /* asked again */ }
    box.querySelector("[data-lost]")?.toggleAttribute("hidden", !lost);
    setTimeout(watch, 1000, box);
  };
  const change = (page) => {
    main.replaceChildren(...page.childNodes);
    document.title = main.querySelector("h1").textContent;
    (main.querySelector(".error > [tabindex]") ?? main).focus();
    const box = main.querySelector("[data-poll]");
    document.querySelector(".before").hidden = box;
    watch(box);
  };
  watch(main.querySelector("[data-poll]"));

  // A form with a page to show until its answer comes; that may be lost when the device's name changes.
  main.addEventListener("submit", async (event) => {
    const { target } = event;
    const page = target.querySelector("template");
    if (!page || event.defaultPrevented) return;
    event.preventDefault();
    sending = true;
    const asked = fetch(target.action, { method: "POST", body: new URLSearchParams(new FormData(target)) });
    change(page.content);
    try {
      const answer = await asked;
      if (answer.redirected) leave(answer.url);
      else change((await parse(answer)).querySelector("main"));
    } catch { sending = false; }
  });
})();
