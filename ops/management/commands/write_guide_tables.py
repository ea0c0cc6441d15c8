"""The tables of the guide that the code decides."""

import re
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from ops.guide_permissions import permission_table, widget_table
from ops.guide_settings import with_setting_tables

GUIDE = settings.BASE_DIR / "docs" / "guide"
TABLES = {"permissions": permission_table, "widget keys": widget_table}
TABLE = re.compile(r"(<!-- table of ([\w ]+) -->\n).*?(<!-- end of table -->\n)", re.DOTALL)


class Command(BaseCommand):
    help = "Write the guide's tables of settings and of permissions."

    def handle(self, *args: Any, **options: Any) -> None:
        for chapter in chapters():
            text = chapter.read_text()
            if (written := with_tables(text)) != text:
                chapter.write_text(written)
                self.stdout.write(f"Wrote {chapter}.")


def chapters() -> list[Path]:
    return sorted(GUIDE.glob("*.md"))


def with_tables(chapter: str) -> str:
    """Return the text of a chapter with the tables as they are now."""
    text = TABLE.sub(lambda found: found[1] + TABLES[found[2]]() + found[3], chapter)
    return with_setting_tables(text)
