"""The headers of a response, which httpx reads when somebody looks, are those of httpx."""

from __future__ import annotations

import copy
import pickle

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_crawler.engine.handler import content_type, names_in
from trio_crawler.policy.answers import ReceivedHeaders, by_name

NAMES = st.sampled_from(
    [b"Content-Type", b"content-type", b"Link", b"X-Robots-Tag", b"Set-Cookie"]
)
FIELDS = st.lists(
    st.tuples(NAMES, st.sampled_from([b"text/html", b"a, b", b"", "é".encode(), b"\xe9"]))
)
LOOKS = {
    "one field": lambda headers: headers.get("content-type"),
    "several fields": lambda headers: headers.get_list("set-cookie", split_commas=True),
    "membership": lambda headers: "link" in headers,
    "all": lambda headers: headers.multi_items(),
    "the length": len,
    "the raw fields": lambda headers: headers.raw,
    "the encoding": lambda headers: headers.encoding,
    "a repr": lambda headers: repr(headers).replace("ReceivedHeaders", "Headers"),
    "a copy": lambda headers: httpx.Headers(headers).raw,
    "a deep copy": lambda headers: copy.deepcopy(headers).multi_items(),
    "a pickle": lambda headers: pickle.loads(pickle.dumps(headers)).multi_items(),
    "the names": names_in,
    "the content type": content_type,
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
@given(fields=FIELDS)
def test_each_look_at_received_headers_finds_what_httpx_finds(look, fields):
    expected = look(httpx.Headers(fields))
    received = ReceivedHeaders(fields, by_name(fields))
    assert (look(received), look(received)) == (expected, expected)
    assert received == httpx.Headers(fields)


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_a_change_of_received_headers_is_seen_by_each_look(look):
    fields = [(b"Link", b"x")]
    received, usual = ReceivedHeaders(fields, by_name(fields)), httpx.Headers(fields)
    for headers in (received, usual):
        headers.encoding = "utf-8"
        headers["Content-Type"] = "text/é"
    assert look(received) == look(usual)
