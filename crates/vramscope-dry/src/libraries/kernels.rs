//! Functions that compute on the device, set an option or destroy a handle: they do nothing.
//!
//! PyTorch 2.1 to 2.15 call these. Shims report other functions as unknown.

#![expect(unsafe_code, reason = "exported functions of the libraries")]

use crate::tables::succeed;

// cuBLAS.
succeed! {
    cublasCaxpy_v2 cublasCcopy_v2 cublasCdotc_v2 cublasCdotu_v2 cublasCgelsBatched
    cublasCgemmBatched cublasCgemmStridedBatched cublasCgemm_v2 cublasCgemv_v2 cublasCgeqrfBatched
    cublasCgerc_v2 cublasCgeru_v2 cublasCgetrfBatched cublasCgetrsBatched cublasChemm_v2
    cublasChemv_v2 cublasCher2_v2 cublasCher2k_v2 cublasCher_v2 cublasCherk_v2 cublasCrot_v2
    cublasCrotg_v2 cublasCscal_v2 cublasCsrot_v2 cublasCsscal_v2 cublasCswap_v2 cublasCsymm_v2
    cublasCsymv_v2 cublasCsyr2_v2 cublasCsyr2k_v2 cublasCsyr_v2 cublasCsyrk_v2 cublasCtrmm_v2
    cublasCtrmv_v2 cublasCtrsmBatched cublasCtrsm_v2 cublasCtrsv_v2 cublasDasum_v2 cublasDaxpy_v2
    cublasDcopy_v2 cublasDdot_v2 cublasDestroy_v2 cublasDgelsBatched cublasDgemmBatched
    cublasDgemmStridedBatched cublasDgemm_v2 cublasDgemv_v2 cublasDgeqrfBatched cublasDger_v2
    cublasDgetrfBatched cublasDgetrsBatched cublasDnrm2_v2 cublasDotEx cublasDrot_v2 cublasDrotg_v2
    cublasDrotm_v2 cublasDrotmg_v2 cublasDscal_v2 cublasDswap_v2 cublasDsymm_v2 cublasDsymv_v2
    cublasDsyr2_v2 cublasDsyr2k_v2 cublasDsyr_v2 cublasDsyrk_v2 cublasDtrmm_v2 cublasDtrmv_v2
    cublasDtrsmBatched cublasDtrsm_v2 cublasDtrsv_v2 cublasDzasum_v2 cublasDznrm2_v2
    cublasGemmBatchedEx cublasGemmEx cublasGemmGroupedBatchedEx cublasGemmStridedBatchedEx
    cublasGetMatrixAsync cublasGetVectorAsync cublasHgemm cublasHgemmBatched
    cublasHgemmStridedBatched cublasIcamax_v2 cublasIcamin_v2 cublasIdamax_v2 cublasIdamin_v2
    cublasIsamax_v2 cublasIsamin_v2 cublasIzamax_v2 cublasIzamin_v2 cublasSasum_v2 cublasSaxpy_v2
    cublasScasum_v2 cublasScnrm2_v2 cublasScopy_v2 cublasSdot_v2 cublasSetAtomicsMode
    cublasSetMathMode cublasSetMatrixAsync cublasSetPointerMode_v2 cublasSetSmCountTarget
    cublasSetStream_v2 cublasSetVectorAsync cublasSetWorkspace_v2 cublasSgelsBatched
    cublasSgemmBatched cublasSgemmEx cublasSgemmStridedBatched cublasSgemm_v2 cublasSgemv_v2
    cublasSgeqrfBatched cublasSger_v2 cublasSgetrfBatched cublasSgetrsBatched cublasSnrm2_v2
    cublasSrot_v2 cublasSrotg_v2 cublasSrotm_v2 cublasSrotmg_v2 cublasSscal_v2 cublasSswap_v2
    cublasSsymm_v2 cublasSsymv_v2 cublasSsyr2_v2 cublasSsyr2k_v2 cublasSsyr_v2 cublasSsyrk_v2
    cublasStrmm_v2 cublasStrmv_v2 cublasStrsmBatched cublasStrsm_v2 cublasStrsv_v2 cublasZaxpy_v2
    cublasZcopy_v2 cublasZdotc_v2 cublasZdotu_v2 cublasZdrot_v2 cublasZdscal_v2 cublasZgelsBatched
    cublasZgemmBatched cublasZgemmStridedBatched cublasZgemm_v2 cublasZgemv_v2 cublasZgeqrfBatched
    cublasZgerc_v2 cublasZgeru_v2 cublasZgetrfBatched cublasZgetrsBatched cublasZhemm_v2
    cublasZhemv_v2 cublasZher2_v2 cublasZher2k_v2 cublasZher_v2 cublasZherk_v2 cublasZrot_v2
    cublasZrotg_v2 cublasZscal_v2 cublasZswap_v2 cublasZsymm_v2 cublasZsymv_v2 cublasZsyr2_v2
    cublasZsyr2k_v2 cublasZsyr_v2 cublasZsyrk_v2 cublasZtrmm_v2 cublasZtrmv_v2 cublasZtrsmBatched
    cublasZtrsm_v2 cublasZtrsv_v2
}

// cuBLASLt.
succeed! {
    cublasLtDestroy cublasLtMatmul cublasLtMatmulAlgoConfigSetAttribute cublasLtMatmulDescDestroy
    cublasLtMatmulDescSetAttribute cublasLtMatmulPreferenceDestroy
    cublasLtMatmulPreferenceSetAttribute cublasLtMatrixLayoutDestroy
    cublasLtMatrixLayoutSetAttribute
}

