"""API records of the people who may use an app."""

from common.api.response_records import Id, Record, Stamp, example_id, field


class MemberRecord(Record):
    """A person with a role in the app, or an invitation that is still open."""

    id: Id = field(
        "Of the person, or of the invitation: accepting an invitation ends its id.",
        example=example_id(31),
    )
    email: str = field(example="doc@example.com")
    role: str = field(enum=["viewer", "editor", "owner"], example="viewer")
    state: str = field(enum=["active", "invited"], example="invited")
    expires_at: Stamp | None = field("When the invitation's link expires; null: a member.")
