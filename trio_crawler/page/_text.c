/* Read the text that a page of HTML shows: the plain parts of `text_digest.py`, compiled.
 *
 * `accelerator.py` says when this is used, and what it saves. Each rule is one of `text_digest.py`,
 * whose expressions are named here. All reading goes forward and no function calls itself, so the
 * time is linear for every page. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define LARGE (64 * 1024) /* bytes; for more the lock of the interpreter is released */
#define SLICE 4096        /* words, after which other threads may run */
#define BREAK '\v'        /* stands for a tag */
#define MAX_WORD 12       /* bytes of the longest signal */
#define HINTS 8192        /* bytes of a set of bits */
#define MAX_BLOCKS 128    /* of one page */

typedef unsigned char byte;

static byte lower(byte c) { return c >= 'A' && c <= 'Z' ? c + 'a' - 'A' : c; }

static int is_space(byte c) { return c == ' ' || (byte)(c - '\t') <= '\r' - '\t'; }

static int is_digit(byte c) { return c >= '0' && c <= '9'; }

static int is_of_word(byte c)
{
    return (lower(c) >= 'a' && lower(c) <= 'z') || is_digit(c) || c == '_';
}

/* Return the first place of a byte; the end if there is none. */
static const byte *find(const byte *at, const byte *end, byte sought)
{
    const byte *found = at < end ? memchr(at, sought, end - at) : NULL;
    return found == NULL ? end : found;
}

static const byte *after(const byte *at, const byte *end) { return at < end ? at + 1 : end; }

/* Whether a text begins with `word`, in any case. */
static int begins(const byte *at, const byte *end, const char *word)
{
    for (; *word; word++, at++)
        if (at >= end || lower(*at) != (byte)*word) return 0;
    return 1;
}

/* Whether a text begins with `name`, in any case, as a whole word. */
static int begins_name(const byte *at, const byte *end, const char *name)
{
    for (; *name; name++, at++)
        if (at >= end || lower(*at) != (byte)*name) return 0;
    return at >= end || !is_of_word(*at);
}

/* Return the end of the comment or of the element at a "<" that `_UNSEEN` matches; NULL if none. */
static const byte *after_unseen(const byte *at, const byte *end)
{
    static const char *const NAMES[] = {"script", "style", "noscript", "template", "title"};
    if (end - at >= 4 && memcmp(at, "<!--", 4) == 0) {
        const byte *text = at + 4;
        do at = after(find(at, end, '>'), end);
        while (at < end && (at - text < 3 || at[-2] != '-' || at[-3] != '-'));
        return at;
    }
    /* Most tags are none of these. */
    byte first = end - at > 1 ? lower(at[1]) : 0;
    if (first != 's' && first != 'n' && first != 't') return NULL;
    for (size_t each = 0; each < sizeof NAMES / sizeof *NAMES; each++) {
        if (!begins_name(at + 1, end, NAMES[each])) continue;
        for (at = find(at + 1, end, '<'); at < end; at = find(at + 1, end, '<'))
            if (end - at > 2 && at[1] == '/' && begins_name(at + 2, end, NAMES[each])) break;
        return after(find(at, end, '>'), end);
    }
    return NULL;
}

/* Return the end of a tag, what is unseen inside of it included: `_TAG`. */
static const byte *after_tag(const byte *at, const byte *end)
{
    const byte *close = find(at, end, '>');
    for (const byte *open; (open = find(at, close, '<')) < close; ) {
        const byte *rest = after_unseen(open, end);
        at = rest == NULL ? open + 1 : rest;
        if (at > close) close = find(at, end, '>');
    }
    return after(close, end);
}

/* Return where the text goes on after a "<". What stands for all between is a space for what is unseen,
 * a break for a tag, or the "<" itself. */
static const byte *after_open(const byte *open, const byte *end, byte *stands)
{
    const byte *next = open + 1, *rest = after_unseen(open, end);
    *stands = rest != NULL ? ' ' : '<';
    if (rest != NULL) return rest;
    if (next == end || *next == ' ' || *next == '>'
        || (*next == '<' && after_unseen(next, end) != NULL)) return next;
    *stands = BREAK;
    return after_tag(next, end);
}

#define count_zeros __builtin_ctzll

