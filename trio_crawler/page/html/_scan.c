/* Find the links, the first base and the first title of a page of HTML: `start_tags`, compiled.
 *
 * `accelerator.py` says when this is used, and what it saves. Each rule is one of `tokenizer.py`,
 * which names the sections of the HTML Standard. There is no stack of open elements: a page is given
 * up if a `template`, SVG or MathML contains more than they mostly do. All reading goes forward and no
 * function calls itself, so the time is linear for every page.
 *
 * This is not of the limited API, which shows the characters of a str only by way of an encoder:
 * that takes 56 us for 48 KiB with one curly quote, more than all that is done here. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

#define MAX_TAGS 500000   /* the reader in Python reads no more, and says so; no page has more rows */
#define SLICE 4096        /* links, after which other threads may run: some 1.5 ms */
#define LET_OTHERS_RUN { Py_BEGIN_ALLOW_THREADS Py_END_ALLOW_THREADS }
#define SHOWN (16 * 1024) /* bytes after a link in which its text is searched for, and more */
#define BEGINNING 64      /* characters of a data: or javascript: URL that are shown */
#define MAX_SHARED 16384  /* URLs that are one object in all directories */
#define HIGH 0x8080808080808080 /* the bits that no byte of ASCII has */
#define LARGE (64 * 1024) /* characters; for a larger page the lock of the interpreter is released */

typedef unsigned char byte;

typedef struct {
    const byte *start, *end; /* start is NULL if there is none */
} Span;

/* The relevant elements: those of raw text, and then those in which a tag may mean another thing. */
typedef enum {
    OTHER, A, AREA, BASE,
    TITLE, SCRIPT, STYLE, TEXTAREA, XMP, IFRAME, NOEMBED, NOFRAMES,
    TEMPLATE, SVG, MATH, PLAINTEXT, NAMES
} Name;
static const char *const NAME[NAMES] = {
    "", "a", "area", "base",
    "title", "script", "style", "textarea", "xmp", "iframe", "noembed", "noframes",
    "template", "svg", "math", "plaintext",
};

typedef struct {
    Span name, href, rel, id, anchor; /* anchor: the attribute "name" */
    int empty;                        /* it ends in "/>" */
    int rare; /* it has a cite, a background, a formaction, or a style that may have a URL */
    const byte *attributes_end;
} Tag;

typedef struct {
    short name;      /* an index of TOLD, or IRRELEVANT */
    signed char odd; /* 1 if it may be written otherwise than its URL ends, -1 if it has none */
    byte nofollow;   /* if only links are read */
    const byte *start, *begin, *end, *content, *content_end, *shown_end; /* of an `a`: its text's */
} Row;

/* What `tags` returns as names: a usual link, a place, a `use` of SVG, and the elements of HTML that may
 * point somewhere. What is around a `use` is not returned: only an outline has it. */
enum { USUAL, PLACE, AROUND, USE, POINTING, IRRELEVANT = -1 };
static const char *const TOLD[] = {
    "", "#", "", "svg use",
    "a", "area", "audio", "base", "embed", "form", "frame", "iframe", "image", "img",
    "input", "link", "meta", "noembed", "noframes", "object", "script", "source", "style",
    "textarea", "title", "track", "video", "xmp", NULL,
};
/* The elements of plain SVG and MathML that point nowhere. HTML may be in some, but hardly ever is. */
static const char *const SHAPES[] = {
    "path", "g", "circle", "rect", "line", "polygon", "polyline", "ellipse", "text", "tspan", "symbol",
    "defs", "style", "stop", "lineargradient", "radialgradient", "clippath", "mask", "title", "desc",
    "pattern", "marker", "filter", "feblend", "fecolormatrix", "fecomposite", "fedropshadow", "feflood",
    "fegaussianblur", "femerge", "femergenode", "feoffset", "set", "animate", "animatemotion", "metadata",
    "animatetransform", "textpath", "mi", "mn", "mo", "mrow", "msub", "msup", "msubsup", "mfrac", "mspace",
    "mtext", "mstyle", "ms", "mover", "munder", "munderover", "msqrt", "mroot", "mtable", "mtr", "mtd",
    "mpadded", "mphantom", "menclose", "merror", "mmultiscripts", "semantics", "annotation", NULL,
};

/* What is read of a page: all that may point somewhere and the places; the elements of TOLD but for `a`; or
 * only the `a` and `area`. */
typedef enum { ALL, ELEMENTS, LINKS } Part;

typedef struct {
    const byte *start, *end;
    Part part;
    int given_up;
    Py_ssize_t tags, count, room, most; /* with so many rows it is given up */
    Row *rows;
    Span base, title;
} Page;

enum { SPACE = 1, SLASH = 2, GREATER = 4, EQUALS = 8, NAME_END = SPACE | SLASH | GREATER, ODD = 16 };
static const byte CLASS[256] = {
    ['\t'] = SPACE | ODD, ['\n'] = SPACE | ODD, ['\f'] = SPACE, ['\r'] = SPACE | ODD, [' '] = SPACE,
    ['/'] = SLASH, ['>'] = GREATER, ['='] = EQUALS, ['&'] = ODD, ['\\'] = ODD, ['%'] = ODD, ['|'] = ODD,
    [0x80 ... 0xFF] = ODD,
};
#define IS(c, classes) (CLASS[c] & (classes))

static byte lower(byte c) { return c >= 'A' && c <= 'Z' ? c + 'a' - 'A' : c; }

static int is_letter(byte c) { return (byte)((c | 0x20) - 'a') < 26; }

/* Whether a text begins with `word`, in any case. */
static int begins(const byte *at, const byte *end, const char *word)
{
    for (; *word; word++, at++)
        if (at >= end || lower(*at) != (byte)*word) return 0;
    return 1;
}

/* Whether a text begins with `word` as the whole name of a tag. */
static int begins_name(const byte *at, const byte *end, const char *word)
{
    Py_ssize_t length = strlen(word);
    return end - at > length && IS(at[length], NAME_END) && begins(at, end, word);
}

static int is_word(Span name, const char *word)
{
    return name.end - name.start == (Py_ssize_t)strlen(word) && begins(name.start, name.end, word);
}

static const byte *find(const byte *at, const byte *end, char c)
{
    return memchr(at, c, end - at);
}

/* The second letters of the names in NAME and TOLD, by their first. Hardly any other tag has both. */
#define B(c) (1u << ((c) - 'a'))
static const uint32_t SECOND[256] = {
    ['a'] = B('r') | B('u'), ['b'] = B('a'), ['e'] = B('m'), ['f'] = B('o') | B('r'),
    ['i'] = B('f') | B('m') | B('n'), ['l'] = B('i'), ['m'] = B('a') | B('e'), ['n'] = B('o'),
    ['o'] = B('b'), ['p'] = B('l'), ['s'] = B('c') | B('e') | B('o') | B('t') | B('v'),
    ['t'] = B('e') | B('i') | B('r'), ['v'] = B('i'), ['x'] = B('m'),
};

/* Whether a name may be one of those in NAME or TOLD: none of these has two letters. */
static int may_matter(Span name)
{
    byte first = lower(*name.start);
    if (name.end - name.start < 3) return name.end - name.start == 1 && first == 'a';
    byte second = lower(name.start[1]);
    return second >= 'a' && second <= 'z' && (SECOND[first] & B(second));
}

