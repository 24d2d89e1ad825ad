"""Find and open files by names below a folder, none outside of it, and know their media types."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from contextlib import suppress

# A file that becomes a FIFO just now does not block the open, a terminal does not become ours.
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY

# Only ASCII: "ß" becomes "SS" in upper case, which another file system may not fold.
_OTHER_CASE = {ord(letter): letter.swapcase() for letter in map(chr, range(128))}

# Lists of names that are remembered, and links that one path may lead through, as on Linux.
_MAX_LISTS, _MOST_LINKS = 64, 40

# The module `mimetypes` reads tables of the machine, which differ. These are the types of the IANA
# registry. Text types are without a charset, so that what a page says about itself counts.
_SUFFIXES = {
    "text/html": "html htm shtml",
    "application/xhtml+xml": "xhtml xht",
    "text/css": "css",
    "text/javascript": "js mjs cjs",
    "application/json": "json map",
    "application/ld+json": "jsonld",
    "application/manifest+json": "webmanifest",
    "application/geo+json": "geojson",
    "application/xml": "xml xsl xsd",
    "application/rss+xml": "rss",
    "application/atom+xml": "atom",
    "text/plain": "txt text asc log conf ini",
    "text/markdown": "md markdown",
    "text/csv": "csv",
    "text/tab-separated-values": "tsv",
    "text/calendar": "ics",
    "text/vcard": "vcf",
    "text/vtt": "vtt",
    "text/x-rst": "rst",
    "application/yaml": "yaml yml",
    "image/svg+xml": "svg",
    "image/png": "png",
    "image/apng": "apng",
    "image/jpeg": "jpg jpeg jpe jfif",
    "image/gif": "gif",
    "image/webp": "webp",
    "image/avif": "avif",
    "image/jxl": "jxl",
    "image/heic": "heic",
    "image/vnd.microsoft.icon": "ico cur",
    "image/bmp": "bmp",
    "image/tiff": "tif tiff",
    "font/woff": "woff",
    "font/woff2": "woff2",
    "font/ttf": "ttf",
    "font/otf": "otf",
    "font/collection": "ttc",
    "application/vnd.ms-fontobject": "eot",
    "audio/mpeg": "mp3",
    "audio/mp4": "m4a",
    "audio/aac": "aac",
    "audio/ogg": "ogg oga opus",
    "audio/wav": "wav",
    "audio/flac": "flac",
    "audio/midi": "mid midi",
    "video/mp4": "mp4 m4v",
    "video/mpeg": "mpg mpeg",
    "video/webm": "webm",
    "video/ogg": "ogv",
    "video/quicktime": "mov",
    "video/x-msvideo": "avi",
    "video/x-matroska": "mkv",
    "application/vnd.apple.mpegurl": "m3u8",
    "application/pdf": "pdf",
    "application/postscript": "ps eps ai",
    "application/epub+zip": "epub",
    "application/rtf": "rtf",
    "application/msword": "doc",
    "application/vnd.ms-excel": "xls",
    "application/vnd.ms-powerpoint": "ppt",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
    "application/vnd.oasis.opendocument.text": "odt",
    "application/vnd.oasis.opendocument.spreadsheet": "ods",
    "application/vnd.oasis.opendocument.presentation": "odp",
    "application/gzip": "gz tgz",
    "application/x-bzip2": "bz2",
    "application/x-xz": "xz",
    "application/zstd": "zst",
    "application/zip": "zip",
    "application/x-tar": "tar",
    "application/x-7z-compressed": "7z",
    "application/vnd.rar": "rar",
    "application/java-archive": "jar",
    "application/wasm": "wasm",
    "application/octet-stream": "bin exe dll so dmg iso img deb rpm msi apk whl pyc",
}

_TYPES = {
    suffix: media.encode() for media, suffixes in _SUFFIXES.items() for suffix in suffixes.split()
}


class OutsideError(Exception):
    """A symbolic link leads out of the folder."""


class Files:
    """The files of a folder.

    A symbolic link is followed if what it leads to, with all links resolved, is in the folder.
    Names are compared by case on every file system; that of the folder itself counts for all that
    is in it. A program that replaces a directory by a symbolic link in the moment of a lookup is
    not guarded against: it can read the files itself.

    ▶ `os.path.realpath` takes 28 us, since it looks at each directory from the root of the disk
    on, and `os.lstat` 3 us. So links are resolved only where there is one, and a relative one that
    stays in the folder without it.
    """

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root, strict=True)
        # "" for the root of the disk.
        self._root = self.root.rstrip(os.sep)
        self._folds = _finds_any_case(self.root)
        self._lists: dict[str, tuple[int, frozenset[str]]] = {}

    def find(self, names: Sequence[str]) -> tuple[str, os.stat_result]:
        """Return the path that the names lead to, without links in it, and its status.

        No name may be empty, "." or "..", or have a separator or a null. Raises OSError, which is
        FileNotFoundError for a name in another case, and OutsideError.
        """
        for _ in range(_MOST_LINKS):
            path, status = self._walk(names)
            if not stat.S_ISLNK(status.st_mode):
                return path, status
            names = self._resolved(path, names)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)

    def _walk(self, names: Sequence[str]) -> tuple[str, os.stat_result]:
        """Follow the names up to the first symbolic link, or to the end."""
        if not names:
            return self.root, os.stat(self.root)
        path = self._root
        for name in names:
            directory, path = path, f"{path}{os.sep}{name}"
            status = os.lstat(path)
            if self._folds and name not in self._names(directory):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            if stat.S_ISLNK(status.st_mode):
                break
        return path, status

    def _resolved(self, link: str, names: Sequence[str]) -> Sequence[str]:
        """Return names for the same place without the first link among them, which is at `link`.

        The place itself may be a link, too.
        """
        depth = link.count(os.sep, len(self._root))
        above, target = list(names[: depth - 1]), os.readlink(link).split(os.sep)
        while above and target[:1] == [".."]:
            del above[-1], target[0]
        if target and not any(name in ("", ".", "..") for name in target):
            return [*above, *target, *names[depth:]]
        # Not strict: what is there outside of the folder makes no difference.
        real = os.path.realpath(os.sep.join((link, *names[depth:])))
        if real == self.root:
            return ()
        if not real.startswith(self._root + os.sep):
            raise OutsideError(real)
        return real[len(self._root) + 1 :].split(os.sep)

    def _names(self, directory: str) -> frozenset[str]:
        changed = os.stat(directory or os.sep).st_mtime_ns
        known = self._lists.get(directory)
        if known is None or known[0] != changed:
            if len(self._lists) >= _MAX_LISTS:
                self._lists.clear()
            known = self._lists[directory] = (changed, frozenset(os.listdir(directory or os.sep)))
        return known[1]


def open_found(path: str, found: os.stat_result) -> int:
    """Open the regular file that `Files.find` found; return its descriptor. Raises OSError.

    The caller closes the descriptor.
    """
    descriptor = os.open(path, _OPEN)
    if not os.path.samestat(os.fstat(descriptor), found):
        os.close(descriptor)
        raise OSError(errno.EBUSY, "the file was replaced while it was opened", path)
    return descriptor


def _finds_any_case(directory: str) -> bool:
    """Whether the file system of a directory finds names in another case."""
    with suppress(OSError):
        for name in os.listdir(directory):
            if (other := name.translate(_OTHER_CASE)) != name:
                return os.path.lexists(os.path.join(directory, other))
    return False


def type_of(name: str) -> bytes:
    """Return the media type of a file by the end of its name, in any case; b"" if it has none."""
    return _TYPES.get(name[name.rfind(".") + 1 :].lower(), b"") if "." in name else b""
