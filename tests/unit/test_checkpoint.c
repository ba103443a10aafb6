/*
 * test_checkpoint.c - checkpoints: to the bit, damaged, cut, half written, and in a
 * folder.
 *
 * `test_checkpoint saver DIR` and `test_checkpoint full DIR` are the processes that
 * some of the tests kill, or give a full disk.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "checkpoint/checkpoint.h"
#include "checkpoint_model.h"
#include "hdf/hdf.h"
#include "optim/optim.h"

extern char **environ;

static const char *self, *parent_folder;
static struct rnnd_options opt;

static bool is_long(void)
{
    const char *value = getenv("LONG");
    return value && *value;
}

static void set_up(void)
{
    open_backend();
    make_folder();
    must(rnnd_options_init(&opt));
}

static void tear_down(void)
{
    rnnd_options_clear(&opt);
    remove_folder();
    rnnd_backend_close(be);
}

/* ---- a run's state */

static void fill_state(struct rnnd__train_state *s, const struct rnnd_model_spec *spec)
{
    int64_t *whole[] = {&s->update,         &s->applied,       &s->epoch,
                        &s->entry,          &s->entry_updates, &s->validated,
                        &s->patience_count, &s->plateau_count, &s->log_updates};
    double *real[] = {&s->best_cost,      &s->patience_cost, &s->plateau_loss,
                      &s->plateau_factor, &s->log_loss,      &s->log_targets,
                      &s->log_steps,      &s->log_seconds,   &s->log_wait,
                      &s->log_straggler,  &s->last_lr,       &s->last_norm,
                      &s->log_weight};
    memset(s, 0, sizeof *s);
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        *whole[i] = (int64_t)i * INT64_C(987654321987) - 1;
    for (size_t i = 0; i < sizeof real / sizeof *real; i++)
        *real[i] = 0.1 * (double)(i + 1) * pow(10, (double)i * 20 - 120);
    s->update = 42;
    s->epoch = 3;
    s->best_cost = INFINITY;
    s->last_norm = NAN;
    s->fingerprint = 0xfedcba9876543210;
    strcpy(s->launch, "3 ranks, cpu, \"2\" threads");
    struct rnnd__carry *c = &s->carry;
    c->count = 5;
    c->width = spec->layers * (spec->bidirectional ? 2 : 1) * spec->hidden;
    size_t floats = (size_t)(c->count * c->width);
    c->id = calloc(5, sizeof *c->id);
    c->h = calloc(floats, sizeof(float));
    c->c = spec->cell == RNND_LSTM ? calloc(floats, sizeof(float)) : NULL;
    for (int i = 0; i < 5; i++)
        c->id[i] = INT64_C(1) << (13 * i);
    fill_odd(c->h, (int64_t)floats, 77);
    if (c->c)
        fill_odd(c->c, (int64_t)floats, 88);
}

static void same_states(const struct rnnd__train_state *a,
                        const struct rnnd__train_state *b)
{
    struct rnnd__train_state x = *a, y = *b;
    size_t floats = (size_t)(a->carry.count * a->carry.width) * sizeof(float);
    ck_assert(a->carry.count == b->carry.count && a->carry.width == b->carry.width);
    ck_assert_mem_eq(a->carry.id, b->carry.id,
                     (size_t)a->carry.count * sizeof(int64_t));
    ck_assert_mem_eq(a->carry.h, b->carry.h, floats);
    ck_assert((a->carry.c == NULL) == (b->carry.c == NULL));
    if (a->carry.c)
        ck_assert_mem_eq(a->carry.c, b->carry.c, floats);
    ck_assert_str_eq(a->launch, b->launch);
    memset(x.launch, 0, sizeof x.launch);
    memset(y.launch, 0, sizeof y.launch);
    memset(&x.carry, 0, sizeof x.carry);
    memset(&y.carry, 0, sizeof y.carry);
    ck_assert_mem_eq(&x, &y, sizeof x);
}

