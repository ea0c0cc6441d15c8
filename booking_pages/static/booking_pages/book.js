// A booking page: shows the free times in the visitor's zone and books by the public API.
// All that it needs to know stands in the page; every value goes out as text, never as HTML.
// The address holds the state: ?date=2026-12-01, &time=2026-12-01T09:00:00Z, &timezone=Asia/Kolkata,
// and ?week=2026-11-30, the first of the weeks that are shown.

const page = JSON.parse(document.getElementById("page").textContent);
const words = page.words;
const by = (id) => document.getElementById(id);
const { lang } = document.documentElement;
// Western digits in every language, as on the server.
const locale = lang === "en" ? "en-GB" : `${lang}-u-nu-latn`;
const dateLocale = lang === "en" ? page.english_dates : locale;

const EXTEND_BEFORE = 20; // seconds before a hold lapses
const PATIENCE = 20; // seconds for an answer
const DAY = 86400;
const SHOWN_DAYS = 35; // five weeks
const NEXT_CODE = 30; // seconds until another code can be asked for
const NARROW = matchMedia("(max-width: 819px)"); // as in book.css: one step at a time

let zone = page.zone;
let clock = null; // h12 or h23
let slots = unpackSlots(page.offer.slots); // [start, end] in epoch seconds, sorted
let shownFrom = null; // `2026-11-23`, the first date of the weeks that are shown
let day = null; // the local date that is shown
let chosen = null;
let email = ""; // of the booking that was just made
let hold = null; // {id, ends: a timer}
let holding = Promise.resolve();
let isBooking = false;
let sent = { text: null, key: null };
let needsChallenge = page.needs_challenge;
let solving = null; // a promise of a solved challenge
let reservation = page.reservation; // that waits for the code of an e-mail
let unverified = null; // its slot, where this page has chosen it

/** Slots are sent in runs: how many, the distance of each from the start before, its length. */
function unpackSlots(packed) {
  let start = 0;
  return packed.flatMap(([count, step, length, ...rest]) => Array.from({ length: count }, () => {
    start += step;
    return [start, start + length, ...rest];
  }));
}

// --- Words and times
const fill = (sentence, values) =>
  sentence.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);

const formats = new Map();

function format(instant, place, options, tag = locale) {
  const key = tag + place + JSON.stringify(options);
  if (!formats.has(key)) {
    formats.set(key, new Intl.DateTimeFormat(tag, { timeZone: place, ...options }));
  }
  return formats.get(key).format(instant * 1000);
}

const numbers = new Map();

/** `2026-11-23`, the date of an instant in the zone. */
function dateOf(instant) {
  if (!numbers.has(zone)) {
    const options = { timeZone: zone, year: "numeric", month: "2-digit", day: "2-digit" };
    numbers.set(zone, new Intl.DateTimeFormat("en-US", options));
  }
  const parts = numbers.get(zone).formatToParts(instant * 1000);
  const part = Object.fromEntries(parts.map(({ type, value }) => [type, value]));
  return `${part.year}-${part.month}-${part.day}`;
}

function offsetWords(instant, place) {
  const options = { timeZone: place, timeZoneName: "longOffset" };
  const parts = new Intl.DateTimeFormat("en-US", options).formatToParts(instant * 1000);
  const found = parts.find(({ type }) => type === "timeZoneName").value;
  return found === "GMT" ? "UTC+00:00" : found.replace("GMT", "UTC");
}

function offsetOf(instant, place) {
  const [, sign, hours, minutes] = /([+-])(\d+):(\d+)/.exec(offsetWords(instant, place));
  return (sign === "-" ? -60 : 60) * (Number(hours) * 60 + Number(minutes));
}

/** Whether the zone's clock shows the reading of this instant twice. */
function isAmbiguous(instant, place) {
  const own = offsetOf(instant, place);
  return [-3 * 3600, 3 * 3600].some((step) => {
    const other = offsetOf(instant + step, place);
    return other !== own && offsetOf(instant + own - other, place) === other;
  });
}

function clockWords(instant, place) {
  const usual = { timeStyle: "short" }; // 9:00 or 09:00, as in e-mails
  const shape = clock === "h12" ? { hour: "numeric", minute: "2-digit" } : usual;
  const given = format(instant, place, { ...shape, hourCycle: clock });
  const reading = given.replace(/\s/g, "\u00a0"); // no line ends between the time and am or pm
  return isAmbiguous(instant, place) ? `${reading} ${offsetWords(instant, place)}` : reading;
}

const DATE = { weekday: "long", day: "numeric", month: "long", year: "numeric" };
const dayWords = (instant, place) => format(instant, place, DATE, dateLocale);

const minuteWords = (count) =>
  new Intl.NumberFormat(locale, { style: "unit", unit: "minute", unitDisplay: "long" }).format(count);

const seatWords = (count) => (count > 1 ? fill(words.seats_left, { count }) : words.seat_left);

const timeWords = ([start, end]) =>
  page.shows_ends ? `${clockWords(start, zone)} – ${clockWords(end, zone)}` : clockWords(start, zone);

const slotWords = (slot, place = zone) =>
  fill(words.chosen, {
    day: dayWords(slot[0], place),
    time: `${clockWords(slot[0], place)} – ${clockWords(slot[1], place)}`,
  });

const zoneWords = (name) => name.replaceAll("_", " ");

function isZone(name) {
  try {
    return Boolean(name) && Boolean(new Intl.DateTimeFormat("en", { timeZone: name }));
  } catch {
    return false;
  }
}

/** Browsers list some zones by their old names. The current one, where this browser knows it. */
const currentName = (name) => (isZone(page.zone_names[name]) ? page.zone_names[name] : name);

const say = (sentence) => {
  by("status").textContent = sentence;
};

function make(tag, text, values = {}) {
  const element = Object.assign(document.createElement(tag), values);
  element.textContent = text;
  return element;
}

