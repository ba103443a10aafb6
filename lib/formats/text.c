/*
 * text.c - text files for the readers: whole in memory, line by line, numbers.
 */
#include "formats/text.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail_system(const char *path)
{
    return rnnd__fail(RNND_EFILE, "%s: %s", path, strerror(errno));
}

static int read_all(int fd, const char *path, struct rnnd__text *text)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return fail_system(path);
    if (S_ISDIR(info.st_mode))
        return rnnd__fail(RNND_EFILE, "%s: a folder, not a file", path);
    size_t room = info.st_size > 0 ? (size_t)info.st_size + 2 : 65536;
    for (;;) {
        RNND_TRY(rnnd__grow(room, 1, path, &text->data));
        while (text->size < room - 1) {
            ssize_t n = read(fd, text->data + text->size, room - 1 - text->size);
            if (n < 0 && errno == EINTR)
                continue;
            if (n < 0)
                return fail_system(path);
            if (n == 0)
                return 0;
            text->size += (size_t)n;
        }
        room *= 2; /* a pipe, or a file that grows */
    }
}

/* Bytes that no text has. */
static int check_text(const struct rnnd__text *text)
{
    const char *nul = memchr(text->data, 0, text->size);
    int64_t line = 1;
    if (!nul)
        return 0;
    for (const char *c = text->data; c < nul; c++)
        line += *c == '\n';
    return rnnd__fail(RNND_EDATA, "%s:%lld: a NUL byte: this is not a text file",
                      text->path, (long long)line);
}

int rnnd__text_read(const char *path, struct rnnd__text *out)
{
    struct rnnd__text text = {.path = path};
    int status, fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fail_system(path);
    RNND_TRY_GOTO(read_all(fd, path, &text));
    text.data[text.size] = 0;
    RNND_TRY_GOTO(check_text(&text));
    if (text.size >= 3 && memcmp(text.data, "\xef\xbb\xbf", 3) == 0)
        text.at = 3;
    *out = text;
    text.data = NULL;
done:
    free(text.data);
    close(fd);
    return status;
}

void rnnd__text_clear(struct rnnd__text *text)
{
    free(text->data);
    *text = (struct rnnd__text){0};
}

bool rnnd__text_line(struct rnnd__text *text, const char **line, size_t *length)
{
    if (text->at >= text->size)
        return false;
    const char *start = text->data + text->at;
    const char *end = memchr(start, '\n', text->size - text->at);
    size_t n = end ? (size_t)(end - start) : text->size - text->at;
    text->at += n + (end != NULL);
    text->line++;
    *line = start;
    *length = n && start[n - 1] == '\r' ? n - 1 : n;
    return true;
}

void rnnd__text_trim(const char **field, size_t *length)
{
    const char *from = *field, *to = from + *length;
    while (from < to && (*from == ' ' || *from == '\t'))
        from++;
    while (to > from && (to[-1] == ' ' || to[-1] == '\t' || to[-1] == '\r'))
        to--;
    *field = from;
    *length = (size_t)(to - from);
}

bool rnnd__text_is(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && strncasecmp(text, word, length) == 0;
}

enum rnnd__field rnnd__text_number(const char *field, size_t length, float *value)
{
    static const char *const not_finite[] = {"nan", "inf", "infinity"};
    char *end;
    rnnd__text_trim(&field, &length);
    if (length == 0)
        return RNND_FIELD_EMPTY;
    size_t sign = field[0] == '-' || field[0] == '+';
    for (int i = 0; i < 3; i++)
        if (rnnd__text_is(field + sign, length - sign, not_finite[i]))
            return RNND_FIELD_NOT_FINITE;
    for (size_t i = 0; i < length; i++)
        if (!strchr("0123456789+-.eE", field[i]))
            return RNND_FIELD_WORD;
    float v = strtof(field, &end);
    if (end != field + length)
        return RNND_FIELD_WORD;
    if (!isfinite(v))
        return RNND_FIELD_NOT_FINITE;
    *value = v;
    return RNND_FIELD_NUMBER;
}

const char *rnnd__text_shown(const char *text, size_t length, char shown[48])
{
    size_t n = length > 40 ? 40 : length;
    while (n && n < length && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--; /* not within a character */
    memcpy(shown, text, n);
    shown[n] = 0;
    for (char *c = shown; *c; c++)
        if ((unsigned char)*c < ' ')
            *c = ' ';
    if (n < length)
        strcpy(shown + n, "...");
    return shown;
}
