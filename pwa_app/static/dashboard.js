"use strict";
// The start page tells how old it is, and whether there is an update (asked once an hour).
(() => {
  const checked = find("checked");
  const words = new Intl.RelativeTimeFormat(document.documentElement.lang, { numeric: "auto" });
  const before = checked.textContent;
  const loaded = Date.now();
  setInterval(() => {
    const minutes = Math.round((Date.now() - loaded) / 60000);
    if (minutes) checked.textContent = `${before}, ${words.format(-minutes, "minute")}`;
  }, 15000);

  const notice = find("update-notice");
  const hour = 3600000;
  const show = (html) => { if (html) notice.innerHTML = html; };
  const kept = (() => {
    try { return JSON.parse(sessionStorage.getItem("update")); } catch { return null; }
  })();
  if (kept && loaded - kept.at < hour) { show(kept.html); return; }
  fetch("/app/update?notice=1").then(async (answer) => {
    if (!answer.ok) return;
    const html = await answer.text();
    show(html);
    try { sessionStorage.setItem("update", JSON.stringify({ at: loaded, html })); } catch {}
  }).catch(() => {});
})();
