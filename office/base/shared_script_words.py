"""Texts of the scripts that many pages of the back office share."""

from django.utils.translation import gettext_lazy as _

from office.base.labels import STATE_WORDS
from office.base.script_words import ScriptWords

SCRIPT_WORDS: ScriptWords = {
    "theme": {
        "add": _("Add"),
        "arrow_back": _("Back"),
        "cancel": _("Cancel"),
        "close": _("Close"),
        "delete": _("Delete"),
        "dock_to_right": _("Menu"),
        "edit": _("Edit"),
        "expand_more": _("More"),
        "filter_list": _("Filters"),
        "more_horiz": _("More"),
        "more_vert": _("More"),
        "search": _("Search"),
        "visibility": _("Show"),
    },
    "branding": {"pick": _("Pick the colour")},
    "keys": {"pending": STATE_WORDS["tentative"]},
    "copy": {
        "copied": _("Copied."),
        "refused": _("The browser did not allow copying. The text is selected: copy it manually."),
    },
    "forms": {
        "question_up": _("Move this question up"),
        "question_down": _("Move this question down"),
        "question_remove": _("Remove this question"),
        "row_up": _("Move this row up"),
        "row_down": _("Move this row down"),
        "row_remove": _("Remove this row"),
        "resource_up": _("Move this resource up"),
        "resource_down": _("Move this resource down"),
        "resource": _("Resource"),
        "type_and_enter": _("Type and press Enter"),
        "remove": _("Remove {text}"),
    },
}
