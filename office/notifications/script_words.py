"""Texts of the scripts of e-mail templates."""

from django.utils.translation import gettext_lazy as _

from office.base.script_words import ScriptWords

SCRIPT_WORDS: ScriptWords = {
    "template": {
        "faulty": _("There are errors: the preview shows the last valid text."),
        "unavailable": _("The preview is not available."),
    },
}