static struct rnnd_optim *new_optim(struct rnnd_model *m, uint32_t start)
{
    struct rnnd_optim *o;
    must(rnnd_optim_new(m, &opt, &o));
    for (int i = 0; start && i < rnnd__optim_moments(o); i++)
        fill_arena(m, rnnd__optim_moment(o, i), start + 5000u * (uint32_t)i);
    rnnd__optim_set_step_count(o, start);
    return o;
}

/* A checkpoint of update u in the folder, of the smallest model. */
static void save_small(const char *name, int64_t update)
{
    struct rnnd_model *m = new_model(&specs[3], (uint32_t)update + 1);
    struct rnnd_optim *o = new_optim(m, (uint32_t)update + 1);
    struct rnnd__train_state s;
    fill_state(&s, &specs[3]);
    s.update = update;
    must(rnnd__checkpoint_save(in_folder(name), m, o, &opt, &s));
    rnnd__carry_clear(&s.carry);
    rnnd_optim_free(o);
    rnnd_model_free(m);
}

/* ---- to the bit */

static void round_trip(const struct rnnd_model_spec *spec)
{
    struct rnnd_model *m = new_model(spec, 11), *n = new_model(spec, 0);
    struct rnnd_optim *o = new_optim(m, 22), *p = new_optim(n, 0);
    struct rnnd__train_state s, t = {.update = 0};
    fill_state(&s, spec);
    must(rnnd__checkpoint_save(in_folder("a.h5"), m, o, &opt, &s));
    must(rnnd__checkpoint_verify(in_folder("a.h5"), false));
    for (int twice = 0; twice < 2; twice++) {
        must(rnnd__checkpoint_load(in_folder("a.h5"), n, p, &t));
        ck_assert(are_same_models(m, n));
        for (int i = 0; i < rnnd__optim_moments(o); i++)
            same_arenas(m, rnnd__optim_moment(o, i), rnnd__optim_moment(p, i));
        ck_assert_int_eq(rnnd__optim_step_count(p), 22);
        same_states(&s, &t);
    }
    rnnd__carry_clear(&s.carry);
    rnnd__carry_clear(&t.carry);
    rnnd_optim_free(o);
    rnnd_optim_free(p);
    rnnd_model_free(m);
    rnnd_model_free(n);
}

START_TEST(everything_comes_back)
{
    static const enum rnnd_optimizer kinds[] = {RNND_SGD, RNND_SGD, RNND_ADAM,
                                                RNND_ADAMW};
    for (int k = 0; k < 4; k++) {
        opt.optimizer = kinds[k];
        opt.momentum = k == 1 ? 0.9 : 0;
        round_trip(&specs[_i]);
    }
}
END_TEST

START_TEST(a_model_is_made_of_its_file)
{
    static char *const texts[] = {"a", "", "ö ü", "d", "e", "f", "a very long name"};
    const struct rnnd_model_spec *spec = &specs[_i];
    struct rnnd_model *m = new_model(spec, 5), *n;
    struct rnnd_checkpoint_info info;
    must(rnnd_model_set_names(m, RNND_AXIS_CLASS, texts, spec->outputs));
    must(rnnd_checkpoint_save_model(in_folder("m.h5"), m, _i % 2 ? &opt : NULL));
    must(rnnd_checkpoint_load_model(in_folder("m.h5"), be, &n, &info));
    ck_assert(are_same_models(m, n));
    for (int k = 0; k < spec->outputs; k++)
        ck_assert_str_eq(rnnd_model_class(n, k), texts[k]);
    ck_assert(info.update == 0 && info.epoch == 0);
    if (_i % 2 == 0)
        same_specs(spec, rnnd_model_spec(n));
    free(info.config);
    rnnd_model_free(n);
    /* without state nothing can resume */
    struct rnnd_optim *o = new_optim(m, 0);
    struct rnnd__train_state s = {.update = 9};
    must_fail(RNND_EFILE, rnnd__checkpoint_load(in_folder("m.h5"), m, o, &s));
    ck_assert_int_eq(s.update, 9);
    rnnd_optim_free(o);
    rnnd_model_free(m);
}
END_TEST

