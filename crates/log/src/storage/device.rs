//! Reading what the device holds, past the page cache.
//!
//! A block that rots under a cached page is hidden until the page leaves, so a check has to read
//! the device. Direct I/O does that, and neither fills nor empties the cache, so a check takes no
//! page from the server. Where the file system refuses it, the range is dropped from the cache
//! before it is read. Where neither works, as in memory, this is an ordinary read.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// What direct I/O has to be a multiple of: a block of the device, and at most a page.
const ALIGN: usize = 4096;
/// Unit of reading.
const WINDOW_BYTES: usize = 128 << 10;
/// Windows that are kept, so that reading several parts of a file in turns reads each once.
const WINDOWS: usize = 8;

/// Reads a file whose bytes do not change meanwhile, from the device if the system can.
#[derive(Debug)]
pub struct DeviceReader {
    state: Mutex<ReaderState>,
}

/// How the device is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CacheMode {
    /// Direct I/O.
    Direct,
    /// The page cache, after its pages were dropped.
    Dropped,
}

#[derive(Debug)]
struct ReaderState {
    file: File,
    mode: CacheMode,
    /// Most recently used last.
    windows: Vec<Window>,
}

/// Aligned bytes of a file.
#[derive(Debug)]
struct Window {
    /// Where it begins, divided by its size.
    number: u64,
    /// Longer than a window, so that there is an aligned place in it.
    buffer: Vec<u8>,
    /// Where the aligned place begins.
    from: usize,
    /// Bytes that were read: fewer than a window at the end of the file.
    filled: usize,
}

impl DeviceReader {
    /// A reader of an open file.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn of(file: &File) -> io::Result<DeviceReader> {
        let (file, mode) = match open_direct(file) {
            Ok(direct) => (direct, CacheMode::Direct),
            Err(_) => (file.try_clone()?, CacheMode::Dropped),
        };
        Ok(DeviceReader { state: Mutex::new(ReaderState { file, mode, windows: Vec::new() }) })
    }

    /// The bytes of a short file, at most `most` of them.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn read_file(path: &Path, most: usize) -> io::Result<Vec<u8>> {
        let reader = DeviceReader::of(&File::open(path)?)?;
        let mut bytes = vec![0; most];
        let len = reader.read_at(&mut bytes, 0)?;
        bytes.truncate(len);
        Ok(bytes)
    }

    /// Length of the file in bytes.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn file_bytes(&self) -> io::Result<u64> {
        Ok(self.lock().file.metadata()?.len())
    }

    /// Reads up to `buf.len()` bytes; fewer only at the end of the file.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.lock();
        let mut copied = 0;
        while copied < buf.len() {
            let at = offset + copied as u64;
            let window = state.window(at / WINDOW_BYTES as u64)?;
            let bytes = window.bytes().get((at % WINDOW_BYTES as u64) as usize..).unwrap_or(&[]);
            if bytes.is_empty() {
                break;
            }
            let len = bytes.len().min(buf.len() - copied);
            buf[copied..copied + len].copy_from_slice(&bytes[..len]);
            copied += len;
        }
        Ok(copied)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, ReaderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReaderState {
    /// The window with this number, read unless it is kept.
    fn window(&mut self, number: u64) -> io::Result<&Window> {
        let place = self.windows.iter().position(|window| window.number == number);
        let window = match place {
            Some(place) => self.windows.remove(place),
            None => {
                let mut window = match self.windows.len() {
                    WINDOWS => self.windows.remove(0),
                    _ => Window::new(),
                };
                window.number = number;
                window.filled = self.fill(window.aligned(), number * WINDOW_BYTES as u64)?;
                window
            }
        };
        self.windows.push(window);
        Ok(&self.windows[self.windows.len() - 1])
    }

    /// Reads until the buffer is full or the file ends.
    fn fill(&mut self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buf.len() {
            let at = offset + filled as u64;
            if self.mode == CacheMode::Dropped {
                drop_pages(&self.file, at, buf.len() - filled);
            }
            match self.file.read_at(&mut buf[filled..], at) {
                Ok(0) => break,
                Ok(len) => filled += len,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Some file systems take the flag when a file is opened, and refuse the read.
                Err(_) if self.mode == CacheMode::Direct => self.give_up_direct()?,
                Err(error) => return Err(error),
            }
            // No direct read may begin where this one ended: that is the end of the file, or a
            // network file system's own limit.
            if !filled.is_multiple_of(ALIGN) && self.mode == CacheMode::Direct {
                if offset + filled as u64 >= self.file.metadata()?.len() {
                    break;
                }
                self.give_up_direct()?;
            }
        }
        Ok(filled)
    }

    fn give_up_direct(&mut self) -> io::Result<()> {
        self.file = open_cached(&self.file)?;
        self.mode = CacheMode::Dropped;
        Ok(())
    }
}

