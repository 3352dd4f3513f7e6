/* fakecore.c -> libcuda.so.1 : a pretend CUDA driver. No kernel ever runs, device
 * memory is only an address range. Implements the parts of the driver API that
 * PyTorch's allocator uses (virtual memory management for expandable_segments)
 * and the core (fk_*) on which the fake libcudart stands.
 * Environment:
 *   FAKECUDA_CAPACITY_MB  device memory in MiB (default 81920)
 *   FAKECUDA_OVERHEAD_MB  taken from the start, "context" (default 500)
 *   FAKECUDA_EVENT_LAG    how many cudaEventQuery say NotReady after a record (default 0)
 *   FAKECUDA_DEVICES      number of devices (default 1)
 *   FAKECUDA_TRACE        1: print each API call that is a mere stub; 2: and malloc/free
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
#include <string.h>
#include <pthread.h>
#include <dlfcn.h>
#include "fake.h"

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static int inited, ndev = 1, trace, lag;
static uint64_t capacity, overhead;
static uint64_t used[16];
#define VA0 0x760000000000ull
#define VASZ 0x008000000000ull /* 512 GiB of physical-like VA per device, carved from one range */
typedef struct {
    uint64_t a, n;
    int dev;
    int isfree;
    uint64_t asked;
} Blk;
static Blk *blks;
static size_t nblk, capblk;
/* VA for cuMemAddressReserve: separate bump range */
static uint64_t resv_next = 0x600000000000ull;

void fk_init(void) {
    if (inited)
        return;
    pthread_mutex_lock(&mu);
    if (!inited) {
        const char *e;
        capacity = ((e = getenv("FAKECUDA_CAPACITY_MB")) ? strtoull(e, 0, 10) : 81920ull) << 20;
        overhead = ((e = getenv("FAKECUDA_OVERHEAD_MB")) ? strtoull(e, 0, 10) : 500ull) << 20;
        if ((e = getenv("FAKECUDA_DEVICES")))
            ndev = atoi(e);
        if ((e = getenv("FAKECUDA_TRACE")))
            trace = atoi(e);
        if ((e = getenv("FAKECUDA_EVENT_LAG")))
            lag = atoi(e);
        for (int i = 0; i < 16; i++)
            used[i] = overhead;
        capblk = 1024;
        blks = malloc(capblk * sizeof *blks);
        nblk = 0;
        inited = 1;
    }
    pthread_mutex_unlock(&mu);
}
int fk_ndev(void) {
    fk_init();
    return ndev;
}
int fk_trace(void) {
    fk_init();
    return trace;
}
int fk_lag(void) {
    fk_init();
    return lag;
}
void fk_set_lag(int n) {
    fk_init();
    lag = n;
}
void fk_set_capacity_mb(uint64_t m) {
    fk_init();
    capacity = m << 20;
}
uint64_t fk_used(int dev) { return used[dev]; }
uint64_t fk_capacity(void) {
    fk_init();
    return capacity;
}
void fk_meminfo(int dev, size_t *f, size_t *t) {
    fk_init();
    if (t)
        *t = capacity;
    if (f)
        *f = used[dev] < capacity ? capacity - used[dev] : 0;
}
int fk_phys_take(int dev, uint64_t n) {
    fk_init();
    int ok;
    pthread_mutex_lock(&mu);
    ok = used[dev] + n <= capacity;
    if (ok)
        used[dev] += n;
    pthread_mutex_unlock(&mu);
    return ok;
}
void fk_phys_give(int dev, uint64_t n) {
    pthread_mutex_lock(&mu);
    used[dev] -= n;
    pthread_mutex_unlock(&mu);
}
static void ins(size_t i, Blk b) {
    if (nblk == capblk) {
        capblk *= 2;
        blks = realloc(blks, capblk * sizeof *blks);
    }
    memmove(blks + i + 1, blks + i, (nblk - i) * sizeof *blks);
    blks[i] = b;
    nblk++;
}
static void del(size_t i) {
    memmove(blks + i, blks + i + 1, (nblk - i - 1) * sizeof *blks);
    nblk--;
}
/* first fit, 2 MiB granules, addresses are reused after a free, as on a real device */
uint64_t fk_malloc(int dev, uint64_t n) {
    fk_init();
    uint64_t g = 2ull << 20, r = (n + g - 1) / g * g, out = 0;
    if (!fk_phys_take(dev, r)) {
        if (trace > 1)
            fprintf(stderr, "[fake] malloc %lu: OOM used %lu of %lu\n", n, used[dev], capacity);
        return 0;
    }
    pthread_mutex_lock(&mu);
    size_t i;
    for (i = 0; i < nblk; i++)
        if (blks[i].isfree && blks[i].dev == dev && blks[i].n >= r)
            break;
    if (i < nblk) {
        out = blks[i].a;
        if (blks[i].n > r) {
            Blk rest = {out + r, blks[i].n - r, dev, 1, 0};
            blks[i].n = r;
            ins(i + 1, rest);
        }
        blks[i].isfree = 0;
        blks[i].asked = n;
    } else { /* extend */
        uint64_t end = VA0 + (uint64_t)dev * VASZ;
        size_t pos = 0;
        for (i = 0; i < nblk; i++)
            if (blks[i].dev == dev) {
                end = blks[i].a + blks[i].n;
                pos = i + 1;
            } else if (blks[i].dev < dev)
                pos = i + 1;
        Blk b = {end, r, dev, 0, n};
        ins(pos, b);
        out = end;
    }
    pthread_mutex_unlock(&mu);
    if (trace > 1)
        fprintf(stderr, "[fake] malloc %lu -> %lx\n", n, out);
    return out;
}
int fk_free(uint64_t a) {
    if (!a)
        return 1;
    int ok = 0;
    pthread_mutex_lock(&mu);
    for (size_t i = 0; i < nblk; i++)
        if (blks[i].a == a && !blks[i].isfree) {
            used[blks[i].dev] -= blks[i].n;
            blks[i].isfree = 1;
            ok = 1;
            if (i + 1 < nblk && blks[i + 1].isfree && blks[i + 1].dev == blks[i].dev) {
                blks[i].n += blks[i + 1].n;
                del(i + 1);
            }
            if (i && blks[i - 1].isfree && blks[i - 1].dev == blks[i].dev) {
                blks[i - 1].n += blks[i].n;
                del(i);
            }
            break;
        }
    pthread_mutex_unlock(&mu);
    if (trace > 1)
        fprintf(stderr, "[fake] free %lx %s\n", a, ok ? "" : "UNKNOWN");
    return ok;
}
int fk_isdev(const void *p) {
    uint64_t a = (uint64_t)p;
    return (a >= 0x600000000000ull && a < 0x680000000000ull) || (a >= VA0 && a < VA0 + 16 * VASZ);
}
int fk_devof(const void *p) {
    uint64_t a = (uint64_t)p;
    return a >= VA0 ? (int)((a - VA0) / VASZ) : 0;
}

