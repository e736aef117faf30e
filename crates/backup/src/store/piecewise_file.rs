//! Writes a large file without delaying appends to a log on the same device.

use std::fs::File;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

/// Bytes between two barriers. A barrier of a log on the same device waits for the device's pending
/// writes, so its appends wait for at most one piece. Measured: half the delay of pieces of 8 MiB,
/// at no lower rate (docs/benchmarks.md).
const PIECE_BYTES: usize = 512 << 10;

/// A file that a thread makes durable piece by piece. While one piece is written, the next one is
/// filled.
pub(super) struct PiecewiseFile {
    file: File,
    piece: Vec<u8>,
    pieces: Option<SyncSender<Vec<u8>>>,
    /// Buffers of durable pieces, emptied for reuse.
    durable: Receiver<io::Result<Vec<u8>>>,
    thread: Option<JoinHandle<()>>,
}

impl PiecewiseFile {
    /// # Errors
    /// The system has no thread, or no file descriptor.
    #[allow(clippy::disallowed_methods)] // ends with its file
    pub(super) fn new(file: File) -> io::Result<PiecewiseFile> {
        let (pieces, filled) = sync_channel::<Vec<u8>>(1);
        let (done, durable) = sync_channel(1);
        let mut writing = file.try_clone()?;
        let run = move || {
            let mut made = Ok(Vec::with_capacity(PIECE_BYTES));
            while done.send(made).is_ok() {
                let Ok(mut piece) = filled.recv() else { return };
                let written = writing.write_all(&piece).and_then(|()| writing.sync_data());
                piece.clear();
                made = written.map(|()| piece);
            }
        };
        let thread = thread::Builder::new().name("backup-write".into()).spawn(run)?;
        let piece = Vec::with_capacity(PIECE_BYTES);
        let (pieces, thread) = (Some(pieces), Some(thread));
        Ok(PiecewiseFile { file, piece, pieces, durable, thread })
    }

    /// Sends the piece to the thread once the previous one is durable.
    fn hand_over(&mut self) -> io::Result<()> {
        let ended = || io::Error::other("the thread that writes has ended");
        let next = self.durable.recv().map_err(|_| ended())??;
        let piece = std::mem::replace(&mut self.piece, next);
        let pieces = self.pieces.as_ref().ok_or_else(ended)?;
        pieces.send(piece).map_err(|_| ended())
    }

    /// Makes everything durable.
    ///
    /// # Errors
    /// An error of the file system, now or in an earlier piece.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.hand_over()?;
        self.durable.recv().map_err(io::Error::other)??;
        self.file.sync_all()
    }
}

impl Drop for PiecewiseFile {
    fn drop(&mut self) {
        self.pieces.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Write for PiecewiseFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.piece.len() == PIECE_BYTES {
            self.hand_over()?;
        }
        let got = bytes.len().min(PIECE_BYTES - self.piece.len());
        self.piece.extend_from_slice(&bytes[..got]);
        Ok(got)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_arrive_in_order_whatever_the_sizes() {
        let dir = tempfile::tempdir().unwrap();
        for bytes in [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES + 17] {
            let path = dir.path().join("f");
            let content: Vec<u8> = (0..bytes).map(|at| (at / 7) as u8).collect();
            let mut file = PiecewiseFile::new(File::create(&path).unwrap()).unwrap();
            content.chunks(77_777).for_each(|chunk| file.write_all(chunk).unwrap());
            file.finish().unwrap();
            assert!(std::fs::read(&path).unwrap() == content, "{bytes} bytes");
        }
    }

    #[test]
    fn an_error_of_the_device_is_one_of_a_later_write_or_of_the_end() {
        let full = || File::options().write(true).open("/dev/full").unwrap();
        let mut file = PiecewiseFile::new(full()).unwrap();
        file.write_all(b"a").unwrap();
        assert_eq!(file.finish().unwrap_err().kind(), io::ErrorKind::StorageFull);
        let mut file = PiecewiseFile::new(full()).unwrap();
        let error = file.write_all(&vec![0; 4 * PIECE_BYTES]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
