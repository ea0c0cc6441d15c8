// Parts of the form of a new booking: known customers as one types, the project's questions, how many
// are booked and whom it takes, the conflicts of a series. `officeNewBooking(form, ask, page)` makes them; `ask(url)` returns JSON.
"use strict";
window.officeNewBooking = (form, ask, page) => {
  const texts = officeWords("new_booking");
  const PAUSE = 200; // ms without a key before customers are looked up
  const MAX_RULES = 3; // of those that keep times of a series closed
  const fields = form.elements;

  function make(name, attributes = {}, ...content) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...content);
    return element;
  }

  function projectId() {
    const [kind, name] = fields.through.value.split(/:(.*)/);
    return kind === "project" ? name : "";
  }

  // --- Known customers --------------------------------------------------------------------------
  const { name: input } = fields;
  const list = form.querySelector("#cal-known");
  const said = form.querySelector("#cal-known-said");
  let customers = [];
  let active = -1;
  let typed = 0; // only the latest look-up counts
  let timer;

  async function suggest() {
    const number = ++typed;
    const query = new URLSearchParams({ resource_id: fields.resource_id.value, q: input.value });
    const { ok, body } = await ask(`${page.customers}?${query}`);
    if (number !== typed || document.activeElement !== input) return;
    show(ok ? body.data.customers : []);
    said.textContent = customers.length ? officePlural(texts.suggestions, customers.length) : texts.no_suggestions;
  }

  function show(found) {
    customers = found;
    list.replaceChildren(...customers.map((customer, index) => {
      const contact = [customer.email, customer.phone].filter(Boolean).join(" · ");
      const option = make("li", { id: `cal-known-${index}`, role: "option", "aria-selected": "false" },
        make("strong", { dir: "auto" }, customer.name || customer.email), make("span", {}, ` ${contact}`));
      // Before the field loses the focus, which would hide the list.
      option.addEventListener("mousedown", (event) => event.preventDefault());
      option.addEventListener("click", () => choose(customer));
      return option;
    }));
    list.hidden = !customers.length;
    input.setAttribute("aria-expanded", String(!list.hidden));
    move(-1);
  }

  function move(index) {
    active = index;
    [...list.children].forEach((option, number) => option.setAttribute("aria-selected", String(number === index)));
    if (index < 0) input.removeAttribute("aria-activedescendant");
    else input.setAttribute("aria-activedescendant", list.children[index].id);
    list.children[index]?.scrollIntoView({ block: "nearest" });
  }

  function choose(customer) {
    close();
    for (const key of ["name", "email", "phone"]) fields[key].value = customer[key];
  }

  // Fills in the known customer with the e-mail address.
  async function chooseKnown(email) {
    const query = new URLSearchParams({ resource_id: fields.resource_id.value, q: email });
    const { ok, body } = await ask(`${page.customers}?${query}`);
    const known = ok && body.data.customers.find((customer) => customer.email === email);
    if (known && !input.value) choose(known);
  }

  function close() {
    typed += 1;
    clearTimeout(timer);
    show([]);
    said.textContent = "";
  }

  input.addEventListener("input", () => {
    clearTimeout(timer);
    if (input.value.trim().length < 3) close();
    else timer = setTimeout(suggest, PAUSE);
  });
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (list.hidden || event.isComposing) return;
    const last = customers.length - 1;
    if (event.key === "ArrowDown") move(active < last ? active + 1 : 0);
    else if (event.key === "ArrowUp") move(active > 0 ? active - 1 : last);
    else if (event.key === "Enter" && active >= 0) choose(customers[active]);
    else if (event.key === "Escape") close(); // the list, not the dialog
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  // --- The project's questions ------------------------------------------------------------------
  const questions = form.querySelector("#cal-questions");
  let asked = ""; // the resource and the project whose questions are shown

  async function loadQuestions() {
    const project = projectId();
    const resource = fields.resource_id.value;
    fields.what.placeholder = fields.through.selectedOptions[0]?.dataset.what ?? "";
    if (asked === `${resource} ${project}`) return;
    const isSameProject = asked.split(" ")[1] === project;
    const known = asked = `${resource} ${project}`;
    if (isSameProject && project) return nameResource(); // and the answers stay
    questions.replaceChildren();
    questions.hidden = true;
    showChoices({ most: 1, requirements: [] });
    const query = new URLSearchParams({ resource_id: resource, project_id: project });
    const { ok, body } = await ask(`${page.questions}?${query}`);
    if (known !== asked || !ok) return;
    questions.replaceChildren(...body.data.questions.flatMap(makeQuestion));
    questions.hidden = !questions.children.length;
    showChoices(body.data);
  }

  // --- How many, and whom it takes --------------------------------------------------------------
  const numbers = form.querySelector("#cal-numbers");
  const named = form.querySelector("#cal-named");

  function showChoices({ most, takes_party: takesParty, takes_any: takesAny, requirements }) {
    for (const [name, isShown] of [["quantity", most > 1], ["party_size", takesParty]]) {
      fields[name].closest("div").hidden = !isShown;
      if (!isShown) fields[name].value = "";
    }
    fields.quantity.max = most;
    numbers.hidden = most === 1 && !takesParty;
    form.querySelector("#cal-any").hidden = !takesAny;
    if (!takesAny) fields.any_resource.checked = false;
    named.replaceChildren(...requirements.map(({ name, resources }) => {
      const choice = make("select", { "data-named": name }, new Option(texts.anyone, ""),
        ...resources.map((each) => new Option(each.name, each.id)));
      const error = make("p", { class: "time-error", "data-error": `resources.${name}`, hidden: "" });
      const label = make("label", {}, make("span", { dir: "auto" }, name), choice);
      const place = make("div", {});
      place.append(label, error);
      return place;
    }));
    named.hidden = !requirements.length;
    nameResource();
  }

  // The resource of the form is that of the first requirement that it fits.
  function nameResource() {
    const choices = [...named.querySelectorAll("[data-named]")];
    const wanted = fields.resource_id.value;
    const fitting = choices.find((choice) => [...choice.options].some(({ value }) => value === wanted));
    for (const choice of choices) choice.value = choice === fitting ? wanted : "";
  }

  // As in the body of a booking. With requirements they say which resources it takes.
  function wanted() {
    const choices = [...named.querySelectorAll("[data-named]")];
    const chosen = choices.filter(({ value }) => value).map(({ dataset, value }) => [dataset.named, value]);
    return {
      ...(fields.quantity.value ? { quantity: Number(fields.quantity.value) } : {}),
      ...(fields.party_size.value ? { party_size: Number(fields.party_size.value) } : {}),
      ...(choices.length || fields.any_resource.checked ? { any_resource: true } : {}),
      ...(chosen.length ? { resources: Object.fromEntries(chosen) } : {}),
    };
  }

  function makeQuestion({ key, title, element, type, choices, length, value }) {
    const error = make("p", { class: "time-error", "data-error": `customer.${key} customer.meta.${key}`, hidden: "" });
    const answer = make(["select", "textarea"].includes(element) ? element : "input", { "data-answer": key });
    if (element === "checkbox") {
      Object.assign(answer, { type: "checkbox", defaultChecked: Boolean(value) });
      return [make("label", { class: "cal-check", dir: "auto" }, answer, ` ${title}`), error];
    }
    if (element === "select") answer.append(new Option(texts.no_answer, ""), ...choices.map((choice) => new Option(choice, choice)));
    else answer.maxLength = length;
    if (element === "textarea") answer.rows = 2;
    if (element === "input") Object.assign(answer, { type, autocomplete: "off" });
    answer.dir = "auto";
    answer.value = value ?? "";
    return [make("label", { dir: "auto" }, title, answer), error];
  }

  function answers() {
    return Object.fromEntries([...questions.querySelectorAll("[data-answer]")]
      .map((answer) => [answer.dataset.answer, answer.type === "checkbox" ? answer.checked : answer.value])
      .filter(([, value]) => value)); // an empty box is no answer
  }

  // --- A series ---------------------------------------------------------------------------------
  const conflicts = form.querySelector("#cal-conflicts");
  const { repeat, times, until } = fields;

  function showRepeat() {
    form.querySelector("#cal-repeat").hidden = !repeat.value;
    conflicts.hidden = true;
  }
  repeat.addEventListener("change", showRepeat);
  // A number of times, or a last day: the one that was entered last counts.
  times.addEventListener("input", () => { until.value = ""; });
  until.addEventListener("input", () => { times.value = until.value ? "" : times.defaultValue; });
  form.addEventListener("input", () => { conflicts.hidden = true; });

  // The times of a series that can't be booked; `bookOthers` books the others.
  function showConflicts({ occurrences, bookable, reasons }, bookOthers) {
    const rules = [...new Set((reasons ?? []).map(({ text }) => text))].slice(0, MAX_RULES);
    const lines = occurrences.map(({ text, reason }) =>
      make("li", {}, officeFill(texts.conflict, { time: text, reason: texts[reason] ?? reason })));
    const back = make("button", { type: "button", class: "time-button" }, texts.go_back);
    back.addEventListener("click", () => {
      conflicts.hidden = true;
      repeat.focus();
    });
    const buttons = make("p", { class: "cal-ends" }, back);
    if (bookable > 0) {
      const others = make("button", { type: "button", class: "time-button is-main" }, officePlural(texts.book_others, bookable));
      others.addEventListener("click", bookOthers);
      buttons.append(" ", others);
    }
    conflicts.replaceChildren(
      make("p", {}, officePlural(texts.conflicts, occurrences.length)), make("ul", {}, ...lines),
      ...rules.map((text) => make("p", { class: "time-note" }, text)),
      ...(occurrences.some(({ reason }) => reason === "not_available") ? [make("p", { class: "time-note" }, texts.anyway)] : []),
      buttons);
    conflicts.hidden = false;
    conflicts.focus();
    conflicts.scrollIntoView({ block: "nearest" });
  }

  // --- The form ---------------------------------------------------------------------------------
  return {
    chooseKnown,
    loadQuestions,
    showConflicts,
    wanted,
    reset() {
      close();
      asked = "";
      showChoices({ most: 1, requirements: [] });
      showRepeat();
    },
    body() {
      const what = fields.what.value || (projectId() ? fields.what.placeholder : "");
      return {
        customer: { ...answers(), name: fields.name.value, email: fields.email.value, phone: fields.phone.value },
        ...(what ? { what } : {}),
        ...(fields.note.value ? { note: fields.note.value } : {}),
        ...wanted(),
        ...(repeat.value ? { repeat: repeat.value, times: times.value, until: until.value } : {}),
        notify: fields.notify.checked,
      };
    },
  };
};
