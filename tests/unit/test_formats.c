/*
 * test_formats.c - the readers of `pack`: what they make of small files written on the
 * spot, what they say of faulty ones, splitting and writing.
 */
#include <math.h>
#include <sys/stat.h>

#include "base/log.h"
#include "formats/text.h"
#include "hdf/hdf.h"
#include "reading.h"

#ifdef HAVE_LIBZIP
#include <zip.h>
#endif

/* ---- inputs to order */

/* Forgets what was read and which options were set. */
static void afresh(void)
{
    forget();
    rnnd_options_clear(&opt);
    must(rnnd_options_init(&opt));
}

static int read_inputs(const char *kind, const char *const *texts, int count)
{
    const struct rnnd__format *format;
    char *inputs[4], name[3] = "a";
    for (int i = 0; i < count; i++) {
        name[0] = (char)('a' + i);
        inputs[i] = (char *)make_file(name, texts[i], strlen(texts[i]));
    }
    must(rnnd__format_find(kind, &format));
    return rnnd__format_read(format, &opt, inputs, count, &got);
}

static void reads(const char *kind, const char *text)
{
    must(read_inputs(kind, &text, 1));
}

static void refuses(const char *kind, int status, const char *text, const char *why)
{
    forget();
    must_fail(status, read_inputs(kind, &text, 1));
    ck_assert_str_eq(rest_of_detail(), why);
}

#define SAME(list, type, ...)                                                  \
    do {                                                                       \
        type want[] = {__VA_ARGS__};                                           \
        ck_assert_int_eq((list).count, (int64_t)(sizeof want / sizeof *want)); \
        ck_assert_mem_eq((list).at, want, sizeof want);                        \
    } while (0)

/* Texts of a list, joined by bars. */
static void texts_are(const struct rnnd__list *list, const char *want)
{
    char all[1000] = "";
    for (int64_t i = 0; i < list->count; i++)
        strcat(strcat(all, i ? "|" : ""), ((char **)list->at)[i]);
    ck_assert_str_eq(all, want);
}

/* ---- ts */

#define HEADER "#comment\n@problemName x\n@timeStamps false\n@univariate false\n"

START_TEST(ts_cases)
{
    reads("ts", HEADER "@dimensions 2\n@classLabel true b a 10\n@data\n"
                       "1,2,3:4,5,6e-1:a\r\n\n# between\n-1:+0.5:10\n::b");
    ck_assert_int_eq(got.task, RNND_CLASSIFY);
    ck_assert_int_eq(got.inputs, 2);
    ck_assert_int_eq(got.classes, 3);
    SAME(got.offsets, int64_t, 0, 3, 4, 4);
    SAME(got.features, float, 1, 4, 2, 5, 3, 0.6f, -1, 0.5f);
    SAME(got.labels, int32_t, 1, 2, 0);
    texts_are(&got.class, "b|a|10");
    afresh();
    reads("ts", "@univariate true\n@classLabel false\n@data\n1,2\n3\n");
    ck_assert_int_eq(got.task, RNND_NO_TASK);
    SAME(got.offsets, int64_t, 0, 2, 3);
    afresh();
    reads("ts", "@targetlabel true\n@data\n1,2:3,4:0.25\n1:2:-3\n");
    ck_assert_int_eq(got.task, RNND_REGRESS);
    ck_assert_int_eq(got.inputs, 2);
    SAME(got.values, float, 0.25f, -3);
}
END_TEST

START_TEST(ts_faults)
{
#define TS(body) HEADER "@dimensions 2\n@classLabel true a b\n@data\n" body
    refuses("ts", RNND_EDATA, TS("1,2:3,4:a\n?,2:3,NaN:a\n"),
            "a:9: dimension 1, value 1: a value is missing, the first of 2 (8 values "
            "in all); --missing zero|last|indicator|mean says what stands for them");
    refuses("ts", RNND_EDATA, TS("1,2:3,1e99:a\n"),
            "a:8: dimension 2, value 2: \"1e99\" is not a finite number");
    refuses("ts", RNND_EDATA, TS("1,2:3,4x:a\n"),
            "a:8: dimension 2, value 2: \"4x\" is not a finite number");
    refuses("ts", RNND_EDATA, TS("1,2:3,?4:a\n"),
            "a:8: dimension 2, value 2: \"?4\" is not a finite number");
    refuses("ts", RNND_EDATA, TS("1,2:3,4,5:a\n"),
            "a:8: dimension 2 has 3 values, but dimension 1 has 2");
    refuses("ts", RNND_EDATA, TS("1,2:3,4:c\n"),
            "a:8: class \"c\" is not listed by @classLabel");
    refuses("ts", RNND_EDATA, TS("1,2:a\n"), "a:8: 1 dimensions, expected 2");
    refuses("ts", RNND_EDATA, TS("a\n"), "a:8: no values before the class or target");
    refuses("ts", RNND_EDATA, TS(""), "a: contains no sequences");
    refuses("ts", RNND_EDATA, "@timeStamps true\n@data\n",
            "a:1: @timeStamps true is not supported: steps must be equally spaced");
    refuses("ts", RNND_EDATA, "@classLabel true a b a\n@data\n",
            "a:1: class a is listed twice");
    refuses("ts", RNND_EDATA, "@classLabel true\n@data\n",
            "a:1: @classLabel true lists no classes");
    refuses("ts", RNND_EDATA, "@classLabel maybe\n@data\n",
            "a:1: @classLabel must be true or false");
    refuses("ts", RNND_EDATA, "@dimensions x\n@data\n",
            "a:1: @dimensions must be a positive integer");
    refuses("ts", RNND_EDATA, "1,2,3\n", "a:1: header lines must begin with @");
    refuses("ts", RNND_EDATA, "@dimensions 1\n",
            "a: not a .ts file: it has no @data line");
    refuses("ts", RNND_EDATA, "@equalLength true\n@seriesLength 3\n@data\n1,2,3\n1,2\n",
            "a:5: 2 steps, but @seriesLength is 3");
}
END_TEST

/* What is missing among the features is filled, and is no target among the others. */
START_TEST(missing_values)
{
    const float *x;
    set("missing", "last");
    reads("ts", HEADER "@dimensions 2\n@classLabel true a b\n@data\n"
                       "1,?,NaN,:NA,2,null,nan:a\n5:6:?\n?,NaN:?,?:NaN\n");
    ck_assert_int_eq(got.gaps, 2);
    SAME(got.offsets, int64_t, 0, 2, 3, 3); /* steps without any value end a case */
    SAME(got.features, float, 1, 0, 1, 2, 5, 6);
    SAME(got.labels, int32_t, 0, -1, -1);
    afresh();
    reads("ts", "@univariate true\n@targetLabel true\n@data\n1:?\n2:0.5\n3:null\n");
    x = got.values.at;
    ck_assert(isnan(x[0]) && x[1] == 0.5f && isnan(x[2]));
    afresh();
    set("sequence", "id");
    set("step-label", "c");
    set("missing", "zero");
    reads("csv", "id,x,y,c\na,1,NA,up\na,nan, NaN ,NA\na,,null,NaN\na,4,5,nan\n"
                 "a,6,7,null\na,8,9,\n");
    ck_assert_int_eq(got.gaps, 5);
    ck_assert_int_eq(got.inputs, 2);
    SAME(got.features, float, 1, 0, 0, 0, 0, 0, 4, 5, 6, 7, 8, 9);
    SAME(got.labels, int32_t, 0, -1, -1, -1, -1, -1);
    texts_are(&got.class, "up");
    afresh();
    set("sequence", "id");
    set("missing", "indicator");
    reads("csv", "id,x,y\na,1,NA\na,nan,3\nb,,4\n");
    ck_assert_int_eq(got.inputs, 4);
    SAME(got.features, float, 1, 0, 0, 1, 0, 3, 1, 0, 0, 4, 1, 0);
    texts_are(&got.feature, "x|y|x missing|y missing");
    afresh();
    set("sequence", "id");
    set("missing", "last");
    reads("csv", "id,x\na,1\na,\na,NA\nb,\nb,2\n");
    SAME(got.features, float, 1, 1, 1, 0, 2);
    afresh();
    set("sequence", "id");
    set("missing", "mean");
    reads("csv", "id,x\na,1\na,NA\n");
    x = got.features.at;
    ck_assert(got.keeps_gaps && x[0] == 1 && isnan(x[1]));
    afresh();
    set("sequence", "id");
    set("missing", "mean");
    reads("csv", "id,x\na,1\n");
    ck_assert(!got.keeps_gaps);
    afresh();
    set("sequence", "id");
    set("step-target", "u");
    reads("csv", "id,x,u\na,1,NA\na,2,NaN\na,3,0.5\na,4,null\n");
    x = got.values.at;
    ck_assert(isnan(x[0]) && isnan(x[1]) && x[2] == 0.5f && isnan(x[3]));
}
END_TEST