function makeButton(text, name, act) {
  const button = make("button", text, { type: "button", className: name });
  button.addEventListener("click", act);
  return button;
}

const listed = (element) => {
  const item = document.createElement("li");
  item.append(element);
  return item;
};

// --- The page around this one
const isFramed = window.parent !== window;

/** The origin of the page around this one, by which embed.js has named the frame; null without. */
function findHost() {
  const [, origin] = /^booking-embed (https?:\/\/[^\s/]+)$/.exec(window.name) ?? [];
  const allowed = page.embed_origins;
  if (!isFramed || !origin || !URL.canParse(origin)) return null;
  return !allowed || origin === location.origin || allowed.includes(origin) ? origin : null;
}

const host = findHost();

/** Browsers deliver the message to a page of that origin alone. */
const postToEmbeddingPage = (event, values = {}) => {
  if (host) window.parent.postMessage({ booking: event, ...values }, host);
};

function startEmbedded() {
  document.documentElement.classList.add("embedded");
  const { body } = document;
  new ResizeObserver(() => {
    postToEmbeddingPage("height", { height: Math.ceil(body.getBoundingClientRect().height) });
  }).observe(body);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !event.defaultPrevented) postToEmbeddingPage("close");
  });
}

/** Other pages of the service can't be framed. */
function leaveFrame({ target }) {
  const link = target.closest("a[href]");
  if (!link || link.pathname === location.pathname || link.hasAttribute("download")) return;
  link.target = "_blank";
  link.rel = "noopener";
}

// --- The API
/** The answer as {status, code, body, wait}; status 0 where none came. */
async function call(method, path, body, headers = {}) {
  const control = new AbortController();
  const timer = setTimeout(() => control.abort(), PATIENCE * 1000);
  try {
    const response = await fetch(`/v2/${path}`, {
      method,
      headers: {
        Authorization: `Basic ${btoa(`:${page.key}`)}`,
        "Content-Type": "application/json",
        ...headers,
      },
      body,
      credentials: "omit",
      cache: "no-store",
      keepalive: method === "DELETE", // goes out while the page is being left
      signal: control.signal,
    });
    const text = await response.text();
    const answer = text ? JSON.parse(text) : {};
    const wait = Number(response.headers.get("Retry-After")) || 1;
    return { status: response.status, code: answer.code ?? "", body: answer, wait };
  } catch {
    return { status: 0, code: "", body: {}, wait: 1 };
  } finally {
    clearTimeout(timer);
  }
}

// --- Proof of work
/** A solved challenge, or null: found beside the page, which goes on meanwhile. */
async function solve() {
  const answer = await call("GET", "challenge");
  if (answer.status !== 200) return null;
  const worker = new Worker(page.solver);
  const solved = await new Promise((resolve) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = () => resolve(null);
    worker.postMessage(answer.body.data);
  });
  worker.terminate();
  return solved;
}

/** The solved challenge of the next request; the one after it is begun at once. */
async function takeSolved() {
  const solved = await (solving ?? solve());
  solving = solve();
  return solved;
}

const texts = new Map(); // a request's content -> its text, the same each time that it is sent

async function textOf(values) {
  const content = JSON.stringify(values);
  if (!needsChallenge) return content;
  if (!texts.has(content)) {
    texts.set(content, JSON.stringify({ ...values, challenge: await takeSolved() }));
  }
  return texts.get(content);
}

/** A request that may need a challenge: once more with one above a limit, or where it has expired. */
async function post(path, values, { isOnce = false } = {}) {
  for (const isLast of [false, true]) {
    const text = await textOf(values);
    const headers = isOnce ? { "Idempotency-Key": keyOf(text) } : {};
    const answer = await call("POST", path, text, headers);
    if (isLast || !answer.body.errors?.challenge) return answer;
    needsChallenge = true;
    texts.delete(JSON.stringify(values));
  }
}

const iso = (instant) => new Date(instant * 1000).toISOString().replace(".000", "");
const span = ({ start, end }) => [Date.parse(start) / 1000, Date.parse(end) / 1000];

/** The free times of a range, or null where they can't be had. */
async function findSlots(from, to) {
  if (page.is_group) return findSessions(from, to);
  const query = { ...offerQuery(), from: iso(from), to: iso(to) };
  const path = page.shows_remaining ? "availability?include=remaining" : "availability";
  const answer = await call("POST", path, JSON.stringify(query));
  const slotOf = (slot) => (slot.remaining ? [...span(slot), null, slot.remaining] : span(slot));
  return answer.status === 200 ? answer.body.data.map(slotOf) : null;
}

const howMany = () => ({
  ...(page.quantity && { quantity: page.quantity }),
  ...(page.party_size && { party_size: page.party_size }),
});

/** The project, and the person, the length and the numbers where they were chosen. */
const offerQuery = () => ({
  project_id: page.project,
  ...howMany(),
  ...(page.resource && { resources: chosenByName() ?? [page.resource] }),
  ...(page.length && { length: page.length }),
});
const placeOfOne = () => ({
  project_id: page.project,
  ...howMany(),
  ...(page.resource &&
    (page.requirement ? { resources: chosenByName() } : { resource_id: page.resource })),
});
/** The chosen person by the name of the requirement; null in a project without requirements. */
const chosenByName = () => page.requirement && { [page.requirement]: page.resource };

/** The groups with free seats: [start, end, id, free seats, names of places]. */
async function findSessions(from, to) {
  const query = new URLSearchParams({
    search: `project.id:${page.project}`,
    start: iso(from),
    end: iso(to),
    limit: 1000,
  });
  const answer = await call("GET", `bookings/groups?${query}`);
  if (answer.status !== 200) return null;
  return answer.body.data
    .map(({ id, attributes: { event_info: event, group_booking: group } }) => [
      ...span(event),
      id,
      group.max_seats - group.current_seats,
      group.places ? Object.keys(group.places) : null,
    ])
    .filter(([start]) => start >= from && start < to);
}

