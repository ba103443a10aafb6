/*
 * link.c - link DELAY LOSS NAME NAME: two network interfaces and the cable between
 * them.
 *
 * Makes TUN interfaces of these names and passes packets from each to the other, DELAY
 * microseconds later; of 100 packets, LOSS are lost, always the same ones. SIGUSR1
 * pulls the cable, SIGUSR2 plugs it in again. Prints a line when the interfaces exist;
 * another signal ends it. What netem does, for kernels without it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { PACKET = 9216, PACKETS = 2048 };

/* What is on its way in one direction, a ring. */
struct lane {
    int from, to;
    /* counted from the start of the ring's life */
    uint64_t in, out;
    struct packet {
        int64_t due;
        ssize_t size;
        char data[PACKET];
    } ring[PACKETS];
};

static struct lane lane[2];
static volatile sig_atomic_t pulled;
static int64_t delay;
static double loss;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

/* Nanoseconds. */
static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * (int64_t)1000000000 + t.tv_nsec;
}

static void cable(int signal)
{
    pulled = signal == SIGUSR1;
}

static int interface(const char *name)
{
    struct ifreq wish = {.ifr_flags = IFF_TUN | IFF_NO_PI};
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        die("/dev/net/tun");
    snprintf(wish.ifr_name, sizeof wish.ifr_name, "%s", name);
    if (ioctl(fd, TUNSETIFF, &wish) != 0)
        die(name);
    return fd;
}

/* Takes what has come; what finds no room is lost, as in a switch. */
static void take(struct lane *l)
{
    static uint32_t random = 1;
    for (;;) {
        char spill[PACKET];
        bool room = l->in - l->out < PACKETS;
        struct packet *p = &l->ring[l->in % PACKETS];
        ssize_t n = read(l->from, room ? p->data : spill, PACKET);
        if (n <= 0)
            return;
        random = random * 1664525u + 1013904223u;
        if (!room || pulled || random / 4294967296.0 * 100 < loss)
            continue;
        p->size = n;
        p->due = now() + delay;
        l->in++;
    }
}

/* Hands over what is due. */
static void give(struct lane *l)
{
    for (; l->out < l->in && l->ring[l->out % PACKETS].due <= now(); l->out++) {
        const struct packet *p = &l->ring[l->out % PACKETS];
        if (!pulled && write(l->to, p->data, (size_t)p->size) < 0 && errno == EBADF)
            die("write");
    }
}

/* Until a packet comes or is due. */
static void wait_for_packets(const sigset_t *mask)
{
    struct pollfd ready[2] = {{lane[0].from, POLLIN, 0}, {lane[1].from, POLLIN, 0}};
    int64_t next = INT64_MAX, left;
    for (int i = 0; i < 2; i++)
        if (lane[i].out < lane[i].in && lane[i].ring[lane[i].out % PACKETS].due < next)
            next = lane[i].ring[lane[i].out % PACKETS].due;
    left = next == INT64_MAX ? 0 : next - now();
    left = left < 0 ? 0 : left;
    struct timespec time = {left / 1000000000, left % 1000000000};
    ppoll(ready, 2, next == INT64_MAX ? NULL : &time, mask);
}

int main(int argc, char **argv)
{
    struct sigaction act = {.sa_handler = cable};
    sigset_t usual, cables;
    if (argc != 5) {
        fprintf(stderr, "usage: link DELAY-IN-US LOSS-IN-PERCENT NAME NAME\n");
        return 2;
    }
    delay = (int64_t)(atof(argv[1]) * 1000);
    loss = atof(argv[2]);
    sigemptyset(&cables);
    sigaddset(&cables, SIGUSR1);
    sigaddset(&cables, SIGUSR2);
    sigprocmask(SIG_BLOCK, &cables, &usual);
    sigaction(SIGUSR1, &act, NULL);
    sigaction(SIGUSR2, &act, NULL);
    prctl(PR_SET_TIMERSLACK, 1000ul);
    lane[0].from = lane[1].to = interface(argv[3]);
    lane[1].from = lane[0].to = interface(argv[4]);
    puts("ready");
    fflush(stdout);
    for (;;) {
        wait_for_packets(&usual);
        for (int i = 0; i < 2; i++)
            take(&lane[i]);
        for (int i = 0; i < 2; i++)
            give(&lane[i]);
    }
}
