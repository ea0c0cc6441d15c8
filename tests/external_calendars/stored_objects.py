"""What a sync has stored, for calls to providers without one."""

from collections.abc import Collection, Mapping


class Stored:
    """`Stored({"/cal/a.ics": '"1"'}, {"/cal/a.ics": "BEGIN:VCALENDAR..."})`."""

    def __init__(self, etags: Mapping[str, str] = {}, texts: Mapping[str, str] = {}) -> None:
        self._etags, self._texts = dict(etags), dict(texts)

    def etags(self) -> Mapping[str, str]:
        return self._etags

    def texts(self, hrefs: Collection[str]) -> Mapping[str, str]:
        return {href: self._texts[href] for href in hrefs if href in self._texts}


NOTHING_STORED = Stored()
