// The last step of a booking page: what was booked, and what can be done with it.
/** Returns the function that shows the step; the rest is handed over by book.js. */
export function startDone({
  page, words, zone, host, by, make, makeButton, fill, iso, span, dayWords, clockWords, slotWords,
  zoneWords, showStep, showNotice, clearNotice, say, withBooking, addressWith, NOWHERE,
  postToEmbeddingPage, PATIENCE,
}) {
  /** By when a booking that was just made has to be paid, and where. */
  function payment({ paidBy, booking }) {
    const { pay: href } = booking.customer_action_links ?? {};
    if (!href || !paidBy) return [];
    // The last full minute: rounded up it would be too late.
    const until = Math.floor(paidBy / 60) * 60;
    const time = fill(words.chosen, { day: dayWords(until, zone), time: clockWords(until, zone) });
    const link = make("a", words.pay, { href, target: "_blank", className: "button" });
    const line = make("p", "");
    line.append(link);
    return [make("p", fill(words.pay_by, { time, zone: zoneWords(zone) })), line];
  }

  /** How many units or seats, where, and how many people. */
  function numberLines({ event, quantity, place, party_size: people }) {
    const number = page.is_group ? fill(words.seats_booked, { count: quantity }) : `${quantity} × ${event.what}`;
    return [
      quantity > 1 && make("p", number),
      place && make("p", `${words.place}: ${place}`),
      people && make("p", `${words.people}: ${people}`),
    ];
  }

  /** The steps of a visit, each with its times and persons. */
  function stepList(steps) {
    if (!steps.length) return null;
    const list = make("ul", "", { className: "lines" });
    for (const { name, resources, ...times } of steps) {
      const [start, end] = span(times).map((instant) => clockWords(instant, zone));
      const who = resources.map((each) => each.name).filter(Boolean).join(", ");
      list.append(make("li", `${start} – ${end} ${name}${who && ` (${who})`}`));
    }
    return list;
  }

  const makeLink = (text, href, values = {}) => make("a", text, { href, ...values });

  const PLACEHOLDERS = /\{(booking_id|start|end)\}/g;
  const isAddress = (text) => /^https?:/.test(text);

  /** The translation of a place, with the values that the service has filled in; "" if the place
   * is another one. */
  function translatePlace(place, own, translation) {
    const names = [...own.matchAll(PLACEHOLDERS)].map(([, name]) => name);
    const pattern = own.split(PLACEHOLDERS).map((part, turn) => (turn % 2 ? "(.+)" : part.replace(/[^\w\s]/g, "\\$&")));
    const found = names.length && new RegExp(`^${pattern.join("")}$`, "s").exec(place);
    if (!found) return "";
    // In a web address, values are quoted.
    const value = (text) => (isAddress(own) ? decodeURIComponent(text) : text);
    const values = Object.fromEntries(names.map((name, turn) => [name, value(found[turn + 1])]));
    return translation.replace(PLACEHOLDERS, (whole, name) => {
      if (!(name in values)) return whole;
      return isAddress(translation) ? encodeURIComponent(values[name]) : values[name];
    });
  }

  /** The event of a booking with the project's title and place in the language of the page. */
  function readable(event) {
    const pairs = Object.entries(page.translations);
    const shown = (text) => (Object.hasOwn(page.translations, text) ? page.translations[text] : "");
    const place = (text) => pairs.map((pair) => translatePlace(text, ...pair)).find(Boolean);
    const { what, where } = event;
    return { ...event, what: shown(what) || what, where: shown(where) || place(where) || where };
  }

  /** The place, with a link to a map or to the meeting. */
  function placeLine({ where }) {
    if (!where) return null;
    const isLink = /^https?:\/\/\S+$/.test(where);
    const line = make("p", fill(words.where, { place: isLink ? "" : where }));
    const address = isLink ? where : `https://www.openstreetmap.org/search?${new URLSearchParams({ query: where })}`;
    line.append(" ", makeLink(isLink ? where : words.map, address, { target: "_blank", rel: "noopener" }));
    return line;
  }

  /** The link of the video call, or that it follows. */
  function conferenceLine({ conference }) {
    if (!conference || conference.problem) return null;
    const { url } = conference;
    if (!url) return make("p", words.link_follows);
    const line = make("p", words.video_call);
    line.append(" ", makeLink(url, url, { target: "_blank", rel: "noopener" }));
    return line;
  }

  function linksLine(links) {
    if (!links.length) return null;
    const line = make("p", "", { className: "more" });
    line.append(...links.map(([text, href, values]) => makeLink(text, href, { className: "quiet", ...values })));
    return line;
  }

  /** Of a link that the service signed: the same address on the host of this page. */
  const here = (url) => url && new URL(url).pathname + new URL(url).search;

  /** The calendars that the booking can be added to; none where it is not confirmed. */
  function calendarLine({ event, conference, customer_action_links: links = {} }) {
    if (!links.calendar) return null;
    const [start, end] = span(event).map((instant) => iso(instant));
    const place = event.where || (conference?.url ?? "");
    const compact = (instant) => instant.replace(/[-:]/g, "");
    const google = new URLSearchParams({
      action: "TEMPLATE",
      text: event.what,
      dates: `${compact(start)}/${compact(end)}`,
      location: place,
    });
    const outlook = new URLSearchParams({
      path: "/calendar/action/compose",
      rru: "addevent",
      subject: event.what,
      startdt: start,
      enddt: end,
      location: place,
    });
    const other = { target: "_blank", rel: "noopener" };
    return linksLine([
      [words.calendar, here(links.calendar), { download: "booking.ics" }],
      [words.google, `https://calendar.google.com/calendar/render?${google}`, other],
      [words.outlook, `https://outlook.live.com/calendar/0/deeplink/compose?${outlook}`, other],
      [words.microsoft, `https://outlook.office.com/calendar/0/deeplink/compose?${outlook}`, other],
    ]);
  }

  function manageLine(booking) {
    const { reschedule, cancel_by_customer: cancel } = booking.customer_action_links ?? {};
    const choices = [
      [words.move, here(reschedule)],
      [words.cancel, here(cancel)],
    ];
    const line = linksLine(choices.filter(([, href]) => href));
    if (host && cancel) {
      const ask = (event) => {
        event.preventDefault();
        askToCancel(booking, line);
      };
      line.lastElementChild.addEventListener("click", ask);
    }
    return line;
  }

  /** In a frame the booking is cancelled here, so that the page around it hears of it. */
  function askToCancel(booking, line) {
    const question = make("p", "", { className: "more", tabIndex: -1 });
    const keep = () => {
      question.replaceWith(line);
      line.lastElementChild.focus();
    };
    question.append(
      make("strong", words.cancel_question),
      makeButton(words.cancel, "danger", () => cancelHere(booking)),
      makeButton(words.cancel_keep, "quiet", keep),
    );
    line.replaceWith(question);
    question.focus();
  }

  let isCancelling = false;

  async function cancelHere(booking) {
    if (isCancelling) return null;
    isCancelling = true;
    const status = await fetch(here(booking.customer_action_links.cancel_by_customer), {
      method: "POST",
      credentials: "omit",
      signal: AbortSignal.timeout(PATIENCE * 1000),
    }).then((response) => response.status, () => 0);
    isCancelling = false;
    if (status !== 200) return showNotice(status === 409 ? words.cancel_refused : words.offline);
    clearNotice();
    history.replaceState(null, "", addressWith(NOWHERE));
    postToEmbeddingPage("cancelled", { id: booking.id });
    const title = make("h2", words.cancelled, { tabIndex: -1 });
    by("done").replaceChildren(title, againLine());
    return title.focus();
  }

  /** To the project's own page, where the payment comes before it. */
  function onwardLine(booking) {
    if (!page.redirect) return null;
    return linksLine([[words.onward, withBooking(page.redirect, booking)]]);
  }

  function againLine() {
    const again = make("p", "");
    again.append(make("a", words.another, { href: location.pathname }));
    return again;
  }

  function showDone({ booking: booked, email: address, paidBy }) {
    const booking = { ...booked, event: readable(booked.event) };
    const slot = span(booking.event);
    const [heading, sentence] = page.outcome;
    const names = booking.resources.map(({ name }) => name).filter(Boolean).join(", ");
    const place = booking.resource.timezone;
    const isElsewhere = slotWords(slot, place) !== slotWords(slot);
    const there = { zone: zoneWords(place), time: slotWords(slot, place) };
    const lines = [
      make("p", `${slotWords(slot)} (${zoneWords(zone)})`, { className: "lines" }),
      isElsewhere && make("p", fill(words.there, there)),
      ...numberLines(booking),
      stepList(booking.steps),
      !booking.steps.length && names && make("p", fill(words.with, { name: names })),
      placeLine(booking.event),
      conferenceLine(booking),
      sentence && make("p", sentence),
      ...payment({ paidBy, booking }),
      onwardLine(booking),
      page.success && address && make("p", page.success.replaceAll("%s", () => address), { className: "lines" }),
      calendarLine(booking),
      manageLine(booking),
    ];
    const title = make("h2", heading, { tabIndex: -1 });
    showStep("done");
    clearNotice();
    say("");
    by("done").replaceChildren(title, ...lines.filter(Boolean), againLine());
    title.focus();
  }

  return showDone;
}
