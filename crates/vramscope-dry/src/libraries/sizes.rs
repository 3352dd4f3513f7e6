//! Sizes of scratch memory of cuSOLVER, cuSPARSE and cuFFT: 0, because the true sizes are not
//! known. A function without an answer would leave a random number of bytes to the caller.
//!
//! The numbers are the places of the outputs among the arguments, from the headers of CUDA 13.0.

#![expect(unsafe_code, reason = "exported functions of the libraries")]

use crate::tables::zeros;

zeros! {
    one i32, 4:
        cusolverDnSgesvd_bufferSize cusolverDnDgesvd_bufferSize cusolverDnCgesvd_bufferSize
        cusolverDnZgesvd_bufferSize;
    one i32, 5:
        cusolverDnSsytrf_bufferSize cusolverDnDsytrf_bufferSize cusolverDnCsytrf_bufferSize
        cusolverDnZsytrf_bufferSize;
    one i32, 6:
        cusolverDnSgetrf_bufferSize cusolverDnDgetrf_bufferSize cusolverDnCgetrf_bufferSize
        cusolverDnZgetrf_bufferSize cusolverDnSpotrf_bufferSize cusolverDnDpotrf_bufferSize
        cusolverDnCpotrf_bufferSize cusolverDnZpotrf_bufferSize cusolverDnSgeqrf_bufferSize
        cusolverDnDgeqrf_bufferSize cusolverDnCgeqrf_bufferSize cusolverDnZgeqrf_bufferSize;
    one i32, 8:
        cusolverDnSorgqr_bufferSize cusolverDnDorgqr_bufferSize cusolverDnCungqr_bufferSize
        cusolverDnZungqr_bufferSize cusolverDnSsyevd_bufferSize cusolverDnDsyevd_bufferSize
        cusolverDnCheevd_bufferSize cusolverDnZheevd_bufferSize cusolverDnSsyevj_bufferSize
        cusolverDnDsyevj_bufferSize cusolverDnCheevj_bufferSize cusolverDnZheevj_bufferSize
        cusolverDnSsyevjBatched_bufferSize cusolverDnDsyevjBatched_bufferSize
        cusolverDnCheevjBatched_bufferSize cusolverDnZheevjBatched_bufferSize;
    one i32, 12:
        cusolverDnSormqr_bufferSize cusolverDnDormqr_bufferSize cusolverDnCunmqr_bufferSize
        cusolverDnZunmqr_bufferSize cusolverDnSgesvdjBatched_bufferSize
        cusolverDnDgesvdjBatched_bufferSize cusolverDnCgesvdjBatched_bufferSize
        cusolverDnZgesvdjBatched_bufferSize cusparseSbsrsv2_bufferSize cusparseDbsrsv2_bufferSize
        cusparseCbsrsv2_bufferSize cusparseZbsrsv2_bufferSize;
    one i32, 13:
        cusolverDnSgesvdj_bufferSize cusolverDnDgesvdj_bufferSize cusolverDnCgesvdj_bufferSize
        cusolverDnZgesvdj_bufferSize;
    one i32, 14:
        cusparseSbsrsm2_bufferSize cusparseDbsrsm2_bufferSize cusparseCbsrsm2_bufferSize
        cusparseZbsrsm2_bufferSize;
    one i32, 17:
        cusolverDnSgesvdaStridedBatched_bufferSize cusolverDnDgesvdaStridedBatched_bufferSize
        cusolverDnCgesvdaStridedBatched_bufferSize cusolverDnZgesvdaStridedBatched_bufferSize;
    one u64, 3: cusparseLtMatmulGetWorkspace;
    one u64, 7: cusparseXcoosort_bufferSizeExt cusparseXcsrsort_bufferSizeExt;
    one u64, 10: cusparseSpMV_bufferSize cusparseSpSV_bufferSize;
    one u64, 11: cusparseSpMM_bufferSize cusparseSDDMM_bufferSize cusparseSpSM_bufferSize;
    one u64, 12: cusparseSpGEMM_workEstimation cusparseSpGEMM_compute;
    one u64, 13: cufftXtMakePlanMany;
    one u64, 20:
        cusparseScsrgeam2_bufferSizeExt cusparseDcsrgeam2_bufferSizeExt
        cusparseCcsrgeam2_bufferSizeExt cusparseZcsrgeam2_bufferSizeExt;
    two u64, 3: cusparseLtSpMMACompressedSize2;
    // Of the device, and of the host.
    two u64, 9: cusolverDnXpotrf_bufferSize;
    two u64, 11: cusolverDnXgeqrf_bufferSize;
    two u64, 12:
        cusolverDnXsyevd_bufferSize cusolverDnXsyevBatched_bufferSize cusolverDnXsytrs_bufferSize;
    two u64, 18: cusolverDnXgeev_bufferSize;
}
