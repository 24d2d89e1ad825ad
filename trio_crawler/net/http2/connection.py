"""A connection by HTTP/2 (RFC 9113), which several requests share.

No task belongs to the connection. Of the requests that wait, one reads for all; when it has what
it waits for, or is cancelled, the next one reads. Nothing is sent in parts: what cannot be sent at
once is kept for the next who waits. ▶ One reader costs one wait for all frames that have arrived
together; a task of its own would need a nursery that outlives the requests.
"""

from __future__ import annotations

import struct
from contextlib import suppress

import trio
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    DataReceived,
    Event,
    InformationalResponseReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
)
from h2.exceptions import DenialOfServiceError, FlowControlError, ProtocolError
from h2.settings import SettingCodes, Settings

from trio_crawler.model import Fault, Phase, Reason
from trio_crawler.net.dial.stream import Stream
from trio_crawler.net.errors import AskAgain, FetchError, bad_reply
from trio_crawler.net.http1.connection import Origin
from trio_crawler.net.http1.message import (
    MAX_HEAD_BYTES,
    check_interim,
)
from trio_crawler.net.http2.stream import (
    CONTINUATION,
    DATA,
    GOAWAY,
    HEADER_BYTES,
    HEADERS,
    NUMBER,
    Block,
    Frame,
    FrameError,
    FrameReader,
    Http2Stream,
    code_name,
)
from trio_crawler.net.turn import Progress

MAX_STREAMS = 100
"""The most requests in flight on one connection; a server may allow fewer."""

WINDOW = 256 * 1024
"""The most bytes of one body that a server may send before they are read."""

LIST_BYTES = 512 * 1024
"""The most bytes of a header list: far more than a head may have, so that only its own request
fails, and not the connection."""

IDLE_FRAMES = 1_000
"""The frames that no request needs (pings, settings, empty data) which a server may send."""

FRAMES_PER_REQUEST = 20
"""The frames of this kind that a server may send for each request besides."""

# Frames, and reads, after which other tasks can run.
_FRAMES_AT_ONCE = 100
_READS_AT_ONCE = 16
# As many frames as the bodies that are left by 100 requests may have.
_IDLE_ROUNDS = 20
_MAX_LEFT = 1_000
_MAX_NUMBER = 2**30
_CREDIT = 64 * 1024
_DEFAULT_WINDOW = 65_535
_CONFIG = H2Configuration(
    # Checked in `message`: h2 would end the connection for one malformed line. It does so for a
    # Content-Length that is no number in any case.
    validate_inbound_headers=False,
    normalize_inbound_headers=False,
    validate_outbound_headers=False,
    normalize_outbound_headers=False,
)
# The sentences of h2 are for programmers.
_BROKEN: dict[type[ProtocolError], str] = {
    DenialOfServiceError: f"the header of the answer has more than {MAX_HEAD_BYTES} bytes",
    FlowControlError: "the server sends more than the window allows (HTTP/2)",
}


