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
#define SLICE 4096        /* words and tags, after which other threads may run */
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
        0x20AC, 0x81, 0x201A, 0x192, 0x201E, 0x2026, 0x2020, 0x2021,
        0x2C6, 0x2030, 0x160, 0x2039, 0x152, 0x8D, 0x17D, 0x8F,
        0x90, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
        0x2DC, 0x2122, 0x161, 0x203A, 0x153, 0x9D, 0x17E, 0x178,
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

static void write_sum(byte *out, uint32_t sum) { write_block(write_block(out, sum), sum >> 16); }

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

/* Words. A set of bits says which may be signals, so that few are looked up in the set of those. */

/* Return the numbers of two bits, of 16 bits each: HINTS has as many. A byte is after each word. */
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

typedef struct {
    Py_ssize_t begin, end; /* bytes */
} Span;

/* The words of a page, with one space between them. */
typedef struct {
    byte *text, *out;
    Py_ssize_t count;          /* of the words before */
    byte *block;               /* where the current block begins: the text between two tags */
    int is_broken, has_signal; /* whether a tag is before the next word; of the block */
    Py_ssize_t around;         /* words that belong to a signal on both sides */
    Span span;                 /* the last one; begin is -1 if there is none */
    Py_ssize_t span_end;       /* the number of the first word after it */
    Array spans, sums;         /* parts around signals; the CRC-32 of each block, low byte first */
    PyObject *signals, *change;
    const byte *hints;
} Words;

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

/* Keep the last span if it matters. Return whether it is done; else there is an exception. */
static int close_span(Words *words)
{
    Span span = words->span;
    if (span.begin < 0 || !is_volatile(words->text + span.begin, words->text + span.end)) return 1;
    Span *kept = added(&words->spans, sizeof *kept);
    if (kept == NULL) return PyErr_NoMemory() != NULL;
    *kept = span;
    return 1;
}

/* Whether an expression may change the block that ends here: one of its spans. */
static int may_change(const Words *words)
{
    const Span *kept = words->spans.items;
    Py_ssize_t begin = words->block - words->text, open = words->span.begin;
    if (!words->has_signal) return 0;
    if (words->spans.count && kept[words->spans.count - 1].end > begin) return 1;
    return is_volatile(words->text + (open > begin ? open : begin), words->out);
}

/* Add the CRC-32 of a block: of what `change` returns for it, if that may be another text. Return
 * whether it is done; else there is an exception. */
static int close_block(Words *words)
{
    byte *sum = added(&words->sums, 4);
    if (sum == NULL) return PyErr_NoMemory() != NULL;
    if (!may_change(words)) {
        write_sum(sum, crc_of(words->block, words->out));
        return 1;
    }
    PyObject *text = PyObject_CallFunction(
        words->change, "y#", words->block, (Py_ssize_t)(words->out - words->block));
    if (text == NULL) return 0;
    if (PyBytes_Check(text)) {
        const byte *at = (const byte *)PyBytes_AS_STRING(text);
        write_sum(sum, crc_of(at, at + PyBytes_GET_SIZE(text)));
    } else PyErr_Format(PyExc_TypeError, "bytes are needed");
    Py_DECREF(text);
    return !PyErr_Occurred();
}

/* Return where a word after `out` begins; NULL if there is an exception. */
static inline byte *begin_word(Words *words, byte *out)
{
    words->out = out;
    if (words->is_broken && words->count && !close_block(words)) return NULL;
    if (words->count == words->span_end) words->span.end = out - words->text;
    if (words->count) *out++ = ' ';
    if (words->is_broken) {
        words->block = out;
        words->is_broken = words->has_signal = 0;
    }
    return out;
}

/* Use a word that may be a signal. Return whether it is done; else there is an exception. */
static int use_signal(Words *words, const byte *word, Py_ssize_t length)
{
    PyObject *key = PyBytes_FromStringAndSize((const char *)word, length);
    int is_signal = key == NULL ? -1 : PySet_Contains(words->signals, key);
    Py_XDECREF(key);
    if (is_signal <= 0) return is_signal == 0;
    words->has_signal = 1;
    if (words->span.begin < 0 || words->count - 1 - words->around > words->span_end) {
        if (!close_span(words)) return 0;
        for (Py_ssize_t each = 0; each < words->around && word > words->text; each++)
            do word--; while (word > words->text && word[-1] != ' ');
        words->span.begin = word - words->text;
    }
    words->span_end = words->count - 1 + words->around;
    return 1;
}