// --- What the browser keeps
// A framed page may have no storage.
function recall(name) {
  try {
    return JSON.parse(sessionStorage.getItem(`${name}:${page.project}`));
  } catch {
    return null;
  }
}

function remember(name, value) {
  try {
    sessionStorage.setItem(`${name}:${page.project}`, JSON.stringify(value));
  } catch {
    // It is kept as long as the page is open.
  }
}

// --- The address
/** The address with other values; null removes one. */
function addressWith(values) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(values)) {
    if (value === null) query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString().replaceAll("%3A", ":").replaceAll("%2F", "/");
  return location.pathname + (text && `?${text}`);
}

const NOWHERE = Object.fromEntries(
  ["day", "week", "month", "date", "time", "session", "reservation"].map((name) => [name, null]),
);
const goTo = (values) => history.pushState(null, "", addressWith({ ...NOWHERE, ...values }));
const nameHere = (values) => history.replaceState(null, "", addressWith({ ...NOWHERE, ...values }));

/** A link to another length or person keeps the day and zone that the address has by now. */
function keepDay({ target }) {
  const link = target.closest(".choice a");
  if (!link) return;
  const [query, now] = [link, location].map(({ search }) => new URLSearchParams(search));
  for (const name of ["date", "day", "week", "month", "timezone"]) {
    if (now.has(name)) query.set(name, now.get(name));
    else query.delete(name);
  }
  link.search = query;
}

/** Show what the address says: on load, and after Back and Forward. */
async function followAddress() {
  const query = new URLSearchParams(location.search);
  const named = query.get("timezone");
  zone = currentName(isZone(named) ? named : ownZone());
  by("zone").value = zoneWords(zone);
  if (history.state?.booking) return showDone(history.state);
  const kept = recall("hold"); // before this page forgets it
  endVerification();
  const start = Date.parse(query.get("time")) / 1000;
  const date = start ? dateOf(start) : readDate(query.get("date") ?? query.get("day"));
  const now = Date.now() / 1000;
  const isPast = start ? start < now : date !== null && date < dateOf(now);
  const week = readDate(query.get("week") ?? `${query.get("month")}-01`);
  const hasDay = isOffered(date);
  day = [date, week].find(isOffered) ?? null;
  shownFrom = hasDay ? weeksWith(date) : weekOf(day ?? firstDate());
  showStep(hasDay ? "times" : "days");
  if (!isCovered(shownFrom)) await cover(shownFrom);
  drawWeeks();
  if (isPast) showPast();
  else if (start) openAddressedTime(start, kept);
  else if (!day) await offerNextDate();
  return null;
}

const isOffered = (date) =>
  date !== null && date >= dateOf(page.offer.earliest) && noon(date) - DAY < page.offer.horizon;

const readDate = (text) => (/^\d{4}-\d\d-\d\d$/.test(text) && Date.parse(text) ? text : null);

/** A link to a time of the past: the next free one instead. */
function showPast() {
  nameHere({});
  by("soonest").replaceChildren(); // it stands in the notice
  const slot = slots.find(([start]) => start > Date.now() / 1000);
  if (slot) showNotice(words.past, slotList([slot]));
}

/** The form for the time in the address. After a reload the time may be held by this page. */
function openAddressedTime(start, kept) {
  const held = kept?.slot[0] === start ? kept : null;
  const session = new URLSearchParams(location.search).get("session");
  const isAddressed = ([begin, , id]) => begin === start && (!page.is_group || id === session);
  const slot = slots.find(isAddressed) ?? held?.slot;
  if (held) holding = holding.then(() => release(held.id));
  if (slot) return openForm(slot);
  nameHere({ date: day });
  return showNotice(`${words.taken} ${words.nothing_instead}`);
}

/** Back and Forward; the free times are asked for again, as this page's own hold has ended. */
async function followBack() {
  const isLeft = by("booking").dataset.step === "form";
  document.title = pageTitle;
  clearNotice();
  await followAddress();
  if (!isLeft || chosen) return;
  await holding;
  await cover(shownFrom);
  drawWeeks();
  by("choosing-title").focus();
}

// --- Choosing
const covered = new Set(); // first dates of the weeks of which all free times are known

const noon = (date) => Date.parse(`${date}T12:00:00Z`) / 1000;
const addDays = (date, count) =>
  new Date((noon(date) + count * DAY) * 1000).toISOString().slice(0, 10);
const lastShown = (from) => addDays(from, SHOWN_DAYS - 1);

/** The first date of the week, where the visitor's week begins. */
function weekOf(date) {
  const region = new Intl.Locale(navigator.language);
  const first = (region.getWeekInfo?.() ?? region.weekInfo)?.firstDay ?? 1; // 1: Monday
  return addDays(date, -((new Date(noon(date) * 1000).getUTCDay() - first + 7) % 7));
}

/** The first date with a free time; the first that may have one where the page doesn't know. */
function firstDate() {
  const { earliest, since } = page.offer;
  return dateOf(since <= earliest && slots.length ? slots[0][0] : earliest);
}

/** The first date of the weeks that show this date: of the first weeks, where they have it. */
function weeksWith(date) {
  const first = weekOf(firstDate());
  return first <= date && date <= lastShown(first) ? first : weekOf(date);
}

/** From a day before the weeks to a day after them: they are those of the visitor's zone. */
function spanOf(from) {
  const midnight = noon(from) - DAY / 2;
  return [midnight - DAY, midnight + (SHOWN_DAYS + 1) * DAY];
}

function isCovered(start) {
  const [from, to] = spanOf(start);
  const { since, earliest, until, horizon } = page.offer;
  const isKnown = Math.max(from, earliest) >= since && Math.min(to, horizon) <= until;
  return covered.has(start) || isKnown;
}

