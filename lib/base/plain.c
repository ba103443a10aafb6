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

/* What stands for a control character, whose last byte this is. */
static void describe(unsigned char byte, char shown[8])
{
    const char letter = byte == '\n' ? 'n' : byte == '\t' ? 't' : 'r';
    if (byte == '\n' || byte == '\t' || byte == '\r')
        snprintf(shown, 8, "\\%c", letter);
    else
        snprintf(shown, 8, "\\x%02x", byte);
}

int rnnd__plain_put(FILE *out, const char *text)
{
    int columns = 0;
    while (*text) {
        int bytes = rnnd__plain_control(text);
        char shown[8] = {*text};
        if (bytes)
            describe((unsigned char)text[bytes - 1], shown);
        if (out)
            fputs(shown, out);
        for (const char *c = shown; *c; c++)
            columns += ((unsigned char)*c & 0xc0) != 0x80;
        text += bytes ? bytes : 1;
    }
    return columns;
}