/* The names in NAME, by their first letter. */
static const byte OF_LETTER[256][5] = {
    ['a'] = {A, AREA}, ['b'] = {BASE}, ['i'] = {IFRAME}, ['m'] = {MATH},
    ['n'] = {NOEMBED, NOFRAMES}, ['p'] = {PLAINTEXT}, ['s'] = {SCRIPT, STYLE, SVG},
    ['t'] = {TITLE, TEXTAREA, TEMPLATE}, ['x'] = {XMP},
};

static Name identify(Span name)
{
    for (const byte *each = OF_LETTER[lower(*name.start)]; *each; each++)
        if (is_word(name, NAME[*each])) return *each;
    return OTHER;
}

/* Whether a style may have a URL: an escape, a reference, or the start of url() or image-set(). */
static int may_point(Span style)
{
    for (const byte *at = style.start; at < style.end; at++) {
        if (*at == '\\' || *at == '&') return 1;
        if (*at == '(' && at - style.start >= 3 &&
            (begins(at - 3, at, "url") || begins(at - 3, at, "set"))) return 1;
    }
    return 0;
}

/* Return where a usual tag ends that does not matter and whose name begins at `at`; NULL if it has
 * to be read. */
static const byte *usual_end(const byte *at, const byte *end, int closing, Part part)
{
    Span name = {at, at};
    while (name.end < end && !IS(*name.end, NAME_END)) name.end++;
    if (!closing && may_matter(name) &&
        (part == ELEMENTS ? name.end - at > 1 : identify(name) != OTHER)) return NULL;
    for (at = name.end;;) {
        const byte *attribute = at;
        while (at < end && !IS(*at, GREATER | EQUALS)) at++;
        if (end - at < 2) return NULL;
        if (*at == '>') return at + 1;
        if (at == attribute || IS(at[-1], SPACE | SLASH) || at[1] != '"') return NULL;
        at = find(at + 2, end, '"');
        if (at == NULL) return NULL;
        at++;
    }
}

/* Return where a tag ends that has no attribute but a class, and whose name does not matter; NULL if
 * it has to be read. */
static const byte *bare_end(const byte *at, const byte *end, int closing)
{
    Span name = {at, at};
    while (name.end < end && !IS(*name.end, NAME_END)) name.end++;
    if (closing ? (*at | 0x20) == 'a' : may_matter(name)) return NULL;
    at = name.end;
    if (end - at > 8 && !memcmp(at, " class=\"", 8)) {
        at = find(at + 8, end, '"');
        if (at == NULL) return NULL;
        at++;
    }
    return at < end && *at == '>' ? at + 1 : NULL;
}

/* Return where a tag ends whose name begins at `at`, or NULL if it does not end. */
static const byte *read_tag(const byte *at, const byte *end, Tag *tag)
{
    tag->name.start = at;
    while (at < end && !IS(*at, NAME_END)) at++;
    tag->name.end = at;
    /* One by one: to clear all of it at once takes as long as to read a short tag. */
    tag->href = tag->rel = tag->id = tag->anchor = (Span){NULL, NULL};
    tag->rare = 0;
    for (;;) {
        tag->attributes_end = at;
        for (tag->empty = 0; at < end && IS(*at, SPACE | SLASH); at++) tag->empty = *at == '/';
        if (at == end) return NULL;
        if (*at == '>') return at + 1;
        Span name = {at, at};
        for (at++; at < end && !IS(*at, NAME_END | EQUALS); at++);
        name.end = at;
        Span value = {at, at};
        const byte *next = at;
        while (next < end && IS(*next, SPACE)) next++;
        if (next < end && *next == '=') {
            for (next++; next < end && IS(*next, SPACE); next++);
            if (next == end) return NULL;
            if (*next == '"' || *next == '\'') {
                value = (Span){next + 1, find(next + 1, end, *next)};
                if (value.end == NULL) return NULL;
                at = value.end + 1;
            } else {
                for (at = next; at < end && !IS(*at, SPACE | GREATER); at++);
                value = (Span){next, at};
            }
        }
        switch (lower(*name.start)) {
        case 'h': if (tag->href.start == NULL && is_word(name, "href")) tag->href = value; break;
        case 'r': if (tag->rel.start == NULL && is_word(name, "rel")) tag->rel = value; break;
        case 'i': if (tag->id.start == NULL && is_word(name, "id")) tag->id = value; break;
        case 'n': if (tag->anchor.start == NULL && is_word(name, "name")) tag->anchor = value; break;
        case 'c': tag->rare |= is_word(name, "cite"); break;
        case 'b': tag->rare |= is_word(name, "background"); break;
        case 'f': tag->rare |= is_word(name, "formaction"); break;
        case 's': tag->rare |= is_word(name, "style") && may_point(value); break;
        }
    }
}

/* Return where a comment, a doctype or similar ends that begins at `at`; NULL if it does not end. */
static const byte *markup_end(const byte *at, const byte *end)
{
    if (!begins(at, end, "<!--")) {
        at = find(at + 2, end, '>');
        return at == NULL ? NULL : at + 1;
    }
    const byte *from = at + 4;
    if (begins(from, end, ">")) return from + 1;
    if (begins(from, end, "->")) return from + 2;
    for (at = from; (at = find(at, end, '>')) != NULL; at++) {
        const byte *dashes = at - (at > from && at[-1] == '!' ? 3 : 2);
        if (dashes >= from && dashes[0] == '-' && dashes[1] == '-') return at + 1;
    }
    return NULL;
}

/* Return where the end tag of a script begins that contains "<!--", or else the page's end. */
static const byte *script_end(const byte *at, const byte *end)
{
    int escaped = 0, doubly = 0;
    while (at < end) {
        if (begins(at, end, "<!--")) {
            const byte *dashes = at += 4;
            while (dashes < end && *dashes == '-') dashes++;
            escaped = !(dashes < end && *dashes == '>');
            if (!escaped) {
                doubly = 0;
                at = dashes + 1;
            }
        } else if (begins(at, end, "-->")) {
            escaped = doubly = 0;
            at += 3;
        } else if (begins_name(at, end, "<script")) {
            doubly = escaped;
            at += strlen("<script");
        } else if (begins_name(at, end, "</script")) {
            if (!doubly) return at;
            doubly = 0;
            at += strlen("</script");
        } else
            at++;
    }
    return end;
}

/* Return where the end tag of raw text begins, or else the page's end. */
static const byte *raw_text_end(Page *page, Name name, const byte *content)
{
    const byte *at = content, *end = page->end;
    int commented = 0;
    for (; (at = find(at, end, '<')) != NULL; at++) {
        if (begins(at, end, "</") && begins_name(at + 2, end, NAME[name])) break;
        commented |= name == SCRIPT && begins(at, end, "<!--");
    }
    if (at == NULL) at = end;
    else if (commented) at = script_end(content, end);
    return at;
}

