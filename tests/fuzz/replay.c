/* Runs a fuzz target over every file of the folders named on the command line: the corpus as a
 * test. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *folder)
{
    struct dirent **entry;
    int n = scandir(folder, &entry, NULL, alphasort), run = 0;
    for (int i = 0; i < n; i++) {
        char path[4096];
        static uint8_t data[1 << 20];
        snprintf(path, sizeof path, "%s/%s", folder, entry[i]->d_name);
        FILE *f = entry[i]->d_name[0] == '.' ? NULL : fopen(path, "rb");
        free(entry[i]);
        if (!f)
            continue;
        size_t size = fread(data, 1, sizeof data, f);
        fclose(f);
        /* A copy of exactly the input's size, so that a read past its end is seen. */
        uint8_t *exact = malloc(size ? size : 1);
        if (!exact)
            abort();
        for (size_t k = 0; k < size; k++)
            exact[k] = data[k];
        LLVMFuzzerTestOneInput(exact, size);
        free(exact);
        run++;
    }
    if (n >= 0)
        free(entry);
    return run;
}

int main(int argc, char **argv)
{
    int run = 0;
    for (int i = 1; i < argc; i++)
        run += replay(argv[i]);
    printf("%d passed, %d failed\n", run, run == 0);
    return run == 0;
}
