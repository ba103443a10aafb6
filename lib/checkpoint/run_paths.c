/*
 * run_paths.c - where the data of a run are, absolute and relative to the run
 * directory, so that a run resumed from another working directory, or after both were
 * moved together, finds them.
 *
 * The file `paths` of a run directory has three lines for each path: as it was given,
 * absolute, and relative to the run directory. It is no part of a checkpoint, which may
 * be published without telling where it was made.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/list.h"
#include "base/status.h"
#include "checkpoint/run_dir.h"

static const char file_name[] = "paths";

/* ---- writing */

/* The absolute path of a file, of which the last part may be a link. NULL if its folder
   is not there. malloc'ed. */
static char *absolute_path(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    char *real = folder ? realpath(folder, NULL) : NULL, *out = NULL;
    const char *between = real && strcmp(real, "/") == 0 ? "" : "/";
    if (real && asprintf(&out, "%s%s%s", real, between, slash ? slash + 1 : path) < 0)
        out = NULL;
    free(real);
    free(folder);
    return out;
}

/* Writes the way from a folder to a file, both absolute: "../" for each part of the
   folder that is not the file's, too. The folder ends with a slash. */
static void print_relative(FILE *out, const char *folder, const char *file)
{
    size_t shared = 0;
    for (size_t i = 0; folder[i] && folder[i] == file[i]; i++)
        if (folder[i] == '/')
            shared = i + 1;
    for (const char *c = folder + shared; *c; c++)
        if (*c == '/')
            fputs("../", out);
    fprintf(out, "%s\n", file + shared);
}

/* A name with a line break is left out: its run finds it where it was given. */
static void print_path(FILE *out, const char *folder, const char *given)
{
    char *file = given ? absolute_path(given) : NULL;
    if (file && !strchr(given, '\n') && !strchr(file, '\n') && !strchr(folder, '\n')) {
        fprintf(out, "%s\n%s\n", given, file);
        print_relative(out, folder, file);
    }
    free(file);
}

int rnnd__run_dir_keep_paths(const char *run_dir, const char *const *path, int count)
{
    char *text = NULL, *inside = NULL, *folder = NULL;
    size_t size = 0;
    int status = 0;
    RNND_TRY_GOTO(rnnd__run_dir_file(run_dir, "", &inside));
    folder = absolute_path(inside); /* with a slash at its end */
    FILE *out = folder ? open_memstream(&text, &size) : NULL;
    if (!out)
        RNND_TRY_GOTO(rnnd__fail_memory(strlen(inside), "paths"));
    for (int i = 0; i < count; i++)
        print_path(out, folder, path[i]);
    if (fclose(out) != 0)
        RNND_TRY_GOTO(rnnd__fail_memory(size, "paths"));
    RNND_TRY_GOTO(rnnd__run_dir_write(run_dir, file_name, text));
done:
    free(text);
    free(folder);
    free(inside);
    return status;
}

/* ---- reading */

/* The two lines after the one that is `given`; NULL if there are none. */
static char *find_entry(char *text, const char *given, char **relative)
{
    char *line[3];
    while (text && *text) {
        for (int i = 0; i < 3; i++)
            line[i] = text ? strsep(&text, "\n") : NULL;
        if (!line[2])
            return NULL;
        if (strcmp(line[0], given) == 0) {
            *relative = line[2];
            return line[1];
        }
    }
    return NULL;
}

/* The path of a file that is there, without links but the last part; else NULL. */
static char *if_there(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 ? absolute_path(path) : NULL;
}

static bool is_same(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino;
}

/* *found: the file's path, NULL if it is at none of its places. */
static int search(const char *run_dir, char *text, const char *given, char **found)
{
    struct stat info;
    char *relative = NULL, *beside = NULL, *at = NULL;
    char *absolute = find_entry(text, given, &relative);
    if (absolute) {
        RNND_TRY(rnnd__run_dir_file(run_dir, relative, &beside));
        at = if_there(beside);
        free(beside);
        at = at ? at : if_there(absolute);
    }
    if (at ? is_same(at, given) : stat(given, &info) == 0) {
        free(at);
        at = strdup(given);
        if (!at)
            return rnnd__fail_memory(strlen(given), "a file name");
    }
    if (!at)
        return rnnd__fail(RNND_EFILE, "%s: No such file%s%s", given,
                          absolute ? ", nor " : "", absolute ? absolute : "");
    *found = at;
    return 0;
}

int rnnd__run_dir_find(const char *run_dir, const char *given, char **found)
{
    char *text = NULL;
    RNND_TRY(rnnd__run_dir_read(run_dir, file_name, &text));
    int status = search(run_dir, text, given, found);
    free(text);
    return status;
}
