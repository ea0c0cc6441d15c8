// The search for a time zone on the page to choose another time. Without it, the form takes a name.

const page = JSON.parse(document.getElementById("page").textContent);
const input = document.getElementById("zone");
const { lang } = document.documentElement;
const locale = lang === "en" ? "en-GB" : `${lang}-u-nu-latn`;
const zone = input.value;

function isZone(name) {
  try {
    return Boolean(name) && Boolean(new Intl.DateTimeFormat("en", { timeZone: name }));
  } catch {
    return false;
  }
}

const zoneWords = (name) => name.replaceAll("_", " ");
const currentName = (name) => (isZone(page.zone_names[name]) ? page.zone_names[name] : name);

const clock = (instant, timeZone) =>
  new Intl.DateTimeFormat(locale, { timeZone, hour: "2-digit", minute: "2-digit" }).format(
    instant * 1000,
  );

function choose(name) {
  const query = new URLSearchParams(location.search);
  query.set("timezone", name);
  query.delete("day"); // a day of the other zone
  location.assign(`?${query}#times`);
}

async function openZones() {
  const { startZoneSearch } = await import(page.zones);
  const list = document.getElementById("zones");
  const read = () => zone;
  const options = { input, list, words: page.words, locale, zoneWords, currentName };
  startZoneSearch({ ...options, read, clock, choose })();
}

input.setAttribute("role", "combobox");
input.setAttribute("aria-expanded", "false");
input.setAttribute("aria-controls", "zones");
input.setAttribute("aria-autocomplete", "list");
input.value = zoneWords(zone);
input.addEventListener("focus", openZones, { once: true });
document.getElementById("change-zone").hidden = true;
