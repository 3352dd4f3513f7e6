//! cuSPARSE: handles, and the sizes of sparse matrices.

#![expect(unsafe_code, reason = "exported functions of the library")]

use crate::abi::api;
use crate::runtime::copy::next_count;
use crate::tables::{handles, new_handle, put};
use std::collections::BTreeMap;
use std::ffi::c_char;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

handles! {
    cusparseCreate cusparseCreateMatDescr cusparseCreateBsrsm2Info cusparseCreateBsrsv2Info
    cusparseCreateDnMat cusparseCreateDnVec cusparseCreateSpVec cusparseSpGEMM_createDescr
    cusparseSpSM_createDescr cusparseSpSV_createDescr
}

/// Rows, columns and values of a matrix.
pub(crate) type Size = [i64; 3];

/// Sizes of matrices by handle.
pub(crate) type Sizes = BTreeMap<u64, Size>;

/// The matrices of this process.
pub(crate) static SIZES: LazyLock<Mutex<Sizes>> = LazyLock::new(|| {
    crate::device::fork::watch();
    Mutex::default()
});

/// The matrices of this process.
fn sizes() -> MutexGuard<'static, Sizes> {
    SIZES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a matrix and writes its handle.
///
/// # Safety
///
/// `place` is valid for a write.
unsafe fn create(place: *mut u64, size: Size) -> i32 {
    let handle = new_handle();
    sizes().insert(handle, size);
    // SAFETY: the caller promises the place.
    unsafe { put(place, handle) };
    0
}

api! {
    /// Makes a matrix of compressed rows.
    fn cusparseCreateCsr(place: *mut u64, rows: i64, columns: i64, values: i64) -> i32 {
        create(place, [rows, columns, values])
    }

    /// Makes a matrix of compressed columns.
    fn cusparseCreateCsc(place: *mut u64, rows: i64, columns: i64, values: i64) -> i32 {
        create(place, [rows, columns, values])
    }

    /// Makes a matrix of coordinates.
    fn cusparseCreateCoo(place: *mut u64, rows: i64, columns: i64, values: i64) -> i32 {
        create(place, [rows, columns, values])
    }

    /// Destroys a matrix.
    fn cusparseDestroySpMat(matrix: u64) -> i32 {
        sizes().remove(&matrix);
        0
    }

    /// Writes the size of a matrix as it was made. One without values is a product: it has as many
    /// as the next count says.
    fn cusparseSpMatGetSize(
        matrix: u64, rows: *mut i64, columns: *mut i64, values: *mut i64,
    ) -> i32 {
        let size = sizes().get(&matrix).copied().unwrap_or_default();
        put(rows, size[0]);
        put(columns, size[1]);
        let count = if size[2] == 0 { next_count() } else { None };
        put(values, count.map_or(size[2], u64::cast_signed));
        0
    }

    /// Writes how many values a sum of two matrices has, as the next count says. Without one it is
    /// the greatest number that there can be.
    fn cusparseXcsrgeam2Nnz(
        _handle: u64, _rows: i32, _columns: i32, _a: u64, a_values: i32, _a_rows: u64,
        _a_columns: u64, _b: u64, b_values: i32, _b_rows: u64, _b_columns: u64, _sum: u64,
        _sum_rows: u64, values: *mut i32,
    ) -> i32 {
        let most = a_values.saturating_add(b_values);
        put(values, next_count().and_then(|count| i32::try_from(count).ok()).unwrap_or(most));
        0
    }

    /// Writes an attribute of an algorithm: zeros.
    fn cusparseLtMatmulAlgGetAttribute(
        _handle: u64, _algorithm: u64, _attribute: i32, place: *mut u8, bytes: usize,
    ) -> i32 {
        place.write_bytes(0, bytes);
        0
    }

    /// Returns a text: all functions succeed.
    fn cusparseGetErrorString(status: i32) -> *const c_char {
        if status == 0 { c"success" } else { c"unknown cuSPARSE status" }.as_ptr()
    }

    /// Returns a name: all functions succeed.
    fn cusparseGetErrorName(status: i32) -> *const c_char {
        if status == 0 { c"CUSPARSE_STATUS_SUCCESS" } else { c"unknown cuSPARSE status" }.as_ptr()
    }
}
