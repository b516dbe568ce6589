"use strict";
// Follows the log by asking every two seconds for what is new. All text stays text.
(() => {
  const [log, pause, wrap, state, news, form] =
    ["log", "pause", "wrap", "state", "news", "lines"].map(find);
  const words = log.dataset;
  const EVERY_S = 2, LONGEST_S = 15, MOST_ROWS = 5000;
  let { cursor } = words;
  let paused = false, asking = false, over = false, wait = EVERY_S, timer = 0;
  let held = [], missed = false, unseen = 0;

  // Where a browser allows it.
  const remember = (name, value) => { try { localStorage[`logs-${name}`] = value; } catch {} };
  const remembered = (name) => { try { return localStorage[`logs-${name}`]; } catch {} };

  form.form.addEventListener("submit", () => remember("lines", form.value));
  const lines = remembered("lines");
  if (!location.search && /^\d{2,4}$/.test(lines || "") && lines !== form.value) {
    location.replace(`?lines=${lines}`);
    return;
  }

  const wrapped = (on) => {
    log.classList.toggle("wrap", on);
    wrap.ariaPressed = on;
  };
  if (!pause) return;
  wrapped(remembered("wrap") !== "no");
  wrap.hidden = false;
  wrap.addEventListener("click", () => {
    const bottom = atBottom(), on = !log.classList.contains("wrap");
    wrapped(on);
    remember("wrap", on ? "yes" : "no");
    if (bottom) toBottom();
  });

  const atBottom = () => log.scrollHeight - log.scrollTop - log.clientHeight < 24;
  const toBottom = () => { log.scrollTop = log.scrollHeight; tell(0); };
  const tell = (count) => {
    unseen = count;
    news.hidden = !count;
    news.textContent = count === 1 ? words.one : words.many.replace("{n}", count);
  };
  const say = (text) => { state.textContent = text; };

  const part = (tag, textContent, className = "") =>
    Object.assign(document.createElement(tag), { textContent, className });
  const add = (rows, bottom) => {
    find("nothing")?.remove();
    for (const { at, level, text, boot, day } of rows) {
      if (day) log.append(part("span", `${day}\n`, "mark"));
      if (boot) log.append(part("span", `${words.restarted.replace("{at}", boot)}\n`, "mark"));
      const kind = /^(emerg|alert|crit|error)$/.test(level) ? "err" : level === "warning" ? level : "";
      const row = part("span", "", kind);
      if (at) row.append(part("i", at), " ");
      if (level) row.append(part("b", level.padEnd(7)), " ");
      row.append(`${text}\n`);
      log.append(row);
    }
    while (log.childElementCount > MOST_ROWS) log.firstElementChild.remove();
    if (bottom) toBottom();
    else if (rows.length) tell(unseen + rows.length);
  };
  const show = (found) => {
    if (found.unit !== words.unit) {
      over = pause.hidden = true;
      return;
    }
    if (found.problem) throw new Error();
    cursor = found.cursor;
    missed ||= found.gap;
    held = (found.gap ? [] : held).concat(found.lines).slice(-MOST_ROWS);
    if (paused) tell(held.length);
    else release();
  };
  const release = () => {
    const bottom = atBottom();
    if (missed) log.replaceChildren(part("span", `${words.gap}\n`, "mark"));
    add(held, bottom);
    held = [];
    missed = false;
  };

  const ask = async () => {
    clearTimeout(timer);
    if (asking || over || document.hidden) return;
    asking = true;
    try {
      const answer = await fetch(`${words.tail}&cursor=${encodeURIComponent(cursor)}`, { signal: AbortSignal.timeout(LONGEST_S * 2000) });
      if (!answer.ok) throw new Error();
      if (answer.status !== 204) show(await answer.json());
      wait = EVERY_S;
      say(over ? words.gone : paused ? words.paused : words.live);
    } catch {
      wait = Math.min(wait * 2, LONGEST_S);
      say(words.again.replace("{n}", wait));
    }
    asking = false;
    if (!over && !document.hidden) timer = setTimeout(ask, wait * 1000);
  };

  const labels = [pause.textContent, pause.dataset.other];
  const setPaused = (on) => {
    paused = on;
    pause.textContent = labels[Number(on)];
    say(on ? words.paused : words.live);
    if (on) return;
    release();
    toBottom();
    ask();
  };
  pause.addEventListener("click", () => setPaused(!paused));
  news.addEventListener("click", () => {
    if (paused) setPaused(false);
    toBottom();
    log.focus();
  });
  log.addEventListener("scroll", () => { if (!paused && unseen && atBottom()) tell(0); });
  document.addEventListener("visibilitychange", () => { if (document.hidden) clearTimeout(timer); else ask(); });
  pause.hidden = false;
  say(words.live);
  toBottom();
  timer = setTimeout(ask, wait * 1000);
})();
