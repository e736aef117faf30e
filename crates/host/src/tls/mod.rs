//! TLS of the server: its files, the handshake, and reloading while it runs.
//!
//! A connection comes from `serve.rs` and goes to `http/connection.rs`, for which only the type of
//! the stream differs. The files are read into one `ServerConfig`; each connection takes the newest
//! and keeps it.

mod expiry;
mod files;
mod handshake;
mod reload;

pub(crate) use files::{Files, TlsConfig};
pub(crate) use handshake::shake_hands;
pub(crate) use reload::keep_current;

use crate::setup::SetupError;
use crate::stamp::Stamp;
use crate::stats::family::Family;
use rustls::ServerConfig;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// The TLS of this server.
pub struct Tls {
    files: Files,
    /// The configuration of new connections.
    current: RwLock<Arc<ServerConfig>>,
    state: Mutex<FilesState>,
    handshakes_failed: AtomicU64,
}

/// The state of the files and of the certificate in use.
struct FilesState {
    /// The files' stamps when they were last read, successfully or not.
    stamps: Vec<Option<Stamp>>,
    /// Expiry of the certificate in use, in s since 1970 UTC.
    expires_s: Option<u64>,
    /// When the expiry was last logged, in s since 1970 UTC.
    reminded_s: u64,
}

impl Tls {
    /// Reads the files of a configuration; `None` if it is without TLS.
    ///
    /// # Errors
    /// A sentence that names the fault.
    pub(crate) fn open(config: &TlsConfig) -> Result<Option<Arc<Tls>>, SetupError> {
        let Some(files) = Files::of(config)? else { return Ok(None) };
        // Taken before the files are read: a change in between is noticed at the next check.
        let stamps = files.stamps();
        let loaded = files.load()?;
        Ok(Some(Arc::new(Tls {
            files,
            current: RwLock::new(loaded.config),
            state: Mutex::new(FilesState { stamps, expires_s: loaded.expires_s, reminded_s: 0 }),
            handshakes_failed: AtomicU64::new(0),
        })))
    }

    fn current(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn serve(&self, config: Arc<ServerConfig>) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = config;
    }

    fn lock(&self) -> MutexGuard<'_, FilesState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn expires_s(&self) -> Option<u64> {
        self.lock().expires_s
    }

    /// Counts a failed handshake.
    fn failed(&self) {
        self.handshakes_failed.fetch_add(1, Relaxed);
    }

    /// The figures of TLS.
    pub(crate) fn families(&self) -> Vec<Family> {
        let mut families = vec![Family::counter(
            "wellspring_tls_handshakes_failed_total",
            "TLS handshakes that failed, and clients that do not speak TLS.",
            self.handshakes_failed.load(Relaxed),
        )];
        families.extend(self.expires_s().map(|end_s| {
            Family::gauge(
                "wellspring_tls_certificate_expiry_timestamp_seconds",
                "Expiry of the certificate in use, in seconds since 1970.",
                end_s,
            )
        }));
        families
    }
}