/* Files as public tools write them. */
START_TEST(ts_of_the_world)
{
    reads("ts", "% made by a tool\n@problemName t\n@someTag 3\n@univariate true\n"
                "@seriesLength -1\n@classLabel true Yes no 1.0 2\n@data\n% more\n"
                "1:yes\n2:NO\n3:1\n4:2.00\n5:1.0\n");
    SAME(got.labels, int32_t, 0, 1, 2, 3, 2);
    texts_are(&got.class, "Yes|no|1|2");
    afresh();
    reads("ts", "@univariate true\n@classLabel false\n@data\n1,2:\n:\n3:?\n4\n");
    ck_assert_int_eq(got.inputs, 1);
    SAME(got.offsets, int64_t, 0, 2, 2, 3, 4);
    afresh();
    reads("ts", "@classLabel false\n@data\n1,2:3,4:\n::\n5:6\n");
    ck_assert_int_eq(got.inputs, 2);
    SAME(got.features, float, 1, 3, 2, 4, 5, 6);
    refuses("ts", RNND_EDATA, "@classLabel true AB Ab\n@data\n1:AB\n2:ab\n",
            "a:4: class \"ab\" is not listed by @classLabel");
    refuses("ts", RNND_EDATA, "@classLabel true 1 1.0\n@data\n",
            "a:1: class 1 is listed twice");
}
END_TEST

START_TEST(ts_joined)
{
    const char *parts[] = {"@classLabel true a b\n@data\n1:a\n",
                           "@classLabel true a b\n@data\n2,3:b\n"};
    must(read_inputs("ts", parts, 2));
    SAME(got.offsets, int64_t, 0, 1, 3);
    SAME(got.features, float, 1, 2, 3);
    SAME(got.labels, int32_t, 0, 1);
    afresh();
    const char *other[] = {parts[0], "@classLabel true b a\n@data\n2,3:b\n"};
    must_fail(RNND_EDATA, read_inputs("ts", other, 2));
    ck_assert_ptr_nonnull(strstr(rest_of_detail(), "b: @classLabel differs from "));
    afresh();
    const char *wide[] = {parts[0], "@classLabel true a b\n@data\n2:3:b\n"};
    must_fail(RNND_EDATA, read_inputs("ts", wide, 2));
    ck_assert_str_eq(rest_of_detail(), "b:3: 2 dimensions, expected 1");
}
END_TEST

/* ---- csv */

START_TEST(csv_classify)
{
    set("sequence", "id");
    set("label", "who");
    reads("csv", "\xef\xbb\xbfid, x ,note,who,y\r\n"
                 "s1,1,hm,\"ann, or \"\"b\"\"\",4\r\n"
                 "s2,2,,z,5\r\n"
                 "\r\n"
                 "s1,3,\"two\nlines\",\"ann, or \"\"b\"\"\",6");
    ck_assert_int_eq(got.task, RNND_CLASSIFY);
    ck_assert_int_eq(got.inputs, 2);
    SAME(got.offsets, int64_t, 0, 2, 3);
    SAME(got.features, float, 1, 4, 3, 6, 2, 5);
    SAME(got.labels, int32_t, 0, 1);
    texts_are(&got.class, "ann, or \"b\"|z");
    texts_are(&got.names, "s1|s2");
}
END_TEST

START_TEST(csv_tag_and_classes)
{
    set("sequence", "id");
    set("step-label", "c");
    set("features", "y , x");
    reads("csv", "id,c,x,y,z\n1,10,1,2,word\n2,9,3,4,\n1,,5,6,\n2,10,7,8,\n");
    ck_assert_int_eq(got.task, RNND_TAG);
    SAME(got.offsets, int64_t, 0, 2, 4);
    SAME(got.features, float, 2, 1, 6, 5, 4, 3, 8, 7);
    SAME(got.labels, int32_t, 1, -1, 0, 1); /* 9 before 10: by value */
    texts_are(&got.class, "9|10");
    afresh();
    set("sequence", "id");
    set("step-label", "c");
    reads("csv", "id,c,x\n1,10,1\n2,9,3\n1,a,5\n"); /* one is a word: by bytes */
    texts_are(&got.class, "10|9|a");
    texts_are(&got.feature, "x");
    afresh();
    set("sequence", "id");
    set("label", "c");
    reads("csv", "id,c,x\n1,2,1\n2,1.0,3\n3,1,5\n4,2.00,7\n");
    SAME(got.labels, int32_t, 1, 0, 0, 1);
    texts_are(&got.class, "1|2");
}
END_TEST

START_TEST(csv_values)
{
    set("sequence", "id");
    set("target", "u,v");
    reads("csv", "u,v,id,x\n1,2,a,0\n3,,b,1\n1,2,a,2\n3,,b,3\n");
    ck_assert_int_eq(got.task, RNND_REGRESS);
    ck_assert_int_eq(got.outputs, 2);
    ck_assert_int_eq(got.values.count, 4);
    const float *v = got.values.at;
    ck_assert(v[0] == 1 && v[1] == 2 && v[2] == 3 && isnan(v[3]));
    texts_are(&got.class, "u|v");
    SAME(got.features, float, 0, 2, 1, 3);
    afresh();
    set("sequence", "id");
    set("step-target", "u");
    reads("csv", "u,id,x\n1,a,0\n3,b,1\n2,a,2\n");
    ck_assert_int_eq(got.task, RNND_REGRESS_STEPS);
    SAME(got.values, float, 1, 2, 3);
    afresh();
    set("sequence", "id");
    set("step-target", "u");
    set("task", "multilabel");
    reads("csv", "u,id,x\n1,a,0\n0,a,1\n");
    ck_assert_int_eq(got.task, RNND_MULTILABEL);
    afresh();
    set("sequence", "id");
    reads("csv", "id,x\na,0\n");
    ck_assert_int_eq(got.task, RNND_NO_TASK);
}
END_TEST

