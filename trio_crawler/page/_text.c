/* Read the text that a page of HTML shows: the plain parts of `text_digest.py`, compiled.
 *
 * `accelerator.py` says when this is used, and what it saves. Each rule is one of `text_digest.py`,
 * whose expressions are named here. No word is read more than a few times: the time is linear. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define LARGE (64 * 1024) /* bytes; for more the lock of the interpreter is released */
#define SLICE 4096        /* steps after which other threads may run */
#define BREAK '\v'        /* stands for a tag */
#define MAX_WORD 12       /* bytes of the longest signal */
#define HINTS 8192        /* bytes of a set of bits */
#define MAX_BLOCKS 128    /* of one page */

typedef unsigned char byte;
typedef const char *const Names[];

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

/* Whether a text begins with one of some words, in any case. */
static int begins_one(const byte *at, const byte *end, Names words)
{
    while (*words && !begins(at, end, *words)) words++;
    return *words != NULL;
}

/* Whether a text begins with `name`, in any case, as a whole word. */
static int begins_name(const byte *at, const byte *end, const char *name)
{
    const byte *rest = at + strlen(name);
    return begins(at, end, name) && (rest >= end || !is_of_word(*rest));
}

/* Return the end of the comment or of the element at a "<" that `_UNSEEN` matches; NULL if none. */
static const byte *after_unseen(const byte *at, const byte *end)
{
    static Names NAMES = {"script", "style", "noscript", "template", "title"};
    if (end - at >= 4 && memcmp(at, "<!--", 4) == 0) {
        const byte *text = at + 4;
        do at = after(find(at, end, '>'), end);
        while (at < end && (at - text < 3 || at[-2] != '-' || at[-3] != '-'));
        return at;
    }
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

#define count_zeros __builtin_ctzll

#ifdef __SSE2__
/* Return the end of a usual tag at a "<"; NULL if it has to be read: if it may be unseen, or has a
 * "<" inside. */
static inline const byte *after_usual_tag(const byte *at, const byte *end)
{
    /* What begins a tag. What is unseen begins with two letters of one kind. */
    enum { TAG = 1, N = 2, S = 4, T = 8 };
    static const byte FIRST[256] = {
        ['/'] = TAG, ['A' ... 'M'] = TAG, ['O' ... 'R'] = TAG, ['U' ... 'Z'] = TAG,
        ['a' ... 'm'] = TAG, ['o' ... 'r'] = TAG, ['u' ... 'z'] = TAG,
        ['N'] = N, ['n'] = N, ['S'] = S, ['s'] = S, ['T'] = T, ['t'] = T,
    };
    static const byte SECOND[256] = {
        ['O'] = N, ['o'] = N, ['C'] = S, ['c'] = S, ['T'] = S, ['t'] = S,
        ['E'] = T, ['e'] = T, ['I'] = T, ['i'] = T,
    };
    if (end - at < 16 || !FIRST[at[1]] || FIRST[at[1]] & SECOND[at[2]]) return NULL;
    /* Most tags are so short that a call of `memchr` takes longer. A "<" with this bit is a ">". */
    const __m128i bit = _mm_set1_epi8('<' ^ '>'), close = _mm_set1_epi8('>');
    for (at++; end - at >= 16; at += 16) {
        __m128i text = _mm_or_si128(_mm_loadu_si128((const __m128i *)at), bit);
        unsigned found = _mm_movemask_epi8(_mm_cmpeq_epi8(text, close));
        if (!found) continue;
        at += count_zeros(found);
        return *at == '>' ? at + 1 : NULL;
    }
    return NULL;
}
#else
static const byte *after_usual_tag(const byte *at, const byte *end) { return NULL; }
#endif

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

/* Numeric references. */

static int digit_of(byte c, int base)
{
    if (is_digit(c)) return c - '0';
    byte letter = lower(c);
    return base == 16 && letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

/* Return the end of the reference at an "&" that `_NUMERIC` matches, and its character; NULL if there
 * is none. */
static const byte *after_reference(const byte *at, const byte *end, uint32_t *point)
{
    /* Old pages use the numbers of windows-1252. */
    static const uint16_t OLD[32] = {
        0x20AC, 0x81, 0x201A, 0x192, 0x201E, 0x2026, 0x2020, 0x2021, 0x2C6, 0x2030, 0x160,
        0x2039, 0x152, 0x8D, 0x17D, 0x8F, 0x90, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
        0x2013, 0x2014, 0x2DC, 0x2122, 0x161, 0x203A, 0x153, 0x9D, 0x17E, 0x178,
    };
    int base = end - at > 2 && lower(at[2]) == 'x' ? 16 : 10;
    const byte *digit = at + (base == 16 ? 3 : 2);
    if (digit >= end || at[1] != '#' || digit_of(*digit, base) < 0) return NULL;
    for (*point = 0; digit < end && digit_of(*digit, base) >= 0; digit++)
        if (*point < 0x110000) *point = base * *point + digit_of(*digit, base);
    if (*point == 0 || *point >= 0x110000 || *point >> 11 == 0xD800 >> 11) *point = 0xFFFD;
    if (*point >> 5 == 0x80 >> 5) *point = OLD[*point & 0x1F];
    return digit < end && *digit == ';' ? digit + 1 : digit;
}

/* Write a character in UTF-8. */
static byte *write_point(byte *out, uint32_t point)
{
    if (point < 0x80) {
        *out++ = point;
        return out;
    }
    int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
    *out++ = 0xFF80 >> more | point >> 6 * more;
    while (more--) *out++ = 0x80 | (point >> 6 * more & 0x3F);
    return out;
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

typedef struct {
    Py_ssize_t begin, end; /* bytes */
} Span;

/* An array that grows. */
typedef struct {
    Span *items;
    Py_ssize_t count, room;
} Array;

/* Add a span. Return whether there was memory. */
static int keep(Array *array, Py_ssize_t begin, Py_ssize_t end)
{
    if (array->count == array->room) {
        Py_ssize_t room = array->room ? 2 * array->room : 256;
        Span *items = PyMem_RawRealloc(array->items, room * sizeof *items);
        if (items == NULL) return 0;
        array->items = items;
        array->room = room;
    }
    array->items[array->count++] = (Span){begin, end};
    return 1;
}

static byte *write_block(byte *out, uint32_t sum)
{
    *out++ = sum & 0xFF;
    *out++ = sum >> 8 & 0xFF;
    return out;
}

/* Write the blocks, at most MAX_BLOCKS, to 2 bytes each: `_grouped`. Return their end. */
static byte *write_blocks(const byte *sums, Py_ssize_t count, byte *out)
{
#define SUM(each) four_bytes(sums + 4 * (each))
    if (count <= MAX_BLOCKS) {
        for (Py_ssize_t each = 0; each < count; each++) out = write_block(out, SUM(each));
        return out;
    }
    uint32_t every = 1; /* a power of 2 */
    for (Py_ssize_t starts = count - 1; starts >= MAX_BLOCKS && every <= 0xFFFF; ) {
        every *= 2;
        starts = 0;
        for (Py_ssize_t each = 1; each < count; each++) starts += !(SUM(each) >> 16 & (every - 1));
    }
    Py_ssize_t begin = 0, groups = 1;
    for (Py_ssize_t each = 1; each < count && groups < MAX_BLOCKS; each++) {
        if (SUM(each) >> 16 & (every - 1)) continue;
        out = write_block(out, crc_of(sums + 4 * begin, sums + 4 * each));
        begin = each;
        groups++;
    }
    return write_block(out, crc_of(sums + 4 * begin, sums + 4 * count));
#undef SUM
}

/* Return the numbers of the two bits of a word, of 16 bits each: HINTS has as many. Those of signals
 * are set, so that few words are looked up in the set of signals. A byte is after each word. */
static uint32_t bits_of(const byte *word, Py_ssize_t length)
{
    uint32_t key = (four_bytes(word) & 0xFFFFFF) | (uint32_t)length << 24;
    uint32_t last = word[length - 1] | (uint32_t)word[length - 2] << 8;
    return (key ^ last * 0x85EBCA6Bu) * 0x9E3779B1u;
}

static int has_bit(const byte *hints, const byte *word, Py_ssize_t length)
{
    if (length < 3 || length > MAX_WORD) return 0;
    uint32_t bits = bits_of(word, length), one = bits >> 16, two = bits & 0xFFFF;
    return hints[one >> 3] >> (one & 7) & 1 && hints[two >> 3] >> (two & 7) & 1;
}

/* The words of a page, with one space between them. */
typedef struct {
    byte *text, *out;
    Array blocks, spans; /* the texts between two tags; the parts around signals */
    Py_ssize_t around;   /* words that belong to a signal on both sides */
    PyObject *signals, *change;
    const byte *hints;
    uint32_t steps;
} Words;

/* What may be volatile: COUNT alone, the others together with a word. */
enum { COUNT = 1, DURATION = 2, MOMENT = 4 };

/* Return what the number of a digit may be: `_VIEWS`, `_COUNTED`, `_DURATION`, `_is_moment`. */
static int kinds_of_number(const byte *text, const byte *at, const byte *end)
{
    static Names COUNTED = {"guest", "hit", "member", "page", "quer", "user", "view", "visit", NULL};
    static Names UNITS = {"ms", "milli", "sec", "us", "\xc2", "\xce", NULL};
    if (at - text > 2 && at[-1] == ' ') {
        byte last = lower(at[-2]), before = lower(at[-3]);
        if ((before == 's' && last == ':') || (before == 'e' && last == 'd')) return COUNT;
    }
    int kinds = begins(at, end, "20") ? MOMENT : 0;
    if (++at < end && *at == ':') kinds |= MOMENT;
    if (at < end && *at == ' ') at++;
    if (at == end || memchr("ghmpqsuv\xc2\xce", lower(*at), 10) == NULL) return kinds;
    if (begins_one(at, end, COUNTED)) return COUNT;
    return begins_name(at, end, "s") || begins_one(at, end, UNITS) ? kinds | DURATION : kinds;
}

/* Return which numbers one of the words of `_OF_DURATIONS` and `_OF_MOMENTS` makes volatile. */
static int kinds_of_word(const byte *at, const byte *end)
{
    static Names BOTH = {"time", "generated", "rendered", "served", NULL};
    static Names DURATIONS = {"compiled", "executed", "loaded", "parsed", "processed", "quer", "took", NULL};
    static Names MOMENTS = {"exported", "it is now", "last ", "printed", "retrieved", "today is", NULL};
    if (begins_one(at, end, BOTH)) return DURATION | MOMENT;
    return begins_one(at, end, DURATIONS) ? DURATION : begins_one(at, end, MOMENTS) ? MOMENT : 0;
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
    for (const byte *at = text; numbers && at < end; at++)
        if (*at != ' ' && (at == text || !is_of_word(at[-1]))) words |= kinds_of_word(at, end);
    return numbers & words;
}

/* Let other threads run now and then. */
#define REST(steps) \
    if (++(steps) % SLICE == 0) { Py_BEGIN_ALLOW_THREADS Py_END_ALLOW_THREADS }

/* Return the first place at which an expression may change the text; its end if there is none. */
static const byte *next_volatile(Words *words, const byte *at)
{
    const byte *end = words->out;
    for (; at < end; at++) {
#ifdef __SSE2__
        const __m128i nine = _mm_set1_epi8(9), space = _mm_set1_epi8(' ');
        __m128i text = _mm_loadu_si128((const __m128i *)at);
        __m128i second = _mm_or_si128(_mm_loadu_si128((const __m128i *)(at + 1)), space);
        __m128i digits = _mm_sub_epi8(text, _mm_set1_epi8('0'));
        text = _mm_and_si128(_mm_cmpeq_epi8(text, space), _mm_cmpeq_epi8(second, _mm_set1_epi8('a')));
        digits = _mm_cmpeq_epi8(_mm_max_epu8(digits, nine), nine);
        unsigned found = _mm_movemask_epi8(_mm_or_si128(text, digits));
        at += found ? count_zeros(found) : 15;
        if (!found || at >= end) continue;
#endif
        REST(words->steps)
        int kinds = is_digit(*at) ? kinds_of_number(words->text, at, end) : begins(at, end, " ago");
        if (kinds) return at;
    }
    return end;
}

/* Whether a word is a signal; -1 if there is an exception. */
static int is_signal(Words *words, const byte *word, const byte *end)
{
    Py_ssize_t length = end - word;
    REST(words->steps)
    if (!has_bit(words->hints, word, length)) return 0;
    PyObject *key = PyBytes_FromStringAndSize((const char *)word, length);
    int found = key == NULL ? -1 : PySet_Contains(words->signals, key);
    Py_XDECREF(key);
    return found;
}

/* Return the beginning of the word before one, at `text` at the earliest. */
static const byte *word_before(const byte *text, const byte *word)
{
    if (word > text) do word--; while (word > text && word[-1] != ' ');
    return word;
}

/* Keep a part that an expression may change. Return whether there was memory. */
static int close_span(Words *words, const byte *begin, const byte *end)
{
    if (begin == NULL || !is_volatile(begin, end)) return 1;
    return keep(&words->spans, begin - words->text, end - words->text);
}

/* Keep the parts around signals that may be changed. Words far from numbers are not looked up. */
static int find_spans(Words *words)
{
    const byte *text = words->text, *end = words->out, *done = text, *stop;
    Py_ssize_t around = words->around;
    for (const byte *at = next_volatile(words, text); at < end; ) {
        const byte *word = word_before(done, at + 1), *begin = NULL, *last = NULL;
        Py_ssize_t left = 2 * around, since = left + 1;
        /* After so many words without a signal no part goes on. */
        for (int found; ; word = word_before(done, word)) {
            if ((found = is_signal(words, word, find(word, end, ' '))) < 0) return 0;
            left = found ? 2 * around : left - 1;
            if (!left || word == done) break;
        }
        for (left = 2 * around + 1; left && word < end; word = after(stop, end)) {
            stop = find(word, end, ' ');
            int found = is_signal(words, word, stop);
            if (found < 0) return 0;
            if (found && since > 2 * around) {
                if (!close_span(words, begin, last)) return 0;
                begin = word;
                for (Py_ssize_t each = 0; each < around; each++) begin = word_before(text, begin);
            }
            if (found) since = 0;
            if (since++ < around) last = stop;
            left = found || at < stop ? 2 * around : left - 1;
            while (at < stop) at = next_volatile(words, at + 1);
        }
        done = word;
        if (!close_span(words, begin, last)) return 0;
    }
    return 1;
}

/* Put the CRC-32 in place of each block, low byte first: of what `change` returns, if it may. */
static int sum_blocks(Words *words)
{
    const Span *span = words->spans.items, *last = span + words->spans.count;
    for (Py_ssize_t each = 0; each < words->blocks.count; each++) {
        Span block = words->blocks.items[each];
        char *text = (char *)words->text + block.begin;
        Py_ssize_t size = block.end - block.begin;
        PyObject *changed = NULL;
        REST(words->steps)
        while (span < last && span->end <= block.begin) span++;
        int may_change = span < last && span->begin < block.end
            && is_volatile(words->text + block.begin, words->text + block.end);
        if (may_change) changed = PyObject_CallFunction(words->change, "y#", text, size);
        int done = !may_change || (changed && PyBytes_AsStringAndSize(changed, &text, &size) == 0);
        uint32_t sum = done ? crc_of((byte *)text, (byte *)text + size) : 0;
        write_block(write_block((byte *)words->blocks.items + 4 * each, sum), sum >> 16);
        Py_XDECREF(changed);
        if (!done) return 0;
    }
    return 1;
}

/* Write a text up to a "<", "&", control, or space that is not between two words; return its end. */
static inline const byte *write_plain(const byte *at, const byte *end, byte **to)
{
    byte *out = *to;
#ifdef __SSE2__
    const __m128i space = _mm_set1_epi8(' ');
    for (; end - at >= 16; at += 15, out += 15) {
        __m128i text = _mm_loadu_si128((const __m128i *)at);
        __m128i other = _mm_cmpeq_epi8(text, _mm_min_epu8(text, space));
        other = _mm_or_si128(other, _mm_cmpeq_epi8(text, _mm_set1_epi8('<')));
        other = _mm_or_si128(other, _mm_cmpeq_epi8(text, _mm_set1_epi8('&')));
        _mm_storeu_si128((__m128i *)out, text);
        unsigned found = _mm_movemask_epi8(other);
        found &= found >> 1 | ~_mm_movemask_epi8(_mm_cmpeq_epi8(text, space));
        if (!(found & 0x7FFF)) continue;
        *to = out + count_zeros(found);
        return at + count_zeros(found);
    }
#endif
    while (at < end && *at > ' ' && *at != '<' && *at != '&') *out++ = *at++;
    *to = out;
    return at;
}

/* Write the words of a page, and keep its blocks. Return whether there was memory. */
static int write_words(const byte *at, const byte *end, Words *words)
{
    byte *out = words->text, *block = out;
    uint32_t steps = 0;
    int before = 0; /* the next word is a space (1), or a tag (2) */
    while (at < end) {
        byte stands = *at;
        uint32_t point = 0;
        REST(steps)
        const byte *next = stands == '<' ? after_usual_tag(at, end) : NULL;
        if (next != NULL) {
            before = 2;
            at = next;
            continue;
        }
        if (stands == '<') next = after_open(at, end, &stands);
        else if (stands == '&') next = after_reference(at, end, &point);
        if (point) stands = point < 0x80 ? point : 0x80;
        at = next == NULL ? at + 1 : next;
        if (is_space(stands)) {
            before |= stands == BREAK ? 2 : 1;
            continue;
        }
        if (before & 2 && out > block && !keep(&words->blocks, block - words->text, out - words->text))
            return 0;
        if (before && out > words->text) *out++ = ' ';
        if (before & 2) block = out;
        before = 0;
        if (point) out = write_point(out, point);
        else *out++ = stands;
        at = write_plain(at, end, &out);
    }
    words->out = out;
    return out == block || keep(&words->blocks, block - words->text, out - words->text);
}

static PyObject *list_spans(const Array *spans)
{
    PyObject *list = PyList_New(spans->count);
    for (Py_ssize_t each = 0; list != NULL && each < spans->count; each++) {
        PyObject *pair = Py_BuildValue("nn", spans->items[each].begin, spans->items[each].end);
        if (pair == NULL) Py_CLEAR(list);
        else PyList_SET_ITEM(list, each, pair);
    }
    return list;
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
        if (!keep(tags, open - start, at - start)) return -1;
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

static PyObject *words(PyObject *module, PyObject *args)
{
    PyObject *source, *hints;
    Words words = {0};
    if (!PyArg_ParseTuple(args, "SO!SnO:words", &source, &PyFrozenSet_Type, &words.signals, &hints,
                          &words.around, &words.change))
        return NULL;
    if (PyBytes_GET_SIZE(hints) != HINTS)
        return PyErr_Format(PyExc_ValueError, "hints are what `hints` returns");
    words.hints = (const byte *)PyBytes_AS_STRING(hints);
    Py_ssize_t length = PyBytes_GET_SIZE(source);
    /* Words have a byte for each of the source at most; 16 are written and read at once. */
    PyObject *text = PyBytes_FromStringAndSize(NULL, length + 32);
    if (text == NULL) return NULL;
    words.text = words.out = (byte *)PyBytes_AS_STRING(text);
    const byte *at = (const byte *)PyBytes_AS_STRING(source);
    int done = write_words(at, at + length, &words);
    memset(words.out, 0, 32);
    done = done && find_spans(&words) && sum_blocks(&words);
    if (!done && !PyErr_Occurred()) PyErr_NoMemory();
    PyObject *spans = done ? list_spans(&words.spans) : NULL;
    byte found[2 * MAX_BLOCKS];
    Py_ssize_t size = write_blocks((byte *)words.blocks.items, words.blocks.count, found) - found;
    PyMem_RawFree(words.spans.items);
    PyMem_RawFree(words.blocks.items);
    if (spans == NULL) Py_CLEAR(text);
    else _PyBytes_Resize(&text, words.out - words.text);
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
            uint32_t both = bits_of((const byte *)PyBytes_AS_STRING(word), length);
            for (uint32_t bit = both >> 16, each = 0; each < 2; each++, bit = both & 0xFFFF)
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
    {"words", words, METH_VARARGS, PyDoc_STR(
"words(source, signals, hints, around, change, /)\n--\n\n"
"Return the words of the visible text of HTML, the parts around signals, and the blocks.\n\n"
"One space is between two words. Each part is its first byte and its end. Parts that no expression\n"
"can change are left out. A block is the words between two tags, two bytes of each: those that have\n"
"a signal, and may have a volatile number, as `change` returns them.\n"
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
