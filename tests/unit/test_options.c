/*
 * test_options.c - the options room: every row of the table set, read back and written;
 * the command line; the configuration text; what is refused, and with which words.
 */
#include <float.h>
#include <math.h>

#include "options/options_table.h"
#include "testing.h"

static struct rnnd_options opt;

static void set_up(void)
{
    must(rnnd_options_init(&opt));
}

static void tear_down(void)
{
    rnnd_options_clear(&opt);
}

/* Parses arguments as `command` does; more than 15 are not needed. */
static int parse(enum rnnd__command command, const char *const *words, int *operands)
{
    static char *argv[16];
    int argc = 0;
    for (; words[argc]; argc++)
        argv[argc] = (char *)words[argc];
    return rnnd__options_parse(&opt, command, argc, argv, operands);
}

#define PARSE(...) parse(RNND_CMD_TRAIN, (const char *[]){__VA_ARGS__, NULL}, &(int){0})

/* The status is `want` and the detail says these words. */
#define must_say(want, words, expr)                                               \
    do {                                                                          \
        must_fail(want, expr);                                                    \
        ck_assert_msg(strstr(rnnd_status_detail(), words), "\"%s\" lacks \"%s\"", \
                      rnnd_status_detail(), words);                               \
    } while (0)

static void must_be(const char *name, const char *want)
{
    char *value;
    must(rnnd__option_get(&opt, rnnd__option_find(name), &value));
    ck_assert_msg(!strcmp(value, want), "%s is \"%s\", not \"%s\"", name, value, want);
    free(value);
}

/* ---- defaults */

START_TEST(defaults_are_those_of_the_contract)
{
    ck_assert_int_eq(opt.valid_every, 0);
    ck_assert_int_eq(opt.shuffle, RNND_SHUFFLE_EPOCH);
    ck_assert_int_eq(opt.bucket, 8);
    ck_assert(!opt.normalize);
    ck_assert_int_eq(opt.batch, 32);
    ck_assert_int_eq(opt.batch_tokens, 0);
    ck_assert_int_eq(opt.microbatch_tokens, 0);
    ck_assert_int_eq(opt.task, -1);
    ck_assert_int_eq(opt.cell, RNND_LSTM);
    ck_assert_int_eq(opt.embed, 256);
    ck_assert_int_eq(opt.hidden, 128);
    ck_assert_int_eq(opt.layers, 1);
    ck_assert(!opt.bidirectional);
    ck_assert_int_eq(opt.pool, RNND_POOL_LAST);
    ck_assert(opt.dropout == 0 && opt.dropout_embed == 0 && opt.dropout_head == 0);
    ck_assert_int_eq(opt.dropout_kind, RNND_DROPOUT_ELEMENT);
    ck_assert_int_eq(opt.tbptt, 0);
    ck_assert_int_eq(opt.windows, 1);
    ck_assert_int_eq(opt.stream, RNND_STREAM_AUTO);
    ck_assert_int_eq(opt.optimizer, RNND_ADAM);
    ck_assert(opt.lr == 0.001 && opt.momentum == 0);
    ck_assert(opt.beta1 == 0.9 && opt.beta2 == 0.999 && opt.eps == 1e-8);
    ck_assert(opt.weight_decay == 0 && opt.clip_norm == 0);
    ck_assert_int_eq(opt.lr_schedule, RNND_CONSTANT_LR);
    ck_assert_int_eq(opt.lr_step, 1);
    ck_assert(opt.lr_decay == 0.1);
    ck_assert_int_eq(opt.lr_patience, 10);
    ck_assert_int_eq(opt.warmup, 0);
    ck_assert_int_eq(opt.on_nonfinite, RNND_NONFINITE_STOP);
    ck_assert_int_eq(opt.epochs, 10);
    ck_assert_int_eq(opt.max_updates, 0);
    ck_assert_int_eq(opt.patience, 0);
    ck_assert_int_eq(opt.precision, RNND_PRECISION_AUTO);
    ck_assert_int_eq(opt.threads, 0);
    ck_assert(opt.bucket_mb == 25 && opt.comm_timeout == 600);
    ck_assert_str_eq(opt.run_dir, "run");
    ck_assert_int_eq(opt.save_every, 0);
    ck_assert(opt.save_minutes == 10);
    ck_assert_int_eq(opt.keep, 3);
    ck_assert_int_eq(opt.seed, 1);
    ck_assert_int_eq(opt.log_every, 0); /* auto */
    ck_assert_int_eq(opt.vocab_size, 10000);
    ck_assert_ptr_null(opt.data);
    for (int i = 0; i < OPT_COUNT; i++)
        ck_assert_int_eq(opt.given[i], RNND_FROM_DEFAULT);
}
END_TEST

/* Each choice is the enum's number: the words are in the order of rnn_dist_enums.h.
 */