START_TEST(csv_faults)
{
#define HEAD "id,x,y,c\n"
    refuses("csv", RNND_EUSAGE, HEAD,
            "pack csv needs --sequence COLUMN, which identifies the sequence of a row, "
            "or --sequence-per-file");
    set("sequence", "id");
    set("label", "c");
    refuses("csv", RNND_EDATA, HEAD "1,2,3,a\n1,,3,a\n",
            "a:3: column x: a value is missing, the first of 1 (4 values in all); "
            "--missing zero|last|indicator|mean says what stands for them");
    refuses("csv", RNND_EDATA, HEAD "1,2,inf,a\n",
            "a:2: column y: \"inf\" is not a finite number");
    refuses("csv", RNND_EDATA, HEAD "1,2,3,a\n1,2,3,b\n",
            "a:3: column c: differs between rows of sequence \"1\"");
    refuses("csv", RNND_EDATA, HEAD "1,2,3,a\n,2,3,b\n",
            "a:3: column id: empty cell; every row needs a sequence");
    refuses("csv", RNND_EDATA, HEAD "1,2,3,a\n1,2,3\n",
            "a:3: 3 cells, but the header has 4");
    refuses("csv", RNND_EDATA, HEAD "1,2,3,a\n1,2,\"3,a\n1,2,3,a\n",
            "a:3: unterminated quoted cell");
    refuses("csv", RNND_EDATA, HEAD "1,2,\"3\"4,a\n",
            "a:2: text after the closing quote of a cell");
    refuses("csv", RNND_EDATA, HEAD "1,2,3\"4\",a\n",
            "a:2: quote inside an unquoted cell");
    refuses("csv", RNND_EDATA, "", "a: missing header line");
    refuses("csv", RNND_EDATA, HEAD, "a: no numeric column is left for the features");
    refuses("csv", RNND_EDATA, HEAD "1,2,3,\n", "column c: no cell has a value");
    set("features", "x,q");
    refuses("csv", RNND_EDATA, HEAD "1,2,3,a\n",
            "a:1: no column is named q; the columns are id, x, y, c");
    set("features", "x");
    refuses("csv", RNND_EDATA, HEAD, "a: contains no sequences");
    refuses("csv", RNND_EDATA, "id,x,x,c\n1,2,3,a\n", "a:1: two columns are named x");
    refuses("csv", RNND_EDATA, HEAD "\"1\n2\",2,3,a\n1,x,3,a\n",
            "a:4: column x: \"x\" is not a finite number");
    set("features", "x,,y");
    refuses("csv", RNND_EUSAGE, HEAD, "--features: empty column name");
    set("features", "x");
    set("target", "y");
    refuses("csv", RNND_EUSAGE, HEAD,
            "only one of --label, --step-label, --target, --step-target, "
            "--label-from-folder and --labels-from can be given");
    afresh();
    set("sequence", "id");
    set("target", "y");
    refuses("csv", RNND_EDATA, HEAD "1,2,3,a\n1,2,4,b\n",
            "a:3: column y: differs between rows of sequence \"1\"");
    set("task", "tag");
    refuses("csv", RNND_EUSAGE, HEAD,
            "--task tag does not match the given columns, which make it regress");
    afresh();
    set("sequence", "id");
    set("step-target", "y");
    set("task", "multilabel");
    refuses("csv", RNND_EDATA, HEAD "1,2,3,a\n",
            "a:2: column y: \"3\" is not a number from 0 to 1");
}
END_TEST

/* Tables as other programs write them. */
START_TEST(csv_of_the_world)
{
    set("sequence", "id");
    reads("csv", "id;x;y\na;1.5;\"2\"\nb;3;4\n");
    SAME(got.features, float, 1.5, 2, 3, 4);
    afresh();
    set("sequence", "id");
    reads("csv", "sep=|\r\nid|x,y\r\na|1\r\n");
    texts_are(&got.feature, "x,y");
    afresh();
    set("sequence", "id");
    reads("csv", "id\tx\rb\t1\rb\t2\r");
    SAME(got.features, float, 1, 2);
    afresh();
    set("sequence", "id");
    reads("csv", ",Unnamed: 0,id,n,x,t\n9,9,a,1,5,1\n8,8,a,2,4,2\n7,7,a,3,6,1\n"
                 "6,6,a,4,4,2\n5,5,a,5,4,1\n4,4,a,7,4,2\n3,3,a,8,4,1\n2,2,a,9,4,2\n"
                 "1,1,a,10,4,1\n0,0,a,11,4,2\n");
    texts_are(&got.feature, "x|t"); /* n is a row number */
    afresh();
    set("sequence", "id");
    set("features", "n");
    reads("csv", "id,n\na,1\na,2\na,3\na,4\na,5\na,6\na,7\na,8\na,9\na,10\n");
    texts_are(&got.feature, "n");
    afresh();
    set("sequence", "id");
    refuses("csv", RNND_EDATA, "id;x\na;1,5\n",
            "a:2: column x: \"1,5\" has a comma; the decimal sign of numbers must be a "
            "point");
    refuses("csv", RNND_EDATA, "id,day,x\na,2024-01-31,1\n",
            "a:2: column day: \"2024-01-31\" is a date or time, not a feature; use "
            "--features to name the columns that are");
    refuses("csv", RNND_EDATA, "id,at,x\na,12:30:05,1\n",
            "a:2: column at: \"12:30:05\" is a date or time, not a feature; use "
            "--features to name the columns that are");
    refuses("csv", RNND_EDATA, "id,when,x\na,1577836800,1\na,1577923200,2\n",
            "a: column when: values from 1577836800 to 1577923200 are time stamps, not "
            "features; use --features to name the columns that are");
    refuses("csv", RNND_EDATA, "id,x,x\na,1,2\n", "a:1: two columns are named x");
}
END_TEST

/* Work that grew with the square of the columns would take hours of this one: column k
   holds k, and in the other file, in reverse order, k + 0.5. */
START_TEST(csv_of_very_many_columns)
{
    enum { COLUMNS = 300000 };
    char *part[2];
    size_t size;
    for (int f = 0; f < 2; f++) {
        FILE *out = open_memstream(&part[f], &size);
        fputs("id", out);
        for (int k = 0; k < COLUMNS; k++)
            fprintf(out, ",x%d", f ? COLUMNS - 1 - k : k);
        fprintf(out, "\n%d", f);
        for (int k = 0; k < COLUMNS; k++)
            fprintf(out, ",%d%s", f ? COLUMNS - 1 - k : k, f ? ".5" : "");
        fputs("\n", out);
        ck_assert_int_eq(fclose(out), 0);
    }
    set("sequence", "id");
    set("step-target", "x7,x299999");
    must(read_inputs("csv", (const char *const *)part, 2));
    ck_assert_int_eq(got.inputs, COLUMNS - 2);
    SAME(got.values, float, 7, 299999, 7.5, 299999.5);
    const float *x = got.features.at;
    for (int f = 0; f < 2; f++)
        for (int i = 0; i < COLUMNS - 2; i++)
            ck_assert(*x++ == (float)(i + (i >= 7) + 0.5 * f));
    free(part[0]);
    free(part[1]);
}
END_TEST

