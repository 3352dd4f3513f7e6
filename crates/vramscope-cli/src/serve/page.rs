//! The built site in the program, with the feature `page`.
//!
//! A release build has the files, packed by `build.rs`. A debug build reads them from
//! `web/site/dist`, so that it always serves the site that was built last.

use std::borrow::Cow;

/// What to do about a program without the page.
pub(crate) const MISSING: &str = "this program was built without the page. Build it with the page: \
     cargo xtask build && cargo install --locked --path crates/vramscope-cli --features page";

/// A file of the site.
pub(crate) struct Asset {
    /// Content.
    pub(crate) bytes: Cow<'static, [u8]>,
    /// Value of the header `content-type`.
    pub(crate) content_type: String,
}

/// The viewer in one script, and the wasm files that a page hands over to it. docs/embedding.md
/// says how.
pub struct Viewer {
    /// `inline.js`.
    pub script: Cow<'static, [u8]>,
    /// `vramscope_view_bg.wasm`.
    pub view: Cow<'static, [u8]>,
    /// `vramscope_worker_bg.wasm`.
    pub worker: Cow<'static, [u8]>,
    /// `notebook.js`, which gets the other parts by the messages of a notebook's widget.
    pub notebook: Cow<'static, [u8]>,
}

/// The files of a release.
#[cfg(packed_page)]
mod site {
    use std::borrow::Cow;
    use std::collections::BTreeMap;
    use std::sync::LazyLock;

    type Files = BTreeMap<&'static str, &'static [u8]>;

    static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/page.zst"));
    static PAGE: LazyLock<Vec<u8>> =
        LazyLock::new(|| zstd::decode_all(PACKED).expect("the build script has packed it"));
    static FILES: LazyLock<Files> = LazyLock::new(|| files(&PAGE).expect("whole files"));

    fn files(mut page: &'static [u8]) -> Option<Files> {
        let mut files = Files::new();
        while !page.is_empty() {
            let (name_length, rest) = page.split_first_chunk()?;
            let (length, rest) = rest.split_first_chunk()?;
            let (name, rest) = rest.split_at_checked(u32::from_le_bytes(*name_length) as usize)?;
            let (bytes, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            files.insert(str::from_utf8(name).ok()?, bytes);
            page = rest;
        }
        Some(files)
    }

    pub(super) fn get(name: &str) -> Option<Cow<'static, [u8]>> {
        FILES.get(name).map(|bytes| Cow::Borrowed(*bytes))
    }

    /// The first file whose path starts so.
    pub(super) fn first(start: &str) -> Option<Cow<'static, [u8]>> {
        let (_, bytes) = FILES.iter().find(|(name, _)| name.starts_with(start))?;
        Some(Cow::Borrowed(*bytes))
    }
}

/// The files of the built site.
#[cfg(all(feature = "page", not(packed_page)))]
mod site {
    use crate::serve::site_files;
    use std::borrow::Cow;

    pub(super) fn get(name: &str) -> Option<Cow<'static, [u8]>> {
        Some(std::fs::read(site_files::all().ok()?.get(name)?).ok()?.into())
    }

    /// The first file whose path starts so.
    pub(super) fn first(start: &str) -> Option<Cow<'static, [u8]>> {
        let files = site_files::all().ok()?;
        let (_, path) = files.iter().find(|(name, _)| name.starts_with(start))?;
        Some(std::fs::read(path).ok()?.into())
    }
}

/// The file with this path in the site. A folder is its index, as on any host.
#[cfg(feature = "page")]
pub(crate) fn get(path: &str) -> Option<Asset> {
    let name = if path.is_empty() || path.ends_with('/') {
        Cow::Owned(format!("{path}index.html"))
    } else {
        Cow::Borrowed(path)
    };
    Some(Asset { bytes: site::get(&name)?, content_type: content_type(&name) })
}

/// No file: the program was built without the feature `page`.
#[cfg(not(feature = "page"))]
pub(crate) fn get(_path: &str) -> Option<Asset> {
    None
}

/// The viewer of the built site; none if the program was built without it.
#[cfg(feature = "page")]
pub fn viewer() -> Option<Viewer> {
    // The names of wasm files have a hash.
    Some(Viewer {
        script: site::get("inline.js")?,
        view: site::first("assets/vramscope_view_bg")?,
        worker: site::first("assets/vramscope_worker_bg")?,
        notebook: site::get("notebook.js")?,
    })
}

/// None: the program was built without the feature `page`.
#[cfg(not(feature = "page"))]
pub fn viewer() -> Option<Viewer> {
    None
}

#[cfg(feature = "page")]
fn content_type(name: &str) -> String {
    let mime = mime_guess::from_path(name).first_or_octet_stream();
    let charset = if mime.type_() == "text" { "; charset=utf-8" } else { "" };
    format!("{}{charset}", mime.essence_str())
}

#[cfg(all(test, feature = "page"))]
mod tests {
    use super::content_type;

    #[test]
    fn files_of_the_site_have_their_content_type() {
        let types = [
            ("index.html", "text/html; charset=utf-8"),
            ("assets/main-a1.js", "text/javascript; charset=utf-8"),
            ("assets/main-a1.css", "text/css; charset=utf-8"),
            ("assets/worker_bg.wasm", "application/wasm"),
            ("sample/index.json", "application/json"),
            ("sample/rank0.pickle", "application/octet-stream"),
            ("manifest.webmanifest", "application/manifest+json"),
            ("favicon.svg", "image/svg+xml"),
            ("icon-192.png", "image/png"),
        ];
        for (name, wanted) in types {
            assert_eq!(content_type(name), wanted, "{name}");
        }
    }
}