impl Window {
    fn new() -> Window {
        let buffer = vec![0; WINDOW_BYTES + ALIGN];
        let from = buffer.as_ptr().align_offset(ALIGN).min(ALIGN);
        Window { number: 0, buffer, from, filled: 0 }
    }

    fn aligned(&mut self) -> &mut [u8] {
        &mut self.buffer[self.from..self.from + WINDOW_BYTES]
    }

    fn bytes(&self) -> &[u8] {
        &self.buffer[self.from..self.from + self.filled]
    }
}

/// Opens an open file once more, even if its name is gone: another handle of the same file has
/// flags of its own.
#[cfg(target_os = "linux")]
fn open_again(file: &File, flags: rustix::fs::OFlags) -> io::Result<File> {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::OpenOptionsExt;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    std::fs::OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)
}

#[cfg(target_os = "linux")]
fn open_direct(file: &File) -> io::Result<File> {
    open_again(file, rustix::fs::OFlags::DIRECT)
}

#[cfg(target_os = "linux")]
fn open_cached(file: &File) -> io::Result<File> {
    open_again(file, rustix::fs::OFlags::empty())
}

/// Drops the clean pages of a range from the page cache; those that are still to be written are
/// newer than the device.
#[cfg(target_os = "linux")]
fn drop_pages(file: &File, offset: u64, len: usize) {
    let len = std::num::NonZero::new(len as u64);
    let _ = rustix::fs::fadvise(file, offset, len, rustix::fs::Advice::DontNeed);
}

#[cfg(not(target_os = "linux"))]
fn open_direct(_file: &File) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(target_os = "linux"))]
fn open_cached(file: &File) -> io::Result<File> {
    file.try_clone()
}