START_TEST(csv_files_and_classes_from)
{
    const char *parts[] = {"id,x,c\n1,1,b\n2,2,c\n",
                           "c,extra,id,x\nb,hm,1,3\nb,,3,4\n"};
    set("sequence", "id");
    set("step-label", "c");
    must(read_inputs("csv", parts, 2));
    SAME(got.offsets, int64_t, 0, 2, 3, 4);
    SAME(got.features, float, 1, 3, 2, 4);
    const struct rnnd__contents *all = &got;
    const char *path = in_folder("order.h5");
    must(rnnd__contents_write(&all, &path, 1));
    afresh();
    set("sequence", "id");
    set("label", "c");
    set("classes-from", in_folder("order.h5"));
    reads("csv", "id,x,c\n1,1,c\n");
    SAME(got.labels, int32_t, 1);
    texts_are(&got.class, "b|c");
    rnnd__contents_clear(&got);
    must(rnnd__contents_init(&got));
    reads("ts", "@classLabel true c z b\n@data\n1:c\n2:b\n3:?\n");
    SAME(got.labels, int32_t, 1, 0, -1);
    texts_are(&got.class, "b|c");
    refuses("ts", RNND_EDATA, "@classLabel true c z b\n@data\n1:c\n2:z\n",
            "a: class 1 \"z\" is not a class of the data set given by --classes-from");
    refuses(
        "csv", RNND_EDATA, "id,x,c\n1,1,a\n",
        "a:2: column c: \"a\" is not a class of the data set given by --classes-from");
}
END_TEST

/* ---- text */

START_TEST(words)
{
    reads("text-words", "the cat  sat\n\n\tthe dog sat \r\nthe <unk> end");
    ck_assert_int_eq(got.task, RNND_LM);
    ck_assert_int_eq(got.vocab, 7);
    texts_are(&got.token, "<unk>|<eos>|the|sat|cat|dog|end");
    SAME(got.tokens, int32_t, 2, 4, 3, 1, 1, 2, 5, 3, 1, 2, 0, 6, 1);
    SAME(got.offsets, int64_t, 0, 4, 5, 9, 13);
    afresh();
    set("vocab-size", "4");
    set("block", "4");
    reads("text-words", "the cat  sat\n\n\tthe dog sat \r\nthe <unk> end");
    texts_are(&got.token, "<unk>|<eos>|the|sat");
    SAME(got.tokens, int32_t, 2, 0, 3, 1, 1, 2, 0, 3, 1, 2, 0, 0, 1);
    SAME(got.offsets, int64_t, 0, 4, 8, 12, 13);
    const struct rnnd__contents *all = &got;
    const char *path = in_folder("v.h5");
    must(rnnd__contents_write(&all, &path, 1));
    afresh();
    set("vocab-from", in_folder("v.h5"));
    const char *parts[] = {"sat new", "the\n"};
    must(read_inputs("text-words", parts, 2));
    ck_assert_int_eq(got.vocab, 4);
    SAME(got.tokens, int32_t, 3, 0, 1, 2, 1);
    SAME(got.offsets, int64_t, 0, 3, 5);
    refuses("text-chars", RNND_EDATA, "x\xff",
            "a:1: byte 2 of the line, 0xff, is not UTF-8, which text must be");
}
END_TEST

START_TEST(chars)
{
    reads("text-chars", "\xef\xbb\xbf"
                        "bä\n\nä𝄞\n");
    texts_are(&got.token, "<unk>|\n|ä|b|𝄞");
    SAME(got.tokens, int32_t, 3, 2, 1, 1, 2, 4, 1);
    SAME(got.offsets, int64_t, 0, 3, 4, 7);
    afresh();
    reads("text-chars", "a\nb");
    SAME(got.offsets, int64_t, 0, 2, 3);
    afresh();
    set("block", "2");
    const char *parts[] = {"ab", "cab"};
    must(read_inputs("text-chars", parts, 2));
    SAME(got.tokens, int32_t, 1, 2, 3, 1, 2);
    SAME(got.offsets, int64_t, 0, 2, 4, 5);
    afresh();
    refuses("text-chars", RNND_EDATA, "ab\na\xed\xa0\x80\n",
            "a:2: byte 2 of the line, 0xed, is not UTF-8, which text must be");
    refuses("text-chars", RNND_EDATA, "\xc0\x80",
            "a:1: byte 1 of the line, 0xc0, is not UTF-8, which text must be");
    refuses("text-chars", RNND_EDATA, "a\xe2\x82",
            "a:1: byte 2 of the line, 0xe2, is not UTF-8, which text must be");
    refuses("text-chars", RNND_EDATA, "", "a: contains no sequences");
    const struct rnnd__format *format;
    char *path = (char *)make_file("nul", "ab\nc\0d", 6);
    must(rnnd__format_find("text-chars", &format));
    must_fail(RNND_EDATA, rnnd__format_read(format, &opt, &path, 1, &got));
    ck_assert_str_eq(rest_of_detail(),
                     "nul:2: not a text file: it contains a NUL byte");
}
END_TEST

/* Text as other systems write it: compressed, with other line ends, not as UTF-8. */
START_TEST(text_of_the_world)
{
    /* two members, "the cat\n" and "sat" */
    static const char packed[] =
        "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x2b\xc9\x48\x55\x48\x4e"
        "\x2c\xe1\x02\x00\x7a\x5f\x99\xa7\x08\x00\x00\x00\x1f\x8b\x08\x00"
        "\x00\x00\x00\x00\x02\x03\x2b\x4e\x2c\x01\x00\xd8\xe0\x78\x82\x03"
        "\x00\x00\x00";
    const struct rnnd__format *format;
    char *path = (char *)make_file("t.gz", packed, sizeof packed - 1);
    must(rnnd__format_find("text-words", &format));
    must(rnnd__format_read(format, &opt, &path, 1, &got));
    texts_are(&got.token, "<unk>|<eos>|the|cat|sat");
    SAME(got.offsets, int64_t, 0, 3, 5);
    afresh();
    path = (char *)make_file("t.gz", packed, sizeof packed - 9);
    must_fail(RNND_EDATA, rnnd__format_read(format, &opt, &path, 1, &got));
    ck_assert_str_eq(rest_of_detail(), "t.gz: cannot be decompressed: truncated");
    afresh();
    reads("text-words", "a b\rc\r\nd");
    SAME(got.offsets, int64_t, 0, 3, 5, 7);
    afresh();
    reads("text-chars", "a\rb");
    texts_are(&got.token, "<unk>|a|\n|b");
    SAME(got.offsets, int64_t, 0, 2, 3);
#define NOT_UTF8 "a:2: byte 2 of the line, 0xe9, is not UTF-8, which text must be"
    refuses("text-words", RNND_EDATA, "x\nm\xe9t\n", NOT_UTF8);
    refuses("ts", RNND_EDATA, "@classLabel true a\n#\xe9\n", NOT_UTF8);
    set("sequence", "id");
    refuses("csv", RNND_EDATA, "id,x\na\xe9,1\n", NOT_UTF8);
}
END_TEST

START_TEST(vocabularies_that_do_not_serve)
{
    struct rnnd__hdf *file;
    const char *text[] = {"<unk>", "a", "a"};
    must(rnnd__hdf_create(in_folder("v.h5"), &file));
    must(rnnd__hdf_write_strings(file, "/vocab", text, 3));
    must(rnnd__hdf_commit(file));
    set("vocab-from", in_folder("v.h5"));
    refuses("text-chars", RNND_EDATA, "a", "v.h5: /vocab[2] = \"a\" repeats /vocab[1]");
    must(rnnd__hdf_create(in_folder("v.h5"), &file));
    must(rnnd__hdf_write_strings(file, "/vocab", text, 2));
    must(rnnd__hdf_commit(file));
    refuses("text-words", RNND_EDATA, "a", "v.h5: /vocab has no <eos>");
    must(rnnd__hdf_create(in_folder("v.h5"), &file));
    must(rnnd__hdf_commit(file));
    refuses("text-words", RNND_EDATA, "a", "v.h5: /vocab: missing");
    const char *latin[] = {"<unk>", "caf\xe9"};
    must(rnnd__hdf_create(in_folder("v.h5"), &file));
    must(rnnd__hdf_write_strings(file, "/vocab", latin, 2));
    must(rnnd__hdf_write_strings(file, "/classes", latin, 2));
    must(rnnd__hdf_commit(file));
    refuses("text-chars", RNND_EDATA, "a", "v.h5: /vocab[1] is not UTF-8");
    afresh();
    set("classes-from", in_folder("v.h5"));
    refuses("ts", RNND_EDATA, "@classLabel true a\n@data\n1:a\n",
            "v.h5: /classes[1] is not UTF-8");
    set("sequence", "id");
    set("label", "c");
    refuses("csv", RNND_EDATA, "id,x,c\n1,2,a\n", "v.h5: /classes[1] is not UTF-8");
}
END_TEST

