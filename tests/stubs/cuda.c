/* A stand-in for libcuda.so.1: the calls that gpu_query.py makes, and the one symbol that the CUDA
 * provider of onnxruntime-gpu 1.31 binds. */
#include "stub.h"

#define NO_DEVICE 100

int cuDriverGetVersion(int *cuda) {
    CALL(1);
    *cuda = number("cu_cuda", number("cuda", 0));
    return 0;
}

int cuInit(unsigned int flags) {
    (void)flags;
    CALL(999);
    return number("cu_init", gpus() ? 0 : NO_DEVICE);
}

int cuDeviceGetCount(int *count) { CALL(3); *count = gpus(); return 0; }
int cuDeviceGet(int *device, int ordinal) { CALL(101); *device = ordinal; return 0; }

int cuDeviceGetName(char *text, int size, int device) {
    CALL(1);
    field(device, 0, text, size);
    return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    char text[64];
    CALL(1);
    field(device, attribute == 75 ? 1 : 2, text, sizeof text);
    *value = atoi(text);
    return 0;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    char text[64];
    CALL(1);
    field(device, 3, text, sizeof text);
    *bytes = strtoull(text, NULL, 10);
    return 0;
}

int cuTensorMapEncodeTiled(void) { return NO_DEVICE; }