/* End a word, if there is one. Return whether it is done; else there is an exception. */
static inline int end_word(Words *words, const byte *word, const byte *out)
{
    if (word == NULL) return 1;
    words->count++;
    return !has_bit(words->hints, word, out - word) || use_signal(words, word, out - word);
}

/* Write a text up to a "<", a "&", or a byte that is a space or a control; return where it ends. */
static inline const byte *write_plain(const byte *at, const byte *end, byte **to)
{
    byte *out = *to;
#ifdef __SSE2__
    const __m128i space = _mm_set1_epi8(' ');
    for (; end - at >= 16; at += 16, out += 16) {
        __m128i text = _mm_loadu_si128((const __m128i *)at);
        __m128i other = _mm_cmpeq_epi8(text, _mm_min_epu8(text, space));
        other = _mm_or_si128(other, _mm_cmpeq_epi8(text, _mm_set1_epi8('<')));
        other = _mm_or_si128(other, _mm_cmpeq_epi8(text, _mm_set1_epi8('&')));
        _mm_storeu_si128((__m128i *)out, text);
        unsigned found = _mm_movemask_epi8(other);
        if (!found) continue;
        *to = out + count_zeros(found);
        return at + count_zeros(found);
    }
#endif
    while (at < end && *at > ' ' && *at != '<' && *at != '&') *out++ = *at++;
    *to = out;
    return at;
}

/* Write the words of a page. Return whether it is done; else there is an exception. */
static int write_words(const byte *at, const byte *end, Words *words)
{
    byte *out = words->text, *word = NULL; /* where the current word begins; NULL between two */
    for (Py_ssize_t step = 1; at < end; step++) {
        byte stands = BREAK;
        uint32_t point = 0;
        const byte *next = *at == '<' ? after_usual_tag(at, end) : NULL;
        if (next == NULL) {
            stands = *at;
            if (stands == '<') next = after_open(at, end, &stands);
            else if (stands == '&') next = after_reference(at, end, &point);
            if (point) stands = point < 0x80 ? point : 0x80;
        }
        at = next == NULL ? at + 1 : next;
        if (is_space(stands)) {
            if (!end_word(words, word, out)) return 0;
            word = NULL;
            words->is_broken |= stands == BREAK;
        } else {
            if (word == NULL && (out = word = begin_word(words, out)) == NULL) return 0;
            if (point) out = write_point(out, point);
            else *out++ = stands;
            at = write_plain(at, end, &out);
            if (at < end && *at == ' ') {
                if (!end_word(words, word, out)) return 0;
                word = NULL;
                at++;
            }
        }
        if (step % SLICE == 0) {
            Py_BEGIN_ALLOW_THREADS
            Py_END_ALLOW_THREADS
        }
    }
    words->out = out;
    if (!end_word(words, word, out)) return 0;
    if (words->count <= words->span_end) words->span.end = words->out - words->text;
    return (!words->count || close_block(words)) && close_span(words);
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

static PyObject *words(PyObject *module, PyObject *args)
{
    PyObject *source, *hints;
    Words words = {.is_broken = 1, .span = {-1, 0}, .span_end = -1};
    if (!PyArg_ParseTuple(args, "SO!SnO:words", &source, &PyFrozenSet_Type, &words.signals, &hints,
                          &words.around, &words.change))
        return NULL;
    if (PyBytes_GET_SIZE(hints) != HINTS)
        return PyErr_Format(PyExc_ValueError, "hints are what `hints` returns");
    words.hints = (const byte *)PyBytes_AS_STRING(hints);
    Py_ssize_t length = PyBytes_GET_SIZE(source);
    /* Words have a byte for each of the source at most; 16 are written at once. */
    PyObject *text = PyBytes_FromStringAndSize(NULL, length + 16);
    if (text == NULL) return NULL;
    words.text = (byte *)PyBytes_AS_STRING(text);
    const byte *at = (const byte *)PyBytes_AS_STRING(source);
    int done = write_words(at, at + length, &words);
    PyObject *spans = done ? list_spans(&words.spans) : NULL;
    byte found[2 * MAX_BLOCKS];
    Py_ssize_t size = write_blocks(words.sums.items, words.sums.count, found) - found;
    PyMem_RawFree(words.spans.items);
    PyMem_RawFree(words.sums.items);
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
