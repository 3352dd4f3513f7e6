//! The file through which the browser opens the page.
//!
//! All users of a machine can list the arguments of its processes. So the browser is not started
//! with the address, which has the token, but with a file that only this user can read and that
//! leads to the address.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// A file that leads to an address. Dropping it removes the file.
pub(crate) struct Redirect {
    path: PathBuf,
}

impl Redirect {
    /// Writes the file into a folder. `name` must be hard to guess and unused.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn new(folder: &Path, name: &str, address: &str) -> io::Result<Self> {
        let path = folder.join(format!("vramscope-{name}.html"));
        let mut options = OpenOptions::new();
        // Never follows a link that someone else has put there.
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&path)?;
        let written = Self { path };
        writeln!(
            file,
            "<!doctype html>\n<meta charset=\"utf-8\">\n<title>vramscope</title>\n\
             <meta name=\"referrer\" content=\"no-referrer\">\n\
             <meta http-equiv=\"refresh\" content=\"0; url={address}\">\n\
             <a href=\"{address}\">Open vramscope</a>"
        )?;
        Ok(written)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Redirect {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            crate::output::complain(format_args!("cannot remove {}: {error}", self.path.display()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_user_can_read_the_file_and_it_is_removed() {
        let name = format!("redirect-{}", std::process::id());
        let folder = std::env::temp_dir();
        let redirect = Redirect::new(&folder, &name, "http://127.0.0.1:1/token/").expect("written");
        let path = redirect.path().to_owned();
        let text = std::fs::read_to_string(&path).expect("readable");
        assert!(text.contains("url=http://127.0.0.1:1/token/\""), "{text}");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = path.metadata().expect("there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        assert!(Redirect::new(&folder, &name, "").is_err(), "an existing file is not replaced");
        drop(redirect);
        assert!(!path.exists());
    }
}
