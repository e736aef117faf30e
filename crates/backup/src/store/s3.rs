//! Backups in an object store that speaks S3.

use super::{Claim, PendingFile, SharedStore, Store, get, not_found};
use crate::fault::{BackupError, BackupResult};
use futures_util::{StreamExt, TryStreamExt};
use object_store::aws::AmazonS3Builder;
use object_store::path::Path;
use object_store::{Error, GetResult, ObjectStore, PutMode, PutPayload, WriteMultipart};
use std::io::{self, Read, Write};
use std::sync::Arc;
use tokio::runtime::{Builder, Runtime};

/// A file up to this size goes in one request.
const SMALL_BYTES: u64 = 5 << 20;
/// Parts of a larger file that are on their way at a time, each of 5 MiB or more.
const PARTS_IN_FLIGHT: usize = 4;

/// A bucket, or a part of it.
#[derive(Debug)]
pub struct S3Store {
    place: String,
    prefix: Path,
    store: Arc<dyn ObjectStore>,
    runtime: Runtime,
}

impl S3Store {
    /// The place that a URL names, as in `s3://bucket/prefix`. Credentials, region and endpoint are
    /// those of the environment, under the names that the AWS tools use: `AWS_ACCESS_KEY_ID`,
    /// `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION`, `AWS_ENDPOINT_URL`; plain HTTP
    /// needs `AWS_ALLOW_HTTP=true`.
    ///
    /// # Errors
    /// [`BackupError::Unfit`]: the URL or the environment makes no sense.
    pub fn open(url: &str) -> BackupResult<S3Store> {
        let unfit = |what: String| BackupError::Unfit(format!("{url}: {what}"));
        let rest = url.strip_prefix("s3://").ok_or_else(|| unfit("is not an s3:// URL".into()))?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = Path::parse(prefix.trim_matches('/')).map_err(|e| unfit(e.to_string()))?;
        let store = AmazonS3Builder::from_env()
            .with_bucket_name(bucket)
            .build()
            .map_err(|error| unfit(error.to_string()))?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(BackupError::io("starting the runtime of the object store"))?;
        Ok(S3Store { place: url.to_owned(), prefix, store: Arc::new(store), runtime })
    }

    fn path(&self, name: &str) -> Path {
        self.prefix.parts().chain(Path::from(name).parts().collect::<Vec<_>>()).collect()
    }
}

fn failed(doing: String) -> impl FnOnce(Error) -> BackupError {
    move |error| BackupError::Io { doing, error: io::Error::other(error) }
}

/// Whether a server has refused a request because it cannot do it under a condition.
fn knows_no_conditions(error: &Error) -> bool {
    match error {
        Error::NotImplemented | Error::NotSupported { .. } => true,
        // The client has no error of its own for 501, whose code is the same with every server.
        Error::Generic { source, .. } => {
            let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&**source);
            std::iter::from_fn(|| {
                let this = cause?;
                cause = this.source();
                Some(this.to_string())
            })
            .any(|told| {
                told.contains("501 Not Implemented") || told.contains("<Code>NotImplemented")
            })
        }
        _ => false,
    }
}

impl Store for S3Store {
    fn place(&self) -> String {
        self.place.clone()
    }

    fn list(&mut self, prefix: &str) -> BackupResult<Vec<(String, u64)>> {
        let below = self.path(prefix.trim_end_matches('/'));
        let own = self.prefix.as_ref().len() + usize::from(!self.prefix.as_ref().is_empty());
        let listed = self.store.list(Some(&below)).try_collect::<Vec<_>>();
        let listed = self.runtime.block_on(listed);
        let listed = listed.map_err(failed(format!("listing {}", self.place)))?;
        let named = |object: object_store::ObjectMeta| {
            (object.location.as_ref()[own..].to_owned(), object.size)
        };
        Ok(listed.into_iter().map(named).collect())
    }

    fn read(&mut self, name: &str) -> BackupResult<Box<dyn Read + '_>> {
        let path = self.path(name);
        match self.runtime.block_on(self.store.get(&path)) {
            Ok(found) => Ok(Box::new(Download::of(found, &self.runtime))),
            Err(Error::NotFound { .. }) => Err(not_found(&self.place, name)),
            Err(error) => Err(failed(format!("reading {name} from {}", self.place))(error)),
        }
    }

    fn create(&mut self, name: &str, bytes: u64) -> BackupResult<Box<dyn PendingFile + '_>> {
        let path = self.path(name);
        let doing = format!("writing {name} to {}", self.place);
        if bytes <= SMALL_BYTES {
            let content = Vec::with_capacity(bytes as usize);
            return Ok(Box::new(SmallUpload { store: self, path, content, doing }));
        }
        let upload = self.runtime.block_on(self.store.put_multipart(&path));
        let upload = upload.map_err(failed(doing.clone()))?;
        let upload = self.runtime.block_on(async { WriteMultipart::new(upload) });
        Ok(Box::new(LargeUpload { runtime: &self.runtime, upload: Some(upload), doing }))
    }

    fn remove(&mut self, name: &str) -> BackupResult<()> {
        match self.runtime.block_on(self.store.delete(&self.path(name))) {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(failed(format!("removing {name} from {}", self.place))(error)),
        }
    }

    fn shared(&mut self) -> Option<&mut dyn SharedStore> {
        Some(self)
    }
}