/* ---- music */

START_TEST(music)
{
    set("part", "two");
    reads("music-json",
          "{\"one\": [], \"two\": [[[21.0, 108], [-1], [60, -1.0]], [[22]]]}");
    ck_assert_int_eq(got.task, RNND_MULTILABEL);
    SAME(got.offsets, int64_t, 0, 2, 2);
    const float *x = got.features.at, *y = got.values.at;
    ck_assert_int_eq(got.features.count, 2 * 88);
    for (int i = 0; i < 88; i++) {
        ck_assert(x[i] == (i == 0 || i == 87));
        ck_assert(x[88 + i] == 0 && y[i] == 0);
        ck_assert(y[88 + i] == (i == 60 - 21));
    }
    refuses("music-json", RNND_EDATA, "{\"two\": [[[21], [20]]]}",
            "a: two[0][1][0] = 20: notes must be from 21 to 108");
    refuses("music-json", RNND_EDATA, "{\"two\": [[[21], [60.5]]]}",
            "a: two[0][1][0]: a note must be an integer");
    refuses("music-json", RNND_EDATA, "{\"two\": [[21]]}",
            "a: two[0][0]: a step must be a list of notes");
    refuses("music-json", RNND_EDATA, "{\"two\": [3]}",
            "a: two[0]: a piece must be a list of steps");
    refuses("music-json", RNND_EDATA, "{\"two\": 3}", "a: two: not a list of pieces");
    refuses("music-json", RNND_EDATA, "{\"one\": [], \"three\": []}",
            "a: no part is named two; parts: one, three");
    refuses("music-json", RNND_EDATA, "{}", "a: no part is named two; parts: none");
    refuses("music-json", RNND_EDATA, "[]", "a: not a JSON object of lists of pieces");
    must_fail(RNND_EDATA,
              read_inputs("music-json", &(const char *){"{\"two\":\n[,"}, 1));
    ck_assert_ptr_nonnull(strstr(rest_of_detail(), "a:2: column 2: "));
    afresh();
    refuses("music-json", RNND_EUSAGE, "{\"one\": [], \"two\": []}",
            "a: use --part NAME to select a part; parts: one, two");
    refuses("music-json", RNND_EDATA, "{}", "a: contains no parts");
    reads("music-json", "{\"one\": [[[21], [22]]]}");
    SAME(got.offsets, int64_t, 0, 1);
}
END_TEST

/* ---- npz */

#ifdef HAVE_LIBZIP

/* One array: its name, NumPy's type, its shape as Python writes it, its bytes. */
struct member {
    const char *name, *type, *shape;
    const void *data;
    size_t bytes;
    bool columns;
};

static char *make_npz(const char *name, const struct member *members, int count,
                      bool deflated)
{
    int code;
    zip_t *zip = zip_open(in_folder(name), ZIP_CREATE | ZIP_TRUNCATE, &code);
    ck_assert_ptr_nonnull(zip);
    for (int i = 0; i < count; i++) {
        const struct member *m = &members[i];
        char head[200], path[40], *all;
        int n = snprintf(head + 10, 180,
                         "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }\n",
                         m->type, m->columns ? "True" : "False", m->shape);
        memcpy(head, "\x93NUMPY\1\0", 8);
        head[8] = (char)n;
        head[9] = 0;
        all = malloc((size_t)n + 10 + m->bytes);
        memcpy(all, head, (size_t)n + 10);
        memcpy(all + n + 10, m->data, m->bytes);
        snprintf(path, sizeof path, "%s.npy", m->name);
        zip_source_t *source =
            zip_source_buffer(zip, all, (size_t)n + 10 + m->bytes, 1);
        zip_int64_t index = zip_file_add(zip, path, source, ZIP_FL_OVERWRITE);
        ck_assert_int_ge(index, 0);
        zip_set_file_compression(zip, (zip_uint64_t)index,
                                 deflated ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0);
    }
    ck_assert_int_eq(zip_close(zip), 0);
    return (char *)in_folder(name);
}

/* clang-format off */
#define MEMBER(name, type, shape, c, ...)                                            \
    {name, type, shape, (c[]){__VA_ARGS__}, sizeof((c[]){__VA_ARGS__}), false}
/* clang-format on */

static int read_npz(const struct member *members, int count)
{
    const struct rnnd__format *format;
    char *path = make_npz("a.npz", members, count, false);
    rnnd__contents_clear(&got);
    must(rnnd__contents_init(&got));
    must(rnnd__format_find("npz", &format));
    return rnnd__format_read(format, &opt, &path, 1, &got);
}

START_TEST(npz)
{
    struct member features[] = {
        MEMBER("inputs", "<f8", "(3, 2)", double, 1, 4, 2, 5, 3, 6),
        MEMBER("lengths", "|u1", "(2,)", uint8_t, 1, 2),
        MEMBER("targets", ">i2", "(2,)", uint8_t, 0, 4, 255, 255),
        MEMBER("num_classes", "<i8", "()", int64_t, 7),
    };
    features[0].columns = true; /* 1 4 2 | 5 3 6 are the columns */
    must(read_npz(features, 4));
    ck_assert_int_eq(got.task, RNND_CLASSIFY);
    ck_assert_int_eq(got.classes, 7);
    SAME(got.offsets, int64_t, 0, 1, 3);
    SAME(got.features, float, 1, 5, 4, 3, 2, 6);
    SAME(got.labels, int32_t, 4, -1);
    must(read_npz(features, 3));
    ck_assert_int_eq(got.classes, 5);

    struct member tokens[] = {
        MEMBER("inputs", "<u8", "(3,)", uint64_t, 1, 0, 6),
        MEMBER("offsets", "<i4", "(3,)", int32_t, 0, 3, 3),
    };
    must(read_npz(tokens, 2));
    ck_assert_int_eq(got.task, RNND_NO_TASK);
    ck_assert_int_eq(got.vocab, 7);
    SAME(got.tokens, int32_t, 1, 0, 6);
    SAME(got.offsets, int64_t, 0, 3, 3);
    set("task", "lm");
    must(read_npz(tokens, 2));
    ck_assert_int_eq(got.task, RNND_LM);
    afresh();

    struct member steps[] = {
        MEMBER("inputs", "<f2", "(3, 1)", uint16_t, 0x3c00, 0xb800, 0x0001),
        MEMBER("lengths", "<i8", "(1,)", int64_t, 3),
        MEMBER("targets", "|b1", "(3, 2)", uint8_t, 1, 0, 0, 1, 1, 1),
    };
    must(read_npz(steps, 3));
    ck_assert_int_eq(got.task, RNND_MULTILABEL);
    SAME(got.features, float, 1, -0.5f, 0x1p-24f);
    SAME(got.values, float, 1, 0, 0, 1, 1, 1);

    struct member hot[] = {
        MEMBER("inputs", "<f4", "(3, 1)", float, 1, 2, 3),
        MEMBER("lengths", "<i8", "(2,)", int64_t, 1, 2),
        MEMBER("targets", "<i4", "(2, 3)", int32_t, 0, 0, 1, 0, 1, 0),
    };
    must(read_npz(hot, 3));
    ck_assert_int_eq(got.task, RNND_CLASSIFY);
    ck_assert_int_eq(got.classes, 3);
    SAME(got.labels, int32_t, 2, 1);
    hot[2] = (struct member)MEMBER("targets", "<i8", "(2, 1)", int64_t, 4, 0);
    must(read_npz(hot, 3));
    SAME(got.labels, int32_t, 4, 0);
    set("task", "regress");
    must(read_npz(hot, 3));
    SAME(got.values, float, 4, 0);

    const struct rnnd__format *format;
    char *two[] = {make_npz("x.npz", tokens, 2, true),
                   make_npz("y.npz", tokens, 2, true)};
    must(rnnd__format_find("npz", &format));
    afresh();
    must(rnnd__format_read(format, &opt, two, 2, &got));
    SAME(got.offsets, int64_t, 0, 3, 3, 6, 6);
}
END_TEST