START_TEST(info_is_read_alone)
{
    struct rnnd_checkpoint_info info;
    struct rnnd_options read;
    opt.hidden = 1;
    opt.lr = 0.1 + 0.2;
    save_small("a.h5", 42);
    must(rnnd__checkpoint_read_info(in_folder("a.h5"), &info));
    ck_assert(info.update == 42 && info.epoch == 3);
    must(rnnd_options_init(&read));
    must(rnnd__options_read_text(&read, info.config, "config", RNND_FROM_FILE));
    ck_assert(read.lr == opt.lr && read.cell == RNND_RNN_RELU &&
              read.task == RNND_REGRESS);
    rnnd_options_clear(&read);
    free(info.config);
}
END_TEST

/* Overwritten by the next call. */
static const char *in_state(const char *name)
{
    static char object[64];
    snprintf(object, sizeof object, "/state/%s", name);
    return object;
}

/* Every array of /state that version 0.1 reads is in the file. */
START_TEST(version_0_1_finds_its_state)
{
    static const char *const integers[] = {
        "update",    "applied",        "epoch",         "entry",       "group",
        "validated", "patience_count", "plateau_count", "log_updates", "fingerprint"};
    static const char *const reals[] = {
        "best_loss", "patience_loss", "plateau_loss", "plateau_factor",
        "log_loss",  "log_targets",   "log_steps",    "log_seconds",
        "log_wait",  "log_straggler", "seconds",      "last_lr",
        "last_norm"};
    struct rnnd__hdf *file;
    save_small("a.h5", 42);
    must(rnnd__hdf_open(in_folder("a.h5"), &file));
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
        int64_t value;
        must(rnnd__hdf_read(file, in_state(integers[i]), 0, 1, RNND_I64, &value));
    }
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        double value;
        must(rnnd__hdf_read(file, in_state(reals[i]), 0, 1, RNND_F64, &value));
    }
    rnnd__hdf_close(file);
}
END_TEST

/* The run had adam and resumes with momentum, which starts at zero. */
START_TEST(another_optimizer_starts_anew)
{
    struct rnnd_model *m = new_model(&specs[3], 1);
    struct rnnd__train_state s = {.update = 0};
    save_small("a.h5", 42);
    opt.optimizer = RNND_SGD;
    opt.momentum = 0.5;
    struct rnnd_optim *o = new_optim(m, 3), *zero = new_optim(m, 0);
    must(rnnd__checkpoint_load(in_folder("a.h5"), m, o, &s));
    same_arenas(m, rnnd__optim_moment(o, 0), rnnd__optim_moment(zero, 0));
    ck_assert_int_eq(rnnd__optim_step_count(o), 0);
    rnnd__carry_clear(&s.carry);
    rnnd_optim_free(o);
    rnnd_optim_free(zero);
    rnnd_model_free(m);
}
END_TEST

START_TEST(another_model_is_refused)
{
    struct rnnd_model *m = new_model(&specs[4], 1);
    struct rnnd_optim *o = new_optim(m, 1);
    struct rnnd__train_state s = {.update = 5};
    save_small("a.h5", 42);
    must_fail(RNND_EUSAGE, rnnd__checkpoint_load(in_folder("a.h5"), m, o, &s));
    ck_assert_str_eq(rest_of_detail(),
                     "a.h5: head.weight is [1, 1], the model's head.weight is [4, 2]");
    ck_assert_int_eq(s.update, 5);
    rnnd_optim_free(o);
    rnnd_model_free(m);
}
END_TEST

/* ---- damage */

static size_t read_file(const char *name, unsigned char *all, size_t room)
{
    FILE *f = fopen(in_folder(name), "rb");
    ck_assert_ptr_nonnull(f);
    size_t n = fread(all, 1, room, f);
    fclose(f);
    return n;
}

static unsigned char whole[1 << 18];

