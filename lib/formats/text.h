/*
 * text.h - text files for the readers: a whole file in memory, lines, numbers.
 */
#ifndef RNND_FORMATS_TEXT_H
#define RNND_FORMATS_TEXT_H

#include "base/status.h"
#include "formats/formats.h"

struct rnnd__text {
    const char *path;
    /* with a NUL after `size` bytes */
    char *data;
    /* at: the start of the next line */
    size_t size, at;
    /* number of the last line read, from 1 */
    int64_t line;
};

/* The number of bytes of the UTF-8 character at text; 0 if it is invalid, such as an
   overlong form, a surrogate or a code point above U+10FFFF. */
size_t rnnd__text_character(const char *text, size_t room);
/* Reads a whole file, inflated if it was compressed by gzip. EFILE if that fails, EDATA
   if it is not UTF-8 or contains NUL bytes. Skips a byte order mark. A carriage return
   without a line feed becomes one. */
RNND_CHECKED int rnnd__text_read(const char *path, struct rnnd__text *out);
void rnnd__text_clear(struct rnnd__text *text);
/* The next line without its end (\n or \r\n); false after the last. */
bool rnnd__text_line(struct rnnd__text *text, const char **line, size_t *length);

/* EDATA: "PATH:LINE: " and a message. */
#define rnnd__text_fail(...) rnnd__below_zero(rnnd__text_fail_at(__VA_ARGS__))
int rnnd__text_fail_at(const char *path, int64_t line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Whether a field, without surrounding blanks, says that there is no value: empty, NA,
   NaN, nan or null. */
bool rnnd__text_missing(const char *field, size_t length);
/* The length of a class's name without a fraction of zeros: "1.0" is the class 1. */
size_t rnnd__text_class(const char *name, size_t length);
/* What a field contains, without surrounding blanks. */
enum rnnd__field {
    RNND_FIELD_NUMBER,
    RNND_FIELD_MISSING,
    RNND_FIELD_NOT_FINITE,
    RNND_FIELD_WORD
};
/* Sets *value for numbers, and to NaN where it is missing. The byte after the field
   must be readable. */
enum rnnd__field rnnd__text_number(const char *field, size_t length, float *value);
/* Whether a number is an integer in its field, but another one as a 32-bit float:
   possible beyond 2^24. The byte after the field must be readable. */
bool rnnd__text_is_rounded(const char *field, size_t length, float value);
/* Removes blanks at both ends. */
void rnnd__text_trim(const char **field, size_t *length);
/* Whether a text of this length equals a word, ignoring the case of ASCII letters. */
bool rnnd__text_is(const char *text, size_t length, const char *word);

/* Appends the strings of an array in another data set to a list of char *; EDATA if the
   array is missing, or a string is not UTF-8. The file may also be a table of names
   (symbols.h). */
RNND_CHECKED int rnnd__format_texts_of(const char *path, const char *object,
                                       struct rnnd__list *out);

/* Text from a file, shortened for a message to 40 bytes without control characters. */
const char *rnnd__text_shown(const char *text, size_t length, char shown[48]);

/* The readers, one per file. */
extern const struct rnnd__format rnnd__format_csv, rnnd__format_kaldi,
    rnnd__format_music, rnnd__format_npz, rnnd__format_text_chars,
    rnnd__format_text_words, rnnd__format_ts;

#endif
