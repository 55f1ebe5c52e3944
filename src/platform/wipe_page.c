/* Pages that the kernel wipes in the child of a fork(), so that a child cannot repeat its
 * parent. */
#include "platform/wipe_page.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t whole_pages(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (size + page - 1) / page * page;
}

void *firn__wipe_page_new(size_t size)
{
    size_t len = whole_pages(size);
    void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    if (madvise(p, len, MADV_WIPEONFORK) != 0) {
        munmap(p, len);
        return NULL;
    }
    madvise(p, len, MADV_DONTDUMP); /* keys do not belong in a core file; best effort */
    return p;
}

void firn__wipe_page_free(void *page, size_t size)
{
    if (!page)
        return;
    explicit_bzero(page, size);
    munmap(page, whole_pages(size));
}
