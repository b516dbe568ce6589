"use strict";
// The chat: an answer is shown as it comes, and then as the device has rendered it.
(() => {
  const [form, field, messages, error, state, send, stop, end] =
    ["chat", "message", "messages", "message-error", "state", "send", "stop", "end"].map(find);
  const words = form.dataset;
  let request;

  // Who reads the end goes on reading it; who has scrolled up stays there.
  const change = (make) => {
    const follows = end.getBoundingClientRect().top < innerHeight + 60;
    make();
    if (follows) end.scrollIntoView({ block: "nearest" });
  };
  const say = (text) => { if (state.textContent !== text) state.textContent = text; };
  const fits = () => {
    const kib = new Blob([field.value.trim()]).size / 1024;
    if (stop.hidden) say(kib > 28 ? words.room.replace("{n}", Math.ceil(kib)) : "");
    return kib && kib <= 32;
  };
  const work = (on) => {
    if (stop.matches(":focus")) field.focus();
    form.toggleAttribute("data-sent", on);
    send.hidden = on;
    stop.hidden = !on;
    say(on ? words.writing : "");
  };
  const look = async () => {
    if (document.hidden) return;
    const answer = await fetch("/chat/gateway").catch(() => ({}));
    if (answer.ok) find("gateway").innerHTML = await answer.text();
  };

  form.addEventListener("submit", async (event) => {
    if (event.defaultPrevented) return;
    event.preventDefault();
    work(false);
    field.focus({ preventScroll: true });
    if (!fits()) return;
    const message = field.value;
    const { signal } = request = new AbortController();
    const draft = find("draft").content.firstElementChild.cloneNode(true);
    const [mine, its] = draft.querySelectorAll(".said");
    mine.textContent = message;
    error.textContent = field.value = "";
    messages.append(draft);
    work(true);
    end.scrollIntoView({ block: "nearest" });
    let status = 0, html;
    try {
      const answer = await fetch(form.action, {
        method: "POST", body: new URLSearchParams({ message }), headers: { Accept: "text/x-chat-stream" }, signal,
      });
      ({ status } = answer);
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let part; status === 200 && !(part = await reader.read()).done;) {
        // The text, then one U+0000, then all messages.
        const [more, begun] = html === undefined ? part.value.split("\0") : ["", html + part.value];
        change(() => its.append(more));
        html = begun;
      }
    } catch { html = undefined; }
    work(false);
    if (html) {
      change(() => { messages.innerHTML = html; });
      find("heard").textContent = find("latest").textContent;
      setTimeout(() => { find("heard").textContent = ""; }, 1000);
    } else {
      if (status === 200) draft.querySelector(".stopped").hidden = false;
      else draft.remove();
      if (!signal.aborted) error.textContent = (words[`on${status}`] ?? words.other).replace("{n}", status);
    }
    if (status !== 200 || find("latest")?.matches(".failed")) field.value = message + (field.value && `\n\n${field.value}`);
    look();
  });
  stop.addEventListener("click", () => request.abort());
  field.addEventListener("input", fits);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  find("clear").addEventListener("click", (event) => {
    event.preventDefault();
    find("ask").showModal();
  });
  setInterval(look, 15000);
  find("keys").hidden = false;
  if (!location.hash) (document.querySelector(".flash") ?? end).scrollIntoView({ block: "nearest" });
})();
