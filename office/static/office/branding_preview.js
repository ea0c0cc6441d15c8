// The colour picker of an app's branding, and its preview: shows what is typed on the booking page in the frame, before it is
// saved. The texts go in as text; the colour comes from the service's stylesheet, which makes it
// readable.

addEventListener("DOMContentLoaded", () => {
  const preview = document.getElementById("branding-preview");
  const field = (name) => document.getElementById(`id_${name}`);
  if (field("accent_color")) addPicker(field("accent_color"));
  if (!preview || !field("accent_color")) return;
  field("accent_color").closest("fieldset")?.append(preview);
  const frame = preview.querySelector("iframe");
  let logo = ""; // a data: URL of the file that was chosen
  const valueOf = (name) => field(name).value.trim();

  /** Puts a colour picker beside the text: each shows the colour of the other. */
  function addPicker(text) {
    const picker = Object.assign(document.createElement("input"), { type: "color", className: "office-color" });
    picker.ariaLabel = officeWords("branding").pick;
    const standard = "#1f4f99"; // of the service: `--button` in page.css
    const follow = () => {
      const color = text.value.trim().toLowerCase() || standard;
      if (/^#[0-9a-f]{6}$/.test(color)) picker.value = color;
    };
    picker.addEventListener("input", () => {
      text.value = picker.value;
      text.dispatchEvent(new Event("input", { bubbles: true }));
    });
    text.addEventListener("input", follow);
    text.after(picker);
    follow();
  }

  /** The element with the text in it: made where it is missing, removed where there is no text. */
  function showText(page, selector, text, make) {
    let found = page.querySelector(selector);
    if (!text) return found?.remove();
    if (!found) {
      found = page.createElement(make.tag);
      make.place(found);
    }
    found.textContent = text;
    return found;
  }

  function showColor(page) {
    const color = valueOf("accent_color").toLowerCase();
    let link = page.querySelector("link[href*='/book/looks/']");
    if (!color) link?.remove();
    if (!/^#[0-9a-f]{6}$/.test(color)) return;
    if (!link) {
      link = Object.assign(page.createElement("link"), { rel: "stylesheet" });
      page.head.append(link);
    }
    link.href = `/book/looks/${color.slice(1)}.css`;
  }

  function showTexts(page) {
    const main = page.querySelector("main");
    page.querySelector(".cover")?.remove(); // a shortened one: what is typed is shown whole
    const place = (text) => {
      const cover = Object.assign(page.createElement("div"), { className: "cover" });
      cover.append(Object.assign(text, { className: "lines" }));
      main.before(cover);
    };
    showText(page, ".cover p", valueOf("cover_text"), { tag: "p", place });
    const footer = page.querySelector("footer") ?? page.createElement("footer");
    if (!footer.isConnected) main.after(footer);
    const address = showText(page, "footer address", valueOf("address"), {
      tag: "address",
      place: (made) => footer.prepend(made),
    });
    if (address) address.style.whiteSpace = "pre-line";
    for (const name of ["imprint", "privacy"]) {
      const words = frame.dataset[name];
      const url = valueOf(`${name}_url`);
      const link = showText(page, `footer .${name}`, /^https?:\/\/\S/.test(url) && words, {
        tag: "a",
        place: (made) => footer.append(Object.assign(made, { className: name })),
      });
      if (link) Object.assign(link, { href: url, target: "_blank", rel: "noopener" });
    }
  }

  /** The chosen file, none where it is to be removed, else the stored logo. The page allows data: URLs. */
  function showLogo(page) {
    const header = page.querySelector("header");
    const stored = header?.querySelector(".logo:not(.chosen)");
    for (const shown of header?.querySelectorAll(".chosen") ?? []) shown.remove();
    if (stored) stored.hidden = Boolean(logo || field("removes_logo")?.checked);
    if (!logo) return;
    const image = { className: "logo chosen", src: logo, alt: "" };
    header?.prepend(Object.assign(page.createElement("img"), image));
  }

  function readLogo() {
    const input = field("logo_file");
    const [file] = input.files;
    const reader = new FileReader();
    reader.addEventListener("load", () => {
      if (input.files[0] !== file) return; // another one was chosen meanwhile
      logo = reader.result;
      show();
    });
    logo = "";
    if (file) reader.readAsDataURL(file);
    else show();
  }

  function show() {
    const page = frame.contentDocument;
    if (!page?.querySelector("main")) return;
    showColor(page);
    showTexts(page);
    showLogo(page);
  }

  frame.addEventListener("load", show);
  frame.src = frame.dataset.address; // a frame that is moved would load twice
  for (const name of ["accent_color", "cover_text", "address", "imprint_url", "privacy_url"]) {
    field(name).addEventListener("input", show);
  }
  field("logo_file")?.addEventListener("change", readLogo);
  field("removes_logo")?.addEventListener("change", show);
});
