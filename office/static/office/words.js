// Texts for the scripts, in the page's language. `officeWords("calendar")` are those of
// office/<package>/script_words.py; `officeFill(text, {name})` replaces `{name}`;
// `officePlural(forms, count)` chooses the form for a number and replaces `{count}`.
"use strict";
(() => {
  let all;
  const read = () => (all ??= JSON.parse(document.getElementById("office-words").textContent));

  // Read at first use: scripts in the head run before the page is there.
  window.officeWords = (script) => new Proxy({}, { get: (_, name) => read()[script][name] });

  window.officeFill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);

  // The forms by CLDR's names of plural categories: `{one: "{count} row", other: "{count} rows"}`.
  window.officePlural = (forms, count) => {
    const category = new Intl.PluralRules(document.documentElement.lang).select(count);
    return window.officeFill(forms[category] ?? forms.other, { count });
  };
})();
