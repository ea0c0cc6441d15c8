"""Changes of events, and what they entail: mails to attendees, online meetings, notifications."""

import secrets
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.external_calendars.fakes.microsoft.events import (
    NO_TIME,
    Folder,
    GraphError,
    Instance,
    Item,
    Mailbox,
    Properties,
)
from tests.external_calendars.fakes.microsoft.rules import (
    TIMES,
    addresses_of,
    changed_names,
    check_neighbours,
    check_times,
    stored_properties,
)
from tests.external_calendars.fakes.microsoft.subscriptions import Subscriptions
from tests.external_calendars.fakes.server import Clock, Violation


class Invitation(NamedTuple):
    """A mail that Exchange sent. kind: request, update or cancellation. by: "api" or "person"."""

    kind: str
    event_id: str
    to: str
    by: str


@dataclass
class EventWriter:
    """invitations: all mails to attendees; every write of an event with attendees sends some.
    reads_until_join_url: so many GETs of an event pass before its online meeting has an address.
    disabled_meetings: events whose online meeting ended because a PATCH dropped its text from the
    body.
    """

    clock: Clock
    subscriptions: Subscriptions
    invitations: list[Invitation] = field(default_factory=list)
    reads_until_join_url: int = 0
    disabled_meetings: list[str] = field(default_factory=list)

    def create(self, mailbox: Mailbox, folder: Folder, body: Properties, by: str) -> Item:
        """`by`: "api" or "person", for the mails."""
        properties = stored_properties(body, {})
        check_times(properties)
        meeting_id = secrets.token_hex(12) if self._wants_meeting(mailbox, properties) else ""
        item = mailbox.new_item(folder, properties, self.clock.now())
        item.written = dict(body)
        if meeting_id:
            self._add_meeting(mailbox, item, meeting_id)
        for address in addresses_of(properties, mailbox):
            self.invitations.append(Invitation("request", item.id, address, by))
        self.subscriptions.notify(mailbox, item, "created")
        return item

    def change(self, mailbox: Mailbox, instance: Instance, body: Properties, by: str) -> None:
        """Apply a PATCH. Another time of a series ends its exceptions."""
        before = instance.properties
        if instance.day and body.get("recurrence"):
            raise GraphError(400, "ErrorInvalidRequest", "An occurrence has no recurrence.")
        if instance.day and body.get("isOnlineMeeting"):
            raise Violation("The fake lacks online meetings of single occurrences.")
        changes = stored_properties(body, before)
        after = before | changes
        check_times(after)
        if instance.day and TIMES & changes.keys():
            check_neighbours(instance, after)
        changed = changed_names(before, after)
        if changed & TIMES and after.get("attendees"):
            unanswered = {"response": "none", "time": NO_TIME}
            changes["attendees"] = [each | {"status": unanswered} for each in after["attendees"]]
        wants_meeting = not before.get("isOnlineMeeting") and self._wants_meeting(mailbox, changes)
        self._keep_meeting(instance, changes)
        self._send_updates(mailbox, instance, after, by)
        if instance.day is None and changed & TIMES:
            instance.item.exceptions.clear()
            instance.item.cancelled.clear()
        item = self.store(mailbox, instance, changes)
        if wants_meeting:
            self._add_meeting(mailbox, item, secrets.token_hex(12))

    def store(self, mailbox: Mailbox, instance: Instance, changes: Properties) -> Item:
        """Store the changes of an event, or of one occurrence as an exception of its series."""
        now, item = self.clock.now(), instance.item
        if instance.day:
            stored = item.exceptions.get(instance.day)
            if stored is None:
                stored = Item(instance.id, item.folder_id, {}, item.uid, now, now)
                item.exceptions[instance.day] = stored
            stored.properties = stored.properties | changes
            mailbox.touch(stored, now)
        else:
            stored = item
            item.properties = item.properties | changes
        mailbox.touch(item, now)
        self.subscriptions.notify(mailbox, stored, "updated")
        return stored

    def remove(self, mailbox: Mailbox, instance: Instance, by: str) -> None:
        item = instance.item
        for address in addresses_of(instance.properties, mailbox):
            self.invitations.append(Invitation("cancellation", instance.id, address, by))
        if instance.day:
            item.cancelled.add(instance.day)
            item.exceptions.pop(instance.day, None)
        else:
            item.is_deleted = True
        mailbox.touch(item, self.clock.now())
        self.subscriptions.notify(mailbox, item, "updated" if instance.day else "deleted")

    def _send_updates(
        self, mailbox: Mailbox, instance: Instance, after: Properties, by: str
    ) -> None:
        """Send what a PATCH sends: a change of the attendees alone goes to those who changed
        (https://learn.microsoft.com/graph/api/event-update)."""
        before = instance.properties
        old, new = addresses_of(before, mailbox), addresses_of(after, mailbox)
        kinds = dict.fromkeys(old - new, "cancellation") | dict.fromkeys(new - old, "request")
        if changed_names(before, after):
            kinds |= dict.fromkeys(old & new, "update")
        for address, kind in sorted(kinds.items()):
            self.invitations.append(Invitation(kind, instance.id, address, by))

    # --- Online meetings --------------------------------------------------------------------------
    def _wants_meeting(self, mailbox: Mailbox, properties: Properties) -> bool:
        """Whether to add an online meeting. A mailbox without the provider ignores the wish."""
        wanted = properties.pop("isOnlineMeeting", False)
        provider = properties.pop("onlineMeetingProvider", None) or mailbox.meeting_provider
        return bool(wanted) and provider == mailbox.meeting_provider and not mailbox.is_personal

    def _add_meeting(self, mailbox: Mailbox, item: Item, meeting_id: str) -> None:
        """Write the meeting's text into the body; its address may come later."""
        url = f"https://teams.microsoft.com/l/meetup-join/19%3ameeting_{meeting_id}%40thread.v2/0"
        body = item.properties.get("body") or {"contentType": "html", "content": ""}
        content = f"{body['content']}{meeting_text(url, body['contentType'])}"
        item.properties = item.properties | {
            "isOnlineMeeting": True,
            "onlineMeetingProvider": mailbox.meeting_provider,
            "body": body | {"content": content},
        }
        item.join_url = url
        if self.reads_until_join_url == 0:
            item.properties["onlineMeeting"] = {"joinUrl": url}

    def prepare_meeting(self, mailbox: Mailbox, instance: Instance) -> None:
        """Give the meeting its address at the read when it is due."""
        item = instance.item
        if item.join_url and not item.properties.get("onlineMeeting"):
            item.reads += 1
            if item.reads > self.reads_until_join_url:
                link = {"onlineMeeting": {"joinUrl": item.join_url}}
                self.store(mailbox, mailbox.find(item.id), link)

    def _keep_meeting(self, instance: Instance, changes: Properties) -> None:
        """End the online meeting where the new body has lost its text
        (https://learn.microsoft.com/graph/api/event-update)."""
        changes.pop("onlineMeetingProvider", None)
        changes.pop("isOnlineMeeting", None)
        url = instance.item.join_url
        if url and "body" in changes and url not in changes["body"]["content"]:
            self.disabled_meetings.append(instance.id)
            instance.item.join_url = ""
            changes |= {"isOnlineMeeting": False, "onlineMeeting": None}
            changes["onlineMeetingProvider"] = "unknown"


def meeting_text(url: str, kind: str) -> str:
    if kind == "text":
        return f"\n________\nJoin the meeting now: {url}\n"
    return f'<div class="me-email-text">________<br><a href="{url}">Join the meeting now</a></div>'
