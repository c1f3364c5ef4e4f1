"use strict";
(() => {
  const controls = document.getElementById("controls");
  if (!controls) return;
  const buttons = [...controls.querySelectorAll("button")];
  const search = document.getElementById("search");
  const count = document.getElementById("count");
  const nothing = document.getElementById("nothing");
  const entries = [...document.querySelectorAll(".entry")];
  const texts = new Map();

  const textOf = (entry) => {
    if (!texts.has(entry)) {
      const parts = [...entry.querySelectorAll("[data-find]")].map((part) => part.textContent);
      texts.set(entry, parts.join("\n").toLowerCase());
    }
    return texts.get(entry);
  };

  const show = () => {
    const pressed = buttons.find((button) => button.getAttribute("aria-pressed") === "true");
    const kind = pressed.dataset.show;
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const entry of entries) {
      const fits = (!kind || entry.dataset.kinds.split(" ").includes(kind))
        && (!words.length || words.every((word) => textOf(entry).includes(word)));
      entry.hidden = !fits;
      shown += fits;
    }
    count.textContent = `${shown.toLocaleString("en")} of ${entries.length.toLocaleString("en")} issues`;
    nothing.hidden = shown > 0;
  };

  const press = (chosen) => {
    for (const button of buttons) button.setAttribute("aria-pressed", String(button === chosen));
    show();
  };

  for (const button of buttons) button.addEventListener("click", () => press(button));
  search.addEventListener("input", show);
  document.getElementById("reset").addEventListener("click", () => {
    search.value = "";
    press(buttons[0]);
    search.focus();
  });

  controls.hidden = false;
  press(buttons.find((button) => button.getAttribute("aria-pressed") === "true") || buttons[0]);
})();
