/* fakelibs.c: the few non-trivial entry points of cuBLAS, cuBLASLt, cuDNN, ... included into each
 * stub library (compiled with -DLIB_<name>); everything else is a generated stub returning 0. */
#include <stdlib.h>
#include <string.h>
#include <stdint.h>
#include <stdio.h>
#define HND(f)                                                                                     \
    int f(void **h, ...) {                                                                         \
        *h = calloc(1, 64);                                                                        \
        return 0;                                                                                  \
    }
#ifdef LIB_cublas
HND(cublasCreate_v2)
int cublasGetVersion_v2(void *h, int *v) {
    *v = 120405;
    return 0;
}
int cublasGetMathMode(void *h, int *m) {
    *m = 0;
    return 0;
}
int cublasGetPointerMode_v2(void *h, int *m) {
    *m = 0;
    return 0;
}
int cublasGetStream_v2(void *h, void **s) {
    *s = 0;
    return 0;
}
const char *cublasGetStatusString(int s) { return "fake cublas status"; }
const char *cublasGetStatusName(int s) { return "fake cublas status"; }
#endif
#ifdef LIB_cublasLt
HND(cublasLtCreate)
HND(cublasLtMatmulDescCreate) HND(cublasLtMatrixLayoutCreate)
    HND(cublasLtMatmulPreferenceCreate) int cublasLtMatmulAlgoGetHeuristic(void *h, void *d,
                                                                           void *a, void *b,
                                                                           void *c, void *dd,
                                                                           void *p, int req,
                                                                           void *res, int *got) {
    memset(res, 0, 96);
    *got = 1;
    return 0;
}
size_t cublasLtGetVersion(void) { return 120405; }
size_t cublasLtGetCudartVersion(void) { return 12040; }
#endif
#ifdef LIB_cudnn
HND(cudnnCreate)
HND(cudnnCreateTensorDescriptor) HND(cudnnCreateFilterDescriptor)
    HND(cudnnCreateConvolutionDescriptor) HND(cudnnCreateDropoutDescriptor)
        HND(cudnnCreateRNNDescriptor) HND(cudnnCreateRNNDataDescriptor)
#ifndef CUDNN_V
#define CUDNN_V 90100
#endif
            size_t cudnnGetVersion(void) {
    return CUDNN_V;
}
size_t cudnnGetCudartVersion(void) { return 12040; }
const char *cudnnGetErrorString(int s) { return "fake cudnn"; }
#endif
#ifdef LIB_curand
HND(curandCreateGenerator)
#endif
#ifdef LIB_cusparse
HND(cusparseCreate)
const char *cusparseGetErrorString(int s) { return "fake cusparse"; }
#endif
#ifdef LIB_cusolver
HND(cusolverDnCreate)
#endif
#ifdef LIB_nccl
int ncclGetVersion(int *v) {
    *v = 22105;
    return 0;
}
const char *ncclGetErrorString(int s) { return "fake nccl"; }
const char *ncclGetLastError(void *c) { return "fake nccl"; }
int ncclGetUniqueId(void *p) {
    memset(p, 7, 128);
    return 0;
}
int ncclCommInitRank(void **c, ...) {
    *c = calloc(1, 4096);
    return 0;
}
int ncclCommInitRankConfig(void **c, ...) {
    *c = calloc(1, 4096);
    return 0;
}
int ncclCommInitRankScalable(void **c, ...) {
    *c = calloc(1, 4096);
    return 0;
}
int ncclCommSplit(void *c, int color, int key, void **n, void *cfg) {
    *n = calloc(1, 4096);
    return 0;
}
int ncclCommGetAsyncError(void *c, int *e) {
    *e = 0;
    return 0;
}
int ncclCommRegister(void *c, void *p, size_t n, void **h) {
    *h = p;
    return 0;
}
int ncclCommCount(void *c, int *n) {
    *n = 1;
    return 0;
}
int ncclCommUserRank(void *c, int *n) {
    *n = 0;
    return 0;
}
int ncclCommCuDevice(void *c, int *n) {
    *n = 0;
    return 0;
}
#endif
