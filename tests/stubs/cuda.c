/* A stand-in for libcuda.so.1 and nvcuda.dll: the calls that query_gpus.py makes, and the one symbol
 * that the CUDA provider of onnxruntime-gpu 1.31 binds. */
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

#ifdef _WIN32
/* What CUDA's runtime asks nvcuda.dll for: every function by its name. One that is not above answers
 * that there is no device. There is no cuGetExportTable: cudart64_13.dll wants nvcudart_hybrid64.dll
 * through it, the runtime itself, which comes with a driver of CUDA 13 alone. */
#include <windows.h>

static int no_device(void) { return NO_DEVICE; }

int cuGetProcAddress(const char *name, void **function, int cuda, unsigned long long flags) {
    HMODULE self = NULL;
    (void)cuda;
    (void)flags;
    GetModuleHandleExA(6, (const char *)no_device, &self); /* by address, and not counted */
    *function = strcmp(name, "cuGetExportTable") ? (void *)GetProcAddress(self, name) : NULL;
    if (!*function && strcmp(name, "cuGetExportTable")) *function = (void *)no_device;
    return *function ? 0 : 500;
}

int cuGetProcAddress_v2(const char *name, void **function, int cuda, unsigned long long flags,
                        int *status) {
    int code = cuGetProcAddress(name, function, cuda, flags);
    if (status) *status = code ? 1 : 0;
    return code;
}

int cuGetErrorName(int code, const char **text) {
    *text = code == NO_DEVICE ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR_UNKNOWN";
    return 0;
}

int cuGetErrorString(int code, const char **text) {
    *text = code == NO_DEVICE ? "no CUDA-capable device is detected" : "unknown error";
    return 0;
}
#endif
