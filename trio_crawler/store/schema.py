r"""The schema of `crawl.sqlite`, for users who query it and for the code that fills it.

Query the views; the tables under them may change with the format (`PRAGMA user_version`). A
**walk** is one pass over the site: 1 is the first, each refresh begins another; `newest` is 1
in the rows of the last walk. A **run** is one start of the program; a walk may take several runs.
Times are seconds since 1970, durations are seconds, sizes are bytes. Lists are JSON; NULL is an
empty one.

    pages      walk, newest, number, url, status, content_type, charset, title, size, fetched,
               seconds, tries, depth, referrer, canonical, robots, duplicate_of,
               folded_into (the canonical URL that was crawled in place of this page), flaws,
               links_beyond (the number of links that were cut off),
               rejected (the number of rejected links), etag, last_modified,
               digest (SHA-1 of the body; NULL if it was cut, or left because of its type),
               text_digest (SHA-1 of the visible text without volatile numbers; NULL if there is
               none), text_size (bytes of that text),
               same_as (for a 304: the number of the page that is unchanged), again,
               repeated (1: a refresh fetched the page twice; the row is of the first fetch)
    links      walk, newest, page, url, kind ("a", "area"), text (both NULL if the crawl did not
               keep the texts of links: the command does with --links),
               rejected (the reason; NULL for a link inside the scope)
    redirects  walk, newest, number, url, status, target, fragment (of the Location), rejected,
               fetched, seconds, tries, depth, referrer, again
    failures   walk, newest, number, url, reason, detail, phase,
               about ("robots": robots.txt failed), target, fetched, seconds, tries, depth,
               referrer, again
    skipped    walk, newest, number, url, reason, depth, referrer, again
    checked    walk, newest, number, url, status, reason, detail, phase, target, fragment,
               rejected, fetched, seconds, tries, depth, referrer, again: URLs outside the crawl,
               only checked. With a status and no tries, the status is what an earlier walk found
    waiting    walk, newest, number, url, tries, depth, referrer, again
    facts      walk, newest, number, url, fetched, lang, h1, h1_count, description, hreflang,
               social, json_ld, json_ld_errors, words, images, images_without_alt, insecure,
               scripted, headers: what a page says of itself, if the crawl kept facts; h1 and
               json_ld are lists, hreflang is a list of pairs, social and headers are objects
    inlinks    walk, newest, url, pages: how many pages link to a URL inside the scope

    runs       run, walk, started, ended (NULL: killed, or still running), seconds,
               how ("finished", "stopped", "spent": the page budget was used up, "cut short": by an
               exception or a cancellation, "": killed, or still running), retries, settings,
               reason (why nothing more was fetched, for a run that ended early; NULL if unknown)
    walks      walk, first (the lowest number of its URLs), started
    hosts      name, waiting, in_flight, max_in_flight, delay, rest, latency, failures,
               given_up (JSON: a fault by scheme), walk, pages, failed, bytes (these three: sums
               of all runs of the walk), waits_for, asked, refused: the hosts of the last walk,
               each at the end of the last run that asked it; a run that was killed is left out
    robots     origin, fetched, status, headers, body: the last response for a robots.txt
    sitemaps   walk, url, kind, entries, admitted, flaws, detail, referrer, rejected,
               fetched (0: not requested)
    listings   walk, url, sitemap, last_modified, priority: the sitemap entries of URLs
    streams    path (relative to the directory), length (of the committed records), tail (SHA-1 of
               the last 4,096 bytes of these), behind (1: a later run did not write the file),
               closed (1: the last run with the file ended, and the file has just that length)
    crawl      key, value: the key "meaning" has the options that define this crawl

A URL has a second row if it was admitted again (a redirect led back to it, and its cookies had
changed): `again` is 1 there, and its number is the higher one. The first row is always a redirect.
If a run ends before the second row has its outcome, there may be a third one.

The pages that link to a failure:

    SELECT page, url, text FROM links JOIN failures USING (walk, url) WHERE links.newest

The redirects that lead to each page, from the first on:

    WITH RECURSIVE hops(page, url, walk, steps) AS (
        SELECT url, url, walk, 0 FROM pages WHERE newest
        UNION ALL SELECT page, redirects.url, hops.walk, steps + 1
        FROM hops JOIN redirects ON target = hops.url AND redirects.walk = hops.walk
        WHERE steps < 20)
    SELECT page, group_concat(url, ' ') AS chain FROM
        (SELECT * FROM hops WHERE steps ORDER BY page, steps DESC) GROUP BY page

A crawl that checks links keeps in `found_` all that its pages point to, by the number of the page,
once for all that are `same_as` it. `links` is a JSON list of [url, kind, fragment, text, line,
column, as_written, nofollow, malformed], compressed as in an SQLite archive, and `size` its length
before. No view can show it; the shell `sqlite3` has a function that does:

    SELECT page.url, json_extract(link.value, '$[4]') AS line, json_extract(link.value, '$[0]')
    FROM found_ JOIN urls AS page USING (number),
        json_each(CAST(sqlar_uncompress(found_.links, found_.size) AS TEXT)) AS link

`targets` has the places of a page, or of a URL outside the crawl: of each id the BLAKE2b hash of 8
bytes, as a little-endian number, in rising order; NULL if they are unknown.

Under the views, `urls` has every admitted URL by number, of pages and of sitemaps; `ended` is 1 if
the URL has an outcome, which is in `page_` (with `links_`, `found_` and `repeated_`), `redirect_`,
`failure_`, `skip_` or `check_`. Its purpose is "page", "sitemap", "check", or "fragments" for a
check of the body too. Numbers increase over all walks. A long URL is stored once: `source` is then
the number of the referrer, and in the list of links of that page a number replaces the URL. If a
column cannot hold a value (a lone surrogate, an integer of more than 64 bits), it has the nearest
value.
"""

