/* wipe_page.h - zeroed memory that the child of a fork() finds zeroed again (MADV_WIPEONFORK). */
#ifndef FIRN_PLATFORM_WIPE_PAGE_H
#define FIRN_PLATFORM_WIPE_PAGE_H

#include <stddef.h>

/* NULL if the system has no memory or does not know the flag: without it a child would repeat its
 * parent's IDs, so there is no fallback. Give it back with the same size. */
void *firn__wipe_page_new(size_t size);
void firn__wipe_page_free(void *page, size_t size);

#endif
