"""Options: how each is declared, and how the text after it is split into values.

All that defines an option is in its declaration: the parameters and the help are made from it. The
library checks the values. No message shows a text that may hold a password.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Self
from urllib.parse import unquote_to_bytes

import click

from trio_crawler.cli.secrets import Login, line, lines

NORMAL = 2
"""The `level` between `-q` (0) and `-v` (3)."""

# Expressions as text: `re` compiles each at its first use. ▶ All of them take 4 ms.
# The slashes may be missing, as browsers allow; a host that is called "http" has a port.
_WEB = r"(?i:https?:(?![0-9]+(?:[/?#\\]|$)))"
_SCHEME = rf"(?i:[a-z][a-z0-9+.-]*://)|{_WEB}"
# All that a browser skips between the scheme and the host.
_SLASHES = r"[^:]*:[/\\]*"
# A word before a colon that no port follows is a scheme, or the user of a login.
_WORD = r"(?i)([a-z][a-z0-9+.-]*):(?![0-9]*(?:[/?#\\]|$))"
_OTHER_SCHEMES = frozenset(
    "about blob chrome data file ftp geo git irc javascript magnet mailto news sftp sip sms ssh "
    "tel urn view-source ws wss".split()
)
_MAILBOX = r"[^@:/?#\\]+@[^@:/?#\\]+"
_PAGE = r"(?i)\.(?:s?html?|xht(?:ml)?)$"
_PATH = r"\.{0,2}/(?!/)|\.{1,2}\\|\.{1,2}$|~|[a-zA-Z]:[/\\]"
_LABEL = r"(?ai)[a-z0-9_-]+"
# Endings of files that are no top-level domains.
_FILE = (
    r"(?i)[^/?#@:\\]+\.(?:asp|aspx|bak|bz2|cfg|conf|css|csv|db|doc|docx|gif|gz|htm|html|ini|jpeg|jpg|"
    r"js|json|jsonl|jsp|log|odt|pdf|php|png|rst|sqlite|svg|tar|toml|tsv|txt|warc|xhtml|xls|xlsx|"
    r"xml|yaml|yml)"
)
# RFC 6265, 4.1.1: the name is a token. Browsers send more in a value than the RFC allows.
_COOKIE = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+=[^\x00-\x1f\x7f\ud800-\udfff]*"
_TIME = r"(?ai)(.*[0-9.])(ms|[smhdw])"
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_LINE_ENDS = r"[\t\r\n]"
_CONTROL = r"[\x00-\x1f\x7f]"


def urls(context: click.Context, parameter: click.Parameter, given: Any) -> tuple[str, ...]:
    """Return the URLs to crawl, without users; one without a scheme gets http://.

    The users and passwords are stored as the parameter `logins`.
    """
    for word in given:
        if _is_label(word) and os.path.isdir(word):
            raise click.BadParameter(
                f"{word} is a folder; to check it, write trio-crawler check {word}, or of a host "
                f"http://{word}"
            )
    split = [_split_login(_url(url)) for url in given]
    context.params["logins"] = tuple((url, login) for url, login in split if login)
    return tuple(dict.fromkeys(url for url, _ in split))


def listed_url(line: str) -> str:
    """Return the URL in a line of a list; one without a scheme gets http://.

    Raises BadParameter for any other line. The message shows no text that may hold a password.
    """
    if re.match(_WEB, line):
        return _without_user(line)
    if re.match(_SCHEME, line):
        raise click.BadParameter("a URL begins with http:// or https://")
    return _without_user(_url(line))


KINDS = ("external", "assets", "fragments")
"""The kinds of links that can be checked besides the pages of a site."""


def kinds(context: click.Context, parameter: click.Parameter, given: Any) -> tuple[str, ...]:
    """Return the kinds of links to check, of a list with commas; "all" stands for each."""
    if given is None:
        return ()
    named = [word.strip() for word in given.split(",")]
    for word in named:
        if word not in (*KINDS, "all"):
            raise click.BadParameter(f"{word!r} is none of {', '.join(KINDS)} or all")
    return KINDS if "all" in named else tuple(kind for kind in KINDS if kind in named)


def seconds(context: click.Context, parameter: click.Parameter, given: Any) -> float | None:
    """Return a time in seconds; its unit is ms, s, m, h, d or w, without one seconds."""
    if given is None:
        return None
    found = re.fullmatch(_TIME, given)
    number, unit = found.groups() if found else (given, "s")
    try:
        return float(number) * _UNITS[unit.lower()]
    except ValueError:
        raise click.BadParameter(
            f"{given!r} is not a time: write seconds, or a number with a unit, such as 500ms, "
            "30s, 90m, 12h, 1d or 2w"
        ) from None


def site(context: click.Context, parameter: click.Parameter, given: Any) -> tuple[str, ...]:
    """Return the URLs to check; one folder, or files, in place of them are stored apart."""
    folders = [word for word in given if not re.match(_SCHEME, word) and os.path.isdir(word)]
    files = [
        word
        for word in given
        if re.search(_PAGE, word) and _is_file(word) and not re.match(_SCHEME, word)
    ]
    if not folders and not files:
        for word in given:
            _refuse_missing(word)
        return urls(context, parameter, given)
    if len(given) > max(len(folders), len(files)) or len(folders) > 1:
        what = f"the folder {folders[0]}" if folders else f"the file {files[0]}"
        raise click.BadParameter(f"check {what} alone, without another folder or URL")
    if not folders:
        # Of several files the folder that all are in.
        folders = list({os.path.dirname(file) or "." for file in files})
        if len(folders) > 1:
            folders[0] = os.path.relpath(os.path.commonpath(list(map(os.path.abspath, folders))))
    context.params["logins"], context.params["folder"] = (), folders[0]
    context.params["files"] = tuple(
        os.path.relpath(os.path.abspath(file), os.path.abspath(folders[0])) for file in files
    )
    return ()


def _refuse_missing(word: str) -> None:
    """Refuse what looks like a file or a folder that can be checked, and is none."""
    absent = f"there is no file or folder {word}"
    if re.match(_PATH, word) and not os.path.exists(word):
        raise click.BadParameter(absent)
    if _is_file(word) and not re.match(_SCHEME, word):
        raise click.BadParameter(
            f"a check reads .html, .htm and .xhtml files, not {word}; if there is such a host, "
            f"write http://{word}"
        )
    if "/" in word and _is_label(word):
        raise click.BadParameter(f"{absent}; a host of that name is written http://{word}")


def _is_label(word: str) -> bool:
    """Whether a word begins with one label, as a folder does and few hosts."""
    first = word.partition("/")[0]
    return bool(re.fullmatch(_LABEL, first)) and first.lower() != "localhost"


def _is_file(word: str) -> bool:
    # What is below a folder named like a host is a copy of that host.
    first, slash, _ = word.partition("/")
    is_host = slash and "." in first and not re.match(_PATH, word)
    return not is_host and os.path.isfile(word)


def prefixes(context: click.Context, parameter: click.Parameter, given: Any) -> tuple[str, ...]:
    """Return prefixes of URLs, and paths."""
    for prefix in given:
        if not prefix.strip():
            raise click.BadParameter("an empty prefix: every URL begins with it")
        if re.match(_SCHEME, plain := re.sub(_LINE_ENDS, "", prefix.strip())):
            _without_user(plain)
    return tuple(given)


def sitemaps(context: click.Context, parameter: click.Parameter, given: Any) -> tuple[str, ...]:
    """Return URLs and paths of sitemaps; a URL without a scheme gets http://."""
    # Two slashes begin the name of a host.
    is_path = re.compile("/(?!/)").match
    found = (word.strip() for word in given)
    return tuple(
        dict.fromkeys(word if is_path(word) else _without_user(_url(word)) for word in found)
    )


