/*
 * plain.c - control characters in texts from files.
 */
#include "base/plain.h"

int rnnd__plain_control(const char *text)
{
    unsigned char first = (unsigned char)text[0], second;
    if ((first && first < ' ') || first == 0x7f)
        return 1;
    if (first != 0xc2)
        return 0;
    second = (unsigned char)text[1];
    return second >= 0x80 && second < 0xa0 ? 2 : 0;
}

int rnnd__plain_put(FILE *out, const char *text)
{
    int written = 0;
    while (*text) {
        int bytes = rnnd__plain_control(text);
        if (bytes == 0) {
            fputc(*text++, out);
            written++;
            continue;
        }
        unsigned char last = (unsigned char)text[bytes - 1];
        written += last == '\n'   ? fprintf(out, "\\n")
                   : last == '\t' ? fprintf(out, "\\t")
                   : last == '\r' ? fprintf(out, "\\r")
                                  : fprintf(out, "\\x%02x", last);
        text += bytes;
    }
    return written;
}
