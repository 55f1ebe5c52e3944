/* Lines of a file: at every place where a read can end, of every length around the limit, and with
 * each kind of ending. */
#include "cli/verify/lines.h"
#include "firn/error.h"
#include "t.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* A descriptor that gives the bytes: a file, or a pipe that a child fills `piece` bytes at a
 * time. */
static int open_bytes(const char *p, size_t len, size_t piece)
{
    int fd[2];
    if (piece == 0) {
        char name[] = "/tmp/firn-lines-XXXXXX";
        fd[0] = mkstemp(name);
        T_OK(fd[0] >= 0);
        unlink(name);
        T_EQ(write(fd[0], p, len), (ssize_t)len);
        T_EQ(lseek(fd[0], 0, SEEK_SET), 0);
        return fd[0];
    }
    T_EQ(pipe(fd), 0);
    pid_t pid = fork();
    T_OK(pid >= 0);
    if (pid == 0) {
        for (size_t at = 0; at < len; at += piece)
            if (write(fd[1], p + at, len - at < piece ? len - at : piece) < 0)
                _exit(1);
        _exit(0);
    }
    close(fd[1]);
    return fd[0];
}

T_TEST(endings)
{
    static const char text[] = "one\ntwo\r\n\n\r\n\rx\nlast";
    static const char *const want[] = { "one", "two", "", "", "\rx", "last" };
    struct lines l;
    const char *p;
    size_t len;
    T_EQ(lines_init(&l), 0);
    for (size_t piece = 0; piece < sizeof text; piece++) {
        int fd = open_bytes(text, sizeof text - 1, piece);
        lines_start(&l, fd);
        for (size_t i = 0; i < T_LEN(want); i++) {
            T_EQ(lines_next(&l, &p, &len), LINES_LINE, "line %zu, pieces of %zu", i, piece);
            T_OK(len == strlen(want[i]) && memcmp(p, want[i], len) == 0, "line %zu: %.*s", i,
                 (int)len, p);
        }
        T_EQ(lines_next(&l, &p, &len), LINES_END);
        T_EQ(lines_next(&l, &p, &len), LINES_END, "and it stays there");
        T_EQ(l.bytes_read, sizeof text - 1);
        close(fd);
        if (piece)
            wait(NULL);
    }
    lines_done(&l);
}

/* The limit is on the text: a \r before the \n does not count. */
T_TEST(around_the_limit)
{
    char text[LINES_TEXT_MAX + 16];
    struct lines l;
    const char *p;
    size_t len;
    T_EQ(lines_init(&l), 0);
    for (size_t n = LINES_TEXT_MAX - 2; n <= LINES_TEXT_MAX + 4; n++)
        for (int ending = 0; ending < 3; ending++)
            for (size_t piece = 0; piece < 4; piece++) {
                static const char *const endings[] = { "\n", "\r\n", "" };
                memset(text, 'a', n);
                strcpy(text + n, endings[ending]);
                int fd = open_bytes(text, strlen(text), piece);
                lines_start(&l, fd);
                int want = n <= LINES_TEXT_MAX ? LINES_LINE : LINES_LONG;
                T_EQ(lines_next(&l, &p, &len), want, "%zu bytes, ending %d", n, ending);
                T_OK(want == LINES_LONG || len == n);
                T_EQ(lines_next(&l, &p, &len), LINES_END);
                close(fd);
                if (piece)
                    wait(NULL);
            }
    lines_done(&l);
}

/* More than two blocks, with a line across each border, and one line that is longer than a
 * block. */
T_TEST(across_blocks)
{
    size_t room = 3 * (size_t)LINES_BLOCK_BYTES, at = 0, n = 0, longs = 0;
    char *text = malloc(room + 256);
    struct lines l;
    const char *p;
    size_t len, from = 0;
    int got;
    T_OK(text != NULL);
    while (at < room) {
        size_t want = t_random_below(40) ? t_random_below(LINES_TEXT_MAX + 1)
                                         : LINES_TEXT_MAX + 1 + t_random_below(100);
        if (at < LINES_BLOCK_BYTES && at + 4096 > LINES_BLOCK_BYTES)
            want = LINES_BLOCK_BYTES + 1;
        want = want < room - at ? want : room - at;
        memset(text + at, 'a' + (int)(n++ % 26), want);
        longs += want > LINES_TEXT_MAX;
        text[at + want] = '\n';
        at += want + 1;
    }
    int fd = open_bytes(text, at, 0);
    T_EQ(lines_init(&l), 0);
    lines_start(&l, fd);
    while ((got = lines_next(&l, &p, &len)) != LINES_END) {
        T_OK(got > 0);
        size_t real = (size_t)((char *)memchr(text + from, '\n', at - from) - text) - from;
        T_EQ(got, real > LINES_TEXT_MAX ? LINES_LONG : LINES_LINE, "at %zu", from);
        if (got == LINES_LINE)
            T_OK(len == real && memcmp(p, text + from, len) == 0, "at %zu", from);
        longs -= got == LINES_LONG;
        from += real + 1;
    }
    T_EQ(from, at);
    T_EQ(longs, 0);
    lines_done(&l);
    close(fd);
    free(text);
}

T_TEST(a_file_that_cannot_be_read)
{
    struct lines l;
    const char *p;
    size_t len;
    int fd = open("/", O_RDONLY | O_DIRECTORY);
    T_EQ(lines_init(&l), 0);
    lines_start(&l, fd);
    T_EQ(lines_next(&l, &p, &len), FIRN_EIO);
    T_OK(l.why && l.why[0]);
    lines_done(&l);
    close(fd);
}
