/*
 * keep_loaded.c - linked into sanitized builds only: libraries that were loaded stay
 * loaded.
 *
 * Open MPI unloads its components before LeakSanitizer looks, and what they still hold
 * could not be distinguished from leaks of our own by the names in lsan.supp.
 */
int dlclose(void *handle);

int dlclose(void *handle)
{
    (void)handle;
    return 0;
}
