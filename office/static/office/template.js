// The editor of a mail's words: shows what the mail would say, a moment after the last key.
"use strict";
(() => {
  const ALL_PARTS = ["subject", "heading", "body", "text", "html"];
  const PAUSE = 400; // milliseconds
  // The mail is a stranger's document: it loads nothing and runs nothing.
  const POLICY = `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">`;

  const form = document.getElementById("template");
  const PARTS = ALL_PARTS.filter((part) => form.elements[part]);
  const frame = document.getElementById("preview-html");
  const words = officeWords("template");
  const status = document.getElementById("preview-status");
  const token = form.querySelector("[name=csrfmiddlewaretoken]").value;
  let latest = 0;
  let timer = 0;

  function typed() {
    const body = {};
    for (const part of PARTS) {
      const text = form.elements[part].value;
      if (text !== form.elements[`shown-${part}`].value) body[part] = text;
    }
    return body;
  }

  function say(errors) {
    for (const part of PARTS) {
      const faults = (errors[part] ?? []).join(" ");
      const place = document.getElementById(`${part}-fault`);
      place.textContent = faults;
      if (faults) place.closest("details")?.setAttribute("open", "");
      form.elements[part].toggleAttribute("aria-invalid", Boolean(faults));
    }
  }

  async function preview() {
    const number = ++latest;
    try {
      const answer = await fetch(form.dataset.preview, {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-CSRFToken": token },
        body: JSON.stringify(typed()),
      });
      const found = await answer.json();
      if (number !== latest) return; // a later one is on its way
      say(found.errors ?? {});
      status.textContent = found.data ? "" : words.faulty;
      if (found.data) show(found.data);
    } catch {
      if (number === latest) status.textContent = words.unavailable;
    }
  }

  function show(mail) {
    document.getElementById("preview-subject").textContent = mail.subject;
    document.getElementById("preview-text").textContent = mail.text;
    frame.srcdoc = POLICY + mail.html;
  }

  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(preview, PAUSE);
  });
  // A variable goes where the caret was last.
  let target = form.elements.body;
  form.addEventListener("focusin", (event) => {
    if (["subject", "heading", "body"].includes(event.target.name)) target = event.target;
  });
  form.addEventListener("click", (event) => {
    const variable = event.target.dataset.insert;
    if (!variable) return;
    target.setRangeText(variable, target.selectionStart, target.selectionEnd, "end");
    target.focus();
    target.dispatchEvent(new Event("input", { bubbles: true }));
  });
  preview();
})();