START_TEST(words_are_in_the_order_of_the_enums)
{
    must(PARSE("--task=lm", "--cell=gru", "--pool=max", "--dropout-kind=sequence",
               "--shuffle=none", "--stream=no", "--optimizer=adamw",
               "--lr-schedule=cosine", "--on-nonfinite=skip", "--device=cuda",
               "--comm=mpi", "--precision=bf16", "--rnn-path=persistent",
               "--progress=none"));
    ck_assert_int_eq(opt.task, RNND_LM);
    ck_assert_int_eq(opt.cell, RNND_GRU);
    ck_assert_int_eq(opt.pool, RNND_POOL_MAX);
    ck_assert_int_eq(opt.dropout_kind, RNND_DROPOUT_SEQUENCE);
    ck_assert_int_eq(opt.shuffle, RNND_SHUFFLE_NONE);
    ck_assert_int_eq(opt.stream, RNND_STREAM_NO);
    ck_assert_int_eq(opt.optimizer, RNND_ADAMW);
    ck_assert_int_eq(opt.lr_schedule, RNND_COSINE_LR);
    ck_assert_int_eq(opt.on_nonfinite, RNND_NONFINITE_SKIP);
    ck_assert_int_eq(opt.device, RNND_DEVICE_CUDA);
    ck_assert_int_eq(opt.comm, RNND_COMM_MPI);
    ck_assert_int_eq(opt.precision, RNND_BF16);
    ck_assert_int_eq(opt.rnn_path, RNND_PATH_PERSISTENT);
    ck_assert_int_eq(opt.progress, RNND_PROGRESS_NONE);
}
END_TEST

/* rnnd__options_word() gives the words by the same numbers. */
START_TEST(words_have_numbers)
{
    char word[32];
    for (int task = 0; task < RNND_NO_TASK; task++) {
        rnnd__options_word("task", task, word);
        ck_assert_str_eq(word, rnnd_task_name((enum rnnd_task)task));
    }
    rnnd__options_word("cell", RNND_GRU, word);
    ck_assert_str_eq(word, "gru");
    static const struct {
        const char *name;
        int index;
    } none[] = {{"cell", -1}, {"cell", 4}, {"cell", 9}, {"hidden", 0}, {"celt", 0}};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        rnnd__options_word(none[i].name, none[i].index, word);
        ck_assert_str_eq(word, "");
    }
}
END_TEST

/* ---- every option there and back */

/* A value that is not the default. */
static const char *other_value(const struct rnnd__option *option)
{
    static char word[32];
    const char *bar;
    switch (option->kind) {
    case RNND_SWITCH:
        return "yes";
    case RNND_INTEGER:
        return "7";
    case RNND_REAL:
        return "0.30000000000000004";
    case RNND_CHOICE:
        bar = strrchr(option->arg, '|') + 1;
        snprintf(word, sizeof word, "%s", bar);
        return word;
    case RNND_TEXT:
        return "a file; \"quoted\" \\ # x";
    }
    return "";
}

START_TEST(every_option_goes_there_and_back)
{
    for (int i = 0; i < OPT_COUNT; i++) {
        const struct rnnd__option *option = &rnnd__options[i];
        const char *value = other_value(option);
        ck_assert(!rnnd__options_given(&opt, option->name));
        must(rnnd__options_set(&opt, option->name, value, RNND_FROM_COMMAND_LINE));
        must_be(option->name, value);
        ck_assert(rnnd__options_given(&opt, option->name));
    }
    /* no two rows share a field: all of them still have their values */
    for (int i = 0; i < OPT_COUNT; i++)
        must_be(rnnd__options[i].name, other_value(&rnnd__options[i]));
}
END_TEST

/* What get() says of defaults, set or not, is what set() takes. */
START_TEST(defaults_go_there_and_back)
{
    for (int i = 0; i < OPT_COUNT; i++) {
        char *value;
        must(rnnd__option_get(&opt, i, &value));
        if (*value || !rnnd__options[i].preset)
            must(rnnd__options_set(&opt, rnnd__options[i].name, value, RNND_FROM_FILE));
        must_be(rnnd__options[i].name, value);
        free(value);
    }
    ck_assert_int_eq(opt.task, -1);
}
END_TEST

/* Train options by the text: all that are kept, each with another value, so that
   nothing is idle for a reason of the others. */
START_TEST(the_text_reads_as_the_same_options)
{
    must(PARSE("--layers=3", "--dropout=0.5", "--valid=v.h5", "--tbptt=5",
               "--optimizer=sgd", "--lr-schedule=step", "--hidden=7"));
    for (int i = 0; i < OPT_COUNT; i++) {
        const struct rnnd__option *option = &rnnd__options[i];
        bool free_to_change = option->life != CALL && !opt.given[i] &&
                              i != OPT_batch_tokens && i != OPT_shuffle;
        if (option->commands & RNND_CMD_TRAIN && free_to_change)
            must(rnnd__options_set(&opt, option->name, other_value(option),
                                   RNND_FROM_COMMAND_LINE));
    }
    char *text, *again;
    must(rnnd__options_text(&opt, &text));
    struct rnnd_options read;
    must(rnnd_options_init(&read));
    must(rnnd__options_read_text(&read, text, "text", RNND_FROM_FILE));
    must(rnnd__options_text(&read, &again));
    ck_assert_str_eq(text, again);
    ck_assert(read.lr == 0.30000000000000004);
    ck_assert_str_eq(read.data, "a file; \"quoted\" \\ # x");

    /* every kept option is in it, or has no effect beside these */
    for (int i = 0; i < OPT_COUNT; i++) {
        const struct rnnd__option *option = &rnnd__options[i];
        char line[64];
        snprintf(line, sizeof line, "\n%s = ", option->name);
        bool first = !strncmp(text, line + 1, strlen(line + 1));
        bool kept = option->commands & RNND_CMD_TRAIN && option->life != CALL;
        bool idle = i == OPT_batch_tokens || i == OPT_beta1 || i == OPT_beta2 ||
                    i == OPT_eps || i == OPT_lr_patience || i == OPT_pool;
        if (!kept ||
            !idle) /* what is idle depends on the task: the loop above set one */
            ck_assert_msg((first || strstr(text, line)) ==
                              (kept && !rnnd__option_idle(&opt, opt.task, i)),
                          "%s: %s", option->name, text);
    }
    free(text);
    free(again);
    rnnd_options_clear(&read);
}
END_TEST

