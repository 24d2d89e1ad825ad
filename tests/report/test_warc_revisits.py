"""Payloads that were archived before, and answers that stand for them."""

from __future__ import annotations

from hashlib import sha1
from typing import Any

from report.archives import (
    PROFILES,
    SENT,
    URL,
    answer,
    archived,
    asked,
    block,
    checks,
    of_kind,
    only,
    page,
    written,
)

from trio_crawler.model import Job, Page, Validator
from trio_crawler.report.warc_archive import Warc


async def test_an_identical_payload_is_a_revisit_of_the_first(tmp_path: Any) -> None:
    warc = Warc()
    first = await archived(answer(body=b"same"), warc)
    second = await archived(answer(404, [(b"X", b"2")], b"same"), warc, url=URL + "b")
    third = await archived(answer(body=b"same"), warc, url=URL + "c")
    original, revisit = only("response", first), only("revisit", second)
    assert revisit.url == URL + "b"
    assert revisit.fields["WARC-Profile"] == PROFILES + "identical-payload-digest"
    assert revisit.fields["WARC-Refers-To-Target-URI"] == URL
    assert revisit.fields["WARC-Refers-To-Date"] == original.fields["WARC-Date"]
    assert revisit.fields["WARC-Truncated"] == "length"
    assert revisit.fields["WARC-Payload-Digest"] == original.fields["WARC-Payload-Digest"]
    assert block("revisit", second) == (
        b"HTTP/1.1 404 Not Found\r\nX: 2\r\nContent-Length: 4\r\n\r\n"
    )
    assert only("revisit", third).fields["WARC-Refers-To-Target-URI"] == URL
    assert checks(first + second + third, tmp_path)


async def test_a_payload_of_an_earlier_run_is_revisited() -> None:
    warc = Warc()
    warc.restore([(URL + "old", sha1(b"same").digest(), 1_700_000_000.25)])
    fields = only("revisit", await archived(answer(body=b"same"), warc)).fields
    assert fields["WARC-Refers-To-Target-URI"] == URL + "old"
    assert fields["WARC-Refers-To-Date"] == "2023-11-14T22:13:20.250000Z"


async def test_an_empty_payload_of_an_earlier_run_is_not_revisited() -> None:
    warc = Warc()
    warc.restore([(URL + "old", sha1(b"").digest(), 1_700_000_000.0)])
    assert only("response", await archived(answer(), warc)).body == b""


async def test_the_first_of_the_payloads_of_earlier_runs_counts() -> None:
    warc = Warc(max_remembered=2)
    same, other = sha1(b"same").digest(), sha1(b"other").digest()
    warc.restore([(URL + "1", same, 1.0), (URL + "2", other, 2.0), (URL + "3", same, 3.0)])
    fields = only("revisit", await archived(answer(body=b"same"), warc)).fields
    assert fields["WARC-Refers-To-Target-URI"] == URL + "1"


async def test_a_truncated_payload_is_no_original() -> None:
    warc = Warc()
    response = answer(503, [], b"busy")
    await asked(warc, response)
    warc.records(Page(URL, 503, response.headers, b""))
    data = await archived(response, warc, url=URL + "b")
    assert only("response", data).body == b"busy"


async def test_as_many_payloads_are_remembered_as_promised() -> None:
    warc = Warc(max_remembered=3)
    for number in range(7):
        await archived(answer(body=b"%d" % number), warc, url=f"{URL}{number}")
    for number in (4, 5, 6):
        data = await archived(answer(body=b"%d" % number), warc, url=f"{URL}again{number}")
        assert of_kind("revisit", data), number
    assert of_kind("response", await archived(answer(body=b"0"), warc, url=URL + "again0"))
    assert "payloads>" in repr(warc)
    assert int(repr(warc).split()[-2]) == 3


async def test_a_304_to_a_conditional_request_is_a_revisit(tmp_path: Any) -> None:
    sent = SENT[:-2] + b'If-None-Match: "a"\r\n\r\n'
    data = await archived(answer(304, [(b"ETag", b'"a"'), (b"Content-Length", b"9")], sent=sent))
    revisit = only("revisit", data)
    assert revisit.fields["WARC-Profile"] == PROFILES + "server-not-modified"
    assert revisit.fields["WARC-Refers-To-Target-URI"] == URL
    assert "WARC-Payload-Digest" not in revisit.fields
    # With the head of a 304, archives would replay that and not the page.
    assert block("revisit", data) == b""
    assert checks(data, tmp_path)


async def test_a_304_refers_to_the_answer_that_its_validator_is_of(tmp_path: Any) -> None:
    sent = SENT[:-2] + b'If-None-Match: "a"\r\n\r\n'
    warc, unchanged = Warc(), answer(304, sent=sent)
    known = Validator('"a"', None, sha1(b"same").digest(), 1_700_000_000.25)
    await asked(warc, unchanged, Job(URL, validator=known))
    data = warc.records(page(unchanged))
    fields = only("revisit", data).fields
    assert fields["WARC-Refers-To-Target-URI"] == URL
    assert fields["WARC-Refers-To-Date"] == "2023-11-14T22:13:20.250000Z"
    assert fields["WARC-Payload-Digest"] == written(b"same")
    assert checks(data, tmp_path)


async def test_a_304_to_an_unconditional_request_is_a_response() -> None:
    assert only("response", await archived(answer(304))).status == 304