static int is_nofollow(Page *page, Span rel)
{
    const byte *token, *at = rel.start;
    while (at < rel.end) {
        for (token = at; at < rel.end && !IS(*at, SPACE); at++) page->given_up |= *at == '&';
        if (is_word((Span){token, at}, "nofollow")) return 1;
        for (; at < rel.end && IS(*at, SPACE); at++);
    }
    return 0;
}

/* Return the next "<", or NULL; `next` is what follows it, `closing` whether it begins an end tag. */
static const byte *next_less(const byte *at, const byte *end, byte *next, int *closing)
{
    const byte *less = find(at, end, '<');
    *next = less != NULL && less + 1 < end ? less[1] : 0;
    *closing = *next == '/' && less + 2 < end && is_letter(less[2]);
    return less;
}

static void add_row(Page *page, Row row)
{
    if (page->given_up) return; /* there may be no room: one tag has several rows */
    if (page->count == page->room) {
        Py_ssize_t room = page->room ? page->room * 2 : 512;
        Row *rows = PyMem_RawRealloc(page->rows, room * sizeof(Row));
        if (rows == NULL) {
            page->given_up = 1;
            return;
        }
        page->rows = rows;
        page->room = room;
    }
    page->rows[page->count++] = row;
    page->given_up |= page->count >= page->most;
}

static int index_in(const char *const *words, Span name)
{
    byte first = lower(*name.start);
    for (int each = 0; words[each] != NULL; each++)
        if ((byte)*words[each] == first && is_word(name, words[each])) return each;
    return IRRELEVANT;
}

static int contains(Span text, const char *characters)
{
    for (const byte *at = text.start; at < text.end; at++)
        if (strchr(characters, *at) != NULL && *at) return 1;
    return 0;
}

static void add_place(Page *page, const byte *start, Span value, const byte *content)
{
    if (value.start < value.end && page->part != LINKS)
        add_row(page, (Row){PLACE, 0, 0, start, value.start, value.end, content, content, content});
}

/* Add what a plain SVG or MathML points to, and its places; return where it ends, NULL if it is not plain: it
 * may contain more if only the links of HTML matter. */
static const byte *tell_foreign(Page *page, const Tag *root, const byte *start, const byte *at)
{
    const byte *end = page->end, *content = at;
    const char *name = NAME[identify(root->name)];
    int has_use = 0, is_svg = *name == 's', links = page->part == LINKS, is_strange = 0;
    if (root->rare) return NULL;
    add_place(page, start, root->id, at);
    if (root->empty) return at;
    while ((at = find(at, end, '<')) != NULL) {
        const byte *less = at;
        int closing = at + 1 < end && at[1] == '/';
        Tag tag;
        at += 1 + closing;
        if (begins(at, end, "!--") && (at = markup_end(less, end)) != NULL) continue;
        if (at == NULL || at >= end || !is_letter(*at) || (at = read_tag(at, end, &tag)) == NULL) return NULL;
        if (tag.rare && !links) return NULL;
        if (closing && is_word(tag.name, name)) {
            if (has_use) add_row(page, (Row){AROUND, 0, 0, less, less, less, at, at, at});
            return at;
        }
        if (is_svg && is_word(tag.name, "use")) {
            if (closing || links) continue;
            if (!has_use++)
                add_row(page, (Row){AROUND, 0, 0, start, start, start, content, content, content});
            add_row(page, (Row){USE, 0, 0, less, tag.name.end, tag.attributes_end, at, at, at});
            continue;
        }
        int is_style = is_word(tag.name, "style");
        is_strange |= index_in(SHAPES, tag.name) == IRRELEVANT && !find(tag.name.start, tag.name.end, ':');
        /* After a strange tag HTML may go on. */
        if (is_strange && (!links || (!closing && identify(tag.name) != OTHER))) return NULL;
        const char *of_html = is_style ? "style" : is_word(tag.name, "title") ? "title" : "desc";
        if (!closing && is_word(tag.name, of_html)) {
            const byte *next = is_svg ? find(at, end, '<') : NULL;
            if (next == NULL || !begins(next, end, "</") || !begins_name(next + 2, end, of_html)) return NULL;
            if (is_style && (find(at, next, '@') || may_point((Span){at, next}))) return NULL;
        }
        if (!closing) add_place(page, less, tag.id, at);
    }
    return NULL;
}

/* Return where a `template` ends, whose content is hidden; NULL if there is more than plain SVG in it. */
static const byte *template_end(Page *page, const byte *at)
{
    Page hidden = {.end = page->end, .part = page->part, .given_up = 1}; /* it takes no row */
    for (int depth = 1; depth > 0 && at != NULL;) {
        byte next;
        int closing;
        const byte *less = next_less(at, page->end, &next, &closing);
        if (less == NULL || depth > 16 || ++page->tags >= MAX_TAGS) return NULL;
        if (closing || is_letter(next)) {
            Tag tag;
            at = read_tag(less + 1 + closing, page->end, &tag);
            Name name = at == NULL ? OTHER : identify(tag.name);
            if (name == TEMPLATE) depth += closing ? -1 : 1;
            else if (name > TEMPLATE)
                at = closing || name == PLAINTEXT ? NULL : tell_foreign(&hidden, &tag, less, at);
            else if (name >= TITLE && !closing) at = raw_text_end(page, name, at);
        } else
            at = next == '!' || next == '?' || next == '/' ? markup_end(less, page->end) : less + 1;
    }
    return at;
}

/* Add what a start tag may point to, and its places; return where the next text begins. */
static const byte *tell_tag(Page *page, const Tag *tag, const byte *start, const byte *at)
{
    if (!tag->rare && !may_matter(tag->name)) {
        add_place(page, start, tag->id, at);
        return at;
    }
    Name name = identify(tag->name);
    page->tags += name != OTHER;
    if (page->part == LINKS && (name == A || name == AREA)) {
        if (tag->href.start != NULL)
            add_row(page, (Row){.name = USUAL, .nofollow = is_nofollow(page, tag->rel),
                                .begin = tag->href.start, .end = tag->href.end});
        return at;
    }
    Row row = {index_in(TOLD + POINTING, tag->name), 0, 0, start, tag->name.end, tag->attributes_end,
               at, at, at};
    int is_a = row.name == 0;
    if (row.name != IRRELEVANT) row.name += POINTING;
    if (name == BASE && page->base.start == NULL) page->base = tag->href;
    if (name == SVG || name == MATH) {
        at = tell_foreign(page, tag, start, at);
    } else if (name >= TEMPLATE) {
        at = name == TEMPLATE && !tag->rare ? template_end(page, at) : NULL;
        if (at != NULL) add_place(page, start, tag->id, at);
    } else if (is_a && !tag->rare && !contains(tag->rel, "wW&")) {
        if (tag->href.start != NULL)
            add_row(page, (Row){USUAL, 0, 0, start, tag->href.start, tag->href.end, at, at, at});
        add_place(page, start, tag->id, at);
        add_place(page, start, tag->anchor, at);
    } else if (row.name == IRRELEVANT && !tag->rare) {
        add_place(page, start, tag->id, at);
    } else {
        if (name >= TITLE && name <= NOFRAMES) row.content_end = at = raw_text_end(page, name, at);
        if (name == TITLE && page->title.start == NULL) page->title = (Span){row.content, at};
        if (page->part != LINKS) add_row(page, row);
    }
    page->given_up |= at == NULL;
    return at;
}

