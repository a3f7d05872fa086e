/* What both stand-ins share: a text file, named by ORTGPU_STUB, says how the driver behaves.
 *
 *   release 535.104.12        cuda 12020             gpu NVIDIA A10|8|6|25769803776|0
 *   nvml_init 18              cu_init 100            cu_cuda 13000
 *   hang nvmlInitWithFlags    crash cuInit           fail nvmlDeviceGetMemoryInfo
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Copy the nth value of `key` to `value`; return 0 where there is none. */
static int setting(const char *key, int nth, char *value, size_t size) {
    const char *path = getenv("ORTGPU_STUB");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[512];
    size_t length = strlen(key);
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, key, length) || line[length] != ' ' || nth-- > 0) continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(value, size, "%s", line + length + 1);
        fclose(file);
        return 1;
    }
    if (file) fclose(file);
    return 0;
}

static int number(const char *key, int otherwise) {
    char value[512];
    return setting(key, 0, value, sizeof value) ? atoi(value) : otherwise;
}

static int named(const char *key, const char *call) {
    char value[512];
    for (int nth = 0; setting(key, nth, value, sizeof value); nth++)
        if (!strcmp(value, call)) return 1;
    return 0;
}

static int gpus(void) {
    char value[512];
    int count = 0;
    while (setting("gpu", count, value, sizeof value)) count++;
    return count;
}

/* The nth field of the GPU's line: name|major|minor|bytes of memory|MIG mode. */
static void field(int gpu, int nth, char *value, size_t size) {
    char line[512], *rest = line, *part = "";
    if (!setting("gpu", gpu, line, sizeof line)) line[0] = 0;
    while (nth-- >= 0 && rest) {
        part = rest;
        rest = strchr(rest, '|');
        if (rest) *rest++ = 0;
    }
    snprintf(value, size, "%s", part);
}

/* Every call begins with this: it hangs, crashes or fails where the file says so. */
#define CALL(failure)                                   \
    do {                                                \
        while (named("hang", __func__)) sleep(60);      \
        if (named("crash", __func__)) abort();          \
        if (named("fail", __func__)) return failure;    \
    } while (0)