class Http2Connection:
    """The streams of one connection to an origin, over a stream of bytes that it owns.

    `server` names the origin in errors. The caller sets `alone` while no other request may join.
    """

    def __init__(self, origin: Origin, stream: Stream, server: str) -> None:
        self.origin = origin
        self.stream = stream
        self.since = 0.0
        self.started = 0
        self.closed = False
        # Whether the server has announced the end of the connection.
        self.ending = False
        self.alone = False
        self._server = server
        self._streams: dict[int, Http2Stream] = {}
        # The streams that were refused while they were open, and what may still come for them.
        self._left: dict[int, int] = {}
        self._parked: dict[Http2Stream, None] = {}
        self._reading = self._writing = self._blocked = self._is_mute = False
        self._scope = trio.CancelScope()
        # Why the server has announced the end of the connection, if it was not in order.
        self._farewell: Fault | None = None
        self._frames = FrameReader()
        self._idle_frames = 0
        self._credit = 0
        self._updates = b""
        self._machine = H2Connection(_CONFIG)
        self._machine.local_settings = Settings(
            client=True,
            initial_values={
                SettingCodes.ENABLE_PUSH: 0,
                SettingCodes.INITIAL_WINDOW_SIZE: WINDOW,
                SettingCodes.MAX_HEADER_LIST_SIZE: MAX_HEAD_BYTES,
            },
        )
        self._machine.decoder.max_header_list_size = LIST_BYTES
        self._machine.initiate_connection()
        # So that responses which are not read keep no other from being sent.
        self._machine.increment_flow_control_window(MAX_STREAMS * WINDOW - _DEFAULT_WINDOW)
        self._send()

    @property
    def in_flight(self) -> int:
        """The number of requests that have begun and not been released."""
        return len(self._streams)

    @property
    def room(self) -> int:
        """The number of requests that may begin now."""
        if self.closed or self.ending or self.alone:
            return 0
        allowed = min(MAX_STREAMS, self._machine.remote_settings.max_concurrent_streams)
        return min(allowed - len(self._streams), _MAX_NUMBER - self.started)

    def is_stale(self) -> bool:
        """Whether the server has ended an idle connection. What it has sent meanwhile is read.

        A connection on which too much has arrived is stale, too: no other task can run here.
        """
        if self.stream.is_quiet():
            return self.room <= 0
        with suppress(OSError):
            for _ in range(_IDLE_ROUNDS):
                if self._process():
                    continue
                if self.closed or (data := self.stream.take()) is None:
                    return self.room <= 0
                if not data:
                    break
                self._frames.add(data)
        return True

    def begin(
        self, block: Block, progress: Progress, max_bytes: int, *, bodiless: bool = False
    ) -> Http2Stream:
        """Send a request without a body, and return its stream; the caller releases it.

        With `bodiless` the response has no body either.
        """
        number = self._machine.get_next_available_stream_id()
        stream = Http2Stream(self, number, progress, max_bytes, bodiless=bodiless)
        self._streams[number] = stream
        self.started += 1
        if self.closed:
            stream.fail(stream.shortfall())
        else:
            self._machine.send_headers(number, block, end_stream=True)
            self._send()
        return stream

    async def advance(self, stream: Http2Stream) -> None:
        """Wait until something has happened to a stream, and read and write for all meanwhile."""
        try:
            while not stream.news:
                if self._blocked and not self._writing:
                    await self._write()
                elif not self._reading:
                    await self._read(stream)
                else:
                    self._parked[stream] = None
                    await stream.lot.park()
        finally:
            self._parked.pop(stream, None)
            self._hand_over()

    def acknowledge(self, stream: Http2Stream, size: int) -> None:
        """Record that so many bytes of a body were read: the server may send as many more."""
        if size and not self.closed:
            self._machine.acknowledge_received_data(size, stream.number)
            self._send()

    def end(self, stream: Http2Stream) -> None:
        """Forget a stream; what the server still sends for it is dropped."""
        if self._streams.pop(stream.number, None) is None:
            return
        self.acknowledge(stream, stream.unread)
        if not stream.closed and not self.closed:
            self._refuse(stream, stream.shortfall())
            self._send()

    def close(self) -> None:
        """Close the connection: requests in flight raise FetchError(RESET)."""
        if not self.closed:
            self.closed = True
            for stream in list(self._streams.values()):
                stream.fail(stream.shortfall())
        self.stream.close()

    # Reading and writing.

    def _hand_over(self) -> None:
        """Let another request do what this one did for all."""
        writes = self._blocked and not self._writing
        if self._reading and not writes:
            return
        if self._parked:
            # Not chosen again before it has run.
            stream = next(iter(self._parked))
            del self._parked[stream]
            stream.lot.unpark_all()
        elif self._reading:
            # The reader has to write, too.
            self._scope.cancel()

    async def _read(self, stream: Http2Stream) -> None:
        self._reading = True
        reads = 0
        try:
            # Frames of an earlier reader, which was cancelled, may be left.
            while not stream.news:
                if self._process() or reads >= _READS_AT_ONCE:
                    reads = 0
                    await trio.lowlevel.checkpoint()
                    continue
                if stream.news or (self._blocked and not self._writing):
                    break
                data = self.stream.take()
                reads += 1
                if data is None:
                    reads = 0
                    with trio.CancelScope() as self._scope:
                        await self.stream.wait_readable()
                    if self._scope.cancelled_caught:
                        break
                elif data:
                    self._frames.add(data)
                else:
                    self._lose()
        except OSError as error:
            self._lose(error)
        finally:
            self._reading = False

    async def _write(self) -> None:
        self._writing = True
        self._hand_over()
        try:
            await self.stream.wait_writable()
            self._flush()
        except OSError as error:
            self._lose(error)
        finally:
            self._writing = False

    def _send(self) -> None:
        """Send what can be sent without waiting, and keep the rest."""
        data = self._machine.data_to_send() + self._updates
        if not data or self.closed or self._is_mute:
            return
        self._updates = b""
        try:
            self.stream.put(data)
            self._flush()
        except OSError as error:
            self._lose(error)

    def _flush(self) -> None:
        try:
            self._blocked = not self.stream.flush()
        except ConnectionError:
            # The server takes nothing more. What it said before is still to be read: responses, a
            # GOAWAY, an alert of TLS.
            self.ending = self._is_mute = True
            self._blocked = False

    def _process(self) -> bool:
        """Handle frames that have arrived. Returns whether there may be more of them."""
        number = handled = 0
        try:
            while handled < _FRAMES_AT_ONCE and not self.closed:
                frame = self._frames.next()
                if frame is None:
                    break
                handled, number = handled + 1, frame.stream
                self._handle(frame)
        except FrameError as error:
            self._machine.close_connection(ErrorCodes.PROTOCOL_ERROR)
            self._break(error.stream, str(error))
        except ProtocolError as error:
            self._break(number, _BROKEN.get(type(error), "the answer breaks the rules of HTTP/2"))
        if handled:
            self._send()
        return handled == _FRAMES_AT_ONCE and not self.closed

    # Frames.

    def _handle(self, frame: Frame) -> None:
        stream = self._streams.get(frame.stream)
        if frame.kind == DATA:
            live = None if stream is None or stream.closed else stream
            if live is not None and (flaw := live.flaw(frame)) is not None:
                self._refuse(live, flaw)
                live = None
            needed = frame.size > 0 or (live is not None and frame.ends_stream)
        else:
            needed = stream is not None and frame.kind in (HEADERS, CONTINUATION)
        if not needed:
            self._count_idle()
        if frame.kind == GOAWAY:
            self._end_after(frame)
        elif frame.kind == DATA and live is None:
            self._drop(frame)
        else:
            for event in self._machine.receive_data(frame.whole):
                self._happen(event)

    def _drop(self, frame: Frame) -> None:
        """Return the bytes of a frame, which is for no one, to the window of the connection.

        h2 would refuse each such frame anew.
        """
        self._left[frame.stream] = left = self._left.get(frame.stream, 0) - frame.size
        if left < 0:
            raise FrameError(_BROKEN[FlowControlError], 0)
        self._credit += frame.size
        if self._credit >= _CREDIT:
            # A WINDOW_UPDATE (RFC 9113, 6.9).
            self._updates += b"\0\0\x04\x08\0\0\0\0\0" + self._credit.to_bytes(4)
            self._credit = 0

    def _happen(self, event: Event) -> None:
        stream = self._streams.get(getattr(event, "stream_id", 0))
        if stream is None or stream.closed:
            return
        try:
            match event:
                case ResponseReceived(headers=block):
                    stream.begin(block)
                case DataReceived(data=b"", flow_controlled_length=size):
                    # Padding only: there is nothing to read.
                    self.acknowledge(stream, size)
                case DataReceived(data=data, flow_controlled_length=size):
                    stream.take(data, size)
                case InformationalResponseReceived(headers=block):
                    stream.interim += 1
                    check_interim(stream.interim, switches=(b":status", b"101") in block)
                case StreamEnded():
                    stream.closed = True
                    stream.end()
                case StreamReset(error_code=code):
                    stream.closed = True
                    stream.fail(stream.refusal(code))
        except FetchError as error:
            self._refuse(stream, error)

    def _count_idle(self) -> None:
        self._idle_frames += 1
        if self._idle_frames > IDLE_FRAMES + FRAMES_PER_REQUEST * self.started:
            raise FrameError("the server sends frames that no request needs", 0)

    def _refuse(self, stream: Http2Stream, why: FetchError) -> None:
        stream.fail(why)
        stream.closed = True
        self._machine.reset_stream(stream.number, ErrorCodes.CANCEL)
        self._left[stream.number] = WINDOW
        if len(self._left) > _MAX_LEFT:
            del self._left[next(iter(self._left))]

    # The end.

    def _end_after(self, frame: Frame) -> None:
        """End the streams that the server has not processed by a GOAWAY frame (RFC 9113, 6.8)."""
        if frame.size < 8 or frame.stream:
            raise FrameError("a GOAWAY frame is malformed", 0)
        last, code = struct.unpack_from(">II", frame.whole, HEADER_BYTES)
        self.ending, last = True, last & NUMBER
        lost = [each for each in self._streams.values() if each.number > last]
        detail = f"{self._server} ended the connection: {code_name(code)} (HTTP/2)"
        fault = Fault(Reason.RESET, detail, Phase.WAIT)
        if code != ErrorCodes.NO_ERROR:
            self._farewell = fault
        for stream in lost:
            stream.closed = True
            stream.fail(AskAgain(fault, http1=code == ErrorCodes.HTTP_1_1_REQUIRED))

    def _break(self, number: int, why: str) -> None:
        """End the connection, since the server breaks the rules in a frame of a stream."""
        stream = self._streams.get(number)
        if stream is not None:
            stream.fail(bad_reply(why))
        self._send()
        self._lose(why="" if stream is not None else why)

    def _lose(self, error: OSError | None = None, why: str = "") -> None:
        """End the connection, and the requests in flight.

        A request that was alone is the cause, unless an idle connection has ended at this moment.
        """
        if not self.closed:
            self.closed = True
            live = [each for each in self._streams.values() if not (each.ended or each.fault)]
            alone = len(live) == 1 and (live[0].head is not None or self.started == 1)
            for stream in live:
                if self._farewell is not None and stream.head is None:
                    fault = self._farewell
                else:
                    fault = (bad_reply(why) if why else stream.lost(error)).fault
                alike = FetchError(fault.reason, fault.detail, fault.phase)
                stream.fail(alike if alone else AskAgain(fault))
        self.stream.close()
