"""Migrate the database of an older format to the current one."""

# ruff: noqa: S608 - all names that are put into SQL are our own.

from __future__ import annotations

import json

from trio_crawler.store import schema
from trio_crawler.store.database import Database, Row

_NOT_ASKED = "not asked for: "
_OF_ROBOTS = "robots.txt: "

# In format 1 rejected links are "refused", and the folding of a page follows from other columns.
# Only a prefix of `detail` tells that robots.txt failed, or that a sitemap was not requested.
_FROM_1 = (
    *(
        f"ALTER TABLE {table} RENAME COLUMN refused TO rejected"
        for table in ("page_", "links_", "redirect_", "sitemaps")
    ),
    "ALTER TABLE page_ ADD COLUMN folded_into TEXT",
    "ALTER TABLE failure_ ADD COLUMN about TEXT",
    "ALTER TABLE sitemaps ADD COLUMN fetched INTEGER DEFAULT 1",
    """UPDATE page_ SET folded_into = canonical WHERE canonical = duplicate_of AND coalesce(
        (SELECT json_extract(value, '$.canonical') FROM crawl WHERE key = 'meaning'), 1)""",
    "UPDATE failure_ SET reason = 'connection_refused' WHERE reason = 'refused'",
    f"""UPDATE failure_ SET about = 'robots', detail = substr(detail, {len(_OF_ROBOTS) + 1})
        WHERE exact IS NULL AND detail LIKE '{_OF_ROBOTS}%'""",
    f"""UPDATE sitemaps SET fetched = 0, detail = '' WHERE detail LIKE '{_NOT_ASKED}%'""",
    "DROP TABLE hosts",
    schema.HOSTS,
)
_HOST_COLUMNS = "name, waiting, in_flight, max_in_flight, delay, rest, latency, failures, given_up"
# The place of the value that was added to the list in `exact`: in formats 2 and 7.
_REASONS = {"refused": "connection_refused"}
_ADDED = {"page_": 19, "failure_": 7, "sitemaps": 8}
_OF_8 = ("asked", "refused")
_FRAGMENT = {"redirect_": 6, "check_": 9}


def migrate(database: Database, version: int) -> None:
    """Rewrite a database of an older `version`; the caller begins and commits the transaction.

    Afterwards the database is equal to one that the current version created.
    """
    for name in ("pages", "links", "redirects", "failures", "skipped", "waiting"):
        database.execute(f"DROP VIEW {name}")
    if version < 5:
        _to_5(database, version)
    if version < 6:
        _to_6(database)
    else:
        database.execute("DROP VIEW checked")
    # Up to format 6 redirects had no fragment; a table for checks without one had format 6 alone.
    for table in ("redirect_",) * (version < 7) + ("check_",) * (version == 6):
        database.execute(f"ALTER TABLE {table} ADD COLUMN fragment TEXT")
        _insert_value(database, table, _FRAGMENT[table])
    if version >= 5:
        for name in _OF_8:
            database.execute(f"ALTER TABLE hosts ADD COLUMN {name} {schema.HOST_COUNTS[name]}")
    for statement in schema.VIEWS:
        database.execute(statement)
    database.execute(f"PRAGMA user_version = {schema.VERSION}")


def _to_6(database: Database) -> None:
    if not any(row[1] == "text_blocks" for row in database.rows("PRAGMA table_info(page_)")):
        # Some programs of format 5 had no samples of the texts.
        database.execute("ALTER TABLE page_ ADD COLUMN text_blocks BLOB")
        database.execute(schema.REPEATED)
    # As it is now: the changes after format 6 are made to a table of that format only.
    database.execute(schema.CHECK)
    database.execute(schema.FOUND)


def _to_5(database: Database, version: int) -> None:
    if version < 2:
        hosts = _hosts_of_1(database)
        for statement in _FROM_1:
            database.execute(statement)
        marks = ", ".join("?" * 9)
        database.execute_many(f"INSERT INTO hosts ({_HOST_COLUMNS}) VALUES ({marks})", hosts)
        for table, place in _ADDED.items():
            _insert_value(database, table, place)
    if version < 3:
        database.execute("ALTER TABLE runs ADD COLUMN reason TEXT")
    if version < 4:
        database.execute("ALTER TABLE urls ADD COLUMN source INTEGER")
    database.execute("ALTER TABLE urls ADD COLUMN again INTEGER")
    if version > 1:
        for name, kind in schema.HOST_COUNTS.items():
            database.execute(f"ALTER TABLE hosts ADD COLUMN {name} {kind}")
    database.execute("UPDATE hosts SET walk = (SELECT max(walk) FROM walks)")
    for column in ("text_digest BLOB", "text_size INTEGER"):
        database.execute(f"ALTER TABLE page_ ADD COLUMN {column}")


def _hosts_of_1(database: Database) -> list[Row]:
    """Return the rows for hosts: format 1 had one for each scheme, with the same load in both."""
    schemes: dict[str, list[Row]] = {}
    for row in database.rows("SELECT host, scheme, * FROM hosts ORDER BY rowid"):
        schemes.setdefault(row[0], []).append(row[1:])
    return [_merged(name, rows) for name, rows in schemes.items()]


def _merged(name: str, rows: list[Row]) -> Row:
    given_up = {row[0]: _why(*row[10:]) for row in rows if row[10] is not None}
    _, _, _, waiting, in_flight, limit, delay, rest, latency, failures, *_ = zip(
        *rows, strict=True
    )
    about = (name, sum(waiting), max(in_flight), max(limit), max(delay), min(rest))
    return (*about, max(latency), max(failures), json.dumps(given_up) if given_up else None)


def _why(reason: str, detail: str | None, phase: str | None) -> dict[str, str | None]:
    """Return why a host was given up by one scheme, as `runs` stores it."""
    fields: dict[str, str | None] = {"reason": _REASONS.get(reason, reason)}
    if detail is None:
        return fields
    if detail.startswith(_OF_ROBOTS):
        return fields | {"detail": detail[len(_OF_ROBOTS) :], "phase": phase, "about": "robots"}
    return fields | {"detail": detail, "phase": phase, "about": None}


def _insert_value(database: Database, table: str, place: int) -> None:
    """Insert a null into the list in `exact` of each row that has one."""
    key = "id" if table == "sitemaps" else "number"
    for number, exact in database.rows(f"SELECT {key}, exact FROM {table} WHERE exact NOT NULL"):
        values = json.loads(exact.decode("utf-8", "surrogatepass"))
        values.insert(place, None)
        text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
        packed = text.encode("utf-8", "surrogatepass")
        database.execute(f"UPDATE {table} SET exact = ? WHERE {key} = ?", packed, number)