/* ---- driver API ---- */
typedef int CUresult;
typedef unsigned long long CUdeviceptr, H;
#define S(name) CUresult name
__thread int fk_curdev;
S(cuInit)(unsigned f) {
    fk_init();
    return 0;
}
S(cuDriverGetVersion)(int *v) {
    *v = FAKE_CUDA_VERSION;
    return 0;
}
S(cuDeviceGetCount)(int *n) {
    *n = fk_ndev();
    return 0;
}
S(cuDeviceGet)(int *d, int i) {
    *d = i;
    return 0;
}
S(cuGetErrorString)(CUresult e, const char **s) {
    *s = e == 2 ? "out of memory" : e ? "fake driver error" : "no error";
    return 0;
}
S(cuGetErrorName)(CUresult e, const char **s) {
    *s = e == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE";
    return 0;
}
S(cuCtxGetCurrent)(void **c) {
    *c = (void *)(uintptr_t)(0xc0de00 + fk_curdev);
    return 0;
}
S(cuCtxSetCurrent)(void *c) { return 0; }
S(cuCtxGetDevice)(int *d) {
    *d = fk_curdev;
    return 0;
}
S(cuDevicePrimaryCtxGetState)(int d, unsigned *f, int *a) {
    if (f)
        *f = 0;
    if (a)
        *a = 1;
    return 0;
}
S(cuDevicePrimaryCtxRetain)(void **c, int d) {
    *c = (void *)(uintptr_t)(0xc0de00 + d);
    return 0;
}
S(cuDeviceGetAttribute)(int *v, int attr, int d) {
    switch (attr) {
    case 97:
        *v = 232448;
        break;
    case 81:
        *v = 233472;
        break;
    case 8:
        *v = 49152;
        break;
    case 1:
        *v = 1024;
        break;
    case 10:
        *v = 32;
        break;
    case 12:
        *v = 65536;
        break;
    case 13:
        *v = 1980000;
        break;
    case 36:
        *v = 2619000;
        break;
    case 37:
        *v = 5120;
        break;
    case 75:
        *v = 9;
        break;
    case 76:
        *v = 0;
        break;
    case 16:
        *v = 132;
        break;
    default:
        *v = 0;
    }
    /* 102 VMM supported, 103 posix handle */
    if (attr == 102 || attr == 103)
        *v = 1;
    return 0;
}
S(cuMemGetAllocationGranularity)(size_t *g, const void *p, int o) {
    *g = 2ull << 20;
    return 0;
}
S(cuMemAddressReserve)(CUdeviceptr *p, size_t n, size_t al, CUdeviceptr hint,
                       unsigned long long f) {
    pthread_mutex_lock(&mu);
    uint64_t g = 2ull << 20;
    n = (n + g - 1) / g * g;
    *p = resv_next;
    resv_next += n + (1ull << 30);
    resv_next = (resv_next + g - 1) / g * g;
    pthread_mutex_unlock(&mu);
    if (trace > 1)
        fprintf(stderr, "[fake] reserve %zu -> %llx\n", n, *p);
    return 0;
}
S(cuMemAddressFree)(CUdeviceptr p, size_t n) { return 0; }
typedef struct {
    uint64_t n;
    int dev;
} Phys;
S(cuMemCreate)(H *h, size_t n, const int *prop, unsigned long long f) {
    int dev =
        prop ? prop[3] : 0; /* CUmemAllocationProp: type, requestedHandleTypes, location{type,id} */
    if (dev < 0 || dev > 15)
        dev = 0;
    if (!fk_phys_take(dev, n)) {
        if (trace > 1)
            fprintf(stderr, "[fake] cuMemCreate %zu: OOM\n", n);
        return 2;
    }
    Phys *p = malloc(sizeof *p);
    p->n = n;
    p->dev = dev;
    *h = (H)(uintptr_t)p;
    return 0;
}
S(cuMemRelease)(H h) {
    Phys *p = (Phys *)(uintptr_t)h;
    if (p) {
        fk_phys_give(p->dev, p->n);
        free(p);
    }
    return 0;
}
S(cuMemMap)(CUdeviceptr p, size_t n, size_t off, H h, unsigned long long f) { return 0; }
S(cuMemUnmap)(CUdeviceptr p, size_t n) { return 0; }
S(cuMemSetAccess)(CUdeviceptr p, size_t n, const void *d, size_t c) { return 0; }
S(cuMemGetAddressRange)(CUdeviceptr *b, size_t *n, CUdeviceptr p) {
    if (b)
        *b = p;
    if (n)
        *n = 0;
    return 0;
}
S(cuGetProcAddress_v2)(const char *s, void **fn, int v, unsigned long long f, int *st) {
    *fn = dlsym(RTLD_DEFAULT, s);
    if (!*fn) {
        Dl_info i;
        dladdr((void *)fk_init, &i);
        void *h = dlopen(i.dli_fname, RTLD_LAZY);
        *fn = dlsym(h, s);
    }
    if (st)
        *st = *fn ? 0 : 1;
    return *fn ? 0 : 500;
}
S(cuGetProcAddress)(const char *s, void **fn, int v, unsigned long long f) {
    return cuGetProcAddress_v2(s, fn, v, f, 0);
}
/* what Triton's launcher wants */
S(cuFuncGetAttribute)(int *v, int a, void *f) {
    *v = a == 0 ? 1024 : a == 4 ? 32 : 0;
    return 0;
}
S(cuLaunchKernelEx)(const void *c, void *f, void **p, void **e) { return 0; }
S(cuCtxGetLimit)(size_t *v, int l) {
    *v = 1 << 20;
    return 0;
}
S(cuCtxSetLimit)(int l, size_t v) { return 0; }
S(cuPointerGetAttributes)(unsigned n, void *a, void **d, CUdeviceptr p) { return 0; }
S(cuOccupancyMaxActiveClusters)(int *n, void *f, void *c) {
    *n = 8;
    return 0;
}
