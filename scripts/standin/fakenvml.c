/* fakenvml.c -> libnvidia-ml.so.1 (torch 2.1 insists on it for expandable segments and for OOM
 * messages) */
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char *s, void **d) {
    *d = (void *)0x10;
    return 0;
}
int nvmlDeviceGetComputeRunningProcesses(void *d, unsigned *n, void *i) {
    *n = 0;
    return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *d, unsigned *n, void *i) {
    *n = 0;
    return 0;
}
int nvmlDeviceGetNvLinkRemoteDeviceType(void *d, unsigned l, int *t) { return 3; }
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *d, unsigned l, void *t) { return 3; }
int nvmlDeviceGetGpuFabricInfoV(void *d, void *t) { return 3; }
int nvmlSystemGetCudaDriverVersion_v2(int *v) {
    *v = 13020;
    return 0;
}
const char *nvmlErrorString(int e) { return "fake nvml"; }