/** Ask for the free times of the weeks; false where they can't be had. */
async function cover(start) {
  const { earliest, horizon } = page.offer;
  const [from, to] = spanOf(start);
  const span = [Math.max(from, earliest, Math.floor(Date.now() / 1000)), Math.min(to, horizon)];
  if (span[0] >= span[1]) return true;
  say(words.loading);
  by("days").setAttribute("aria-busy", "true");
  const found = await findSlots(...span);
  by("days").removeAttribute("aria-busy");
  if (found === null) {
    say(words.offline);
    return false;
  }
  covered.add(start);
  const others = slots.filter(([start]) => start < span[0] || start >= span[1]);
  slots = [...others, ...found].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  say("");
  return true;
}

/** Local date -> its slots, of the weeks that are shown. */
function daysOf() {
  const days = new Map();
  const [from, to] = spanOf(shownFrom);
  for (const slot of slots) {
    if (slot[0] < from || slot[0] >= to) continue;
    const date = dateOf(slot[0]);
    if (date < shownFrom || date > lastShown(shownFrom)) continue;
    if (!days.has(date)) days.set(date, []);
    days.get(date).push(slot);
  }
  return days;
}

const dateWords = (date) => dayWords(noon(date), "UTC");

/** `November – December 2026`, of the dates that are shown and on which something can be free. */
function monthWords() {
  const style = { timeZone: "UTC", month: "long", year: "numeric" };
  const { earliest, horizon } = page.offer;
  const first = [shownFrom, dateOf(earliest)].sort()[1];
  const last = [lastShown(shownFrom), dateOf(horizon - 1)].sort()[0];
  const dates = [first, first > last ? first : last].map((date) => noon(date) * 1000);
  return new Intl.DateTimeFormat(locale, style).formatRange(...dates).replace(/\u2009/g, " ");
}

function drawDay(date, days) {
  const cell = document.createElement("td");
  const number = Number(date.slice(8));
  const short = make("span", number);
  if (number === 1) short.prepend(make("small", format(noon(date), "UTC", { month: "short" })));
  if (!days.has(date)) {
    short.className = "day";
    cell.append(short);
    return cell;
  }
  const button = makeButton("", "day", () => showDay(date));
  short.setAttribute("aria-hidden", "true");
  button.append(short, make("span", dateWords(date), { className: "unseen" }));
  button.dataset.date = date;
  cell.append(button);
  return cell;
}

function drawWeeks() {
  const days = daysOf();
  if (!days.has(day)) {
    const dates = [...days.keys()];
    day = dates.find((date) => date >= day) ?? dates[0] ?? null;
  }
  const weeks = Array.from({ length: SHOWN_DAYS / 7 }, (_, week) =>
    Array.from({ length: 7 }, (_, place) => addDays(shownFrom, 7 * week + place)),
  );
  const names = weeks[0].map((date) => {
    const name = make("th", format(noon(date), "UTC", { weekday: "short" }));
    name.scope = "col";
    return name;
  });
  by("days").tHead.rows[0].replaceChildren(...names);
  const rows = weeks.map((week) => {
    const row = document.createElement("tr");
    row.append(...week.map((date) => drawDay(date, days)));
    return row;
  });
  by("days").tBodies[0].replaceChildren(...rows);
  by("month").textContent = monthWords();
  showArrow("earlier", weekOf(firstDate()) < shownFrom);
  showArrow("later", noon(weeksAfter("later")) - DAY / 2 < page.offer.horizon);
  drawSoonest();
  drawTimes();
}

function weeksAfter(arrow) {
  if (arrow === "later") return addDays(shownFrom, SHOWN_DAYS);
  const [before, first] = [addDays(shownFrom, -SHOWN_DAYS), weekOf(firstDate())];
  return before > first ? before : first;
}

function showArrow(id, isOn) {
  by(id).hidden = !isOn;
  by(id).href = addressWith({ ...NOWHERE, week: weeksAfter(id) });
}

/** On a narrow screen the times are a step of their own: the first one stands above the days. */
function drawSoonest() {
  const isKnown = page.offer.since <= page.offer.earliest; // no earlier time was left out
  const slot = isKnown && slots.find(([start]) => start > Date.now() / 1000);
  const text = slot && fill(words.soonest, { day: dayWords(slot[0], zone), time: timeWords(slot) });
  by("soonest").replaceChildren(...(slot ? [makeButton(text, "quiet", () => choose(slot))] : []));
}

function drawTimes() {
  const shown = (day && daysOf().get(day)) ?? [];
  for (const button of by("days").querySelectorAll("button")) {
    const isShown = button.dataset.date === day;
    button.setAttribute("aria-pressed", String(isShown));
    button.tabIndex = isShown ? 0 : -1; // arrow keys lead to the others
  }
  by("day").textContent = shown.length ? dayWords(shown[0][0], zone) : "";
  const items = shown.map((slot) => {
    const text = timeWords(slot);
    const button = makeButton(text, "time", () => choose(slot));
    if (page.is_group) button.append(" ", make("small", seatWords(slot[3])));
    else if (slot[3]) button.append(" ", make("small", fill(words.left, { count: slot[3] })));
    if (text.includes("UTC")) button.classList.add("offset");
    if (page.shows_ends) button.classList.add("range");
    return listed(button);
  });
  by("times").replaceChildren(...items);
  const none = make("p", words.none);
  by("none").replaceChildren(...(shown.length ? [] : [none]));
  return shown.length;
}

function showDay(date) {
  day = date;
  const count = drawTimes();
  if (NARROW.matches && by("booking").dataset.step === "days") goTo({ date });
  else nameHere({ date });
  showStep("times");
  by("day").focus({ preventScroll: !NARROW.matches });
  say(fill(words.times, { count }));
}

