/*
 * sanitize.h - what the emulator tells the sanitizers: fibers, order between threads,
 * memory.
 *
 * Under ThreadSanitizer (SIMT_TSAN) the kernels are instrumented and the emulator's own
 * files are not: each CUDA thread and each stream is a fiber of TSan, and only what
 * orders them on a GPU orders them here. Without a sanitizer all of it is empty.
 */
#ifndef SIMT_SANITIZE_H
#define SIMT_SANITIZE_H

#include <cstddef>

#ifdef SIMT_TSAN
extern "C" {
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
void __tsan_acquire(void *token);
void __tsan_release(void *token);
void __tsan_read_range(void *p, size_t bytes);
void __tsan_write_range(void *p, size_t bytes);
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
}
#endif

#ifdef __SANITIZE_ADDRESS__
extern "C" {
void __sanitizer_start_switch_fiber(void **save, const void *bottom, size_t size);
void __sanitizer_finish_switch_fiber(void *save, const void **bottom, size_t *size);
void __asan_poison_memory_region(const volatile void *p, size_t bytes);
void __asan_unpoison_memory_region(const volatile void *p, size_t bytes);
}
#endif

namespace simt
{

/* Whoever acquires the token comes after all who released it. */
inline void acquire(void *token)
{
#ifdef SIMT_TSAN
    __tsan_acquire(token);
#else
    (void)token;
#endif
}

inline void release(void *token)
{
#ifdef SIMT_TSAN
    __tsan_release(token);
#else
    (void)token;
#endif
}

/* Accesses that no instrumented code makes: those of libraries and copies. */
inline void announce_read(const void *p, size_t bytes)
{
#ifdef SIMT_TSAN
    __tsan_read_range(const_cast<void *>(p), bytes);
#else
    (void)p, (void)bytes;
#endif
}

inline void announce_write(void *p, size_t bytes)
{
#ifdef SIMT_TSAN
    __tsan_write_range(p, bytes);
#else
    (void)p, (void)bytes;
#endif
}

inline void poison(const void *p, size_t bytes)
{
#ifdef __SANITIZE_ADDRESS__
    __asan_poison_memory_region(p, bytes);
#else
    (void)p, (void)bytes;
#endif
}

inline void unpoison(const void *p, size_t bytes)
{
#ifdef __SANITIZE_ADDRESS__
    __asan_unpoison_memory_region(p, bytes);
#else
    (void)p, (void)bytes;
#endif
}

/* The emulator's own bookkeeping, which runs on any fiber: malloc,
   memcpy and the like are seen by TSan even in files that it does not instrument. */
struct Unseen {
    Unseen()
    {
        begin();
    }
    ~Unseen()
    {
        end();
    }
    /* Before the process ends inside of some: TSan would complain. */
    static void end_all()
    {
        while (depth > 0)
            end();
    }
    Unseen(const Unseen &) = delete;

  private:
    static inline int depth;
    static void begin()
    {
        depth++;
#ifdef SIMT_TSAN
        AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
        AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
#endif
    }
    static void end()
    {
        depth--;
#ifdef SIMT_TSAN
        AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
        AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
#endif
    }
};

/* A context of TSan: a CUDA thread or a stream. NULL without TSan. */
inline void *context_new()
{
#ifdef SIMT_TSAN
    return __tsan_create_fiber(0);
#else
    return nullptr;
#endif
}

inline void *context_current()
{
#ifdef SIMT_TSAN
    return __tsan_get_current_fiber();
#else
    return nullptr;
#endif
}

/* Without making an order between the two. */
inline void context_switch(void *context)
{
#ifdef SIMT_TSAN
    __tsan_switch_to_fiber(context, 1);
#else
    (void)context;
#endif
}

} // namespace simt

#endif
