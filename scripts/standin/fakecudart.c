/* fakecudart.c -> libcudart.so.1x : the runtime calls PyTorch makes, without a GPU. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
#include <time.h>
#include <dlfcn.h>
#include "driver_types.h"
#include "fake.h"
typedef cudaError_t E;
static __thread E last;
#define OK return cudaSuccess
#define FAIL(e) return last = (e)
/* streams and events are ordered on one pretend timeline */
typedef struct {
    int dev, prio, cap;
    unsigned long long capid;
    void *graph;
    unsigned magic;
} St;
typedef struct {
    int recorded, remaining;
    unsigned long long seq;
    unsigned long long capid;
    void *graph;
    double t;
} Ev;
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static unsigned long long seqno = 1, synced = 0, capids = 1;
static St nullst[16];
static St *all[65536];
static int nall;
static St *st(cudaStream_t s) {
    if ((uintptr_t)s < 3)
        return &nullst[fk_curdev];
    return (St *)s;
}
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

E cudaGetDeviceCount(int *n) {
    *n = fk_ndev();
    OK;
}
E cudaGetDevice(int *d) {
    *d = fk_curdev;
    OK;
}
E cudaSetDevice(int d) {
    if (d < 0 || d >= fk_ndev())
        FAIL(cudaErrorInvalidDevice);
    fk_curdev = d;
    OK;
}
E cudaDriverGetVersion(int *v) {
    *v = FAKE_CUDA_VERSION;
    OK;
}
E cudaRuntimeGetVersion(int *v) {
    *v = FAKE_CUDA_VERSION;
    OK;
}
static void props(struct cudaDeviceProp *p, int d) {
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "Pretend GPU (no hardware)");
    p->totalGlobalMem = fk_capacity();
    p->sharedMemPerBlock = 49152;
    p->regsPerBlock = 65536;
    p->warpSize = 32;
    p->maxThreadsPerBlock = 1024;
    p->maxThreadsDim[0] = 1024;
    p->maxThreadsDim[1] = 1024;
    p->maxThreadsDim[2] = 64;
    p->maxGridSize[0] = 2147483647;
    p->maxGridSize[1] = p->maxGridSize[2] = 65535;
    p->totalConstMem = 65536;
    p->major = 9;
    p->minor = 0;
    p->textureAlignment = 512;
    p->multiProcessorCount = 132;
    p->maxThreadsPerMultiProcessor = 2048;
    p->l2CacheSize = 50 << 20;
    p->memoryBusWidth = 5120;
    p->unifiedAddressing = 1;
    p->concurrentKernels = 1;
    p->asyncEngineCount = 3;
    p->sharedMemPerMultiprocessor = 233472;
    p->regsPerMultiprocessor = 65536;
    p->sharedMemPerBlockOptin = 232448;
    p->pciBusID = 16 + d;
    p->canMapHostMemory = 1;
    p->managedMemory = 1;
    p->cooperativeLaunch = 1;
    p->maxBlocksPerMultiProcessor = 32;
}
E cudaGetDeviceProperties_v2(struct cudaDeviceProp *p, int d) {
    props(p, d);
    OK;
}
E cudaGetDeviceProperties(struct cudaDeviceProp *p, int d) {
    props(p, d);
    OK;
}
E cudaDeviceGetAttribute(int *v, enum cudaDeviceAttr a, int d) {
    *v = 0;
    switch ((int)a) {
    case cudaDevAttrMaxThreadsPerBlock:
        *v = 1024;
        break;
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY:
        *v = 1024;
        break;
    case cudaDevAttrMaxBlockDimZ:
        *v = 64;
        break;
    case cudaDevAttrMaxGridDimX:
        *v = 2147483647;
        break;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ:
        *v = 65535;
        break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
        *v = 49152;
        break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        *v = 232448;
        break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
        *v = 233472;
        break;
    case cudaDevAttrReservedSharedMemoryPerBlock:
        *v = 1024;
        break;
    case cudaDevAttrWarpSize:
        *v = 32;
        break;
    case cudaDevAttrMultiProcessorCount:
        *v = 132;
        break;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
        *v = 2048;
        break;
    case cudaDevAttrMaxBlocksPerMultiprocessor:
        *v = 32;
        break;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor:
        *v = 65536;
        break;
    case cudaDevAttrComputeCapabilityMajor:
        *v = 9;
        break;
    case cudaDevAttrComputeCapabilityMinor:
        *v = 0;
        break;
    case cudaDevAttrL2CacheSize:
        *v = 50 << 20;
        break;
    case cudaDevAttrUnifiedAddressing:
        *v = 1;
        break;
    case cudaDevAttrCooperativeLaunch:
        *v = 1;
        break;
    case cudaDevAttrClockRate:
        *v = 1980000;
        break;
    case cudaDevAttrMemoryClockRate:
        *v = 2619000;
        break;
    case cudaDevAttrGlobalMemoryBusWidth:
        *v = 5120;
        break;
    case cudaDevAttrTextureAlignment:
        *v = 512;
        break;
    case cudaDevAttrMemoryPoolsSupported:
        *v = 1;
        break;
    }
    OK;
}
E cudaDeviceGetPCIBusId(char *s, int n, int d) {
    snprintf(s, n, "0000:%02X:00.0", 16 + d);
    OK;
}
E cudaDeviceGetStreamPriorityRange(int *lo, int *hi) {
    if (lo)
        *lo = 0;
    if (hi)
        *hi = -5;
    OK;
}
E cudaDeviceCanAccessPeer(int *c, int a, int b) {
    *c = 1;
    OK;
}
E cudaDeviceEnablePeerAccess(int a, unsigned f) { OK; }
static void syncall(void) {
    pthread_mutex_lock(&mu);
    synced = seqno;
    pthread_mutex_unlock(&mu);
}
E cudaDeviceSynchronize(void) {
    syncall();
    OK;
}
E cudaMemGetInfo(size_t *f, size_t *t) {
    fk_meminfo(fk_curdev, f, t);
    OK;
}
E cudaMalloc(void **p, size_t n) {
    uint64_t a = fk_malloc(fk_curdev, n);
    if (!a && n) {
        *p = 0;
        FAIL(cudaErrorMemoryAllocation);
    }
    *p = (void *)a;
    OK;
}
E cudaFree(void *p) {
    if (!fk_free((uint64_t)p))
        FAIL(cudaErrorInvalidValue);
    syncall();
    OK;
}
E cudaMallocAsync(void **p, size_t n, cudaStream_t s) { return cudaMalloc(p, n); }
E cudaFreeAsync(void *p, cudaStream_t s) { return cudaFree(p); }
E cudaHostAlloc(void **p, size_t n, unsigned f) {
    return posix_memalign(p, 4096, n ? n : 1) ? (last = cudaErrorMemoryAllocation) : 0;
}
E cudaMallocHost(void **p, size_t n) { return cudaHostAlloc(p, n, 0); }
E cudaFreeHost(void *p) {
    free(p);
    OK;
}
E cudaHostGetDevicePointer(void **d, void *h, unsigned f) {
    *d = h;
    OK;
}
E cudaHostRegister(void *p, size_t n, unsigned f) { OK; }
E cudaHostUnregister(void *p) { OK; }
E cudaPointerGetAttributes(struct cudaPointerAttributes *a, const void *p) {
    memset(a, 0, sizeof *a);
    if (fk_isdev(p)) {
        a->type = cudaMemoryTypeDevice;
        a->device = fk_devof(p);
        a->devicePointer = (void *)p;
    } else {
        a->type = cudaMemoryTypeUnregistered;
        a->device = -1;
    }
    OK;
}
/* copies: what comes "from the device" is zeros */
/* FAKECUDA_SHADOW=1: what was last copied to an address (up to 64 KiB) comes back from it */
#define NSH 4096
static struct {
    uint64_t a;
    size_t n;
    void *p;
} shadow[NSH];
static int shadow_on(void) {
    static int t = -1;
    if (t < 0) {
        char *e = getenv("FAKECUDA_SHADOW");
        t = e ? atoi(e) : 0;
    }
    return t;
}
static int shadowed(void *d, const void *s, size_t n) {
    if (!shadow_on() || n > 65536 || !n)
        return 0;
    uint64_t a = fk_isdev(d) ? (uint64_t)d : (uint64_t)s;
    int k = (a >> 9) * 2654435761u % NSH, hit = 0;
    pthread_mutex_lock(&mu);
    if (fk_isdev(d) && !fk_isdev(s)) {
        shadow[k].a = a;
        shadow[k].n = n;
        shadow[k].p = realloc(shadow[k].p, n);
        memcpy(shadow[k].p, s, n);
        hit = 1;
    } else if (!fk_isdev(d) && fk_isdev(s) && shadow[k].a == a && shadow[k].n >= n) {
        memcpy(d, shadow[k].p, n);
        hit = 1;
    }
    pthread_mutex_unlock(&mu);
    return hit;
}
static void cp(void *d, const void *s, size_t n) {
    if (shadowed(d, s, n))
        return;
    if (fk_isdev(d))
        return;
    if (fk_isdev(s))
        memset(d, 0, n);
    else
        memmove(d, s, n);
}
E cudaMemcpy(void *d, const void *s, size_t n, enum cudaMemcpyKind k) {
    cp(d, s, n);
    OK;
}
E cudaMemcpyAsync(void *d, const void *s, size_t n, enum cudaMemcpyKind k, cudaStream_t t) {
    cp(d, s, n);
    OK;
}
E cudaMemcpyPeerAsync(void *d, int dd, const void *s, int sd, size_t n, cudaStream_t t) {
    cp(d, s, n);
    OK;
}
E cudaMemcpy2DAsync(void *d, size_t dp, const void *s, size_t sp, size_t w, size_t h,
                    enum cudaMemcpyKind k, cudaStream_t t) {
    for (size_t i = 0; i < h; i++)
        cp((char *)d + i * dp, (const char *)s + i * sp, w);
    OK;
}
E cudaMemset(void *d, int v, size_t n) { OK; }
E cudaMemsetAsync(void *d, int v, size_t n, cudaStream_t t) { OK; }
/* errors */
E cudaGetLastError(void) {
    E e = last;
    last = 0;
    return e;
}
E cudaPeekAtLastError(void) { return last; }
const char *cudaGetErrorString(E e) {
    return e == 0                           ? "no error"
           : e == cudaErrorMemoryAllocation ? "out of memory"
           : e == cudaErrorNotReady         ? "device not ready"
                                            : "fake cuda error";
}
const char *cudaGetErrorName(E e) {
    return e == 0                           ? "cudaSuccess"
           : e == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation"
           : e == cudaErrorNotReady         ? "cudaErrorNotReady"
                                            : "cudaErrorUnknown";
}
/* streams */
static cudaStream_t mk(int prio) {
    St *s = calloc(1, sizeof *s);
    s->dev = fk_curdev;
    s->prio = prio;
    pthread_mutex_lock(&mu);
    if (nall < 65536)
        all[nall++] = s;
    pthread_mutex_unlock(&mu);
    return (cudaStream_t)s;
}
E cudaStreamCreate(cudaStream_t *s) {
    *s = mk(0);
    OK;
}
E cudaStreamCreateWithFlags(cudaStream_t *s, unsigned f) {
    *s = mk(0);
    OK;
}
E cudaStreamCreateWithPriority(cudaStream_t *s, unsigned f, int p) {
    *s = mk(p);
    OK;
}
E cudaStreamDestroy(cudaStream_t s) { OK; }
E cudaStreamGetPriority(cudaStream_t s, int *p) {
    *p = st(s)->prio;
    OK;
}
E cudaStreamQuery(cudaStream_t s) { OK; }
E cudaStreamSynchronize(cudaStream_t s) {
    syncall();
    OK;
}
E cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned f) {
    Ev *v = (Ev *)e;
    if (v && v->capid) {
        St *t = st(s);
        t->cap = 1;
        t->capid = v->capid;
        t->graph = v->graph;
    }
    OK;
}
E cudaStreamIsCapturing(cudaStream_t s, enum cudaStreamCaptureStatus *c) {
    *c = st(s)->cap ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    OK;
}
E cudaStreamBeginCapture(cudaStream_t s, enum cudaStreamCaptureMode m) {
    St *t = st(s);
    t->cap = 1;
    t->capid = capids++;
    t->graph = malloc(64);
    OK;
}
E cudaStreamBeginCaptureToGraph(cudaStream_t s, cudaGraph_t g, const void *d, const void *dd,
                                size_t n, enum cudaStreamCaptureMode m) {
    St *t = st(s);
    t->cap = 1;
    t->capid = capids++;
    t->graph = g;
    OK;
}
E cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *g) {
    St *t = st(s);
    if (g)
        *g = t->graph;
    unsigned long long id = t->capid;
    pthread_mutex_lock(&mu);
    for (int i = 0; i < nall; i++)
        if (all[i]->capid == id) {
            all[i]->cap = 0;
            all[i]->capid = 0;
            all[i]->graph = 0;
        }
    pthread_mutex_unlock(&mu);
    OK;
}
static E capinfo(cudaStream_t s, enum cudaStreamCaptureStatus *c, unsigned long long *id,
                 cudaGraph_t *g, const cudaGraphNode_t **d, size_t *n) {
    St *t = st(s);
    if (c)
        *c = t->cap ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    if (id)
        *id = t->capid;
    if (g)
        *g = t->graph;
    if (d)
        *d = 0;
    if (n)
        *n = 0;
    OK;
}
E cudaStreamGetCaptureInfo_v2(cudaStream_t s, enum cudaStreamCaptureStatus *c,
                              unsigned long long *id, cudaGraph_t *g, const cudaGraphNode_t **d,
                              size_t *n) {
    return capinfo(s, c, id, g, d, n);
}
#if FAKE_CUDA_VERSION < 13000
E cudaStreamGetCaptureInfo(cudaStream_t s, enum cudaStreamCaptureStatus *c,
                           unsigned long long *id) {
    return capinfo(s, c, id, 0, 0, 0);
}
#endif
#if FAKE_CUDA_VERSION >= 13000
E cudaStreamGetCaptureInfo(cudaStream_t s, enum cudaStreamCaptureStatus *c, unsigned long long *id,
                           cudaGraph_t *g, const cudaGraphNode_t **d, const void **ed, size_t *n) {
    if (ed)
        *ed = 0;
    return capinfo(s, c, id, g, d, n);
}
#endif
E cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *m) {
    static __thread int cur;
    int o = cur;
    cur = *m;
    *m = o;
    OK;
}
E cudaGraphInstantiate(cudaGraphExec_t *x, cudaGraph_t g, unsigned long long f) {
    *x = malloc(64);
    OK;
}
E cudaGraphInstantiateWithFlags(cudaGraphExec_t *x, cudaGraph_t g, unsigned long long f) {
    *x = malloc(64);
    OK;
}
E cudaGraphGetNodes(cudaGraph_t g, cudaGraphNode_t *n, size_t *c) {
    if (n)
        for (size_t i = 0; i < *c; i++)
            n[i] = 0;
    else
        *c = 1;
    OK;
}
E cudaGraphLaunch(cudaGraphExec_t x, cudaStream_t s) { OK; }
E cudaGraphDestroy(cudaGraph_t g) { OK; }
E cudaGraphExecDestroy(cudaGraphExec_t g) { OK; }
E cudaGraphAddEmptyNode(cudaGraphNode_t *n, cudaGraph_t g, const void *d, size_t c) {
    static long k = 0x5000;
    *n = (void *)(uintptr_t)(k += 16);
    OK;
}
E cudaGraphNodeGetDependencies(cudaGraphNode_t n, void *d, size_t *c) {
    *c = 0;
    OK;
}
/* events */
E cudaEventCreateWithFlags(cudaEvent_t *e, unsigned f) {
    *e = calloc(1, sizeof(Ev));
    OK;
}
E cudaEventCreate(cudaEvent_t *e) { return cudaEventCreateWithFlags(e, 0); }
E cudaEventDestroy(cudaEvent_t e) {
    free(e);
    OK;
}
static E rec(cudaEvent_t e, cudaStream_t s) {
    Ev *v = (Ev *)e;
    v->recorded = 1;
    v->remaining = fk_lag();
    pthread_mutex_lock(&mu);
    v->seq = ++seqno;
    pthread_mutex_unlock(&mu);
    St *t = st(s);
    v->capid = t->cap ? t->capid : 0;
    v->graph = t->graph;
    v->t = now();
    OK;
}
E cudaEventRecord(cudaEvent_t e, cudaStream_t s) { return rec(e, s); }
E cudaEventRecordWithFlags(cudaEvent_t e, cudaStream_t s, unsigned f) { return rec(e, s); }
E cudaEventQuery(cudaEvent_t e) {
    Ev *v = (Ev *)e;
    if (v->recorded && v->remaining > 0 && v->seq > synced) {
        v->remaining--;
        FAIL(cudaErrorNotReady);
    }
    OK;
}
E cudaEventSynchronize(cudaEvent_t e) {
    Ev *v = (Ev *)e;
    v->remaining = 0;
    OK;
}
E cudaEventElapsedTime(float *ms, cudaEvent_t a, cudaEvent_t b) {
    *ms = (float)(((Ev *)b)->t - ((Ev *)a)->t);
    OK;
}
E cudaEventElapsedTime_v2(float *ms, cudaEvent_t a, cudaEvent_t b) {
    return cudaEventElapsedTime(ms, a, b);
}
/* kernels */
struct cfg {
    unsigned gx, gy, gz, bx, by, bz;
    size_t sh;
    void *s;
};
static __thread struct cfg stk[64];
static __thread int sp;
typedef struct {
    unsigned x, y, z;
} D3;
unsigned __cudaPushCallConfiguration(D3 g, D3 b, size_t sh, void *s) {
    if (sp < 64) {
        struct cfg c = {g.x, g.y, g.z, b.x, b.y, b.z, sh, s};
        stk[sp++] = c;
    }
    return 0;
}
E __cudaPopCallConfiguration(D3 *g, D3 *b, size_t *sh, void *s) {
    struct cfg c = {1, 1, 1, 1, 1, 1, 0, 0};
    if (sp > 0)
        c = stk[--sp];
    g->x = c.gx;
    g->y = c.gy;
    g->z = c.gz;
    b->x = c.bx;
    b->y = c.by;
    b->z = c.bz;
    *sh = c.sh;
    *(void **)s = c.s;
    OK;
}
static unsigned long long launches;
unsigned long long fk_launches(void) { return launches; }
E cudaLaunchKernel(const void *f, D3 g, D3 b, void **a, size_t sh, cudaStream_t s) {
    launches++;
    OK;
}
E __cudaLaunchKernel(void *f, D3 g, D3 b, void **a, size_t sh, cudaStream_t s) {
    launches++;
    OK;
}
E cudaLaunchKernelExC(const void *c, const void *f, void **a) {
    launches++;
    OK;
}
E cudaLaunchCooperativeKernel(const void *f, D3 g, D3 b, void **a, size_t sh, cudaStream_t s) {
    launches++;
    OK;
}
static void runhost(void (*fn)(void *), void *u) { fn(u); }
E cudaLaunchHostFunc(cudaStream_t s, void (*fn)(void *), void *u) {
    if (!st(s)->cap)
        runhost(fn, u);
    OK;
}
E cudaStreamAddCallback(cudaStream_t s, void (*fn)(cudaStream_t, E, void *), void *u, unsigned f) {
    fn(s, 0, u);
    OK;
}
void **__cudaRegisterFatBinary(void *b) {
    static void *h[4];
    return h;
}
void __cudaRegisterFatBinaryEnd(void **h) {}
void __cudaUnregisterFatBinary(void **h) {}
void __cudaRegisterFunction(void **h, const char *a, char *b, const char *c, int d, void *e,
                            void *f, void *g, void *i, int *j) {}
