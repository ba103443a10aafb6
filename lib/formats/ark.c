/*
 * ark.c - matrices in Kaldi's archives.
 *
 * A binary matrix: NUL and B, a token that ends with a blank, and
 *   FM, DM   the byte 4 and a 32-bit number, twice: rows and columns; the elements
 *   CM       smallest value and range of all, rows, columns; of each column four 16-bit
 *            quantiles; the elements of each column, a byte each, between these
 *   CM2, CM3 smallest value, range, rows, columns; the elements in 16 or 8 bits
 * Numbers are little-endian. A matrix as text: [, a line for each row, and ].
 */
#include "formats/ark.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "formats/text.h"

enum { LONGEST_KEY = 4096, LONGEST_NUMBER = 64 };

#define ark_fail(...) rnnd__below_zero(ark_fail_at(__VA_ARGS__))
__attribute__((format(printf, 3, 4))) static int ark_fail_at(
    const struct rnnd__ark *ark, int64_t at, const char *format, ...)
{
    char problem[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(problem, sizeof problem, format, args);
    va_end(args);
    return rnnd__fail(RNND_EDATA, "%s: byte %lld: %s", ark->path, (long long)at,
                      problem);
}

/* ---- bytes */

int rnnd__ark_open(const char *path, struct rnnd__ark *out)
{
    struct stat info;
    FILE *stream;
    RNND_TRY(rnnd__file_open(path, &stream));
    if (!stream)
        return rnnd__fail(RNND_EFILE, "%s: %m", path);
    if (fstat(fileno(stream), &info) < 0) {
        fclose(stream);
        return rnnd__file_fail("read", path);
    }
    *out = (struct rnnd__ark){path, stream, 0, info.st_size};
    return 0;
}

void rnnd__ark_close(struct rnnd__ark *ark)
{
    if (ark->stream)
        fclose(ark->stream);
    *ark = (struct rnnd__ark){0};
}

int rnnd__ark_seek(struct rnnd__ark *ark, int64_t at)
{
    if (at < 0 || at >= ark->size)
        return rnnd__fail(RNND_EDATA, "%s: has %lld bytes, so none begins at byte %lld",
                          ark->path, (long long)ark->size, (long long)at);
    if (fseeko(ark->stream, at, SEEK_SET) < 0)
        return rnnd__file_fail("read", ark->path);
    ark->at = at;
    return 0;
}

/* The next bytes, which are a part of what. */
static int take(struct rnnd__ark *ark, void *to, int64_t count, const char *what)
{
    if (count > ark->size - ark->at)
        return ark_fail(ark, ark->at, "the file ends within %s", what);
    if (fread(to, 1, (size_t)count, ark->stream) != (size_t)count)
        return rnnd__file_fail("read", ark->path);
    ark->at += count;
    return 0;
}

/* The next byte; -1 at the end. */
static int next_byte(struct rnnd__ark *ark)
{
    int c = ark->at < ark->size ? fgetc(ark->stream) : EOF;
    ark->at += c != EOF;
    return c;
}

static void step_back(struct rnnd__ark *ark, int c)
{
    if (c == EOF)
        return;
    ungetc(c, ark->stream);
    ark->at--;
}

static uint32_t word_at(const unsigned char *b)
{
    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static double float_at(const unsigned char *b)
{
    uint32_t word = word_at(b);
    float value;
    memcpy(&value, &word, sizeof value);
    return (double)value;
}

static double double_at(const unsigned char *b)
{
    uint64_t word = word_at(b) | (uint64_t)word_at(b + 4) << 32;
    double value;
    memcpy(&value, &word, sizeof value);
    return value;
}

static double short_at(const unsigned char *b)
{
    return b[0] | b[1] << 8;
}

static double byte_at(const unsigned char *b)
{
    return b[0];
}

/* ---- keys */

static bool is_space(int c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

int rnnd__ark_key(struct rnnd__ark *ark, struct rnnd__list *key, bool *more)
{
    int c = next_byte(ark);
    while (is_space(c))
        c = next_byte(ark);
    int64_t start = ark->at - (c != EOF);
    key->count = 0;
    for (; c > ' ' && c != 0x7f && key->count < LONGEST_KEY; c = next_byte(ark))
        RNND_TRY(rnnd__list_add(key, &(char){(char)c}, 1));
    *more = key->count > 0 || c != EOF;
    if (!*more)
        return 0;
    RNND_TRY(rnnd__list_add(key, NULL, 1));
    if (key->count == 1 || (c != ' ' && c != '\t') || !rnnd__text_is_utf8(key->at))
        return ark_fail(ark, start,
                        "no utterance begins here: its name, a blank and a matrix are "
                        "expected");
    return 0;
}

/* ---- binary matrices */

/* How elements are stored: `bytes` each; value = low + scale * element. */
struct elements {
    int bytes;
    double (*at)(const unsigned char *);
    double low, scale;
};

/* Whether the rest of the file has room for so many elements. */
static int check_room(const struct rnnd__ark *ark, int64_t rows, int64_t columns,
                      int64_t bytes)
{
    int64_t left = ark->size - ark->at;
    if (rows < 0 || columns < 0)
        return ark_fail(ark, ark->at, "a matrix of %lld rows and %lld columns",
                        (long long)rows, (long long)columns);
    if (rows > 0 && columns == 0)
        return ark_fail(ark, ark->at, "a matrix of %lld rows without columns",
                        (long long)rows);
    if (columns > 0 && rows > left / (columns * bytes))
        return ark_fail(ark, ark->at,
                        "a matrix of %lld rows and %lld columns, for which the file is "
                        "too short: %lld bytes are left",
                        (long long)rows, (long long)columns, (long long)left);
    return 0;
}

static int read_rows(struct rnnd__ark *ark, const struct elements *e, int64_t rows,
                     int64_t columns, struct rnnd__list *values)
{
    unsigned char *row;
    int status = 0;
    if (rows == 0)
        return 0;
    RNND_TRY(rnnd__new((size_t)columns, (size_t)e->bytes, "a matrix", &row));
    for (int64_t i = 0; i < rows && status == 0; i++) {
        int64_t before = values->count;
        RNND_TRY_GOTO(take(ark, row, columns * e->bytes, "a matrix"));
        RNND_TRY_GOTO(rnnd__list_add(values, NULL, columns));
        float *to = (float *)values->at + before;
        for (int64_t k = 0; k < columns; k++)
            to[k] = (float)(e->low + e->scale * e->at(row + k * e->bytes));
    }
done:
    free(row);
    return status;
}

static int read_size(struct rnnd__ark *ark, int64_t *out)
{
    unsigned char b[5];
    int64_t at = ark->at;
    RNND_TRY(take(ark, b, sizeof b, "the size of a matrix"));
    if (b[0] != 4)
        return ark_fail(ark, at, "the size of a matrix is expected: a byte 4, not %d",
                        b[0]);
    *out = (int32_t)word_at(b + 1);
    return 0;
}

static int read_plain(struct rnnd__ark *ark, bool is_double, struct rnnd__list *values,
                      int64_t size[2])
{
    struct elements e = {is_double ? 8 : 4, is_double ? double_at : float_at, 0, 1};
    RNND_TRY(read_size(ark, &size[0]));
    RNND_TRY(read_size(ark, &size[1]));
    RNND_TRY(check_room(ark, size[0], size[1], e.bytes));
    return read_rows(ark, &e, size[0], size[1], values);
}

/* A byte between four quantiles of its column: 0 to 64 to 192 to 255. */
static double between(const double quantile[4], int byte)
{
    static const int mark[] = {0, 64, 192, 255};
    int i = byte <= 64 ? 0 : byte <= 192 ? 1 : 2;
    return quantile[i] +
           (quantile[i + 1] - quantile[i]) * (byte - mark[i]) / (mark[i + 1] - mark[i]);
}

/* Elements between quantiles, column by column. */
static int read_columns(struct rnnd__ark *ark, const struct elements *quantiles,
                        const int64_t size[2], struct rnnd__list *values)
{
    int64_t rows = size[0], columns = size[1], before = values->count;
    unsigned char *column = NULL, *header = NULL;
    int status;
    RNND_TRY(check_room(ark, 1, columns, 8));
    RNND_TRY(RNND_NEW(&header, columns * 8, "a matrix"));
    RNND_TRY_GOTO(take(ark, header, columns * 8, "a matrix"));
    RNND_TRY_GOTO(check_room(ark, rows, columns, 1));
    RNND_TRY_GOTO(RNND_NEW(&column, rows, "a matrix"));
    RNND_TRY_GOTO(rnnd__list_add(values, NULL, rows * columns));
    for (int64_t k = 0; k < columns; k++) {
        float *to = (float *)values->at + before + k;
        double quantile[4];
        for (int i = 0; i < 4; i++)
            quantile[i] =
                quantiles->low + quantiles->scale * short_at(header + 8 * k + 2 * i);
        RNND_TRY_GOTO(take(ark, column, rows, "a matrix"));
        for (int64_t i = 0; i < rows; i++)
            to[i * columns] = (float)between(quantile, column[i]);
    }
done:
    free(column);
    free(header);
    return status;
}

/* form: 1, 2 or 3, of CM, CM2 and CM3 */
static int read_compressed(struct rnnd__ark *ark, int form, struct rnnd__list *values,
                           int64_t size[2])
{
    unsigned char b[16];
    RNND_TRY(take(ark, b, sizeof b, "the header of a compressed matrix"));
    struct elements e = {form == 3 ? 1 : 2, form == 3 ? byte_at : short_at, float_at(b),
                         float_at(b + 4) / (form == 3 ? 255 : 65535)};
    size[0] = (int32_t)word_at(b + 8);
    size[1] = (int32_t)word_at(b + 12);
    RNND_TRY(check_room(ark, size[0], size[1], form == 1 ? 1 : e.bytes));
    if (form == 1)
        return size[0] == 0 ? 0 : read_columns(ark, &e, size, values);
    return read_rows(ark, &e, size[0], size[1], values);
}

static int read_binary(struct rnnd__ark *ark, struct rnnd__list *values,
                       int64_t size[2])
{
    static const char *const known[] = {"FM", "DM", "CM", "CM2", "CM3"};
    char token[8] = "", shown[48];
    int64_t at = ark->at;
    size_t n = 0;
    int c, kind = 0;
    while (n < sizeof token - 1 && (c = next_byte(ark)) != EOF && c != ' ')
        token[n++] = (char)c;
    while (kind < 5 && strcmp(token, known[kind]) != 0)
        kind++;
    if (kind == 5)
        return ark_fail(ark, at,
                        "\"%s\" is no matrix of features: FM, DM, CM, CM2 or CM3 is "
                        "expected",
                        rnnd__text_shown(token, n, shown));
    return kind < 2 ? read_plain(ark, kind == 1, values, size)
                    : read_compressed(ark, kind - 1, values, size);
}

/* ---- matrices as text */

/* A word, or one of [ ] and line feeds; *length is 0 at the end of the file. */
static int next_word(struct rnnd__ark *ark, char word[LONGEST_NUMBER + 1],
                     size_t *length)
{
    int c = next_byte(ark);
    size_t n = 0;
    while (c == ' ' || c == '\t' || c == '\r')
        c = next_byte(ark);
    if (c == '[' || c == ']' || c == '\n') {
        word[n++] = (char)c;
    } else {
        for (; c != EOF && !is_space(c) && c != '[' && c != ']'; c = next_byte(ark)) {
            if (n == LONGEST_NUMBER)
                return ark_fail(ark, ark->at, "a number of more than %d characters",
                                LONGEST_NUMBER);
            word[n++] = (char)c;
        }
        step_back(ark, c);
    }
    word[n] = 0;
    *length = n;
    return 0;
}

static int take_number(struct rnnd__ark *ark, const char *word, size_t n,
                       struct rnnd__list *values)
{
    char shown[48];
    float value = 0;
    enum rnnd__field kind = rnnd__text_number(word, n, &value);
    if (kind == RNND_FIELD_WORD || kind == RNND_FIELD_NOT_FINITE)
        return ark_fail(ark, ark->at - (int64_t)n, "\"%s\" is not a %snumber",
                        rnnd__text_shown(word, n, shown),
                        kind == RNND_FIELD_WORD ? "" : "finite 32-bit ");
    return rnnd__list_add(values, &value, 1);
}

static int end_row(const struct rnnd__ark *ark, int64_t count, int64_t size[2])
{
    if (count == 0)
        return 0;
    if (size[0] > 0 && count != size[1])
        return ark_fail(ark, ark->at,
                        "row %lld of the matrix has %lld values, the ones before %lld",
                        (long long)size[0], (long long)count, (long long)size[1]);
    size[0]++;
    size[1] = count;
    return 0;
}

/* Behind the opening bracket. */
static int read_text(struct rnnd__ark *ark, struct rnnd__list *values, int64_t size[2])
{
    char word[LONGEST_NUMBER + 1];
    int64_t row = values->count;
    size_t n;
    for (;;) {
        RNND_TRY(next_word(ark, word, &n));
        if (n == 0 || *word == '[')
            return ark_fail(ark, ark->at,
                            n ? "a matrix within a matrix"
                              : "the file ends within a matrix");
        if (*word != ']' && *word != '\n') {
            RNND_TRY(take_number(ark, word, n, values));
            continue;
        }
        RNND_TRY(end_row(ark, values->count - row, size));
        row = values->count;
        if (*word == ']')
            return 0;
    }
}

/* ---- a matrix */

int rnnd__ark_matrix(struct rnnd__ark *ark, struct rnnd__list *values, int64_t *rows,
                     int64_t *columns)
{
    int64_t size[2] = {0, 0}, at = ark->at;
    int c = next_byte(ark);
    if (c == 0) {
        c = next_byte(ark);
        if (c != 'B')
            return ark_fail(ark, at, "no matrix begins here");
        RNND_TRY(read_binary(ark, values, size));
    } else {
        while (is_space(c))
            c = next_byte(ark);
        if (c != '[')
            return ark_fail(ark, at,
                            "no matrix begins here: [ or a binary one is "
                            "expected");
        RNND_TRY(read_text(ark, values, size));
    }
    *rows = size[0];
    *columns = size[1];
    return 0;
}