/** Other weeks, with the times of their first free day. */
async function showWeeks(from) {
  shownFrom = from;
  day = null;
  nameHere({ week: from });
  drawWeeks();
  if (!isCovered(from)) {
    const isThere = await cover(from);
    if (shownFrom !== from) return;
    drawWeeks();
    if (!isThere) return showNotice(words.offline);
  }
  clearNotice();
  say(by("month").textContent);
  if (!day) await offerNextDate();
}

/** The first date with a free time after these weeks. */
async function findNextDate(shown) {
  const [, from] = spanOf(shown);
  const to = Math.min(page.offer.horizon, from + (page.search_days - 2) * DAY);
  if (from >= to) return null;
  const last = lastShown(shown);
  const known = slots.find(([start]) => start >= from - 2 * DAY && dateOf(start) > last);
  if (known || page.is_group) return known && dateOf(known[0]);
  const query = { ...offerQuery(), from: iso(from - 2 * DAY), to: iso(to), output_timezone: zone };
  const answer = await call("POST", "availability/dates", JSON.stringify(query));
  return answer.body.data?.map(({ date }) => date).find((date) => date > last);
}

/** In weeks without a free time: the way to the next one. */
async function offerNextDate() {
  const shown = shownFrom;
  const next = await findNextDate(shown);
  if (shownFrom !== shown || !next) return;
  const open = async () => {
    await showWeeks(weekOf(next));
    focusDay();
  };
  by("none").append(makeButton(fill(words.next_free, { day: dateWords(next) }), "quiet", open));
  say(by("none").textContent);
}

const focusDay = () =>
  (document.querySelector("#days [aria-pressed=true], #none button") ?? by("choosing-title")).focus();

/** By a key to the weeks before or after; at an end it says so. */
async function turnByKey(arrow, isEnd) {
  if (by(arrow).hidden) return say(isEnd);
  await showWeeks(weeksAfter(arrow));
  return focusDay();
}

const KEYS = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 7, ArrowUp: -7 };

/** Arrow keys in the weeks: the next free day in that direction. */
function moveByKey(event) {
  const from = event.target.dataset?.date;
  if (event.key === "PageDown") turnByKey("later", words.is_last);
  else if (event.key === "PageUp") turnByKey("earlier", words.is_first);
  else if (KEYS[event.key] && from) {
    const isRtl = document.documentElement.dir === "rtl" && Math.abs(KEYS[event.key]) === 1;
    const step = isRtl ? -KEYS[event.key] : KEYS[event.key];
    const target = addDays(from, step);
    const dates = [...daysOf().keys()];
    const next = step > 0 ? dates.find((date) => date >= target) : dates.findLast((date) => date <= target);
    if (next) by("days").querySelector(`[data-date="${next}"]`).focus();
  } else return;
  event.preventDefault();
}

function showStep(step) {
  by("booking").dataset.step = step;
  by("choosing").hidden = step === "form" || step === "verify" || step === "done";
  by("form").hidden = step !== "form";
  if (by("verify")) by("verify").hidden = step !== "verify";
  by("done").hidden = step !== "done";
  by("back").hidden = step !== "times";
  if (by("skip")) by("skip").hidden = by("choosing").hidden;
  if (step !== "form") {
    forgetHold();
    chosen = null;
  }
}

/** Back to all times, as they are now. */
async function showAll() {
  endVerification();
  clearNotice();
  nameHere({ date: day });
  showStep("times");
  by("choosing-title").focus();
  await holding;
  await cover(shownFrom);
  drawWeeks();
}

function choose(slot) {
  forgetHold();
  const date = dateOf(slot[0]);
  goTo({ date, time: iso(slot[0]), session: page.is_group ? slot[2] : null });
  day = date;
  shownFrom = weeksWith(date);
  openForm(slot);
}

function drawSeats(left) {
  const most = Math.max(1, Math.min(left, page.max_seats));
  const options = Array.from({ length: most }, (_, place) => make("option", String(place + 1)));
  by("seats").replaceChildren(...options);
  by("seats-field").hidden = most === 1;
}

/** Where the seats are, in a group that has places. */
function drawPlaces(places) {
  by("place").replaceChildren(...(places ?? []).map((name) => make("option", name)));
  by("place-field").hidden = !places;
}

function openForm(slot) {
  chosen = slot;
  clearNotice();
  showStep("form");
  const number = page.quantity ? `${page.quantity} × ` : "";
  by("chosen").textContent = number + slotWords(slot);
  by("chosen-zone").textContent = zoneWords(zone);
  by("held").textContent = "";
  if (page.is_group) {
    drawSeats(slot[3]);
    drawPlaces(slot[4]);
  }
  by("form-title").focus();
  loadDone();
  if (needsChallenge) solving ??= solve();
  if (page.hold) holding = holding.then(() => keep(slot));
}

// --- Holding
/** Keep the time while the form is filled in; where that can't be, it is booked without. */
async function keep(slot) {
  if (chosen !== slot) return null;
  const wanted = { ...placeOfOne(), start: iso(slot[0]), end: iso(slot[1]) };
  const answer = await post("bookings/reserve", wanted);
  if (answer.status === 201) {
    const id = answer.body.data.reservation_id;
    if (chosen !== slot) return release(id);
    hold = { id, timer: setTimeout(extend, (page.hold - EXTEND_BEFORE) * 1000, id) };
    remember("hold", { id, slot });
    by("held").textContent = fill(words.held, { minutes: minuteWords(Math.floor(page.hold / 60)) });
  } else if (chosen === slot && ["slot_taken", "not_available"].includes(answer.code)) {
    showTaken(answer);
  }
  return null;
}

