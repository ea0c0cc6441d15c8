"""kombu's broker in files, with messages that appear whole.

kombu creates a message's file and then writes it, so that a worker may find it empty, fails to read
it and ends (kombu#1551). Here it is written under a name that no queue looks at, and then renamed.
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
    def _put(self, queue: str, payload: Any, **kwargs: Any) -> None:
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
