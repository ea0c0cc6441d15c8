"use strict";

const page = document.getElementById("docs");
const LANGUAGES = ["curl", "Python", "JavaScript"];
let language = LANGUAGES[0];

// Most keys come with an empty user name, which the form for credentials would not take.
const noUserNeeded = (system) => ({
  wrapComponents: {
    Input: (Original) => (props) =>
      system.React.createElement(Original, { ...props, required: undefined }),
  },
});

// The long introduction is closed at first, so that the first operations are on the first screen.
const foldedIntroduction = (system) => ({
  wrapComponents: {
    InfoContainer: (Original) => (props) =>
      system.React.createElement(
        "details",
        { className: "docs-introduction" },
        system.React.createElement("summary", null, "Introduction: keys, errors, lists, times"),
        system.React.createElement(Original, props),
      ),
  },
});

// Samples in three languages, above the responses of each operation.
const withSamples = (openapi) => (system) => {
  const { createElement, useState } = system.React;
  const Samples = ({ path, method }) => {
    const [chosen, choose] = useState(language);
    const texts = samplesOf(openapi, path, method, window.location.origin);
    return createElement(
      "section",
      { className: "docs-samples" },
      createElement("h4", null, "Sample"),
      createElement(
        "div",
        { role: "group", "aria-label": "Language of the sample" },
        ...LANGUAGES.map((name) =>
          createElement(
            "button",
            {
              key: name,
              type: "button",
              "aria-pressed": name === chosen,
              onClick: () => {
                language = name;
                choose(name);
              },
            },
            name,
          ),
        ),
        createElement(
          "button",
          { type: "button", onClick: () => navigator.clipboard?.writeText(texts[chosen]) },
          "Copy",
        ),
      ),
      createElement("pre", { tabIndex: 0, "aria-label": `Sample in ${chosen}` }, texts[chosen]),
    );
  };
  return {
    wrapComponents: {
      responses: (Original) => (props) =>
        createElement(
          system.React.Fragment,
          null,
          createElement(Samples, { path: props.path, method: props.method }),
          createElement(Original, props),
        ),
    },
  };
};

const showReference = (openapi) => {
  const ui = SwaggerUIBundle({
    spec: openapi,
    dom_id: "#docs",
    presets: [SwaggerUIBundle.presets.apis],
    plugins: [noUserNeeded, foldedIntroduction, withSamples(openapi)],
    layout: "BaseLayout",
    deepLinking: true,
    docExpansion: "list",
    defaultModelsExpandDepth: 0,
    // Without this the page would ask a validator on another host.
    validatorUrl: null,
    // The key alone counts: no cookie goes along, and a 401 is shown instead of the browser's prompt.
    requestInterceptor: (request) => {
      request.credentials = "omit";
      return request;
    },
  });
  buildNavigation(document.getElementById("docs-navigation"), openapi, (tag, id) => {
    ui.layoutActions.show(["operations-tag", tag], true);
    ui.layoutActions.show(["operations", tag, id], true);
    document.getElementById(`operations-${tag}-${id}`)?.scrollIntoView();
  });
};

const darkScheme = window.matchMedia("(prefers-color-scheme: dark)");
const followScheme = () => document.documentElement.classList.toggle("dark-mode", darkScheme.matches);
darkScheme.addEventListener("change", followScheme);
followScheme();
fetch(page.dataset.document)
  .then((response) => response.json())
  .then(showReference);