/** Once more as long, which is all that a page may ask for. */
async function extend(id) {
  const answer = await call("PUT", "bookings/reserve/extend", JSON.stringify({ reservation_id: id }));
  if (hold?.id !== id) return;
  const left = answer.status === 200 ? page.hold : EXTEND_BEFORE;
  hold.timer = setTimeout(() => {
    if (hold?.id !== id || isBooking) return;
    hold = null;
    by("held").textContent = words.lapsed;
    say(words.lapsed);
  }, left * 1000);
}

const release = (id) => call("DELETE", `bookings/reserve/${id}`);

function giveBack() {
  if (!hold) return;
  clearTimeout(hold.timer);
  holding = release(hold.id);
  hold = null;
}

/** A page that is being left can't wait for the answer: after a reload it asks again. */
function forgetHold() {
  giveBack();
  remember("hold", null);
}

// --- Saying what went wrong
const clearNotice = () => by("notice").replaceChildren();

function showNotice(sentence, ...more) {
  by("notice").replaceChildren(make("p", sentence), ...more);
  by("notice").focus();
}

function slotList(instead) {
  const list = document.createElement("ul");
  list.className = "times wide";
  list.append(...instead.map((slot) => listed(makeButton(slotWords(slot), "time", () => choose(slot)))));
  return list;
}

/** Somebody else was quicker: the next free times at once. */
function showTaken(answer) {
  const instead = (answer.body.alternatives ?? []).map(span);
  const gone = String(chosen);
  slots = slots.filter((slot) => String(slot) !== gone);
  const all = make("p", "", { className: "more" });
  all.append(makeButton(words.all_times, "quiet", showAll));
  showNotice(
    `${words.taken} ${instead.length ? words.instead : words.nothing_instead}`,
    ...(instead.length ? [slotList(instead)] : []),
    all,
  );
}

/** Of several seats, or of those of a place, some may still be free. */
async function showFull() {
  const [, , id, , places] = chosen;
  const isPart = by("seats").value > 1 || places;
  await cover(shownFrom);
  const left = slots.find((slot) => slot[2] === id)?.[3] ?? 0;
  if (left && isPart) drawSeats(left);
  const all = make("p", "", { className: "more" });
  all.append(makeButton(words.all_times, "quiet", showAll));
  showNotice(left && isPart ? words.fewer : words.full, all);
}

function clearErrors() {
  for (const field of by("form").querySelectorAll(".field")) {
    field.querySelector(".error").textContent = "";
    inputsOf(field).forEach((input) => input.removeAttribute("aria-invalid"));
  }
}

const inputsOf = (field) => [...field.querySelectorAll("input, select, textarea")];

function showError(field, sentence) {
  field.querySelector(".error").textContent = sentence;
  inputsOf(field)[0].setAttribute("aria-invalid", "true");
}

function focusFirstError() {
  say(words.faults);
  by("form").querySelector("[aria-invalid=true]")?.focus();
}

/** Whether all answers will do; those that don't say so. */
function checkFields() {
  clearErrors();
  let isGood = true;
  for (const field of by("form").querySelectorAll(".field")) {
    const [input] = inputsOf(field);
    const isMissing = input.required && isBlank(input);
    if (!isMissing && input.checkValidity()) continue;
    const { valueMissing, typeMismatch } = input.validity;
    const isAddress = typeMismatch && input.type === "email";
    showError(field, isMissing || valueMissing ? words.required : isAddress ? words.email : words.unfit);
    isGood = false;
  }
  if (!isGood) focusFirstError();
  return isGood;
}

const isBlank = (input) => (input.type === "checkbox" ? !input.checked : !input.value.trim());

/** What is wrong with a field that the API refuses: its own sentences are in English. */
function faultWords(field) {
  if (inputsOf(field).every(isBlank)) return words.required;
  return field.dataset.key === "email" ? words.email : words.unfit;
}

/** Errors of the API at their fields; false where one belongs to none. */
function showFieldErrors(errors) {
  let isPlaced = false;
  for (const path of Object.keys(errors)) {
    const key = path.replace(/^customers?\.(0\.)?/, "");
    const fields = [...by("form").querySelectorAll(".field")];
    const field = fields.find((one) => one.dataset.key === key);
    if (!field) continue;
    showError(field, faultWords(field));
    isPlaced = true;
  }
  if (isPlaced) focusFirstError();
  return isPlaced;
}

/** `Please try again in 40 seconds`, in 20 minutes or in 3 hours. */
function busyWords(seconds) {
  const [unit, size] = [["hour", 3600], ["minute", 60]].find(([, size]) => seconds > 2 * size) ?? ["second", 1];
  const when = new Intl.RelativeTimeFormat(locale).format(Math.ceil(seconds / size), unit);
  return fill(words.busy, { when });
}

function showRefusal(answer) {
  const { status, code } = answer;
  if (code === "slot_taken" || code === "not_available") return showTaken(answer);
  if (code === "group_full" || (page.is_group && code === "action_not_allowed")) return showFull();
  if (status === 429) return showNotice(busyWords(answer.wait));
  if (answer.body.errors?.challenge) return showNotice(words.unsolved);
  if (status === 422 && showFieldErrors(answer.body.errors ?? {})) return null;
  if (status === 0) return showNotice(words.offline);
  if (status >= 500) return showNotice(words.trouble);
  if ([401, 403, 404].includes(status)) return showNotice(words.gone);
  return showNotice(code === "policy" ? words.policy : words.refused);
}

// --- Answers
const setInput = (input, value) => {
  if (input.type === "checkbox") input.checked = ["true", "1", "yes", "on"].includes(value);
  else if (input.tagName !== "SELECT" || [...input.options].some((option) => option.value === value)) {
    input.value = value;
  }
};

const readInput = (input) => (input.type === "checkbox" ? String(input.checked) : input.value);

/** key -> inputs; a name in two parts has two. */
function inputsByKey() {
  const inputs = new Map();
  for (const field of by("form").querySelectorAll(".field")) {
    const { key } = field.dataset;
    inputs.set(key, [...(inputs.get(key) ?? []), ...inputsOf(field)]);
  }
  return inputs;
}