/* Find the tags that may point somewhere, and the places; this needs no lock. */
static void read_tags(Page *page)
{
    const byte *at = page->start, *end = page->end;
    Py_ssize_t open = -1; /* the row of the `a` whose text goes on */
    while (at != NULL && !page->given_up) {
        byte next;
        int closing;
        const byte *less = next_less(at, end, &next, &closing);
        if (open >= 0) page->rows[open].shown_end = less == NULL ? end : less;
        if (less == NULL) break;
        if (open >= 0 && less - page->rows[open].content > SHOWN) open = -1;
        if (closing || is_letter(next)) {
            Tag tag;
            Py_ssize_t count = page->count;
            at = less + 1 + closing;
            at = page->part == ALL ? bare_end(at, end, closing) : usual_end(at, end, closing, page->part);
            if (at != NULL) continue;
            at = read_tag(less + 1 + closing, end, &tag);
            tag.rare &= page->part != LINKS;
            int is_a = page->part == ALL && at != NULL &&
                       tag.name.end - tag.name.start == 1 && (*tag.name.start | 0x20) == 'a';
            const byte *after = at;
            if (at != NULL && !closing) at = tell_tag(page, &tag, less, at);
            int is_row = page->count > count && page->rows[count].name != PLACE;
            /* The tag that ends a text belongs to it, unless it is a row itself. */
            if (is_a && open >= 0 && !is_row) page->rows[open].shown_end = after;
            if (is_a) open = is_row ? count : -1;
        } else if (next == '!' || next == '?' || next == '/') {
            page->tags++;
            at = markup_end(less, end);
        } else
            at = less + 1;
        if (open >= 0 && at == NULL) page->rows[open].shown_end = end;
        page->given_up |= page->tags >= MAX_TAGS;
    }
}

/* Return one byte for each character, 80 for those beyond ASCII; NULL if there is no memory. */
static byte *narrowed(const void *data, int kind, Py_ssize_t length)
{
    const Py_UCS2 *two = data;
    const Py_UCS4 *four = data;
    byte *bytes = PyMem_RawMalloc(length);
    if (bytes != NULL && kind == PyUnicode_2BYTE_KIND)
        for (Py_ssize_t each = 0; each < length; each++)
            bytes[each] = two[each] < 0x80 ? two[each] : 0x80;
    else if (bytes != NULL)
        for (Py_ssize_t each = 0; each < length; each++)
            bytes[each] = four[each] < 0x80 ? four[each] : 0x80;
    return bytes;
}

/* From here on, Python's objects. */

/* Return a part of a page; `text` is NULL if the page is bytes. */
static PyObject *substring(PyObject *text, const Page *page, Span span)
{
    if (span.start == NULL) Py_RETURN_NONE;
    if (text == NULL)
        return PyUnicode_DecodeUTF8((const char *)span.start, span.end - span.start, NULL);
    return PyUnicode_Substring(text, span.start - page->start, span.end - page->start);
}

/* Return a value of a page that is bytes, decoded if it is encoded. */
static PyObject *value_of(const Page *page, Span source, int encoded, PyObject *decode)
{
    PyObject *value = substring(NULL, page, source);
    if (value != NULL && encoded) Py_SETREF(value, PyObject_CallOneArg(decode, value));
    return value;
}

/* Read a page; return whether its bytes could be had, and where they are, if made. */
static int read_text(PyObject *text, Page *page, byte **bytes)
{
#if PY_VERSION_HEX < 0x030C0000
    if (PyUnicode_READY(text) < 0) return 0;
#endif
    Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    const void *data = PyUnicode_DATA(text);
    int kind = PyUnicode_KIND(text);
    PyThreadState *state = length > LARGE ? PyEval_SaveThread() : NULL;
    page->start = kind == PyUnicode_1BYTE_KIND ? data : (*bytes = narrowed(data, kind, length));
    if (page->start != NULL) {
        page->end = page->start + length;
        read_tags(page);
    }
    if (state != NULL) PyEval_RestoreThread(state);
    if (page->start == NULL) PyErr_NoMemory();
    return page->start != NULL;
}

/* Whether bytes are UTF-8 (RFC 3629, 4). */
static int is_utf_8(const byte *at, const byte *end)
{
    while (at < end) {
        uint64_t some[4];
        Py_ssize_t step = 0;
        if (end - at >= 8 && (memcpy(some, at, 8), !(some[0] & HIGH))) step = 8;
        if (step && end - at >= 32 && (memcpy(some, at, 32), !((some[1] | some[2] | some[3]) & HIGH)))
            step = 32;
        at += step;
        if (step) continue;
        byte first = *at++, low = 0x80, high = 0xBF;
        int more = first < 0x80 ? 0 : first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
        if ((first >= 0x80 && first < 0xC2) || first > 0xF4 || end - at < more) return 0;
        if (first == 0xE0) low = 0xA0;
        if (first == 0xED) high = 0x9F; /* no surrogate */
        if (first == 0xF0) low = 0x90;
        if (first == 0xF4) high = 0x8F;
        for (; more > 0; more--, low = 0x80, high = 0xBF)
            if (*at < low || *at++ > high) return 0;
    }
    return 1;
}

/* Return the name of a row: one of TOLD, made once for all rows, or its own in lower case. */
static PyObject *name_of(PyObject *text, const Page *page, const Row *row, PyObject **told)
{
    if (row->name != IRRELEVANT) {
        if (told[row->name] == NULL) told[row->name] = PyUnicode_InternFromString(TOLD[row->name]);
        return Py_XNewRef(told[row->name]);
    }
    PyObject *name = substring(text, page, (Span){row->start + 1, row->begin});
    if (name != NULL) Py_SETREF(name, PyObject_CallMethod(name, "lower", NULL));
    return name;
}

/* As in `urls.py`: what a simple link may have at the beginning of a segment, in it, in a query. */
enum { FIRST = 1, INSIDE = 2, QUERY = 4, FRAGMENT = 8 };
static byte LINK[128];

static void fill_link(void)
{
    for (int each = '0'; each <= 'z'; each++)
        if (Py_ISALNUM(each) || each == '_') LINK[each] = FIRST | INSIDE | QUERY;
    for (const char *each = "~!$&()*+,;=@-"; *each; each++)
        LINK[(byte)*each] = FIRST | INSIDE | QUERY;
    LINK['.'] = INSIDE | QUERY;
    for (const char *each = ":/?[]%"; *each; each++) LINK[(byte)*each] = QUERY;
    for (int each = '!'; each <= '~'; each++) LINK[each] |= strchr("\"<>`", each) ? 0 : FRAGMENT;
}

static int is_link(const byte *at, const byte *end, int kind)
{
    return at < end && *at < 128 && (LINK[*at] & kind);
}

/* The same for a path, where "%2e" would be a dot, and any other escape is a character. */
static int is_path(const byte *at, const byte *end, int kind)
{
    return is_link(at, end, kind) || (at < end && *at == '%' && !begins(at + 1, end, "2e"));
}

/* Whether the URL Standard changes nothing in a fragment. */
static int is_simple_fragment(Span text)
{
    while (is_link(text.start, text.end, FRAGMENT)) text.start++;
    return text.start == text.end;
}

