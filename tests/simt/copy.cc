/*
 * copy.cc - asynchronous copies: they arrive when waited for, or at once, by chance.
 *
 * A copy that arrives late shows a missing wait, one that arrives early a buffer that
 * others still read. In order all are late.
 */
#include "core.h"

namespace simt
{

namespace
{

void land(Copy *c)
{
    c->landed = true;
    memcpy(c->shared, c->global, (size_t)c->valid);
    memset(static_cast<char *>(c->shared) + c->valid, 0, (size_t)(c->bytes - c->valid));
}

/* For TSan the copy is made by another, who begins after the thread that asks and is
   ordered before whoever waits for the group: a thread that does not wait races with
   it. */
void announce(Thread *t, const Copy &c)
{
    if (!t->copier.context)
        t->copier = take_worker();
    void *asker = context_current();
    release(&t->token);
    context_switch(t->copier.context);
    acquire(&t->token);
    announce_read(c.global, (size_t)c.valid);
    announce_write(c.shared, (size_t)c.bytes);
    release(&t->group_token[c.group % Thread::tokens]);
    context_switch(asker);
}

} // namespace

void copy_begin(void *shared, const void *global, int bytes, int valid, Site at)
{
    Thread *t = self();
    t->at = at;
    if (valid < 0 || valid > bytes)
        error("copy_async<%d> of %d bytes", bytes, valid);
    if ((uintptr_t)shared % (unsigned)bytes || (uintptr_t)global % (unsigned)bytes)
        error("copy_async<%d> between %p and %p: not aligned to %d bytes", bytes,
              shared, global, bytes);
    if (!owns_shared(t->block, shared, (size_t)bytes))
        error("copy_async<%d> to %p, which is not shared memory of the block", bytes,
              shared);
    if (valid > 0)
        check_device(global, (size_t)valid, working_device(), "copy_async");
    Copy c = {shared, global, bytes, valid, t->group, false};
    announce(t, c);
    Unseen unseen;
    if (!settings().inorder && below(2) == 1)
        land(&c);
    t->copies.push_back(c);
}

void copy_group()
{
    self()->group++;
}

void copy_finish(int pending)
{
    Thread *t = self();
    size_t kept = 0;
    for (size_t i = 0; i < t->copies.size(); i++) {
        Copy c = t->copies[i];
        if (c.group >= t->group - pending) {
            t->copies[kept++] = c;
            continue;
        }
        acquire(&t->group_token[c.group % Thread::tokens]);
        Unseen unseen;
        if (!c.landed)
            land(&c);
    }
    Unseen unseen;
    t->copies.resize(kept);
}

void copy_abandon(Thread *t)
{
    for (Copy &c : t->copies) {
        acquire(&t->group_token[c.group % Thread::tokens]);
        Unseen unseen;
        if (!c.landed)
            land(&c);
    }
}

} // namespace simt
