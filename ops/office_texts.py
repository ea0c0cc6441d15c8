"""The back office's texts to translate, found in its sources: `office/locale/en/.../django.po`."""

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract
from babel.messages.pofile import write_po
from django.conf import settings
from django.utils.translation.template import templatize

from common.shipped_languages import OFFICE, SOURCE_LANGUAGE, catalogue_folder
from office.base.model_labels import shown_labels
from ops.translation_catalogues import NO_DATE, read_catalogue

# Functions whose arguments are texts: their positions, "c" is the context.
KEYWORDS = {
    **dict.fromkeys(("_", "gettext", "gettext_lazy", "noop"), None),
    **dict.fromkeys(("ngettext", "ngettext_lazy", "Plural"), (1, 2)),
    **dict.fromkeys(("pgettext", "pgettext_lazy"), ((1, "c"), 2)),
    **dict.fromkeys(("npgettext", "npgettext_lazy"), ((1, "c"), 2, 3)),
}
# A message of a service: other functions mark texts of the package's own catalogue.
MESSAGES = {"Message": None}
SERVICES = (
    *("common", "apps_config", "availability", "bookings", "notifications"),
    *("external_calendars", "access"),
)
HEAD = """\
# The texts of the back office, written by `manage.py extract_office_texts`. Those with an English
# translation are texts of django-allauth: one name per thing on all pages."""


class Sentence(NamedTuple):
    """A text to translate: `id` is a pair if it has a plural."""

    id: str | tuple[str, str]
    context: str | None


def find_sentences() -> dict[Sentence, list[str]]:
    """Return the texts in templates, code and models, each with its comments for translators."""
    places: dict[Sentence, list[str]] = {}
    for file, keywords in _sources():
        for sentence, comments in _sentences_of(file, keywords):
            places.setdefault(sentence, []).extend(comments)
    for label in sorted(shown_labels()):
        places.setdefault(Sentence(label, None), [])
    return places


def english_file() -> Path:
    return catalogue_folder(OFFICE) / SOURCE_LANGUAGE / "LC_MESSAGES" / "django.po"


def complete_catalogue() -> Catalog:
    """Return the English catalogue with all texts, and its English for texts of django-allauth."""
    reworded = [message for message in read_catalogue(english_file()) if is_reworded(message)]
    catalogue = Catalog(locale=SOURCE_LANGUAGE, header_comment=HEAD, creation_date=NO_DATE)
    for sentence, comments in find_sentences().items():
        catalogue.add(sentence.id, context=sentence.context, auto_comments=comments)
    for message in reworded:
        catalogue.add(message.id, message.string, context=message.context)
    for message in catalogue:
        message.flags.clear()
    return catalogue


def is_reworded(message: Message) -> bool:
    """Return whether the English catalogue replaces a text, which is none of the back office's."""
    return bool(message.id) and any(_forms(message))


def _forms(message: Message) -> tuple[str, ...]:
    return (message.string,) if isinstance(message.string, str) else tuple(message.string or ())


def render_catalogue(catalogue: Catalog) -> bytes:
    """Return the text of a `django.po`, with the few headers that the others have, too."""
    content = BytesIO()
    write_po(content, catalogue, width=100, omit_header=True)
    head = [
        HEAD,
        'msgid ""',
        'msgstr ""',
        f'"Language: {SOURCE_LANGUAGE}\\n"',
        '"Content-Type: text/plain; charset=UTF-8\\n"',
        '"Plural-Forms: nplurals=2; plural=(n != 1);\\n"',
        "",
        "",
    ]
    return "\n".join(head).encode() + content.getvalue()


def _sources() -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield each file with the functions whose arguments are texts of the back office."""
    folder = Path(settings.BASE_DIR) / OFFICE
    for suffix in ("html", "py"):
        yield from ((file, KEYWORDS) for file in sorted(folder.rglob(f"*.{suffix}")))
    for package in SERVICES:
        folder = Path(settings.BASE_DIR) / package
        yield from ((file, MESSAGES) for file in sorted(folder.rglob("*.py")))


def _sentences_of(file: Path, keywords: dict[str, Any]) -> Iterator[tuple[Sentence, list[str]]]:
    source = file.read_text("utf-8")
    if file.suffix == ".html":
        # In brackets, the indentation of the template means nothing.
        source = f"(\n{templatize(source)}\n)"
    lines = BytesIO(source.encode())
    for _line, ids, comments, context in extract(
        "python", lines, keywords, comment_tags=("Translators:",), strip_comment_tags=True
    ):
        yield Sentence(ids if isinstance(ids, str) else (ids[0], ids[1]), context), list(comments)
