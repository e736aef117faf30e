/* Stands between the server and its C library (LD_PRELOAD): notes which files and folders barriers reach,
   and fails barriers or writes of segments while a test wants it.
   BARRIERS_TOLD: a file to which the path of each barrier is added. FAIL_BARRIERS, FAIL_WRITES: while a file
   of this name exists, barriers or writes of segments fail with EIO. DELAY_BARRIERS_MS: what each barrier takes
   in addition, as on a slow disk. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int wanted(const char *name) {
    const char *path = getenv(name);
    return path && access(path, F_OK) == 0;
}

static const char *path_of(int fd, char *path, size_t room) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t bytes = readlink(link, path, room - 1);
    path[bytes > 0 ? bytes : 0] = 0;
    return path;
}

static int ends_with(const char *path, const char *end) {
    size_t bytes = strlen(path), of_end = strlen(end);
    return bytes > of_end && strcmp(path + bytes - of_end, end) == 0;
}

/* Also one that is being created. */
static int is_segment(const char *path) {
    return ends_with(path, ".seg") || ends_with(path, ".seg.tmp");
}

static void delay(void) {
    const char *text = getenv("DELAY_BARRIERS_MS");
    long ms = text ? atol(text) : 0;
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};
    while (ms > 0 && nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

static int barrier(int fd, const char *name) {
    char path[4096];
    delay();
    path_of(fd, path, sizeof path);
    if (is_segment(path) && wanted("FAIL_BARRIERS")) {
        errno = EIO;
        return -1;
    }
    const char *told = getenv("BARRIERS_TOLD");
    int to = told ? open(told, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    if (to >= 0) {
        dprintf(to, "%s\n", path);
        close(to);
    }
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    return real(fd);
}

int fsync(int fd) { return barrier(fd, "fsync"); }
int fdatasync(int fd) { return barrier(fd, "fdatasync"); }

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t offset) {
    char path[4096];
    if (is_segment(path_of(fd, path, sizeof path)) && wanted("FAIL_WRITES")) {
        errno = EIO;
        return -1;
    }
    ssize_t (*real)(int, const void *, size_t, off64_t) =
        (ssize_t (*)(int, const void *, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64");
    return real(fd, bytes, count, offset);
}