#[cfg(not(target_os = "linux"))]
fn drop_pages(_file: &File, _offset: u64, _len: usize) {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;
    use wellspring_types::random::SplitMix64;

    fn random_file(dir: &Path, len: usize) -> (File, Vec<u8>) {
        let mut random = SplitMix64::new(len as u64 + 1);
        let bytes: Vec<u8> = (0..len).map(|_| random.next_u64() as u8).collect();
        let path = dir.join(format!("{len}"));
        std::fs::write(&path, &bytes).unwrap();
        let file = File::options().read(true).write(true).open(path).unwrap();
        (file, bytes)
    }

    /// A reader that reads this way from the beginning.
    fn reader(file: &File, mode: CacheMode) -> DeviceReader {
        let reader = DeviceReader::of(file).unwrap();
        if mode == CacheMode::Dropped {
            let mut state = reader.lock();
            (state.file, state.mode) = (file.try_clone().unwrap(), mode);
        }
        reader
    }

    const LENGTHS: [usize; 9] =
        [0, 1, 4095, 4096, 4097, WINDOW_BYTES - 1, WINDOW_BYTES, WINDOW_BYTES + 1, 1_500_007];

    #[test]
    fn every_range_is_read_as_it_is_whichever_way() {
        // Beside the program that is tested: /tmp may be in memory, which has no direct I/O.
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let mut random = SplitMix64::new(7);
        for len in LENGTHS {
            let (file, bytes) = random_file(dir.path(), len);
            for mode in [CacheMode::Direct, CacheMode::Dropped] {
                let reader = reader(&file, mode);
                assert_eq!(reader.file_bytes().unwrap(), len as u64);
                for round in 0..60 {
                    let mut below = |most: usize| (random.next_u64() % (most as u64 + 1)) as usize;
                    // The whole file first, then ranges that begin and end anywhere, or after it.
                    let (from, want) = match round {
                        0 => (0, len + 10_000),
                        _ => (below(len + 100), below(300_000)),
                    };
                    let mut buf = vec![0xee; want];
                    let got = reader.read_at(&mut buf, from as u64).unwrap();
                    let expected = &bytes[from.min(len)..(from + want).min(len)];
                    assert!(&buf[..got] == expected, "{mode:?}: {from}, {want} of {len}");
                }
            }
            let path = dir.path().join(format!("{len}"));
            assert_eq!(DeviceReader::read_file(&path, 5_000).unwrap(), bytes[..len.min(5_000)]);
        }
    }

    /// Bytes that this process has had fetched from devices.
    #[cfg(target_os = "linux")]
    fn fetched_bytes() -> Option<u64> {
        let text = std::fs::read_to_string("/proc/self/io").ok()?;
        text.lines().find_map(|line| line.strip_prefix("read_bytes: ")?.parse().ok())
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn bytes_that_are_in_the_page_cache_are_fetched_from_the_device() {
        const LEN: usize = 8 << 20;
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let (file, bytes) = random_file(dir.path(), LEN);
        file.sync_all().unwrap();
        let mut buf = vec![0; LEN];
        file.read_exact_at(&mut buf, 0).unwrap();
        let reader = DeviceReader::of(&file).unwrap();
        let Some(before) = fetched_bytes() else { return };
        assert_eq!(reader.read_at(&mut buf, 0).unwrap(), LEN);
        assert!(buf == bytes);
        let fetched = fetched_bytes().unwrap() - before;
        // In memory there is no device: then the flag is refused, or means nothing.
        let has_device = rustix::fs::fstatfs(&file).is_ok_and(|fs| fs.f_type != 0x0102_1994);
        let is_direct = reader.lock().mode == CacheMode::Direct;
        assert!(!has_device || !is_direct || fetched >= LEN as u64, "{fetched} bytes");
    }

    #[test]
    fn a_refused_direct_read_is_repeated_another_way() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let (file, bytes) = random_file(dir.path(), 300_000);
        let reader = DeviceReader::of(&file).unwrap();
        {
            // A handle that is open for writing only refuses every read.
            let mut state = reader.lock();
            let path = dir.path().join("300000");
            state.file = File::options().write(true).open(path).unwrap();
            state.mode = CacheMode::Direct;
        }
        let mut buf = vec![0; 300_000];
        let read = reader.read_at(&mut buf, 0);
        #[cfg(target_os = "linux")]
        {
            assert_eq!(read.unwrap(), 300_000);
            assert!(buf == bytes);
            assert_eq!(reader.lock().mode, CacheMode::Dropped);
        }
        #[cfg(not(target_os = "linux"))]
        drop((read, bytes));
    }

    #[test]
    fn what_is_written_and_still_in_memory_is_read_and_a_removed_file_too() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let (file, mut bytes) = random_file(dir.path(), 200_001);
        for at in [0, 4096, 131_072, 200_000] {
            // In the page cache first, as a server's pages are; then changed under it.
            file.read_exact_at(&mut vec![0; bytes.len()], 0).unwrap();
            bytes[at] ^= 0x20;
            file.write_all_at(&bytes[at..=at], at as u64).unwrap();
            let mut buf = vec![0; bytes.len()];
            assert_eq!(DeviceReader::of(&file).unwrap().read_at(&mut buf, 0).unwrap(), buf.len());
            assert!(buf == bytes, "{at}");
        }
        std::fs::remove_file(dir.path().join("200001")).unwrap();
        let mut buf = vec![0; bytes.len()];
        assert_eq!(DeviceReader::of(&file).unwrap().read_at(&mut buf, 0).unwrap(), buf.len());
        assert!(buf == bytes);
    }
}