void __cudaRegisterVar(void **h, char *a, char *b, const char *c, int d, size_t e, int f, int g) {}
void __cudaRegisterManagedVar(void **h, void **a, char *b, const char *c, int d, size_t e, int f,
                              int g) {}
char __cudaInitModule(void **h) { return 1; }
E __cudaGetKernel(void **k, const void *f) {
    *k = (void *)f;
    OK;
}
E cudaFuncGetAttributes(struct cudaFuncAttributes *a, const void *f) {
    memset(a, 0, sizeof *a);
    a->maxThreadsPerBlock = 1024;
    a->numRegs = 32;
    a->ptxVersion = 90;
    a->binaryVersion = 90;
    a->maxDynamicSharedSizeBytes = 232448;
    OK;
}
E cudaFuncSetAttribute(const void *f, int a, int v) { OK; }
E cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *n, const void *f, int b, size_t s,
                                                         unsigned fl) {
    *n = 8;
    OK;
}
E cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *n, const void *f, int b, size_t s) {
    *n = 8;
    OK;
}
E cudaGetSymbolAddress(void **p, const void *s) {
    *p = (void *)0x760000000000ull;
    OK;
}
E cudaDeviceGetDefaultMemPool(void **p, int d) {
    *p = (void *)0x77;
    OK;
}
E cudaMemPoolGetAttribute(void *p, int a, void *v) {
    *(uint64_t *)v = 0;
    OK;
}
/* driver entry points */
static E entry(const char *s, void **fn, int *st) {
    static void *h;
    if (!h) {
        Dl_info i;
        dladdr((void *)fk_init, &i);
        h = dlopen(i.dli_fname, RTLD_LAZY);
    }
    *fn = dlsym(h, s);
    if (st)
        *st = *fn ? 0 : 1;
    if (!*fn && fk_trace())
        fprintf(stderr, "[fake] no driver entry %s\n", s);
    OK;
}
E cudaGetDriverEntryPoint(const char *s, void **fn, unsigned long long f, int *st) {
    return entry(s, fn, st);
}
E cudaGetDriverEntryPointByVersion(const char *s, void **fn, unsigned v, unsigned long long f,
                                   int *st) {
    return entry(s, fn, st);
}
E cudaUserObjectCreate(void **o, void *p, void *d, unsigned r, unsigned f) {
    *o = malloc(16);
    OK;
}
E cudaMallocManaged(void **p, size_t n, unsigned f) { return cudaMalloc(p, n); }
E cudaIpcGetMemHandle(void *h, void *p) {
    memset(h, 7, 64);
    OK;
}
E cudaIpcGetEventHandle(void *h, void *p) {
    memset(h, 7, 64);
    OK;
}
E cudaLibraryGetKernelCount(unsigned *c, void *l) {
    *c = 0;
    OK;
}
E cudaGraphNodeGetType(void *n, int *t) {
    *t = 0;
    OK;
}
E cudaDeviceGetGraphMemAttribute(int d, int a, void *v) {
    *(uint64_t *)v = 0;
    OK;
}
E cudaGraphAddNode(void **n, ...) {
    static long k = 0x6000;
    *n = (void *)(uintptr_t)(k += 16);
    OK;
}
E cudaGraphConditionalHandleCreate(unsigned long long *h, ...) {
    *h = 1;
    OK;
}
E cudaGetExportTable(const void **t, const void *id) {
    *t = 0;
    return cudaErrorUnknown;
}
E cudaProfilerStart(void) { OK; }
E cudaProfilerStop(void) { OK; }
E cudaStreamUpdateCaptureDependencies(cudaStream_t s, ...) { OK; }
E cudaMemPoolSetAttribute(void *p, int a, void *v) { OK; }
E cudaMemPoolSetAccess(void *p, const void *d, size_t n) { OK; }
E cudaMemPoolTrimTo(void *p, size_t n) { OK; }
E cudaGraphDebugDotPrint(void *g, const char *p, unsigned f) { OK; }
E cudaIpcOpenMemHandle(void **p, ...) { FAIL(cudaErrorNotSupported); }
E cudaIpcOpenEventHandle(void **p, ...) { FAIL(cudaErrorNotSupported); }
E cudaIpcCloseMemHandle(void *p) { OK; }
E cudaMemcpyToSymbol(const void *s, const void *p, size_t n, size_t o, int k) { OK; }
E cudaDeviceSetGraphMemAttribute(int d, int a, void *v) { OK; }
E cudaGraphRetainUserObject(void *g, void *o, unsigned c, unsigned f) { OK; }
E cudaUserObjectRelease(void *o, unsigned c) { OK; }
E cudaKernelSetAttributeForDevice(void *k, int a, int v, int d) { OK; }
E cudaLibraryUnload(void *l) { OK; }
E cudaLibraryLoadData(void **l, ...) {
    *l = malloc(16);
    OK;
}
E cudaLibraryLoadFromFile(void **l, ...) {
    *l = malloc(16);
    OK;
}
E cudaLibraryGetKernel(void **k, void *l, const char *n) {
    *k = malloc(16);
    OK;
}
E cudaLibraryGetUnifiedFunction(void **k, void *l, const char *n) {
    *k = malloc(16);
    OK;
}
E cudaLibraryGetGlobal(void **p, size_t *n, void *l, const char *s) {
    *p = 0;
    if (n)
        *n = 0;
    OK;
}
E cudaLibraryGetManaged(void **p, size_t *n, void *l, const char *s) {
    *p = 0;
    if (n)
        *n = 0;
    OK;
}
E cudaGetFuncBySymbol(void **f, const void *s) {
    *f = (void *)s;
    OK;
}
E cudaStreamGetCaptureInfo_v3(cudaStream_t s, enum cudaStreamCaptureStatus *c,
                              unsigned long long *id, cudaGraph_t *g, const cudaGraphNode_t **d,
                              const void **ed, size_t *n) {
    if (ed)
        *ed = 0;
    return capinfo(s, c, id, g, d, n);
}
E cudaDeviceGetLimit(size_t *v, int l) {
    *v = 0;
    OK;
}
E cudaDeviceReset(void) { OK; }
E cudaGraphCreate(void **g, unsigned f) {
    *g = malloc(64);
    OK;
}
E cudaStreamGetFlags(cudaStream_t s, unsigned *f) {
    *f = 1;
    OK;
}
E cudaStreamGetId(cudaStream_t s, unsigned long long *i) {
    *i = (unsigned long long)(uintptr_t)s;
    OK;
}