/* Strings of two files follow one another; a split moves them with their sequences. */
START_TEST(npz_strings)
{
    struct member strings[] = {
        MEMBER("inputs", "<f4", "(3, 1)", float, 1, 2, 3),
        MEMBER("lengths", "<i8", "(3,)", int64_t, 1, 0, 2),
        MEMBER("labels", "<i4", "(4,)", int32_t, 2, 0, 1, 1),
        MEMBER("label_offsets", "<i8", "(4,)", int64_t, 0, 1, 1, 4),
        MEMBER("num_classes", "<i8", "()", int64_t, 4),
    };
    const struct rnnd__format *format;
    char *two[] = {make_npz("x.npz", strings, 5, true),
                   make_npz("y.npz", strings, 5, true)};
    struct rnnd__contents rest;
    must(rnnd__format_find("npz", &format));
    afresh();
    must(rnnd__format_read(format, &opt, two, 2, &got));
    ck_assert_int_eq(got.task, RNND_CTC);
    ck_assert_int_eq(got.classes, 4);
    SAME(got.labels, int32_t, 2, 0, 1, 1, 2, 0, 1, 1);
    SAME(got.string_offsets, int64_t, 0, 1, 1, 4, 5, 5, 8);
    must(rnnd__contents_init(&rest));
    must(rnnd__contents_split(&got, 0.5, 1, &rest));
    for (int half = 0; half < 2; half++) {
        const struct rnnd__contents *c = half ? &rest : &got;
        const int64_t *at = c->offsets.at, *string = c->string_offsets.at;
        ck_assert_int_eq(c->string_offsets.count, 4);
        for (int i = 0; i < 3; i++) /* 1 label of 1 step, 0 of 0, 3 of 2 */
            ck_assert_int_eq(string[i + 1] - string[i],
                             at[i + 1] - at[i] + (at[i + 1] - at[i] == 2));
    }
    rnnd__contents_clear(&rest);
}
END_TEST

START_TEST(npz_faults)
{
#define NPZ(status, why, ...)                                                   \
    do {                                                                        \
        struct member members[] = {__VA_ARGS__};                                \
        must_fail(status, read_npz(members, sizeof members / sizeof *members)); \
        ck_assert_str_eq(rest_of_detail(), why);                                \
    } while (0)
#define X MEMBER("inputs", "<f4", "(3, 2)", float, 1, 2, 3, 4, 5, 6)
#define L MEMBER("lengths", "<i4", "(2,)", int32_t, 1, 2)
    NPZ(RNND_EDATA, "a.npz: has no array named inputs", L);
    NPZ(RNND_EDATA, "a.npz: has no array named offsets or lengths", X);
    NPZ(RNND_EDATA,
        "a.npz: inputs[1, 1]: a value is missing, the first of 1 (6 values in all); "
        "--missing zero|last|indicator|mean says what stands for them",
        L, MEMBER("inputs", "<f4", "(3, 2)", float, 1, 2, 3, NAN, 5, 6));
    NPZ(RNND_EDATA, "a.npz: inputs[0, 1] = 1e+39: not a finite 32-bit float", L,
        MEMBER("inputs", "<f8", "(3, 2)", double, 1, 1e39, 3, 4, 5, 6));
    NPZ(RNND_EDATA, "a.npz: inputs[2] = -1: token ids must be integers from 0", L,
        MEMBER("inputs", "<i4", "(3,)", int32_t, 1, 2, -1));
    NPZ(RNND_EDATA,
        "a.npz: lengths[1] = 3: the sequence ends after the last step of inputs", X,
        MEMBER("lengths", "<i4", "(2,)", int32_t, 1, 3));
    NPZ(RNND_EDATA, "a.npz: lengths[1] = -1: lengths must not be negative", X,
        MEMBER("lengths", "<i4", "(2,)", int32_t, 1, -1));
    NPZ(RNND_EDATA, "a.npz: offsets[2] = 1: offsets must not decrease", X,
        MEMBER("offsets", "<i4", "(4,)", int32_t, 0, 2, 1, 3));
    NPZ(RNND_EDATA,
        "a.npz: offsets[0] = 1: offsets and lengths must be integers, the first "
        "offset 0",
        X, MEMBER("offsets", "<i4", "(2,)", int32_t, 1, 3));
    NPZ(RNND_EDATA, "a.npz: offsets end at step 2, but inputs has 3 steps", X,
        MEMBER("offsets", "<i4", "(2,)", int32_t, 0, 2));
    NPZ(RNND_EDATA, "a.npz: inputs: element type '<U3' is not supported", L,
        MEMBER("inputs", "<U3", "(3, 2)", float, 1, 2, 3, 4, 5, 6));
    NPZ(RNND_EDATA, "a.npz: inputs: truncated: 24 bytes, but 8 elements of 4 bytes", L,
        MEMBER("inputs", "<f4", "(4, 2)", float, 1, 2, 3, 4, 5, 6));
    NPZ(RNND_EDATA,
        "a.npz: targets[1] = -2: labels must be integers from 0, or -1 = ignored", X, L,
        MEMBER("targets", "<i4", "(2,)", int32_t, 0, -2));
    NPZ(RNND_EDATA, "num_classes is 3, but 3 occurs", X, L,
        MEMBER("targets", "<i4", "(2,)", int32_t, 0, 3),
        MEMBER("num_classes", "<i4", "()", int32_t, 3));
    NPZ(RNND_EUSAGE, "a.npz: the shape of targets does not show the task; use --task",
        X, L, MEMBER("targets", "<i4", "(4,)", int32_t, 0, 1, 2, 3));
#define S MEMBER("labels", "<i4", "(2,)", int32_t, 0, 1)
    NPZ(RNND_EDATA, "a.npz: has no array named label_offsets, which task ctc needs", X,
        L, S);
    NPZ(RNND_EDATA,
        "a.npz: label_offsets has 2 values, expected 3: one more than sequences", X, L,
        S, MEMBER("label_offsets", "<i4", "(2,)", int32_t, 0, 2));
    NPZ(RNND_EDATA,
        "a.npz: label_offsets[1] = -1: offsets must be integers that do not decrease, "
        "the first one 0",
        X, L, S, MEMBER("label_offsets", "<i4", "(3,)", int32_t, 0, -1, 2));
    NPZ(RNND_EDATA,
        "a.npz: label_offsets[2] = 1: the last offset must be the number of labels, "
        "and no other may be larger",
        X, L, S, MEMBER("label_offsets", "<i4", "(3,)", int32_t, 0, 1, 1));
    NPZ(RNND_EDATA, "a.npz: labels[1] = -1: labels must be integers from 0", X, L,
        MEMBER("labels", "<i4", "(2,)", int32_t, 0, -1),
        MEMBER("label_offsets", "<i4", "(3,)", int32_t, 0, 1, 2));
    NPZ(RNND_EUSAGE,
        "a.npz: has targets as well as labels; use --task to say which to take", X, L,
        S, MEMBER("targets", "<i4", "(2,)", int32_t, 0, 1));
    set("task", "tag");
    NPZ(RNND_EDATA, "a.npz: targets has 2 rows, but task tag needs 3", X, L,
        MEMBER("targets", "<i4", "(2,)", int32_t, 0, 1));
    NPZ(RNND_EDATA, "a.npz: has no array named targets, which task tag needs", X, L);
    set("task", "multilabel");
    NPZ(RNND_EDATA, "a.npz: targets[2, 0] = 2: multilabel targets must be from 0 to 1",
        X, L, MEMBER("targets", "<f4", "(3, 1)", float, 0, 1, 2));
    set("task", "lm");
    NPZ(RNND_EDATA, "a.npz: inputs are features, but task lm needs token ids", X, L);
    const struct rnnd__format *format;
    char *path = (char *)make_file("a", "no zip", 6);
    must(rnnd__format_find("npz", &format));
    must_fail(RNND_EDATA, rnnd__format_read(format, &opt, &path, 1, &got));
    ck_assert_str_eq(rest_of_detail(), "a: not a valid .npz (ZIP) file");
    path = (char *)in_folder("none");
    must_fail(RNND_EFILE, rnnd__format_read(format, &opt, &path, 1, &got));
    ck_assert_str_eq(rest_of_detail(), "none: No such file or directory");
    struct member members[] = {X, L};
    path = make_npz("a.npz", members, 2, false);
    flip_where("a.npz", &(float){5}, sizeof(float));
    must_fail(RNND_EDATA, rnnd__format_read(format, &opt, &path, 1, &got));
    ck_assert_str_eq(rest_of_detail(), "a.npz: inputs: cannot be decompressed");
}
END_TEST

