"""The type of a text for people that is translated when it is shown."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django.utils.functional import _StrOrPromise as LazyText
else:
    LazyText = Any

__all__ = ["LazyText"]