/* Loading ends in EFILE, or in exactly what was saved. */
static bool is_noticed(struct rnnd_model *m, struct rnnd_optim *o,
                       const struct rnnd__train_state *s)
{
    struct rnnd_model *n = new_model(&specs[3], 0);
    struct rnnd_optim *p = new_optim(n, 0);
    struct rnnd__train_state t = {.update = 0};
    int status = rnnd__checkpoint_load(in_folder("a.h5"), n, p, &t);
    if (status == 0) {
        ck_assert(are_same_models(m, n));
        for (int i = 0; i < rnnd__optim_moments(o); i++)
            same_arenas(m, rnnd__optim_moment(o, i), rnnd__optim_moment(p, i));
        ck_assert_int_eq(rnnd__optim_step_count(o), rnnd__optim_step_count(p));
        same_states(s, &t);
    } else {
        ck_assert_int_eq(status, RNND_EFILE);
        ck_assert_int_eq(rnnd__checkpoint_verify(in_folder("a.h5"), false), RNND_EFILE);
        ck_assert(strstr(rnnd_status_detail(), in_folder("a.h5")));
    }
    rnnd__carry_clear(&t.carry);
    rnnd_optim_free(p);
    rnnd_model_free(n);
    return status != 0;
}

struct saved {
    struct rnnd_model *model;
    struct rnnd_optim *optim;
    struct rnnd__train_state state;
    size_t size;
};

static void save_for_damage(struct saved *s)
{
    s->model = new_model(&specs[3], 1);
    s->optim = new_optim(s->model, 1);
    fill_state(&s->state, &specs[3]);
    must(rnnd__checkpoint_save(in_folder("a.h5"), s->model, s->optim, &opt, &s->state));
    s->size = read_file("a.h5", whole, sizeof whole);
    ck_assert(s->size > 1000 && s->size < sizeof whole);
}

static void drop_saved(struct saved *s)
{
    rnnd__carry_clear(&s->state.carry);
    rnnd_optim_free(s->optim);
    rnnd_model_free(s->model);
}

START_TEST(no_flipped_byte_changes_a_value)
{
    struct saved s;
    size_t noticed = 0;
    save_for_damage(&s);
    int fd = open(in_folder("a.h5"), O_RDWR);
    for (size_t at = 0; at < s.size; at++) {
        unsigned char flipped = whole[at] ^ (unsigned char)(1u << (at * 5 % 8));
        ck_assert(pwrite(fd, &flipped, 1, (off_t)at) == 1);
        noticed += is_noticed(s.model, s.optim, &s.state);
        ck_assert(pwrite(fd, &whole[at], 1, (off_t)at) == 1);
    }
    close(fd);
    /* all but those of the name by which the seal is known */
    print_tried("flipped bits of checkpoints", (int64_t)s.size,
                noticed < s.size - 16 ? (int64_t)(s.size - 16 - noticed) : 0);
    ck_assert_uint_ge(noticed, s.size - 16);
    ck_assert(!is_noticed(s.model, s.optim, &s.state));
    drop_saved(&s);
}
END_TEST

START_TEST(no_cut_file_is_taken)
{
    struct saved s;
    save_for_damage(&s);
    size_t step = is_long() ? 1 : 37;
    int64_t tried = 0, unseen = 0;
    for (size_t size = s.size - 1; size > step; size -= size > s.size - 40 ? 1 : step) {
        make_file("a.h5", whole, size);
        /* without its seal the file is one of another tool, and whole */
        unseen += is_noticed(s.model, s.optim, &s.state) != (size != s.size - 32);
        tried++;
    }
    print_tried("checkpoints that are cut", tried, unseen);
    ck_assert_int_eq(unseen, 0);
    drop_saved(&s);
}
END_TEST

