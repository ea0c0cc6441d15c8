// The page without a connection: today's list, as offline.js has stored it, until its time is over.
"use strict";
(() => {
  const LIST = "office-offline-list", DAY = 24 * 3600 * 1000;
  const part = (name) => document.getElementById(name);

  function show() {
    const list = JSON.parse(localStorage.getItem(LIST));
    const left = (list?.until ?? 0) - Date.now();
    const isKept = left > 0 && left < DAY; // longer: the device's clock was set back
    if (!isKept) localStorage.removeItem(LIST);
    part("none").hidden = isKept;
    part("list").hidden = !isKept;
    part("entries").replaceChildren(...(isKept ? list.entries.map(entry) : []));
    if (!isKept) return;
    part("day").textContent = list.day;
    part("note").textContent = `${list.as_of} ${list.zone}`;
    part("empty").hidden = list.entries.length > 0;
    setTimeout(show, left);
  }

  function entry({ time, names }) {
    const row = document.createElement("div");
    row.append(document.createElement("dt"), document.createElement("dd"));
    [row.children[0].textContent, row.children[1].textContent] = [time, names];
    return row;
  }

  addEventListener("pageshow", show);
  addEventListener("storage", show); // another tab has logged out
})();
