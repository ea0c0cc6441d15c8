"""The field for the id that a resource or project has in another system."""

from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminTextInputWidget

from availability.models import MAX_EXTERNAL_ID
from office.base.api_forms import ApiForm


class ExternalIdForm(ApiForm):
    """`id_elsewhere` is the column `external_id`, which no form of the model has by itself."""

    id_elsewhere = forms.CharField(
        label=_("External id"),
        help_text=_(
            "Its id in another system, such as your CRM. Unique within the app. Default: none."
        ),
        max_length=MAX_EXTERNAL_ID,
        required=False,
        widget=UnfoldAdminTextInputWidget,
    )

    def clean_id_elsewhere(self) -> str:
        given: str = self.cleaned_data["id_elsewhere"]
        rows: Any = type(self.instance)._default_manager
        others = rows.filter(app=self.instance.app_id, deleted_at=None, external_id=given)
        if given and others.exclude(pk=self.instance.pk).exists():
            raise forms.ValidationError(gettext("This external id is already in use."))
        return given