# ruff: noqa: S608 - all names that are put into SQL are our own.

from __future__ import annotations

APPLICATION = 0x74726963
"""PRAGMA application_id: "tric"."""

VERSION = 10
"""PRAGMA user_version: the version of the format."""

PAGE_SIZE = 8192

PRAGMAS = (
    "PRAGMA synchronous = NORMAL",
    "PRAGMA foreign_keys = OFF",
    "PRAGMA cache_size = -8000",
    # In pages, 16 MiB: rows that change often are copied half as often as with 1,000.
    "PRAGMA wal_autocheckpoint = 2000",
    # The log is cut back to this size after a long read.
    "PRAGMA journal_size_limit = 33554432",
)

# Short columns come first: the end of a long row is on overflow pages. Links have a table of their
# own, so that a scan of all pages does not read them.
_TABLES = (
    "CREATE TABLE crawl (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID",
    "CREATE TABLE walks (walk INTEGER PRIMARY KEY, first INTEGER, started REAL)",
    """CREATE TABLE runs (
        run INTEGER PRIMARY KEY, walk INTEGER, started REAL, ended REAL, seconds REAL, how TEXT,
        retries INTEGER, settings TEXT, reason TEXT
    )""",
    """CREATE TABLE urls (
        number INTEGER PRIMARY KEY, walk INTEGER, ended INTEGER, tries INTEGER, depth INTEGER,
        redirects INTEGER, purpose TEXT, priority REAL, url TEXT, referrer TEXT, source INTEGER,
        again INTEGER
    )""",
    """CREATE TABLE page_ (
        number INTEGER PRIMARY KEY, fetched REAL, status INTEGER, size INTEGER, tries INTEGER,
        seconds REAL, rejected INTEGER, links_beyond INTEGER, same_as INTEGER, digest BLOB,
        text_digest BLOB, text_size INTEGER, text_blocks BLOB,
        content_type TEXT, charset TEXT, title TEXT, media TEXT, etag TEXT, last_modified TEXT,
        canonical TEXT, duplicate_of TEXT, robots TEXT, flaws TEXT, folded_into TEXT
    )""",
    "CREATE TABLE links_ (number INTEGER PRIMARY KEY, links TEXT, rejected TEXT)",
    """CREATE TABLE redirect_ (
        number INTEGER PRIMARY KEY, fetched REAL, status INTEGER, target TEXT, rejected TEXT,
        tries INTEGER, seconds REAL, fragment TEXT
    )""",
    """CREATE TABLE failure_ (
        number INTEGER PRIMARY KEY, fetched REAL, reason TEXT, detail TEXT, target TEXT,
        phase TEXT, tries INTEGER, seconds REAL, about TEXT
    )""",
    "CREATE TABLE skip_ (number INTEGER PRIMARY KEY, reason TEXT)",
    # The URLs outside the crawl that were only checked.
    """CREATE TABLE check_ (
        number INTEGER PRIMARY KEY, fetched REAL, status INTEGER, reason TEXT, detail TEXT,
        phase TEXT, target TEXT, rejected TEXT, tries INTEGER, seconds REAL, fragment TEXT
    )""",
    # All that a page points to, and the places that a fragment may name, of a crawl that checks.
    # ▶ The links of a page of python3-doc take 5.7 KB, and 33 KB as plain JSON.
    """CREATE TABLE found_ (
        number INTEGER PRIMARY KEY, size INTEGER, links BLOB, targets BLOB
    )""",
    # What pages say of themselves, as JSON, if the crawl keeps facts; a default is left out.
    "CREATE TABLE facts_ (number INTEGER PRIMARY KEY, facts TEXT)",
    # The pages that a refresh fetched twice: how the second fetch differed.
    """CREATE TABLE repeated_ (
        number INTEGER PRIMARY KEY, blocks BLOB, retitled INTEGER, links TEXT
    )""",
    """CREATE TABLE robots (
        origin TEXT PRIMARY KEY, fetched REAL, status INTEGER, headers TEXT, body BLOB
    ) WITHOUT ROWID""",
    # The hosts of the last walk: http and https together.
    """CREATE TABLE hosts (
        name TEXT, waiting INTEGER, in_flight INTEGER, max_in_flight INTEGER, delay REAL,
        rest REAL, latency REAL, failures INTEGER, given_up TEXT, walk INTEGER, pages INTEGER,
        failed INTEGER, bytes INTEGER, waits_for TEXT, asked REAL, refused INTEGER
    )""",
    """CREATE TABLE sitemaps (
        id INTEGER PRIMARY KEY, walk INTEGER, url TEXT, kind TEXT, entries INTEGER,
        admitted INTEGER, flaws TEXT, detail TEXT, referrer TEXT, rejected TEXT, fetched INTEGER
    )""",
    """CREATE TABLE listings (
        walk INTEGER, url TEXT, sitemap TEXT, last_modified TEXT, priority REAL,
        PRIMARY KEY (walk, url)
    ) WITHOUT ROWID""",
    """CREATE TABLE streams (
        path TEXT PRIMARY KEY, length INTEGER, tail BLOB, behind INTEGER, closed INTEGER
    ) WITHOUT ROWID""",
)

