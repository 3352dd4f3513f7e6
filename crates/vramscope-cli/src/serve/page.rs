//! The built site in the program, with the feature `page`.
//!
//! A release build embeds the files. A debug build reads them from `web/site/dist`, so that it
//! always serves the site that was built last.

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

#[cfg(feature = "page")]
mod site {
    /// The program sends the headers that `isolated` works around, and needs no service worker. The
    /// licenses lie beside it. The gallery is on the site alone.
    #[derive(rust_embed::RustEmbed)]
    #[folder = "../../web/site/dist"]
    #[allow_missing = true]
    #[exclude = "isolated/*"]
    #[exclude = "THIRD_PARTY.txt"]
    #[exclude = "open/*"]
    #[exclude = "gallery/*"]
    #[exclude = "assets/gallery-*"]
    #[exclude = "sw.js"]
    pub(super) struct Site;
}

/// The file with this path in the site. A folder is its index, as on any host.
#[cfg(feature = "page")]
pub(crate) fn get(path: &str) -> Option<Asset> {
    let name = if path.is_empty() || path.ends_with('/') {
        Cow::Owned(format!("{path}index.html"))
    } else {
        Cow::Borrowed(path)
    };
    let file = site::Site::get(&name)?;
    Some(Asset { bytes: file.data, content_type: content_type(&name) })
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
    let wasm = |start: &str| {
        let name = site::Site::iter().find(|name| name.starts_with(start))?;
        Some(site::Site::get(&name)?.data)
    };
    Some(Viewer {
        script: site::Site::get("inline.js")?.data,
        view: wasm("assets/vramscope_view_bg")?,
        worker: wasm("assets/vramscope_worker_bg")?,
        notebook: site::Site::get("notebook.js")?.data,
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