/** Answers of the address (?name=..&email=..), then those that were typed before a reload. */
function fillIn() {
  const query = new URLSearchParams(location.search);
  const typed = recall("answers") ?? {};
  for (const [key, inputs] of inputsByKey()) {
    const value = key in NOWHERE || key === "timezone" ? null : query.get(key);
    const [first, ...rest] = value?.trim().split(/\s+/) ?? [];
    const parts = inputs.length > 1 ? [first, rest.join(" ")] : [value];
    inputs.forEach((input, place) => {
      if (input.readOnly || input.disabled) return;
      if (value !== null) setInput(input, parts[place] ?? "");
      if (typeof typed[key]?.[place] === "string") setInput(input, typed[key][place]);
    });
  }
}

function storeAnswers() {
  const answers = [...inputsByKey()].map(([key, inputs]) => [key, inputs.map(readInput)]);
  remember("answers", Object.fromEntries(answers));
}

// --- Booking
/** The answers; what was left blank is left out. A name in two parts is one. */
function customer() {
  const values = new Map();
  for (const field of by("form").querySelectorAll(".field")) {
    const [input] = inputsOf(field);
    const { key } = field.dataset;
    const text = input.type === "checkbox" ? input.checked : input.value.trim();
    if (text === "") continue;
    values.set(key, values.has(key) ? `${values.get(key)} ${text}` : text);
  }
  const language = page.language ? [["language", page.language]] : [];
  return Object.fromEntries([...language, ...values, ["timezone", zone]]);
}

/** The same key for the same request, so that one that is sent twice books once. */
function keyOf(text) {
  if (sent.text !== text) {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    sent = { text, key: Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("") };
  }
  return sent.key;
}

const INCLUDES =
  "include=event,resource,resources,steps,quantity,party_size,place,conference,customer_action_links";

/** How many seats of a group, and where. */
const seatsOf = () => ({
  related: { owner_booking_id: chosen[2] },
  ...(by("seats").value > 1 && { quantity: Number(by("seats").value) }),
  ...(chosen[4] && { place: by("place").value }),
});

function postBooking() {
  const values = {
    ...placeOfOne(),
    start: iso(chosen[0]),
    end: iso(chosen[1]),
    customer: customer(),
    ...(page.is_group && seatsOf()),
    ...(hold && { reservation_id: hold.id }),
  };
  return post(`bookings?${INCLUDES}`, values, { isOnce: true });
}

async function book(event) {
  event.preventDefault();
  if (isBooking || !checkFields()) return;
  isBooking = true;
  clearNotice();
  const label = by("submit").textContent;
  by("submit").textContent = words.booking;
  by("submit").setAttribute("aria-disabled", "true");
  endVerification(); // of a seat, which can't be taken over
  await holding;
  let answer = await postBooking();
  if (answer.code === "hold_expired") {
    // It may be free all the same.
    hold = null;
    by("held").textContent = words.lapsed;
    answer = await postBooking();
  }
  isBooking = false;
  by("submit").textContent = label;
  by("submit").removeAttribute("aria-disabled");
  if (answer.status === 201) finish(answer.body.data);
  else if (answer.status === 202) showVerification(answer.body.data.reservation_id);
  else showRefusal(answer);
}

// --- Verifying the address
/** The step in which the code of the e-mail is typed; the service holds the time meanwhile. */
function showVerification(id) {
  if (!by("verify")) return showNotice(words.gone);
  if (hold) clearTimeout(hold.timer);
  hold = null;
  reservation = id;
  unverified = chosen;
  email = customer().email ?? "";
  by("verify-hint").textContent = email ? fill(words.code_sent, { email }) : words.code_typed;
  by("code").value = "";
  by("change-email").hidden = !unverified;
  clearCodeError();
  waitForNextCode();
  nameHere({ reservation });
  loadDone();
  showStep("verify");
  by("verify-title").focus();
}

function clearCodeError() {
  by("code-error").textContent = "";
  by("code").removeAttribute("aria-invalid");
}

function showCodeError(sentence) {
  by("code-error").textContent = sentence;
  by("code").setAttribute("aria-invalid", "true");
  by("code").focus();
}

function endVerification() {
  if (reservation) holding = release(reservation);
  reservation = null;
}

let nextCode = 0; // the timer until another code can be asked for

function waitForNextCode() {
  clearTimeout(nextCode);
  by("resend").disabled = true;
  nextCode = setTimeout(() => {
    by("resend").disabled = false;
  }, NEXT_CODE * 1000);
}

async function resendCode() {
  if (isBooking) return null;
  isBooking = true;
  clearNotice();
  clearCodeError();
  const answer = await call("POST", `bookings/reserve/${reservation}/code`);
  isBooking = false;
  if (answer.status !== 202) return showVerified(answer);
  by("verify-hint").textContent = words.code_resent;
  say(words.code_resent);
  waitForNextCode();
  return by("code").focus();
}

/** Back to the form, with the time still held: another address gets a code of its own. */
function changeEmail() {
  const [slot, id] = [unverified, reservation];
  clearNotice();
  nameHere({ date: dateOf(slot[0]), time: iso(slot[0]), session: page.is_group ? slot[2] : null });
  chosen = slot;
  showStep("form");
  if (!page.is_group) {
    // The booking with the new address takes over what is held.
    hold = { id };
    reservation = null;
    remember("hold", { id, slot });
  }
  const [input] = inputsByKey().get("email");
  input.focus();
  input.select();
}

async function verify(event) {
  event.preventDefault();
  if (isBooking) return;
  clearCodeError();
  const code = by("code").value.replace(/\s/g, "");
  if (!/^\d{6}$/.test(code)) return showCodeError(words.code_form);
  isBooking = true;
  clearNotice();
  const text = JSON.stringify({ code });
  const path = `bookings/reserve/${reservation}/verify?${INCLUDES}`;
  const answer = await call("POST", path, text, { "Idempotency-Key": keyOf(path + text) });
  isBooking = false;
  showVerified(answer);
}