impl SharedStore for S3Store {
    fn claim(&mut self, name: &str, content: &str) -> BackupResult<Claim> {
        let path = self.path(name);
        let payload = || PutPayload::from(content.to_owned());
        let made = self.store.put_opts(&path, payload(), PutMode::Create.into());
        match self.runtime.block_on(made) {
            Ok(_) => Ok(Claim::Made),
            // A request that was repeated because its answer was lost finds its own file.
            Err(Error::AlreadyExists { .. }) if get(self, name, 1 << 10)? == content.as_bytes() => {
                Ok(Claim::Made)
            }
            Err(Error::AlreadyExists { .. }) => Ok(Claim::Taken),
            // Two backups of the same second may then have the same name. After any other error,
            // also one that leaves the outcome open, nothing may be replaced.
            Err(error) if knows_no_conditions(&error) => {
                match self.runtime.block_on(self.store.put(&path, payload())) {
                    Ok(_) => Ok(Claim::Made),
                    Err(error) => Err(failed(format!("writing {name} to {}", self.place))(error)),
                }
            }
            Err(error) => Err(failed(format!("writing {name} to {}", self.place))(error)),
        }
    }

    fn written_us(&mut self, name: &str) -> BackupResult<Option<u64>> {
        match self.runtime.block_on(self.store.head(&self.path(name))) {
            Ok(found) => Ok(Some(found.last_modified.timestamp_micros().max(0) as u64)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(failed(format!("reading {name} from {}", self.place))(error)),
        }
    }
}

type Pieces = futures_util::stream::BoxStream<'static, object_store::Result<bytes::Bytes>>;

/// An object as it comes.
struct Download<'a> {
    runtime: &'a Runtime,
    pieces: Pieces,
    piece: bytes::Bytes,
}

impl Download<'_> {
    fn of(found: GetResult, runtime: &Runtime) -> Download<'_> {
        Download { runtime, pieces: found.into_stream(), piece: bytes::Bytes::new() }
    }
}

impl Read for Download<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.runtime.block_on(self.pieces.next()) {
                None => return Ok(0),
                Some(piece) => self.piece = piece.map_err(io::Error::other)?,
            }
        }
        let len = buf.len().min(self.piece.len());
        buf[..len].copy_from_slice(&self.piece.split_to(len));
        Ok(len)
    }
}

struct SmallUpload<'a> {
    store: &'a S3Store,
    path: Path,
    content: Vec<u8>,
    doing: String,
}

impl Write for SmallUpload<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.content.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl PendingFile for SmallUpload<'_> {
    fn finish(self: Box<Self>) -> BackupResult<()> {
        let SmallUpload { store, path, content, doing } = *self;
        let put = store.store.put(&path, PutPayload::from(content));
        store.runtime.block_on(put).map(drop).map_err(failed(doing))
    }
}

struct LargeUpload<'a> {
    runtime: &'a Runtime,
    /// Taken when it is finished.
    upload: Option<WriteMultipart>,
    doing: String,
}

impl Write for LargeUpload<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let upload = self.upload.as_mut().expect("not finished");
        self.runtime.block_on(async {
            upload.wait_for_capacity(PARTS_IN_FLIGHT).await.map_err(io::Error::other)?;
            upload.write(bytes);
            Ok(bytes.len())
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl PendingFile for LargeUpload<'_> {
    fn finish(mut self: Box<Self>) -> BackupResult<()> {
        let upload = self.upload.take().expect("finished once");
        let doing = std::mem::take(&mut self.doing);
        self.runtime.block_on(upload.finish()).map(drop).map_err(failed(doing))
    }
}

impl Drop for LargeUpload<'_> {
    fn drop(&mut self) {
        if let Some(upload) = self.upload.take() {
            // What was uploaded of it would be paid for otherwise.
            let _ = self.runtime.block_on(upload.abort());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_server_without_conditions_is_asked_without_one() {
        let generic = |told: &str| Error::Generic { store: "S3", source: told.into() };
        assert!(knows_no_conditions(&Error::NotImplemented));
        for told in [
            "Server returned non-2xx status code: 501 Not Implemented: ",
            "Server returned error response: <Error><Code>NotImplemented</Code></Error>",
        ] {
            assert!(knows_no_conditions(&generic(told)), "{told}");
        }
        for told in [
            "Server returned non-2xx status code: 503 Service Unavailable: ",
            "Server returned non-2xx status code: 500 Internal Server Error: ",
            "HTTP error: operation timed out",
        ] {
            assert!(!knows_no_conditions(&generic(told)), "{told}");
        }
    }
}