static PyObject *rows_of(PyObject *text, const Page *page)
{
    PyObject *rows = PyList_New(0), *told[sizeof TOLD / sizeof *TOLD] = {NULL};
    for (Py_ssize_t each = 0; rows != NULL && each < page->count; each++) {
        const Row *row = &page->rows[each];
        if (row->name == AROUND || (page->part == ELEMENTS && row->name <= PLACE)) continue;
        PyObject *name = name_of(text, page, row, told);
        const byte *zero = page->start;
        PyObject *tuple = name == NULL ? NULL : Py_BuildValue(
            "NnnnnnO", name, row->start - zero, row->begin - zero, row->end - zero,
            row->content - zero, row->content_end - zero, row->name == USE ? Py_True : Py_False);
        if (tuple == NULL || PyList_Append(rows, tuple) < 0) Py_CLEAR(rows);
        Py_XDECREF(tuple);
        if (each % SLICE == SLICE - 1) LET_OTHERS_RUN
    }
    for (size_t each = 0; each < sizeof told / sizeof *told; each++) Py_XDECREF(told[each]);
    return rows;
}

static byte *copy(byte *to, const byte *at, const byte *end)
{
    memcpy(to, at, end - at);
    return to + (end - at);
}

static byte *write_number(byte *to, Py_ssize_t number)
{
    byte digits[20], *end = digits + sizeof digits, *at = end;
    do *--at = '0' + number % 10;
    while (number /= 10);
    return copy(to, at, end);
}

/* Return the outline of a page: what may point somewhere but each link, and a byte 0xFF and the links, `a` with
 * its text and `area`; all together if there is a base. Links to places of the page are left out.
 *
 * Before each, in a comment, are a NUL, \1 if it is odd, its line and its column. */
static PyObject *outline_of(const Page *page)
{
    Py_ssize_t room = page->end - page->start + 64 * page->count, line = 1, column = 1;
    /* Not in the bytes themselves, which would stay where so much room was. */
    byte *start = PyMem_RawMalloc(2 * room + 1), *mark[2], *to[2] = {start, start + room};
    const byte *done[2] = {page->start, page->start}, *at = page->start, *next;
    if (start == NULL) return PyErr_NoMemory();
    for (Py_ssize_t each = 0; each < page->count; each++) {
        const Row *row = &page->rows[each];
        int is_link = row->name == USUAL || row->name == POINTING || row->name == POINTING + 1;
        int group = is_link && page->base.start == NULL;
        if (row->name == PLACE || row->odd < 0) continue;
        if (row->odd && row->start < done[group]) *mark[group] = '\1';
        if (row->start < done[group]) continue;
        const char *name = row->name == IRRELEVANT ? "" : TOLD[row->name];
        Name raw = row->name == USUAL ? NAMES : TITLE;
        while (raw <= NOFRAMES && strcmp(name, NAME[raw])) raw++;
        for (; (next = find(at, row->start, '\n')) != NULL; at = next + 1, column = 1) line++;
        for (uint64_t some; row->start - at >= 8 && (memcpy(&some, at, 8), !(some & HIGH)); at += 8)
            column += 8;
        for (; at < row->start; at++) column += (*at & 0xC0) != 0x80;
        byte *end = memcpy(to[group], "<!--\0 ", 6);
        mark[group] = end + 5;
        if (row->odd) *mark[group] = '\1';
        *(end = write_number(end + 6, line)) = ',';
        end = (byte *)memcpy(write_number(end + 1, column), "-->", 3) + 3;
        done[group] = row->shown_end;
        if (raw <= NOFRAMES) {
            Tag tag;
            end = copy(end, row->start, raw == STYLE ? row->content_end : row->content);
            /* An end tag begins here, or the page has ended. */
            const byte *close = row->content_end;
            done[group] = close == page->end ? close : read_tag(close + 2, page->end, &tag);
            if (done[group] == NULL) done[group] = page->end;
            to[group] = copy(end, close, done[group]);
        } else {
            to[group] = copy(end, row->start, done[group]);
            /* A "<" that ends a text begins no tag here either. */
            if (to[group][-1] == '<' && done[group] < page->end) *to[group]++ = ' ';
        }
    }
    Py_ssize_t others = to[0] - start, links = to[1] - start - room;
    PyObject *outline = PyBytes_FromStringAndSize(NULL, others + 1 + links);
    if (outline != NULL) {
        byte *end = copy((byte *)PyBytes_AS_STRING(outline), start, to[0]);
        *end = 0xFF;
        copy(end + 1, start + room, to[1]);
    }
    PyMem_RawFree(start);
    return outline;
}

static PyObject *tags(PyObject *module, PyObject *args)
{
    PyObject *text, *result = NULL;
    Page page = {.most = MAX_TAGS};
    byte *bytes = NULL;
    int lean = 0;
    if (!PyArg_ParseTuple(args, "U|p:tags", &text, &lean)) return NULL;
    page.part = lean ? ELEMENTS : ALL;
    if (read_text(text, &page, &bytes))
        result = page.given_up ? Py_NewRef(Py_None) : rows_of(text, &page);
    PyMem_RawFree(page.rows);
    PyMem_RawFree(bytes);
    return result;
}

/* Return where the path and query that begin at a position end. */
static const byte *simple_end(const byte *at, const byte *end)
{
    while (is_path(at, end, FIRST)) {
        while (is_path(at, end, INSIDE)) at++;
        if (at < end && *at == '/') at++;
    }
    if (at < end && *at == '?')
        for (at++; is_link(at, end, QUERY);) at++;
    return at;
}

/* Return where the path of an absolute URL begins whose host is plain; NULL if it is not.
 *
 * A plain host is in lower case, without a port and an empty label, no address and no "xn--". */
static const byte *path_of(const byte *at, const byte *end)
{
    if (end - at < 8 || memcmp(at, "http", 4)) return NULL;
    at += 4 + (at[4] == 's');
    if (memcmp(at, "://", 3)) return NULL;
    int label = 0, letters = 0;
    for (at += 3; at < end && *at != '/'; at++) {
        if (*at == '.') {
            if (!label) return NULL;
            label = letters = 0;
        } else if (Py_ISLOWER(*at)) {
            label++;
            letters++;
        } else if (Py_ISDIGIT(*at) || (*at == '-' && at[-1] != '-')) {
            label++;
        } else {
            return NULL;
        }
    }
    return at < end && label && label == letters ? at : NULL;
}

/* Return the URL of a href, NULL without an exception if it is not simple. */
static PyObject *joined(PyObject *href, const byte *home, Py_ssize_t above, Py_ssize_t root)
{
    if (!PyUnicode_IS_COMPACT_ASCII(href)) return NULL;
    const byte *at = PyUnicode_1BYTE_DATA(href), *end = at + PyUnicode_GET_LENGTH(href), *start;
    if (at == end || *at == '?') return NULL;
    if (*at == '/') {
        at++;
        above = root;
    } else if ((start = end - at >= root && !memcmp(at, home, root) ? at + root - 1 : path_of(at, end))) {
        return simple_end(start + 1, end) == end ? Py_NewRef(href) : NULL;
    } else {
        for (int up; (up = begins(at, end, "../")) || begins(at, end, "./"); at += 2 + up)
            if (up && above > root)
                for (above--; home[above - 1] != '/';) above--;
    }
    if (simple_end(at, end) != end) return NULL;
    PyObject *url = PyUnicode_New(above + (end - at), 127);
    if (url == NULL) return NULL;
    memcpy(PyUnicode_1BYTE_DATA(url), home, above);
    memcpy(PyUnicode_1BYTE_DATA(url) + above, at, end - at);
    return url;
}

