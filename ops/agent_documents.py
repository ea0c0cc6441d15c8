"""What programs look for at fixed addresses: /llms.txt (llmstxt.org) and the catalogue of APIs
(RFC 9727).
"""

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

CATALOG_PATH = "/.well-known/api-catalog"
CATALOG_TYPE = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"'
LLMS_TEXT = """\
# Scheduling and booking

> A service on which businesses offer appointments, classes and things to rent. Programs find free
> times and book them through a JSON API.

To book for a person:

1. Find the service. Its booking page has the address `{url}/book/<service>`, which the business
   gives you. `{url}/book/<business>.md` lists the services of a business.
2. Read `{url}/book/<service>.md`: what is booked, the next free times, the questions to the
   customer, and complete requests with the page's public key. No other key is needed.
3. Ask the customer for the answers and for consent, then send the booking once, with an
   `Idempotency-Key`. The customer gets an e-mail with links to move or cancel.

Every error has a `code`: after 409 `slot_taken` offer `alternatives`; 422 `invalid` names the wrong
values in `errors`; after 429 wait for the seconds in `Retry-After`.

To work for a business, use a key of the business: `Authorization: Bearer <key>`. The tools of
`{url}{mcp}` (Model Context Protocol) take it too.

## API

- [OpenAPI document]({url}/v2/openapi.json): every operation, field and error
- [Reference]({url}/docs): the same for people
- [Version and limits]({url}/v2): limits of requests, and addresses

## Documentation

- [Guide]({url}/docs/guide/): the concepts, with examples
- [Agents]({url}/docs/guide/agents/): tools, confirmations, and booking without a key
- [Public booking]({url}/docs/guide/holds-and-public-booking/): holds, limits and proof of work
- [Errors and lists]({url}/docs/guide/errors-and-lists/): codes, repeated requests, pages
"""


@require_safe
def show_llms_text(request: HttpRequest) -> HttpResponse:
    text = LLMS_TEXT.format(url=settings.PUBLIC_URL, mcp=reverse("mcp"))
    return HttpResponse(text, content_type="text/plain; charset=utf-8")


@require_safe
def show_api_catalog(request: HttpRequest) -> HttpResponse:
    """The links of the API. Programs read its own address in the Link header of HEAD."""
    url = settings.PUBLIC_URL
    links = {
        "anchor": f"{url}/v2",
        "service-desc": [{"href": f"{url}/v2/openapi.json", "type": "application/json"}],
        "service-doc": [
            {"href": f"{url}/docs", "type": "text/html"},
            {"href": f"{url}/docs/guide/", "type": "text/html"},
            {"href": f"{url}/llms.txt", "type": "text/plain"},
        ],
        "service-meta": [{"href": f"{url}/v2", "type": "application/json"}],
        "status": [{"href": f"{url}/healthz", "type": "application/json"}],
    }
    response = JsonResponse({"linkset": [links]}, content_type=CATALOG_TYPE)
    response["Link"] = f'<{url}{CATALOG_PATH}>; rel="api-catalog"'
    return response