START_TEST(doubles_keep_their_bits)
{
    static const double values[] = {0.1,
                                    1e-8,
                                    1.0 / 3,
                                    5e-324,
                                    DBL_MAX,
                                    M_PI,
                                    123456789.123456789,
                                    1e22,
                                    2.5e-300,
                                    0.30000000000000004};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        opt.lr = values[i];
        char *text;
        must(rnnd__options_text(&opt, &text));
        opt.lr = 1;
        must(rnnd__options_read_text(&opt, text, "text", RNND_FROM_FILE));
        ck_assert(opt.lr == values[i]);
        free(text);
    }
    char shortest[32];
    rnnd__real_text(0.001, shortest);
    ck_assert_str_eq(shortest, "0.001");
}
END_TEST

/* ---- the command line */

START_TEST(both_ways_to_write_a_value)
{
    int operands;
    const char *words[] = {"a",           "--lr", "0.5",  "b", "--hidden=3",
                           "--normalize", "--",   "--lr", "-", NULL};
    char *argv[10];
    memcpy(argv, words, sizeof words);
    must(rnnd__options_parse(&opt, RNND_CMD_TRAIN, 9, argv, &operands));
    ck_assert_int_eq(operands, 4);
    ck_assert_str_eq(argv[0], "a");
    ck_assert_str_eq(argv[1], "b");
    ck_assert_str_eq(argv[2], "--lr");
    ck_assert_str_eq(argv[3], "-");
    ck_assert(opt.lr == 0.5 && opt.hidden == 3 && opt.normalize);
}
END_TEST

START_TEST(the_last_one_counts)
{
    must(PARSE("--lr=1", "--lr", "2", "--normalize", "--no-normalize"));
    ck_assert(opt.lr == 2 && !opt.normalize);
    ck_assert(rnnd__options_given(&opt, "normalize"));
}
END_TEST

START_TEST(misspelt_options_are_understood)
{
    must_say(RNND_EUSAGE, "unknown option --hiden; did you mean --hidden?",
             PARSE("--hiden", "5"));
    must_say(RNND_EUSAGE, "did you mean --max-updates?", PARSE("--max_updates=5"));
    must_say(RNND_EUSAGE, "did you mean --optimizer?", PARSE("--optim", "sgd"));
    must_say(RNND_EUSAGE, "did you mean --lr?", PARSE("--rl=3"));
    must_say(RNND_EUSAGE, "did you mean --no-normalize?", PARSE("--no-normalise"));
    must_fail(RNND_EUSAGE, PARSE("--learning-speed=3"));
    ck_assert_str_eq(rnnd_status_detail(), "unknown option --learning-speed");
    must_say(RNND_EUSAGE, "unknown option -v", PARSE("-v"));
    /* no abbreviations, not even of one option only */
    must_say(RNND_EUSAGE, "did you mean --bidirectional?", PARSE("--bidir"));
    ck_assert(!opt.bidirectional);
}
END_TEST

START_TEST(values_are_there_or_not)
{
    must_say(RNND_EUSAGE, "--lr needs a value", PARSE("--lr"));
    must_say(RNND_EUSAGE, "--data needs a value", PARSE("--data", "--lr=3"));
    must_say(RNND_EUSAGE, "--data needs a value", PARSE("--data="));
    must_say(RNND_EUSAGE, "--normalize takes no value", PARSE("--normalize=yes"));
    must_say(RNND_EUSAGE, "--lr is not a switch; it takes a value: X",
             PARSE("--no-lr"));
    must(parse(RNND_CMD_SAMPLE, (const char *[]){"--prompt", "", NULL}, &(int){0}));
    must(PARSE("--data=--lr"));
    ck_assert_str_eq(opt.data, "--lr");
}
END_TEST

START_TEST(options_of_other_commands_are_named)
{
    must_say(RNND_EUSAGE, "--csv is an option of predict, not of train",
             PARSE("--csv=x"));
    must_say(RNND_EUSAGE,
             "--hidden is an option of train, verify, bench and info, not of "
             "eval",
             parse(RNND_CMD_EVAL, (const char *[]){"--hidden=3", NULL}, &(int){0}));
    must(parse(RNND_CMD_EVAL, (const char *[]){"m", "--data=3", "--batch=5", NULL},
               &(int){0}));
}
END_TEST

START_TEST(help_ends_the_reading)
{
    must(PARSE("--lr=1", "--help", "--nonsense"));
    ck_assert(opt.help && !opt.version);
}
END_TEST

/* ---- ranges */

struct refused {
    const char *argument, *words;
};