#endif

/* ---- integers that a 32-bit float cannot hold: a warning of the first */

START_TEST(rounded_integers)
{
    float value = 16777216;
    static const struct {
        const char *text;
        bool rounded;
    } of[] = {{"16777217", true},    {" -16777217.0 ", true},
              {"16777216", false},   {"16777218", false},
              {"16777217.5", false}, {"1.6777217e7", false},
              {"1577836801", true},  {"1577836800", false},
              {"3", false},          {"9007199254740993", true}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        size_t n = strlen(of[i].text);
        ck_assert_int_eq(rnnd__text_number(of[i].text, n, &value), RNND_FIELD_NUMBER);
        ck_assert_msg(rnnd__text_is_rounded(of[i].text, n, value) == of[i].rounded,
                      "%s", of[i].text);
    }
    reads("ts", "@univariate true\n@classLabel false\n@data\n16777216,5\n");
    ck_assert(!got.rounded);
    afresh();
    reads("ts", "@univariate true\n@classLabel false\n@data\n16777217,5\n");
    ck_assert(got.rounded);
    afresh();
    set("sequence", "id");
    reads("csv", "id,x\na,16777217\n");
    ck_assert(got.rounded);
#ifdef HAVE_LIBZIP
    static const int64_t ends[] = {16777216, INT64_C(1) << 60, 16777217, -16777217,
                                   (INT64_C(1) << 60) + 1};
    for (int i = 0; i < 5; i++) {
        struct member members[] = {MEMBER("inputs", "<i8", "(1, 1)", int64_t, ends[i]),
                                   MEMBER("lengths", "<i4", "(1,)", int32_t, 1)};
        afresh();
        must(read_npz(members, 2));
        ck_assert_int_eq(got.rounded, i > 1);
    }
#endif
}
END_TEST

/* ---- inputs that are damaged */

static uint64_t state = 1;

static uint64_t draw(uint64_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
}

/* Some bytes become others, pieces go or come twice; any status is right, a crash or
   what a sanitizer finds is not. */
static void mutate(const char *kind, const char *text, size_t size)
{
    int rounds = getenv("LONG") ? 20000 : 500;
    const struct rnnd__format *format;
    char *bytes = malloc(2 * size);
    must(rnnd__format_find(kind, &format));
    for (int k = 0; k < rounds; k++) {
        size_t n = size;
        memcpy(bytes, text, size);
        for (uint64_t changes = 1 + draw(4); changes > 0; changes--) {
            size_t at = draw(n), length = draw(n - at) + 1;
            if (draw(3) == 0 && n + length <= 2 * size) {
                memmove(bytes + at + length, bytes + at, n - at);
                n += length;
            } else if (draw(3) == 0 && n > length) {
                memmove(bytes + at, bytes + at + length, n - at - length);
                n -= length;
            } else {
                bytes[at] = draw(2) ? text[draw(size)] : (char)draw(256);
            }
        }
        char *path = (char *)make_file("mutant", bytes, n);
        rnnd__contents_clear(&got);
        must(rnnd__contents_init(&got));
        (void)!rnnd__format_read(format, &opt, &path, 1, &got);
    }
    free(bytes);
}

START_TEST(mutants)
{
    static const struct {
        const char *kind, *text;
    } of[] = {
        {"ts",
         HEADER "@dimensions 2\n@classLabel true b a\n@data\n1,2:4,0.6e-1:a\n1:2:b\n"},
        {"csv", "id,x,\"note, 1\",c\r\na,1,\"q \"\"z\"\"\",u\nb,2,,v\na,-3e2,w,u\n"},
        {"text-words", "the cat\tsat \xc3\xa4\n\nthe <unk>"},
        {"text-chars", "b\xc3\xa4\n\xf0\x9d\x84\x9e a\n"},
        {"music-json", "{\"one\": [[[21, 108], [], [60]], [[22]]]}"},
    };
    rnnd__log_rank(1, 2); /* only rank 0 warns */
    set("sequence", "id");
    set("label", "c");
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        mutate(of[i].kind, of[i].text, strlen(of[i].text));
    rnnd_options_clear(&opt);
    must(rnnd_options_init(&opt));
    set("sequence-per-file", "yes");
    mutate("csv", of[1].text, strlen(of[1].text));
#ifdef HAVE_LIBZIP
    struct member members[] = {
        MEMBER("inputs", "<f4", "(3, 2)", float, 1, 4, 2, 5, 3, 6),
        MEMBER("lengths", "<i4", "(2,)", int32_t, 1, 2),
        MEMBER("targets", "<i8", "(2,)", int64_t, 0, 1),
    };
    char bytes[4096];
    FILE *file = fopen(make_npz("whole.npz", members, 3, false), "rb");
    size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    mutate("npz", bytes, n);
#endif
    rnnd__log_rank(0, 1);
}
END_TEST

/* ---- kinds, splitting, writing */

