"""The document at /v2/openapi.json: generated once per process, identical on every machine."""

import hashlib
import threading
from functools import cache

import orjson
from django.conf import settings
from django.http import HttpResponse
from django.utils.cache import get_conditional_response
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request

from common.api.views import PublicApiView
from common.openapi.component_registry import register_component
from common.openapi.components import FREE, TEXT
from common.openapi.generator import named_examples, parameters

_document_lock = threading.Lock()


def document_bytes() -> bytes:
    with _document_lock:
        return _make_document()


@cache
def _make_document() -> bytes:
    document = SchemaGenerator().get_schema(request=None, public=True)
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


@cache
def document_tag() -> str:
    return f'"{hashlib.sha256(document_bytes()).hexdigest()[:32]}"'


class DocumentView(PublicApiView):
    """Serves the document with an ETag, so that clients can cache it."""

    operation_ids = {"GET": "retrieveDescription"}
    json_only = False
    tag = "service"

    @extend_schema(
        summary="This description",
        description="OpenAPI 3.1. The response has an ETag: a request with If-None-Match gets 304"
        " without changes.",
        responses={
            200: register_component("schemas", "Description", FREE),
            304: OpenApiResponse(description="Not changed."),
        },
        parameters=parameters(headers={"ETag": TEXT, "Cache-Control": TEXT}),
        examples=named_examples(
            response={
                "its head": {
                    "openapi": "3.1.1",
                    "info": {"title": "…", "version": settings.VERSION},
                }
            }
        ),
    )
    def get(self, request: Request) -> HttpResponse:
        response = HttpResponse(
            document_bytes(),
            content_type="application/json",
            headers={"ETag": document_tag(), "Cache-Control": "public, no-cache"},
        )
        return get_conditional_response(request, etag=document_tag(), response=response) or response
