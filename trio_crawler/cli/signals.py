"""Signals: Ctrl-C, SIGTERM and SIGHUP, from the first lines of the package to the last.

Before the work of the command begins there is nothing to keep, and a signal ends the process at
once. From then on signals are noted, and the work decides: `Ending` for a crawl. The handler
raises nothing, except at a prompt, so no signal leaves a traceback or a half-made file. A signal
that the process inherited as ignored stays ignored, as after `nohup` and in the background of a
script.

Only the command calls `take`: the library installs no handler. The package imports this module
before all others, so it imports only what the interpreter has loaded already.
"""

# `signal` imports enum. In the milliseconds which that takes, signals would have their default
# effect.
import _signal as signal  # type: ignore[import-not-found]
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 1.0
"""Seconds after the second signal in which a reader may hold up a write."""

_TICK = 0.1
_SIGNALS = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM", signal.SIGHUP: "SIGHUP"}


def name_of(number: int) -> str:
    """Return the name of a signal for people."""
    return _SIGNALS[number]


class Interrupted(BaseException):
    """The command has received a signal and cannot finish its work."""


class Signals:
    """The signals of this process; `received` has the number of each, in order."""

    def __init__(self) -> None:
        self.received: list[int] = []
        self._taken: list[int] = []
        self._noted = False
        self._asking = False
        self._wake: Callable[[], object] = lambda: None
        self._writing: tuple[int, float] | None = None

    @property
    def first(self) -> int:
        """The number of the first signal; 0 before it comes."""
        return self.received[0] if self.received else 0

    def take(self) -> None:
        """Handle the signals of the process from now on."""
        if self._taken:
            return
        for number in _SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:
                try:
                    signal.signal(number, self._handle)
                except ValueError:
                    # A program runs the command in a thread: the signals are its own.
                    return
                self._taken.append(number)

    def note(self) -> None:
        """Only note the signals from now on: the work of the command begins."""
        self._noted = True

    def check(self) -> None:
        """Raise Interrupted if there was a signal."""
        if self.received:
            raise Interrupted

    def asking(self) -> "_During":
        """Return a context manager in which the first signal raises Interrupted.

        For a prompt, which has to restore the terminal.
        """
        return _During(self, "_asking", True)

    def waking(self, wake: "Callable[[], object]") -> "_During":
        """Return a context manager in which each signal calls `wake`, anywhere in this thread."""
        return _During(self, "_wake", wake)

    def writing(self, descriptor: int) -> "_During":
        """Return a context manager for one write to a reader that may be stuck.

        A second after the second signal, what is left of it goes to the null device.
        """
        return _During(self, "_writing", (descriptor, time.monotonic()))

    def ignore(self, status: int) -> int:
        """Ignore the signals from now on, and return the exit status: 128 + N after signal N.

        The end of the interpreter, which restores the default handlers, leaves ignored signals as
        they are.
        """
        for number in self._taken:
            signal.signal(number, signal.SIG_IGN)
        if len(self.received) > 1:
            signal.signal(signal.SIGALRM, signal.SIG_IGN)
        return 128 + self.first if self.received else status

    def _handle(self, number: int, frame: object) -> None:
        self.received.append(number)
        if self._asking:
            if len(self.received) == 1:
                raise Interrupted
        elif not self._noted:
            self._end()
        if len(self.received) == 2:
            signal.signal(signal.SIGALRM, self._cut)
            signal.setitimer(signal.ITIMER_REAL, PATIENCE, _TICK)
        self._wake()

    def _end(self) -> None:
        """End the process, which has begun nothing."""
        if len(self.received) == 1:
            line = f"trio-crawler: stopped by {name_of(self.first)} before it could begin\n"
            try:  # noqa: SIM105 - that would import contextlib
                os.write(2, line.encode())
            except OSError:
                pass
        os._exit(128 + self.first)

    def _cut(self, number: int, frame: object) -> None:
        """Lead a write that is stuck to the null device: it is tried again after a signal."""
        if self._writing is not None:
            descriptor, since = self._writing
            if time.monotonic() - since >= PATIENCE:
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, descriptor)
                os.close(null)


class _During:
    """Set an attribute while the block runs."""

    def __init__(self, of: object, name: str, value: object) -> None:
        self._of, self._name, self._value = of, name, value

    def __enter__(self) -> None:
        self._before = getattr(self._of, self._name)
        setattr(self._of, self._name, self._value)

    def __exit__(self, *error: object) -> None:
        setattr(self._of, self._name, self._before)


SIGNALS = Signals()
