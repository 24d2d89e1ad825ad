r"""The schema of `crawl.sqlite`, for those who ask it and for those who fill it.

Ask the views; the tables under them may change with the format (`PRAGMA user_version`). A **walk**
is one way through the site: 1 is the first, each refresh begins another; `newest` is 1 for the
last. A **run** is one start of the program; a walk may take many. Times are seconds since 1970,
durations are seconds, sizes are bytes; lists are JSON, NULL when they are empty.

    pages      walk, newest, number, url, status, content_type, charset, title, size, fetched,
               seconds, tries, depth, referrer, canonical, robots, duplicate_of, flaws,
               links_beyond, refused (how many links were), etag, last_modified,
               digest (SHA-1 of the body), same_as (of a 304: the number of what has not changed)
    links      walk, newest, page, url, kind ("a", "area"), text, refused (why it was not followed)
    redirects  walk, newest, number, url, status, target, refused, fetched, seconds, tries, depth,
               referrer
    failures   walk, newest, number, url, reason, detail, phase, target, fetched, seconds, tries,
               depth, referrer
    skipped    walk, newest, number, url, reason, depth, referrer
    waiting    walk, newest, number, url, tries, depth, referrer

    runs       run, walk, started, ended (NULL: killed, or under way), seconds, how, retries,
               settings
    walks      walk, first (its numbers begin there), started
    hosts      scheme, host, waiting, flying, most, delay, rest, latency, failures, given_up,
               detail, phase: as the last run left them
    robots     origin, fetched, status, headers, body: the last answer for a robots.txt
    sitemaps   walk, url, kind, entries, admitted, flaws, detail, referrer, refused
    listings   walk, url, sitemap, last_modified, priority: what sitemaps say of URLs
    streams    path (from the directory on), length: what of a file counts, tail (SHA-1 of the
               last 4,096 bytes of that), behind (1: a run has gone on without it), closed (1: the
               last run with it has ended, and left nothing behind that length)
    crawl      key, value: "meaning" has the options that this crawl was made with

Which pages link to broken ones:

    SELECT page, url, text FROM links JOIN failures USING (walk, url) WHERE links.newest

Under the views: `urls` has every URL that was admitted, by number, pages and sitemaps; `ended` is
1 when it has its outcome, in `page_` (with `links_`), `redirect_`, `failure_` or `skip_`. Numbers
rise through all walks. What a table cannot hold (lone surrogates, integers of more than 64 bits)
stands there as near as can be, and in `exact` as it was.
"""

# ruff: noqa: S608 - all names that are put into SQL are our own.

from __future__ import annotations

APPLICATION = 0x74726963
"""PRAGMA application_id: "tric"."""

VERSION = 1
"""PRAGMA user_version: the format."""

PAGE_SIZE = 8192

PRAGMAS = (
    "PRAGMA synchronous = NORMAL",
    "PRAGMA foreign_keys = OFF",
    "PRAGMA cache_size = -8000",
    # Pages, 16 MiB: what is changed again and again is copied half as often as at 1,000.
    "PRAGMA wal_autocheckpoint = 2000",
    # After a long reader the log is cut back to this.
    "PRAGMA journal_size_limit = 33554432",
)