def distinct(context: click.Context, parameter: click.Parameter, given: Any) -> tuple[str, ...]:
    """Return each value once."""
    return tuple(dict.fromkeys(given))


def headers(
    context: click.Context, parameter: click.Parameter, given: Any
) -> tuple[tuple[str, str], ...]:
    """Return headers as names and values."""
    found = [text.partition(":") for word in given for text in lines(word, parameter)]
    if not all(colon for _, colon, _ in found):
        raise click.BadParameter("write it as 'Name: value'")
    return tuple((name.strip(), value.strip()) for name, _, value in found)


def cookies(context: click.Context, parameter: click.Parameter, given: Any) -> tuple[str, ...]:
    """Return cookies, each `NAME=VALUE`; one text may have several, with semicolons between."""
    texts = (text for word in given for text in lines(word, parameter))
    found = tuple(pair.strip(" ") for text in texts for pair in text.split(";"))
    if not all(re.fullmatch(_COOKIE, each) for each in found):
        raise click.BadParameter("write it as NAME=VALUE")
    return found


def credentials(context: click.Context, parameter: click.Parameter, given: Any) -> Login | None:
    """Return a user and a password; only the password may have colons.

    The password is None if a user stands alone on the command line.
    """
    if given is None:
        return None
    text = line(given, parameter)
    user, colon, password = text.partition(":")
    if not colon and (not user or text is not given):
        raise click.BadParameter("write it as USER:PASSWORD")
    return user, password if colon else None


