"""A terminal that the command writes to, and what it shows."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import termios


class Terminal:
    """A terminal of 100 columns; `text` is all that was written to it so far."""

    def __init__(self) -> None:
        self._mine, self.theirs = pty.openpty()
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, 100, 0, 0))
        self.text = ""

    def read(self) -> str:
        """Take in what there is by now, and give all of it so far."""
        while select.select([self._mine], [], [], 0)[0]:
            self.text += os.read(self._mine, 65536).decode()
        return self.text

    def close(self) -> None:
        """Close both ends."""
        os.close(self._mine)
        os.close(self.theirs)


def shown(text: str) -> str:
    """Leave out what moves the cursor or erases; where a line is begun anew, begin another."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "\n")
