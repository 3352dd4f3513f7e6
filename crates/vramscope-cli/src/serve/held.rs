//! Serves a file that is open already, in ranges.
//!
//! A path may lead elsewhere between a check and the opening of the file. So the file is opened
//! first, below its folder, and what is open is served.

use std::fs::{File, Metadata};
use std::future::{Ready, ready};
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncSeek, ReadBuf};
use tower_http::services::fs::{Backend, File as ServedFile, ServeDir};

/// The one file of a service, under the name [`HeldFile::NAME`].
#[derive(Clone)]
pub(crate) struct HeldFile(Arc<File>);

impl HeldFile {
    /// The path of requests to the service.
    pub(crate) const NAME: &str = "/file";

    /// A service of this file.
    pub(crate) fn service(
        file: File,
    ) -> ServeDir<tower_http::services::fs::DefaultServeDirFallback, Self> {
        ServeDir::with_backend("/", Self(Arc::new(file)))
    }
}

impl Backend for HeldFile {
    type File = Reader;
    type Metadata = Metadata;
    type OpenFuture = Ready<io::Result<Reader>>;
    type MetadataFuture = Ready<io::Result<Metadata>>;

    fn open(&self, _: PathBuf) -> Self::OpenFuture {
        let opened = self.0.try_clone().and_then(|file| {
            let metadata = file.metadata()?;
            Ok(Reader { file: tokio::fs::File::from_std(file), metadata })
        });
        ready(opened)
    }

    fn metadata(&self, _: PathBuf) -> Self::MetadataFuture {
        ready(self.0.metadata())
    }
}

/// A reader of the file.
pub(crate) struct Reader {
    file: tokio::fs::File,
    metadata: Metadata,
}

impl ServedFile for Reader {
    type Metadata = Metadata;
    type MetadataFuture<'a> = Ready<io::Result<Metadata>>;

    fn metadata(&self) -> Self::MetadataFuture<'_> {
        ready(Ok(self.metadata.clone()))
    }
}

impl AsyncRead for Reader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.file).poll_read(context, buffer)
    }
}

impl AsyncSeek for Reader {
    fn start_seek(mut self: Pin<&mut Self>, position: io::SeekFrom) -> io::Result<()> {
        Pin::new(&mut self.file).start_seek(position)
    }

    fn poll_complete(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<u64>> {
        Pin::new(&mut self.file).poll_complete(context)
    }
}
