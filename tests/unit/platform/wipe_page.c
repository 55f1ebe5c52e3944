/* Pages that a child of fork() finds zeroed, while its parent keeps what it wrote. */
#include "platform/wipe_page.h"
#include "t.h"

#include <sys/wait.h>
#include <unistd.h>

T_TEST(a_child_finds_zeros)
{
    static const size_t sizes[] = { 1, 4096, 4097, 100000 };
    for (size_t i = 0; i < T_LEN(sizes); i++) {
        unsigned char *p = firn__wipe_page_new(sizes[i]);
        int status;
        T_OK(p != NULL);
        for (size_t k = 0; k < sizes[i]; k++)
            T_EQ(p[k], 0);
        memset(p, 0xa5, sizes[i]);
        pid_t pid = fork();
        T_OK(pid >= 0);
        if (pid == 0) {
            int bad = 0;
            for (size_t k = 0; k < sizes[i]; k++)
                bad |= p[k];
            memset(p, 1, sizes[i]); /* its own pages, and writable */
            _exit(bad != 0);
        }
        T_EQ(waitpid(pid, &status, 0), pid);
        T_EQ(status, 0, "%zu bytes", sizes[i]);
        for (size_t k = 0; k < sizes[i]; k++)
            T_EQ(p[k], 0xa5);
        firn__wipe_page_free(p, sizes[i]);
    }
    firn__wipe_page_free(NULL, 1);
}