#ifdef __SSE2__
/* Return the bits of those of 16 bytes that are `c`. */
static unsigned bits_of(const byte *at, byte c)
{
    __m128i text = _mm_loadu_si128((const __m128i *)at);
    return _mm_movemask_epi8(_mm_cmpeq_epi8(text, _mm_set1_epi8(c)));
}
#endif

/* Write the text of a page with a space for what is unseen and a break for each tag. */
static byte *write_visible(const byte *at, const byte *end, byte *out)
{
    while (at < end) {
        const byte *open = NULL;
#ifdef __SSE2__
        /* Most texts and tags are so short that a call for each takes longer. */
        if (end - at >= 48) {
            unsigned found = bits_of(at, '<');
            memcpy(out, at, 16);
            if (found) {
                open = at + count_zeros(found);
                out += open - at;
                byte first = open[1] | 0x20;
                found = bits_of(open + 1, '>');
                if (found && (first == '/' || (first >= 'a' && first <= 'z'))
                    && first != 's' && first != 'n' && first != 't'
                    && !(bits_of(open + 1, '<') & (found ^ (found - 1)))) {
                    at = open + 2 + count_zeros(found);
                    *out++ = BREAK;
                    continue;
                }
            }
        }
#endif
        if (open == NULL) {
            open = find(at, end, '<');
            memcpy(out, at, open - at);
            out += open - at;
        }
        if (open == end) break;
        at = after_open(open, end, out++);
    }
    return out;
}

/* Numeric references. */