// cuSOLVER.
succeed! {
    cusolverDnCgeqrf cusolverDnCgesvd cusolverDnCgesvdaStridedBatched cusolverDnCgesvdj
    cusolverDnCgesvdjBatched cusolverDnCgetrf cusolverDnCgetrs cusolverDnCheevd cusolverDnCheevj
    cusolverDnCheevjBatched cusolverDnCpotrf cusolverDnCpotrfBatched cusolverDnCpotrs
    cusolverDnCpotrsBatched cusolverDnCsytrf cusolverDnCungqr cusolverDnCunmqr cusolverDnDestroy
    cusolverDnDestroyGesvdjInfo cusolverDnDestroyParams cusolverDnDestroySyevjInfo cusolverDnDgeqrf
    cusolverDnDgesvd cusolverDnDgesvdaStridedBatched cusolverDnDgesvdj cusolverDnDgesvdjBatched
    cusolverDnDgetrf cusolverDnDgetrs cusolverDnDorgqr cusolverDnDormqr cusolverDnDpotrf
    cusolverDnDpotrfBatched cusolverDnDpotrs cusolverDnDpotrsBatched cusolverDnDsyevd
    cusolverDnDsyevj cusolverDnDsyevjBatched cusolverDnDsytrf cusolverDnSetStream cusolverDnSgeqrf
    cusolverDnSgesvd cusolverDnSgesvdaStridedBatched cusolverDnSgesvdj cusolverDnSgesvdjBatched
    cusolverDnSgetrf cusolverDnSgetrs cusolverDnSorgqr cusolverDnSormqr cusolverDnSpotrf
    cusolverDnSpotrfBatched cusolverDnSpotrs cusolverDnSpotrsBatched cusolverDnSsyevd
    cusolverDnSsyevj cusolverDnSsyevjBatched cusolverDnSsytrf cusolverDnXgeev cusolverDnXgeqrf
    cusolverDnXgesvdjSetMaxSweeps cusolverDnXgesvdjSetSortEig cusolverDnXgesvdjSetTolerance
    cusolverDnXpotrf cusolverDnXpotrs cusolverDnXsyevBatched cusolverDnXsyevd
    cusolverDnXsyevjSetMaxSweeps cusolverDnXsyevjSetSortEig cusolverDnXsyevjSetTolerance
    cusolverDnXsytrs cusolverDnZgeqrf cusolverDnZgesvd cusolverDnZgesvdaStridedBatched
    cusolverDnZgesvdj cusolverDnZgesvdjBatched cusolverDnZgetrf cusolverDnZgetrs cusolverDnZheevd
    cusolverDnZheevj cusolverDnZheevjBatched cusolverDnZpotrf cusolverDnZpotrfBatched
    cusolverDnZpotrs cusolverDnZpotrsBatched cusolverDnZsytrf cusolverDnZungqr cusolverDnZunmqr
}

// cuSPARSE.
succeed! {
    cusparseCbsrmm cusparseCbsrmv cusparseCbsrsm2_analysis cusparseCbsrsm2_solve
    cusparseCbsrsv2_analysis cusparseCbsrsv2_solve cusparseCcsrgeam2
    cusparseCreateIdentityPermutation cusparseCsrSetPointers cusparseCsrSetStridedBatch
    cusparseDbsrmm cusparseDbsrmv cusparseDbsrsm2_analysis cusparseDbsrsm2_solve
    cusparseDbsrsv2_analysis cusparseDbsrsv2_solve cusparseDcsrgeam2 cusparseDestroy
    cusparseDestroyBsrsm2Info cusparseDestroyBsrsv2Info cusparseDestroyDnMat cusparseDestroyDnVec
    cusparseDestroyMatDescr cusparseDestroySpVec cusparseDnMatSetStridedBatch cusparseDnVecSetValues
    cusparseSDDMM cusparseSDDMM_preprocess cusparseSbsrmm cusparseSbsrmv cusparseSbsrsm2_analysis
    cusparseSbsrsm2_solve cusparseSbsrsv2_analysis cusparseSbsrsv2_solve cusparseScsrgeam2
    cusparseSetMatDiagType cusparseSetMatFillMode cusparseSetMatIndexBase cusparseSetMatType
    cusparseSetPointerMode cusparseSetStream cusparseSpGEMM_copy cusparseSpGEMM_destroyDescr
    cusparseSpMM cusparseSpMV cusparseSpMatSetAttribute cusparseSpSM_analysis
    cusparseSpSM_destroyDescr cusparseSpSM_solve cusparseSpSV_analysis cusparseSpSV_destroyDescr
    cusparseSpSV_solve cusparseXbsrsm2_zeroPivot cusparseXbsrsv2_zeroPivot cusparseXcoo2csr
    cusparseXcoosortByRow cusparseXcsrsort cusparseZbsrmm cusparseZbsrmv cusparseZbsrsm2_analysis
    cusparseZbsrsm2_solve cusparseZbsrsv2_analysis cusparseZbsrsv2_solve cusparseZcsrgeam2
}

// cuSPARSELt.
succeed! {
    cusparseLtDenseDescriptorInit cusparseLtDestroy cusparseLtInit cusparseLtMatDescriptorDestroy
    cusparseLtMatmul cusparseLtMatmulAlgSelectionInit cusparseLtMatmulAlgSetAttribute
    cusparseLtMatmulDescSetAttribute cusparseLtMatmulDescriptorDestroy
    cusparseLtMatmulDescriptorInit cusparseLtMatmulPlanDestroy cusparseLtMatmulPlanInit
    cusparseLtMatmulSearch cusparseLtSpMMACompress2 cusparseLtStructuredDescriptorInit
}

// cuFFT and cuRAND.
succeed! {
    cufftDestroy cufftSetAutoAllocation cufftSetStream cufftSetWorkArea cufftXtExec
    curandDestroyGenerator curandSetPseudoRandomGeneratorSeed curandSetStream
}
