/*
 * tensorboard.c - writes TFRecord files of Event messages.
 *
 * A record is its length (8 bytes), a checksum of the length, the message, and a
 * checksum of the message; little-endian, the checksums masked CRC-32C. Messages are
 * protocol buffers (tensorflow/core/util/event.proto, framework/summary.proto), of
 * which these few fields are encoded by hand: a library for them would be larger than
 * this file.
 */
#include "record/tensorboard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "checkpoint/run_dir.h"

struct rnnd__tensorboard {
    int fd;
    char *path;
};

/* ---- bytes */

/* The longest record: a tag and some 12 bytes for each scalar, and some 40 bytes. */
enum { MESSAGE_BYTES = 64 + RNND_SCALARS * (RNND_TAG_BYTES + 16) };

struct message {
    size_t size;
    unsigned char byte[MESSAGE_BYTES];
};

static void put_bytes(struct message *m, const void *data, size_t size)
{
    memcpy(m->byte + m->size, data, size);
    m->size += size;
}

static void put_fixed(struct message *m, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        m->byte[m->size++] = (unsigned char)(value >> 8 * i);
}

static void put_varint(struct message *m, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        m->byte[m->size++] = (unsigned char)(value | 0x80);
    m->byte[m->size++] = (unsigned char)value;
}

/* ---- fields: a number and a wire type, then the value */

enum wire { VARINT = 0, FIXED64 = 1, LENGTH = 2, FIXED32 = 5 };

static void put_key(struct message *m, unsigned field, enum wire wire)
{
    put_varint(m, field << 3 | wire);
}

/* 0 is the default: such a field is omitted. */
static void put_integer(struct message *m, unsigned field, int64_t value)
{
    if (value == 0)
        return;
    put_key(m, field, VARINT);
    put_varint(m, (uint64_t)value);
}

static void put_double(struct message *m, unsigned field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(m, field, FIXED64);
    put_fixed(m, bits, sizeof bits);
}

static void put_float(struct message *m, unsigned field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(m, field, FIXED32);
    put_fixed(m, bits, sizeof bits);
}

static void put_field(struct message *m, unsigned field, const void *data, size_t size)
{
    put_key(m, field, LENGTH);
    put_varint(m, size);
    put_bytes(m, data, size);
}

static void put_text(struct message *m, unsigned field, const char *text)
{
    put_field(m, field, text, strlen(text));
}

static void put_message(struct message *m, unsigned field, const struct message *inner)
{
    put_field(m, field, inner->byte, inner->size);
}

/* ---- records */

/* CRC-32C (Castagnoli), bit by bit: records are small and rare. */
static uint32_t crc32c(const unsigned char *p, size_t size)
{
    uint32_t crc = ~UINT32_C(0);
    for (size_t i = 0; i < size; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0x82f63b78) : 0);
    }
    return ~crc;
}

/* The format's mask: a CRC of data that contain CRCs would be weak. */
static uint32_t masked(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + UINT32_C(0xa282ead8);
}

static int write_record(struct rnnd__tensorboard *board, const struct message *event)
{
    struct message record = {0};
    put_fixed(&record, event->size, sizeof(uint64_t));
    put_fixed(&record, masked(crc32c(record.byte, record.size)), sizeof(uint32_t));
    put_bytes(&record, event->byte, event->size);
    put_fixed(&record, masked(crc32c(event->byte, event->size)), sizeof(uint32_t));
    return rnnd__file_append(board->fd, board->path, record.byte, record.size);
}

/* ---- events */

/* Event.wall_time = 1, .step = 2, .file_version = 3, .summary = 5,
   .session_log = 7 */

static struct message event_at(int64_t update)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    struct message event = {0};
    put_double(&event, 1, (double)now.tv_sec + 1e-9 * (double)now.tv_nsec);
    put_integer(&event, 2, update);
    return event;
}

static int begin(struct rnnd__tensorboard *board, int64_t update)
{
    struct message version = event_at(0), start = event_at(update + 1), log = {0};
    put_text(&version, 3, "brain.Event:2");
    RNND_TRY(write_record(board, &version));
    put_integer(&log, 1, 1); /* SessionLog.status = START, at this step */
    put_message(&start, 7, &log);
    return write_record(board, &start);
}

/* A new file in the folder, even if two starts fall into the same second. */
static int make_file(const char *folder, struct rnnd__tensorboard *board)
{
    const int flags = O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC;
    char host[64] = "", name[128];
    gethostname(host, sizeof host - 1);
    for (int i = 0; board->fd < 0; i++) {
        snprintf(name, sizeof name, "events.out.tfevents.%lld.%s.%d",
                 (long long)time(NULL), host, i);
        free(board->path);
        board->path = NULL;
        RNND_TRY(rnnd__run_dir_file(folder, name, &board->path));
        board->fd = open(board->path, flags, 0666);
        if (board->fd < 0 && errno != EEXIST)
            return rnnd__file_fail("create", board->path);
    }
    return 0;
}

static int open_file(const char *run_dir, struct rnnd__tensorboard *board)
{
    char *folder;
    RNND_TRY(rnnd__run_dir_file(run_dir, "tensorboard", &folder));
    int status = mkdir(folder, 0777) == 0 || errno == EEXIST
                     ? 0
                     : rnnd__file_fail("create", folder);
    if (status == 0)
        status = make_file(folder, board);
    free(folder);
    return status;
}

int rnnd__tensorboard_open(const char *run_dir, int64_t update,
                           struct rnnd__tensorboard **out)
{
    struct rnnd__tensorboard *board = NULL;
    RNND_TRY(RNND_NEW(&board, 1, "an event file"));
    board->fd = -1;
    int status = open_file(run_dir, board);
    if (status == 0)
        status = begin(board, update);
    if (status < 0) {
        rnnd__tensorboard_close(board);
        return status;
    }
    *out = board;
    return 0;
}

int rnnd__tensorboard_add(struct rnnd__tensorboard *board, int64_t update,
                          const struct rnnd__scalar *scalar, int count)
{
    struct message event = event_at(update), summary = {0};
    for (int i = 0; i < count; i++) {
        struct message value = {0}; /* Summary.Value.tag = 1, .simple_value = 2 */
        put_text(&value, 1, scalar[i].tag);
        put_float(&value, 2, (float)scalar[i].value);
        put_message(&summary, 1, &value);
    }
    put_message(&event, 5, &summary);
    return write_record(board, &event);
}

void rnnd__tensorboard_close(struct rnnd__tensorboard *board)
{
    if (!board)
        return;
    if (board->fd >= 0)
        close(board->fd);
    free(board->path);
    free(board);
}
