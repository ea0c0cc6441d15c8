// The calendar. It shows readings of wall clocks as the server gives them and sends readings back:
// what instant a reading means, also where the clock is changed, the server alone decides.
"use strict";

addEventListener("DOMContentLoaded", () => {
  const texts = officeWords("calendar");
  const page = JSON.parse(document.getElementById("cal-page").textContent);
  const grid = document.getElementById("cal-grid");
  if (!page.resources.length) return;

  const byId = Object.fromEntries(page.resources.map((one) => [one.id, one]));
  const token = document.querySelector(".cal [name=csrfmiddlewaretoken]").value;
  const zones = document.getElementById("cal-zone");
  const gone = document.getElementById("cal-gone");
  const said = document.getElementById("cal-said");
  const refused = document.getElementById("cal-refused");
  const book = document.getElementById("cal-book");
  const device = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const isNarrow = matchMedia("(max-width: 48rem)");
  const GONE = /^(cancelled|declined|unpaid)/;
  const TIMELINE = "resourceTimelineDay";
  const VIEWS = page.timelineOnly ? { timeline: TIMELINE }
    : { day: "resourceTimeGridDay", week: "resourceTimeGridWeek", month: "dayGridMonth", timeline: TIMELINE };
  const DAY = 24 * 3600 * 1000;
  const { lang } = document.documentElement;
  // Western digits in every language, as on the server.
  const isEnglish = lang.startsWith("en");
  const locale = isEnglish ? page.englishDates : `${lang}-u-nu-latn`;
  const ENGLISH_CLOCK = page.hasTwelveHours ? { hour: "numeric", minute: "2-digit", hour12: true }
    : { hour: "2-digit", minute: "2-digit", hour12: false };
  const CLOCK = isEnglish ? ENGLISH_CLOCK : { timeStyle: "short" };
  const clock = new Intl.DateTimeFormat(locale, CLOCK);
  const SCREEN = {
    height: "min(75vh, 54rem)",
    slotHeight: 32, // two lines of a half hour
    slotMinTime: "00:00:00",
    slotMaxTime: "24:00:00",
    dayMaxEvents: true,
  };
  let entries = []; // of the days that are shown
  let firstDay = ""; // of these
  const nameOf = (type) => Object.keys(VIEWS).find((name) => VIEWS[name] === type);

  zones.value = page.zone === "viewer" ? "viewer" : "";
  const zoneSent = () => (zones.value === "viewer" ? device : "");
  const zoneShown = () => zoneSent() || page.resources[0].zone;

  // --- The grid ---------------------------------------------------------------------------------
  const wanted = VIEWS[page.view] || VIEWS[page.timelineOnly ? "timeline" : ""] || (isNarrow.matches || page.resources.length > 1 ? VIEWS.day : VIEWS.week);
  const calendar = EventCalendar.create(grid, {
    view: wanted,
    date: page.date || (wanted === VIEWS.month ? "" : page.nextWeek) || today(),
    firstDay: 1,
    locale,
    timeZone: offsetNow(),
    ...SCREEN,
    headerToolbar: { start: "prev,next today", center: "title", end: Object.values(VIEWS).join() },
    buttonText: { today: texts.today, resourceTimeGridDay: texts.day, resourceTimeGridWeek: texts.week, dayGridMonth: texts.month, [TIMELINE]: texts.timeline, close: texts.close },
    allDayContent: texts.all_day,
    columnWidth: width(wanted),
    datesAboveResources: true,
    views: {
      resourceTimeGridWeek: { titleFormat: { day: "numeric", month: "short", year: "numeric" } },
      resourceTimeGridDay: { titleFormat: { weekday: "short", day: "numeric", month: "short", year: "numeric" } },
      [TIMELINE]: { titleFormat: { weekday: "short", day: "numeric", month: "short", year: "numeric" }, slotWidth: 48 },
      dayGridMonth: {
        titleFormat: { month: "long", year: "numeric" },
        dayHeaderFormat: { weekday: "short" },
        moreLinkContent: ({ num }) => officePlural(texts.more, num),
      },
    },
    dayHeaderFormat: { weekday: "short", day: "numeric", month: "short" },
    slotLabelFormat: CLOCK,
    eventTimeFormat: CLOCK,
    scrollTime: firstHour(),
    slotDuration: "00:30:00",
    snapDuration: "00:15:00",
    slotEventOverlap: false,
    nowIndicator: true,
    lazyFetching: false,
    resources: rows(),
    eventSources: [{ events: fetchSheet }],
    eventContent: drawEvent,
    eventDidMount: nameEvent,
    eventAllUpdated: tidy,
    viewDidMount: tidy,
    eventClick: ({ event }) => {
      if (event.extendedProps.url) location.assign(event.extendedProps.url);
    },
    eventDrop: (change) => move(change, false),
    eventResize: (change) => move(change, true),
    selectable: page.mayMake,
    select: ({ startStr, endStr, allDay, resource }) => {
      calendar.unselect();
      const row = resource?.id ?? page.resources[0].id;
      if (!allDay && byId[row]) openBook(row, startStr, endStr);
    },
    dateClick: ({ dateStr, view }) => {
      if (view.type === VIEWS.month) calendar.setOption("date", dateStr.slice(0, 10)).setOption("view", VIEWS.day);
    },
    datesSet: ({ startStr, view }) => {
      calendar.setOption("columnWidth", width(view.type));
      const date = view.type === VIEWS.month ? new Intl.DateTimeFormat("sv-SE").format(view.currentStart) : startStr.slice(0, 10);
      firstDay = date;
      keepAddress({ date, view: nameOf(view.type) });
      grid.querySelector(".ec-main")?.scrollTo({ left: 0 });
    },
  });
  describeZones();

  zones.addEventListener("change", () => {
    keepAddress({ zone: zones.value });
    // The library moves its date by the weekdays between "now" in the two zones, which can be six.
    const date = calendar.getOption("date");
    calendar.setOption("timeZone", offsetNow());
    calendar.setOption("date", date);
    describeZones();
    calendar.refetchEvents();
  });
  gone.addEventListener("change", () => calendar.refetchEvents());
  // The field to choose an app tells its changes to jQuery only.
  window.django?.jQuery?.(".cal-pick [name=app]").on("change", (event) => {
    location.assign(`?app=${encodeURIComponent(event.target.value)}`);
  });
  document.getElementById("cal-new")?.addEventListener("click", () => openBook(page.resources[0].id, "", ""));

  // The timeline has a heading above the resources of each tag.
  function rows() {
    const all = page.resources.map((one) => ({ id: one.id, title: one.name }));
    const tags = [...new Set(page.resources.map((one) => one.tag))].sort();
    if (!page.timelineOnly || tags.length < 2) return all;
    return tags.flatMap((tag) => {
      const children = all.filter((one) => byId[one.id].tag === tag);
      return tag ? [{ id: `tag:${tag}`, title: tag, children }] : children;
    });
  }

  // An hour ago, if the page opens on today.
  function firstHour() {
    if (page.date && page.date !== today()) return "07:00:00";
    const hour = Number(new Intl.DateTimeFormat("en-GB", { timeZone: zoneShown(), hour: "2-digit" }).format(new Date()));
    return { hours: Math.max(0, hour - 1) };
  }

  function width(view) {
    if (view === TIMELINE) return undefined;
    const most = view === VIEWS.day ? 4 : 1;
    return page.resources.length > most || (isNarrow.matches && view === VIEWS.week) ? "7.5rem" : undefined;
  }

  // A fixed offset: in it every reading exists once, and the line of the present stands right.
  function offsetNow() {
    const now = new Date();
    const parts = new Intl.DateTimeFormat("en", { timeZone: zoneShown(), timeZoneName: "longOffset" }).formatToParts(now);
    return parts.find((part) => part.type === "timeZoneName").value.slice(3) || "+00:00";
  }

  function today() {
    return new Intl.DateTimeFormat("sv-SE", { timeZone: zoneShown() }).format(new Date());
  }

  // A reading moved by what the library calls a duration: counted as though the clock were UTC,
  // because its Dates are those of this device, whose own clock may skip that very hour.
  function moved(reading, { years = 0, months = 0, days = 0, seconds = 0 }) {
    const date = new Date(`${reading}Z`);
    date.setUTCFullYear(date.getUTCFullYear() + years, date.getUTCMonth() + months, date.getUTCDate() + days);
    date.setUTCSeconds(date.getUTCSeconds() + seconds);
    return date.toISOString().slice(0, 19);
  }

  function describeZones() {
    const names = [...new Set(page.resources.map((one) => one.zone))];
    const words = zoneSent() ? officeFill(texts.zone_of_device, { zone: device })
      : names.length === 1 ? officeFill(texts.zone, { zone: names[0] })
      : officeFill(texts.zones, { zones: page.resources.map((one) => `${one.name} ${one.zone}`).join(", ") });
    document.getElementById("cal-zones").textContent = words;
  }

  function keepAddress(values) {
    const address = new URL(location.href);
    for (const [name, value] of Object.entries(values)) {
      if (value) address.searchParams.set(name, value);
      else address.searchParams.delete(name);
    }
    history.replaceState(null, "", address);
    for (const link of document.querySelectorAll("[data-why]")) {
      link.search = `?date=${address.searchParams.get("date") ?? ""}`;
    }
  }

  // --- Print ------------------------------------------------------------------------------------
  // On paper: the whole width, no scrolling, and only the hours of entries, at least 8 to 18.
  addEventListener("beforeprint", () => {
    setOptions({ height: "auto", slotHeight: 18, dayMaxEvents: false, columnWidth: undefined, ...printedHours() });
  });
  addEventListener("afterprint", () => {
    setOptions({ ...SCREEN, columnWidth: width(calendar.getOption("view")) });
  });
  document.getElementById("cal-print").addEventListener("click", () => print());

  function setOptions(options) {
    for (const [name, value] of Object.entries(options)) calendar.setOption(name, value);
  }

  function printedHours() {
    const hours = entries.filter((event) => !event.allDay).flatMap(({ start, end }) =>
      start.slice(0, 10) === end.slice(0, 10) ? [hourOf(start), Math.ceil(hourOf(end))] : [0, 24]);
    return { slotMinTime: { hours: Math.floor(Math.min(8, ...hours)) }, slotMaxTime: { hours: Math.max(18, ...hours) } };
  }

  function hourOf(reading) {
    return Number(reading.slice(11, 13)) + Number(reading.slice(14, 16)) / 60;
  }

  // --- Data -------------------------------------------------------------------------------------
  async function ask(address, options) {
    const answer = await fetch(address, { headers: { Accept: "application/json" }, ...options });
    if (answer.redirected || !answer.headers.get("Content-Type")?.startsWith("application/json")) {
      location.reload(); // the log-in has ended
      return new Promise(() => {});
    }
    return { ok: answer.ok, status: answer.status, body: await answer.json() };
  }

  function send(address, body) {
    return ask(address, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-CSRFToken": token },
      body: JSON.stringify(body),
    });
  }

  async function fetchSheet({ startStr, endStr }) {
    const query = new URLSearchParams({
      start: startStr.slice(0, 10),
      end: endStr.slice(0, 10),
      ...page.rows,
    });
    if (zoneSent()) query.set("zone", zoneSent());
    try {
      const { ok, body } = await ask(`${page.events}?${query}`);
      if (!ok) throw new Error(body.error);
      const events = body.data.events.filter((one) => gone.checked || !GONE.test(one.extendedProps.state));
      list(events);
      explainClosed(body.data.late);
      if (body.data.cut) tell(texts.too_many);
      grid.dataset.drawn = String(Number(grid.dataset.drawn || 0) + 1);
      entries = events;
      const isMonth = Date.parse(query.get("end")) - Date.parse(query.get("start")) > 7 * DAY;
      return isMonth ? [...body.data.closed_days.map(shadeDay), ...events.map(fixLength)] : [...body.data.background, ...events];
    } catch (error) {
      tell(officeFill(texts.failed, { problem: error.message }));
      return [];
    }
  }

  function shadeDay(date) {
    return { display: "background", allDay: true, start: date, end: date, classNames: ["is-closed"] };
  }

  // A day of the month has no hours to drag an end to.
  function fixLength(event) {
    return { ...event, durationEditable: false };
  }

  function list(events) {
    const sorted = [...events].sort((one, other) => (one.start < other.start ? -1 : 1));
    document.getElementById("cal-list").replaceChildren(
      ...sorted.map((event) => {
        const { time, resource, words, url } = event.extendedProps;
        const link = make("a", "", officeFill(texts.entry, { time, title: event.title }));
        link.href = url;
        const item = make("li", "");
        item.append(link, ` ${stateWords(words, resource)}`);
        return item;
      }),
    );
  }

  function stateWords(words, resource) {
    return officeFill(texts.state, { state: words, resource });
  }

  // Why a resource is closed throughout.
  function explainClosed(calendars) {
    const block = document.getElementById("cal-late");
    block.hidden = !calendars.length;
    block.replaceChildren(
      ...calendars.map(({ resource, text, url }) => {
        const link = make("a", "", texts.calendar);
        link.href = url;
        const item = make("li", "", `${officeFill(texts.closed, { resource, reason: text })} `);
        item.append(link);
        return item;
      }),
    );
  }

  // --- Drawing ----------------------------------------------------------------------------------
  function make(name, classes, text) {
    const element = document.createElement(name);
    element.className = classes;
    if (text !== undefined) element.textContent = text;
    return element;
  }

  function drawEvent({ event, timeText, view }) {
    if (event.display === "background") return "";
    if (!event.extendedProps.state) return { domNodes: [make("span", "cal-time", timeText)] };
    const isMonth = view.type === VIEWS.month;
    const isShort = isMonth || event.end - event.start < 45 * 60000;
    const time = make("span", "cal-time", isShort && timeText ? clock.format(event.start) : timeText);
    const whose = isMonth && page.resources.length > 1 ? ` · ${event.extendedProps.resource}` : "";
    return { domNodes: [time, document.createTextNode(" "), make("span", "cal-what", event.title + whose)] };
  }

  function nameEvent({ el, event }) {
    if (event.display === "background" || !event.extendedProps.state) return;
    const { time, words, resource } = event.extendedProps;
    const shown = el.querySelector(".cal-time").textContent;
    el.setAttribute("aria-label", `${shown} ${event.title}, ${words}, ${time}, ${resource}`);
    el.title = `${event.title}\n${time}\n${stateWords(words, resource)}`;
  }

  // The library calls its grid a table, but no row of it has the cells that a table needs: who
  // listens to the page finds the same as a list.
  function tidy() {
    for (const one of grid.querySelectorAll("[role=rowgroup], [role=row], [role=columnheader], [role=rowheader], [role=cell]")) {
      for (const name of ["role", "aria-colindex", "aria-colspan", "aria-rowindex", "aria-rowspan"]) one.removeAttribute(name);
    }
    const table = grid.querySelector("[role=table]");
    table?.setAttribute("aria-label", texts.calendar);
    table?.setAttribute("role", "group");
    const scrolled = grid.querySelector(".ec-main");
    if (scrolled) scrolled.tabIndex = 0; // arrow keys scroll it
    grid.querySelector("button.ec-prev")?.setAttribute("aria-label", texts.earlier);
    grid.querySelector("button.ec-next")?.setAttribute("aria-label", texts.later);
  }

  function tell(words, undo) {
    said.hidden = false;
    said.replaceChildren(words);
    if (undo) {
      const button = make("button", "time-button", texts.undo);
      button.type = "button";
      button.addEventListener("click", undo);
      said.append(" ", button);
    }
  }

  for (const button of document.querySelectorAll(".cal-dialog [data-close]")) {
    button.addEventListener("click", () => button.closest("dialog").close());
  }

  function offer(dialog, alternatives, choose, otherwise = "") {
    const block = dialog.querySelector(".cal-alternatives");
    block.hidden = !alternatives?.length && !otherwise;
    block.querySelector("p").textContent = alternatives?.length ? texts.free_times : otherwise;
    block.querySelector(".cal-choices").replaceChildren(
      ...officeByDay(alternatives ?? [], (one) => {
        const button = make("button", "time-button", one.clock);
        button.type = "button";
        button.addEventListener("click", () => choose(one));
        return button;
      }),
    );
  }

  // --- To another time --------------------------------------------------------------------------
  async function move(change, withEnd) {
    const { event, newResource, delta, endDelta, revert } = change;
    const { start, end } = event.extendedProps;
    const row = newResource?.id ?? event.resourceIds[0];
    if (event.allDay || !byId[row]) {
      revert();
      return;
    }
    const body = { start: withEnd ? start : moved(start, delta), zone: zoneSent() };
    if (withEnd) body.end = moved(end, endDelta);
    body.resource_id = row;
    await place(event, body, revert);
  }

  // Why something was refused, without the names of the API's fields.
  function sentences(answer) {
    return answer.errors ? Object.values(answer.errors).flat().join(" ") : answer.error;
  }

  async function place(event, body, revert) {
    const address = page.move.replace("00000000-0000-0000-0000-000000000000", event.extendedProps.booking);
    const { ok, body: answer } = await send(address, body);
    if (ok) {
      refused.close();
      const { text, was, resource } = answer.data;
      const now = resource ? officeFill(texts.moved_to, { title: event.title, time: text, resource }) : officeFill(texts.moved, { title: event.title, time: text });
      tell(now, () => place(event, { ...was, zone: zoneSent() }, () => {}));
      calendar.refetchEvents();
      return;
    }
    revert();
    refused.querySelector(".cal-refused-words").textContent = sentences(answer);
    const reasons = [
      ...(answer.reasons ?? []).map((reason) => reason.text),
      ...(answer.conflicts ?? []).map((conflict) => officeFill(texts.taken, { time: conflict.text })),
    ];
    refused.querySelector(".cal-refused-reasons").replaceChildren(...reasons.map((text) => make("li", "", text)));
    offer(refused, answer.alternatives, (one) =>
      place(event, { start: one.start, end: one.end, resource_id: body.resource_id, zone: body.zone }, () => {}));
    if (!refused.open) refused.showModal();
  }

  // --- A new booking ----------------------------------------------------------------------------
  const form = book.querySelector("form");
  const newBooking = officeNewBooking(form, ask, page);
  let lookUps = 0; // of free times: only the latest counts
  let exact = null; // an alternative that was chosen: its instants, which readings might not tell

  function openBook(resourceId, start, end) {
    if (!page.mayMake) return;
    form.reset();
    newBooking.reset();
    showErrors({});
    offer(book, []);
    form.elements.resource_id.value = resourceId;
    form.elements.start.value = start.slice(0, 16);
    form.elements.end.value = end.slice(0, 16);
    if (!start) form.elements.through.selectedIndex = -1; // a dragged time has its own length
    fitProjects();
    pointToBlock(resourceId, start, end);
    book.showModal();
    // A project says what is booked.
    form.elements[form.elements.through.value.startsWith("project:") ? "name" : "what"].focus();
    showFreeTimes();
  }

  // The dragged time, for the page that blocks it.
  function pointToBlock(resourceId, start, end) {
    const link = document.getElementById("cal-block");
    if (!link) return;
    const address = new URL(link.href);
    address.searchParams.set("resources", resourceId);
    for (const [name, reading] of [["start", start], ["end", end]]) {
      if (reading) address.searchParams.set(name, reading.slice(0, 16));
      else address.searchParams.delete(name);
    }
    link.href = address;
  }

  function fill(span) {
    form.elements.start.value = span.wall_start.slice(0, 16);
    form.elements.end.value = span.wall_end.slice(0, 16);
    exact = span;
  }

  // The next free times from the start in the form on, each a button. An empty form gets the first;
  // a form without an end, or `withLength`, the length of the project.
  async function showFreeTimes(withLength = false) {
    const number = ++lookUps;
    const { resource_id: whose, start, end, anyway, through } = form.elements;
    const [kind, name] = through.value.split(/:(.*)/);
    const [first, last] = [start.value, end.value];
    const length = first && last ? (Date.parse(`${last}Z`) - Date.parse(`${first}Z`)) / 1000 : 0;
    const query = new URLSearchParams({
      resource_id: whose.value,
      start: first || firstDay || page.date || today(),
      wanted: JSON.stringify(newBooking.wanted()),
    });
    if (length > 0) query.set("length", length);
    if (kind === "project") query.set("project_id", name);
    if (anyway.checked) query.set("closed", "1");
    if (zoneSent()) query.set("zone", zoneSent());
    const { ok, body } = await ask(`${page.times}?${query}`);
    if (number !== lookUps) return;
    const { times, length: seconds } = ok ? body.data : { times: [] };
    offer(book, times, fill, ok ? texts.no_times : "");
    if (!ok || start.value !== first || end.value !== last) return;
    if (!first && times.length) fill(times[0]);
    if (first && (withLength || length <= 0)) end.value = moved(first, { seconds }).slice(0, 16);
  }

  const asked = new URLSearchParams(location.search);
  if (asked.has("new") && page.resources.length) {
    openBook(page.resources[0].id, asked.get("start") ?? "", "");
    if (asked.has("customer")) newBooking.chooseKnown(asked.get("customer"));
  }

  // Offers the projects of the chosen resource; without a valid choice, selects the first of them.
  function fitProjects() {
    const wantedId = form.elements.resource_id.value;
    const through = form.elements.through;
    for (const option of through.querySelectorAll("[data-resources]")) {
      option.hidden = option.disabled = !option.dataset.resources.split(" ").includes(wantedId);
    }
    if (through.selectedOptions[0]?.disabled !== false) {
      through.value = through.querySelector("[data-resources]:enabled")?.value ?? "graph:instant";
    }
    newBooking.loadQuestions();
  }

  // A new start keeps the length: the end moves with it.
  let lastStart = "";
  form.elements.start.addEventListener("focus", ({ target }) => { lastStart = target.value; });
  form.elements.start.addEventListener("input", ({ target }) => {
    const { end } = form.elements;
    if (!target.value) return;
    if (lastStart && end.value > lastStart) {
      const length = (Date.parse(`${end.value}Z`) - Date.parse(`${lastStart}Z`)) / 1000;
      end.value = moved(target.value, { seconds: length }).slice(0, 16);
    }
    lastStart = target.value;
  });
  form.elements.resource_id.addEventListener("change", fitProjects);
  form.elements.through.addEventListener("change", newBooking.loadQuestions);
  for (const name of ["resource_id", "through", "start", "end", "anyway", "quantity", "party_size", "any_resource"]) {
    form.elements[name].addEventListener("change", () => showFreeTimes(name === "through"));
  }
  form.querySelector("#cal-named").addEventListener("change", () => showFreeTimes());
  for (const name of ["resource_id", "start", "end"]) {
    form.elements[name].addEventListener("input", () => { exact = null; });
  }

  function showErrors(errors) {
    for (const place of book.querySelectorAll("[data-error]")) {
      const names = place.dataset.error.split(" ");
      const messages = names.flatMap((name) => errors[name] ?? []);
      place.textContent = messages.join(" ");
      place.hidden = !messages.length;
    }
  }

  async function submitBooking({ skipsConflicts = false } = {}) {
    const fields = form.elements;
    const [kind, name] = fields.through.value.split(/:(.*)/);
    const body = {
      resource_id: fields.resource_id.value,
      start: exact?.start ?? fields.start.value,
      end: exact?.end ?? fields.end.value,
      zone: zoneSent(),
      ...newBooking.body(),
      ...(skipsConflicts ? { skip_conflicts: true } : {}),
      ...(kind === "project" ? { project_id: name } : { graph: name }),
      ...(fields.anyway.checked ? { settings: { enforce_availability: false } } : {}),
    };
    const { ok, body: answer } = await send(page.book, body);
    if (ok) {
      book.close();
      const { text, count, skipped } = answer.data;
      const booked = count > 1 ? `${officePlural(texts.booked_series, count)} ${officeFill(texts.first_booked, { time: text })}` : officeFill(texts.booked, { time: text });
      tell(skipped.length ? `${booked} ${officeFill(texts.not_booked, { times: skipped.join("; ") })}` : booked);
      const link = make("a", "", texts.open);
      link.href = answer.data.url;
      said.append(" ", link);
      calendar.refetchEvents();
      return;
    }
    const known = new Set([...book.querySelectorAll("[data-error]")].flatMap((one) => one.dataset.error.split(" ")));
    const others = Object.entries(answer.errors ?? {}).filter(([path]) => !known.has(path));
    const words = answer.errors ? others.map(([, messages]) => messages.join(" "))
      : [answer.error, ...(answer.reasons ?? []).map((reason) => reason.text)];
    lookUps += 1;
    if (answer.occurrences) {
      showErrors({});
      newBooking.showConflicts(answer, () => submitBooking({ skipsConflicts: true }));
      return;
    }
    if (answer.reasons?.length) words.push(officeWords("new_booking").anyway);
    showErrors({ ...(answer.errors ?? {}), "": words });
    if (answer.alternatives) {
      offer(book, answer.alternatives, (span) => {
        fill(span);
        submitBooking();
      });
    }
    book.querySelector("[data-error]:not([hidden])")?.scrollIntoView({ block: "nearest" });
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submitBooking();
  });
  book.addEventListener("close", () => { exact = null; });
});
