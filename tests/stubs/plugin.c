/* A plugin of onnxruntime, compiled against its public headers and linked to CUDA's runtime.
 *
 * It is registered under the name of the CUDA provider. It offers itself for NVIDIA's GPUs, and with
 * ORTGPU_PLUGIN_ON_CPU for the processor, so that a session can be made where there is no GPU; what it can
 * compute is nothing, so that every node is left to the CPU. */
#include <onnxruntime_c_api.h>
#include <stdlib.h>

#define NAME "CUDAExecutionProvider"
#define NVIDIA 0x10DE

int cudaRuntimeGetVersion(int *version);

static const OrtApi *api;

static const char *ORT_API_CALL factory_name(const OrtEpFactory *this) { (void)this; return NAME; }
static const char *ORT_API_CALL vendor(const OrtEpFactory *this) { (void)this; return "NVIDIA"; }
static uint32_t ORT_API_CALL vendor_id(const OrtEpFactory *this) { (void)this; return NVIDIA; }
static const char *ORT_API_CALL version(const OrtEpFactory *this) { (void)this; return "0.1.0"; }
static const char *ORT_API_CALL name(const OrtEp *this) { (void)this; return NAME; }

static OrtStatus *ORT_API_CALL nothing(OrtEp *this, const OrtGraph *graph,
                                       OrtEpGraphSupportInfo *info) {
    (void)this, (void)graph, (void)info;
    return NULL;
}

static OrtStatus *ORT_API_CALL no_compile(OrtEp *this, const OrtGraph **graphs,
                                          const OrtNode **nodes, size_t count,
                                          OrtNodeComputeInfo **infos, OrtNode **contexts) {
    (void)this, (void)graphs, (void)nodes, (void)count, (void)infos, (void)contexts;
    return NULL;
}

static void ORT_API_CALL no_infos(OrtEp *this, OrtNodeComputeInfo **infos, size_t count) {
    (void)this, (void)infos, (void)count;
}

static OrtStatus *ORT_API_CALL devices(OrtEpFactory *this, const OrtHardwareDevice *const *found,
                                       size_t count, OrtEpDevice **made, size_t most,
                                       size_t *number) {
    *number = 0;
    for (size_t at = 0; at < count && *number < most; at++) {
        OrtHardwareDeviceType type = api->HardwareDevice_Type(found[at]);
        int gpu = type == OrtHardwareDeviceType_GPU
                  && api->HardwareDevice_VendorId(found[at]) == NVIDIA;
        if (gpu || (type == OrtHardwareDeviceType_CPU && getenv("ORTGPU_PLUGIN_ON_CPU"))) {
            OrtStatus *status =
                api->GetEpApi()->CreateEpDevice(this, found[at], NULL, NULL, &made[*number]);
            if (status)
                return status;
            ++*number;
        }
    }
    return NULL;
}

static OrtStatus *ORT_API_CALL create(OrtEpFactory *this, const OrtHardwareDevice *const *devices,
                                      const OrtKeyValuePairs *const *pairs, size_t count,
                                      const OrtSessionOptions *options, const OrtLogger *logger,
                                      OrtEp **made) {
    (void)this, (void)devices, (void)pairs, (void)count, (void)options, (void)logger;
    *made = calloc(1, sizeof **made);
    (*made)->ort_version_supported = ORT_API_VERSION;
    (*made)->GetName = name;
    (*made)->GetCapability = nothing;
    (*made)->Compile = no_compile;
    (*made)->ReleaseNodeComputeInfos = no_infos;
    return NULL;
}

static void ORT_API_CALL release(OrtEpFactory *this, OrtEp *made) { (void)this; free(made); }
static bool ORT_API_CALL no_streams(const OrtEpFactory *this) { (void)this; return false; }

static OrtStatus *ORT_API_CALL no_transfer(OrtEpFactory *this, OrtDataTransferImpl **made) {
    (void)this;
    *made = NULL;
    return NULL;
}

OrtStatus *CreateEpFactories(const char *registered, const OrtApiBase *base, const OrtLogger *log,
                             OrtEpFactory **factories, size_t most, size_t *count) {
    static OrtEpFactory factory = {
        .ort_version_supported = ORT_API_VERSION,
        .GetName = factory_name,
        .GetVendor = vendor,
        .GetVendorId = vendor_id,
        .GetVersion = version,
        .GetSupportedDevices = devices,
        .CreateEp = create,
        .ReleaseEp = release,
        .CreateDataTransfer = no_transfer,
        .IsStreamAware = no_streams,
    };
    int runtime = 0;
    (void)registered, (void)log, (void)most;
    cudaRuntimeGetVersion(&runtime);
    api = base->GetApi(ORT_API_VERSION);
    factories[0] = &factory;
    *count = 1;
    return NULL;
}

OrtStatus *ReleaseEpFactory(OrtEpFactory *factory) { (void)factory; return NULL; }
