/*
 * text.h - text files for the readers: whole in memory, line by line, numbers.
 */
#ifndef RNND_FORMATS_TEXT_H
#define RNND_FORMATS_TEXT_H

#include "formats/formats.h"
#include "base/status.h"

struct rnnd_text {
    const char *path;
    char *data;      /* ends with a NUL behind size */
    size_t size, at; /* at: where the next line begins */
    int64_t line;    /* number of the line last given, from 1 */
};

/* Reads all of a file; EFILE where that fails, EDATA where it holds NUL bytes. A
   byte order mark is skipped. */
RNND_CHECKED int rnnd_text_read(const char *path, struct rnnd_text *out);
void rnnd_text_clear(struct rnnd_text *text);
/* The next line without its end (\n or \r\n); false behind the last. */
bool rnnd_text_line(struct rnnd_text *text, const char **line, size_t *length);

/* What a field holds once blanks around it are gone. */
enum rnnd_field {
    RNND_FIELD_NUMBER,
    RNND_FIELD_EMPTY,
    RNND_FIELD_NOT_FINITE,
    RNND_FIELD_WORD
};
/* *value is set for numbers. The byte behind the field must exist. */
enum rnnd_field rnnd_text_number(const char *field, size_t length, float *value);
/* Cuts blanks off both ends. */
void rnnd_text_trim(const char **field, size_t *length);
/* Whether two texts are the same but for the case of ASCII letters. */
bool rnnd_text_is(const char *text, size_t length, const char *word);

/* Texts of a string array of another data set, appended to a list of char *; EDATA
   where it has none. */
RNND_CHECKED int rnnd_format_texts_of(const char *path, const char *object,
                                      struct rnnd_list *out);

/* A piece of a file for a message: at most 40 bytes, no control characters. "%s" */
const char *rnnd_text_shown(const char *text, size_t length, char shown[48]);

/* The readers, one a file. */
extern const struct rnnd_format rnnd_format_csv, rnnd_format_music, rnnd_format_npz,
    rnnd_format_text_chars, rnnd_format_text_words, rnnd_format_ts;

#endif
