"""The language of the back office: the person's choice, else the browser's, else English."""

from django.conf import settings
from django.http import HttpRequest
from django.utils.translation import get_language_info

from bookings.pages.formatting import accepted_languages, language_of
from common.shipped_languages import SOURCE_LANGUAGE, shipped_languages


def language_of_request(request: HttpRequest) -> str:
    """Return the language of the cookie, else the first that the browser accepts, else English."""
    chosen = request.COOKIES.get(settings.LANGUAGE_COOKIE_NAME)
    accepted = accepted_languages(request.headers.get("Accept-Language", ""))
    found = language_of(None, chosen, *accepted)
    return found if found in shipped_languages() else SOURCE_LANGUAGE


def has_languages(request: HttpRequest) -> bool:
    return len(shipped_languages()) > 1


def menu_languages(request: HttpRequest) -> list[dict[str, str]]:
    """Return the languages for the account's menu in the theme's format, with Django's codes."""
    codes = [code.lower() for code in shipped_languages()]
    names = {code: get_language_info(code)["name_local"] for code in codes}
    return [
        {"code": code, "name_local": name[:1].upper() + name[1:]} for code, name in names.items()
    ]