START_TEST(other_files_are_no_checkpoints)
{
    struct rnnd_checkpoint_info info;
    struct rnnd_model *m;
    struct rnnd__hdf *f;
    must_fail(RNND_EFILE, rnnd__checkpoint_read_info(in_folder("none"), &info));
    must_fail(RNND_EFILE, rnnd__checkpoint_verify(in_folder(""), false));
    make_file("text", "not a checkpoint", 16);
    must_fail(RNND_EFILE, rnnd__checkpoint_verify(in_folder("text"), false));
    must_fail(RNND_EFILE, rnnd_checkpoint_load_model(in_folder("text"), be, &m, NULL));
    must(rnnd__hdf_create(in_folder("data.h5"), &f));
    must(rnnd__hdf_set_string(f, "format", "rnn_dist-data"));
    must(rnnd__hdf_set_int(f, "version", 1));
    must(rnnd__hdf_commit(f));
    must_fail(RNND_EFILE, rnnd__checkpoint_verify(in_folder("data.h5"), false));
    ck_assert_str_eq(rest_of_detail(), "data.h5: attribute format = \"rnn_dist-data\", "
                                       "expected \"rnn_dist-checkpoint\"");
}
END_TEST

/* ---- half written */

/* Where the other process tells how far it is. */
enum { TOLD = 9 };

static pid_t spawn(const char *mode, int *out)
{
    int ends[2];
    pid_t pid;
    posix_spawn_file_actions_t actions;
    char *argv[] = {(char *)self, (char *)mode, test_folder, NULL};
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], TOLD);
    ck_assert_int_eq(posix_spawn(&pid, self, &actions, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    *out = ends[0];
    return pid;
}

/* The last number that a process printed before it ended, -1 = none. */
static int64_t last_said(int fd)
{
    static char text[1 << 16];
    size_t n = 0;
    for (ssize_t got; (got = read(fd, text + n, sizeof text - 1 - n)) > 0;)
        n += (size_t)got;
    text[n] = 0;
    close(fd);
    char *end = strrchr(text, '\n');
    if (!end)
        return -1;
    *end = 0;
    char *line = strrchr(text, '\n');
    return strtoll(line ? line + 1 : text, NULL, 10);
}

/* Killed at any moment: what was announced is there, or something newer, and is
   intact. */
START_TEST(a_killed_save_loses_nothing)
{
    int64_t announced = 0, newest = 0;
    for (int round = 0; round < (is_long() ? 200 : 20); round++) {
        int out, status;
        char first;
        pid_t pid = spawn("saver", &out);
        ck_assert(read(out, &first, 1) == 1); /* it saves */
        usleep((useconds_t)(round * 7919 % 20000));
        kill(pid, SIGKILL);
        int64_t said = last_said(out);
        waitpid(pid, &status, 0);
        ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        announced = said > announced ? said : announced;
        char *path = NULL;
        struct rnnd_checkpoint_info info;
        must(rnnd__checkpoint_newest(test_folder, &path));
        ck_assert_ptr_nonnull(path);
        must(rnnd__checkpoint_read_info(path, &info));
        ck_assert_int_ge(info.update, announced);
        newest = info.update; /* perhaps whole, but not announced any more */
        free(info.config);
        free(path);
    }
    ck_assert_int_gt(announced, 0); /* else nothing was compared */
    must(rnnd__checkpoint_prune(test_folder, 2, newest));
    ck_assert_int_eq(count_files("ckpt-"), 2);
}
END_TEST

/* In the other process, where assertions need a test that runs as well. */
static void set_up_there(void)
{
    snprintf(test_folder, sizeof test_folder, "%s", parent_folder);
    open_backend();
    must(rnnd_options_init(&opt));
}

/* Saves one after the other, and says which are done. */
START_TEST(saver)
{
    struct rnnd_checkpoint_info info = {0, 0, NULL};
    char *newest = NULL, *path;
    must(rnnd__checkpoint_newest(test_folder, &newest));
    if (newest)
        must(rnnd__checkpoint_read_info(newest, &info));
    for (int64_t update = info.update + 1;; update++) {
        must(rnnd__checkpoint_path(test_folder, update, &path));
        save_small(strrchr(path, '/') + 1, update);
        dprintf(TOLD, "%lld\n", (long long)update);
        free(path);
        must(rnnd__checkpoint_prune(test_folder, 2, update));
    }
}
END_TEST

/* The disk fills up at every size that a file may reach: the older file stays as it
   is. */
START_TEST(full)
{
    struct rnnd_model *m;
    struct stat info;
    int failures = 0;
    must(stat(in_folder("a.h5"), &info));
    m = new_model(&specs[3], 9);
    struct rnnd_optim *o = new_optim(m, 9);
    struct rnnd__train_state s;
    fill_state(&s, &specs[3]);
    struct rlimit limit = {0, (rlim_t)info.st_size};
    signal(SIGXFSZ, SIG_IGN);
    /* no assertion in between: they write files, too */
    for (limit.rlim_cur = 0; limit.rlim_cur < limit.rlim_max; limit.rlim_cur += 997)
        failures +=
            setrlimit(RLIMIT_FSIZE, &limit) == 0 &&
            rnnd__checkpoint_save(in_folder("a.h5"), m, o, &opt, &s) == RNND_EFILE &&
            strstr(rnnd_status_detail(), "a.h5");
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_FSIZE, &limit);
    dprintf(TOLD, "%d\n", failures);
    rnnd__carry_clear(&s.carry);
    rnnd_optim_free(o);
    rnnd_model_free(m);
}
END_TEST

