"""kombu's filesystem broker with atomic writes of messages.

kombu creates a message's file and then writes it; a worker that finds it empty fails to parse it
and exits (kombu#1551). This channel writes to a name that no queue reads, then renames the file.
"""

import os
import uuid
from pathlib import Path
from time import monotonic
from typing import Any

from kombu.exceptions import ChannelError
from kombu.transport import filesystem
from kombu.utils.json import dumps


class Channel(filesystem.Channel):
    def _put(  # type: ignore[override]  # kombu names this argument in two ways
        self, queue: str, payload: Any, **kwargs: Any
    ) -> None:
        name = f"{monotonic() * 1000:.0f}_{uuid.uuid4()}.{queue}.msg"
        whole = Path(self.data_folder_out, name)
        part = whole.with_name(f"{name}.part")
        try:
            part.write_text(dumps(payload), "utf-8")
            os.replace(part, whole)
        except OSError as error:
            raise ChannelError(f"Cannot write {whole}: {error.strerror}.") from error


class Transport(filesystem.Transport):
    Channel = Channel
