"use strict";

// Most keys come with an empty user name, which the form for credentials would not take.
const noUserNeeded = (system) => ({
  wrapComponents: {
    Input: (Original) => (props) =>
      system.React.createElement(Original, { ...props, required: undefined }),
  },
});

SwaggerUIBundle({
  url: document.getElementById("docs").dataset.document,
  dom_id: "#docs",
  presets: [SwaggerUIBundle.presets.apis],
  plugins: [noUserNeeded],
  layout: "BaseLayout",
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  filter: true,
  // Without this the page would ask a validator on another host.
  validatorUrl: null,
  // The key alone counts: no cookie goes along, and a 401 is shown instead of the browser's prompt.
  requestInterceptor: (request) => {
    request.credentials = "omit";
    return request;
  },
});