START_TEST(numbers_are_held_to_their_range)
{
    static const struct refused table[] = {
        {"--lr=0", "--lr 0 is out of range: X > 0"},
        {"--lr=-1", "--lr -1 is out of range: X > 0"},
        {"--lr=inf", "--lr inf is out of range"},
        {"--lr=nan", "--lr nan is out of range"},
        {"--lr=1e999", "--lr 1e999 is out of range"},
        {"--lr=1e-999", "--lr 1e-999 is out of range"},
        {"--lr=0.1x", "--lr must be a number (X > 0), not \"0.1x\""},
        {"--lr= 1", "not \" 1\""},
        {"--dropout=1", "--dropout 1 is out of range: 0 <= P < 1"},
        {"--dropout=-0.1", "--dropout -0.1 is out of range"},
        {"--dropout-head=1", "--dropout-head 1"},
        {"--momentum=1", "--momentum 1 is out of range: 0 <= X < 1"},
        {"--beta1=1", "--beta1 1 is"},
        {"--beta2=-1", "--beta2 -1 is"},
        {"--eps=0", "--eps 0 is out of range: X > 0"},
        {"--weight-decay=-1", "--weight-decay -1 is out of range: X >= 0"},
        {"--clip-norm=-1", "--clip-norm -1"},
        {"--batch=0", "--batch 0 is out of range: 1 <= N <= 2147483647"},
        {"--batch=1.5", "--batch must be an integer"},
        {"--batch=1e3", "--batch must be an integer"},
        {"--batch=99999999999999999999",
         "--batch 99999999999999999999 is out of range"},
        {"--batch-tokens=0", "--batch-tokens 0"},
        {"--hidden=0", "--hidden 0 is out of range: 1 <= N <= 1048576"},
        {"--hidden=12a", "not \"12a\""},
        {"--hidden=0x10", "not \"0x10\""},
        {"--layers=0", "--layers 0"},
        {"--embed=0", "--embed 0"},
        {"--bucket=0", "--bucket 0"},
        {"--tbptt=-1", "--tbptt -1"},
        {"--windows=-1", "--windows -1"},
        {"--epochs=0", "--epochs 0 is out of range: N >= 1"},
        {"--max-updates=-1", "--max-updates -1 is out of range: N >= 0"},
        {"--seed=-1", "--seed -1 is out of range: N >= 0"},
        {"--seed=9223372036854775808", "--seed 9223372036854775808 is out of range"},
        {"--threads=0", "--threads 0"},
        {"--log-every=0", "--log-every 0"},
        {"--keep=-1", "--keep -1"},
        {"--comm-timeout=0", "--comm-timeout 0"},
        {"--cell=elman",
         "--cell must be rnn_tanh, rnn_relu, lstm or gru, not \"elman\""},
        {"--cell=LSTM", "not \"LSTM\""},
        {"--cell=lst", "not \"lst\""},
        {"--task=none", "--task must be classify"},
        {"--stream=maybe", "--stream must be auto, yes or no"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        must_say(RNND_EUSAGE, table[i].words, PARSE(table[i].argument));
}
END_TEST

START_TEST(ends_of_ranges_are_taken)
{
    must(PARSE("--seed=9223372036854775807", "--lr=5e-324", "--dropout=0",
               "--momentum=0.999", "--batch=2147483647", "--keep=0", "--max-updates=0",
               "--weight-decay=0", "--lr-patience=0"));
    ck_assert_int_eq(opt.seed, INT64_MAX);
    ck_assert(opt.lr == 5e-324);
    must(PARSE("--seed=0", "--lr=1.7976931348623157e308", "--seed", "+5"));
    ck_assert_int_eq(opt.seed, 5);
}
END_TEST

/* ---- configuration text */

static int read_text(const char *text)
{
    return rnnd__options_read_text(&opt, text, "c.ini", RNND_FROM_FILE);
}

START_TEST(text_is_read)
{
    must(read_text(
        "\xEF\xBB\xBF# a comment\n; another\n\n  hidden = 5\nlr=0.25 ; why\n"
        "\tnormalize = yes\ndata = a b.h5  \r\nvalid = \"\\x20x\\\"\\\\\\ny\"\n"
        "tie-weights = no"));
    ck_assert_int_eq(opt.hidden, 5);
    ck_assert(opt.lr == 0.25 && opt.normalize && !opt.tie_weights);
    ck_assert_str_eq(opt.data, "a b.h5");
    ck_assert_str_eq(opt.valid, " x\"\\\ny");
    ck_assert(rnnd__options_given(&opt, "hidden") &&
              !rnnd__options_given(&opt, "layers"));
}
END_TEST

START_TEST(faults_in_text_have_their_line)
{
    must_say(RNND_EUSAGE, "c.ini:2: unknown option hiden; did you mean hidden?",
             read_text("\nhiden = 5\nlayers = 0\n"));
    must_say(RNND_EUSAGE, "c.ini:3: --layers 0 is out of range",
             read_text("# x\n\nlayers = 0\nhiden = 4\n"));
    must_say(RNND_EUSAGE, "c.ini:1: --normalize must be yes or no, not \"true\"",
             read_text("normalize = true\n"));
    must_say(RNND_EUSAGE, "c.ini:1: config cannot be set in",
             read_text("config = x\n"));
    must_say(RNND_EUSAGE, "c.ini:1: help cannot be set in", read_text("help = yes\n"));
    must_say(RNND_EUSAGE, "c.ini:2: \"nonsense\" is not of the form name = value",
             read_text("lr = 1\nnonsense\n"));
    must_say(RNND_EUSAGE, "c.ini:2: sections", read_text("[model]\nlr = 1\n"));
    must_say(RNND_EUSAGE, "c.ini:1: csv is an option of predict, not of train",
             read_text("csv = 1\n"));
    must_say(RNND_EUSAGE, "c.ini:1: data: the quoted value", read_text("data = \"a\n"));
    must_say(RNND_EUSAGE, "c.ini:1: data: the quoted value",
             read_text("data = \"a\\q\"\n"));
}
END_TEST

/* The last one would win, in silence; a long line is one line all the same, and another
   text is another matter. */
START_TEST(a_name_stands_once_in_a_text)
{
    char text[1000];
    must_say(RNND_EUSAGE, "c.ini:4: lr is already set on line 2",
             read_text("# x\nlr = 1\nhidden = 4\nlr = 1\n"));
    snprintf(text, sizeof text, "data = %0600d\nlr = 1\n\n data = a\n", 0);
    must_say(RNND_EUSAGE, "c.ini:4: data is already set on line 1", read_text(text));
    must(read_text("lr = 1\nbatch = 2\nbatch-tokens = 3\n"));
    must(read_text("lr = 2\n"));
    ck_assert(opt.lr == 2);
}
END_TEST

/* A path that options have comes back from their text. */
static void comes_back(const char *path)
{
    char *text;
    must(rnnd__options_set(&opt, "data", path, RNND_FROM_FILE));
    must(rnnd__options_text(&opt, &text));
    must(rnnd__options_set(&opt, "data", "z", RNND_FROM_FILE));
    must(read_text(text));
    ck_assert_str_eq(opt.data, path);
    free(text);
}

/* inih has room for 200 characters; a path may have 4096. */
START_TEST(long_lines_are_whole)
{
    char path[4000], text[4100];
    for (size_t n = 150; n < sizeof path; n += n < 420 ? 1 : 397) {
        for (size_t i = 0; i < n; i++)
            path[i] = "abc /#defg=:"[i * 7 % 11];
        path[0] = path[n - 1] = 'x';
        path[n] = '\0';
        snprintf(text, sizeof text, "lr = 1\ndata = %s ; no\nlayers = 0\n", path);
        must_say(RNND_EUSAGE, "c.ini:3: --layers 0", read_text(text));
        ck_assert_str_eq(opt.data, path);
        opt.lr = 0.5;
        comes_back(path);
    }
}
END_TEST

/* Any byte but NUL, in any place, comes back from the record. */
START_TEST(odd_paths_are_kept)
{
    char path[] = "./?";
    for (int place = 0; place < 3; place++)
        for (int c = 1; c < 256; c++) {
            memcpy(path, "./?", 4);
            path[place] = (char)c;
            comes_back(path);
        }
}
END_TEST

/* So does any text of blanks and of what begins a comment, a name or an escape, however
   long its line gets. */
START_TEST(long_odd_paths_are_kept)
{
    static const char odd[] = "  \t\t\r\n;#=:\"\\\1\1`[ab";
    char path[4096];
    uint64_t state = 1;
    for (int round = 0; round < 2000; round++) {
        size_t n = 0;
        size_t length = 1 + (size_t)round * 2 % (sizeof path - 1);
        for (size_t run = 0; n < length; n++, run--) {
            static char c;
            state = state * 6364136223846793005u + 1442695040888963407u;
            if (run == 0) {
                run = 1 + (state >> 40) % (round % 3 ? 4 : 300);
                c = odd[(state >> 33) % (sizeof odd - 1)];
            }
            path[n] = c;
        }
        path[n] = '\0';
        comes_back(path);
    }
    /* single letters between blanks, without quotes */
    static const char *const patterns[] = {" y", "   y", "\t#", " \"=", "       ]"};
    for (size_t k = 0; k < sizeof patterns / sizeof *patterns; k++) {
        size_t n = strlen(patterns[k]);
        char text[700] = "data = x";
        for (size_t i = 8; i + n < sizeof text; i += n)
            memcpy(text + i, patterns[k], n + 1);
        must(read_text(text));
        ck_assert_str_eq(opt.data, text + 7);
    }
}
END_TEST

START_TEST(the_command_line_wins_over_the_file)
{
    make_folder();
    static const char text[] = "lr = 0.5\nhidden = 9\nbatch = 16\nnormalize = yes\n";
    make_file("c.ini", text, strlen(text));
    must(PARSE("--lr=0.25", "--config", in_folder("c.ini"), "--batch-tokens=100",
               "--no-normalize"));
    ck_assert(opt.lr == 0.25 && opt.hidden == 9 && !opt.normalize);
    ck_assert_int_eq(opt.given[OPT_hidden], RNND_FROM_FILE);
    ck_assert_int_eq(opt.given[OPT_lr], RNND_FROM_COMMAND_LINE);
    must(rnnd__options_check_early(&opt)); /* batch of the file gives way */
    must_say(RNND_EFILE, "none.ini: No such file",
             PARSE("--config", in_folder("none.ini")));
    must_fail(RNND_EFILE, PARSE("--config", in_folder(".")));
    make_file("nul.ini", "lr = 1\n\0x", 9);
    must_say(RNND_EUSAGE, "NUL", PARSE("--config", in_folder("nul.ini")));
    remove_folder();
}
END_TEST

START_TEST(batch_and_batch_tokens_exclude_each_other)
{
    must(read_text("batch-tokens = 500\n"));
    ck_assert_int_eq(opt.batch_tokens, 500);
    must(PARSE("--batch=4"));
    ck_assert_int_eq(opt.batch_tokens, 0);
    must(rnnd__options_check_early(&opt));
    must(PARSE("--batch-tokens=7"));
    must_say(RNND_EUSAGE, "--batch cannot be used with --batch-tokens",
             rnnd__options_check_early(&opt));
}
END_TEST

/* ---- laying options over others, as resume and eval do */

START_TEST(overlay_takes_what_was_given)
{
    struct rnnd_options stored;
    must(rnnd_options_init(&stored));
    must(rnnd__options_read_text(&stored, "batch = 16\nlr = 0.5\nhidden = 9\n", "s",
                                 RNND_FROM_FILE));
    must(read_text("batch-tokens = 300\n"));
    must(PARSE("--lr=0.25", "--run-dir=x"));
    must(rnnd__options_overlay(&stored, &opt));
    ck_assert(stored.lr == 0.25 && stored.hidden == 9 && stored.batch_tokens == 300);
    ck_assert_str_eq(stored.run_dir, "x");
    must(rnnd__options_check_early(&stored)); /* the stored batch gave way */

    /* and back: --batch against a stored batch-tokens */
    rnnd_options_clear(&opt);
    must(rnnd_options_init(&opt));
    must(read_text("batch = 5\n"));
    must(rnnd__options_overlay(&stored, &opt));
    ck_assert(stored.batch == 5 && stored.batch_tokens == 0);
    rnnd_options_clear(&stored);
}
END_TEST

static int note_difference(void *context, const char *name,
                           enum rnnd__option_effect effect, const char *a,
                           const char *b)
{
    char *text = context;
    sprintf(text + strlen(text), "%s %s>%s %d; ", name, a, b, (int)effect);
    return 0;
}

START_TEST(differences_are_told_with_their_effect)
{
    struct rnnd_options other;
    char text[512] = "";
    must(rnnd_options_init(&other));
    must(rnnd__options_diff(&opt, &other, note_difference, text));
    ck_assert_str_eq(text, "");
    must(PARSE("--hidden=5", "--lr=0.5", "--keep=7", "--run-dir=z", "--resume",
               "--json"));
    must(rnnd__options_diff(&other, &opt, note_difference, text));
    ck_assert_str_eq(text, "hidden 128>5 2; lr 0.001>0.5 1; keep 3>7 0; ");
    /* what has no effect in either is no difference; batch-tokens against batch is one
     */
    text[0] = '\0';
    must(PARSE("--hidden=128", "--lr=0.001", "--keep=3", "--momentum=0.5",
               "--lr-step=5", "--windows=3"));
    must(rnnd__options_diff(&other, &opt, note_difference, text));
    ck_assert_str_eq(text, "");
    must(PARSE("--batch-tokens=9", "--optimizer=sgd"));
    must(rnnd__options_diff(&other, &opt, note_difference, text));
    ck_assert_str_eq(
        text, "batch-tokens unset>9 2; optimizer adam>sgd 1; momentum 0>0.5 1; ");
    rnnd_options_clear(&other);
}
END_TEST

/* ---- the record */

START_TEST(idle_options_are_left_out)
{
    char *text;
    must(rnnd__options_text(&opt, &text));
    static const char *const absent[] = {
        "data",     "valid",        "valid-every", "batch-tokens", "task",
        "dropout",  "dropout-kind", "init",        "windows",      "stream",
        "momentum", "lr-step",      "lr-decay",    "lr-patience",  "patience",
        "threads",  "config",       "run-dir",     "resume",       "progress",
        "trace",    "json",         "help",        "csv"};
    static const char *const present[] = {
        "shuffle = epoch", "bucket = 8",  "batch = 32",       "cell = lstm",
        "embed = 256",     "pool = last", "beta1 = 0.9",      "eps = 1e-08",
        "device = auto",   "comm = auto", "precision = auto", "bidirectional = no",
        "tbptt = 0",       "seed = 1"};
    char line[64];
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        snprintf(line, sizeof line, "\n%s = ", absent[i]);
        ck_assert_msg(!strstr(text, line) && strncmp(text, line + 1, strlen(line) - 1),
                      "%s is in %s", absent[i], text);
    }
    for (size_t i = 0; i < sizeof present / sizeof *present; i++)
        ck_assert_msg(strstr(text, present[i]), "%s is not in %s", present[i], text);
    free(text);
}
END_TEST

START_TEST(what_turns_an_option_on_brings_it_in)
{
    struct {
        const char *cause, *line;
    } table[] = {
        {"--valid=v", "valid-every = 0\n"},
        {"--valid=v", "patience = 0\n"},
        {"--tbptt=5", "windows = 1\n"},
        {"--tbptt=5", "stream = auto\n"},
        {"--optimizer=sgd", "momentum = 0\n"},
        {"--layers=2", "dropout = 0\n"},
        {"--dropout-head=0.5", "dropout-kind = element\n"},
        {"--lr-schedule=step", "lr-step = 1\n"},
        {"--lr-schedule=plateau", "lr-patience = 10\n"},
        {"--lr-schedule=plateau", "lr-decay = 0.1\n"},
        {"--threads=2", "threads = 2\n"},
        {"--batch-tokens=5", "batch-tokens = 5\n"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char *before, *after;
        rnnd_options_clear(&opt);
        must(rnnd_options_init(&opt));
        must(rnnd__options_text(&opt, &before));
        must(PARSE(table[i].cause));
        must(rnnd__options_text(&opt, &after));
        ck_assert(!strstr(before, table[i].line));
        ck_assert_msg(strstr(after, table[i].line), "%s", after);
        free(before);
        free(after);
    }
    char *text;
    must(rnnd__options_text(&opt, &text)); /* with --batch-tokens */
    ck_assert_ptr_null(strstr(text, "\nbatch = "));
    free(text);
}
END_TEST

/* ---- what is refused */

START_TEST(combinations_are_refused_early)
{
    static const struct {
        const char *a, *b, *c, *words;
        int status;
    } table[] = {
        {"--batch=4", "--batch-tokens=5", "--lr=1",
         "--batch cannot be used with --batch-tokens", RNND_EUSAGE},
        {"--lr-schedule=plateau", "--lr=1", "--lr=1", "needs --valid", RNND_EUSAGE},
        {"--patience=1", "--lr=1", "--lr=1", "--patience needs --valid", RNND_EUSAGE},
        {"--tbptt=5", "--bidirectional", "--lr=1",
         "--tbptt cannot be used with --bidirectional", RNND_EUSAGE},
        {"--stream=yes", "--lr=1", "--lr=1", "--stream yes needs --tbptt", RNND_EUSAGE},
        {"--stream=yes", "--tbptt=5", "--batch-tokens=9",
         "--stream yes cannot be used with --batch-tokens", RNND_EUSAGE},
        {"--stream=yes", "--tbptt=5", "--windows=0", "--windows 0", RNND_EUSAGE},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        rnnd_options_clear(&opt);
        must(rnnd_options_init(&opt));
        must(PARSE(table[i].a, table[i].b, table[i].c));
        must_say(table[i].status, table[i].words, rnnd__options_check_early(&opt));
        must_fail(table[i].status, rnnd__options_check(&opt, RNND_LM));
    }
}
END_TEST

/* The device room knows what a CPU lacks, and the model room what data lack. */
START_TEST(combinations_are_refused_by_device_and_data)
{
    static const struct refused table[] = {
        {"--precision=tf32", "--precision tf32 is for GPUs"},
        {"--comm=nccl", "--comm nccl is for GPUs"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        rnnd_options_clear(&opt);
        must(rnnd_options_init(&opt));
        must(PARSE(table[i].argument, "--device=cpu"));
        must(rnnd__options_check(&opt, RNND_LM));
        must_say(RNND_EUSAGE, table[i].words, rnnd_backend_check(&opt));
    }
    struct rnnd_model_spec spec;
    struct rnnd_dataset_info data = {.path = "d.h5", .vocab = 5, .outputs = 5};
    rnnd_options_clear(&opt);
    must(rnnd_options_init(&opt));
    must(PARSE("--normalize"));
    for (int lm = 0; lm < 2; lm++) {
        data.task = lm ? RNND_LM : RNND_CLASSIFY;
        must_say(RNND_EUSAGE, "--normalize", rnnd_model_spec_from(&opt, &data, &spec));
    }
}
END_TEST

START_TEST(combinations_are_refused_by_task)
{
    static const struct {
        const char *a, *b, *words;
        enum rnnd_task task;
    } table[] = {
        {"--bidirectional", "--lr=1", "--bidirectional cannot be used with task lm",
         RNND_LM},
        {"--tbptt=5", "--lr=1", "--tbptt cannot be used with task classify",
         RNND_CLASSIFY},
        {"--tbptt=5", "--lr=1", "--tbptt cannot be used with task regress",
         RNND_REGRESS},
        {"--tbptt=5", "--stream=yes", "--stream yes is for task lm", RNND_TAG},
        {"--tbptt=5", "--windows=0", "--windows 0", RNND_LM},
        {"--tie-weights", "--embed=128", "--tie-weights is for task lm", RNND_TAG},
        {"--tie-weights", "--lr=1", "not 256 and 128", RNND_LM},
        {"--sparse-embedding", "--weight-decay=0.1",
         "--sparse-embedding cannot be used with --weight-decay", RNND_LM},
        {"--sparse-embedding", "--device=cuda",
         "--sparse-embedding cannot be used with --device cuda", RNND_LM},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        rnnd_options_clear(&opt);
        must(rnnd_options_init(&opt));
        must(PARSE(table[i].a, table[i].b));
        must(rnnd__options_check_early(&opt));
        must_say(RNND_EUSAGE, table[i].words, rnnd__options_check(&opt, table[i].task));
    }
}
END_TEST

START_TEST(sound_combinations_pass)
{
    must(rnnd__options_check(&opt, RNND_CLASSIFY));
    must(PARSE("--tbptt=5", "--windows=0", "--batch-tokens=9", "--stream=no"));
    must(rnnd__options_check(&opt, RNND_TAG));
    must(rnnd__options_check(&opt, RNND_LM));
    must(PARSE("--windows=2", "--microbatch-tokens=5", "--tie-weights", "--embed=128"));
    must(rnnd__options_check(&opt, RNND_LM));
    must(PARSE("--valid=v", "--lr-schedule=plateau", "--patience=3"));
    must(rnnd__options_check(&opt, RNND_LM));
    must(PARSE("--sparse-embedding"));
    must_say(RNND_EUSAGE, "--sparse-embedding cannot be used with --tie-weights",
             rnnd__options_check(&opt, RNND_LM));
    must(PARSE("--no-tie-weights", "--clip-norm=1"));
    must(rnnd__options_check(&opt, RNND_LM));
}
END_TEST

/* Standard error of a call, as text. */
static const char *said_while_checking(enum rnnd_task task)
{
    static char text[2048];
    fflush(stderr);
    int old = dup(2), pipes[2];
    ck_assert(pipe(pipes) == 0 && dup2(pipes[1], 2) == 2 && close(pipes[1]) == 0);
    int status = rnnd__options_check(&opt, task);
    fflush(stderr);
    dup2(old, 2);
    close(old);
    ssize_t n = read(pipes[0], text, sizeof text - 1); /* less than a pipe holds */
    ck_assert(n >= 0);
    text[n] = '\0';
    close(pipes[0]);
    must(status);
    return text;
}

START_TEST(options_without_effect_are_warned_of)
{
    ck_assert_str_eq(said_while_checking(RNND_CLASSIFY), "");
    must(PARSE("--dropout=0.5"));
    ck_assert_str_eq(said_while_checking(RNND_CLASSIFY),
                     "rnn_dist: warning: --dropout 0.5 has no effect with one layer\n");
    must(PARSE("--layers=2", "--momentum=0.5", "--windows=3", "--bucket=8"));
    ck_assert_str_eq(
        said_while_checking(RNND_CLASSIFY),
        "rnn_dist: warning: --windows 3 has no effect without --tbptt\n"
        "rnn_dist: warning: --momentum 0.5 has no effect without --optimizer sgd\n");
    must(PARSE("--tbptt=3", "--windows=1", "--bucket=4", "--momentum=0"));
    ck_assert_str_eq(
        said_while_checking(RNND_LM),
        "rnn_dist: warning: --bucket 4 has no effect when the data are read "
        "as a stream\n");
    must(PARSE("--stream=no"));
    ck_assert_str_eq(said_while_checking(RNND_LM), "");
}
END_TEST

/* ---- help and completion */

static char *printed(void (*print)(enum rnnd__command, FILE *),
                     enum rnnd__command command)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    print(command, out);
    fclose(out);
    return text;
}

static void complete(enum rnnd__command command, FILE *out)
{
    (void)command;
    rnnd__options_completion("ts csv", out);
}

START_TEST(every_option_is_in_help_list_and_completion)
{
    char *completion = printed(complete, 0);
    for (int bit = 0; rnnd__command_name(bit); bit++) {
        char *help = printed(rnnd__options_help, 1u << bit);
        char *list = printed(rnnd__options_list, 1u << bit);
        for (int i = 0; i < OPT_COUNT; i++) {
            const struct rnnd__option *option = &rnnd__options[i];
            char row[64], line[64], word[64];
            const char *letter = i == OPT_help      ? "-h, "
                                 : i == OPT_version ? "-V, "
                                 : i == OPT_out     ? "-o, "
                                                    : "";
            snprintf(row, sizeof row, "\n  %s--%s ", letter, option->name);
            snprintf(line, sizeof line, "%s\n", option->name);
            snprintf(word, sizeof word, "--%s ", option->name);
            bool taken = option->commands & 1u << bit;
            ck_assert_msg(!strstr(help, row) == !taken, "%s of %s", row,
                          rnnd__command_name(bit));
            if (taken)
                ck_assert(strstr(list, line) && strstr(completion, word));
        }
        for (char *end, *at = help; (end = strchr(at, '\n')); at = end + 1)
            ck_assert_msg(end - at < 80, "%.*s", (int)(end - at), at);
        free(help);
        free(list);
    }
    free(completion);
}
END_TEST

START_TEST(help_shows_defaults)
{
    char *help = printed(rnnd__options_help, RNND_CMD_TRAIN);
    ck_assert(strstr(help, "--hidden N") && strstr(help, "(default 128)"));
    ck_assert(strstr(help, "--cell rnn_tanh|rnn_relu|lstm|gru"));
    ck_assert(strstr(help, "(default lstm)") && strstr(help, "(default run)"));
    ck_assert(strstr(help, "\nOptimizer\n"));
    free(help);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("options");
    TCase *tests = tcase_create("options");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, defaults_are_those_of_the_contract);
    tcase_add_test(tests, words_are_in_the_order_of_the_enums);
    tcase_add_test(tests, words_have_numbers);
    tcase_add_test(tests, every_option_goes_there_and_back);
    tcase_add_test(tests, defaults_go_there_and_back);
    tcase_add_test(tests, the_text_reads_as_the_same_options);
    tcase_add_test(tests, doubles_keep_their_bits);
    tcase_add_test(tests, both_ways_to_write_a_value);
    tcase_add_test(tests, the_last_one_counts);
    tcase_add_test(tests, misspelt_options_are_understood);
    tcase_add_test(tests, values_are_there_or_not);
    tcase_add_test(tests, options_of_other_commands_are_named);
    tcase_add_test(tests, help_ends_the_reading);
    tcase_add_test(tests, numbers_are_held_to_their_range);
    tcase_add_test(tests, ends_of_ranges_are_taken);
    tcase_add_test(tests, text_is_read);
    tcase_add_test(tests, faults_in_text_have_their_line);
    tcase_add_test(tests, a_name_stands_once_in_a_text);
    tcase_add_test(tests, long_lines_are_whole);
    tcase_add_test(tests, long_odd_paths_are_kept);
    tcase_add_test(tests, odd_paths_are_kept);
    tcase_add_test(tests, the_command_line_wins_over_the_file);
    tcase_add_test(tests, batch_and_batch_tokens_exclude_each_other);
    tcase_add_test(tests, overlay_takes_what_was_given);
    tcase_add_test(tests, differences_are_told_with_their_effect);
    tcase_add_test(tests, idle_options_are_left_out);
    tcase_add_test(tests, what_turns_an_option_on_brings_it_in);
    tcase_add_test(tests, combinations_are_refused_early);
    tcase_add_test(tests, combinations_are_refused_by_device_and_data);
    tcase_add_test(tests, combinations_are_refused_by_task);
    tcase_add_test(tests, sound_combinations_pass);
    tcase_add_test(tests, options_without_effect_are_warned_of);
    tcase_add_test(tests, every_option_is_in_help_list_and_completion);
    tcase_add_test(tests, help_shows_defaults);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
