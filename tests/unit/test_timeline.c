/*
 * test_timeline.c - spans of a rank's time: their sums, what is kept of them, and the
 * trace that is written of them.
 */
#include <jansson.h>
#include <math.h>

#include "base/clock.h"
#include "base/timeline.h"
#include "record/trace.h"
#include "testing.h"

static void pass_time(double seconds)
{
    for (double begin = rnnd__clock(); rnnd__clock() - begin < seconds;)
        ;
}

START_TEST(nothing_is_marked_while_it_is_off)
{
    const struct rnnd__span *span;
    ck_assert(rnnd__timeline_now().at == 0);
    rnnd__timeline_mark(RNND_WORK_HEAD, false, -1, (struct rnnd__moment){0, -1});
    rnnd__timeline_start(true);
    ck_assert(rnnd__timeline_seconds(RNND_WORK_HEAD) == 0);
    ck_assert_int_eq(rnnd__timeline_spans(&span), 0);
    rnnd__timeline_stop();
}
END_TEST

START_TEST(spans_add_up_by_their_work)
{
    rnnd__timeline_start(false);
    double all = rnnd__clock();
    for (int i = 0; i < 3; i++) {
        struct rnnd__moment mark = rnnd__timeline_now();
        pass_time(0.01);
        rnnd__timeline_mark(RNND_WORK_RECURRENT, i % 2, i, mark);
    }
    double most = rnnd__clock() - all,
           sum = rnnd__timeline_seconds(RNND_WORK_RECURRENT);
    ck_assert_msg(sum >= 0.03 && sum <= most, "%g of %g", sum, most);
    ck_assert(rnnd__timeline_seconds(RNND_WORK_HEAD) == 0);
    rnnd__timeline_start(false);
    ck_assert(rnnd__timeline_seconds(RNND_WORK_RECURRENT) == 0);
    rnnd__timeline_stop();
}
END_TEST

START_TEST(spans_are_kept_if_asked_for)
{
    const struct rnnd__span *span;
    for (int keep = 0; keep < 2; keep++) {
        rnnd__timeline_start(keep);
        struct rnnd__moment mark = rnnd__timeline_now();
        rnnd__timeline_mark(RNND_WORK_SAVE, false, -1, mark);
        rnnd__timeline_mark(RNND_WORK_RECURRENT, true, 4, mark);
        ck_assert_int_eq(rnnd__timeline_spans(&span), 2 * keep);
    }
    ck_assert(span[0].work == RNND_WORK_SAVE && !span[0].backward);
    ck_assert(span[1].work == RNND_WORK_RECURRENT && span[1].backward);
    ck_assert_int_eq(span[1].number, 4);
    ck_assert(span[0].begin == span[1].begin && span[1].end >= span[0].end);
    rnnd__timeline_stop();
    ck_assert_int_eq(rnnd__timeline_spans(&span), 0);
}
END_TEST

/* A device that is 10 s behind the host, and done with its work when it is waited for:
   marks are 1 s apart. */
static struct fake {
    int marks, spans, taken;
    struct {
        int begin, end;
        uint64_t tag;
    } span[8];
} fake;

static int fake_mark(void *device)
{
    return ((struct fake *)device)->marks++;
}

static void fake_span(void *device, int begin, int end, uint64_t tag)
{
    struct fake *f = device;
    f->span[f->spans].begin = begin;
    f->span[f->spans].end = end;
    f->span[f->spans++].tag = tag;
}

static bool fake_take(void *device, bool wait, uint64_t *tag, double at[2])
{
    struct fake *f = device;
    if (!wait || f->taken == f->spans)
        return false;
    *tag = f->span[f->taken].tag;
    at[0] = 10 + f->span[f->taken].begin;
    at[1] = 10 + f->span[f->taken++].end;
    return true;
}

static void start_with_device(void)
{
    fake = (struct fake){0};
    rnnd__timeline_start(true);
    rnnd__timeline_device(
        &(struct rnnd__timeline_device){&fake, fake_mark, fake_span, fake_take});
}

