"""The documentation's site below /docs/, with its guide at /docs/guide/.

`scripts/docs` builds the site into DOCS_ROOT, which is part of the image. Without it, the pages say
how to build it.
"""

import base64
import hashlib
import re

from django.conf import settings
from django.http import HttpRequest, HttpResponseNotFound
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_safe
from django.views.static import serve

NOT_BUILT = (
    "The documentation is not built here. Build it with scripts/docs, or read the files of docs/.\n"
)
# The theme has a few scripts in its pages; its style sheet has its icons in data: URLs.
INLINE_SCRIPT = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


def has_documentation() -> bool:
    return (settings.DOCS_ROOT / "guide" / "index.html").is_file()


@require_safe
def show_documentation(request: HttpRequest, path: str) -> HttpResponseBase:
    """Return a file of the site; `guide/` is `guide/index.html`, and `guide` leads to `guide/`."""
    if not has_documentation():
        return HttpResponseNotFound(NOT_BUILT, content_type="text/plain; charset=utf-8")
    path = path.lstrip("/")  # as `serve` does
    name = path.rpartition("/")[2]
    if name and "." not in name:
        return redirect(f"{request.path}/")
    path = path if name else f"{path}index.html"
    response = serve(request, path, document_root=str(settings.DOCS_ROOT))
    is_page = path.endswith(".html")
    scripts = INLINE_SCRIPT.findall((settings.DOCS_ROOT / path).read_bytes()) if is_page else []
    response["Content-Security-Policy"] = content_security_policy(scripts)
    response["Referrer-Policy"] = "no-referrer"
    # Browsers ask whether a file has changed: the files of one release fit each other.
    response["Cache-Control"] = "no-cache"
    return response


def content_security_policy(inline_scripts: list[bytes]) -> str:
    """Allow the site's own files, and these scripts by their digests."""
    digests = [base64.b64encode(hashlib.sha256(one).digest()).decode() for one in inline_scripts]
    scripts = " ".join(["'self'", *(f"'sha256-{digest}'" for digest in digests)])
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {scripts}",
            "worker-src 'self'",
            "style-src 'self'",
            "img-src 'self' data:",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        ]
    )
