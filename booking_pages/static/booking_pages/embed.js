// SPDX-License-Identifier: MIT
// Shows booking pages in other web sites. <script src="https://bookings.example.com/book/embed.js" async>
// data-booking-inline="slug" on an element: the page in its place. data-booking-popup="slug" on a
// link or button: the page in a dialog. data-booking-button="slug": that button floats in the corner.
// Events on that element: booking:height, booking:booked, booking:cancelled; `detail` has the values.
(() => {
  const service = new URL(document.currentScript.src).origin;
  const EVENTS = ["height", "booked", "cancelled"];
  const MAX_HEIGHT = 20000;
  const OPENERS = "[data-booking-popup], [data-booking-button]";
  const STYLE = `
    .booking-frame { display: block; width: 100%; height: 640px; border: 0; color-scheme: normal; }
    .booking-popup {
      width: min(1080px, calc(100vw - 32px)); max-height: calc(100vh - 32px); padding: 0; border: 0;
      border-radius: 12px; overflow: auto;
    }
    .booking-popup::backdrop { background: rgb(0 0 0 / 50%); }
    .booking-close {
      position: sticky; top: 0; float: inline-end; width: 44px; height: 44px; border: 0;
      border-radius: 8px; background: #fff; color: #1d2733; font: 24px/44px sans-serif; cursor: pointer;
    }
    [data-booking-button] {
      position: fixed; inset-block-end: 24px; inset-inline-end: 24px; z-index: 1000; border: 0;
      padding: 14px 22px; border-radius: 28px; background: #1f4f99; color: #fff; cursor: pointer;
      font: 600 16px/22px sans-serif; text-decoration: none; box-shadow: 0 4px 16px rgb(0 0 0 / 30%);
    }`;
  const shown = []; // {frame, target, close}

  // A style sheet of the script is allowed where the site's policy forbids inline styles.
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(STYLE);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];

  /** `query`: answers of the form, such as "name=Marty&email=marty@example.com". */
  function makeFrame(slug, { query = "", title = "" }) {
    const frame = document.createElement("iframe");
    frame.className = "booking-frame";
    frame.title = title || "Booking";
    // The page sends its messages to this origin alone.
    frame.name = `booking-embed ${location.origin}`;
    frame.src = `${service}/book/${encodeURIComponent(slug)}${query && `?${query}`}`;
    return frame;
  }

  function inline(target, slug, options = {}) {
    const frame = makeFrame(slug, options);
    shown.push({ frame, target });
    target.replaceChildren(frame);
  }

  /** The dialog traps the focus, closes by Escape and gives the focus back. */
  function open(slug, { opener = document, close = "Close", ...options } = {}) {
    const frame = makeFrame(slug, options);
    const dialog = document.createElement("dialog");
    dialog.className = "booking-popup";
    dialog.setAttribute("aria-label", frame.title);
    const button = Object.assign(document.createElement("button"), {
      type: "button",
      className: "booking-close",
      textContent: "×",
    });
    button.setAttribute("aria-label", close);
    button.addEventListener("click", () => dialog.close());
    dialog.addEventListener("click", ({ target }) => target === dialog && dialog.close());
    const entry = { frame, target: opener, close: () => dialog.close() };
    dialog.addEventListener("close", () => {
      shown.splice(shown.indexOf(entry), 1);
      dialog.remove();
    });
    shown.push(entry);
    dialog.append(button, frame);
    document.body.append(dialog);
    dialog.showModal();
  }

  function receive({ origin, source, data }) {
    if (origin !== service || typeof data?.booking !== "string") return;
    const entry = shown.find(({ frame }) => frame.contentWindow === source);
    if (!entry) return;
    const { booking: name, ...detail } = data;
    if (name === "close") entry.close?.();
    if (!EVENTS.includes(name)) return;
    if (name === "height") {
      if (!(detail.height > 0 && detail.height <= MAX_HEIGHT)) return;
      entry.frame.style.height = `${detail.height}px`;
    }
    entry.target.dispatchEvent(new CustomEvent(`booking:${name}`, { bubbles: true, detail }));
  }

  const optionsOf = ({ dataset, textContent }) => ({
    query: dataset.bookingQuery,
    title: dataset.bookingTitle || textContent.trim(),
    close: dataset.bookingClose,
  });

  function press(event) {
    const opener = event.target.closest?.(OPENERS);
    if (!opener || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const { bookingPopup, bookingButton } = opener.dataset;
    open(bookingPopup || bookingButton, { ...optionsOf(opener), opener });
  }

  function start() {
    for (const target of document.querySelectorAll("[data-booking-inline]")) {
      inline(target, target.dataset.bookingInline, optionsOf(target));
    }
  }

  addEventListener("message", receive);
  document.addEventListener("click", press);
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
  window.Booking = { inline, open };
})();
