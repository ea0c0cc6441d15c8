"""No code but `common.email_address` compares e-mail addresses regardless of case, or changes it.

It would decide differently who somebody is: PostgreSQL's UPPER('ı') is 'I', Python's lower case of
the Kelvin sign is "k", and two spellings of a domain are one address.
"""

import ast
import re
from collections.abc import Iterator

import pytest
from django.db import connection

from tests.test_imports import LAYERS, ROOT

CASE = ("lower", "upper", "casefold")
IGNORES_CASE = re.compile(r"__i(exact|contains|startswith|endswith|regex)$")
IN_SQL = re.compile(r"\b(upper|lower|initcap)\s*\(|\bilike\b", re.IGNORECASE)
# Names of addresses, and in a module that has to do with e-mails also names of any text.
ADDRESS = re.compile(r"email|address|attendee|recipient|guest|user|holder|owner|actor|login", re.I)
ANY_TEXT = re.compile(r"\b(text|value|given|data|term|pattern)\b")

ALLOWED = {
    # Search: it shows rows, and decides nothing.
    "office/bookings/customer_search.py": {"email__istartswith", "email__icontains"},
    "office/notifications/deliveries.py": {"email__iendswith"},  # all addresses of a domain
    "office/command_search.py": {"term.lower()", "text.lower()"},  # names of pages
    "common/api/search_conditions.py": {") AS item WHERE upper(item) LIKE upper(%s))"},  # tags
    "availability/search/requirements.py": {"Lower('name')"},  # the order of resources
    # An HTTP method and a colour; the answer of an attendee.
    "apps_config/serializers.py": {"data.lower()", "super().to_internal_value(data).lower()"},
    "common/ical/occurrences.py": {"str(attendee.params.get('PARTSTAT', '')).upper()"},
    "external_calendars/event_formats/ical.py": {
        "str(attendee.params.get('PARTSTAT', NEEDS_ACTION)).upper()"
    },
    "notifications/mail/replies.py": {
        "str(getattr(attendee, 'params', {}).get('PARTSTAT', '')).upper()"
    },
}


def read_findings(source: str) -> Iterator[str]:
    """Yield the code that may change or ignore the case of an address."""
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    has_mails = re.search(r"e-?mail", source, re.IGNORECASE) is not None
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        ast.get_docstring(node, clean=False) for node in nodes if isinstance(node, documented)
    }
    for node in nodes:
        if isinstance(node, ast.Call) and is_finding(node, has_mails=has_mails):
            yield ast.unparse(node)
        elif isinstance(node, ast.keyword) and is_lookup(node.arg or ""):
            yield str(node.arg)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            is_sql = IN_SQL.search(node.value) and node.value not in docstrings
            if is_sql or is_lookup(node.value):
                yield " ".join(node.value.split())


def is_lookup(name: str) -> bool:
    return bool(IGNORES_CASE.search(name) and ADDRESS.search(name))


def is_finding(call: ast.Call, *, has_mails: bool) -> bool:
    name = getattr(call.func, "id", getattr(call.func, "attr", ""))
    if name == "text_with_wildcards":
        return ADDRESS.search(ast.unparse(call)) is not None
    if name in CASE and isinstance(call.func, ast.Attribute):
        text = ast.unparse(call.func.value)
        return bool(ADDRESS.search(text) or (has_mails and ANY_TEXT.search(text)))
    return name in ("Upper", "Lower")


def test_addresses_are_compared_in_one_place() -> None:
    """If this fails: compare `canonical_address`, or the column that has it. For another text: give
    it a name that says what it is, or add it to ALLOWED with a reason.
    """
    found = {
        str(path.relative_to(ROOT)): set(read_findings(path.read_text()))
        for layer in LAYERS
        for path in (ROOT / layer).rglob("*.py")
    }
    spared = {"common/email_address.py"}

    assert {
        name: findings for name, findings in found.items() if findings and name not in spared
    } == ALLOWED


@pytest.mark.parametrize(
    "code",
    [
        "Customer.objects.filter(email__iexact=email)",
        "rows.filter(**{'customer__email__iexact': email})",
        "rows.annotate(shown=Upper('email'))",
        "models.Index(functions.Lower('email'), name='by_email')",
        "cursor.execute('SELECT 1 FROM bookings_customer WHERE UPPER(email) = %s')",
        "cursor.execute('SELECT 1 FROM bookings_customer WHERE email ILIKE %s')",
        "address.lower()",
        "customer['email'].strip().casefold()",
        "str(attendee).upper()",
        "user.lower() == holder.lower()",
        "emails = {text.strip().lower() for text in texts}",
        "text_with_wildcards('email')",
    ],
)
def test_control_second_place_is_found(code: str) -> None:
    assert list(read_findings(code)) != []


# Name and code of all functions, triggers and indexes.
IN_THE_DATABASE = {
    "postgresql": """
        SELECT proname, prosrc FROM pg_proc WHERE pronamespace = current_schema()::regnamespace
        UNION ALL SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = current_schema()
        UNION ALL SELECT tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal""",
    "sqlite": "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL",
}


@pytest.mark.django_db
@pytest.mark.both_databases
def test_the_database_compares_no_addresses_by_case() -> None:
    with connection.cursor() as cursor:
        cursor.execute(IN_THE_DATABASE[connection.vendor])
        found = {name for name, code in cursor.fetchall() if IN_SQL.search(code)}

    # The indexes of searches.
    are_there = connection.vendor == "postgresql"
    assert found == ({"customer_search", "app_customer_search"} if are_there else set())