/* The URL of a page, its directory, the cache of the links there, and the URLs that all directories
 * share, NULL if they share none; `decode` decodes a href with references, `other` makes the URL of a
 * href that is not simple, with that of the page, and `room` is how many characters the URLs may have. */
typedef struct {
    PyObject *decode, *own, *home, *known, *shared, *other;
    Py_ssize_t root, longest, most, room;
    int odd; /* what a row is: set by a href that is not simple */
} Directory;

/* Return the one object for a URL, in whatever directory; NULL if there is no memory. A set that has
 * it finds it without a look at its text. */
static PyObject *the_one(PyObject *url, PyObject *shared)
{
    PyObject *one = NULL;
    if (PyDict_GET_SIZE(shared) >= MAX_SHARED) PyDict_Clear(shared);
#if PY_VERSION_HEX >= 0x030D0000
    PyDict_SetDefaultRef(shared, url, url, &one);
#else
    one = Py_XNewRef(PyDict_SetDefault(shared, url, url));
#endif
    Py_DECREF(url);
    return one;
}

/* Return what a cache has; NULL without an exception if it has nothing. */
static PyObject *recalled(PyObject *cache, PyObject *key)
{
#if PY_VERSION_HEX >= 0x030D0000
    /* Without a lock of the interpreter another thread may clear the cache at this moment. */
    PyObject *known = NULL;
    PyDict_GetItemRef(cache, key, &known);
    return known;
#else
    return Py_XNewRef(PyDict_GetItemWithError(cache, key));
#endif
}

/* Return the URL of a href, NULL without an exception if it is not simple. */
static PyObject *url_of(PyObject *href, const Directory *to)
{
    PyObject *url = recalled(to->known, href);
    if (url != NULL || PyErr_Occurred()) return url;
    url = joined(href, PyUnicode_1BYTE_DATA(to->home), PyUnicode_GET_LENGTH(to->home), to->root);
    if (url != NULL && PyUnicode_GET_LENGTH(href) + PyUnicode_GET_LENGTH(url) <= to->longest) {
        if (to->shared != NULL) url = the_one(url, to->shared);
        if (PyDict_GET_SIZE(to->known) >= to->most) PyDict_Clear(to->known);
        if (url == NULL || PyDict_SetItem(to->known, href, url) < 0) Py_CLEAR(url);
    }
    return url;
}

/* Return the URL of any href; NULL with an exception if it is none. */
static PyObject *any_url_of(PyObject *href, Directory *to)
{
    if (PyUnicode_GET_LENGTH(href) == 0) return Py_NewRef(to->own);
    PyObject *url = url_of(href, to);
    if (url != NULL || PyErr_Occurred()) return url;
    to->odd = 1;
    return PyObject_CallFunctionObjArgs(to->other, href, to->own, NULL);
}

/* Return the distinct hrefs of the links of one kind, as a list, or their URLs if `to` is given.
 *
 * Raises ValueError if one is no URL, or if there is no room for the URLs. */
static PyObject *list_links(const Page *page, int nofollow, PyObject *decode, Directory *to)
{
    PyObject *links = PyDict_New();
    for (Py_ssize_t each = 0; links != NULL && each < page->count; each++) {
        const Row *row = &page->rows[each];
        if (row->nofollow != nofollow) continue;
        const byte *at = row->begin, *end = row->end;
        while (at < end && *at != '#' && *at != '&' && *at) at++;
        int encoded = at < end && *at != '#'; /* its fragment is not cut */
        /* The "#" stays after white space, which would be stripped as the end of the URL. */
        if (!encoded) end = at < end && at > row->begin && at[-1] <= ' ' ? at + 1 : at;
        PyObject *item = value_of(page, (Span){row->begin, end}, encoded, decode);
        if (item != NULL && to != NULL) {
            PyObject *url = any_url_of(item, to);
            if (url != NULL && (to->room -= PyObject_Size(url)) < 0) {
                Py_CLEAR(url);
                PyErr_SetNone(PyExc_ValueError);
            }
            Py_SETREF(item, url);
        }
        if (item == NULL || PyDict_SetItem(links, item, Py_None) < 0) Py_CLEAR(links);
        Py_XDECREF(item);
        if (each % SLICE == SLICE - 1) LET_OTHERS_RUN
    }
    PyObject *list = links == NULL ? NULL : PyDict_Keys(links);
    Py_XDECREF(links);
    return list;
}

static PyObject *result_of(const Page *page, PyObject *decode, Directory *to)
{
    PyObject *links = list_links(page, 0, decode, to);
    PyObject *nofollow = links == NULL ? NULL : list_links(page, 1, decode, to);
    if (nofollow == NULL) {
        Py_XDECREF(links);
        if (to == NULL || !PyErr_ExceptionMatches(PyExc_ValueError)) return NULL;
        PyErr_Clear();
        return result_of(page, decode, NULL);
    }
    return Py_BuildValue("ONNNN", to == NULL ? Py_False : Py_True, links, nofollow,
                         substring(NULL, page, page->base), substring(NULL, page, page->title));
}

static PyObject *scan(PyObject *module, PyObject *args)
{
    Py_buffer body;
    PyObject *decode, *result = NULL;
    Page page = {.part = LINKS};
    Directory to = {0};
    if (!PyArg_ParseTuple(args, "y*On|UUnO!O!nnOn:scan", &body, &decode, &page.most,
                          &to.own, &to.home, &to.root, &PyDict_Type, &to.known,
                          &PyDict_Type, &to.shared, &to.longest, &to.most, &to.other,
                          &to.room)) return NULL;
    page.start = body.buf;
    page.end = page.start + body.len;
    if (page.most > MAX_TAGS) page.most = MAX_TAGS;
    PyThreadState *state = body.len > LARGE ? PyEval_SaveThread() : NULL;
    page.given_up = !is_utf_8(page.start, page.end);
    read_tags(&page);
    if (state != NULL) PyEval_RestoreThread(state);
    int joins = to.other != NULL && page.base.start == NULL && PyUnicode_IS_COMPACT_ASCII(to.home);
    result = page.given_up ? Py_NewRef(Py_None) : result_of(&page, decode, joins ? &to : NULL);
    PyMem_RawFree(page.rows);
    PyBuffer_Release(&body);
    return result;
}

/* Add a URL to a dict, or its fragment and a line end to its value: None as long as there is none.
 * Return 1 if the URL is new or this is its first fragment, else 0, -1 with an exception set if that fails. */