START_TEST(a_full_disk_leaves_the_older_file)
{
    static unsigned char after[sizeof whole];
    int out, status;
    save_small("a.h5", 42);
    size_t size = read_file("a.h5", whole, sizeof whole);
    /* HDF5 itself drops memory where it could not close a file */
    const char *had = getenv("ASAN_OPTIONS");
    char options[256];
    snprintf(options, sizeof options, "%s:detect_leaks=0", had ? had : "");
    setenv("ASAN_OPTIONS", options, 1);
    pid_t pid = spawn("full", &out);
    int64_t failures = last_said(out);
    waitpid(pid, &status, 0);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(failures, (int64_t)(size + 996) / 997);
    ck_assert_uint_eq(read_file("a.h5", after, sizeof after), size);
    ck_assert_mem_eq(whole, after, size);
    must(rnnd__checkpoint_verify(in_folder("a.h5"), false));
    ck_assert_int_eq(count_files("a.h5"), 1);
}
END_TEST

START_TEST(a_folder_that_is_not_there)
{
    struct rnnd_model *m = new_model(&specs[3], 9);
    must_fail(RNND_EFILE, rnnd_checkpoint_save_model(in_folder("none/a.h5"), m, &opt));
    rnnd_model_free(m);
}
END_TEST

/* ---- in a folder */

static void damage(const char *name)
{
    size_t size = read_file(name, whole, sizeof whole);
    whole[size / 2] ^= 1;
    make_file(name, whole, size);
}

static const char *newest(void)
{
    static char name[64];
    char *path = NULL;
    must(rnnd__checkpoint_newest(test_folder, &path));
    snprintf(name, sizeof name, "%s", path ? strrchr(path, '/') + 1 : "none");
    free(path);
    return name;
}

static const char *found(void)
{
    static char name[64];
    char *path = NULL;
    if (rnnd_checkpoint_find(test_folder, &path) < 0)
        return "none";
    snprintf(name, sizeof name, "%s", strrchr(path, '/') + 1);
    free(path);
    return name;
}

