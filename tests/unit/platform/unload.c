/* A thread outlives the library that gave it a random generator: its end must not call into
 * nothing. */
#include "t.h"

#include <dlfcn.h>
#include <pthread.h>

struct use {
    const char *file, *symbol;
    const char *error;
};

static void *use_and_unload(void *arg)
{
    struct use *u = arg;
    void *lib = dlopen(u->file, RTLD_NOW | RTLD_LOCAL);
    void *(*draw)(void) = NULL;
    void *found = lib ? dlsym(lib, u->symbol) : NULL;
    if (!found) {
        u->error = dlerror();
        return NULL;
    }
    memcpy(&draw, &found, sizeof draw);
    draw();
    dlclose(lib);
    return NULL;
}

static void run(struct use u)
{
    pthread_t t;
    T_EQ(pthread_create(&t, NULL, use_and_unload, &u), 0);
    T_EQ(pthread_join(t, NULL), 0);
    T_OK(!u.error, "%s", u.error);
}

T_TEST(shared_library_unloaded_before_the_thread_ends)
{
    run((struct use){ .file = LIBFIRN_SO, .symbol = "firn_rng_thread" });
}

T_TEST(plugin_with_the_static_library_unloaded_before_the_thread_ends)
{
    run((struct use){ .file = PLUGIN_SO, .symbol = "plugin_draw" });
}
