"use strict";
// What every page can do better with a script: nothing here is needed to use it.
// These two are for the other scripts as well.
const find = (id) => document.getElementById(id);
const parse = async (answer) => new DOMParser().parseFromString(await answer.text(), "text/html");
(() => {
  const shown = (button, text) => { button.textContent = text; };
  for (const button of document.querySelectorAll("[data-reveal]")) {
    const field = find(button.dataset.reveal);
    const word = button.firstElementChild;
    const words = [word.textContent, button.dataset.hide];
    button.hidden = false;
    const reveal = (yes) => {
      field.type = yes ? "text" : "password";
      shown(word, words[Number(yes)]);
    };
    button.addEventListener("click", () => reveal(field.type === "password"));
    field.form?.addEventListener("submit", () => reveal(false));
  }
  if (navigator.clipboard) {
    for (const button of document.querySelectorAll("[data-copy]")) {
      const before = button.textContent;
      button.hidden = false;
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(find(button.dataset.copy).textContent);
        shown(button, "✔");
        setTimeout(shown, 1500, button, before);
      });
    }
  }
  // A second click on a button that is at work would send the form twice.
  const mark = (form, sent) => {
    form.toggleAttribute("data-sent", sent);
    const { working } = form.dataset;
    if (working) form.querySelector("[role=status]").textContent = sent ? working : "";
  };
  addEventListener("submit", (event) => {
    const { target } = event;
    if (target.matches("[data-sent]")) event.preventDefault();
    if (target.method === "post") mark(target, true);
  }, true);
  addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("[data-sent]")) mark(form, false);
  });
  document.querySelector(".error > [tabindex]")?.focus();
  // An app that can be installed has an offline page, which its worker keeps.
  if (document.querySelector("link[rel=manifest]")) {
    addEventListener("load", () => navigator.serviceWorker?.register("/sw.js").catch(() => {}));
  }
})();