START_TEST(the_newest_intact_one_is_found)
{
    char *path = "untouched";
    ck_assert_str_eq(newest(), "none");
    ck_assert_str_eq(found(), "none");
    must(rnnd__checkpoint_newest(in_folder("nowhere"), &path));
    ck_assert_ptr_null(path);
    save_small("ckpt-0000000009.h5", 9);
    save_small("ckpt-0000000100.h5", 100);
    save_small("ckpt-0000000101.h5", 101);
    save_small("ckpt-12345678901.h5", 12345678901);
    make_file("ckpt-0000000200.h5.tmp-1", "x", 1);
    make_file("ckpt-300.h5", "x", 1);
    make_file("ckpt-000000030a.h5", "x", 1);
    make_file("ckpt-0000000300.h5~", "x", 1);
    ck_assert_str_eq(newest(), "ckpt-12345678901.h5");
    make_file("ckpt-12345678901.h5", "", 0);
    ck_assert_str_eq(newest(), "ckpt-0000000101.h5");
    damage("ckpt-0000000101.h5");
    ck_assert_str_eq(newest(), "ckpt-0000000100.h5");
    ck_assert_str_eq(found(), "ckpt-0000000100.h5");
    save_small("best.h5", 50);
    ck_assert_str_eq(newest(), "ckpt-0000000100.h5");
    ck_assert_str_eq(found(), "best.h5");
    damage("best.h5");
    ck_assert_str_eq(found(), "ckpt-0000000100.h5");
    damage("ckpt-0000000100.h5");
    damage("ckpt-0000000009.h5");
    ck_assert_str_eq(newest(), "none");
    ck_assert_str_eq(found(), "none");
    must(rnnd_checkpoint_find(in_folder("best.h5"), &path)); /* a file is what it is */
    ck_assert_str_eq(path, in_folder("best.h5"));
    free(path);
    must_fail(RNND_EFILE, rnnd_checkpoint_find(in_folder("nowhere"), &path));
}
END_TEST

/* What cannot be opened is not damaged: nothing older may be taken for it. */
START_TEST(one_that_cannot_be_opened_is_not_passed_over)
{
    static const char *const names[] = {"ckpt-0000000009.h5", "best.h5"};
    char *path = "untouched";
    save_small("ckpt-0000000008.h5", 8);
    for (int i = 0; i < 2; i++) {
        char name[512];
        snprintf(name, sizeof name, "%s", in_folder(names[i]));
        ck_assert_int_eq(symlink(names[i], name), 0); /* to itself */
        must_fail(RNND_EFILE, rnnd_checkpoint_find(test_folder, &path));
        ck_assert_ptr_nonnull(strstr(rnnd_status_detail(), names[i]));
        ck_assert_ptr_nonnull(strstr(rnnd_status_detail(), strerror(ELOOP)));
        if (i == 0)
            must_fail(RNND_EFILE, rnnd__checkpoint_newest(test_folder, &path));
        ck_assert_str_eq(path, "untouched");
        unlink(name);
    }

    char name[512];
    snprintf(name, sizeof name, "%s", in_folder(names[0]));
    save_small(names[0], 9);
    ck_assert_int_eq(chmod(name, 0), 0);
    bool root = geteuid() == 0; /* who may read everything */
    if (root) {
        ck_assert_int_eq(chmod(test_folder, 0755), 0);
        ck_assert_int_eq(seteuid(65534), 0);
    }
    int status = rnnd__checkpoint_newest(test_folder, &path);
    if (root)
        ck_assert_int_eq(seteuid(0), 0);
    ck_assert_int_eq(status, RNND_EFILE);
    ck_assert_ptr_nonnull(strstr(rnnd_status_detail(), strerror(EACCES)));
    ck_assert_str_eq(path, "untouched");
    ck_assert_int_eq(chmod(name, 0644), 0);
    ck_assert_str_eq(newest(), names[0]);
}
END_TEST

static bool is_there(const char *name)
{
    return access(in_folder(name), F_OK) == 0;
}

/* As if the clock had been set back after the file was written. */
static void write_an_hour_ahead(const char *name)
{
    struct timespec times[2];
    clock_gettime(CLOCK_REALTIME, &times[0]);
    times[0].tv_sec += 3600;
    times[1] = times[0];
    ck_assert_int_eq(utimensat(AT_FDCWD, in_folder(name), times, 0), 0);
}