static int digit_of(byte c, int base)
{
    if (is_digit(c)) return c - '0';
    byte letter = lower(c);
    return base == 16 && letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

/* Write a code point in UTF-8. It is below 0xD800. */
static byte *write_point(byte *out, uint32_t point)
{
    if (point < 0x80) {
        *out++ = point;
        return out;
    }
    if (point < 0x800) *out++ = 0xC0 | point >> 6;
    else {
        *out++ = 0xE0 | point >> 12;
        *out++ = 0x80 | (point >> 6 & 0x3F);
    }
    *out++ = 0x80 | (point & 0x3F);
    return out;
}

/* Whether a reference to this code point means just that, and not another one or none. */
static int is_plain(uint32_t point)
{
    return (point >= 0x20 && point < 0x7F) || (point >= 0xA0 && point < 0xD800);
}

/* Write a text with the characters that its numeric references mean: `_NUMERIC`. Return NULL if a
 * reference means another character than the one of that number. */
static byte *write_decoded(const byte *at, const byte *end, byte *out)
{
    for (;;) {
        const byte *reference = find(at, end, '&');
        memcpy(out, at, reference - at);
        out += reference - at;
        if (reference == end) return out;
        at = reference + 1;
        const byte *digit = at + 1;
        int base = 10;
        if (end - at > 2 && *at == '#' && lower(at[1]) == 'x') {
            base = 16;
            digit++;
        }
        if (end - at < 2 || *at != '#' || digit >= end || digit_of(*digit, base) < 0) {
            *out++ = '&';
            continue;
        }
        uint32_t point = 0;
        for (; digit < end && digit_of(*digit, base) >= 0; digit++)
            if (point < 0x110000) point = base * point + digit_of(*digit, base);
        if (!is_plain(point)) return NULL;
        out = write_point(out, point);
        at = digit < end && *digit == ';' ? digit + 1 : digit;
    }
}

/* CRC-32 as zlib has it, of which 8 bytes are read at once. */

static uint32_t CRC[8][256];

static void make_crc(void)
{
    for (uint32_t each = 0; each < 256; each++) {
        uint32_t sum = each;
        for (int bit = 0; bit < 8; bit++) sum = sum & 1 ? sum >> 1 ^ 0xEDB88320u : sum >> 1;
        CRC[0][each] = sum;
    }
    for (int row = 1; row < 8; row++)
        for (int each = 0; each < 256; each++)
            CRC[row][each] = CRC[row - 1][each] >> 8 ^ CRC[0][CRC[row - 1][each] & 0xFF];
}

static uint32_t four_bytes(const byte *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint32_t crc_of(const byte *at, const byte *end)
{
    uint32_t sum = 0xFFFFFFFFu;
    for (; end - at >= 8; at += 8) {
        uint32_t low = four_bytes(at) ^ sum, high = four_bytes(at + 4);
        sum = CRC[7][low & 0xFF] ^ CRC[6][low >> 8 & 0xFF] ^ CRC[5][low >> 16 & 0xFF]
            ^ CRC[4][low >> 24] ^ CRC[3][high & 0xFF] ^ CRC[2][high >> 8 & 0xFF]
            ^ CRC[1][high >> 16 & 0xFF] ^ CRC[0][high >> 24];
    }
    if (end - at >= 4) {
        uint32_t low = four_bytes(at) ^ sum;
        sum = CRC[3][low & 0xFF] ^ CRC[2][low >> 8 & 0xFF] ^ CRC[1][low >> 16 & 0xFF]
            ^ CRC[0][low >> 24];
        at += 4;
    }
    for (; at < end; at++) sum = sum >> 8 ^ CRC[0][(sum ^ *at) & 0xFF];
    return ~sum;
}

/* An array that grows. */
typedef struct {
    void *items;
    Py_ssize_t count, room;
} Array;

/* Return the place of a new item of `size` bytes; NULL if there is no memory. */
static void *added(Array *array, size_t size)
{
    if (array->count == array->room) {
        Py_ssize_t room = array->room ? 2 * array->room : 256;
        void *items = PyMem_RawRealloc(array->items, room * size);
        if (items == NULL) return NULL;
        array->items = items;
        array->room = room;
    }
    return (byte *)array->items + size * array->count++;
}

static byte *write_block(byte *out, uint32_t sum)
{
    *out++ = sum & 0xFF;
    *out++ = sum >> 8 & 0xFF;
    return out;
}

static uint32_t crc_of_sums(const uint32_t *sums, Py_ssize_t begin, Py_ssize_t end)
{
    byte each[4];
    uint32_t sum = 0xFFFFFFFFu;
    for (; begin < end; begin++) {
        for (int part = 0; part < 4; part++) {
            each[part] = sums[begin] >> 8 * part & 0xFF;
            sum = sum >> 8 ^ CRC[0][(sum ^ each[part]) & 0xFF];
        }
    }
    return ~sum;
}

/* Write the blocks, at most MAX_BLOCKS, to 2 bytes each: `_grouped`. Return their end. */
static byte *write_blocks(const uint32_t *sums, Py_ssize_t count, byte *out)
{
    if (count <= MAX_BLOCKS) {
        for (Py_ssize_t each = 0; each < count; each++) out = write_block(out, sums[each]);
        return out;
    }
    uint32_t every = 1; /* a power of 2 */
    for (Py_ssize_t starts = count - 1; starts >= MAX_BLOCKS && every <= 0xFFFF; ) {
        every *= 2;
        starts = 0;
        for (Py_ssize_t each = 1; each < count; each++) starts += !(sums[each] >> 16 & (every - 1));
    }
    Py_ssize_t begin = 0, groups = 1;
    for (Py_ssize_t each = 1; each < count && groups < MAX_BLOCKS; each++) {
        if (sums[each] >> 16 & (every - 1)) continue;
        out = write_block(out, crc_of_sums(sums, begin, each));
        begin = each;
        groups++;
    }
    return write_block(out, crc_of_sums(sums, begin, count));
}

/* Words. A set of bits says which may be signals, so that few are looked up in the set of those. */

static uint32_t bit_of(const byte *word, Py_ssize_t length)
{
    uint32_t key = word[0] | (uint32_t)word[1] << 8 | (uint32_t)word[2] << 16
                 | (uint32_t)length << 24;
    uint32_t last = word[length - 1] | (uint32_t)word[length - 2] << 8;
    return (key ^ last * 0x85EBCA6Bu) * 0x9E3779B1u >> 16; /* HINTS has as many bits */
}

static int has_bit(const byte *hints, const byte *word, Py_ssize_t length)
{
    if (length < 3 || length > MAX_WORD) return 0;
    uint32_t bit = bit_of(word, length);
    return hints[bit >> 3] >> (bit & 7) & 1;
}

typedef struct {
    Py_ssize_t begin, end; /* bytes */
} Span;

typedef struct {
    Py_ssize_t around;       /* words that belong to a signal on both sides */
    Span span;               /* the last one; begin is -1 if there is none */
    Py_ssize_t end;          /* the number of the first word after it */
    Array spans;
} Around;

/* What may be volatile: COUNT alone, the others together with a word. */
enum { COUNT = 1, DURATION = 2, MOMENT = 4 };

/* Return what the number of a digit may be, by what is before and after that digit: `_VIEWS`,
 * `_COUNTED`, `_DURATION` and `_is_moment`. */
static int kinds_of_number(const byte *text, const byte *at, const byte *end)
{
#define HAS(word) begins(at, end, word)
    if (at - text > 2 && at[-1] == ' ') {
        byte last = lower(at[-2]), before = lower(at[-3]);
        if ((before == 's' && last == ':') || (before == 'e' && last == 'd')) return COUNT;
    }
    int kinds = HAS("20") ? MOMENT : 0;
    at++;
    if (HAS(":")) kinds |= MOMENT;
    if (HAS(" ")) at++;
    if (at == end) return kinds;
    switch (lower(*at)) {
    case 'g': return HAS("guest") ? COUNT : kinds;
    case 'h': return HAS("hit") ? COUNT : kinds;
    case 'm':
        if (HAS("member")) return COUNT;
        return HAS("ms") || HAS("milli") ? kinds | DURATION : kinds;
    case 'p': return HAS("page") ? COUNT : kinds;
    case 'q': return HAS("quer") ? COUNT : kinds;
    case 's': return begins_name(at, end, "s") || HAS("sec") ? kinds | DURATION : kinds;
    case 'u':
        if (HAS("user")) return COUNT;
        return HAS("us") ? kinds | DURATION : kinds;
    case 'v': return HAS("view") || HAS("visit") ? COUNT : kinds;
    case 0xC2: case 0xCE: return kinds | DURATION;
    default: return kinds;
    }
}

/* Return which numbers one of the words of `_OF_DURATIONS` and `_OF_MOMENTS` makes volatile. */
static int kinds_of_word(const byte *at, const byte *end)
{
    switch (lower(*at)) {
    case ' ': return HAS(" time") ? DURATION | MOMENT : 0;
    case 'c': return HAS("compiled") ? DURATION : 0;
    case 'e': return HAS("executed") ? DURATION : HAS("exported") ? MOMENT : 0;
    case 'g': return HAS("generated") ? DURATION | MOMENT : 0;
    case 'i': return HAS("it is now") ? MOMENT : 0;
    case 'l': return HAS("last ") ? MOMENT : HAS("loaded") ? DURATION : 0;
    case 'p': return HAS("parsed") || HAS("processed") ? DURATION : HAS("printed") ? MOMENT : 0;
    case 'q': return HAS("quer") ? DURATION : 0;
    case 'r': return HAS("rendered") ? DURATION | MOMENT : HAS("retrieved") ? MOMENT : 0;
    case 's': return HAS("served") ? DURATION | MOMENT : 0;
    case 't': return HAS("took") ? DURATION : HAS("today is") ? MOMENT : 0;
    default: return 0;
    }
#undef HAS
}

/* Whether an expression may change a text. */
static int is_volatile(const byte *text, const byte *end)
{
    int numbers = 0, words = 0;
    for (const byte *at = text; at < end; at++) {
        if (is_digit(*at)) numbers |= kinds_of_number(text, at, end);
        else if (*at == ' ' && begins(at, end, " ago")) return 1;
    }
    if (numbers & COUNT) return 1;
    for (const byte *at = text; numbers && at < end; at++) words |= kinds_of_word(at, end);
    return numbers & words;
}

/* Keep the last span if it matters. Return whether there is memory. */
static int close_span(Around *around, const byte *text)
{
    Span span = around->span;
    if (span.begin < 0 || !is_volatile(text + span.begin, text + span.end)) return 1;
    Span *kept = added(&around->spans, sizeof *kept);
    if (kept != NULL) *kept = span;
    return kept != NULL;
}

/* Return the bits of those of the next 64 bytes that are spaces; what is after the end is one. */
static uint64_t spaces_at(const byte *at, const byte *end, uint64_t *breaks)
{
    uint64_t spaces = end - at < 64 ? ~(uint64_t)0 << (end - at) : 0;
    *breaks = 0;
#ifdef __SSE2__
    uint64_t found = 0;
    for (int part = 0; end - at >= 64 && part < 64; part += 16) {
        __m128i text = _mm_loadu_si128((const __m128i *)(at + part));
        __m128i tab = _mm_sub_epi8(text, _mm_set1_epi8('\t'));
        __m128i low = _mm_cmpeq_epi8(tab, _mm_min_epu8(tab, _mm_set1_epi8('\r' - '\t')));
        low = _mm_or_si128(low, _mm_cmpeq_epi8(text, _mm_set1_epi8(' ')));
        found |= (uint64_t)(unsigned)_mm_movemask_epi8(low) << part;
        *breaks |= (uint64_t)bits_of(at + part, BREAK) << part;
    }
    if (end - at >= 64) return found;
#endif
    for (int each = 0; each < 64 && each < end - at; each++) {
        spaces |= (uint64_t)is_space(at[each]) << each;
        *breaks |= (uint64_t)(at[each] == BREAK) << each;
    }
    return spaces;
}

/* A text between two breaks: as it is, and with one space between its words. */
typedef struct {
    const byte *begin, *end, *words;
    int has_signal;
} Block;

/* Whether an expression may change a block that ends at `out`: one of its spans. */
static int may_change(const Block *block, const Around *around, const byte *text, const byte *out)
{
    const Span *kept = around->spans.items;
    Py_ssize_t begin = block->words - text, open = around->span.begin;
    if (!block->has_signal) return 0;
    if (around->spans.count && kept[around->spans.count - 1].end > begin) return 1;
    return is_volatile(text + (open > begin ? open : begin), out);
}

/* Add the CRC-32 of a block: of what `change` returns for its words, unless that is NULL, if that
 * differs. Return whether it is done; else there is an exception. */
static int add_block(Array *sums, const Block *block, const byte *out, PyObject *change)
{
    uint32_t *sum = added(sums, sizeof *sum);
    if (sum == NULL) return PyErr_NoMemory() != NULL;
    *sum = crc_of(block->begin, block->end);
    if (change == NULL) return 1;
    Py_ssize_t length = out - block->words;
    PyObject *text = PyObject_CallFunction(change, "y#", block->words, length);
    if (text == NULL) return 0;
    if (PyBytes_Check(text)) {
        const byte *at = (const byte *)PyBytes_AS_STRING(text);
        Py_ssize_t changed = PyBytes_GET_SIZE(text);
        if (changed != length || memcmp(at, block->words, length)) *sum = crc_of(at, at + changed);
    } else PyErr_Format(PyExc_TypeError, "bytes are needed");
    Py_DECREF(text);
    return !PyErr_Occurred();
}

#define RING 16 /* more than `around` */

/* Write the words with one space between them; the spans around signals go to `around`, and the
 * CRC-32 of each block to `sums`.
 *
 * Return the end of the text; NULL with an exception. */
static byte *write_words(
    const byte *at, const byte *end, byte *text, Around *around, PyObject *signals,
    const byte *hints, Array *sums, PyObject *change)
{
    byte *out = text;
    Py_ssize_t starts[RING], place = 0; /* the last words begin at these bytes of the text */
    const byte *word = NULL;
    Block block = {NULL};
    int is_broken = 1; /* whether a break is before the next word */
    for (uint64_t before = 1, breaks; at < end || word != NULL; at += 64) {
        uint64_t spaces = spaces_at(at, end, &breaks), edges = spaces ^ (spaces << 1 | before);
        before = spaces >> 63;
        for (; edges; edges &= edges - 1) {
            const byte *edge = at + count_zeros(edges);
            if (word == NULL) {
                uint64_t passed = breaks & ((edges & -edges) - 1);
                word = edge;
                if (is_broken || passed) {
                    int changes = may_change(&block, around, text, out);
                    if (block.end != NULL && !add_block(sums, &block, out, changes ? change : NULL))
                        return NULL;
                    block = (Block){.begin = word, .words = out + (place > 0)};
                }
                is_broken = 0;
                breaks ^= passed;
                continue;
            }
            block.end = edge;
            Py_ssize_t length = edge - word;
            if (place == around->end) around->span.end = out - text;
            if (place) *out++ = ' ';
            starts[place % RING] = out - text;
            if (length <= 16 && end - word >= 16) memcpy(out, word, 16);
            else memcpy(out, word, length);
            out += length;
            const byte *began = word;
            Py_ssize_t number = place++;
            word = NULL;
            if (number % SLICE == SLICE - 1) {
                Py_BEGIN_ALLOW_THREADS
                Py_END_ALLOW_THREADS
            }
            if (!has_bit(hints, began, length)) continue;
            PyObject *key = PyBytes_FromStringAndSize((const char *)began, length);
            int is_signal = key == NULL ? -1 : PySet_Contains(signals, key);
            Py_XDECREF(key);
            if (is_signal < 0) return NULL;
            if (!is_signal) continue;
            block.has_signal = 1;
            Py_ssize_t first = number - around->around;
            if (around->span.begin < 0 || first > around->end) {
                if (!close_span(around, text)) return (byte *)PyErr_NoMemory();
                around->span.begin = first > 0 ? starts[first % RING] : 0;
            }
            around->end = number + around->around;
        }
        is_broken |= breaks != 0;
    }
    if (place <= around->end) around->span.end = out - text;
    if (!may_change(&block, around, text, out)) change = NULL;
    if (block.end != NULL && !add_block(sums, &block, out, change)) return NULL;
    if (!close_span(around, text)) return (byte *)PyErr_NoMemory();
    return out;
}

static PyObject *list_spans(const Array *spans)
{
    PyObject *list = PyList_New(spans->count);
    const Span *span = spans->items;
    for (Py_ssize_t each = 0; list != NULL && each < spans->count; each++) {
        PyObject *pair = Py_BuildValue("nn", span[each].begin, span[each].end);
        if (pair == NULL) Py_CLEAR(list);
        else PyList_SET_ITEM(list, each, pair);
    }
    return list;
}

/* Return a text that is at most as long as its source; None if `write` returns NULL. */
static PyObject *rewritten(
    PyObject *source, byte *(*write)(const byte *at, const byte *end, byte *out))
{
    if (!PyBytes_Check(source)) return PyErr_Format(PyExc_TypeError, "bytes are needed");
    Py_ssize_t length = PyBytes_GET_SIZE(source);
    PyObject *result = PyBytes_FromStringAndSize(NULL, length);
    if (result == NULL) return NULL;
    const byte *at = (const byte *)PyBytes_AS_STRING(source);
    byte *out = (byte *)PyBytes_AS_STRING(result);
    PyThreadState *state = length > LARGE ? PyEval_SaveThread() : NULL;
    byte *end = write(at, at + length, out);
    if (state != NULL) PyEval_RestoreThread(state);
    if (end == NULL) {
        Py_DECREF(result);
        Py_RETURN_NONE;
    }
    _PyBytes_Resize(&result, end - out);
    return result;
}

/* Add the tags of `h1` to `tags`; return the number of words, -1 if there is no memory. */
static Py_ssize_t count_words(const byte *start, const byte *end, Array *tags)
{
    static const byte SPACE[256] = {
        [' '] = 1, ['\t'] = 1, ['\n'] = 1, ['\v'] = 1, ['\f'] = 1, ['\r'] = 1,
    };
    Py_ssize_t count = 0;
    unsigned before = 1; /* whether a space, or what stands for one, is before */
    for (const byte *at = start, *open; at < end; ) {
        for (open = find(at, end, '<'); at < open; at++) {
            unsigned space = SPACE[*at];
            count += before & ~space;
            before = space;
        }
        if (open == end) break;
        byte stands;
        at = after_open(open, end, &stands);
        count += before && stands == '<';
        before = stands != '<';
        if (stands != BREAK || !begins_name(open + 1, end, "h1")) continue;
        Span *tag = added(tags, sizeof *tag);
        if (tag == NULL) return -1;
        *tag = (Span){open - start, at - start};
    }
    return count;
}

static PyObject *outline(PyObject *module, PyObject *source)
{
    if (!PyBytes_Check(source)) return PyErr_Format(PyExc_TypeError, "bytes are needed");
    Py_ssize_t length = PyBytes_GET_SIZE(source);
    const byte *start = (const byte *)PyBytes_AS_STRING(source);
    Array tags = {0};
    PyThreadState *state = length > LARGE ? PyEval_SaveThread() : NULL;
    Py_ssize_t count = count_words(start, start + length, &tags);
    if (state != NULL) PyEval_RestoreThread(state);
    PyObject *result = count < 0 ? PyErr_NoMemory() : Py_BuildValue("nN", count, list_spans(&tags));
    PyMem_RawFree(tags.items);
    return result;
}

static PyObject *visible(PyObject *module, PyObject *source)
{
    return rewritten(source, write_visible);
}

static PyObject *decoded(PyObject *module, PyObject *visible)
{
    return rewritten(visible, write_decoded);
}

static PyObject *words(PyObject *module, PyObject *args)
{
    PyObject *source, *signals, *hints, *change;
    Around around = {.span = {-1, 0}, .end = -1};
    Array sums = {0};
    if (!PyArg_ParseTuple(args, "SO!SnO:words", &source, &PyFrozenSet_Type, &signals, &hints,
                          &around.around, &change))
        return NULL;
    if (PyBytes_GET_SIZE(hints) != HINTS || around.around < 0 || around.around >= RING)
        return PyErr_Format(PyExc_ValueError, "hints are of `hints`, and `around` is below 16");
    Py_ssize_t length = PyBytes_GET_SIZE(source);
    /* A text ends in no space, so it has a byte for each byte of the source at most. */
    PyObject *text = PyBytes_FromStringAndSize(NULL, length);
    if (text == NULL) return NULL;
    const byte *at = (const byte *)PyBytes_AS_STRING(source);
    byte *out = (byte *)PyBytes_AS_STRING(text);
    byte *end = write_words(at, at + length, out, &around, signals,
                            (const byte *)PyBytes_AS_STRING(hints), &sums, change);
    PyObject *spans = end == NULL ? NULL : list_spans(&around.spans);
    byte found[2 * MAX_BLOCKS];
    Py_ssize_t size = write_blocks(sums.items, sums.count, found) - found;
    PyMem_RawFree(around.spans.items);
    PyMem_RawFree(sums.items);
    if (spans == NULL) Py_CLEAR(text);
    else _PyBytes_Resize(&text, end - out);
    if (text != NULL) return Py_BuildValue("NNy#", text, spans, found, size);
    Py_XDECREF(spans);
    return NULL;
}

static PyObject *hints(PyObject *module, PyObject *signals)
{
    byte bits[HINTS] = {0};
    PyObject *each = PyObject_GetIter(signals), *word;
    if (each == NULL) return NULL;
    while ((word = PyIter_Next(each)) != NULL) {
        Py_ssize_t length = PyBytes_Check(word) ? PyBytes_GET_SIZE(word) : 0;
        if (length >= 3 && length <= MAX_WORD) {
            uint32_t bit = bit_of((const byte *)PyBytes_AS_STRING(word), length);
            bits[bit >> 3] |= 1 << (bit & 7);
        } else {
            PyErr_Format(PyExc_ValueError, "%R has not 3 to %d bytes", word, MAX_WORD);
        }
        Py_DECREF(word);
        if (PyErr_Occurred()) break;
    }
    Py_DECREF(each);
    if (PyErr_Occurred()) return NULL;
    return PyBytes_FromStringAndSize((const char *)bits, HINTS);
}

static PyMethodDef methods[] = {
    {"outline", outline, METH_O, PyDoc_STR(
"outline(source, /)\n--\n\n"
"Return the number of words of the visible text of HTML, and where each tag of an h1 is in it.")},
    {"visible", visible, METH_O, PyDoc_STR(
"visible(source, /)\n--\n\n"
"Return the visible text of HTML, with a vertical tab for each tag; references are not decoded.")},
    {"decoded", decoded, METH_O, PyDoc_STR(
"decoded(visible, /)\n--\n\n"
"Return a text with its numeric references decoded.\n\n"
"None if one of them is for another character than the one of that number.")},
    {"words", words, METH_VARARGS, PyDoc_STR(
"words(visible, signals, hints, around, change, /)\n--\n\n"
"Return the words with one space between them, the parts around signals, and the blocks.\n\n"
"Each part is its first byte and its end. Parts that no expression can change are left out.\n"
"A block is the text between two tags, two bytes of each: the words that have a signal, and may\n"
"have a volatile number, as `change` returns them.\n"
"`hints` is what the function of this name returns for the signals.")},
    {"hints", hints, METH_O, PyDoc_STR(
"hints(signals, /)\n--\n\n"
"Return a set of bits by which most words are found not to be signals.")},
    {NULL, NULL, 0, NULL},
};

static int prepare(PyObject *module)
{
    make_crc();
    return 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, prepare},
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
    .m_name = "_text",
    .m_doc = "The compiled reader of the text of pages.",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__text(void) { return PyModuleDef_Init(&definition); }