# What is short stands first: the rest of a long row lies on pages of its own. Links have a table
# of their own, so that going through all pages does not mean to read those.
_TABLES = (
    "CREATE TABLE crawl (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID",
    "CREATE TABLE walks (walk INTEGER PRIMARY KEY, first INTEGER, started REAL)",
    """CREATE TABLE runs (
        run INTEGER PRIMARY KEY, walk INTEGER, started REAL, ended REAL, seconds REAL, how TEXT,
        retries INTEGER, settings TEXT
    )""",
    """CREATE TABLE urls (
        number INTEGER PRIMARY KEY, walk INTEGER, ended INTEGER, tries INTEGER, depth INTEGER,
        redirects INTEGER, purpose TEXT, priority REAL, url TEXT, referrer TEXT
    )""",
    """CREATE TABLE page_ (
        number INTEGER PRIMARY KEY, fetched REAL, status INTEGER, size INTEGER, tries INTEGER,
        seconds REAL, refused INTEGER, links_beyond INTEGER, same_as INTEGER, digest BLOB,
        content_type TEXT, charset TEXT, title TEXT, media TEXT, etag TEXT, last_modified TEXT,
        canonical TEXT, duplicate_of TEXT, robots TEXT, flaws TEXT, exact BLOB
    )""",
    "CREATE TABLE links_ (number INTEGER PRIMARY KEY, links TEXT, refused TEXT)",
    """CREATE TABLE redirect_ (
        number INTEGER PRIMARY KEY, fetched REAL, status INTEGER, target TEXT, refused TEXT,
        tries INTEGER, seconds REAL, exact BLOB
    )""",
    """CREATE TABLE failure_ (
        number INTEGER PRIMARY KEY, fetched REAL, reason TEXT, detail TEXT, target TEXT,
        phase TEXT, tries INTEGER, seconds REAL, exact BLOB
    )""",
    "CREATE TABLE skip_ (number INTEGER PRIMARY KEY, reason TEXT)",
    """CREATE TABLE robots (
        origin TEXT PRIMARY KEY, fetched REAL, status INTEGER, headers TEXT, body BLOB
    ) WITHOUT ROWID""",
    """CREATE TABLE hosts (
        scheme TEXT, host TEXT, waiting INTEGER, flying INTEGER, most INTEGER, delay REAL,
        rest REAL, latency REAL, failures INTEGER, given_up TEXT, detail TEXT, phase TEXT
    )""",
    """CREATE TABLE sitemaps (
        id INTEGER PRIMARY KEY, walk INTEGER, url TEXT, kind TEXT, entries INTEGER,
        admitted INTEGER, flaws TEXT, detail TEXT, referrer TEXT, refused TEXT, exact BLOB
    )""",
    """CREATE TABLE listings (
        walk INTEGER, url TEXT, sitemap TEXT, last_modified TEXT, priority REAL,
        PRIMARY KEY (walk, url)
    ) WITHOUT ROWID""",
    """CREATE TABLE streams (
        path TEXT PRIMARY KEY, length INTEGER, tail BLOB, behind INTEGER, closed INTEGER
    ) WITHOUT ROWID""",
)

_WALK = "urls.walk, urls.walk = (SELECT max(walk) FROM walks) AS newest"
_OF_URL = f"{_WALK}, urls.number, urls.url"

_VIEWS = (
    f"""CREATE VIEW pages AS SELECT
        {_OF_URL}, status, content_type, charset, title, size, fetched, seconds, page_.tries,
        depth, referrer, canonical, robots, duplicate_of, flaws, links_beyond, refused, etag,
        last_modified, digest, same_as
    FROM page_ JOIN urls USING (number)""",
    f"""CREATE VIEW links AS SELECT
        {_WALK}, urls.url AS page,
        CASE each.type WHEN 'array' THEN json_extract(each.value, '$[0]') ELSE each.value END
            AS url,
        CASE each.type WHEN 'array' THEN json_extract(each.value, '$[1][0]') END AS kind,
        CASE each.type WHEN 'array' THEN json_extract(each.value, '$[1][1]') END AS text,
        NULL AS refused
    FROM links_ JOIN urls USING (number), json_each(links_.links) AS each
    UNION ALL SELECT
        {_WALK}, urls.url, json_extract(each.value, '$[0]'), json_extract(each.value, '$[2][0]'),
        json_extract(each.value, '$[2][1]'), json_extract(each.value, '$[1]')
    FROM links_ JOIN urls USING (number), json_each(links_.refused) AS each""",
    f"""CREATE VIEW redirects AS SELECT
        {_OF_URL}, status, target, refused, fetched, seconds, redirect_.tries, depth, referrer
    FROM redirect_ JOIN urls USING (number)""",
    f"""CREATE VIEW failures AS SELECT
        {_OF_URL}, reason, detail, phase, target, fetched, seconds, failure_.tries, depth, referrer
    FROM failure_ JOIN urls USING (number)""",
    f"CREATE VIEW skipped AS SELECT {_OF_URL}, reason, depth, referrer FROM skip_ "
    "JOIN urls USING (number)",
    f"CREATE VIEW waiting AS SELECT {_OF_URL}, tries, depth, referrer FROM urls "
    "WHERE NOT ended AND purpose = 'page'",
)

STATEMENTS = (
    *_TABLES,
    *_VIEWS,
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
)
"""What makes the database, in one transaction."""
