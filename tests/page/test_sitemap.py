"""Sitemaps and feeds of every form; broken ones are read as far as possible."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from html import escape

import pytest
from cases import examples, for_each
from hypothesis import given
from hypothesis import strategies as st

from trio_crawler.model import Reason
from trio_crawler.page.sitemap.read import (
    CHUNK,
    MAX_BYTES,
    MAX_ENTRIES,
    MAX_MEMBERS,
    ParsedSitemap,
    SitemapEntry,
    parse_sitemap,
)

URL = "http://e.test/maps/sitemap.xml"
NS = "http://www.sitemaps.org/schemas/sitemap/0.9"


def read(body: str | bytes, content_type: str = "", **limits: int) -> ParsedSitemap:
    return parse_sitemap(
        body.encode() if isinstance(body, str) else body, content_type, URL, **limits
    )


def found(body: str | bytes, content_type: str = "") -> list[str]:
    return [entry.url for entry in read(body, content_type).entries]


def urlset(inner: str) -> str:
    return f"<?xml version='1.0' encoding='UTF-8'?>\n<urlset xmlns='{NS}'>{inner}</urlset>\n"


def loc(url: str) -> str:
    return f"<url><loc>{url}</loc></url>"


WHOLE = {
    "a urlset": (
        urlset(
            "<url><loc>http://e.test/</loc><lastmod>2024-05-01</lastmod>"
            "<changefreq>daily</changefreq><priority>0.8</priority></url>"
        ),
        "urlset",
        [SitemapEntry("http://e.test/", "2024-05-01", 0.8)],
    ),
    "fields in another order": (
        urlset(
            "<url><priority>1</priority><lastmod> 2024 </lastmod><loc>\n /a\n </loc></url>"
            "<url><lastmod>x</lastmod><loc>/b</loc></url>"
        ),
        "urlset",
        [SitemapEntry("http://e.test/a", "2024", 1.0), SitemapEntry("http://e.test/b", "x")],
    ),
    "a prefix": (
        f"<sm:urlset xmlns:sm='{NS}'><sm:url><sm:loc>/a</sm:loc></sm:url>"
        "<url><loc>/no</loc></url></sm:urlset>",
        "urlset",
        [SitemapEntry("http://e.test/a")],
    ),
    "images, videos and languages": (
        urlset(
            "<url><image:image><image:loc>/no.png</image:loc></image:image><loc>/a</loc>"
            "<video:video><video:content_loc>/no.mp4</video:content_loc></video:video>"
            "<xhtml:link rel='alternate' hreflang='de' href='/no'/>"
            "<news:news><news:title>a > b</news:title></news:news></url>"
        ),
        "urlset",
        [SitemapEntry("http://e.test/a")],
    ),
    "references": (
        urlset(loc("/?a=1&amp;b=&#x26;&#38;&#0060;&lt;&gt;&quot;&apos;")),
        "urlset",
        [SitemapEntry("http://e.test/?a=1&b=&&%3C%3C%3E%22%27")],
    ),
    "a reference of a reference": (
        urlset(loc("/?&amp;amp;")),
        "urlset",
        [SitemapEntry("http://e.test/?&amp;")],
    ),
    "CDATA": (
        urlset(loc("\n<![CDATA[/a?b&c&amp;d=]]]]>\n") + loc("/<![CDATA[b]]>c<![CDATA[]]>")),
        "urlset",
        [SitemapEntry("http://e.test/a?b&c&amp;d=]]"), SitemapEntry("http://e.test/bc")],
    ),
    "comments and instructions": (
        "<!-- <urlset> -->" + urlset("<!--" + loc("/no") + "- -->" + loc("/a<!-- > -->b<?c d?>")),
        "urlset",
        [SitemapEntry("http://e.test/ab")],
    ),
    "attributes": (
        urlset("<url id='a>b'><loc xml:space=\"<>\" a='/'>/a</loc ></url\n>").replace("<>", ">"),
        "urlset",
        [SitemapEntry("http://e.test/a")],
    ),
    "an empty urlset": ("<urlset/>", "urlset", []),
    "a document type": (
        "<!DOCTYPE urlset SYSTEM 'http://evil.test/a.dtd'>" + urlset(loc("/a")),
        "urlset",
        [SitemapEntry("http://e.test/a")],
    ),
    "white space first": (
        "\ufeff\n " + urlset(loc("/a")),
        "urlset",
        [SitemapEntry("http://e.test/a")],
    ),
    "the same URL twice": (
        urlset("<url><loc>/a</loc><priority>0.1</priority></url>" + loc("/a#b")),
        "urlset",
        [SitemapEntry("http://e.test/a", None, 0.1)],
    ),
    "two URLs in a record": (
        urlset("<url><loc>/a</loc><lastmod>1</lastmod><loc>/b</loc></url><loc>/c</loc>"),
        "urlset",
        [
            SitemapEntry("http://e.test/a", "1"),
            SitemapEntry("http://e.test/b"),
            SitemapEntry("http://e.test/c"),
        ],
    ),
    "RSS 2.0": (
        "<rss version='2.0'><channel><link>/no</link><image><link>/no</link></image>"
        "<atom:link href='/no'/><item><title>&nbsp;</title><link> /a </link>"
        "<pubDate>Mon, 06 Sep 2010</pubDate><guid>/no</guid></item>"
        "<item><source url='/no'>S</source><link><![CDATA[/b?x&y]]></link></item>"
        "<link>/no</link></channel></rss>",
        "rss",
        [SitemapEntry("http://e.test/a", "Mon, 06 Sep 2010"), SitemapEntry("http://e.test/b?x&y")],
    ),
    "RSS 1.0": (
        "<rdf:RDF xmlns='http://purl.org/rss/1.0/'><channel><link>/no</link></channel>"
        "<item rdf:about='/no'><link>/a</link></item></rdf:RDF>",
        "rss",
        [SitemapEntry("http://e.test/a")],
    ),
    "Atom": (
        "<feed xmlns='http://www.w3.org/2005/Atom'><link href='/no'/><entry>"
        "<source><link href='/no'/></source><link rel='self' href='/no'/>"
        "<link type='text/html' href='/a?b&amp;c' rel='alternate'/><updated>2003</updated></entry>"
        '<entry><link\nhref = "/b>c" /></entry><entry><link rel="enclosure" href="/no"/></entry>'
        "</feed>",
        "atom",
        [SitemapEntry("http://e.test/a?b&c", "2003"), SitemapEntry("http://e.test/b%3Ec")],
    ),
    "Atom with a prefix": (
        "<a:feed><a:entry><a:link href='/a'></a:link></a:entry></a:feed>",
        "atom",
        [SitemapEntry("http://e.test/a")],
    ),
    "text": (
        "\ufeffhttp://e.test/a\r\n\r\n  https://E.test/b \rhttp://e.test/a\nhttp://e.test/&amp;",
        "text",
        [
            SitemapEntry("http://e.test/a"),
            SitemapEntry("https://e.test/b"),
            SitemapEntry("http://e.test/&amp;"),
        ],
    ),
}


@for_each("packed", [False, True], ids=["plain", "gzip"])
@for_each("body, kind, entries", WHOLE.values(), ids=WHOLE)
def test_a_complete_file_is_read_with(
    body: str, kind: str, entries: list[SitemapEntry], packed: bool
) -> None:
    raw = gzip.compress(body.encode(), mtime=0) if packed else body.encode()
    assert read(raw) == ParsedSitemap(kind, tuple(entries))


def test_an_index_names_sitemaps_and_no_pages() -> None:
    body = (
        "<sitemapindex><sitemap><loc>/a.xml.gz</loc><lastmod>1</lastmod></sitemap>"
        "<sitemap><loc>http://other.test/b</loc></sitemap><sitemap><loc>a.xml#b</loc></sitemap>"
        "<sitemap><loc>/a.xml.gz</loc></sitemap></sitemapindex>"
    )
    named = ("http://e.test/a.xml.gz", "http://other.test/b", "http://e.test/maps/a.xml")
    assert read(body) == ParsedSitemap("index", (), named)


def test_an_index_that_lists_itself_has_a_flaw_and_keeps_the_others() -> None:
    body = "<sitemapindex><loc>sitemap.xml</loc><loc>b.xml</loc></sitemapindex>"
    index = read(body)
    assert index.sitemaps == ("http://e.test/maps/b.xml",)
    assert index.flaws == (Reason.BAD_SITEMAP,)
    assert "itself" in index.detail


# Each with the paths that can be read all the same.
BROKEN = {
    "a bare &": (urlset(loc("/?a&b=1&;")), ["?a&b=1&;"], "bad_sitemap"),
    "an unknown entity": (urlset(loc("/?&eacute;")), ["?&eacute;"], "bad_sitemap"),
    "an open loc": (urlset("<url><loc>/a</url><url><loc>/b"), ["a", "b"], "bad_sitemap"),
    "an open url": (urlset("<url><loc>/a</loc><url><loc>/b</loc>"), ["a", "b"], ""),
    "a cut loc": ("<urlset>" + loc("/a") + "<url><loc>/b", ["a"], "incomplete"),
    "no end": ("<urlset>" + loc("/a"), ["a"], "incomplete"),
    "an open comment": ("<urlset>" + loc("/a") + "<!--" + loc("/b"), ["a"], "incomplete"),
    "several roots": (urlset(loc("/a")) * 2 + urlset(loc("/b")), ["a", "b"], "bad_sitemap"),
    "a warning first": ("<br />\n<b>Warning</b>" + urlset(loc("/a")), ["a"], "bad_sitemap"),
    "words first": ("Notice: x\n" + urlset(loc("/a")), ["a"], "bad_sitemap"),
    "tags that end nowhere": (urlset("<loc <url <loc>/a</loc>" + loc("/b")), ["a", "b"], ""),
    "other schemes": (urlset(loc("ftp://e.test/") + loc("mailto:a@b") + loc("/a")), ["a"], "bad"),
    "no URL": (urlset(loc("http://") + loc("") + loc("<!-- -->") + loc("/a")), ["a"], "bad"),
    "a long URL": (urlset(loc("/" + "x" * 2036) + loc("/a")), ["a"], "bad"),
    "a very long URL": (urlset(loc("/" + "x" * 200_000) + loc("/a")), ["a"], "bad"),
    "very long CDATA": (urlset(loc(f"<![CDATA[/{'x' * 200_000}]]>") + loc("/a")), ["a"], "bad"),
    "a longer comment": (urlset(f"{loc('/a')}<!--{'x' * 400_000}-->{loc('/b')}"), ["a"], "bad"),
    "lines that are no URLs": ("http://e.test/a\n/b\nc\nhttp://e.test/d", ["a", "d"], "bad"),
    "numbers of nothing": (urlset(loc("/&#0;") + loc(f"/&#{'9' * 5000};")), ["%EF%BF%BD"], ""),
    "half a character": (urlset(loc("/&#xD800;")), ["%EF%BF%BD"], ""),
}


@for_each("body, paths, flaw", BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_read_as_far_as_possible_with(
    body: str, paths: list[str], flaw: str
) -> None:
    broken = read(body)
    assert [entry.url for entry in broken.entries] == ["http://e.test/" + path for path in paths]
    assert [str(reason)[: len(flaw)] for reason in broken.flaws] == ([flaw] if flaw else [])
    assert bool(broken.detail) == bool(flaw)


def test_the_longest_url_is_of_2048_characters() -> None:
    assert len(found(urlset(loc("/" + "x" * 2034)))[0]) == 2048


NO_SITEMAPS = {
    "nothing": b"",
    "blanks": b" \n ",
    "a page": b"<!DOCTYPE html><html><body><a href=/a>a</a></body></html>",
    "a page in disguise": b"<?xml version='1.0'?><html><body><urlset><loc>/a</loc></body></html>",
    "words": b"404 Not Found\n",
    "a picture": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)) * 400,
    "other XML": b"<opml><outline xmlUrl='http://e.test/'/></opml>",
    "JSON": b'{"url": "http://e.test/"}',
    "robots": b"User-agent: *\nSitemap: http://e.test/s.xml\n",
    "a packed page": gzip.compress(b"<html>", mtime=0),
    "half a packed head": b"\x1f\x8b",
    "open comments": b"<!--<urlset><loc>/a</loc></urlset>",
}


@for_each("body", NO_SITEMAPS.values(), ids=NO_SITEMAPS)
def test_a_file_is_no_sitemap_if_it_is(body: bytes) -> None:
    other = read(body, "application/xml")
    assert (other.kind, other.entries, other.sitemaps) == ("", (), ())
    assert Reason.BAD_SITEMAP in other.flaws
    assert other.detail


LAUGHS = "<!ENTITY a 'ha'>" + "".join(
    f"<!ENTITY {name} '{f'&{before};' * 10}'>"
    for before, name in zip("abcdefghi", "bcdefghij", strict=True)
)


@for_each(
    "declarations",
    [
        LAUGHS,
        "<!ENTITY j SYSTEM 'file:///etc/passwd'>",
        "<!ENTITY j '<url><loc>/evil</loc></url>'>",
        "<!ENTITY % j SYSTEM 'http://evil.test/'> %j;",
        "",
    ],
)
def test_a_file_with_declarations_of_its_own_is_not_read(declarations: str) -> None:
    whole = read(f"<?xml version='1.0'?><!DOCTYPE urlset [{declarations}]>" + urlset(loc("/&j;")))
    assert (whole.kind, whole.entries) == ("", ())
    assert whole.flaws == (Reason.BAD_SITEMAP,)
    assert "DTD" in whole.detail


@for_each(
    "text, priority",
    [("0.5", 0.5), (" 1.0 ", 1.0), ("0", 0.0), (".7", 0.7), ("1.1", None), ("-0.1", None)]
    + [(text, None) for text in ("nan", "inf", "0,5", "1_0", "", "½", "1e-1", "0." + "1" * 99)],
)
def test_a_priority_is_a_number_from_0_to_1_or_nothing(text: str, priority: float | None) -> None:
    body = urlset(f"<url><loc>/a</loc><priority>{text}</priority></url>")
    assert read(body) == ParsedSitemap(
        "urlset", (SitemapEntry("http://e.test/a", None, priority),)
    )


@pytest.mark.parametrize(
    ("text", "kept"),
    [("x" * 64, "x" * 64), ("x" * 65, None), (" ", None), ("&#xD800;&#49;", "\ufffd1")],
)
def test_a_date_is_kept_as_it_is_written_up_to_64_characters(text: str, kept: str | None) -> None:
    body = urlset(f"<url><loc>/a</loc><lastmod>\n{text} </lastmod></url>")
    assert read(body).entries == (SitemapEntry("http://e.test/a", kept),)


# Encodings


ENCODED = {
    "a byte order mark": (b"\xef\xbb\xbf" + urlset(loc("/é")).encode(), ""),
    "nothing": ((f"<urlset>{loc('/é')}</urlset>").encode(), ""),
    "UTF-16 and its mark": (f"\ufeff<urlset>{loc('/é')}</urlset>".encode("utf-16le"), ""),
    "UTF-16 the other way round": (urlset(loc("/é")).encode("utf-16be"), ""),
    "a declaration": (
        urlset(loc("/é")).replace("UTF-8", "ISO-8859-1").encode("latin-1"),
        "text/xml; charset=utf-8",
    ),
    "the header": (f"<urlset>{loc('/é')}</urlset>".encode("latin-1"), "a/b; charset=latin1"),
    "no header, as a list": ("http://e.test/é\n".encode(), "text/plain; charset=iso-8859-1"),
}


@for_each("body, content_type", ENCODED.values(), ids=ENCODED)
def test_the_encoding_is_detected_by(body: bytes, content_type: str) -> None:
    right = read(body, content_type)
    assert [entry.url for entry in right.entries] == ["http://e.test/%C3%A9"]
    assert right.flaws == ()


@for_each("label", ["zlib", "rot13", "utf-7", "punycode", "unicode_escape", "x"])
def test_an_unknown_label_is_ignored(label: str) -> None:
    assert found(urlset(loc("/é")).replace("UTF-8", label)) == ["http://e.test/%C3%A9"]


@for_each("encoding", ["shift_jis", "iso-2022-jp", "gb18030", "euc-kr", "utf-8"])
def test_a_character_divided_between_two_chunks_is_decoded(encoding: str) -> None:
    start = f"<?xml version='1.0' encoding='{encoding}'?><urlset><!--"
    for more in range(8):
        filling = "x" * (CHUNK - len(start) - 20 + more)
        body = f"{start}{filling}--><loc>/日日日日日日</loc></urlset>".encode(encoding)
        assert read(body) == read(urlset(loc("/日日日日日日"))), more


def test_invalid_bytes_are_replaced_and_are_a_flaw() -> None:
    bad = read(urlset(loc("/a") + loc("/b\udcff")).encode(errors="surrogateescape"))
    assert [entry.url for entry in bad.entries] == ["http://e.test/a", "http://e.test/b%EF%BF%BD"]
    assert bad.flaws == (Reason.BAD_CHARSET,)


def test_a_file_is_not_read_further_if_most_of_a_chunk_is_invalid() -> None:
    start, end = f"<urlset>{loc('/a')}".encode(), loc("/b").encode()
    turned = read(start + b"\xff" * 3 * CHUNK + end)
    assert [entry.url for entry in turned.entries] == ["http://e.test/a"]
    assert turned.flaws == (Reason.BAD_CHARSET,)
    assert turned.detail


# gzip


def test_the_members_of_a_gzip_file_are_one_text() -> None:
    body = urlset(loc("/a") + loc("/b")).encode()
    packed = (
        gzip.compress(body[:90], mtime=0)
        + gzip.compress(b"", mtime=0)
        + gzip.compress(body[90:], mtime=0)
    )
    assert read(packed + bytes(20)) == read(body)


def test_a_cut_gzip_file_is_read_up_to_the_cut_and_has_a_flaw() -> None:
    paths = [f"http://e.test/{zlib.crc32(b'%d' % number)}" for number in range(2_000)]
    packed = gzip.compress(urlset("".join(map(loc, paths))).encode())
    for end in (len(packed) // 3, len(packed) // 2, len(packed) - 9, len(packed) - 1):
        cut = read(packed[:end])
        assert [entry.url for entry in cut.entries] == paths[: len(cut.entries)]
        assert len(cut.entries) > 0.25 * len(paths)
        assert cut.flaws == (Reason.INCOMPLETE,)


def test_a_damaged_gzip_file_is_read_up_to_the_damage_and_has_a_flaw() -> None:
    paths = [f"http://e.test/{zlib.crc32(b'%d' % number)}" for number in range(2_000)]
    packed = bytearray(gzip.compress(urlset("".join(map(loc, paths))).encode()))
    packed[-8] ^= 1  # the checksum
    damaged = read(bytes(packed))
    assert [entry.url for entry in damaged.entries] == paths[: len(damaged.entries)]
    assert len(damaged.entries) > 0.8 * len(paths)
    assert damaged.flaws == (Reason.BAD_SITEMAP,)


def test_a_gzip_bomb_stops_at_the_limit_with_what_was_read() -> None:
    bomb = gzip.compress(urlset(loc("/a")).encode()[:-12] + bytes(4_000_000))
    bounded = read(bomb, max_bytes=200_000)
    assert [entry.url for entry in bounded.entries] == ["http://e.test/a"]
    assert bounded.flaws == (Reason.TOO_LARGE,)
    assert "200000 bytes" in bounded.detail


def test_a_gzip_file_with_too_many_members_is_not_read_to_its_end() -> None:
    packed = gzip.compress(b"", mtime=0) * (MAX_MEMBERS + 1)
    assert Reason.BAD_SITEMAP in read(packed + gzip.compress(urlset(loc("/a")).encode())).flaws


# Limits


def test_a_plain_file_is_read_up_to_the_limit_of_bytes() -> None:
    body = urlset(loc("/a") + loc("/b"))
    assert read(body, max_bytes=len(body)).flaws == ()
    bounded = read(body, max_bytes=body.index("/b"))
    assert [entry.url for entry in bounded.entries] == ["http://e.test/a"]
    assert bounded.flaws == (Reason.TOO_LARGE,)
    lines = read("http://e.test/a\nhttp://e.test/bc", max_bytes=30)
    assert [entry.url for entry in lines.entries] == ["http://e.test/a"]


PATHS = [f"http://e.test/page/{number}" for number in range(5_000)]
MANY = {
    "urlset": urlset("".join(map(loc, PATHS))),
    "urlset of bare locs": urlset("".join(f"<loc a=''>{path}</loc>" for path in PATHS)),
    "urlset, all in CDATA": urlset("".join(loc(f"<![CDATA[{path}]]>") for path in PATHS)),
    "text": "\n".join(PATHS),
    "rss": f"<rss>{''.join(f'<item><link>{path}</link></item>' for path in PATHS)}</rss>",
    "atom": f"<feed>{''.join(f'<entry><link href={path!r}/></entry>' for path in PATHS)}</feed>",
}


@pytest.mark.parametrize("most", [0, 1, 3_000, 4_999, 5_000])
@pytest.mark.parametrize("body", MANY.values(), ids=MANY)
def test_entries_beyond_the_limit_are_counted(body: str, most: int) -> None:
    bounded = read(body, max_entries=most)
    assert [entry.url for entry in bounded.entries] == PATHS[:most]
    assert bounded.beyond == len(PATHS) - most
    assert bounded.flaws == ((Reason.TOO_MANY_ENTRIES,) if most < len(PATHS) else ())


def test_the_protocols_limits_are_the_defaults() -> None:
    assert (MAX_BYTES, MAX_ENTRIES) == (52_428_800, 50_000)


def test_a_file_of_tags_without_urls_is_not_read_to_its_end() -> None:
    endless = read(urlset("<url>" * 60_000 + loc("/a")), max_entries=10)
    assert endless.entries == ()
    assert endless.beyond == 1
    assert endless.flaws == (Reason.BAD_SITEMAP, Reason.TOO_MANY_ENTRIES)
    assert "tags were read" in endless.detail


# Properties


texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12)
paths = st.lists(
    st.text(st.sampled_from("abcäß日?&=<>\"';/.%-_~"), min_size=1, max_size=12),
    max_size=8,
    unique=True,
)
dates = st.none() | st.from_regex(r"20[0-9]{2}-[01][0-9]-[0-3][0-9]", fullmatch=True)
priorities = st.none() | st.sampled_from([0.0, 0.1, 0.5, 1.0])
extras = st.lists(
    st.sampled_from(
        [
            "<image:image><image:loc>/no</image:loc></image:image>",
            "<xhtml:link rel='alternate' href='/no'/>",
            "<news:news><news:publication_date>no</news:publication_date></news:news>",
            "<!-- <loc>/no</loc> - -- > -->",
            "<?php <loc>/no</loc> ?>",
            "<changefreq>daily</changefreq>",
            "<video:video><video:player_loc a='<'>/no</video:player_loc></video:video>",
            "<locs>/no</locs><lo>/no</lo>",
            "\n\t ",
            "<a x='>' y=\"/>\">&amp;&#32;</a>",
            "<![CDATA[<loc>/no</loc>]]>",
            "<loc:loc>/no</loc:loc>",
        ]
    ),
    max_size=4,
)


@st.composite
def records(draw: st.DrawFn) -> list[tuple[SitemapEntry, str]]:
    """Draw entries, each with the source of its record."""
    known = {}
    for path in draw(paths):
        link = parse_sitemap(f"<urlset>{loc(escape('/x' + path))}</urlset>".encode(), "", URL)
        if link.entries and link.entries[0].url not in known:
            date, priority = draw(dates), draw(priorities)
            fields = [f"<loc>{written(draw, '/x' + path)}</loc>"]
            if date is not None:
                fields.append(f"<lastmod>{date}</lastmod>")
            if priority is not None:
                fields.append(f"<priority>{priority}</priority>")
            entry = SitemapEntry(link.entries[0].url, date, priority)
            inside = draw(st.permutations(fields + draw(extras)))
            known[entry.url] = entry, "".join(inside)
    return list(known.values())


def written(draw: st.DrawFn, text: str) -> str:
    in_cdata = f"<![CDATA[{text}]]>"
    blank = draw(st.sampled_from(["", " ", "\n\t"]))
    return blank + draw(st.sampled_from([escape(text), in_cdata, f"{escape(text)}<!-- x -->"]))


def prefixed(source: str) -> str:
    for name in ("url", "loc", "lastmod", "priority"):
        source = source.replace(f"<{name}>", f"<s:{name}>").replace(f"</{name}>", f"</s:{name}>")
    return source


@pytest.mark.slow
@examples(100)
@given(records(), st.booleans(), st.booleans(), st.integers(0, 3))
def test_the_entries_of_a_written_file_are_read(
    several: list[tuple[SitemapEntry, str]], prefix: bool, packed: bool, blanks: int
) -> None:
    between = "\n" * blanks
    inner = between.join(f"<url>{inside}</url>" for _, inside in several)
    body = f"<s:urlset>{prefixed(inner)}</s:urlset>" if prefix else urlset(inner)
    raw = gzip.compress(body.encode(), 1, mtime=0) if packed else body.encode()
    assert read(raw) == ParsedSitemap("urlset", tuple(entry for entry, _ in several))


@examples(50)
@given(records(), st.integers(0, 400))
def test_the_ends_of_chunks_do_not_matter(
    several: list[tuple[SitemapEntry, str]], back: int
) -> None:
    inner = "".join(f"<url>{inside}</url>" for _, inside in several)
    filling = "x" * (CHUNK - back)
    body = f"<urlset><!--{filling}-->{inner}</urlset>"
    assert read(body) == ParsedSitemap("urlset", tuple(entry for entry, _ in several))


def test_a_chunk_may_end_anywhere() -> None:
    parts = ["<?xml version='1.0'?><urlset>", "<!--", "-->"]
    inner = "<url><loc>http://e.test/a?&amp;b</loc><priority>0.5</priority></url><!-- <loc> -->"
    inner += "<url><lastmod>1</lastmod><loc><![CDATA[/b>]]>c</loc></url><loc a='>'>/d</loc>"
    whole = read("".join([*parts, inner, "</urlset>"]))
    assert len(whole.entries) == 3
    for back in range(len(inner) + 20):
        filling = "x" * (CHUNK - len("".join(parts)) - back)
        body = "".join([parts[0], parts[1], filling, parts[2], inner, "</urlset>"])
        assert read(body) == whole, back


@for_each("start, end", [("<!--", "-->"), ("<?", "?>"), ("<![CDATA[", "]]>"), ("<p>", "<p/>")])
@for_each("size", [2, 3])
def test_a_chunk_may_end_within_the_mark_that_ends_a_long_comment(
    start: str, end: str, size: int
) -> None:
    for more in range(len(end) + 1):
        filling = "x" * (size * CHUNK - len("<urlset>" + start) - more)
        assert found(f"<urlset>{start}{filling}{end}{loc('/a')}</urlset>") == ["http://e.test/a"]


CUT = [urlset("<url><loc>/a?&amp;b</loc><lastmod>1</lastmod></url>" + loc("<![CDATA[/b]]>c"))] + [
    body for body, _, entries in WHOLE.values() if entries and not body.startswith("\ufeffhttp")
]


@for_each("body", CUT)
def test_a_file_cut_anywhere_is_read_up_to_the_cut(body: str) -> None:
    whole, raw = found(body), body.encode()
    for end in range(len(raw)):
        cut = read(raw[:end])
        assert [entry.url for entry in cut.entries] == whole[: len(cut.entries)], raw[:end]
        assert cut.flaws or end >= len(raw.rstrip()), raw[:end]


def test_a_gzip_file_cut_anywhere_is_read_up_to_the_cut() -> None:
    packed = gzip.compress(CUT[0].encode(), mtime=0)
    for end in range(len(packed)):
        cut = read(packed[:end])
        assert [entry.url for entry in cut.entries] == found(CUT[0])[: len(cut.entries)]
        assert cut.flaws


MARKS = st.sampled_from(
    b"""<urlset> </urlset> <url> </url> <loc> </loc> <lastmod> <priority> <rss> <item> <link>
    <feed> <entry> <source> <!-- --> <![CDATA[ ]]> <?xml ?> <!DOCTYPE [ < > & &amp; ' " / \0
    http://e.test/a href='b' encoding='utf-16' \xff\xfe \xef\xbb\xbf \x1f\x8b""".split(),
) | st.sampled_from([b" ", b"\n"])


@examples(250)
@given(st.lists(MARKS | st.binary(max_size=6), max_size=25).map(b"".join), texts)
def test_no_bytes_raise_anything(body: bytes, content_type: str) -> None:
    read(body, content_type)
    read(gzip.compress(body, 1, mtime=0)[: len(body)], content_type, max_entries=2, max_bytes=100)
    for entry in read(b"<urlset>" + body, content_type).entries:
        assert entry.url.startswith(("http://", "https://"))
        assert len(entry.url) <= 2048


@pytest.mark.parametrize("make", [lambda text: text, lambda text: "<item>" + text])
def test_only_the_urls_of_records_count_in_a_feed(make: Callable[[str], str]) -> None:
    inside = make("<link>/a</link>")
    assert bool(found(f"<rss>{inside}</rss>")) == ("<item>" in inside)