def proxy(context: click.Context, parameter: click.Parameter, given: Any) -> str | None:
    """Return the URL of a proxy."""
    return None if given is None else line(given, parameter)


def _url(url: str) -> str:
    """Return a URL with a scheme. Raises BadParameter, which says what another text is."""
    # As the URL Standard does, so that both find the same host.
    word = re.sub(_LINE_ENDS, "", url.strip())
    if not word:
        raise click.BadParameter("an empty URL")
    if re.match(_SCHEME, word):
        return word
    if word.startswith("@"):
        raise click.BadParameter(
            "URLs are not read from a file after @: write the URLs on the command line, as with "
            "xargs"
        )
    if re.fullmatch(_MAILBOX, word):
        raise click.BadParameter(
            "an e-mail address is no URL; a URL with a user begins with http:// or https://"
        )
    found = re.match(_WORD, word)
    scheme = found[1].lower() if found else ""
    if found and (scheme in _OTHER_SCHEMES or "@" not in _authority(f"http://{word}")):
        what = ", which is an e-mail address" if scheme == "mailto" else ""
        raise click.BadParameter(
            f"a URL begins with http:// or https://, and this one with {scheme}:{what}"
        )
    if re.match(_PATH, word):
        raise click.BadParameter(
            f"{word} is a path, not a URL; to check a folder or a file, write trio-crawler check "
            f"{word}"
        )
    if _is_file(word) or re.fullmatch(_FILE, word):
        raise click.BadParameter(
            f"{word} is a file, not a URL; if there is such a host, write http://{word}"
        )
    return f"http://{word}"


def _split_login(url: str) -> tuple[str, Login | None]:
    """Return a URL without its user and password, and these, percent-decoded."""
    authority = _authority(url)
    if "@" not in authority:
        return url, None
    start = len(url) - len(re.sub(_SLASHES, "", url, count=1))
    userinfo, _, host = authority.rpartition("@")
    if not host:
        # Without the user, the next part of the path would be the host.
        raise click.BadParameter("a URL with a user needs a host after the @")
    plain = url[:start] + host + url[start + len(authority) :]
    user, colon, password = userinfo.partition(":")
    if ":" in _decoded(user):
        raise click.BadParameter("the user in a URL has a colon, which no user can have")
    # An empty user without a password is none (URL Standard, "includes credentials"). For another
    # scheme the library says what is wrong.
    if not (user or password) or not re.match(_WEB, url):
        return plain, None
    return plain, (_decoded(user), _decoded(password) if colon else None)


def _decoded(part: str) -> str:
    try:
        text = unquote_to_bytes(part).decode()
    except UnicodeError:
        raise click.BadParameter("the user or the password in a URL is not UTF-8") from None
    if re.search(_CONTROL, text):
        raise click.BadParameter("the user or the password in a URL has a control character")
    return text


def _without_user(url: str) -> str:
    """Return a URL. Raises BadParameter if it has a user or password, which would do nothing."""
    if "@" in url and "@" in _authority(url):
        raise click.BadParameter(
            "a URL must not hold a user or password here: give them with --auth, or in the URL to "
            "crawl"
        )
    return url


def _authority(url: str) -> str:
    return re.split(r"[/?#\\]", re.sub(_SLASHES, "", url, count=1), maxsplit=1)[0]


def level(context: click.Context, parameter: click.Parameter, words: Any) -> int:
    """Return how much is shown, by the order of -q and -v, as in the crawler of the chapter."""
    shown = NORMAL
    for word in words or ():
        shown = 0 if word == "quiet" else min(shown + 1, 3)
    return shown


# All that defines one option.

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class Group(StrEnum):
    """The headings of the help, in their order."""

    CRAWLED = "What to crawl"
    BOUNDS = "How far to go"
    CHECKED = "What to check"
    JUDGED = "What counts as a fault of a check"
    SPEED = "How fast, and how often to retry"
    SENT = "What to send"
    CONNECTIONS = "How to connect"
    DIRECTORY = "Crawl directory"
    FILES = "Files to write"
    SHOWN = "What to show"


class Output(Enum):
    """The output that an option names: none, a file or "-" (standard output), or only a file."""

    NONE = 0
    STREAM = 1
    FILE = 2


