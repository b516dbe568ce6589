"use strict";
// What a browser knows and the device does not: nothing here is needed to set it up.
(() => {
  const { searchParams } = new URL(location);
  if (searchParams.has("token")) {
    searchParams.delete("token");
    const rest = String(searchParams);
    history.replaceState(null, "", location.pathname + (rest && `?${rest}`));
  }
  const find = (id) => document.getElementById(id);

  // Where the device will be found under the name that is being typed.
  const name = find("hostname");
  const preview = () => {
    find("reached").hidden = !/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(name.value);
    find("reached").lastElementChild.textContent = `${name.value}.local`;
  };
  if (name) {
    name.addEventListener("input", preview);
    preview();
  }

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
      session.querySelector("time").textContent = new Date(end)
        .toLocaleTimeString(document.documentElement.lang, { hour: "2-digit", minute: "2-digit" });
      session.firstElementChild.hidden = false;
    };
    const looking = setInterval(look, 5_000);
    look();
  }

  // What goes on while the answer to a form takes long.
  for (const form of document.querySelectorAll("[data-working]")) {
    const status = form.querySelector("[role=status]");
    form.addEventListener("submit", () => { status.textContent = form.dataset.working; });
    addEventListener("pageshow", () => { status.textContent = ""; });
  }
})();
