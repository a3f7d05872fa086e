/* A stand-in for libnvidia-ml.so.1: the calls that gpu_query.py makes through pynvml. */
#include "stub.h"

#define NOT_SUPPORTED 3

typedef struct { unsigned long long total, free, used; } memory_t;

int nvmlInitWithFlags(unsigned int flags) { (void)flags; CALL(999); return number("nvml_init", 0); }
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { return 0; }

const char *nvmlErrorString(int code) {
    switch (code) {
    case 9: return "Driver Not Loaded";
    case 18: return "Driver/library version mismatch";
    default: return "Unknown Error";
    }
}

int nvmlSystemGetDriverVersion(char *text, unsigned int size) {
    CALL(999);
    return setting("release", 0, text, size) ? 0 : 999;
}

int nvmlSystemGetCudaDriverVersion_v2(int *cuda) {
    CALL(13);
    *cuda = number("cuda", 0);
    return *cuda ? 0 : 999;
}

int nvmlSystemGetCudaDriverVersion(int *cuda) { return nvmlSystemGetCudaDriverVersion_v2(cuda); }

int nvmlDeviceGetCount_v2(unsigned int *count) { CALL(999); *count = gpus(); return 0; }

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device) {
    CALL(15);
    *device = (void *)(size_t)(index + 1);
    return 0;
}

static int index_of(void *device) { return (int)(size_t)device - 1; }

int nvmlDeviceGetName(void *device, char *text, unsigned int size) {
    CALL(NOT_SUPPORTED);
    field(index_of(device), 0, text, size);
    return 0;
}

int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor) {
    char text[64];
    CALL(NOT_SUPPORTED);
    field(index_of(device), 1, text, sizeof text);
    *major = atoi(text);
    field(index_of(device), 2, text, sizeof text);
    *minor = atoi(text);
    return 0;
}

int nvmlDeviceGetMemoryInfo(void *device, memory_t *memory) {
    char text[64];
    CALL(NOT_SUPPORTED);
    field(index_of(device), 3, text, sizeof text);
    memory->total = strtoull(text, NULL, 10);
    memory->free = memory->total;
    memory->used = 0;
    return 0;
}

int nvmlDeviceGetMigMode(void *device, unsigned int *now, unsigned int *later) {
    char text[64];
    CALL(NOT_SUPPORTED);
    field(index_of(device), 4, text, sizeof text);
    if (!*text) return NOT_SUPPORTED;
    *now = *later = atoi(text);
    return 0;
}
