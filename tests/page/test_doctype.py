"""XHTML with a document type that declares entities, as gitweb writes it."""

from __future__ import annotations

import re
import time

import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from trio_crawler.page.media import blank_doctype
from trio_crawler.page.read import Facts, read

URL = "http://e.test/a/"
XHTML = "application/xhtml+xml"
PUBLIC = 'PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "http://www.w3.org/TR/xhtml1/xhtml1.dtd"'
HEAD = (
    '<title>Log</title><meta name="robots" content="index, nofollow"/>'
    '<link rel="canonical" href="/x"/>'
)
REST = (
    f'<html xmlns="http://www.w3.org/1999/xhtml"><head>{HEAD}</head>'
    '<body><a href="/y">&nbsp;y</a></body></html>'
)
DOCTYPES = {
    "gitweb": '<!DOCTYPE html [\n\t<!ENTITY nbsp "&#xA0;">\n\t<!ENTITY sdot "&#x22C5;">\n]>',
    "public": f'<!DOCTYPE html {PUBLIC} [<!ENTITY nbsp "&#160;">]>',
    "white space": '<!DOCTYPE\n\thtml[ <!ENTITY nbsp "&#160;"> ] \r\n>',
    "a quoted end": '<!DOCTYPE html [<!ENTITY a "]>"><!ENTITY b \']>"[\'>]>',
    "a quoted end of the name": "<!DOCTYPE html SYSTEM \"a>b[\" [<!ENTITY a ''>]>",
    "a comment": '<!DOCTYPE html [<!-- it\'s "]> --><!ENTITY a "b"><!---->]>',
    "an instruction": "<!DOCTYPE html [<?php ]> \" ?><!ENTITY a 'b'>]>",
    "other declarations": (
        "<!DOCTYPE html [<!ELEMENT a (#PCDATA)>%more;\n<!ATTLIST a b CDATA ']>'>"
        '<!NOTATION n SYSTEM "n">]>'
    ),
    "an empty subset": "<!DOCTYPE html []>",
    "no subset": f"<!DOCTYPE html {PUBLIC}>",
    "quotes only": "<!DOCTYPE html SYSTEM 'a>b'>",
    "before it": '<?xml version="1.0"?>\n<!-- <!DOCTYPE x> --><?x ?><!DOCTYPE html [<!--]>-->]>',
    "none": '<?xml version="1.0" encoding="utf-8"?>',
}


def facts(text: str, media: str = XHTML) -> Facts:
    return read(text.encode(), media, URL)


@for_each("media", [XHTML, "application/xml", "text/xml", f"{XHTML}; charset=utf-8"])
@for_each("doctype", DOCTYPES.values(), ids=DOCTYPES)
def test_the_head_of_xhtml_is_read_behind_a_document_type_with(doctype, media):
    page = facts(doctype + "\n" + REST, media)
    assert page.meta_robots == ("index, nofollow",)
    assert (page.canonical, page.title) == ("http://e.test/x", "Log")
    assert page.links == ("http://e.test/y",)


def test_links_in_a_document_type_are_none():
    subset = "<!ENTITY a '<a href=\"/no\">'><!-- <meta name='robots' content='no'/> -->"
    page = facts(f"<!DOCTYPE html [{subset}]>{REST}")
    assert (page.links, page.meta_robots) == (("http://e.test/y",), ("index, nofollow",))


@pytest.mark.parametrize("doctype", ["gitweb", "public", "a quoted end"])
def test_in_html_a_document_type_ends_at_the_first_bracket_as_in_a_browser(doctype):
    page = facts(DOCTYPES[doctype] + REST, "text/html")
    assert (page.meta_robots, page.canonical) == ((), None)
    assert page.links == ("http://e.test/y",)


@for_each(
    "doctype",
    [
        '<!DOCTYPE html [<!ENTITY a "b>]>',
        "<!DOCTYPE html [<!ENTITY a 'b'>",
        "<!DOCTYPE html [<!-- ]>",
        "<!DOCTYPE html [ < ]>",
        "<!DOCTYPE html ['",
        "<!doctype html [ ]>",
        "<!DOCTYPE",
        "text <!DOCTYPE html []>",
        "<!DOCTYPE html [" + " " * 65_536 + "]>",
    ],
)
def test_what_is_no_document_type_of_xml_is_left_as_it_is(doctype):
    assert blank_doctype(doctype + "<p>") == doctype + "<p>"


ANY = st.text("[]<>\"'-?!% a", max_size=6)
QUOTED = st.builds('"{}"'.format, ANY.filter(lambda a: '"' not in a)) | st.builds(
    "'{}'".format, ANY.filter(lambda a: "'" not in a)
)
DECLARED = (
    st.builds("<!--{}-->".format, ANY.filter(lambda a: "--" not in a + "-"))
    | st.builds("<?x {}?>".format, ANY.filter(lambda a: "?>" not in a + "?"))
    | st.builds("<!ENTITY a {}>".format, QUOTED)
    | st.sampled_from(["%a;", " ", "\n"])
)
NAMES = st.sampled_from([" html", " html PUBLIC 'a>' \"[\"", "\thtml SYSTEM '\">'"])
SUBSETS = st.just("") | st.builds(" [{}] ".format, st.lists(DECLARED, max_size=5).map("".join))


@given(NAMES, SUBSETS, st.sampled_from(["", '<?xml version="1.0"?>', "<!-- <!DOCTYPE a> -->\n"]))
def test_a_document_type_is_blanked_to_the_letter(names, subset, before):
    doctype = f"<!DOCTYPE{names}{subset}>"
    blank = re.sub("[^\n]", " ", doctype)
    assert blank_doctype(before + doctype + REST) == before + blank + REST


@for_each("piece", ["<!--", "<?", "<!x ", "<!x '", '"', "[", "]", "<", " ", "%a;"])
@for_each("start", ["", "<!DOCTYPE html ", "<!DOCTYPE html [", "<!DOCTYPE a 'b' [<!E"])
def test_the_time_grows_with_the_length_and_no_faster(start, piece):
    text = start + piece * (200_000 // len(piece))
    started = time.process_time()
    for _ in range(10):
        blank_doctype(text)
    assert time.process_time() - started < 0.5
