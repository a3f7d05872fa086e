/* A stand-in for the driver's user-mode library, of any version and with any answer to cuInit.
 *
 *   gcc -shared -fPIC -Wl,-soname,libcuda.so.1 -DSPEAKS=13000 -DINIT=100 -o libcuda.so.1 libcuda.c
 *
 * It has what the CUDA runtime 12 and newer asks for before it knows that there is no GPU, the one
 * symbol (cuTensorMapEncodeTiled) that the provider of 1.28 and newer itself binds, and those that
 * cuDNN's runtime compiled engines bind, which 1.20 links. Releases from 1.18 to 1.22 want more of a
 * driver, and crash with this one.
 */
#include <string.h>

#ifndef SPEAKS
#define SPEAKS 13000
#endif
#ifndef INIT
#define INIT 100 /* no CUDA-capable device is detected */
#endif

int cuDriverGetVersion(int *version) { *version = SPEAKS; return 0; }
int cuInit(unsigned flags) { (void)flags; return INIT; }
int cuDeviceGetCount(int *count) { *count = 0; return INIT; }
int cuTensorMapEncodeTiled(void) { return INIT; }
int cuTensorMapEncodeIm2col(void) { return INIT; }
int cuModuleGetFunction(void) { return INIT; }
int cuModuleLoadData(void) { return INIT; }
int cuModuleUnload(void) { return INIT; }
int cuGetExportTable(const void **table, const void *id) { (void)id; *table = 0; return INIT; }
int cuGetErrorString(int error, const char **text) { (void)error; *text = "stub"; return 0; }
int cuGetErrorName(int error, const char **text) { (void)error; *text = "stub"; return 0; }
static int nothing(void) { return INIT; }

int cuGetProcAddress(const char *name, void **function, int version, unsigned long long flags);
int cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long long flags,
                        int *status);

static void *find(const char *name, int version)
{
    static const struct { const char *name; void *function; } known[] = {
        {"cuDriverGetVersion", (void *)cuDriverGetVersion},
        {"cuInit", (void *)cuInit},
        {"cuDeviceGetCount", (void *)cuDeviceGetCount},
        {"cuGetExportTable", (void *)cuGetExportTable},
        {"cuGetErrorString", (void *)cuGetErrorString},
        {"cuGetErrorName", (void *)cuGetErrorName},
    };
    if (!strcmp(name, "cuGetProcAddress")) /* it grew a fifth argument in CUDA 12 */
        return version < 12000 ? (void *)cuGetProcAddress : (void *)cuGetProcAddress_v2;
    for (unsigned at = 0; at < sizeof known / sizeof *known; at++)
        if (!strcmp(name, known[at].name))
            return known[at].function;
    return (void *)nothing;
}

int cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long long flags,
                        int *status)
{
    (void)flags;
    *function = find(name, version);
    if (status)
        *status = 0;
    return 0;
}

int cuGetProcAddress(const char *name, void **function, int version, unsigned long long flags)
{
    return cuGetProcAddress_v2(name, function, version, flags, 0);
}
