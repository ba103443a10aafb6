/*
 * fiber.cc - stacks, and the switch from one to another.
 *
 * Gives each CUDA thread a stack with a guard page below it. The switch is a dozen
 * instructions on x86-64 and swapcontext(3), some twenty times slower, elsewhere. Knows
 * no CUDA; tells AddressSanitizer where the stack is.
 */
#include <cstdlib>
#include <sys/mman.h>
#include <unistd.h>
#ifndef __x86_64__
#include <ucontext.h>
#endif

#include "core.h"

namespace simt
{

struct Fiber {
    /* x86-64: where its registers are saved */
    void *sp;
    /* lowest address above the guard page */
    char *stack;
    size_t size;
    void (*entry)();
    /* AddressSanitizer's part of it while it does not run */
    void *asan;
#ifndef __x86_64__
    ucontext_t registers;
#endif
};

namespace
{

Fiber host;
/* Neither is destroyed: the leak checker finds the fibers through them. */
std::vector<Fiber *> &kept = *new std::vector<Fiber *>;
Fiber *entering; /* the fiber that a first switch enters */
std::vector<std::pair<char *, size_t>> &mapped =
    *new std::vector<std::pair<char *, size_t>>;

size_t page()
{
    static const size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    return bytes;
}

/* The first fiber that the host switches to tells where the host's own stack is. */
void arrived(Fiber *fiber)
{
#ifdef __SANITIZE_ADDRESS__
    const void *bottom;
    size_t size;
    __sanitizer_finish_switch_fiber(fiber->asan, &bottom, &size);
    if (!host.stack) {
        host.stack = static_cast<char *>(const_cast<void *>(bottom));
        host.size = size;
    }
#else
    (void)fiber;
#endif
}

void enter_fiber()
{
    arrived(entering);
    entering->entry();
    abort();
}

/* Each with a guard is two of the 65530 mappings that a process may have; those without
   that lie side by side are one. So the last of very many have none. */
void map_stack(Fiber *fiber)
{
    const size_t guarded = 24000;
    size_t bytes = settings().stack + page();
    void *p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    bool wants_guard = mapped.size() < guarded;
    if (p == MAP_FAILED || (wants_guard && mprotect(p, page(), PROT_NONE) != 0))
        error("no memory for the stack of another thread: %zu are in use; launch fewer "
              "(RNND_SIMT_SMS) or raise vm.max_map_count",
              mapped.size());
    fiber->stack = static_cast<char *>(p) + page();
    fiber->size = settings().stack;
    mapped.emplace_back(static_cast<char *>(p), bytes);
}

} // namespace

#ifdef __x86_64__
/* simt_switch(void **save, void *load): the registers a call keeps, and the stack. */
extern "C" void simt_switch(void **save, void *load)
    __attribute__((visibility("hidden")));
asm(R"(
    .text
    .globl simt_switch
    .hidden simt_switch
    .type simt_switch, @function
simt_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size simt_switch, .-simt_switch
)");

static void prepare(Fiber *fiber)
{
    void **sp = reinterpret_cast<void **>(fiber->stack + fiber->size);
    *--sp = nullptr; /* where the entry would return to */
    *--sp = reinterpret_cast<void *>(enter_fiber);
    for (int i = 0; i < 6; i++)
        *--sp = nullptr;
    fiber->sp = sp;
}

static void change(Fiber *from, Fiber *to)
{
    simt_switch(&from->sp, to->sp);
}

/* Its own few words first, then the top of its stack, to which they point. */
void fiber_expect(const Fiber *fiber, bool at_once)
{
    const char *sp = static_cast<const char *>(fiber->sp);
    if (!at_once)
        __builtin_prefetch(fiber);
    for (int line = 0; at_once && line < 4; line++)
        __builtin_prefetch(sp + 64 * line);
}
#else
void fiber_expect(const Fiber *, bool)
{
}

static void prepare(Fiber *fiber)
{
    getcontext(&fiber->registers);
    fiber->registers.uc_stack.ss_sp = fiber->stack;
    fiber->registers.uc_stack.ss_size = fiber->size;
    fiber->registers.uc_link = nullptr;
    makecontext(&fiber->registers, enter_fiber, 0);
}

static void change(Fiber *from, Fiber *to)
{
    swapcontext(&from->registers, &to->registers);
}
#endif

Fiber *fiber_host()
{
    return &host;
}

Fiber *fiber_new(void (*entry)())
{
    Unseen unseen;
    if (!kept.empty()) {
        Fiber *fiber = kept.back();
        kept.pop_back();
        return fiber;
    }
    Fiber *fiber = new Fiber();
    fiber->entry = entry;
    map_stack(fiber);
    prepare(fiber);
    return fiber;
}

void fiber_keep(Fiber *fiber)
{
    Unseen unseen;
    kept.push_back(fiber);
}

void fiber_switch(Fiber *from, Fiber *to)
{
    entering = to;
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(&from->asan, to->stack, to->size);
#endif
    change(from, to);
    arrived(from);
}

bool fiber_guard(const void *p)
{
    for (const auto &m : mapped)
        if (p >= m.first && p < m.first + page())
            return true;
    return false;
}

} // namespace simt