START_TEST(kinds)
{
    const struct rnnd__format *format;
    must_fail(RNND_EUSAGE, rnnd__format_find("text-word", &format));
    ck_assert_str_eq(rest_of_detail(),
                     "pack: unknown kind text-word; did you mean text-words?");
    must_fail(RNND_EUSAGE, rnnd__format_find("???", &format));
    ck_assert_str_eq(rest_of_detail(),
                     "pack: unknown kind ???; known kinds: ts, csv, npz, text-words, "
                     "text-chars, music-json, kaldi");
    char *none = (char *)in_folder("none");
    must(rnnd__format_find("ts", &format));
    must_fail(RNND_EFILE, rnnd__format_read(format, &opt, &none, 1, &got));
    ck_assert_str_eq(rest_of_detail(), "none: No such file or directory");
}
END_TEST

/* Sequence i has i steps of value i and label i % 2. */
static void fill(int n)
{
    got.task = RNND_CLASSIFY;
    got.inputs = 1;
    got.classes = 2;
    for (int i = 0; i < n; i++) {
        char name[16];
        int length = snprintf(name, sizeof name, "s%d", i);
        for (int t = 0; t < i; t++)
            must(rnnd__list_add(&got.features, &(float){(float)i}, 1));
        must(rnnd__list_add(&got.labels, &(int32_t){i % 2}, 1));
        must(rnnd__list_add_text(&got.names, name, (size_t)length));
        must(rnnd__contents_end_sequence(&got));
    }
    must(rnnd__list_add_text(&got.class, "even", 4));
    must(rnnd__list_add_text(&got.class, "odd", 3));
}

/* A part of fill(): marks which sequences it holds; order and contents are kept. */
static void check_part(const struct rnnd__contents *c, bool *seen)
{
    const int64_t *at = c->offsets.at;
    int last = -1;
    for (int64_t i = 0; i < rnnd__contents_sequences(c); i++) {
        int id = atoi(((char **)c->names.at)[i] + 1);
        ck_assert_int_gt(id, last);
        ck_assert_int_eq(at[i + 1] - at[i], id);
        ck_assert_int_eq(((int32_t *)c->labels.at)[i], id % 2);
        for (int64_t t = at[i]; t < at[i + 1]; t++)
            ck_assert(((float *)c->features.at)[t] == (float)id);
        ck_assert(!seen[id]);
        seen[id] = true;
        last = id;
    }
    texts_are(&c->class, "even|odd");
}

START_TEST(split)
{
    enum { N = 100 };
    uint64_t drawn[3];
    for (int k = 0; k < 3; k++) {
        struct rnnd__contents rest;
        bool seen[N] = {false};
        afresh();
        fill(N);
        must(rnnd__contents_init(&rest));
        must(rnnd__contents_split(&got, 0.2, k == 2 ? 8 : 7, &rest));
        ck_assert_int_eq(rnnd__contents_sequences(&rest), 20);
        ck_assert_int_eq(rnnd__contents_sequences(&got), 80);
        check_part(&rest, seen);
        drawn[k] = 0;
        for (int i = 0; i < 64; i++)
            drawn[k] |= (uint64_t)seen[i] << i;
        check_part(&got, seen);
        rnnd__contents_clear(&rest);
    }
    ck_assert_uint_eq(drawn[0], drawn[1]);
    ck_assert_uint_ne(drawn[0], drawn[2]);
    for (int k = 0; k < 2; k++) { /* at least one on each side */
        struct rnnd__contents rest;
        afresh();
        fill(3);
        must(rnnd__contents_init(&rest));
        must(rnnd__contents_split(&got, k ? 0.99 : 0.01, 1, &rest));
        ck_assert_int_eq(rnnd__contents_sequences(&rest), k ? 2 : 1);
        rnnd__contents_clear(&rest);
    }
    struct rnnd__contents rest;
    afresh();
    fill(1);
    must(rnnd__contents_init(&rest));
    must_fail(RNND_EDATA, rnnd__contents_split(&got, 0.5, 1, &rest));
    rnnd__contents_clear(&rest);
}
END_TEST

START_TEST(written_and_opened)
{
    const struct rnnd__contents *both[] = {&got, &got};
    const char *paths[] = {in_folder("x.h5"), in_folder("y.h5")};
    struct rnnd_dataset *data;
    fill(4);
    must(rnnd__contents_write(both, paths, 2));
    for (int i = 0; i < 2; i++) {
        float x[6];
        must(rnnd_dataset_open(paths[i], &data));
        ck_assert_int_eq(rnnd_dataset_info(data)->sequences, 4);
        ck_assert_int_eq(rnnd_dataset_info(data)->targets, 4);
        must(rnnd_dataset_inputs(data, 0, 6, x));
        ck_assert_mem_eq(x, ((float[]){1, 2, 2, 3, 3, 3}), sizeof x);
        ck_assert_str_eq(rnnd_dataset_class(data, 1), "odd");
        ck_assert_str_eq(rnnd_dataset_name(data, 3), "s3");
        rnnd_dataset_close(data);
    }
    paths[0] = in_folder("new.h5");
    paths[1] = in_folder("no/such.h5");
    must_fail(RNND_EFILE, rnnd__contents_write(both, paths, 2));
    ck_assert_int_eq(count_files("new"), 0); /* none without the other */
}
END_TEST

START_TEST(answers_are_bytes)
{
    struct rnnd__hdf *file;
    struct rnnd__hdf_shape shape;
    const struct rnnd__contents *all = &got;
    const char *path = in_folder("x.h5");
    for (int k = 0; k < 2; k++) {
        uint8_t byte[2];
        float value[2];
        afresh();
        set("sequence", "id");
        set("step-target", "u");
        set("task", "multilabel");
        reads("csv", k ? "u,id,x\n1,a,0\n0.5,a,1\n" : "u,id,x\n1,a,0\n0,a,1\n");
        must(rnnd__contents_write(&all, &path, 1));
        must(rnnd__hdf_open(path, &file));
        must(rnnd__hdf_shape(file, "/targets", &shape));
        ck_assert_int_eq(shape.kind, k ? RNND_HDF_FLOAT : RNND_HDF_INT);
        if (k)
            must(rnnd__hdf_read(file, "/targets", 0, 2, RNND_F32, value));
        else
            must(rnnd__hdf_read(file, "/targets", 0, 2, RNND_U8, byte));
        ck_assert(k ? value[0] == 1 && value[1] == 0.5f : byte[0] == 1 && byte[1] == 0);
        rnnd__hdf_close(file);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("formats");
    TCase *t = tcase_create("formats");
    tcase_set_timeout(t, 300);
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, ts_cases);
    tcase_add_test(t, ts_faults);
    tcase_add_test(t, missing_values);
    tcase_add_test(t, ts_of_the_world);
    tcase_add_test(t, ts_joined);
    tcase_add_test(t, csv_classify);
    tcase_add_test(t, csv_tag_and_classes);
    tcase_add_test(t, csv_values);
    tcase_add_test(t, csv_faults);
    tcase_add_test(t, csv_of_the_world);
    tcase_add_test(t, csv_of_very_many_columns);
    tcase_add_test(t, csv_files_and_classes_from);
    tcase_add_test(t, words);
    tcase_add_test(t, chars);
    tcase_add_test(t, text_of_the_world);
    tcase_add_test(t, vocabularies_that_do_not_serve);
    tcase_add_test(t, music);
#ifdef HAVE_LIBZIP
    tcase_add_test(t, npz);
    tcase_add_test(t, npz_strings);
    tcase_add_test(t, npz_faults);
#endif
    tcase_add_test(t, rounded_integers);
    tcase_add_test(t, mutants);
    tcase_add_test(t, kinds);
    tcase_add_test(t, split);
    tcase_add_test(t, written_and_opened);
    tcase_add_test(t, answers_are_bytes);
    suite_add_tcase(s, t);
    return run_suite(s);
}