static int mention(PyObject *urls, PyObject *url, const void *fragment, Py_ssize_t length)
{
    PyObject *known = PyDict_GetItemWithError(urls, url);
    if (known == NULL && PyErr_Occurred()) return -1;
    if (length == 0) return known != NULL ? 0 : PyDict_SetItem(urls, url, Py_None) < 0 ? -1 : 1;
    int is_first = known == NULL || known == Py_None;
    PyObject *names = is_first ? PyByteArray_FromStringAndSize(NULL, 0) : Py_NewRef(known);
    Py_ssize_t before = names == NULL ? 0 : PyByteArray_GET_SIZE(names);
    int done = names == NULL ? -1 : PyByteArray_Resize(names, before + length + 1);
    if (done == 0) {
        char *last = memcpy(PyByteArray_AS_STRING(names) + before, fragment, length);
        last[length] = '\n';
        done = is_first ? PyDict_SetItem(urls, url, names) : 0;
    }
    Py_XDECREF(names);
    return done < 0 ? -1 : is_first;
}

/* Add the URL and the fragment of a decoded href; return 1, 0 if it is no URL, or one of data: or
 * javascript: that is cut, or if its fragment is not simple, -1 with an exception set if that fails. */
static int add_url(PyObject *urls, Span href, Directory *to)
{
    const byte *hash = find(href.start, href.end, '#');
    Span fragment = {hash == NULL ? href.end : hash + 1, href.end};
    /* White space before a "#" is not the end of the URL. */
    if (!is_simple_fragment(fragment) || (hash > href.start && hash[-1] <= ' ')) return 0;
    PyObject *link = substring(NULL, NULL, (Span){href.start, hash == NULL ? href.end : hash});
    PyObject *url = link == NULL ? NULL : any_url_of(link, to);
    Py_XDECREF(link);
    if (url == NULL && PyErr_ExceptionMatches(PyExc_ValueError)) {
        PyErr_Clear();
        return 0;
    }
    Py_UCS4 first = url == NULL || PyUnicode_GET_LENGTH(url) <= BEGINNING ? 0 : PyUnicode_READ_CHAR(url, 0);
    int is_usual = first != 'd' && first != 'j';
    int done = url == NULL ? -1 : 0;
    if (done == 0 && is_usual) done = mention(urls, url, fragment.start, fragment.end - fragment.start);
    if (done > 0) to->room -= href.end - href.start + PyUnicode_GET_LENGTH(to->home);
    Py_XDECREF(url);
    return done < 0 ? -1 : is_usual;
}

/* What `targets` returns: the links, those with rel=nofollow, the URLs of other kinds, the hrefs and
 * elements that are read in Python, and the places. `element` reads an element, `elements` has what it
 * returned for the directory of the page, and `rels` the kinds of links by their rel. */
typedef struct {
    PyObject *links, *nofollow, *kinds, *rest, *places, *element, *elements, *rels;
    int some; /* a link is among the rest, and so is each `a` that follows: they stay in order */
} Pointing;

/* Return the URLs of a kind; NULL with an exception set if that fails. */
static PyObject *of_kind(PyObject *kinds, PyObject *kind)
{
    PyObject *urls = recalled(kinds, kind);
    if (urls == NULL && !PyErr_Occurred() && (urls = PyDict_New()) != NULL &&
        PyDict_SetItem(kinds, kind, urls) < 0) Py_CLEAR(urls);
    return urls;
}

/* Add the URL of a usual `link`, or of an `a` with rel=nofollow; return 1, 0 if it is neither, -1 with an
 * exception set if that fails. */
static int add_rel(const Row *row, int is_a, Pointing *all, Directory *to)
{
    Tag tag;
    Page page = {0};
    if (read_tag(row->start + 1, row->content, &tag) == NULL || tag.rare || tag.id.start != NULL ||
        tag.rel.start == NULL || tag.href.start == tag.href.end || *tag.href.start <= ' ' ||
        find(tag.href.start, tag.href.end, '&')) return 0;
    if (is_a && (tag.anchor.start || !is_nofollow(&page, tag.rel) || page.given_up)) return 0;
    PyObject *rel = is_a ? NULL : substring(NULL, NULL, tag.rel);
    PyObject *kind = rel == NULL ? NULL : recalled(all->rels, rel);
    PyObject *urls = is_a ? Py_NewRef(all->nofollow) : kind == NULL ? NULL : of_kind(all->kinds, kind);
    int done = urls == NULL ? (PyErr_Occurred() ? -1 : 0) : add_url(urls, tag.href, to);
    Py_XDECREF(rel);
    Py_XDECREF(kind);
    Py_XDECREF(urls);
    return done;
}

/* Add what an element points to, and its places; return 1, 0 if some of it depends on the page, -1 if that
 * fails. */
static int add_element(PyObject *element, Pointing *all, Directory *to)
{
    PyObject *own = PyTuple_GET_ITEM(element, 0), *others = PyTuple_GET_ITEM(element, 1);
    PyObject *places = PyTuple_GET_ITEM(element, 2);
    int done = 0;
    for (Py_ssize_t each = 0; done >= 0 && each < PyTuple_GET_SIZE(others); each++) {
        PyObject *other = PyTuple_GET_ITEM(others, each);
        PyObject *urls = of_kind(all->kinds, PyTuple_GET_ITEM(other, 0));
        PyObject *name = PyTuple_GET_ITEM(other, 2); /* ASCII */
        done = urls == NULL ? -1 : mention(urls, PyTuple_GET_ITEM(other, 1), PyUnicode_DATA(name),
                                           PyUnicode_GET_LENGTH(name));
        Py_XDECREF(urls);
    }
    for (Py_ssize_t each = 0; done >= 0 && each < PyTuple_GET_SIZE(places); each++)
        done = PySet_Add(all->places, PyTuple_GET_ITEM(places, each));
    /* Where there is no home, there may be a base. */
    if (to->home != NULL && !PyTuple_GET_SIZE(own) && !PyTuple_GET_SIZE(others)) to->odd = -1;
    return done < 0 ? -1 : !PyTuple_GET_SIZE(own);
}

/* Return what an element points to, None if another reader must read the page. */
static PyObject *element_of(const Page *page, const Row *row, PyObject *key, Span content,
                            PyObject **told, const Pointing *all, Directory *to)
{
    PyObject *known = to->home == NULL ? NULL : recalled(all->elements, key);
    if (known != NULL || PyErr_Occurred()) return known;
    PyObject *home = to->home == NULL ? Py_None : to->home;
    PyObject *source = substring(NULL, page, (Span){row->begin, row->end});
    PyObject *element = PyObject_CallFunction(all->element, "ONNN", home, name_of(NULL, page, row, told),
                                              source, substring(NULL, page, content));
    if (element == NULL || to->home == NULL) return element;
    to->room -= PyBytes_GET_SIZE(key) + PyUnicode_GET_LENGTH(home);
    if (PyBytes_GET_SIZE(key) <= to->longest) {
        if (PyDict_GET_SIZE(all->elements) >= to->most) PyDict_Clear(all->elements);
        if (PyDict_SetItem(all->elements, key, element) < 0) Py_CLEAR(element);
    }
    return element;
}