START_TEST(few_are_kept)
{
    char live[64], dead[64];
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    waitpid(pid, NULL, 0);
    snprintf(live, sizeof live, "ckpt-0000000004.h5.tmp-%ld", (long)getppid());
    snprintf(dead, sizeof dead, "best.h5.tmp-%ld", (long)pid);
    for (int u = 1; u <= 4; u++) {
        char name[32];
        snprintf(name, sizeof name, "ckpt-%010d.h5", u);
        save_small(name, u);
    }
    static const char *const others[] = {"notes.h5.tmp-99999999", "best.h5.tmp-99x",
                                         "best.h5.tmp-", "ckpt-4.h5.tmp-99999999"};
    for (int i = 0; i < 4; i++)
        make_file(others[i], "x", 1);
    make_file(live, "x", 1);
    make_file(dead, "x", 1);
    must(rnnd__checkpoint_prune(test_folder, 0, 0));
    ck_assert(is_there(live) && !is_there(dead));
    for (int i = 0; i < 4; i++)
        ck_assert(is_there(others[i]));
    ck_assert(is_there("ckpt-0000000001.h5"));
    must(rnnd__checkpoint_prune(test_folder, 2, 4));
    ck_assert(!is_there("ckpt-0000000001.h5") && !is_there("ckpt-0000000002.h5"));
    ck_assert(is_there("ckpt-0000000003.h5") && is_there("ckpt-0000000004.h5"));
}
END_TEST

/* A run that had to resume from 2, since 8 and 9 were damaged, is at 4 now. Also where
   the time of a damaged one lies ahead. */
START_TEST(damaged_newer_ones_push_nothing_out)
{
    static const int updates[] = {1, 2, 8, 9, 3, 4};
    for (int i = 0; i < 6; i++) {
        char name[32];
        snprintf(name, sizeof name, "ckpt-%010d.h5", updates[i]);
        save_small(name, updates[i]);
        if (updates[i] > 4)
            damage(name);
        if (updates[i] == 9)
            write_an_hour_ahead(name);
    }
    must(rnnd__checkpoint_prune(test_folder, 2, 4));
    ck_assert_str_eq(newest(), "ckpt-0000000004.h5");
    ck_assert(is_there("ckpt-0000000003.h5"));
    ck_assert(!is_there("ckpt-0000000002.h5") && !is_there("ckpt-0000000001.h5"));
    must(rnnd__checkpoint_prune(test_folder, 1, 4));
    ck_assert_str_eq(newest(), "ckpt-0000000004.h5");
    ck_assert(!is_there("ckpt-0000000003.h5"));
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("checkpoint");
    TCase *t = tcase_create("checkpoint");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_set_timeout(t, 600);
    tcase_add_loop_test(t, everything_comes_back, 0, SPECS);
    tcase_add_loop_test(t, a_model_is_made_of_its_file, 0, SPECS);
    tcase_add_test(t, info_is_read_alone);
    tcase_add_test(t, version_0_1_finds_its_state);
    tcase_add_test(t, another_optimizer_starts_anew);
    tcase_add_test(t, another_model_is_refused);
    tcase_add_test(t, no_flipped_byte_changes_a_value);
    tcase_add_test(t, no_cut_file_is_taken);
    tcase_add_test(t, other_files_are_no_checkpoints);
    tcase_add_test(t, a_killed_save_loses_nothing);
    tcase_add_test(t, a_full_disk_leaves_the_older_file);
    tcase_add_test(t, a_folder_that_is_not_there);
    tcase_add_test(t, the_newest_intact_one_is_found);
    tcase_add_test(t, one_that_cannot_be_opened_is_not_passed_over);
    tcase_add_test(t, few_are_kept);
    tcase_add_test(t, damaged_newer_ones_push_nothing_out);
    suite_add_tcase(s, t);
    return s;
}

static Suite *there(const TTest *test)
{
    Suite *s = suite_create("there");
    TCase *t = tcase_create("there");
    tcase_add_checked_fixture(t, set_up_there, NULL);
    tcase_set_timeout(t, 600);
    tcase_add_test(t, test);
    suite_add_tcase(s, t);
    return s;
}

int main(int argc, char **argv)
{
    self = argv[0];
    if (argc < 3)
        return run_suite(suite());
    parent_folder = argv[2];
    return run_suite(there(strcmp(argv[1], "full") == 0 ? full : saver));
}