REFERRER = "coalesce(urls.referrer, (SELECT of.url FROM urls AS of WHERE of.number = urls.source))"
"""The referrer of a URL, for queries of the table urls."""

_REFERRER = f"{REFERRER} AS referrer"
_LINK = "CASE each.type WHEN 'array' THEN json_extract(each.value, '$[0]') ELSE each.value END"
_WALK = "urls.walk, urls.walk = (SELECT max(walk) FROM walks) AS newest"
_OF_URL = f"{_WALK}, urls.number, urls.url"
_AGAIN = "urls.again NOT NULL AS again"
_EMPTY = dict.fromkeys("h1_count words images images_without_alt scripted".split(), 0)
_FACTS = ", ".join(
    f"coalesce(json_extract(facts, '$.{name}'), {_EMPTY.get(name, 'NULL')}) AS {name}"
    for name in (
        "lang h1 h1_count description hreflang social json_ld json_ld_errors words images "
        "images_without_alt insecure scripted headers"
    ).split()
)

VIEWS = (
    f"""CREATE VIEW pages AS SELECT
        {_OF_URL}, status, content_type, charset, title, size, fetched, seconds, page_.tries,
        depth, {_REFERRER}, canonical, robots, duplicate_of, folded_into, flaws, links_beyond,
        rejected, etag, last_modified, digest, text_digest, text_size, same_as, {_AGAIN},
        EXISTS (SELECT 1 FROM repeated_ AS twice WHERE twice.number = urls.number) AS repeated
    FROM page_ JOIN urls USING (number)""",
    f"""CREATE VIEW links AS SELECT
        {_WALK}, urls.url AS page,
        CASE typeof({_LINK}) WHEN 'integer'
            THEN (SELECT of.url FROM urls AS of WHERE of.number = {_LINK}) ELSE {_LINK} END
            AS url,
        CASE each.type WHEN 'array' THEN json_extract(each.value, '$[1][0]') END AS kind,
        CASE each.type WHEN 'array' THEN json_extract(each.value, '$[1][1]') END AS text,
        NULL AS rejected
    FROM links_ JOIN urls USING (number), json_each(links_.links) AS each
    UNION ALL SELECT
        {_WALK}, urls.url, json_extract(each.value, '$[0]'), json_extract(each.value, '$[2][0]'),
        json_extract(each.value, '$[2][1]'), json_extract(each.value, '$[1]')
    FROM links_ JOIN urls USING (number), json_each(links_.rejected) AS each""",
    f"""CREATE VIEW redirects AS SELECT
        {_OF_URL}, status, target, fragment, rejected, fetched, seconds, redirect_.tries,
        depth, {_REFERRER}, {_AGAIN}
    FROM redirect_ JOIN urls USING (number)""",
    f"""CREATE VIEW failures AS SELECT
        {_OF_URL}, reason, detail, phase, about, target, fetched, seconds, failure_.tries, depth,
        {_REFERRER}, {_AGAIN}
    FROM failure_ JOIN urls USING (number)""",
    f"CREATE VIEW skipped AS SELECT {_OF_URL}, reason, depth, {_REFERRER}, {_AGAIN} FROM skip_ "
    "JOIN urls USING (number)",
    f"""CREATE VIEW checked AS SELECT
        {_OF_URL}, status, reason, detail, phase, target, fragment, rejected, fetched, seconds,
        check_.tries, depth, {_REFERRER}, {_AGAIN}
    FROM check_ JOIN urls USING (number)""",
    f"""CREATE VIEW facts AS SELECT
        {_OF_URL}, page_.fetched, {_FACTS}
    FROM facts_ JOIN urls USING (number) JOIN page_ USING (number)""",
    """CREATE VIEW inlinks AS SELECT walk, newest, url, count(*) AS pages FROM links
    WHERE rejected IS NULL GROUP BY walk, url""",
    f"CREATE VIEW waiting AS SELECT {_OF_URL}, tries, depth, {_REFERRER}, {_AGAIN} FROM urls "
    "WHERE NOT ended AND purpose <> 'sitemap'",
)

STATEMENTS = (
    *_TABLES,
    *VIEWS,
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
)
"""The statements that create the database, in one transaction."""