/* Add the places of a page; return -1 with an exception set if that fails. */
static int add_places(const Page *page, PyObject *places, PyObject *decode)
{
    int done = 0;
    for (Py_ssize_t each = 0; done >= 0 && each < page->count; each++) {
        const Row *row = &page->rows[each];
        if (row->name == PLACE) {
            int encoded = find(row->begin, row->end, '&') != NULL;
            PyObject *place = value_of(page, (Span){row->begin, row->end}, encoded, decode);
            done = place == NULL ? -1 : PySet_Add(places, place);
            Py_XDECREF(place);
        }
        if (each % SLICE == SLICE - 1) LET_OTHERS_RUN
    }
    return done;
}

/* Whether a href is the fragment of a place, as it is written; -1 with an exception set if that fails. */
static int is_place(const Page *page, Span href, PyObject *places)
{
    Span fragment = {href.start + 1, href.end};
    if (href.start == href.end || *href.start != '#' || !is_simple_fragment(fragment)) return 0;
    PyObject *name = substring(NULL, page, fragment);
    int known = name == NULL ? -1 : PySet_Contains(places, name);
    Py_XDECREF(name);
    return known;
}

/* Add one row to what a page points to; return -1 with an exception set if that fails. */
static int add_target(const Page *page, const Row *row, PyObject **told, Pointing *all, Directory *to)
{
    to->odd = row->name == AROUND || to->home == NULL;
    if (row->name == AROUND || row->name == PLACE) return 0;
    PyObject *key, *value = NULL, *item = NULL;
    int done = -1; /* 0 if it goes to the rest */
    if (row->name == USUAL) {
        Span text = {row->begin, row->end};
        const byte *reference = find(text.start, text.end, '&');
        int encoded = reference != NULL;
        if (to->home != NULL && !encoded) {
            int is_own = is_place(page, text, all->places);
            /* Such a link has a fault only if the page itself is one, which is added. */
            if (is_own) text.end = text.start;
            done = is_own < 0 ? -1 : add_url(all->links, text, to);
            if (is_own) to->odd = -1;
            if (done != 0) return done;
        }
        /* `_parts_of` seeks a link by what is before a "?". */
        to->odd |= encoded && find(text.start, reference, '?') == NULL;
        key = value_of(page, text, encoded, to->decode);
        if (key == NULL) return -1;
        done = 0;
        if (to->home != NULL && encoded) {
            Py_ssize_t length = 0;
            text.start = (const byte *)PyUnicode_AsUTF8AndSize(key, &length);
            text.end = text.start + length;
            done = text.start == NULL ? -1 : add_url(all->links, text, to);
        }
        value = Py_NewRef(key);
        to->odd |= done == 0;
    } else {
        Span content = {row->content, row->content_end};
        const char *name = row->name == IRRELEVANT ? "" : TOLD[row->name];
        int is_style = !strcmp(name, "style"), is_a = row->name == POINTING;
        int is_link = is_a || row->name == POINTING + 1; /* an `area` */
        if ((is_a ? !all->some : !strcmp(name, "link")) && to->home != NULL &&
            (done = add_rel(row, is_a, all, to)) != 0) return done;
        if (!is_style) content.end = content.start;
        to->odd |= is_style || is_link;
        for (const byte *at = row->begin; at < row->end; at++) to->odd |= IS(*at, ODD);
        key = PyBytes_FromStringAndSize((const char *)row->start, content.end - row->start);
        value = key == NULL ? NULL : element_of(page, row, key, content, told, all, to);
        if (value == Py_None) to->room = -1; /* the page is given up */
        if (value != NULL) done = value == Py_None ? 1 : add_element(value, all, to);
        if (done == 0) Py_SETREF(value, Py_NewRef(PyTuple_GET_ITEM(value, 0)));
        all->some |= is_link;
    }
    if (done == 0) {
        item = Py_BuildValue("nO", PyDict_GET_SIZE(all->links), value);
        done = item == NULL || PyDict_SetDefault(all->rest, key, item) == NULL ? -1 : 0;
    }
    Py_XDECREF(item);
    Py_XDECREF(value);
    Py_XDECREF(key);
    return done;
}

static PyObject *targets_of(const Page *page, Pointing all, Directory *to)
{
    PyObject *told[sizeof TOLD / sizeof *TOLD] = {NULL}, *result = NULL;
    all.links = PyDict_New();
    all.nofollow = PyDict_New();
    all.kinds = PyDict_New();
    all.rest = PyDict_New();
    all.places = PySet_New(NULL);
    int done = !all.links || !all.nofollow || !all.kinds || !all.rest || !all.places ? -1 : 0;
    if (done == 0) done = add_places(page, all.places, to->decode);
    for (Py_ssize_t each = 0; done >= 0 && to->room >= 0 && each < page->count; each++) {
        done = add_target(page, &page->rows[each], told, &all, to);
        page->rows[each].odd = to->odd;
        if (each % SLICE == SLICE - 1) LET_OTHERS_RUN
    }
    PyObject *outline = done < 0 ? NULL : outline_of(page);
    if (outline != NULL)
        result = Py_BuildValue("OOOOONNO", all.links, all.nofollow, all.kinds, all.rest, all.places,
                               substring(NULL, page, page->base), substring(NULL, page, page->title),
                               outline);
    Py_XDECREF(outline);
    for (size_t each = 0; each < sizeof told / sizeof *told; each++) Py_XDECREF(told[each]);
    Py_XDECREF(all.links);
    Py_XDECREF(all.nofollow);
    Py_XDECREF(all.kinds);
    Py_XDECREF(all.rest);
    Py_XDECREF(all.places);
    return result;
}

static PyObject *targets(PyObject *module, PyObject *args)
{
    PyObject *result = NULL;
    Py_buffer body;
    Directory to = {0};
    Pointing all = {0};
    if (!PyArg_ParseTuple(args, "y*OOO!O!|UUnO!O!nnOn:targets", &body, &to.decode, &all.element,
                          &PyDict_Type, &all.elements, &PyDict_Type, &all.rels, &to.own, &to.home,
                          &to.root, &PyDict_Type, &to.known, &PyDict_Type, &to.shared, &to.longest,
                          &to.most, &to.other, &to.room)) return NULL;
    Page page = {.start = body.buf, .most = MAX_TAGS};
    page.end = page.start + body.len;
    PyThreadState *state = body.len > LARGE ? PyEval_SaveThread() : NULL;
    page.given_up = find(page.start, page.end, '\0') != NULL || !is_utf_8(page.start, page.end);
    read_tags(&page);
    if (state != NULL) PyEval_RestoreThread(state);
    if (page.base.start != NULL || (to.home != NULL && !PyUnicode_IS_COMPACT_ASCII(to.home)))
        to.home = NULL;
    result = page.given_up ? Py_NewRef(Py_None) : targets_of(&page, all, &to);
    if (result != NULL && to.room < 0) Py_SETREF(result, Py_NewRef(Py_None));
    PyMem_RawFree(page.rows);
    PyBuffer_Release(&body);
    return result;
}

/* `_scan.pyi` says what these take and return. */
static PyMethodDef methods[] = {
    {"scan", scan, METH_VARARGS, NULL},
    {"tags", tags, METH_VARARGS, NULL},
    {"targets", targets, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_scan",
    .m_doc = "The compiled scanner of links.",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__scan(void)
{
    fill_link();
    return PyModuleDef_Init(&definition);
}
