"""Who asks: the User-Agent, and the address in From that can be written to."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import trio
from cases import for_each
from sites.raw import Request, raw_server, reply

from trio_crawler import __version__
from trio_crawler.model import Job, Purpose
from trio_crawler.net.fetch import DEFAULT_USER_AGENT, HttpFetch
from trio_crawler.net.httpx_fetch import HttpxFetch

ME = "crawler+info@example.org"


async def site(request: Request, stream: trio.abc.Stream) -> None:
    await stream.send_all(reply())


async def test_the_name_the_version_and_where_to_read_on_are_said_unless_another_is_given(
    asked: Any,
) -> None:
    async with asked(site) as (server, url, fetch):
        await fetch(Job(url))
        assert fetch.user_agent == DEFAULT_USER_AGENT
    assert server.requests[0].headers["user-agent"] == DEFAULT_USER_AGENT
    assert DEFAULT_USER_AGENT.startswith(f"trio_crawler/{__version__} (+https://")
    assert "from" not in server.requests[0].headers


@for_each("purpose", Purpose)
async def test_the_address_to_write_to_is_told_with_every_request(
    asked: Any, purpose: Purpose
) -> None:
    async with asked(site, contact=ME, user_agent="us/1") as (server, url, fetch):
        for path in ("", "b"):
            await fetch(Job(url + path, purpose=purpose))
        assert fetch.user_agent == "us/1"
    for request in server.requests:
        assert request.head.count(b"From: crawler+info@example.org\r\n") == 1
        assert request.headers["user-agent"] == "us/1"
    assert len(server.requests) == 2


async def test_it_is_told_to_everybody_and_not_only_to_the_seeds() -> None:
    async with raw_server({}) as home, raw_server({}) as away:
        allowed = ["127.0.0.1"]
        own = {"from": "home@example.org"}
        async with HttpFetch(
            seeds=[home.url], allow_private=allowed, contact=ME, headers=own
        ) as fetch:
            for server in (home, away):
                await fetch(Job(server.url))
    # The user's own headers come first, at home.
    assert [server.requests[0].headers["from"] for server in (home, away)] == [
        "home@example.org",
        ME,
    ]
    assert home.requests[0].head.lower().count(b"\r\nfrom:") == 1


async def test_a_client_keeps_its_own_address_and_name_unless_others_are_given() -> None:
    own = {"From": "client@example.org", "User-Agent": "the client's"}
    async with (
        raw_server({}) as server,
        httpx.AsyncClient(headers=own, trust_env=False) as client,
    ):
        theirs, ours = HttpxFetch(client), HttpxFetch(client, contact=ME, user_agent="us")
        for fetch in (theirs, ours):
            await fetch(Job(server.url))
    told = [(one.headers["from"], one.headers["user-agent"]) for one in server.requests]
    assert told == [("client@example.org", "the client's"), (ME, "us")]
    assert [theirs.user_agent, ours.user_agent] == ["the client's", "us"]
    assert server.requests[1].head.lower().count(b"\r\nfrom:") == 1


@for_each(
    "contact",
    [
        "",
        " ",
        "me",
        "@",
        "me@",
        "@example.org",
        "me@here@example.org",
        "me @example.org",
        " me@example.org",
        "me@example.org ",
        "me@example.org\n",
        "me@example.org\r\nX-Evil: 1",
        "m\0e@example.org",
        "me@example.org\x7f",
        "me@ex\tample.org",
        "m\xe9@example.org",
        "me@b\xfccher.example",
        "\ud800@example.org",
    ],
)
def test_what_is_no_address_is_refused_by_name(contact: str) -> None:
    with pytest.raises(ValueError, match=r"^contact must be an e-mail address") as caught:
        HttpFetch(contact=contact)
    assert str(caught.value).isprintable()


@for_each("user_agent", ["", " ", "\t", " \t ", "\xa0"])
def test_a_crawler_without_a_name_is_refused(user_agent: str) -> None:
    with pytest.raises(ValueError, match=r"^user_agent must be one line of text"):
        HttpFetch(user_agent=user_agent)
    with pytest.raises(ValueError, match=r"^user_agent must be one line of text"):
        HttpxFetch(httpx.AsyncClient(headers={"User-Agent": "mine"}), user_agent=user_agent)
