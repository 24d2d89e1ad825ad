"""A bakery's site of five pages, two of them moved: what its pages say of themselves."""

from __future__ import annotations

from sites.serving import NOT_THERE, Answer

JSON_LD = '<script type="application/ld+json">{}</script>'
HOME = """<!doctype html><html lang=en><title>The bakery</title>
<meta name=description content="Bread and cake, baked each night.">
<link rel=alternate hreflang=nl href=/nl>
<meta property="og:title" content="The bakery">
<h1>Bread <em>and</em> cake</h1> <img src=/oven.jpg alt="The oven">
<a href=/bread>Our bread</a> <a href=/cake>Our cake</a> <a href=/nl>Nederlands</a>
<a href=/order>Order a cake</a> <a href=/loaves>All loaves</a>"""
BREAD = """<!doctype html><html lang=en><title>Bread</title>
<h1>Rye</h1> <img src=/rye.jpg> <h1>Wheat</h1> <img src=/wheat.jpg>
<p>Each loaf needs a day. <a href=/>Back</a>"""
CAKE = """<!doctype html><html lang=en><title>Cake</title>
<meta name=description content="Six kinds of cake."><h1>Cake</h1> <a href=/>Back</a>"""
DUTCH = """<!doctype html><html lang=nl><title>De bakkerij</title>
<meta name=description content="Brood en taart.">
<link rel=alternate hreflang=en href=/> <h1>Brood en taart</h1> <a href=/>Terug</a>"""
ORDER = """<!doctype html><title>Order</title><div id=app></div>
<script src=/order.js></script>"""
PAGES = {
    "/": HOME + JSON_LD.format('{"@type": "Bakery", "name": "The bakery"}'),
    "/bread": BREAD + JSON_LD.format('{"@type": "Product", "name": "Rye",}'),
    "/cake": CAKE,
    "/nl": DUTCH,
    "/order": ORDER,
}
MOVED = {"/loaves": "/breads", "/breads": "/bread"}


def answer(path: str) -> Answer:
    """Answer with a page, or with where it is now."""
    if path in MOVED:
        return Answer(status=301, headers={"Location": MOVED[path]})
    return Answer(PAGES[path]) if path in PAGES else NOT_THERE
