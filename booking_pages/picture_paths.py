"""Paths of the pictures of resources."""

import uuid
from collections.abc import Collection

from availability.models import ResourcePicture


def picture_paths(resource_ids: Collection[uuid.UUID]) -> dict[uuid.UUID, str]:
    """Return the path of the picture of each resource that has one."""
    rows = ResourcePicture.objects.filter(resource_id__in=resource_ids)
    return {
        resource_id: f"/book/pictures/{resource_id}/{digest}"
        for resource_id, digest in rows.values_list("resource_id", "digest")
    }
