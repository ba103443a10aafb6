/*
 * text.h - text files for the readers: whole in memory, line by line, numbers.
 */
#ifndef RNND_FORMATS_TEXT_H
#define RNND_FORMATS_TEXT_H

#include "base/status.h"
#include "formats/formats.h"

struct rnnd__text {
    const char *path;
    /* ends with a NUL behind size */
    char *data;
    /* at: where the next line begins */
    size_t size, at;
    /* number of the line last given, from 1 */
    int64_t line;
};

/* Reads all of a file; EFILE where that fails, EDATA where it holds NUL bytes. A
   byte order mark is skipped. */
RNND_CHECKED int rnnd__text_read(const char *path, struct rnnd__text *out);
void rnnd__text_clear(struct rnnd__text *text);
/* The next line without its end (\n or \r\n); false behind the last. */
bool rnnd__text_line(struct rnnd__text *text, const char **line, size_t *length);

/* What a field holds once blanks around it are gone. */
enum rnnd__field {
    RNND_FIELD_NUMBER,
    RNND_FIELD_EMPTY,
    RNND_FIELD_NOT_FINITE,
    RNND_FIELD_WORD
};
/* *value is set for numbers. The byte behind the field must exist. */
enum rnnd__field rnnd__text_number(const char *field, size_t length, float *value);
/* Cuts blanks off both ends. */
void rnnd__text_trim(const char **field, size_t *length);
/* Whether two texts are the same but for the case of ASCII letters. */
bool rnnd__text_is(const char *text, size_t length, const char *word);

/* Texts of a string array of another data set, appended to a list of char *; EDATA
   where it has none. */
RNND_CHECKED int rnnd__format_texts_of(const char *path, const char *object,
                                       struct rnnd__list *out);

/* A piece of a file for a message: at most 40 bytes, no control characters. "%s" */
const char *rnnd__text_shown(const char *text, size_t length, char shown[48]);

/* The readers, one a file. */
extern const struct rnnd__format rnnd__format_csv, rnnd__format_music, rnnd__format_npz,
    rnnd__format_text_chars, rnnd__format_text_words, rnnd__format_ts;

#endif