class Declaration:
    """One option, or an argument if it has no `flags`.

    With `same_crawl` a crawl directory is continued only with the same value. With `recorded` the
    directory stores the value of each run, for its readers. `stored` is the name of the value
    there, if it is not that of the flag. With `of_check` only a check obeys it. `attributes` are
    those of `click.Option`.
    """

    def __init__(
        self,
        group: Group,
        *flags: str,
        same_crawl: bool = False,
        recorded: bool = False,
        stored: str = "",
        output: Output = Output.NONE,
        of_check: bool = False,
        **attributes: Any,
    ) -> None:
        self.group, self.flags, self.attributes = group, flags, attributes
        self.same_crawl, self.recorded = same_crawl, recorded
        self.output, self.of_check = output, of_check
        named = flags[-1].partition("/")[0] if flags else attributes["metavar"].rstrip(".")
        self.flag: str = named
        """The option as messages name it."""
        self.key = stored or named.lstrip("-").replace("-", "_")
        """The name under which a crawl directory stores the value."""

    def parameter(self, name: str) -> click.Parameter:
        """Return the parameter of a command that sets the field `name`."""
        if not self.flags:
            return click.Argument([name], **self.attributes)
        return GroupedOption([*self.flags, name], group=self.group, **self.attributes)


class GroupedOption(click.Option):
    """An option with the group that it belongs to."""

    def __init__(self, *args: Any, group: Group, **more: Any) -> None:
        super().__init__(*args, **more)
        self.group = group

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Let the shell complete a path where the option takes one."""
        kind = {"FILE": "file", "DIR": "dir"}.get(self.metavar or "")
        if kind is None:
            return super().shell_complete(ctx, incomplete)
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type=kind)]


class Field:
    """A field of `Options`: what declares it, and the default of one that is not declared."""

    def __init__(
        self, *declared: Declaration, secret: bool = False, default: object = None
    ) -> None:
        self.declared, self.secret, self.default = declared, secret, default


class Options:
    """The values of options, by the names of their fields; a secret is not in the repr.

    ▶ A dataclass of all these fields takes 2 ms to make.
    """

    fields: ClassVar[dict[str, Field]] = {}

    def __init_subclass__(cls) -> None:
        own = {name: each for name, each in vars(cls).items() if isinstance(each, Field)}
        cls.fields = cls.fields | own

    def __init__(self, **values: Any) -> None:
        given = {name: each.default for name, each in self.fields.items() if not each.declared}
        given |= values
        if wrong := given.keys() ^ self.fields.keys():
            raise TypeError(f"{type(self).__name__} lacks or has not: {', '.join(sorted(wrong))}")
        vars(self).update(given)

    def __repr__(self) -> str:
        shown = {
            name: getattr(self, name) for name, each in self.fields.items() if not each.secret
        }
        return f"{type(self).__name__}({shown})"

    def but(self, **values: Any) -> Self:
        """Return the options with other values."""
        return type(self)(**vars(self) | values)


def option(
    group: Group, *flags: str, secret: bool = False, beside: Declaration | None = None, **more: Any
) -> Any:
    """Declare a field; a `secret` is not in the repr, and the option `beside` sets it too."""
    return Field(Declaration(group, *flags, **more), *filter(None, [beside]), secret=secret)


def undeclared(default: Any, *, secret: bool = False) -> Any:
    """Declare a field that no option sets by itself; the default is not changed."""
    return Field(secret=secret, default=default)


def switch(group: Group, *flags: str, **more: Any) -> Any:
    """Declare a field that is True if the option is given."""
    return option(group, *flags, is_flag=True, **more)


def stream(group: Group, flag: str, **more: Any) -> Any:
    """Declare a field that names a file, or "-" for standard output."""
    return option(group, flag, metavar="FILE", output=Output.STREAM, **more)


def time(group: Group, flag: str, **more: Any) -> Any:
    """Declare a field with a number of seconds, which the option may give in another unit."""
    return option(group, flag, metavar="TIME", type=str, callback=seconds, **more)


def declared(options: type[Options]) -> Iterator[tuple[str, Declaration]]:
    """Yield the name of each field with its declaration; a field may have two."""
    return ((name, each) for name, field in options.fields.items() for each in field.declared)


def secret_flags(options: type[Options]) -> list[str]:
    """Return the options whose values may be secrets."""
    return [each.flag for name, each in declared(options) if options.fields[name].secret]


def parameters(options: type[Options]) -> list[click.Parameter]:
    """Return the parameters of a command that has these options."""
    return [declaration.parameter(name) for name, declaration in declared(options)]


def requested(options: Options) -> dict[str, tuple[str, Output]]:
    """Return the paths to write to, each with the kind of its output, by their options."""
    return {
        each.flag: (path, each.output)
        for name, each in declared(type(options))
        if each.output is not Output.NONE and (path := getattr(options, name)) is not None
    }
