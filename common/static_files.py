"""Static files as `collectstatic` has compressed them."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.storage import CompressedStaticFilesStorage


class CompressedFiles(CompressedStaticFilesStorage):
    """Compresses what has changed since it was compressed: every start of `./run` collects."""

    def post_process(
        self, paths: dict[str, Any], dry_run: bool = False, **options: Any
    ) -> Iterator[tuple[str, str, bool]]:
        changed = {name: found for name, found in paths.items() if not self._is_compressed(name)}
        return super().post_process(changed, dry_run, **options)

    def _is_compressed(self, name: str) -> bool:
        plain = Path(self.path(name))
        compressed = plain.with_name(f"{plain.name}.gz")
        return compressed.exists() and compressed.stat().st_mtime >= plain.stat().st_mtime


class StaticFilesMiddleware(WhiteNoiseMiddleware):
    """Serves collected files, and the packages' own where they are newer or were not collected."""

    def add_file_to_dictionary(self, url: str, path: str, stat_cache: Any = None) -> None:
        collected = Path(self.static_root) / url.removeprefix(self.static_prefix)
        is_current = (
            url in self.files
            and collected.is_file()
            and collected.stat().st_mtime >= int(os.stat(path).st_mtime)
        )
        if not is_current:
            super().add_file_to_dictionary(url, path, stat_cache=stat_cache)
