// The search for a time zone: current names with offset and time. Loaded at the first use.

const plain = (text) =>
  text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase().replace(/[_/,()]+/g, " ");

/** `UTC+02:00`. */
function offsetWords(instant, zone) {
  const options = { timeZone: zone, timeZoneName: "longOffset" };
  const parts = new Intl.DateTimeFormat("en-US", options).formatToParts(instant * 1000);
  const found = parts.find(({ type }) => type === "timeZoneName").value;
  return found === "GMT" ? "UTC+00:00" : found.replace("GMT", "UTC");
}

/** Every zone as {name, offset, minutes, text}: `text` is what a search looks through. */
function listZones({ read, locale, currentName }) {
  const now = Date.now() / 1000;
  const names = new Map(); // current name -> all names
  for (const name of [...(Intl.supportedValuesOf?.("timeZone") ?? []), read(), "UTC"]) {
    const current = currentName(name);
    names.set(current, `${names.get(current) ?? current} ${name}`);
  }
  const zones = [...names].map(([name, all]) => {
    const offset = offsetWords(now, name);
    const options = { timeZone: name, timeZoneName: "long" };
    const parts = new Intl.DateTimeFormat(locale, options).formatToParts(now * 1000);
    const long = parts.find(({ type }) => type === "timeZoneName")?.value ?? "";
    const [, sign, hours, rest] = /([+-])(\d+):(\d+)/.exec(offset);
    const minutes = (sign === "-" ? -1 : 1) * (Number(hours) * 60 + Number(rest));
    return { name, offset, minutes, text: plain(`${all} ${long} ${offset}`) };
  });
  return zones.sort((a, b) => a.minutes - b.minutes || (a.name < b.name ? -1 : 1));
}

const MAX_SHOWN = 60;

/**
 * Turn the input into a search. `choose(name)` is called with the zone chosen; `read` returns the
 * zone shown now, `clock(instant, zone)` a zone's time. Returns a function that opens the list.
 */
export function startZoneSearch(options) {
  const { input, list, words, read, clock, choose, zoneWords } = options;
  const zones = listZones(options);
  let shown = [];
  let active = -1;

  const isOpen = () => !list.hidden;

  function mark(place) {
    active = place;
    list.querySelector("[aria-selected=true]")?.setAttribute("aria-selected", "false");
    const option = list.children[place];
    if (!option || !shown.length) return input.removeAttribute("aria-activedescendant");
    option.setAttribute("aria-selected", "true");
    input.setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest" });
  }

  function drawOption({ name, offset }, place) {
    const option = document.createElement("li");
    option.id = `zone-${place}`;
    option.role = "option";
    option.setAttribute("aria-selected", "false");
    const now = words.zone_now.replace("{time}", clock(Date.now() / 1000, name));
    const hint = Object.assign(document.createElement("small"), { textContent: `${offset} · ${now}` });
    option.append(zoneWords(name), " ", hint);
    // Before the input loses the focus.
    option.addEventListener("pointerdown", (event) => event.preventDefault());
    option.addEventListener("click", () => take(name));
    return option;
  }

  function search() {
    const wanted = plain(input.value).split(/\s+/).filter(Boolean);
    shown = zones.filter(({ text }) => wanted.every((word) => text.includes(word)));
    draw(shown.slice(0, MAX_SHOWN), wanted.length && shown.length ? 0 : -1);
  }

  function draw(found, place) {
    shown = found;
    const none = Object.assign(document.createElement("li"), { textContent: words.zone_none });
    none.role = "option";
    none.setAttribute("aria-disabled", "true");
    none.setAttribute("aria-selected", "false");
    list.replaceChildren(...(found.length ? found.map(drawOption) : [none]));
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    mark(place);
  }

  function open() {
    input.select();
    const place = zones.findIndex(({ name }) => name === read());
    const first = Math.max(0, place - MAX_SHOWN / 2);
    draw(zones.slice(first, first + MAX_SHOWN), place < 0 ? -1 : place - first);
  }

  function close() {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
    input.value = zoneWords(read());
  }

  function take(name) {
    choose(name);
    close();
  }

  function onKey(event) {
    if (event.key === "Escape" && isOpen()) close();
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (!isOpen()) return open();
      const step = event.key === "ArrowDown" ? 1 : -1;
      mark(Math.max(0, Math.min(shown.length - 1, active + step)));
    } else if (event.key === "Enter" && isOpen() && shown[active]) take(shown[active].name);
    else return;
    event.preventDefault();
  }

  input.addEventListener("input", search);
  input.addEventListener("click", () => isOpen() || open());
  input.addEventListener("keydown", onKey);
  input.addEventListener("blur", close);
  return open;
}
