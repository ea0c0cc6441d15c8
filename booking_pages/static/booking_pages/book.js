// A booking page: shows the free times in the visitor's zone and books by the public API.
// All that it needs to know stands in the page; every value goes out as text, never as HTML.

const page = JSON.parse(document.getElementById("page").textContent);
const words = page.words;
const by = (id) => document.getElementById(id);
const locale = document.documentElement.lang === "en" ? "en-GB" : document.documentElement.lang;

const EXTEND_BEFORE = 20; // seconds before a hold lapses
const DAYS_AT_ONCE = 28 * 86400;
const PATIENCE = 20; // seconds for an answer

let zone = page.zone;
let slots = page.offer.slots; // [start, end] in epoch seconds, sorted
let until = page.offer.until;
let day = null; // the local date that is shown
let chosen = null;
let hold = null; // {id, ends: a timer}
let holding = Promise.resolve();
let isBooking = false;
let sent = { text: null, key: null };
let solving = null; // a promise of a solved challenge
let reservation = page.reservation; // that waits for the code of an e-mail

// --- Words and times ---------------------------------------------------------------------------
const fill = (sentence, values) =>
  sentence.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);

const formats = new Map();

function format(instant, place, options) {
  const key = place + JSON.stringify(options);
  if (!formats.has(key)) {
    formats.set(key, new Intl.DateTimeFormat(locale, { timeZone: place, ...options }));
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

/** `UTC+02:00`. */
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
  const reading = format(instant, place, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  return isAmbiguous(instant, place) ? `${reading} ${offsetWords(instant, place)}` : reading;
}

const dayWords = (instant, place) =>
  format(instant, place, { weekday: "long", day: "numeric", month: "long", year: "numeric" });

const timeWords = ([start, end]) =>
  page.shows_ends ? `${clockWords(start, zone)} – ${clockWords(end, zone)}` : clockWords(start, zone);

const slotWords = (slot, place = zone) =>
  fill(words.chosen, {
    day: dayWords(slot[0], place),
    time: `${clockWords(slot[0], place)} – ${clockWords(slot[1], place)}`,
  });

const zoneWords = (name) => name.replaceAll("_", " ");

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

// --- The API -----------------------------------------------------------------------------------
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

// --- Proof of work -----------------------------------------------------------------------------
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
  if (!page.solver) return content;
  if (!texts.has(content)) {
    texts.set(content, JSON.stringify({ ...values, challenge: await takeSolved() }));
  }
  return texts.get(content);
}

/** A request that may need a challenge; once more with another where it has expired. */
async function post(path, values, isKeyed = false) {
  for (const isLast of [false, true]) {
    const text = await textOf(values);
    const answer = await call("POST", path, text, isKeyed ? { "Idempotency-Key": keyOf(text) } : {});
    if (isLast || !answer.body.errors?.challenge) return answer;
    texts.delete(JSON.stringify(values));
  }
}

const iso = (instant) => new Date(instant * 1000).toISOString().replace(".000", "");
const span = ({ start, end }) => [Date.parse(start) / 1000, Date.parse(end) / 1000];

/** The free times of a range, or null where they can't be had. */
async function findSlots(from, to) {
  const query = { project_id: page.project, from: iso(from), to: iso(to) };
  const answer = await call("POST", "availability", JSON.stringify(query));
  return answer.status === 200 ? answer.body.data.map(span) : null;
}

// --- Choosing ----------------------------------------------------------------------------------
function daysOf() {
  const days = new Map();
  for (const slot of slots) {
    const date = dateOf(slot[0]);
    if (!days.has(date)) days.set(date, []);
    days.get(date).push(slot);
  }
  return days;
}

function drawDays() {
  const days = daysOf();
  if (!days.has(day)) day = days.keys().next().value ?? null;
  const items = [...days].map(([date, [[start]]]) => {
    const button = makeButton("", "day", () => showDay(date));
    const short = make("span", `${format(start, zone, { weekday: "short" })} `);
    short.setAttribute("aria-hidden", "true");
    short.append(
      make("b", format(start, zone, { day: "numeric" })),
      ` ${format(start, zone, { month: "short" })}`,
    );
    button.append(short, make("span", dayWords(start, zone), { className: "unseen" }));
    button.dataset.date = date;
    const item = listed(button);
    item.dataset.weekday = new Date(date).getUTCDay() || 7;
    return item;
  });
  by("days").replaceChildren(...items);
  by("later").hidden = until >= page.offer.horizon;
  drawTimes();
}

function drawTimes() {
  const shown = daysOf().get(day) ?? [];
  for (const button of by("days").querySelectorAll("button")) {
    button.setAttribute("aria-pressed", String(button.dataset.date === day));
  }
  by("day").textContent = shown.length ? dayWords(shown[0][0], zone) : "";
  const items = shown.map((slot) => {
    const text = timeWords(slot);
    const button = makeButton(text, "time", () => choose(slot));
    if (text.includes("UTC")) button.classList.add("offset");
    return listed(button);
  });
  by("times").replaceChildren(...items);
  return shown.length;
}

function showDay(date) {
  day = date;
  const count = drawTimes();
  // On a phone they may stand below the window's edge.
  by("times").scrollIntoView({ block: "nearest" });
  by("day").scrollIntoView({ block: "nearest" });
  say(`${by("day").textContent}. ${fill(words.times, { count })}`);
}

/** The next four weeks that have a free time. */
async function showLater() {
  const known = new Set(daysOf().keys());
  const more = [];
  say(words.loading);
  by("later").setAttribute("aria-disabled", "true");
  while (!more.length && until < page.offer.horizon) {
    const end = Math.min(until + DAYS_AT_ONCE, page.offer.horizon);
    const found = await findSlots(until, end);
    if (found === null) break;
    more.push(...found);
    until = end;
  }
  by("later").removeAttribute("aria-disabled");
  const isThere = new Set(slots.map(String));
  slots = [...slots, ...more.filter((slot) => !isThere.has(String(slot)))];
  drawDays();
  const next = [...daysOf().keys()].find((date) => !known.has(date));
  if (next) {
    showDay(next);
    by("days").querySelector(`[data-date="${next}"]`).focus();
  } else {
    say(until < page.offer.horizon ? words.offline : words.no_more);
  }
}

/** Back to all times, as they are now. */
async function showAll() {
  giveBack();
  endVerification();
  chosen = null;
  clearNotice();
  by("form").hidden = true;
  by("choosing").hidden = false;
  by("choosing-title").focus();
  await holding;
  const found = await findSlots(Math.floor(Date.now() / 1000), until);
  if (found !== null) slots = found;
  drawDays();
}

function choose(slot) {
  giveBack();
  chosen = slot;
  clearNotice();
  by("choosing").hidden = true;
  by("form").hidden = false;
  by("chosen").textContent = slotWords(slot);
  by("chosen-zone").textContent = zoneWords(zone);
  by("held").textContent = "";
  by("form-title").focus();
  if (page.solver) solving ??= solve();
  if (page.hold) holding = holding.then(() => keep(slot));
}

// --- Holding -----------------------------------------------------------------------------------
/** Keep the time while the form is filled in; where that can't be, it is booked without. */
async function keep(slot) {
  if (chosen !== slot) return null;
  const wanted = { project_id: page.project, start: iso(slot[0]), end: iso(slot[1]) };
  const answer = await post("bookings/reserve", wanted);
  if (answer.status === 201) {
    const id = answer.body.data.reservation_id;
    if (chosen !== slot) return release(id);
    hold = { id, timer: setTimeout(extend, (page.hold - EXTEND_BEFORE) * 1000, id) };
    by("held").textContent = fill(words.held, { minutes: Math.floor(page.hold / 60) });
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

// --- Saying what went wrong --------------------------------------------------------------------
const clearNotice = () => by("notice").replaceChildren();

function showNotice(sentence, ...more) {
  by("notice").replaceChildren(make("p", sentence), ...more);
  by("notice").focus();
}

/** Somebody else was quicker: the next free times at once. */
function showTaken(answer) {
  const instead = (answer.body.alternatives ?? []).map(span);
  const gone = String(chosen);
  slots = slots.filter((slot) => String(slot) !== gone);
  const list = document.createElement("ul");
  list.className = "times wide";
  list.append(...instead.map((slot) => listed(makeButton(slotWords(slot), "time", () => choose(slot)))));
  const all = make("p", "", { className: "more" });
  all.append(makeButton(words.all_times, "quiet", showAll));
  showNotice(
    `${words.taken} ${instead.length ? words.instead : words.nothing_instead}`,
    ...(instead.length ? [list] : []),
    all,
  );
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
    const isBlank = input.required && input.type !== "checkbox" && !input.value.trim();
    if (!isBlank && input.checkValidity()) continue;
    const { valueMissing, typeMismatch } = input.validity;
    const isAddress = typeMismatch && input.type === "email";
    showError(field, isBlank || valueMissing ? words.required : isAddress ? words.email : words.unfit);
    isGood = false;
  }
  if (!isGood) focusFirstError();
  return isGood;
}

/** Errors of the API at their fields; false where one belongs to none. */
function showFieldErrors(errors) {
  let isPlaced = false;
  for (const [path, sentences] of Object.entries(errors)) {
    const key = path.replace(/^customers?\.(0\.)?/, "");
    const fields = [...by("form").querySelectorAll(".field")];
    const field = fields.find((one) => one.dataset.key === key);
    if (!field) continue;
    showError(field, key === "email" ? words.email : sentences.join(" "));
    isPlaced = true;
  }
  if (isPlaced) focusFirstError();
  return isPlaced;
}

/** `Please try again in 40 s`, in 20 min or in 3 h. */
function busyWords(seconds) {
  const [sentence, size] = [
    [words.busy_hours, 3600],
    [words.busy_minutes, 60],
    [words.busy, 1],
  ].find(([, size]) => seconds > 2 * size || size === 1);
  return fill(sentence, { count: Math.ceil(seconds / size) });
}

function showRefusal(answer) {
  const { status, code } = answer;
  if (code === "slot_taken" || code === "not_available") return showTaken(answer);
  if (answer.body.errors?.challenge) return showNotice(words.unsolved);
  if (status === 422 && showFieldErrors(answer.body.errors ?? {})) return null;
  if (status === 0) return showNotice(words.offline);
  if (status === 429) return showNotice(busyWords(answer.wait));
  if (status >= 500) return showNotice(words.trouble);
  if ([401, 403, 404].includes(status)) return showNotice(words.gone);
  return showNotice(code === "policy" ? words.policy : words.refused);
}

// --- Booking -----------------------------------------------------------------------------------
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
  return Object.fromEntries([...values, ["timezone", zone]]);
}

/** The same key for the same request, so that one that is sent twice books once. */
function keyOf(text) {
  if (sent.text !== text) {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    sent = { text, key: Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("") };
  }
  return sent.key;
}

function postBooking() {
  const values = {
    project_id: page.project,
    start: iso(chosen[0]),
    end: iso(chosen[1]),
    customer: customer(),
    ...(hold && { reservation_id: hold.id }),
  };
  return post("bookings?include=event,resource", values, true);
}

async function book(event) {
  event.preventDefault();
  if (isBooking || !checkFields()) return;
  isBooking = true;
  clearNotice();
  const label = by("submit").textContent;
  by("submit").textContent = words.booking;
  by("submit").setAttribute("aria-disabled", "true");
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
  if (answer.status === 201) showDone(answer.body.data);
  else if (answer.status === 202) showVerification(answer.body.data.reservation_id);
  else showRefusal(answer);
}

// --- Verifying the address ---------------------------------------------------------------------
/** The step in which the code of the e-mail is typed; the service holds the time meanwhile. */
function showVerification(id) {
  if (!by("verify")) return showNotice(words.gone);
  if (hold) clearTimeout(hold.timer);
  hold = null;
  reservation = id;
  const { email } = customer();
  by("verify-hint").textContent = email ? fill(words.code_sent, { email }) : words.code_typed;
  by("code").value = "";
  clearCodeError();
  by("choosing").hidden = by("form").hidden = true;
  by("verify").hidden = false;
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
  if (by("verify")) by("verify").hidden = true;
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
  const path = `bookings/reserve/${reservation}/verify?include=event,resource`;
  const answer = await call("POST", path, text, { "Idempotency-Key": keyOf(path + text) });
  isBooking = false;
  showVerified(answer);
}

function showVerified(answer) {
  if (answer.status === 201) return showDone(answer.body.data);
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

/** By when a booking that was just made has to be paid, and where. */
function payment(booking) {
  if (!page.payment) return [];
  // The last full minute: rounded up it would be too late.
  const until = Math.floor((Date.now() / 1000 + page.payment.seconds) / 60) * 60;
  const time = fill(words.chosen, { day: dayWords(until, zone), time: clockWords(until, zone) });
  const address = new URL(page.payment.url);
  address.searchParams.set("booking_id", booking.id);
  const link = make("a", words.pay, { href: address.href, target: "_blank", className: "button" });
  const line = make("p", "");
  line.append(link);
  return [make("p", fill(words.pay_by, { time, zone: zoneWords(zone) })), line];
}

function showDone(booking) {
  if (hold) clearTimeout(hold.timer);
  hold = null;
  const email = customer().email ?? "";
  const slot = span(booking.event);
  const [heading, sentence] = page.outcome;
  const place = booking.resource.timezone;
  const isElsewhere = slotWords(slot, place) !== slotWords(slot);
  const there = { zone: zoneWords(place), time: slotWords(slot, place) };
  const lines = [
    make("p", `${slotWords(slot)} (${zoneWords(zone)})`, { className: "lines" }),
    isElsewhere && make("p", fill(words.there, there)),
    booking.resource.name && make("p", fill(words.with, { name: booking.resource.name })),
    sentence && make("p", sentence),
    ...payment(booking),
    page.success && email && make("p", page.success.replaceAll("%s", () => email), { className: "lines" }),
  ];
  const title = make("h2", heading, { tabIndex: -1 });
  const again = make("p", "");
  again.append(make("a", words.another, { href: location.pathname }));
  reservation = null;
  by("choosing").hidden = by("form").hidden = true;
  if (by("verify")) by("verify").hidden = true;
  clearNotice();
  say("");
  by("done").replaceChildren(title, ...lines.filter(Boolean), again);
  document.title = `${heading} · ${document.title}`;
  title.focus();
}

// --- The zone ----------------------------------------------------------------------------------
function drawZones() {
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone || page.zone;
  const all = Intl.supportedValuesOf?.("timeZone") ?? [];
  const names = [...new Set([own, page.zone, "UTC", ...all])].sort();
  const options = names.map((name) => make("option", zoneWords(name), { value: name }));
  by("zone").replaceChildren(...options);
  by("zone").value = zone = own;
  by("zone").disabled = false;
}

function changeZone() {
  zone = by("zone").value;
  drawDays();
  say(fill(words.zone, { zone: zoneWords(zone) }));
}

drawZones();
drawDays();
by("later").disabled = false;
by("zone").addEventListener("change", changeZone);
by("later").addEventListener("click", () => {
  if (!by("later").hasAttribute("aria-disabled")) showLater();
});
by("change").addEventListener("click", showAll);
by("form").addEventListener("submit", book);
by("verify")?.addEventListener("submit", verify);
by("verify-back")?.addEventListener("click", showAll);
addEventListener("pagehide", giveBack);
if (reservation) showVerification(reservation);
