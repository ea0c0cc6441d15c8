// Today's list on this device, for times without a connection: kept for the account that switched it
// on, until its session or the day ends. offline_page.js shows it.
"use strict";
(() => {
  const ACCOUNT = "office-offline", LIST = "office-offline-list", CACHE = "office-offline";
  const DAY = 24 * 3600 * 1000;
  // "" on the page of the log-in: whoever is there has logged out, or the session has ended.
  const { account } = document.querySelector("link[rel=manifest]").dataset;
  const box = document.getElementById("office-offline");
  const isOn = () => localStorage.getItem(ACCOUNT) === account;

  if (box?.checked) localStorage.setItem(ACCOUNT, account); // the click that has loaded this script
  dropInTime();
  document.getElementById("logout-form")?.addEventListener("submit", drop);
  if (box) {
    box.checked = isOn();
    box.addEventListener("change", () => {
      if (box.checked) localStorage.setItem(ACCOUNT, account);
      else localStorage.removeItem(ACCOUNT);
      turn();
    });
    if (isOn()) turn();
  }

  function turn() {
    // What fails, such as a lost connection, is done again when Today is opened.
    (isOn() ? keep() : forget()).catch(() => {});
  }

  async function keep() {
    const answer = await fetch(box.dataset.list, { redirect: "manual" });
    if (!answer.ok) return drop(); // logged out, or without the permission
    const { pending, seconds, ...list } = (await answer.json()).data;
    const cache = await caches.open(CACHE);
    await cache.addAll(box.dataset.files.split(" ")); // anew: in the language of the list
    await navigator.serviceWorker.register(box.dataset.worker);
    if (!isOn()) return forget(); // switched off meanwhile
    localStorage.setItem(LIST, JSON.stringify({ ...list, until: Date.now() + 1000 * seconds }));
    dropInTime();
    await navigator.setAppBadge?.(pending);
  }

  async function forget() {
    drop();
    await caches.delete(CACHE);
    await (await navigator.serviceWorker.getRegistration())?.unregister();
  }

  function drop() {
    localStorage.removeItem(LIST);
    navigator.clearAppBadge?.().catch(() => {});
  }

  function dropInTime() {
    const list = JSON.parse(localStorage.getItem(LIST));
    const left = isOn() && list ? list.until - Date.now() : 0;
    if (left > 0 && left < DAY) setTimeout(dropInTime, left); // longer: the clock was set back
    else drop();
  }
})();