function showVerified(answer) {
  if (answer.status === 201) return finish(answer.body.data);
  const isOver = answer.body.attempts_left === 0;
  if (answer.body.errors?.code && !isOver) return showCodeError(words.code_wrong);
  if (isOver || ["hold_expired", "not_found"].includes(answer.code)) {
    by("verify").hidden = true;
    reservation = null;
    const all = make("p", "", { className: "more" });
    all.append(makeButton(words.all_times, "quiet", showAll));
    return showNotice(isOver ? words.code_tries : words.code_expired, all);
  }
  return showRefusal(answer);
}

/** The booking is made: it stays with the history's entry, so that a reload shows it again. */
function finish(booking) {
  if (hold) clearTimeout(hold.timer);
  hold = reservation = null;
  email = customer().email ?? email;
  remember("answers", null);
  const paidBy = page.payment && Date.now() / 1000 + page.payment;
  history.replaceState({ booking, email, paidBy }, "", addressWith(NOWHERE));
  postToEmbeddingPage("booked", { id: booking.id, start: booking.event.start, end: booking.event.end });
  // The customer pays first: the page shows that link, and then the one to the project's own page.
  const leaves = page.redirect && !page.payment;
  if (leaves && !isFramed) return location.assign(withBooking(page.redirect, booking));
  showDone(history.state);
  // Own pages of projects seldom allow frames. A browser may refuse; then the link is there.
  if (leaves) window.open(withBooking(page.redirect, booking), "_top");
  return null;
}

/** The address with the booking's id in its query. */
function withBooking(url, booking) {
  const address = new URL(url);
  address.searchParams.set("booking_id", booking.id);
  return address.href;
}

/** What is shown after the booking: its module is loaded while the form is filled in. */
let doneModule = null;

function loadDone() {
  doneModule ??= import(page.done).catch(() => {
    doneModule = null;
  });
  return doneModule;
}

async function showDone(made) {
  const loaded = await loadDone();
  const { booking } = made;
  if (!loaded) return showNotice(`${page.outcome[0]}: ${slotWords(span(booking.event))}`);
  document.title = `${page.outcome[0]} · ${pageTitle}`;
  const show = loaded.startDone({
    page, words, zone, host, by, make, makeButton, fill, iso, span, dayWords, clockWords, slotWords,
    zoneWords, showStep, showNotice, clearNotice, say, withBooking, addressWith, NOWHERE,
    postToEmbeddingPage, PATIENCE,
  });
  return show(made);
}

const pageTitle = document.title;

// --- Zone and clock
const ownZone = () => Intl.DateTimeFormat().resolvedOptions().timeZone || page.zone;

/** h12 or h23: the visitor's choice, else what is usual where they are. */
function usualClock() {
  const kept = recall("clock");
  if (kept === "h12" || kept === "h23") return kept;
  const usual = new Intl.DateTimeFormat(navigator.language, { hour: "numeric" }).resolvedOptions();
  return usual.hour12 ? "h12" : "h23";
}

function setClock(wanted) {
  clock = wanted;
  for (const button of document.querySelectorAll("#clock button")) {
    button.setAttribute("aria-pressed", String(button.dataset.clock === clock));
    button.disabled = false;
  }
}

function changeClock({ target }) {
  if (!target.dataset.clock) return;
  setClock(target.dataset.clock);
  remember("clock", clock);
  drawWeeks();
}

async function changeZone(name) {
  zone = name;
  const { date, week } = Object.fromEntries(new URLSearchParams(location.search));
  nameHere({ date: date ?? null, week: week ?? null, timezone: zone });
  if (!isCovered(shownFrom)) await cover(shownFrom);
  drawWeeks();
  say(fill(words.zone, { zone: zoneWords(zone) }));
}

async function openZones() {
  const { startZoneSearch } = await import(page.zones);
  const options = { input: by("zone"), list: by("zones"), words, locale, zoneWords, currentName };
  const read = () => zone;
  startZoneSearch({ ...options, read, clock: clockWords, choose: changeZone })();
}

// --- Start
if (host) startEmbedded();
if (isFramed) document.addEventListener("click", leaveFrame);
setClock(usualClock());
fillIn();
if (reservation) {
  zone = currentName(ownZone());
  shownFrom = weekOf(firstDate());
  drawWeeks();
  showVerification(reservation);
} else {
  followAddress();
}
by("zone").value = zoneWords(zone);
by("zone").addEventListener("focus", openZones, { once: true });
by("clock")?.addEventListener("click", changeClock);
by("booking").addEventListener("click", keepDay);
by("days").addEventListener("keydown", moveByKey);
for (const arrow of ["earlier", "later"]) {
  by(arrow).addEventListener("click", (event) => {
    event.preventDefault();
    showWeeks(weeksAfter(arrow));
  });
}
by("back").addEventListener("click", () => {
  nameHere({});
  showStep("days");
  by("choosing-title").focus();
});
by("skip")?.addEventListener("click", (event) => {
  event.preventDefault(); // the address stays
  by("choosing-title").focus();
});
by("change").addEventListener("click", showAll);
by("form").addEventListener("submit", book);
by("form").addEventListener("input", storeAnswers);
by("verify")?.addEventListener("submit", verify);
by("verify-back")?.addEventListener("click", showAll);
by("resend")?.addEventListener("click", resendCode);
by("change-email")?.addEventListener("click", changeEmail);
addEventListener("popstate", followBack);
addEventListener("pagehide", giveBack);
addEventListener("pageshow", ({ persisted }) => {
  if (persisted && chosen && page.hold) holding = holding.then(() => keep(chosen));
});
by("zone").disabled = false;
