//! Paths in recordings. A recording from Windows separates folders with backslashes.

const SEPARATORS: [char; 2] = ['/', '\\'];

/// The components of a path of any system.
pub fn components(path: &str) -> Vec<&str> {
    path.split(SEPARATORS).collect()
}

/// The last component of a path of any system.
pub fn file_name(path: &str) -> &str {
    path.rsplit(SEPARATORS).next().unwrap_or(path)
}

/// Whether a path names a shared library. The line of a frame in a library is an offset in bytes.
pub fn is_library(path: &str) -> bool {
    let name = file_name(path);
    let is_versioned = || name.split_once(".so.").is_some_and(|(_, version)| is_version(version));
    [".so", ".dll", ".pyd", ".dylib"].iter().any(|end| name.ends_with(end)) || is_versioned()
}

fn is_version(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit() || b == b'.')
}

#[cfg(test)]
mod tests {
    use super::{file_name, is_library};

    #[test]
    fn file_name_knows_the_separators_of_all_systems() {
        for path in ["/train/model.py", r"D:\train\model.py", r"D:/train\model.py", "model.py"] {
            assert_eq!(file_name(path), "model.py", "{path}");
        }
        assert_eq!(file_name(""), "");
        assert_eq!(file_name("/train/"), "");
    }

    #[test]
    fn is_library_knows_shared_libraries_of_all_systems() {
        for path in
            ["/venv/lib/libtorch_cpu.so", "libc.so.6", r"C:\torch\lib\c10.dll", "libc10.dylib"]
        {
            assert!(is_library(path), "{path}");
        }
        for path in ["/train/model.py", "libc.so.conf", "Functions.cpp", "", "??"] {
            assert!(!is_library(path), "{path}");
        }
    }
}