/* Sums are of the device's times, and none of them is waited for before it is read. */
START_TEST(a_device_has_times_of_its_own)
{
    const struct rnnd__span *span;
    double zero = rnnd__clock();
    start_with_device();
    struct rnnd__moment outer = rnnd__timeline_now(), inner = rnnd__timeline_now();
    rnnd__timeline_mark(RNND_WORK_RECURRENT, true, 7, inner);  /* 1 to 2 */
    rnnd__timeline_mark(RNND_WORK_VALIDATE, false, -1, outer); /* 0 to 3 */
    fake_span(&fake, 4, 9, RNND__TIMELINE_SUM);
    ck_assert_int_eq(fake.taken, 0);
    ck_assert(rnnd__timeline_seconds(RNND_WORK_RECURRENT) == 1);
    ck_assert(rnnd__timeline_seconds(RNND_WORK_VALIDATE) == 3);
    ck_assert(rnnd__timeline_seconds(RNND_WORK_REDUCE) == 0);
    ck_assert_int_eq(rnnd__timeline_spans(&span), 5);
    ck_assert(span[0].of == RNND_SPAN_HOST && span[1].of == RNND_SPAN_HOST);
    ck_assert(span[2].of == RNND_SPAN_DEVICE && span[2].backward);
    ck_assert(span[2].work == RNND_WORK_RECURRENT && span[2].number == 7);
    ck_assert(span[3].of == RNND_SPAN_DEVICE && !span[3].backward);
    ck_assert(span[3].work == RNND_WORK_VALIDATE && span[3].number == -1);
    ck_assert(span[4].of == RNND_SPAN_DEVICE_SUM && span[4].number == -1);
    ck_assert(fabs(span[2].begin - zero - 11) < 1 &&
              fabs(span[2].end - span[2].begin - 1) < 1e-6);
    rnnd__timeline_start(false);
    ck_assert_int_eq(rnnd__timeline_now().mark, -1);
    rnnd__timeline_stop();
}
END_TEST

/* A Chrome trace: names of the process and its threads, and the spans from zero on. */
START_TEST(the_trace_holds_all_spans)
{
    struct rnnd_comm *comm;
    json_error_t error;
    must(rnnd_comm_open(10, &comm));
    rnnd__timeline_start(true);
    struct rnnd__moment mark = rnnd__timeline_now();
    pass_time(0.002);
    rnnd__timeline_mark(RNND_WORK_RECURRENT, true, 1, mark);
    rnnd__timeline_mark(RNND_WORK_LOAD, false, -1, mark);
    must(rnnd__trace_write(comm, in_folder("trace.json")));
    rnnd__timeline_stop();
    rnnd_comm_close(comm);

    json_t *events = json_load_file(in_folder("trace.json"), 0, &error), *event;
    ck_assert_msg(events != NULL, "%s", error.text);
    size_t i, spans = 0;
    json_array_foreach(events, i, event)
    {
        if (strcmp(json_string_value(json_object_get(event, "ph")), "X") != 0)
            continue;
        const char *name = json_string_value(json_object_get(event, "name"));
        double ts = json_number_value(json_object_get(event, "ts"));
        double dur = json_number_value(json_object_get(event, "dur"));
        ck_assert_str_eq(name, spans == 0 ? "layer 1 backward" : "load and pack");
        ck_assert(fabs(ts) < 0.001 && dur >= 2000);
        spans++;
    }
    ck_assert_int_eq(spans, 2);
    json_decref(events);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("timeline");
    TCase *tests = tcase_create("timeline");
    tcase_add_checked_fixture(tests, make_folder, remove_folder);
    tcase_add_test(tests, nothing_is_marked_while_it_is_off);
    tcase_add_test(tests, spans_add_up_by_their_work);
    tcase_add_test(tests, spans_are_kept_if_asked_for);
    tcase_add_test(tests, a_device_has_times_of_its_own);
    tcase_add_test(tests, the_trace_holds_all_spans);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
