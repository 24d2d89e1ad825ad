"""The errors of HTTP/2 inside an HTTP client, as faults in words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from trio_crawler.model import Fault, Reason
from trio_crawler.net.errors import connection_lost, one_line
from trio_crawler.net.http2.codes import code_name

# h2 names its own classes: "Invalid input ConnectionInputs.RECV_DATA in state ...".
_IS_PYTHON = re.compile(r"<|Inputs\.|State\.|\[|b['\"]")


def http2_fault(
    errors: Iterable[BaseException], server: str, received: int | None
) -> Fault | None:
    """Return the fault for an error of HTTP/2 among an exception and its causes, else None.

    httpcore raises its own exceptions with an event or an exception of h2 as the argument.
    """
    for found in (part for error in errors for part in (error, *error.args)):
        if type(found).__module__.startswith("h2."):
            return _fault(found, server, received)
    return None


def _fault(found: Any, server: str, received: int | None) -> Fault:
    # Not by the classes of h2, which is installed only for HTTP/2.
    match type(found).__name__:
        case "StreamReset":
            after = "" if received is None else f" after {received} bytes of the body"
            name = code_name(int(found.error_code or 0))
            return Fault(Reason.RESET, f"{server} reset the stream{after}: {name}")
        case "ConnectionTerminated":
            name, lost = code_name(int(found.error_code or 0)), connection_lost(server, received)
            return Fault(Reason.RESET, lost if name == "NO_ERROR" else f"{lost}: {name}")
        case "InvalidBodyLengthError":
            came, length = found.actual_length, found.expected_length
            return Fault(Reason.INCOMPLETE, f"{came} of {length} bytes of the body came")
    # An error of the connection: httpcore raises it in any request, not in the one to blame.
    text = str(found)
    if _IS_PYTHON.search(text):
        return Fault(Reason.RESET, connection_lost(server, received))
    return Fault(Reason.RESET, f"{connection_lost(server, received)}: {one_line(text)}")
